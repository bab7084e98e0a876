"""What SQS says of queues, and what follows where several source queues share one DLQ. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


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
    def depth(self) -> int:
        """Every message in the queue."""
        return self.visible + self.in_flight + self.delayed


@dataclass(frozen=True, slots=True)
class Sources:
    """The source queues that share one DLQ, seen as the one consumer that the circuit is about.

    Where they differ the most careful figure counts: no verdict before the slowest has had its time, and none
    while any of them is backed up.
    """

    each: tuple[QueueFacts, ...]

    @property
    def arns(self) -> list[str]:
        """Their ARNs, the first one first."""
        return [one.arn for one in self.each]

    @property
    def default_arn(self) -> str:
        """The source of letters that don't say where they came from."""
        return self.each[0].arn

    @property
    def size_limits(self) -> dict[str, int]:
        """The largest message that each takes, in bytes, by its ARN."""
        return {one.arn: one.max_message_size for one in self.each}

    @property
    def backlog(self) -> int:
        """Messages that wait in any of them."""
        return sum(one.visible for one in self.each)

    @property
    def retention(self) -> timedelta:
        """The longest that any of them keeps a message."""
        return max(one.retention for one in self.each)

    def max_receive_count(self, otherwise: int) -> int:
        """The most receives before SQS moves a message to the DLQ; `otherwise` where a queue does not say."""
        return max(one.max_receive_count or otherwise for one in self.each)

    def time_to_fail(self, otherwise: int) -> timedelta:
        """The longest from a message's first receive to its move to the DLQ."""
        return max(
            one.visibility_timeout * (one.max_receive_count or otherwise) for one in self.each
        )


def queue_name(arn: str) -> str:
    """The name of the queue with this ARN."""
    return arn.rpartition(":")[2]
