"""Consumers as models: what happens to one delivery at one moment.

A model answers questions, and the world's worker (`worker.py`) polls, deletes and backs off accordingly. Messages that
it does not delete are left to their visibility timeout, as by Lambda's event source mapping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from random import Random

#: Whether something is up, by the time since the world began.
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


def down_between(failure: timedelta, recovery: timedelta) -> Health:
    """Up, but down from `failure` until `recovery`."""
    return lambda elapsed: not failure <= elapsed < recovery


def flapping(up: timedelta, down: timedelta, phase: timedelta = timedelta()) -> Health:
    """Up for `up`, down for `down`, again and again. The world starts at `phase` within the first round."""
    return lambda elapsed: (elapsed + phase) % (up + down) < up


def well_from(recovery: timedelta, before: Health) -> Health:
    """As `before` says, and up from `recovery` on."""
    return lambda elapsed: elapsed >= recovery or before(elapsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Downstream:
    """Something that the consumer needs for some of the messages: a payment provider, or one of several databases.

    The world's seed draws which messages need it, and that stays the same for each of them.

    Attributes:
        health: when it is up; while it is down, a delivery of a message that needs it fails, and is wasted.
        share: of the letters, from 0 to 1.
        live_share: of the messages that producers send meanwhile.

    """

    health: Health
    share: float
    live_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """The consumer turns a redriven letter into new messages on its own queue, with the letter's attributes.

    Attributes:
        parts: messages per letter; 1 is a copy. Parts are not split again.
        poison: how many of the parts are poison pills.

    """

    parts: int
    poison: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """The consumer has the kit: it reports its outcomes, one batch of messages at a time. Shares are from 0 to 1.

    Attributes:
        permanent: it recognises poison pills, and parks each at its first try.
        lost, twice: shares of the reports that never arrive, and that arrive twice.
        late: share of the arriving copies that arrive only `late_by` after they were made, drawn for each copy.
        garbage: share of the reports that come with a message that is no report, is half of one, or is about nothing
            here.
        unparked: share of the pills that the parking lot refuses: they fail, and are reported as permanent.

    """

    permanent: bool = False
    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    late_by: timedelta = timedelta(hours=3)
    garbage: float = 0.0
    unparked: float = 0.0


class Beyond(str, Enum):
    """What happens when a consumer gets more messages a second than it can handle.

    WAIT: the messages beyond its capacity wait in the queue.
    FAIL: it takes all of them, and the tries beyond its capacity fail.
    COLLAPSE: it takes all of them, and finishes capacity^2 / the offered load of the step before; the rest fail.
    FALL: it is down for ten minutes.
    """

    WAIT = "wait"
    FAIL = "fail"
    COLLAPSE = "collapse"
    FALL = "fall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How Lambda's event source mapping scales: by batches that run concurrently.

    Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings" (standard mode).

    Attributes:
        batch_seconds: how long a batch of ten takes.
        at_first: concurrent batches when messages appear on a quiet queue.
        more_a_minute: batches added per minute while messages wait.
        limit: the most concurrent batches.

    """

    batch_seconds: float = 1.0
    at_first: int = 5
    more_a_minute: float = 300.0
    limit: int = 1_250


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Some messages are worth nothing once they are old: from then on they always fail.

    Attributes:
        lasts: how long a message is valid after the producer sent it.
        share: of the messages, from 0 to 1.

    """

    lasts: timedelta
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """How the consumer of a source queue behaves.

    Attributes:
        health: when it is up; a delivery while it is down fails and is wasted.
        downstream: what else some of the messages need.
        failure_probability: share of deliveries that fail although it is up.
        fails_until: when chance failures end.
        capacity_per_second: messages that it can process a second; 0 for no limit.
        beyond: what happens when it gets more than that.
        scaling: how it scales; None if it is always as large as it can be.
        validity: which messages are worth nothing once they are old; None for none.
        says_alike: its reports name the same cause, whatever a message failed of.
        polls: when it polls at all; while it is switched off, it sees nothing and fails nothing.
        backoff_seconds: how long it hides a message after a failed delivery (`ChangeMessageVisibility`); 0 to leave it
            to its visibility timeout.
        deletes: how often it deletes a message that is done: twice if a Lambda function deletes it, and then its event
            source mapping.
        processing_seconds: how long after it received a message it deletes it.
        whole_batches: one failed message fails all ten that were taken with it, as at a Lambda function whose event
            source mapping does not report the failed ones.
        splits: what it turns a redriven letter into; None if the letter is just done.
        reports: what it reports to the re-driver; None if it has no kit.

    """

    health: Health = healthy
    downstream: Downstream | None = None
    failure_probability: float = 0.0
    fails_until: timedelta = timedelta.max
    capacity_per_second: float = 0.0
    beyond: Beyond = Beyond.WAIT
    scaling: Scaling | None = None
    validity: Validity | None = None
    says_alike: bool = False
    polls: Health = healthy
    backoff_seconds: int = 0
    deletes: int = 1
    processing_seconds: int = 0
    whole_batches: bool = False
    splits: Splitting | None = None
    reports: Reports | None = None

    def serves(self, elapsed: timedelta, *, needs_downstream: bool = True) -> bool:
        """Whether it is up, and so is its downstream if the message needs that."""
        if not self.health(elapsed):
            return False
        return not (
            needs_downstream and self.downstream is not None and not self.downstream.health(elapsed)
        )

    def stumbles(self, elapsed: timedelta, rng: Random) -> bool:
        """Whether a delivery fails by chance."""
        if self.failure_probability == 0 or elapsed >= self.fails_until:
            return False
        return rng.random() < self.failure_probability
