"""A pass over FIFO queues dies, or is refused, at any of its calls: order, and every letter, are kept.

The whole story is played for each, from the backlog to its end:
what went wrong may show only when a letter's copy comes back hours later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest
from botocore.exceptions import EndpointConnectionError

from fakes.faults import (
    Call,
    Crash,
    Script,
    Wire,
    at,
    die_after,
    lose_answer,
    nothing,
)
from simulator.conditions import Conditions
from simulator.consumers import Consumer, down_until
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, TABLE, World, hours, minutes
from smart_redriver.engine.config.settings import Settings
from tests.faults.cases import Cases

LOST = EndpointConnectionError(endpoint_url="https://aws.invalid")
WINDOW = timedelta(minutes=5)
#: A letter has its last chance soon, and is given up soon where nobody is left to compare it with: stories are short.
SOON = Settings(last_chance_seconds=900, max_attempts=2, give_up_seconds=14_400)
RECOVERY = minutes(12)
LETTERS, GROUPS, POISON = 8, 3, 1


class Struck(SmartPolicy):
    """Our policy, over a bad wire in some of its passes, which are numbered from 0."""

    def __init__(self, world: World, scripts: Mapping[int, Script]) -> None:
        super().__init__(world, SOON)
        self.calls: list[list[Call]] = []
        self._scripts = scripts
        self._aws = world

    def tick(self) -> None:
        wire = Wire(self._scripts.get(len(self.calls), nothing))
        self.calls.append(wire.calls)
        try:
            self.run_pass(
                wire.to(self._aws.sqs),
                wire.to(self._aws.dynamodb),
                cloudwatch=wire.to(self._aws.cloudwatch),
                owner=f"invocation-{len(self.calls)}",
            )
        except Crash:
            return


def story(scripts: Mapping[int, Script]) -> tuple[World, Struck]:
    """A small backlog of a consumer that is down at first, with a poison pill in it, played to its end."""
    world = World(
        seed=5,
        consumer=Consumer(health=down_until(RECOVERY)),
        conditions=Conditions(fifo=True, groups=GROUPS),
        step=timedelta(seconds=30),
    )
    world.dead_letters(LETTERS, poison=POISON)
    policy = Struck(world, scripts)
    world.run(policy, until=hours(30), stop=lambda: world.is_settled)
    return world, policy


def complaints(world: World, *, repeats_allowed: int = 0) -> list[str]:
    done = Counter(world.deliveries.done)
    told = [
        ("left in the DLQ", world.bodies(DLQ)),
        ("lost", sorted(world.lost())),
        ("wrongly parked", sorted(set(world.parked()) - world.poison)),
        ("overtaken", world.order.overtakings(world.letters)),
        ("tried before its turn", world.order.tried_past(world.letters)),
        ("repeated within the window", world.order.repeats(WINDOW)),
        ("repeated", sum((done - Counter(set(done))).values()) > repeats_allowed),
    ]
    return [f"{what}: {seen}" for what, seen in told if seen]


def telling_passes() -> list[int]:
    """One pass of each kind: the first, the first of every state and step that a kept letter goes through."""
    world, policy = story({})
    assert not complaints(world)
    assert len(world.parked()) == POISON
    kinds: dict[str, int] = {}
    for number, calls in enumerate(policy.calls):
        kinds.setdefault(" ".join(dict.fromkeys(call.operation for call in calls)), number)
    return sorted(kinds.values())


#: What changes something; that an answer to anything else is lost says nothing new.
WRITES = frozenset(
    {
        "SendMessageBatch",
        "DeleteMessageBatch",
        "ChangeMessageVisibilityBatch",
        "BatchWriteItem",
        "PutItem",
    }
)


def strikes() -> Iterator[tuple[str, dict[int, Script]]]:
    """Each mishap at each call of each telling pass. To die before a call leaves the world as to die after the one
    before.
    """
    _, reference = story({})
    for number in telling_passes():
        for call in reference.calls[number]:
            yield f"pass {number}, after {call}", {number: at({call.number: die_after})}
            if call.operation in WRITES:
                lost = at({call.number: lose_answer(LOST)})
                yield f"pass {number}, answer lost of {call}", {number: lost}


@pytest.mark.enumeration
def test_wherever_a_pass_is_struck_order_is_kept_and_nothing_is_lost(cases: Cases) -> None:
    for where, scripts in strikes():
        world, _ = story(scripts)

        cases.add("FIFO: crash points and faults", where, complaints(world, repeats_allowed=GROUPS))

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("at_minute", range(1, 7))
def test_a_table_that_is_lost_while_letters_are_out_loses_none_of_them(at_minute: int) -> None:
    """What SQS swallows within five minutes was sent by what a ledger knew: another one's sends have other ids."""
    world = World(
        seed=5,
        consumer=Consumer(health=down_until(RECOVERY)),
        conditions=Conditions(fifo=True, groups=GROUPS, visibility_timeout=5, max_receive_count=1),
        step=timedelta(seconds=30),
    )
    world.dead_letters(LETTERS)

    def lose_the_table() -> None:
        for item in world.dynamodb.scan(TableName=TABLE)["Items"]:
            world.dynamodb.delete_item(TableName=TABLE, Key={"PK": item["PK"]})

    world.later(minutes(at_minute), lose_the_table)
    world.run(Struck(world, {}), until=hours(30), stop=lambda: world.is_settled)

    assert world.lost() == set()
    assert world.bodies(DLQ) == []
    assert set(world.deliveries.done) == world.letters
