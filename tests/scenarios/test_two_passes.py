"""Row 10: two passes at once, a schedule that fires twice, a pass repeated: no letter is redriven twice by them.

The second pass starts in the middle of the first, just before each one of its calls and once after the last, each
time in a fresh world. The first may hold the lease by then or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import pytest

from fakes.faults import Wire, at, meanwhile
from simulator.consumers import Consumer, down_until
from simulator.scenarios import HEALTHY
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, PARKING_LOT, SOURCE, World, hours
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.report import Outcome, Report

LETTERS, POISON = 20, 6
#: More calls than a pass over so few letters makes.
MORE_THAN_ENOUGH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A world just before a pass."""

    world: World
    policy: SmartPolicy

    def run_pass(self, owner: str = "first", wire: Wire | None = None) -> Report:
        """That pass."""
        wire = wire or Wire()
        return self.policy.run_pass(
            wire.to(self.world.sqs),
            wire.to(self.world.dynamodb),
            cloudwatch=wire.to(self.world.cloudwatch),
            owner=owner,
        )

    def overlap(self, before_call: int) -> Report | None:
        """That pass, and the report of one in the middle of it; None if it made fewer calls."""
        second: list[Report] = []
        script = at({before_call: meanwhile(lambda: second.append(self.run_pass("second")))})
        self.run_pass("first", Wire(script))
        return second[0] if second else None

    def copies(self) -> Counter[str]:
        """How many copies of each message are anywhere, or are done."""
        at_rest = Counter(
            message.body
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for message in self.world.sqs.inspect.messages(queue)
        )
        return at_rest + self.world.deliveries.done


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of pass: the first in a world of which `is_it` holds."""

    name: str
    consumer: Consumer
    is_it: Callable[[Report], bool]
    poison: int = 0
    settings: Settings = Settings()

    def moment(self) -> Moment:
        """A fresh world just before it."""
        moment = self._new()
        moment.world.run(moment.policy, until=time_of(self))
        return moment

    def rehearse(self) -> timedelta:
        """When it is."""
        moment = self._new()
        moment.world.run(moment.policy, until=hours(2))
        passes = zip(moment.policy.times, moment.policy.reports, strict=True)
        return next(at for at, report in passes if self.is_it(report))

    def _new(self) -> Moment:
        world = World(seed=0, consumer=self.consumer)
        world.dead_letters(LETTERS, poison=self.poison)
        return Moment(world=world, policy=SmartPolicy(world, self.settings))


@cache
def time_of(kind: Kind) -> timedelta:
    return kind.rehearse()


DOWN = Consumer(health=down_until(hours(2)))
KINDS = [
    Kind(name="first-visit", consumer=Consumer(), is_it=lambda report: True),
    Kind(name="failed-batch", consumer=DOWN, is_it=lambda report: report.returned > 0),
    Kind(name="canary", consumer=DOWN, is_it=lambda r: r.circuit_after == "HALF_OPEN"),
    Kind(
        name="parking",
        consumer=Consumer(),
        is_it=lambda report: report.parked.total() > 0,
        poison=POISON,
        # Else nothing is parked before six hours, and where only suspects are left, not with every strike.
        settings=Settings(max_attempts=1, last_chance_seconds=0),
    ),
]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def sent_since(before: Counter[str], policy: SmartPolicy) -> Counter[str]:
    """How often each letter was redriven since."""
    return policy.redriven_by_id - before


@EVERY_KIND
def test_a_pass_in_the_middle_of_another_redrives_none_of_its_letters(kind: Kind) -> None:
    alone = kind.moment().run_pass()
    seconds: set[Outcome] = set()
    for before_call in range(MORE_THAN_ENOUGH):
        moment = kind.moment()
        before = moment.policy.redriven_by_id.copy()

        second = moment.overlap(before_call)

        sent = sent_since(before, moment.policy)
        assert set(sent.values()) <= {1}, f"overlapping at call {before_call}"
        assert sent.total() <= alone.redriven, f"overlapping at call {before_call}"
        assert set(moment.copies().values()) == {1}, f"overlapping at call {before_call}"
        if second is None:
            break
        seconds.add(second.outcome)
    assert Outcome.LEASE_HELD in seconds
    assert 10 < before_call < MORE_THAN_ENOUGH - 1


@EVERY_KIND
@pytest.mark.parametrize("seconds_later", [0, 1, 29, 31, 59, 61])
def test_a_pass_repeated_redrives_none_of_its_letters_again(kind: Kind, seconds_later: int) -> None:
    """0: a schedule that fires twice. The consumer does not come into it: no letter can be back yet."""
    moment = kind.moment()
    before = moment.policy.redriven_by_id.copy()

    moment.run_pass("first")
    moment.world.clock.advance(seconds_later)
    moment.run_pass("second")

    assert set(sent_since(before, moment.policy).values()) <= {1}
    assert set(moment.copies().values()) == {1}


def test_a_schedule_that_always_fires_twice_does_every_letter_once() -> None:
    world = HEALTHY.world(0)
    policy = SmartPolicy(world)

    class Twice:
        every = policy.every

        def tick(self) -> None:
            policy.tick()
            policy.tick()

    HEALTHY.play(world, Twice())

    assert world.deliveries.done == Counter(dict.fromkeys(world.letters, 1))
    assert set(policy.redriven_by_id.values()) == {1}
