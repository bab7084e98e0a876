"""Each scene is what its name says: a pass over it does that, and all ends well. What the enumerations rest on."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from smart_redriver.engine.report import Report
from tests.faults.scenes import SCENES, Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Shows:
    """What the pass over a scene does."""

    redriven: int = 0
    parked: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    discarded: int = 0
    renewed: int = 0
    states: tuple[str, ...] = ("CLOSED",)


SHOWN = {
    "fresh_letters": Shows(redriven=12),
    "a_good_batch_and_its_returns": Shows(redriven=3, held={"CONTROL": 1}, verdicts=("SUCCESS",)),
    "a_failed_batch": Shows(redriven=1, held={"NO_PERMIT": 2}, verdicts=("FAILURE",)),
    "a_batch_awaiting_its_verdict": Shows(),
    "the_first_canary": Shows(redriven=1, held={"NO_PERMIT": 2}, states=("OPEN", "HALF_OPEN")),
    "a_canary_out": Shows(states=("HALF_OPEN",)),
    "the_next_canary": Shows(
        redriven=1, held={"NO_PERMIT": 2}, verdicts=("SUCCESS",), states=("HALF_OPEN",)
    ),
    "a_canary_that_came_back": Shows(
        held={"NO_PERMIT": 2}, verdicts=("FAILURE",), states=("HALF_OPEN", "OPEN")
    ),
    "letters_to_park": Shows(
        redriven=1,
        parked={"MAX_ATTEMPTS": 1, "GAVE_UP": 1, "UNKNOWN_SOURCE": 1, "UNDELIVERABLE": 1},
    ),
    "letters_to_hold": Shows(held={"AWAITING_VERDICT": 1, "BACKOFF": 1, "CONTROL": 3}),
    "suspects_waiting_for_their_last_chance": Shows(redriven=1, held={"LAST_CHANCE": 3}),
    "suspects_beside_controls": Shows(redriven=19, held={"CONTROL": 17}),
    "letters_without_room_for_metadata": Shows(
        redriven=2, parked={"MAX_ATTEMPTS": 1}, verdicts=("SUCCESS",)
    ),
    "a_strangers_copy": Shows(redriven=2, held={"CONTROL": 1}, verdicts=("SUCCESS",)),
    "copies_left_behind": Shows(held={"NO_PERMIT": 2}, discarded=3),
    "letters_near_expiry_in_an_outage": Shows(renewed=1, states=("OPEN",)),
    "letters_near_expiry_while_letters_flow": Shows(redriven=1, renewed=3),
    "parked_letters_to_renew": Shows(redriven=1, renewed=2),
    "more_than_a_round": Shows(redriven=120, parked={"MAX_ATTEMPTS": 12}),
    "a_batch_of_which_its_consumer_reports": Shows(
        redriven=2, held={"CONTROL": 1}, verdicts=("SUCCESS",)
    ),
    "a_full_window_that_its_consumer_is_done_with": Shows(redriven=12, verdicts=("SUCCESS",)),
    "letters_of_a_held_cause": Shows(
        redriven=1, held={"CAUSE": 4, "CONTROL": 1}, verdicts=("SUCCESS",)
    ),
    "a_letter_that_its_consumer_claims_to_have_parked": Shows(redriven=1, verdicts=("SUCCESS",)),
}

#: What a scene's rules of judgement decide is held there, and not here.
JUDGED_ELSEWHERE = {"two_sources_of_one_dlq", "a_bit_of_everything"}


def shown(report: Report) -> Shows:
    (circuit,) = report.circuits
    return Shows(
        redriven=report.redriven,
        parked=dict(report.parked),
        held=dict(report.held),
        verdicts=tuple(one["verdict"] for one in report.verdicts),
        discarded=report.discarded,
        renewed=report.renewed,
        states=tuple(circuit["states"]),
    )


@pytest.mark.parametrize("build", SCENES, ids=lambda build: build.__name__)
def test_a_good_pass_over_a_scene_ends_well(build: Callable[[], Scene]) -> None:
    scene = build()

    _, report = scene.run_pass()

    assert report is not None
    assert report.faults == {}
    assert scene.complaints() == []


@pytest.mark.parametrize(
    "build",
    [build for build in SCENES if build.__name__ not in JUDGED_ELSEWHERE],
    ids=lambda build: build.__name__,
)
def test_a_scene_shows_what_its_name_says(build: Callable[[], Scene]) -> None:
    _, report = build().run_pass()

    assert report is not None
    assert shown(report) == SHOWN[build.__name__]


def test_each_source_of_a_shared_dlq_is_judged_by_its_own_letters() -> None:
    build = next(one for one in SCENES if one.__name__ == "two_sources_of_one_dlq")

    _, report = build().run_pass()

    assert report is not None
    verdicts = {one["queue"]: one["verdict"] for one in report.verdicts}
    assert verdicts == {"orders": "SUCCESS", "refunds": "FAILURE"}
    assert {one["queue"]: one["after"] for one in report.circuits} == {
        "orders": "CLOSED",
        "refunds": "OPEN",
    }
