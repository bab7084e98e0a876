"""A function with the DLQ as its event source."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from simulator.rivals.letters import number, receive_all, send, source_of
from simulator.world import DLQ, PARKING_LOT, World


class EventSource:
    """A function with the DLQ as its event source, which sends each letter back at once with a growing delay.

    It works as aws-samples/amazon-sqs-dlq-replay-backoff describes it, with the defaults of its template: a message
    attribute counts the attempts, the n-th delay is uniform between 0 and 2 x 2^n seconds, and after three attempts the
    function fails, so that SQS moves the letter to the DLQ's own DLQ. Here that is the parking lot.
    https://github.com/aws-samples/amazon-sqs-dlq-replay-backoff
    """

    every = timedelta(seconds=10)

    COUNTER = "sqs-dlq-replay-nb"
    MAX_ATTEMPTS = 3
    BACKOFF_RATE = 2
    #: How often the function may fail on a letter before SQS gives the letter up.
    MAX_RECEIVE_COUNT = 3

    def __init__(self, world: World, seed: int = 0) -> None:
        self._world = world
        self._rng = Random(seed)
        self._dlq = world.url(DLQ)
        world.let_dead_letters_end_in(PARKING_LOT, of=DLQ, after=self.MAX_RECEIVE_COUNT)

    def tick(self) -> None:
        """Do what the event source mapping does: take everything, and delete what the function did not fail on."""
        for letter in receive_all(self._world, self._dlq):
            attempt = number(letter, self.COUNTER) + 1
            if attempt > self.MAX_ATTEMPTS:
                continue  # the function fails: the letter stays
            send(
                self._world,
                source_of(letter),
                letter,
                delay=int(self._rng.uniform(0, self.BACKOFF_RATE * 2**attempt)),
                counter=(self.COUNTER, attempt),
            )
