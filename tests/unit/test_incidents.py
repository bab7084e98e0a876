"""An incident of the demo that does not come is told, with how things stand and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from rich.console import Console

import demo.__main__ as program
from demo.stack import CircuitNow, Depths
from demo.story import Played, Snapshot
from emulator.process import LocalAws


class _Calm:
    """A stage on which nothing ever goes wrong."""

    stack = None

    def __init__(self, *_: object) -> None:
        self.played = Played()
        self.chapter = ""

    def send(self, _orders: int, **_marks: bool) -> None:
        pass

    def minutes(self, at_most: int, _orders: int) -> Iterator[Snapshot]:
        for minute in range(at_most):
            seen = Snapshot(
                chapter=self.chapter,
                at=datetime(2026, 11, 25, tzinfo=UTC),
                minutes=minute,
                is_down=False,
                sent=0,
                depths=Depths(source=1, dead_letters=4, parked=2),
                circuit=CircuitNow(),
                events=(),
            )
            self.played.snapshots.append(seen)
            yield seen


def test_an_incident_that_does_not_come_is_told_with_how_things_stand_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended with exit code 1 and without a word."""
    monkeypatch.setattr(program, "_deploy", lambda *_: None)
    monkeypatch.setattr(program, "Stage", _Calm)

    is_solved = program._practise(LocalAws(), "poison", Console())

    told = " ".join(capsys.readouterr().out.split())
    assert not is_solved
    assert "4 letters in the DLQ, 2 parked, 1 messages in the source queue" in told
    assert "Start it again" in told
