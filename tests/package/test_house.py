"""docs/house.md: each room of the product is on the map, and each file that the page names is there."""

from __future__ import annotations

import re

from tests.package.imports import ROOT

PAGE = (ROOT / "docs" / "house.md").read_text()
MAP = PAGE.split("```")[1]
#: Rooms that have rooms of their own on the map.
HOUSES = (
    "smart_redriver",
    "smart_redriver/engine",
    "smart_redriver/oncall",
    "smart_redriver/postgres",
)


def test_every_room_is_on_the_map() -> None:
    rooms = {
        path.name for house in HOUSES for path in (ROOT / house).iterdir() if any(path.glob("*.py"))
    }

    assert {one for one in rooms if not re.search(rf"\b{one}/", MAP)} == set()


def test_every_room_of_the_map_is_there() -> None:
    named = set(re.findall(r"\b(\w+)/", MAP)) - {"redrive", "adr"}
    there = {path.name for path in ROOT.iterdir()}
    there |= {path.name for house in HOUSES for path in (ROOT / house).iterdir()}

    assert named - there == set()


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:app|lambdas|smart_redriver|stacks|tests)\b[\w/.]*)`", PAGE))

    assert len(named) > 10
    assert {one for one in named if not (ROOT / one).exists()} == set()
