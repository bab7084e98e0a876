"""A register of a world's messages, by their bodies, and of what consumers saw of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from simulator.order import OrderRecord


@dataclass(slots=True)
class Deliveries:
    """The deliveries that the consumers saw.

    Attributes:
        total: deliveries to them.
        wasted: those of them that came while the consumer, or what the message needed besides, was down.
        wasted_on_letters: those of the wasted that were of a dead letter, and so of our making.
        stripped: those of them that had lost the attributes their producer gave them.
        tried: deliveries by body.
        done: works done by body.
        done_at: when each body's work was done first.
        died_at: when the last try failed of each producer's message that became a letter meanwhile.
        letters_at: the steps in which letters were tried.

    """

    total: int = 0
    wasted: int = 0
    wasted_on_letters: int = 0
    stripped: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    done_at: dict[str, timedelta] = field(default_factory=dict)
    died_at: dict[str, timedelta] = field(default_factory=dict)
    letters_at: list[timedelta] = field(default_factory=list)


@dataclass(slots=True)
class Register:
    """Messages by body.

    Attributes:
        sent: all of them.
        letters: those that ever were dead letters, poison pills among them.
        poison: poison pills; a message that is no longer valid is one.
        dependent: those that need the downstream.
        perishable: until when each of those is valid that are not so for ever, by the world's own time.
        sent_at: when producers sent their messages while the world ran.
        order: of those in FIFO queues, in which order they were sent, tried and done.

    """

    sent: set[str] = field(default_factory=set)
    letters: set[str] = field(default_factory=set)
    poison: set[str] = field(default_factory=set)
    dependent: set[str] = field(default_factory=set)
    perishable: dict[str, timedelta] = field(default_factory=dict)
    sent_at: dict[str, timedelta] = field(default_factory=dict)
    deliveries: Deliveries = field(default_factory=Deliveries)
    order: OrderRecord = field(default_factory=OrderRecord)


class Registered:
    """A world whose messages are in a register."""

    register: Register

    @property
    def deliveries(self) -> Deliveries:
        """The deliveries that the consumers saw."""
        return self.register.deliveries

    @property
    def sent(self) -> set[str]:
        """All messages."""
        return self.register.sent

    @property
    def letters(self) -> set[str]:
        """Messages that ever were dead letters, poison pills among them."""
        return self.register.letters

    @property
    def poison(self) -> set[str]:
        """Poison pills, dead letters or not."""
        return self.register.poison

    @property
    def order(self) -> OrderRecord:
        """In which order the messages of FIFO queues were sent, tried and done, group by group."""
        return self.register.order
