"""Two moments are called alike only where the same follows from both: what the enumerations share rests on it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from fakes.faults import Script, at, die_after, die_before, refuse
from simulator.world import DLQ, SOURCE
from smart_redriver.engine.model.circuit import State
from tests.faults.errors import answers
from tests.faults.likeness import likeness
from tests.faults.scenes import Scene, a_bit_of_everything

Change = Callable[[Scene], object]


def after(script: Script) -> Scene:
    scene = a_bit_of_everything()
    scene.run_pass(script)
    return scene


def test_a_scene_is_like_itself_built_again_and_like_itself_after_the_same_pass() -> None:
    one, same = a_bit_of_everything(), a_bit_of_everything()
    assert likeness(one) == likeness(same)
    before = likeness(one)

    for scene in (one, same):
        scene.run_pass()

    assert before != likeness(one) == likeness(same)


CHANGES: dict[str, Change] = {
    "time passes": lambda scene: scene.world.clock.advance(1),
    "a letter more": lambda scene: scene.post("one more"),
    "a letter in flight": lambda scene: scene.world.sqs.receive_message(
        QueueUrl=scene.world.url(DLQ)
    ),
    "a letter seen and released": lambda scene: scene.world.sqs.receive_message(
        QueueUrl=scene.world.url(DLQ), VisibilityTimeout=0
    ),
    "another circuit": lambda scene: scene.set_circuit(state=State.OPEN),
    "another queue attribute": lambda scene: scene.world.sqs.set_queue_attributes(
        QueueUrl=scene.world.url(SOURCE), Attributes={"VisibilityTimeout": "31"}
    ),
    "a roll of the policy": lambda scene: scene.redriver._rng.random(),
    "a roll of the world": lambda scene: scene.world.rng.random(),
    "a pass over nothing new": lambda scene: scene.run_pass(),
    "another judgement of what must come": lambda scene: scene.doomed.add("fresh-0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_can_make_a_difference_is_told_apart(change: Change) -> None:
    scene = a_bit_of_everything()

    change(scene)

    assert likeness(scene) != likeness(a_bit_of_everything())


def test_all_that_follows_from_alike_moments_is_alike() -> None:
    """Refusals under every code, and deaths at both sides: whichever come to the same moment come to the same end."""
    calls = a_bit_of_everything().run_pass()[0].calls
    scripts = [
        *(
            at({call.number: refuse(error)})
            for call in calls[::7]
            for error in answers(call.operation)
        ),
        *(at({call.number: die}) for call in calls for die in (die_before, die_after)),
    ]
    ends: dict[bytes, set[tuple[str, bytes]]] = {}

    for script in scripts:
        scene = after(script)
        moment = likeness(scene)
        heard = str(scene._play_on(repeats_allowed=0))
        ends.setdefault(moment, set()).add((heard, likeness(scene)))

    assert len(ends) < len(scripts) / 2
    assert {len(different) for different in ends.values()} == {1}


def test_what_can_t_be_read_is_refused() -> None:
    with pytest.raises(TypeError, match="alike"):
        likeness([object()])
    with pytest.raises(TypeError, match="order"):
        likeness({Thread})
