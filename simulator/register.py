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
        total: all deliveries to them.
        wasted: deliveries while the consumer, or what else the message needed, was down.
        wasted_on_letters: wasted deliveries of dead letters: those that redriving caused.
        stripped: deliveries that had lost the attributes that the producer gave the message.
        tried: deliveries by body.
        done: how often the work was done, by body.
        done_at: when each body's work was first done.
        died_at: for each producer's message that became a letter meanwhile, when its last try failed.
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
        letters: those that ever were dead letters, including poison pills.
        poison: poison pills; a message that is no longer valid is one.
        dependent: those that need the downstream.
        perishable: those that do not stay valid for ever, and until when each is valid, by the world's own time.
        sent_at: when producers sent their messages while the world ran.
        order: for messages in FIFO queues, in which order they were sent, tried and done.

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
        """Messages that ever were dead letters, including poison pills."""
        return self.register.letters

    @property
    def poison(self) -> set[str]:
        """Poison pills, dead letters or not."""
        return self.register.poison

    @property
    def order(self) -> OrderRecord:
        """In which order the messages of FIFO queues were sent, tried and done, group by group."""
        return self.register.order
