"""Measures of a policy in a world: the figures that limits and benchmarks use."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from simulator.rivals import NativeMove, PublishedPattern
from simulator.smart_policy import SmartPolicy
from simulator.world import Policy, World
from smart_redriver.engine.config.settings import Settings

#: The default of `last_chance_seconds`.
LAST_CHANCE = timedelta(seconds=Settings().last_chance_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of the circuit. A figure is None if the circuit was never OPEN, or if it is not known.

    Attributes:
        opened: whether it ever was OPEN.
        opened_after_minutes: from the world's beginning to when it first was.
        redriven_before_open: letters sent back before that.
        closed_after_minutes: from when the world was calm to when the circuit was first CLOSED; None if it never was
            again.
        final_state: at the end.

    """

    opened: bool
    opened_after_minutes: float | None = None
    redriven_before_open: int | None = None
    closed_after_minutes: float | None = None
    final_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCost:
    """What redriving cost producers' own messages: what happened to them beyond the same world without it.

    Attributes:
        sent: messages that producers sent while letters were at the consumer.
        died: those that died in the source queue while letters were at the consumer, or within its visibility timeout
            after that.
        died_after_recovery: those of `died` that died when the world was calm.
        wait_p99_seconds: from send to done, for messages that were sent while letters were at the consumer and did not
            die.

    """

    sent: int
    died: int
    died_after_recovery: int
    wait_p99_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One run, counted in messages unless said otherwise.

    Attributes:
        deliveries: to consumers.
        wasted: deliveries to a consumer that was down, or of messages that needed a downstream that was down.
        wasted_on_letters: those of what was a dead letter from the start. Live messages fail whatever a policy does.
        stripped: deliveries without the attributes that the producer gave the message.
        parked_rightly, parked_wrongly: poison pills and good letters in the parking lot at the end.
        at_large: dead letters and poison pills neither done nor parked at the end.
        lost: in no queue and not done.
        repeated: done more than once.
        drained_after_minutes: from when the world was calm until every good letter was done and every poison pill was
            parked; None if that never happened. A good letter in the parking lot waits for a person.
        good_drained_after_minutes: the same for the good letters alone.
        poison_parked_after_minutes: the same for the poison pills alone.
        redriven_in_outage: letters sent back while a consumer or a downstream was down; None if SQS moves them in its
            own time.
        falls: how often a consumer fell over because it got more than it can handle.
        parked_early: good letters that reached the parking lot sooner than `LAST_CHANCE` after they first died.
        live: the cost to producers' messages; None if no one asked.
        circuit: None for a policy without one.

    """

    deliveries: int
    wasted: int
    wasted_on_letters: int
    stripped: int
    parked_rightly: int
    parked_wrongly: int
    at_large: int
    lost: int
    repeated: int
    drained_after_minutes: float | None
    good_drained_after_minutes: float | None
    poison_parked_after_minutes: float | None
    redriven_in_outage: int | None
    circuit: Course | None
    falls: int = 0
    parked_early: int = 0
    live: LiveCost | None = None


def measure(
    world: World, policy: Policy, calm_at: timedelta, untouched: World | None = None
) -> Measures:
    """Measure a world in which a policy has been at work, and that was well from `calm_at` on.

    `untouched` is the same world, run as long without redriving.
    """
    world.spoil()
    parked, seen = set(world.parked()), world.deliveries
    concerned = world.letters | world.poison
    settled = world.settled_at()
    done = seen.done_at
    when = {body: (settled if body in world.poison else done).get(body) for body in concerned}
    return Measures(
        deliveries=seen.total,
        wasted=seen.wasted,
        wasted_on_letters=seen.wasted_on_letters,
        stripped=seen.stripped,
        parked_rightly=len(parked & world.poison),
        parked_wrongly=len(parked - world.poison),
        at_large=len(concerned - settled.keys()),
        lost=len(world.lost()),
        repeated=sum(count > 1 for count in seen.done.values()),
        drained_after_minutes=_minutes_until_last(when.values(), calm_at),
        good_drained_after_minutes=_minutes_until_last(
            (when[body] for body in concerned - world.poison), calm_at
        ),
        poison_parked_after_minutes=_minutes_until_last(
            (when[body] for body in world.poison), calm_at
        ),
        redriven_in_outage=None if isinstance(policy, NativeMove) else _redriven_in_outage(world),
        circuit=course(policy, world, calm_at),
        falls=world.falls,
        parked_early=sum(
            settled[body] < seen.died_at.get(body, timedelta()) + LAST_CHANCE
            for body in parked - world.poison
        ),
        live=None if untouched is None else live_cost(world, untouched, calm_at),
    )


def live_cost(world: World, untouched: World, calm_at: timedelta) -> LiveCost:
    """Return the cost of redriving to producers' messages, compared with the same world without redriving."""
    busy = _Busy(world)
    died, would_have_died = (
        [
            at
            for body, at in one.deliveries.died_at.items()
            if body in world.register.sent_at and at in busy
        ]
        for one in (world, untouched)
    )
    return LiveCost(
        sent=sum(at in busy for at in world.register.sent_at.values()),
        died=len(died) - len(would_have_died),
        died_after_recovery=sum(at >= calm_at for at in died)
        - sum(at >= calm_at for at in would_have_died),
        wait_p99_seconds=_p99(world, busy) - _p99(untouched, busy),
    )


