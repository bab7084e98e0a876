"""What a policy achieved in a world: the figures that the benchmark compares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from simulator.scenarios import Scenario
from simulator.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One run, counted in messages unless said otherwise.

    Attributes:
        deliveries: to the consumer.
        wasted: deliveries to a consumer that was down.
        stripped: deliveries without the attributes that the producer gave the message.
        parked_rightly, parked_wrongly: poison pills and good letters in the parking lot at the end.
        at_large: dead letters and poison pills neither done nor parked at the end.
        lost: in no queue and not done.
        repeated: done more than once.
        drained_after_minutes: from when the world was calm until every good letter was done and every poison pill
            parked; None when that never was so. With a good letter in the parking lot it waits for a person.

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


def measure(world: World, scenario: Scenario) -> Measures:
    """The figures of a world in which a policy has played the scenario."""
    parked = set(world.parked())
    settled_at = world.settled_at()
    concerned = world.letters | world.poison
    at_large = concerned - settled_at.keys()
    drained_after = None
    if not at_large and not parked - world.poison:
        last = max(settled_at[body] for body in concerned)
        drained_after = max(timedelta(), last - scenario.calm_at) / timedelta(minutes=1)
    return Measures(
        deliveries=world.deliveries.total,
        wasted=world.deliveries.wasted,
        stripped=world.deliveries.stripped,
        parked_rightly=len(parked & world.poison),
        parked_wrongly=len(parked - world.poison),
        at_large=len(at_large),
        lost=len(world.lost()),
        repeated=sum(count > 1 for count in world.deliveries.done.values()),
        drained_after_minutes=drained_after,
    )
