"""docs/numbers.csv lists the constants of the judgement as the code has them: a change of one changes the list."""

from __future__ import annotations

import csv
import pkgutil
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

LIST = Path(__file__).resolve().parents[2] / "docs" / "numbers.csv"
ROOMS = {
    "model": "smart_redriver.engine.model",
    "triage": "smart_redriver.engine.triage",
    "messages": "smart_redriver.engine.messages",
    "reports": "smart_redriver.engine.reports",
}
UNITS = {"s": 1, "min": 60, "h": 3_600, "day": 86_400, "days": 86_400}


def told() -> Iterator[tuple[str, str, float, str]]:
    """Room, module with the number's name, value in seconds where it is a time, and meaning."""
    with LIST.open(newline="") as file:
        for row in csv.DictReader(file):
            figure, _, unit = row["value"].replace(",", "").partition(" ")
            value = float(figure) * UNITS.get(unit, 1)
            yield row["room"], f"{row['module']}.{row['number']}", value, row["meaning"]


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
def test_the_list_has_each_number_as_the_code_has_it(room: str) -> None:
    assert {name: value for where, name, value, _ in told() if where == room} == known(room)


def test_each_number_has_a_meaning() -> None:
    assert [name for _, name, _, meaning in told() if not meaning] == []