class _Busy:
    """The times at which letters were at the consumer, or had been within its visibility timeout."""

    def __init__(self, world: World) -> None:
        self._tried_at = world.deliveries.letters_at
        self._lasts = timedelta(seconds=world.conditions.visibility_timeout)

    def __contains__(self, at: timedelta) -> bool:
        before = bisect_right(self._tried_at, at)
        return before > 0 and at <= self._tried_at[before - 1] + self._lasts


def _p99(world: World, busy: _Busy) -> float:
    """The p99 wait, in seconds from send to done, of producers' messages.

    Only messages that were sent while letters were at the consumer and that never died: deaths are counted apart.
    """
    done, died = world.deliveries.done_at, world.deliveries.died_at
    waits = sorted(
        (done[body] - sent).total_seconds()
        for body, sent in world.register.sent_at.items()
        if sent in busy and body in done and body not in died
    )
    return waits[min(len(waits) - 1, int(0.99 * len(waits)))] if waits else 0.0


def course(policy: Policy, world: World, calm_at: timedelta = timedelta()) -> Course | None:
    """Return the course of the policy's circuit, if it has one."""
    if isinstance(policy, PublishedPattern):
        return Course(opened=policy.was_ever_open, final_state=policy.state)
    if not isinstance(policy, SmartPolicy):
        return None
    state = policy.circuit.state.value if policy.circuit else "CLOSED"
    opened_at = next((at for at, seen in policy.states if seen == "OPEN"), None)
    closed_at = next((at for at, seen in policy.states if seen == "CLOSED" and at >= calm_at), None)
    closed_after = None if closed_at is None else (closed_at - calm_at) / timedelta(minutes=1)
    if opened_at is None:
        return Course(
            opened=policy.was_ever_open, closed_after_minutes=closed_after, final_state=state
        )
    return Course(
        opened=True,
        opened_after_minutes=opened_at / timedelta(minutes=1),
        redriven_before_open=sum(count for at, count in world.redrives if at < opened_at),
        closed_after_minutes=closed_after,
        final_state=state,
    )


def _minutes_until_last(times: Iterable[timedelta | None], calm_at: timedelta) -> float | None:
    """Minutes from `calm_at` to the last of these times; None if one of them never came."""
    known = list(times)
    if None in known:
        return None
    last = max((time for time in known if time is not None), default=timedelta())
    return max(timedelta(), last - calm_at) / timedelta(minutes=1)


def _redriven_in_outage(world: World) -> int:
    return sum(count for at, count in world.redrives if world.is_out(at))
