"""A pass dies before or after any one of its AWS calls, and the next ones carry on.

Exhaustive: every kind of pass, every call that it makes, both sides of the call.
"""

from collections.abc import Callable, Iterator

import pytest
from botocore.exceptions import ClientError

from fakes.faults import Script, at, die_after, die_before, on, refuse
from simulator.world import SOURCE
from smart_redriver.engine.model.batch import Batch
from tests.faults.cases import Cases
from tests.faults.scenes import (
    BATCH,
    ONE_CALL,
    SCENES,
    Scene,
    a_batch_of_which_its_consumer_reports,
    a_full_window_that_its_consumer_is_done_with,
    letters_to_park,
    letters_without_room_for_metadata,
    more_than_a_round,
    parked_letters_to_renew,
    suspects_beside_controls,
)

Build = Callable[[], Scene]

#: `make prove` plays these: they take as long as all others together, and make no other kinds of calls.
LARGE = (more_than_a_round, suspects_beside_controls)

#: CloudWatch answers nobody.
NO_BOOKS: Script = on(
    "GetMetricData",
    refuse(ClientError({"Error": {"Code": "Throttling", "Message": "no"}}, "GetMetricData")),
)


def crashes(build: Build, *before: Script) -> Iterator[tuple[str, Script]]:
    """A crash at each side of each call that the scene's next pass makes, after passes that went as in `before`."""
    scene = build()
    for script in before:
        scene.run_pass(script)
        scene.world.clock.advance(300)
    reference, _ = scene.run_pass()
    for call in reference.calls:
        yield f"before {call}", at({call.number: die_before})
        yield f"after {call}", at({call.number: die_after})


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(build, marks=pytest.mark.enumeration if build in LARGE else ())
        for build in SCENES
    ],
    ids=lambda build: build.__name__,
)
def test_a_pass_that_dies_at_any_call_loses_nothing_and_repeats_what_it_could_not_record_at_most(
    build: Build, cases: Cases
) -> None:
    for where, crash in crashes(build):
        scene = build()

        _, report = scene.run_pass(crash)
        found = scene.complaints(repeats_allowed=scene.repeats_allowed)

        assert report is None, f"the pass survived a crash {where}"
        cases.add("crash points", where, found)

    assert not cases.wrong, str(cases)


def test_a_pass_that_dies_at_any_call_keeps_no_letter_waiting_for_what_its_consumer_has_reported(
    cases: Cases,
) -> None:
    """The lease and the reports come back after a pass's time at most; the batch itself is due in 20 minutes.

    The metrics, which might tell the same in time, can't be read. A pass that dies between announcing its own batch and
    sending it leaves one that may be out, and is waited for.
    """
    build = a_full_window_that_its_consumer_is_done_with
    for where, crash in crashes(build):
        scene = build()
        scene.run_pass(lambda call, crash=crash: crash(call) or NO_BOOKS(call))  # type: ignore[misc]
        already = redriven_of(scene)

        scene.world.clock.advance(300)
        scene.run_pass(NO_BOOKS)
        batch = scene.circuit.judged_batch(BATCH) or scene.circuit.pending_batch(BATCH)

        may_be_out = any(not one.is_complete for one in scene.circuit.pending)
        goes_on = already or redriven_of(scene) or may_be_out
        found = [] if goes_on else ["nothing redriven after five minutes"]
        if isinstance(batch, Batch) and batch.heard.ended != batch.size:
            found.append(f"heard of {batch.heard.ended} letters, not of {batch.size}")
        cases.add("crash points", where, found)

    assert not cases.wrong, str(cases)


def redriven_of(scene: Scene) -> int:
    """Letters that a producer's fresh ones have become copies of."""
    there = scene.world.sqs.inspect.messages(SOURCE)
    return sum(one.body.startswith("fresh") for one in there)


@pytest.mark.enumeration
@pytest.mark.parametrize(
    "build",
    [
        a_batch_of_which_its_consumer_reports,
        letters_to_park,
        letters_without_room_for_metadata,
        parked_letters_to_renew,
    ],
    ids=lambda build: build.__name__,
)
def test_the_pass_after_a_crash_may_die_anywhere_too(build: Build, cases: Cases) -> None:
    """To die before a call leaves the same world as to die after the one before it: one side is enough for pairs."""
    firsts = [crash for crash in crashes(build) if crash[0].startswith("after")]
    for first_where, first in firsts:
        seconds = [pair for pair in crashes(build, first) if pair[0].startswith("after")]
        for second_where, second in seconds:
            scene = build()

            scene.run_pass(first)
            scene.world.clock.advance(300)
            scene.run_pass(second)
            found = scene.complaints(repeats_allowed=2 * ONE_CALL)

            cases.add("pairs of crash points", f"{first_where}, then {second_where}", found)

    assert not cases.wrong, str(cases)
