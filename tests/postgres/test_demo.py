"""The story that `make demo ARGS=postgres` plays."""

import io
import sys

from rich.console import Console

from demo import __main__ as demo
from demo import elsewhere


def test_the_story_ends_well_and_says_so():
    said = io.StringIO()

    assert elsewhere.play_on_postgres(Console(file=said, width=200))

    assert "circuit OPEN" in said.getvalue()
    assert "3 poison pills are parked" in said.getvalue()
    assert "0 lost, 0 repeated, 0 parked that were good" in said.getvalue()


def test_the_story_is_told_by_its_name(monkeypatch):
    told = []
    monkeypatch.setattr(elsewhere, "play_on_postgres", lambda console: told.append(console) or True)  # type: ignore[func-returns-value]
    monkeypatch.setattr(sys, "argv", ["demo", "postgres"])

    assert demo.main() == 0
    assert len(told) == 1
