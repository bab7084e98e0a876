"""docs/numbers.md says what the code has: who changes a number of the judgement changes the page."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numbers.md"
ROOMS = {
    "model": "smart_redriver.engine.model",
    "triage": "smart_redriver.engine.triage",
    "messages": "smart_redriver.engine.messages",
    "reports": "smart_redriver.engine.reports",
}
UNITS = {"s": 1, "min": 60, "h": 3_600, "day": 86_400, "days": 86_400}


def told() -> Iterator[tuple[str, str, float, str]]:
    """Room, module with the number's name, value in seconds where it is a time, and meaning."""
    room = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            room = line.partition("`engine/")[2].rstrip("`")
        elif line.startswith("| ") and not line.startswith(("| module", "|--")):
            module, name, value, meaning = (one.strip() for one in line.strip("|").split("|"))
            figure, _, unit = value.replace(",", "").partition(" ")
            yield room, f"{module}.{name.strip('`')}", float(figure) * UNITS.get(unit, 1), meaning


def known(room: str) -> dict[str, float]:
    """The numbers of a room, by module and name."""
    package = import_module(ROOMS[room])
    numbers: dict[str, float] = {}
    for one in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{ROOMS[room]}.{one.name}")
        assigned = {
            line.partition(" = ")[0]
            for line in Path(str(module.__file__)).read_text().splitlines()
            if " = " in line
        }
        for name, value in vars(module).items():
            if name.isupper() and not name.startswith("_") and name in assigned:
                if isinstance(value, timedelta):
                    numbers[f"{one.name}.{name}"] = value.total_seconds()
                elif isinstance(value, int | float) and not isinstance(value, bool):
                    numbers[f"{one.name}.{name}"] = float(value)
    return numbers


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_has_each_number_as_the_code_has_it(room: str) -> None:
    assert {name: value for where, name, value, _ in told() if where == room} == known(room)


def test_each_number_has_a_meaning() -> None:
    assert [name for _, name, _, meaning in told() if not meaning] == []
