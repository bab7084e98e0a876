"""A source queue, its producers and its consumer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from simulator.consumers import Consumer

#: Sixths of a message are no exact floats: a sum within this of a whole message counts as one.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTraffic:
    """Messages that producers send meanwhile.

    Attributes:
        per_minute: messages a minute, evenly spread. They succeed when the consumer is up.
        poison_per_minute: poison pills a minute among them.
        poison_until: when the poison stops; the live messages go on.

    """

    per_minute: float = 0.0
    poison_per_minute: float = 0.0
    poison_until: timedelta = timedelta.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source queue by its name."""

    name: str
    consumer: Consumer = field(default_factory=Consumer)
    traffic: LiveTraffic = field(default_factory=LiveTraffic)


class Producers:
    """Counts the messages that are due by now. Fractions are carried over until they make a whole one."""

    def __init__(self, traffic: LiveTraffic) -> None:
        self._traffic = traffic
        self._owed = 0.0
        self._poison_owed = 0.0

    def due(self, elapsed: timedelta, step: timedelta) -> tuple[int, int]:
        """Live messages and poison pills to send in this step."""
        minutes = step / timedelta(minutes=1)
        self._owed += self._traffic.per_minute * minutes
        if elapsed < self._traffic.poison_until:
            self._poison_owed += self._traffic.poison_per_minute * minutes
        due = int(self._owed + ROUNDING), int(self._poison_owed + ROUNDING)
        self._owed -= due[0]
        self._poison_owed -= due[1]
        return due
