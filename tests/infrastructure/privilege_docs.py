"""The table of docs/security.md that says what each granted action is for."""

import re

from tests.infrastructure.app_process import ROOT

DOCS = (ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(r"^\| ([\w -]+) \| `(\w+:\w+)` \| ([\d, -]+) \|$", re.MULTILINE)


def documented() -> dict[tuple[str, str], list[int]]:
    """The numbers of the promises that fail, by what is missing: action and resource."""
    return {(action, place): _numbers(said) for place, action, said in _ROW.findall(DOCS)}


def _numbers(said: str) -> list[int]:
    """The numbers of a list such as `1-7, 9`."""
    spans = (one.partition("-") for one in said.split(","))
    return [n for first, _, last in spans for n in range(int(first), int(last or first) + 1)]
