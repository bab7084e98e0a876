"""The table of docs/security.md that says what each granted action is for."""

import re

from tests.infrastructure.app_process import ROOT

DOCS = (ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(r"^\| ([\w -]+) \| `(\w+:\w+)` \| ([\d, ]+) \|$", re.MULTILINE)


def documented() -> dict[tuple[str, str], list[int]]:
    """The numbers of the promises that fail, by what is missing: action and resource."""
    return {
        (action, place): [int(number) for number in numbers.split(",")]
        for place, action, numbers in _ROW.findall(DOCS)
    }
