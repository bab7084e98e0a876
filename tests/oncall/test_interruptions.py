"""Commands die, or meet Ctrl-C, at any one of their AWS calls, and are started again; on FIFO queues as on others.

Exhaustive: every command that moves letters, every call that it makes, both sides of the call,
    death and one or two Ctrl-C.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.faults import (
    Act,
    Call,
    Mishap,
    Response,
    Script,
    at,
    die_after,
    die_before,
)
from smart_redriver.oncall.terminal.exits import Exit
from tests.faults.cases import Cases
from tests.faults.scenes import ONE_CALL
from tests.oncall.fifo_rehearsals import FIFO_REHEARSALS
from tests.oncall.rehearsals import REHEARSALS, Rehearsal

ALL_OF_THEM = (*REHEARSALS, *FIFO_REHEARSALS)

Build = Callable[[Path], Rehearsal]


def ctrl_c(times: int, *, before: bool) -> Mishap:
    """Somebody presses Ctrl-C so often while the call is made."""

    def mishap(call: Call, act: Act) -> Response:
        answer: Response = {} if before else act(**call.request)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return act(**call.request) if before else answer

    return mishap


def everywhere(
    build: Build, folder: Path, mishaps: dict[str, Mishap]
) -> Iterator[tuple[str, Script]]:
    wire, code = build(folder).run()
    assert code is Exit.DONE
    for call in wire.calls:
        for name, mishap in mishaps.items():
            yield f"{name} {call}", at({call.number: mishap})


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


@pytest.mark.enumeration
@pytest.mark.parametrize("build", ALL_OF_THEM, ids=lambda build: build.__name__)
def test_a_command_that_dies_at_any_call_loses_nothing_and_repeats_one_call_at_most(
    build: Build, cases: Cases, tmp_path: Path
) -> None:
    for where, script in everywhere(build, tmp_path, {"before": die_before, "after": die_after}):
        rehearsal = build(tmp_path)

        _, code = rehearsal.run(script)
        found = rehearsal.complaints(repeats_allowed=ONE_CALL)

        assert code is None, f"it survived a crash {where}"
        cases.add("crash points of what moves letters by hand", where, found)

    assert not cases.wrong, str(cases)


@pytest.mark.enumeration
@pytest.mark.parametrize("build", ALL_OF_THEM, ids=lambda build: build.__name__)
@pytest.mark.parametrize(
    ("times", "repeats_allowed"),
    [
        pytest.param(1, 0, id="once: it ends after the letters in hand"),
        # Whoever insists breaks off the call itself, and nobody knows whether its letters were sent.
        pytest.param(2, ONE_CALL, id="twice: it ends at once"),
    ],
)
def test_ctrl_c_at_any_call_loses_nothing(
    build: Build, times: int, repeats_allowed: int, cases: Cases, tmp_path: Path
) -> None:
    mishaps = {
        "Ctrl-C before": ctrl_c(times, before=True),
        "Ctrl-C after": ctrl_c(times, before=False),
    }
    for where, script in everywhere(build, tmp_path, mishaps):
        rehearsal = build(tmp_path)

        rehearsal.run(script)
        found = rehearsal.complaints(repeats_allowed=repeats_allowed)

        cases.add("Ctrl-C points of what moves letters by hand", where, found)

    assert not cases.wrong, str(cases)
