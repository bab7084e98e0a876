"""The capacity of a consumer in one step of the world: how many messages it takes, and which of them then fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from simulator.consumers import Beyond, Consumer, Scaling

#: How long a consumer that fell over is down.
FALLEN = timedelta(minutes=10)

#: The most messages in one invocation.
BATCH = 10


class Capacity:
    """A consumer's capacity over time. It draws its own random numbers, and so changes no message's lot elsewhere.

    Attributes:
        falls: when the consumer fell over.

    """

    def __init__(self, consumer: Consumer, rng: Random) -> None:
        self.falls: list[timedelta] = []
        self._per_second = consumer.capacity_per_second
        self._beyond = consumer.beyond
        self._rng = rng
        self._carried = 0.0  # a part of a message, which the next step can complete
        self._offered = 0.0  # messages a second in the step before
        self._lambda = _Concurrency(consumer.scaling) if consumer.scaling else None

    @property
    def takes_all(self) -> bool:
        """Whether it also takes messages that it can't handle."""
        return bool(self._per_second) and self._beyond is not Beyond.WAIT

    def is_fallen(self, elapsed: timedelta) -> bool:
        """Whether it fell over before then and was still down."""
        return any(fell <= elapsed < fell + FALLEN for fell in self.falls)

    def room(self, step: timedelta, waiting: int) -> float:
        """How many messages it takes in this step, if this many wait."""
        room = math.inf
        if self._per_second and not self.takes_all:
            room = self._bears(step)
        return min(room, self._lambda.room(step, waiting)) if self._lambda else room

    def overloaded(self, tries: int, elapsed: timedelta, step: timedelta) -> Sequence[bool]:
        """Which of this step's tries fail because there are too many."""
        bears, before = self._bears(step), self._offered
        self._offered = tries / step.total_seconds()
        if self._beyond is Beyond.FALL:
            if tries > bears and not self.is_fallen(elapsed):
                self.falls.append(elapsed)
            return [False] * tries  # a consumer that is down fails all of them anyway
        if self._beyond is Beyond.COLLAPSE and before > self._per_second:
            bears *= self._per_second / before
        done = min(tries, round(bears))
        fails = [False] * done + [True] * (tries - done)
        self._rng.shuffle(fails)
        return fails

    def _bears(self, step: timedelta) -> float:
        self._carried += self._per_second * step.total_seconds()
        whole = math.floor(self._carried + 1e-9)
        self._carried -= whole
        return whole


class _Concurrency:
    """Batches side by side, as Lambda's event source mapping has them."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling
        self._batches = float(scaling.at_first)

    def room(self, step: timedelta, waiting: int) -> float:
        """Messages that it takes in this step, if this many wait."""
        scaling = self._scaling
        if not waiting:
            self._batches = float(scaling.at_first)
        room = self._batches * BATCH * step.total_seconds() / scaling.batch_seconds
        if waiting > room:
            more = scaling.more_a_minute * (step / timedelta(minutes=1))
            self._batches = min(self._batches + more, scaling.limit)
        return math.floor(room)
