"""The list in docs/privileges.csv, which says what each granted action is for."""

import csv

from tests.infrastructure.app_process import ROOT


def documented() -> dict[tuple[str, str], list[str]]:
    """The promises that fail, by what is missing: action and resource."""
    with (ROOT / "docs" / "privileges.csv").open(newline="") as file:
        place, action, promises = next(rows := csv.reader(file))
        assert (place, action, promises) == ("on", "without", "these promises fail")
        return {(action, place): promises.split("; ") for place, action, promises in rows}
