"""Consumers as models: what becomes of one delivery at one moment.

A model answers whether a delivery succeeds. The world polls, deletes what succeeded and leaves the rest to its
visibility timeout, as Lambda's event source mapping does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

#: Whether the consumer is up, by the time since the world began.
Health = Callable[[timedelta], bool]


def healthy(_: timedelta) -> bool:
    """Always up."""
    return True


def never(_: timedelta) -> bool:
    """Always down."""
    return False


def down_until(recovery: timedelta) -> Health:
    """Down from the start, up from `recovery` on."""
    return lambda elapsed: elapsed >= recovery


def up_until(failure: timedelta) -> Health:
    """Up from the start, down from `failure` on."""
    return lambda elapsed: elapsed < failure


def flapping(up: timedelta, down: timedelta, phase: timedelta = timedelta()) -> Health:
    """Up for `up`, down for `down`, again and again; at the start `phase` of the first round is over."""
    return lambda elapsed: (elapsed + phase) % (up + down) < up


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """How the consumer of the source queue behaves.

    Attributes:
        health: when it is up; a delivery to one that is down fails and is wasted.
        failure_probability: share of deliveries that fail although it is up.
        capacity_per_second: messages it works a second; 0 for no limit.
        polls_from: it does not poll at all before this much time has passed.

    """

    health: Health = healthy
    failure_probability: float = 0.0
    capacity_per_second: float = 0.0
    polls_from: timedelta = timedelta()

    def succeeds(self, elapsed: timedelta, *, is_poison: bool, rng: Random) -> bool:
        """Whether a delivery now succeeds."""
        if is_poison or not self.health(elapsed):
            return False
        return self.failure_probability == 0 or rng.random() >= self.failure_probability
