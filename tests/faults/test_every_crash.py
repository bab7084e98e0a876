"""A pass dies before or after any one of its AWS calls, and the next ones carry on.

Exhaustive: every kind of pass, every call that it makes, both sides of the call.
"""

from collections.abc import Callable, Iterator

import pytest

from fakes.faults import Script, at, die_after, die_before
from tests.faults.cases import Cases
from tests.faults.scenes import (
    ONE_CALL,
    SCENES,
    Scene,
    a_batch_of_which_its_consumer_reports,
    letters_to_park,
    letters_without_room_for_a_trail,
    parked_letters_to_renew,
)

Build = Callable[[], Scene]


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


@pytest.mark.parametrize("build", SCENES, ids=lambda build: build.__name__)
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


@pytest.mark.parametrize(
    "build",
    [
        a_batch_of_which_its_consumer_reports,
        letters_to_park,
        letters_without_room_for_a_trail,
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
