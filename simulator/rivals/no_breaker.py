"""Ours without a breaker."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from simulator.rivals.letters import number, receive_all, send, source_of
from simulator.world import DLQ, PARKING_LOT, World
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.triage.admission import Pacer
from smart_redriver.engine.triage.triage import backoff


class NoBreaker:
    """Ours without a breaker: the same schedule, backoff, pace and travelling count, but every pass sends everything.

    Without verdicts there are no strikes, so only a hard cap on redrives parks a letter.
    """

    every = timedelta(minutes=5)

    COUNTER = "RedriveCount"
    #: Without outcomes, only a number of redrives can end a letter's journey: three times our strikes.
    HARD_CAP = 3 * Settings().max_attempts

    def __init__(self, world: World, seed: int = 0) -> None:
        self._world = world
        self._rng = Random(seed)
        self._settings = Settings()

    def tick(self) -> None:
        """Redrive everything."""
        pacer = Pacer(self._settings.max_rate)
        for letter in receive_all(self._world, self._world.url(DLQ)):
            redrives = number(letter, self.COUNTER)
            if redrives >= self.HARD_CAP:
                send(self._world, PARKING_LOT, letter, delay=0, counter=(self.COUNTER, redrives))
                continue
            delay = backoff(redrives, self._rng.random(), self._settings)
            slot = pacer.slot(delay, self._world.clock.now())
            if slot is None:
                return  # what is left is visible again before the next pass
            send(
                self._world,
                source_of(letter),
                letter,
                delay=int(slot.total_seconds()),
                counter=(self.COUNTER, redrives + 1),
            )
