"""A pass with several rounds under way at once keeps every promise of the pass with one."""

from collections import Counter

import pytest

from fakes.faults import Wire, at, die_after, hand_out_twice, nth, on, refuse
from redrive.core.report import Outcome
from redrive.settings import Settings
from tests.faults.cases import Cases
from tests.faults.errors import code_of, refusal
from tests.faults.scenes import EARLIER_BATCH, Scene, a_scene

WORKERS = 3
POISON = 10
LETTERS = 250

#: What each round may have sent and not yet recorded: see `redrive.passes.send_back`.
UNRECORDED_AT_MOST = 30 * WORKERS


def many_letters() -> Scene:
    """More than two rounds of letters, a few of them poison, and a window for all."""
    scene = a_scene()
    for n in range(POISON):
        scene.post_returning(f"poison-{n}", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(LETTERS - POISON)
    scene.bury()
    scene.set_circuit(window=2 * LETTERS)
    scene.redriver.workers = WORKERS
    return scene


def test_rounds_run_side_by_side_and_every_letter_goes_once() -> None:
    scene = many_letters()

    wire, report = scene.run_pass()

    assert report is not None
    assert (report.redriven, report.parked) == (LETTERS - POISON, {"MAX_ATTEMPTS": POISON})
    assert [batch.size for batch in scene.circuit.pending] == [LETTERS - POISON]
    sizes = [
        len(call.request["RequestItems"]["redriver-state"])
        for call in wire.calls
        if call.operation == "BatchWriteItem"
    ]
    assert max(sizes) == 25
    assert scene.complaints() == []


def test_a_crash_at_any_call_loses_nothing_and_repeats_nothing_that_was_recorded(
    cases: Cases,
) -> None:
    """To die before a call leaves the same world as to die after the one before it."""
    wire, _ = many_letters().run_pass()
    for call in wire.calls:
        scene = many_letters()

        _, report = scene.run_pass(at({call.number: die_after}))
        found = scene.complaints(repeats_allowed=UNRECORDED_AT_MOST)

        assert report is None
        cases.add("crash points with rounds side by side", str(call), found)
    assert not cases.wrong, str(cases)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("ReceiveMessage", "OverLimit"),
        ("BatchGetItem", "ProvisionedThroughputExceededException"),
        ("SendMessageBatch", "KmsAccessDenied"),
        ("BatchWriteItem", "AccessDeniedException"),
        ("DeleteMessageBatch", "RequestThrottled"),
    ],
)
@pytest.mark.parametrize("number", [0, 2])
def test_a_refused_call_ends_the_pass_and_no_round_goes_on_as_if_nothing_was(
    operation: str, code: str, number: int
) -> None:
    scene = many_letters()

    error = refusal(operation, code)

    _, report = scene.run_pass(nth(operation, number, refuse(error)))

    assert report is not None
    assert scene.is_told(report, operation, code_of(error))
    is_unrecorded = operation == "BatchWriteItem"
    assert scene.complaints(ledger_missed_a_write=is_unrecorded) == []


def test_a_destination_that_refuses_everything_opens_the_circuit_after_a_few_calls() -> None:
    scene = many_letters()

    wire, report = scene.run_pass(
        on(
            "SendMessageBatch",
            refuse(refusal("SendMessageBatch", "AWS.SimpleQueueService.NonExistentQueue")),
        )
    )

    assert report is not None
    assert report.outcome is Outcome.REFUSED
    sends = [call for call in wire.calls if call.operation == "SendMessageBatch"]
    assert (
        len(sends) <= 2 * WORKERS
    )  # one to the source, one to the parking lot, in each round under way
    assert report.redriven == 0
    assert scene.complaints() == []


def test_letters_that_sqs_hands_out_to_two_rounds_are_sent_once() -> None:
    wire, _ = many_letters().run_pass()
    for call in wire.calls:
        if call.operation == "ReceiveMessage":
            scene = many_letters()
            scene.run_pass(at({call.number: hand_out_twice}))
            assert scene.complaints() == []


def test_ten_thousand_letters_of_one_pass_reach_the_consumer_as_a_steady_stream() -> None:
    scene = a_scene(Settings(max_rate=100.0, base_delay_seconds=0))
    scene.world.dead_letters(10_000)
    scene.set_circuit(window=10_000)
    scene.redriver.workers = WORKERS
    wire = Wire()

    scene.redriver.pass_over(wire)

    arrivals = Counter(
        entry.get("DelaySeconds", 0)
        for call in wire.calls
        if call.operation == "SendMessageBatch"
        for entry in call.request["Entries"]
    )
    histogram = [arrivals[second] for second in range(max(arrivals) + 1)]
    print("arrivals in each second:", *histogram)  # noqa: T201 - a figure to show
    assert histogram == [100] * 100
