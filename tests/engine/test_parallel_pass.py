"""A pass with several rounds under way at once keeps every promise of the pass with one, whoever comes first.

Workers take turns here, and a seed draws the order (`turns`), so that a call has the same number in every repetition.
"""

import pytest

from fakes.faults import Script, Wire, at, die_after, hand_out_twice, nothing, nth, on, refuse
from smart_redriver.engine.report import Outcome, Report
from tests.engine.turns import wire_in_turns
from tests.faults.cases import Cases
from tests.faults.errors import code_of, refusal
from tests.faults.scenes import EARLIER_BATCH, UNRECORDED, Scene, a_scene

WORKERS = 3
POISON = 10
LETTERS = 250
SEEDS = range(3)

every_seed = pytest.mark.parametrize("seed", SEEDS)


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
    scene.repeats_allowed = UNRECORDED * WORKERS
    return scene


class Stage:
    """Where scenes are played with the workers in turns; the schedule that follows has its own threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def run_pass(
        self, scene: Scene, seed: int, script: Script = nothing
    ) -> tuple[Wire, Report | None]:
        with self._monkeypatch.context() as patched:
            wire = wire_in_turns(patched, seed, script)
            report = scene.redriver.pass_over(wire)
        scene.redriver.workers = 1
        return wire, report


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_the_same_seed_gives_the_same_pass_and_another_one_another(stage: Stage) -> None:
    def calls(seed: int) -> list[str]:
        return [str(call) for call in stage.run_pass(many_letters(), seed)[0].calls]

    assert calls(0) == calls(0)
    assert calls(0) != calls(1)


@every_seed
def test_rounds_run_side_by_side_and_every_letter_goes_once(stage: Stage, seed: int) -> None:
    scene = many_letters()

    wire, report = stage.run_pass(scene, seed)

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


@pytest.mark.enumeration
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_crash_at_any_call_loses_nothing_and_repeats_nothing_that_was_recorded(
    stage: Stage, seed: int, cases: Cases
) -> None:
    """To die before a call leaves the same world as to die after the one before it."""
    wire, _ = stage.run_pass(many_letters(), seed)
    for call in wire.calls:
        scene = many_letters()

        _, report = stage.run_pass(scene, seed, at({call.number: die_after}))
        found = scene.complaints(repeats_allowed=scene.repeats_allowed)

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
@every_seed
def test_a_refused_call_is_told_and_no_round_goes_on_as_if_nothing_was(
    stage: Stage, operation: str, code: str, number: int, seed: int
) -> None:
    scene = many_letters()
    error = refusal(operation, code)

    _, report = stage.run_pass(scene, seed, nth(operation, number, refuse(error)))

    assert report is not None
    assert scene.is_told(report, operation, code_of(error))
    is_unrecorded = operation == "BatchWriteItem"
    assert scene.complaints(ledger_missed_a_write=is_unrecorded) == []


@every_seed
def test_a_destination_that_refuses_everything_is_asked_a_few_times_and_counts_as_a_failure(
    stage: Stage, seed: int
) -> None:
    scene = many_letters()
    gone = refusal("SendMessageBatch", "QueueDoesNotExist")

    wire, report = stage.run_pass(scene, seed, on("SendMessageBatch", refuse(gone)))

    assert report is not None
    assert (report.outcome, report.redriven) == (Outcome.REFUSED, 0)
    assert scene.circuit.failure_count == 1
    sends = [call for call in wire.calls if call.operation == "SendMessageBatch"]
    # One to the source and one to the parking lot, in each round under way.
    assert len(sends) <= 2 * WORKERS
    assert scene.complaints() == []


@every_seed
def test_letters_that_sqs_hands_out_to_two_rounds_are_sent_once(
    stage: Stage, seed: int, cases: Cases
) -> None:
    wire, _ = stage.run_pass(many_letters(), seed)
    for call in wire.calls:
        if call.operation == "ReceiveMessage":
            scene = many_letters()
            stage.run_pass(scene, seed, at({call.number: hand_out_twice}))
            cases.add("faults with rounds side by side", str(call), scene.complaints())
    assert not cases.wrong, str(cases)
