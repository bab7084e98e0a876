"""Events minute by minute in a world that was played."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.world import DLQ, SOURCE, World

SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """By minute since the world began: deliveries to the consumer, and letters in the DLQ at its end."""

    deliveries: list[int]
    dlq_depth: list[int]


def timeline(world: World) -> Timeline:
    """The world's past."""
    first = int(world.started.timestamp()) // SECONDS
    minutes = range(first, first + int(world.elapsed.total_seconds()) // SECONDS + 1)
    source, dlq = (world.sqs.inspect.metrics(queue) for queue in (SOURCE, DLQ))
    assert source is not None
    assert dlq is not None
    at_ends = [dlq.at_end_of(minute) for minute in minutes]
    return Timeline(
        deliveries=[source.received_in.get(minute, 0) for minute in minutes],
        dlq_depth=[seen.counts.total if seen else 0 for seen in at_ends],
    )
