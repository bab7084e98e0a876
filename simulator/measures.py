"""What a policy achieved in a world: the figures that limits and benchmarks are about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from simulator.rivals import NativeMove, PublishedPattern
from simulator.smart_policy import SmartPolicy
from simulator.world import Policy, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What became of the circuit; None where a figure has no meaning because it was never OPEN, or is not known.

    Attributes:
        opened: whether it ever was OPEN.
        opened_after_minutes: since the world began, when it first was.
        redriven_before_open: letters sent back before that.
        final_state: at the end.

    """

    opened: bool
    opened_after_minutes: float | None = None
    redriven_before_open: int | None = None
    final_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One run, counted in messages unless said otherwise.

    Attributes:
        deliveries: to consumers.
        wasted: deliveries to a consumer that was down, or of messages that needed a downstream that was.
        stripped: deliveries without the attributes that the producer gave the message.
        parked_rightly, parked_wrongly: poison pills and good letters in the parking lot at the end.
        at_large: dead letters and poison pills neither done nor parked at the end.
        lost: in no queue and not done.
        repeated: done more than once.
        drained_after_minutes: from when the world was calm until every good letter was done and every poison pill
            parked; None when that never was so. With a good letter in the parking lot it waits for a person.
        good_drained_after_minutes: the same, of the good letters alone.
        poison_parked_after_minutes: the same, of the poison pills alone.
        redriven_in_outage: letters sent back while a consumer or a downstream was down; None where SQS moves them in
            its own time.
        circuit: None for a policy without one.

    """

    deliveries: int
    wasted: int
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


def measure(world: World, policy: Policy, calm_at: timedelta) -> Measures:
    """The figures of a world in which a policy has been at work, and that was well from `calm_at` on."""
    parked, seen = set(world.parked()), world.deliveries
    concerned = world.letters | world.poison
    settled = world.settled_at()
    done = seen.done_at
    when = {body: (settled if body in world.poison else done).get(body) for body in concerned}
    return Measures(
        deliveries=seen.total,
        wasted=seen.wasted,
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
        circuit=course(policy, world),
    )


def course(policy: Policy, world: World) -> Course | None:
    """What became of the policy's circuit, if it has one."""
    if isinstance(policy, PublishedPattern):
        return Course(opened=policy.was_ever_open, final_state=policy.state)
    if not isinstance(policy, SmartPolicy):
        return None
    state = policy.circuit.state.value if policy.circuit else "CLOSED"
    opened_at = next((at for at, seen in policy.states if seen == "OPEN"), None)
    if opened_at is None:
        return Course(opened=policy.was_ever_open, final_state=state)
    return Course(
        opened=True,
        opened_after_minutes=opened_at / timedelta(minutes=1),
        redriven_before_open=sum(count for at, count in world.redrives if at < opened_at),
        final_state=state,
    )


def _minutes_until_last(times: Iterable[timedelta | None], calm_at: timedelta) -> float | None:
    """Minutes from `calm_at` to the last of these times; None when one of them never came."""
    known = list(times)
    if None in known:
        return None
    last = max((time for time in known if time is not None), default=timedelta())
    return max(timedelta(), last - calm_at) / timedelta(minutes=1)


def _redriven_in_outage(world: World) -> int:
    return sum(count for at, count in world.redrives if world.is_out(at))
