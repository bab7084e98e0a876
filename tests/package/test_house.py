"""The walks of docs/house.md: each file is there, is opened once, and there are no more of them than promised."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.package.imports import ROOT

PAGE = ROOT / "docs" / "house.md"
TITLE = re.compile(r"^## (?P<what>.+) \((?P<files>\d+) files, at most (?P<most>\d+)\)$")
STEP = re.compile(r"^ *(?P<number>\d+)\. `(?P<file>[^`]+)`")

Walk = tuple[int, int, list[tuple[int, str]]]


def read_walks(page: str) -> dict[str, Walk]:
    """By title: the files that it says there are, the most there may be, and the numbered files."""
    walks: dict[str, Walk] = {}
    for section in re.split(r"^(?=## )", page, flags=re.MULTILINE):
        title, *lines = section.splitlines()
        if found := TITLE.match(title):
            steps = [(int(one["number"]), one["file"]) for one in map(STEP.match, lines) if one]
            walks[found["what"]] = int(found["files"]), int(found["most"]), steps
    return walks


WALKS = read_walks(PAGE.read_text())


def test_there_are_four_walks() -> None:
    assert [most for _, most, _ in WALKS.values()] == [12, 15, 15, 15]


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_opens_files_that_are_there_each_once_and_no_more_than_it_may(walk: str) -> None:
    files, most, steps = WALKS[walk]

    assert [number for number, _ in steps] == list(range(1, files + 1))
    assert files <= most
    assert [file for _, file in steps if not (ROOT / file).is_file()] == []
    assert [file for file, times in Counter(file for _, file in steps).items() if times > 1] == []


def test_a_step_that_leads_nowhere_would_be_found() -> None:
    page = "# House\n\n## Out (2 files, at most 9)\n\n1. `app.py`: begins\n   2. `gone.py`\n"

    assert read_walks(page) == {"Out": (2, 9, [(1, "app.py"), (2, "gone.py")])}
