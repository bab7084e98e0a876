"""Any one AWS call is refused, lost or repeated: nothing else is, and the report and the log name it."""

from collections.abc import Callable, Iterator

import pytest

from fakes.faults import (
    Call,
    Mishap,
    Script,
    ask_twice,
    at,
    from_call,
    hand_out_twice,
    lose_answer,
    nth,
    on,
    refuse,
)
from smart_redriver.engine.errors import CONTENT_FAULTS
from smart_redriver.engine.report import Outcome
from tests.faults.cases import Cases
from tests.faults.errors import UNANSWERED, UNREACHED, answers, code_of, refusal
from tests.faults.scenes import (
    ONE_CALL,
    SCENES,
    Scene,
    a_batch_of_which_its_consumer_reports,
    a_bit_of_everything,
    a_failed_batch,
    letters_near_expiry_in_an_outage,
    more_than_a_round,
    parked_letters_to_renew,
)

Build = Callable[[], Scene]

#: Together these make every call that a pass can make, for every purpose that it has.
EVERY_CALL = (
    a_bit_of_everything,
    a_batch_of_which_its_consumer_reports,
    a_failed_batch,
    letters_near_expiry_in_an_outage,
    parked_letters_to_renew,
)

#: What a pass does after all is done: it may fail, and the work stays done.
LAST_CALLS = ("ChangeMessageVisibilityBatch", "DeleteItem")

#: The large one makes the calls of the others, only more of them. `make test` has an answer lost to each kind of call,
#: `make prove` to those of all scenes.
SMALL_SCENES = [
    pytest.param(build, marks=() if build in EVERY_CALL else pytest.mark.enumeration)
    for build in SCENES
    if build is not more_than_a_round
]

every_scene = pytest.mark.parametrize("build", SCENES, ids=lambda build: build.__name__)


def calls_of(build: Build) -> list[Call]:
    """The calls that the scene's pass makes when nothing goes wrong."""
    wire, _ = build().run_pass()
    return wire.calls


def complaints_after(
    build: Build, script: Script, call: Call, code: str | None, *, repeats_allowed: int = 0
) -> list[str]:
    """What is wrong in the end, and whether the pass that met the fault told of it as `code`."""
    scene = build()
    _, report = scene.run_pass(script)
    assert report is not None
    is_told = code is None or scene.is_told(report, call.operation, code)
    # What the answer would have told, or the ledger was not told, nobody can know.
    is_unknown = call.operation == "BatchWriteItem" or repeats_allowed > 0
    found = scene.complaints(repeats_allowed=repeats_allowed, ledger_missed_a_write=is_unknown)
    return found if is_told else [*found, f"not told: {dict(report.faults)}, {report.outcome}"]


def test_the_chosen_scenes_make_every_call_that_any_scene_makes() -> None:
    chosen = {call.operation for build in EVERY_CALL for call in calls_of(build)}

    assert chosen == {call.operation for build in SCENES for call in calls_of(build)}


@pytest.mark.enumeration
@pytest.mark.parametrize("build", EVERY_CALL, ids=lambda build: build.__name__)
def test_any_error_that_aws_documents_is_told_and_does_no_harm(build: Build, cases: Cases) -> None:
    for call in calls_of(build):
        for error in answers(call.operation):
            code = code_of(error)
            if is_send_of_one(call) and code in CONTENT_FAULTS:
                continue  # the letter's own fault, for which it is parked: see test_partial_failures
            is_lost_race = code == "ConditionalCheckFailedException"

            found = complaints_after(
                build, at({call.number: refuse(error)}), call, None if is_lost_race else code
            )

            cases.add("faults", f"{call}: {code}", found)

    assert not cases.wrong, str(cases)


def is_send_of_one(call: Call) -> bool:
    return call.operation == "SendMessageBatch" and len(call.request["Entries"]) == 1


def lost_on_the_way(call: Call) -> Iterator[tuple[str, Mishap, str | None]]:
    """How one call can go wrong on the network, and as what that is told."""
    for error in UNREACHED:
        yield f"{code_of(error)} before AWS acted", refuse(error), code_of(error)
    for error in UNANSWERED:
        yield f"{code_of(error)} after AWS acted", lose_answer(error), code_of(error)
    yield "asked again by botocore after AWS had acted", ask_twice, None


@pytest.mark.parametrize("build", SMALL_SCENES, ids=lambda build: build.__name__)
def test_an_answer_that_is_lost_repeats_one_call_at_most(build: Build, cases: Cases) -> None:
    for call in calls_of(build):
        repeats_allowed = ONE_CALL if call.operation == "SendMessageBatch" else 0
        for what, mishap, code in lost_on_the_way(call):
            found = complaints_after(
                build, at({call.number: mishap}), call, code, repeats_allowed=repeats_allowed
            )

            cases.add("faults", f"{call}: {what}", found)

    assert not cases.wrong, str(cases)


@pytest.mark.enumeration
@every_scene
def test_an_outage_that_begins_at_any_call_repeats_one_call_at_most(
    build: Build, cases: Cases
) -> None:
    """Credentials that expire, or a network that goes: from one call on nothing works."""
    for call in calls_of(build):
        scene = build()

        _, report = scene.run_pass(
            from_call(call.number, refuse(refusal(call.operation, "ExpiredToken")))
        )
        assert report is not None
        found = scene.complaints(repeats_allowed=scene.repeats_allowed, ledger_missed_a_write=True)

        if not scene.is_told(report, call.operation, "ExpiredToken"):
            found.append(f"not told: {dict(report.faults)}")
        if call.operation not in LAST_CALLS and report.outcome is Outcome.DONE:
            found.append("reported as done")
        cases.add("faults", str(call), found)

    assert not cases.wrong, str(cases)


@every_scene
def test_letters_that_sqs_hands_out_twice_are_sent_once(build: Build, cases: Cases) -> None:
    for call in calls_of(build):
        if call.operation == "ReceiveMessage":
            found = complaints_after(build, at({call.number: hand_out_twice}), call, None)

            cases.add("faults", str(call), found)

    assert not cases.wrong, str(cases)


def test_a_letter_near_expiry_that_aws_failed_for_a_moment_is_renewed_by_the_next_pass() -> None:
    scene = letters_near_expiry_in_an_outage()

    scene.run_pass(on("SendMessageBatch", refuse(refusal("SendMessageBatch", "RequestThrottled"))))
    scene.world.clock.advance(300)
    _, report = scene.run_pass()

    assert report is not None
    assert report.circuit_before == "OPEN"
    assert (report.renewed, report.parked) == (1, {})


def test_a_call_that_fails_while_letters_are_put_back_after_another_failure_is_told_too() -> None:
    """The second receive of a round has no answer, and the letters of the first can't be made visible."""
    denied = refuse(refusal("ChangeMessageVisibilityBatch", "AccessDenied"))
    no_second_receive = nth("ReceiveMessage", 1, refuse(refusal("ReceiveMessage", "Throttling")))
    scene = more_than_a_round()

    _, report = scene.run_pass(
        lambda call: denied if call.operation == LAST_CALLS[0] else no_second_receive(call)
    )

    assert report is not None
    assert report.faults["ReceiveMessage:Throttling"] == 1
    assert report.faults["ChangeMessageVisibilityBatch:AccessDenied"] == 10
    assert not scene.complaints()
