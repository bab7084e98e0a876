"""Facts about a queue, as SQS reports them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from smart_redriver.engine.config.targets import is_fifo

#: Messages of a queue that may be in flight, hidden ones included. Beyond that a long poll is empty, without an error.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MOST_IN_FLIGHT = 120_000
#: At most this many are hidden for later: the rest of the limit is for letters in hand, and for late counts.
MOST_HIDDEN = MOST_IN_FLIGHT // 2
#: With this many in flight, the limit may be the cause of an empty answer.
MANY_IN_FLIGHT = MOST_IN_FLIGHT * 5 // 6


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """The answer of GetQueueAttributes for one queue. Counts are about a minute old.

    `dying`: producers' messages that came to the DLQ within seconds; None if counts are older than that.
    """

    arn: str
    visible: int
    in_flight: int
    delayed: int
    visibility_timeout: timedelta
    retention: timedelta
    max_message_size: int
    max_receive_count: int | None = None
    dying: int | None = None
    dead_letter_arn: str | None = None

    @property
    def is_fifo(self) -> bool:
        """Whether it keeps messages of a group in order; a FIFO queue's name says so."""
        return is_fifo(self.arn)

    @property
    def depth(self) -> int:
        """The number of all messages in the queue."""
        return self.visible + self.hidden

    @property
    def hidden(self) -> int:
        """The number of messages that can't be received for now: in hand, or delayed like a renewed letter."""
        return self.in_flight + self.delayed

    @property
    def room_to_hide(self) -> int:
        """The number of letters that may still be hidden for later."""
        return max(0, MOST_HIDDEN - self.in_flight)

    @property
    def can_seem_empty(self) -> bool:
        """Whether an empty answer may hide that there are letters."""
        return self.in_flight >= MANY_IN_FLIGHT
