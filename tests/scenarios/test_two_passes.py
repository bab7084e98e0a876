"""Row 10: two passes at once, a schedule that fires twice, a pass repeated: no letter is redriven twice by them.

The second pass starts in the middle of the first, just before each one of its calls, and in each case a fresh world
is used. The first may hold the lease by then or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from redrive.report import Outcome, Report
from simulator.consumers import Consumer, down_until
from simulator.faults import Wire, at, meanwhile
from simulator.scenarios import HEALTHY
from simulator.smart_policy import SmartRedriver
from simulator.world import DLQ, PARKING_LOT, SOURCE, World, hours, minutes

#: More calls than a pass over a handful of letters makes: it is then over before the second one starts.
MORE_THAN_ENOUGH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A world in which the next pass has something to redrive."""

    world: World
    policy: SmartRedriver

    def overlap(self, before_call: int) -> tuple[Report, Report | None]:
        """A pass, and one that starts and ends in the middle of it; None if the first made fewer calls."""
        second: list[Report] = []
        wire = Wire(at({before_call: meanwhile(lambda: second.append(self._pass("second")))}))
        first = self._pass("first", wire)
        return first, second[0] if second else None

    def _pass(self, owner: str, wire: Wire | None = None) -> Report:
        wire = wire or Wire()
        return self.policy.run_pass(
            wire.to(self.world.sqs), wire.to(self.world.dynamodb), owner=owner
        )


def the_first_visit() -> Moment:
    """Twenty letters that no pass has seen."""
    return moment(Consumer(), letters=20, passed=timedelta())


def returns_and_a_judgement() -> Moment:
    """The first batch is back, its verdict is due."""
    return moment(Consumer(health=down_until(hours(2))), letters=20, passed=minutes(5))


def a_canary_is_due() -> Moment:
    """The circuit is OPEN and has cooled down."""
    return moment(Consumer(health=down_until(hours(2))), letters=20, passed=minutes(20))


def poison_is_due_for_parking() -> Moment:
    """Six poison pills have their strikes, and the circuit is CLOSED."""
    return moment(Consumer(), letters=20, poison=6, passed=minutes(70))


def moment(consumer: Consumer, *, letters: int, passed: timedelta, poison: int = 0) -> Moment:
    """The world just before the pass that is due at `passed`."""
    world = World(seed=0, consumer=consumer)
    world.dead_letters(letters, poison=poison)
    policy = SmartRedriver(world)
    world.run(policy, until=passed)
    return Moment(world=world, policy=policy)


MOMENTS = pytest.mark.parametrize(
    "moment_of",
    [the_first_visit, returns_and_a_judgement, a_canary_is_due, poison_is_due_for_parking],
)


def sent_by(policy: SmartRedriver, action: Callable[[], object]) -> Counter[str]:
    """How often each letter was redriven by what `action` does."""
    before = policy.redriven_by_id.copy()
    action()
    return policy.redriven_by_id - before


def bodies(world: World) -> Counter[str]:
    """How many copies of each message are anywhere, or are done."""
    at_rest = [
        message.body
        for queue in (SOURCE, DLQ, PARKING_LOT)
        for message in world.sqs.inspect.messages(queue)
    ]
    return Counter(at_rest) + world.deliveries.done


@MOMENTS
def test_a_pass_that_starts_in_the_middle_of_another_redrives_none_of_its_letters(
    moment_of: Callable[[], Moment],
) -> None:
    overlaps = 0
    for before_call in range(MORE_THAN_ENOUGH):
        moment = moment_of()
        reports: list[Report | None] = []

        sent = sent_by(
            moment.policy, lambda now=moment, n=before_call: reports.extend(now.overlap(n))
        )

        assert set(sent.values()) <= {1}, f"overlapping at call {before_call}"
        assert set(bodies(moment.world).values()) == {1}, f"overlapping at call {before_call}"
        if reports[1] is None:
            break
        overlaps += 1
    assert 10 < overlaps < MORE_THAN_ENOUGH


@MOMENTS
def test_overlapping_passes_together_redrive_no_more_than_one_would(
    moment_of: Callable[[], Moment],
) -> None:
    alone = moment_of()
    permitted = sent_by(alone.policy, alone.policy.tick).total()

    for before_call in range(MORE_THAN_ENOUGH):
        moment = moment_of()
        sent = sent_by(moment.policy, lambda now=moment, n=before_call: now.overlap(n))

        assert sent.total() <= permitted, f"overlapping at call {before_call}"


@MOMENTS
def test_a_schedule_that_fires_twice_redrives_what_one_pass_would(
    moment_of: Callable[[], Moment],
) -> None:
    moment = moment_of()

    sent = sent_by(moment.policy, lambda: (moment.policy.tick(), moment.policy.tick()))

    assert set(sent.values()) <= {1}
    assert set(bodies(moment.world).values()) == {1}


@MOMENTS
@pytest.mark.parametrize("seconds", [1, 29, 31, 59, 61])
def test_a_pass_repeated_before_its_letters_can_return_redrives_none_of_them_again(
    moment_of: Callable[[], Moment], seconds: int
) -> None:
    moment = moment_of()

    def repeat() -> None:
        moment.policy.tick()
        moment.world.clock.advance(seconds)
        moment.policy.tick()

    sent = sent_by(moment.policy, repeat)

    assert set(sent.values()) <= {1}


def test_the_second_pass_says_that_the_lease_is_held() -> None:
    outcomes = set()
    for before_call in range(MORE_THAN_ENOUGH):
        _, second = the_first_visit().overlap(before_call)
        if second is not None:
            outcomes.add(second.outcome)

    assert Outcome.LEASE_HELD in outcomes
    assert outcomes <= {Outcome.LEASE_HELD, Outcome.DONE, Outcome.WAITING}


def test_a_schedule_that_always_fires_twice_ends_where_a_single_one_does() -> None:
    world = HEALTHY.world(0)
    policy = SmartRedriver(world)

    class Twice:
        every = policy.every

        def tick(self) -> None:
            policy.tick()
            policy.tick()

    HEALTHY.play(world, Twice())

    assert world.deliveries.done == Counter(dict.fromkeys(world.letters, 1))
    assert set(policy.redriven_by_id.values()) == {1}
