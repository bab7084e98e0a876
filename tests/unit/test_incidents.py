"""An incident of the demo that does not come is told, with how things stand and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import demo.__main__ as program
from demo import incidents
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

    is_solved = program._practise(LocalAws(), "poison", Console(), keep=False)

    told = " ".join(capsys.readouterr().out.split())
    assert not is_solved
    assert "4 letters in the DLQ, 2 parked, 1 messages in the source queue" in told
    assert "Start it again" in told


class _Solved(incidents.Practice):
    """An incident that ends as soon as it is reached."""

    def reach(self) -> bool:
        return True

    def go_on(self) -> Iterator[Snapshot]:
        return iter(())


class _Deployed:
    """A stack of which nothing is asked but the time, its alarms and its file for a shell."""

    aws = SimpleNamespace(write_shell_file=lambda: Path("environment.sh"))

    def now(self) -> datetime:
        return datetime(2026, 11, 25, tzinfo=UTC)

    def ringing(self) -> dict[str, str]:
        return {}


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("payments", "outage"),
        ("outage", "poison"),
        ("poison", "overload"),
        ("overload", "payments"),
    ],
)
def test_each_incident_names_the_next(name: str, following: str) -> None:
    """Two of the four named each other."""
    assert program._next_of(name) == following


def test_without_a_terminal_it_says_that_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It sent its reader to an audit that was gone with it."""
    monkeypatch.setattr(program, "_deploy", lambda *_: _Deployed())
    monkeypatch.setattr(program, "Practice", _Solved)

    assert program._practise(LocalAws(), "poison", Console(), keep=False)

    told = " ".join(capsys.readouterr().out.split())
    assert "watches until nothing waits, and then ends it all." in told
    assert "It ends here: without a terminal nothing runs on." in told
    assert "redrive audit" not in told


class _Waiting:
    """Waits until it is interrupted, which is at once."""

    waited = 0

    def wait(self) -> None:
        _Waiting.waited += 1
        raise KeyboardInterrupt


def test_without_a_terminal_it_runs_on_if_it_is_kept_and_says_how_it_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended all the same."""
    monkeypatch.setattr(program, "_deploy", lambda *_: _Deployed())
    monkeypatch.setattr(program, "Practice", _Solved)
    monkeypatch.setattr(program, "Event", _Waiting)
    monkeypatch.setattr(_Waiting, "waited", 0)

    assert program._practise(LocalAws(), "poison", Console(), keep=True)

    told = " ".join(capsys.readouterr().out.split())
    assert f"watches until nothing waits, and runs on; `kill {os.getpid()}` ends it all." in told
    assert f"`redrive history`: it runs on until `kill {os.getpid()}`." in told
    assert _Waiting.waited == 1


def test_a_shell_whose_demo_has_ended_is_told(tmp_path: Path) -> None:
    site = Path(program.__file__).parents[1] / "emulator" / "site"
    gone = str(tmp_path / "clock")

    ran = subprocess.run(
        [sys.executable, "-c", "print('goes on')"],
        env={**os.environ, "PYTHONPATH": str(site), "LOCAL_AWS_CLOCK": gone},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == "goes on\n"
    assert ran.stderr == (
        "The demo that this shell was for has ended, and its local AWS with it: use another shell.\n"
    )


def test_mending_after_the_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    with pytest.raises(LookupError, match="that demo has ended"):
        incidents.mend()
