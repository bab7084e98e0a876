"""A witness of what consumers report in a world: it hears each report as it is sent, whoever reads it afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from fakes.sqs import Event
from simulator.world import OUTCOMES, World
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, parse_outcomes


@dataclass(slots=True)
class Reported:
    """The bodies sent to the outcome queue, and when."""

    world: World
    bodies: list[str] = field(default_factory=list)
    times: list[timedelta] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world.sqs.inspect.subscribe(self._hear)

    @property
    def batches(self) -> list[tuple[DeliveryOutcome, ...]]:
        """The outcomes of each report; every report can be read."""
        parsed = [parse_outcomes(body) for body in self.bodies]
        assert [one.faults for one in parsed if one.faults] == []
        return [one.outcomes for one in parsed]

    @property
    def outcomes(self) -> list[DeliveryOutcome]:
        """All of them, in order."""
        return [outcome for batch in self.batches for outcome in batch]

    def _hear(self, event: Event) -> None:
        if event.kind == "sent" and event.queue_name == OUTCOMES:
            self.bodies.append(event.message.body)
            self.times.append(self.world.elapsed)
