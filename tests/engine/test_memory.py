"""A DLQ full of the largest letters that SQS takes does not take a pass beyond its function's memory."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from fakes.faults import Wire
from simulator.world import DLQ
from smart_redriver.engine.aws import clients
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.passes.read import COPIES, LETTERS_A_RECEIVE, ROUND_BYTES, bytes_in_hand
from smart_redriver.engine.report import Report
from tests.engine.heavy import BODY_BYTES, HeavySqs
from tests.faults.scenes import Scene, a_scene

#: More than the memory of the function could hold, were every letter kept to the end.
LETTERS = 500

#: What a round that stops receiving at `ROUND_BYTES` may have taken by then: the last answer was on its way.
OVERSHOOT = LETTERS_A_RECEIVE * BODY_BYTES
SMALLEST = ROUND_BYTES + OVERSHOOT


def heavy_letters(memory_mib: int, **circuit: Any) -> Scene:
    scene = a_scene(replace(Settings(), memory_mib=memory_mib))
    scene.world.dead_letters(LETTERS)
    scene.set_circuit(**{"window": LETTERS} | circuit)
    scene.redriver.workers = clients.WORKERS
    return scene


def run_pass(scene: Scene) -> tuple[HeavySqs, Report]:
    wire = Wire()  # it keeps every request, so that the heavy ones must not come to it
    world, sqs = scene.world, HeavySqs(wire.to(scene.world.sqs))
    cloudwatch = wire.to(world.cloudwatch)
    return sqs, scene.redriver.run_pass(sqs, wire.to(world.dynamodb), cloudwatch=cloudwatch)


@pytest.mark.parametrize("memory_mib", [128, 512, 2_048])
def test_letters_in_hand_fit_into_the_memory_whoever_comes_first(memory_mib: int) -> None:
    scene = heavy_letters(memory_mib)

    sqs, report = run_pass(scene)

    assert (report.redriven, scene.world.depth(DLQ), sqs.in_hand) == (LETTERS, 0, 0)
    assert BODY_BYTES < sqs.most_in_hand <= max(bytes_in_hand(memory_mib), SMALLEST)


def test_more_memory_is_used_for_more_rounds_side_by_side() -> None:
    assert bytes_in_hand(512) >= 2 * SMALLEST


@pytest.mark.parametrize(
    "circuit",
    [{}, {"state": State.OPEN, "consecutive_opens": 9}, {"window": 5}],
    ids=["redriven", "swept", "released"],
)
def test_a_pass_keeps_no_letter_that_it_is_done_with(circuit: dict[str, object]) -> None:
    """Python's own count of bytes, which sees what lists and caches hold on to."""
    scene = heavy_letters(512, **circuit)
    tracemalloc.start()

    sqs, _ = run_pass(scene)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sqs.received * BODY_BYTES > COPIES * bytes_in_hand(512)
    assert peak <= COPIES * bytes_in_hand(512)
