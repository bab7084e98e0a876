"""What SQS says of queues. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from redrive.queue_names import is_fifo


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """What GetQueueAttributes says of one queue. Counts are about a minute old."""

    arn: str
    visible: int
    in_flight: int
    delayed: int
    visibility_timeout: timedelta
    retention: timedelta
    max_message_size: int
    max_receive_count: int | None = None
    dead_letter_arn: str | None = None

    @property
    def is_fifo(self) -> bool:
        """Whether it keeps messages of a group in order; a FIFO queue's name says so."""
        return is_fifo(self.arn)

    @property
    def depth(self) -> int:
        """Every message in the queue."""
        return self.visible + self.in_flight + self.delayed
