"""The past of one queue: per minute for CloudWatch, per second for stale counts."""

from bisect import bisect_right
from collections import defaultdict, deque
from typing import NamedTuple

MINUTE = 60
RECENT_SECONDS = 128  # longer than any lag of counts
ACTIVE_MINUTES = 360  # an idle, empty queue reports for 6 h [SQS Developer Guide, metrics]


class Counts(NamedTuple):
    """Messages at rest in a queue."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0

    @property
    def total(self) -> int:
        """All messages the queue holds."""
        return sum(self)


class Observation(NamedTuple):
    """The state in which a queue was left. It is true until the next observation."""

    counts: Counts
    oldest_arrived_at: float | None


class Figures(NamedTuple):
    """What SQS reports to CloudWatch about one minute of one queue; the age is in seconds, at the minute's end."""

    sent: int
    received: int
    deleted: int
    visible: int
    in_flight: int
    delayed: int
    oldest_age: int


class QueueMetrics:
    """Counters and observations of one queue, keyed by the minute since the epoch."""

    def __init__(self) -> None:
        self.sent_in: defaultdict[int, int] = defaultdict(int)
        self.received_in: defaultdict[int, int] = defaultdict(int)
        self.deleted_in: defaultdict[int, int] = defaultdict(int)
        self._minutes: list[int] = []
        self._observations: list[Observation] = []
        self._recent: deque[tuple[int, Counts]] = deque(maxlen=RECENT_SECONDS)
        self._figures: dict[int, Figures | None] = {}

    def sent(self, at: float) -> None:
        """Count one SendMessage entry. As on AWS, native moves to a DLQ are not counted."""
        self.sent_in[int(at) // MINUTE] += 1

    def received(self, at: float) -> None:
        """Count one message handed out."""
        self.received_in[int(at) // MINUTE] += 1

    def deleted(self, at: float) -> None:
        """Count one deleted message."""
        self.deleted_in[int(at) // MINUTE] += 1

    def observe(self, at: float, counts: Counts, oldest_arrived_at: float | None) -> None:
        """Keep the last state of every minute, and of every second of the last few."""
        observation = Observation(counts, oldest_arrived_at)
        minute = int(at) // MINUTE
        if self._minutes and self._minutes[-1] >= minute:
            self._observations[-1] = observation
        else:
            self._minutes.append(minute)
            self._observations.append(observation)
        second = int(at)
        if self._recent and self._recent[-1][0] >= second:
            self._recent[-1] = (self._recent[-1][0], counts)
        else:
            self._recent.append((second, counts))

    def counts_at(self, at: float) -> Counts:
        """The counts as they were at that time, and never older than those returned before."""
        while len(self._recent) > 1 and self._recent[1][0] <= at:
            self._recent.popleft()
        return self._recent[0][1] if self._recent else Counts()

    def at_end_of(self, minute: int) -> Observation | None:
        """The observation at the end of a minute, or None while the queue was inactive."""
        position = bisect_right(self._minutes, minute) - 1
        if position < 0:
            return None
        observation = self._observations[position]
        is_idle = minute - self._minutes[position] > ACTIVE_MINUTES
        return None if is_idle and observation.counts.total == 0 else observation

    def figures_of(self, minute: int) -> Figures | None:
        """The figures of a minute that is over, and so never change; None while the queue was inactive.

        Callers that watch a queue ask for the same minutes again and again.
        """
        if minute not in self._figures:
            self._figures[minute] = self._figures_at_end_of(minute)
        return self._figures[minute]

    def _figures_at_end_of(self, minute: int) -> Figures | None:
        observation = self.at_end_of(minute)
        if observation is None:
            return None
        oldest = observation.oldest_arrived_at
        return Figures(
            self.sent_in.get(minute, 0),
            self.received_in.get(minute, 0),
            self.deleted_in.get(minute, 0),
            *observation.counts,
            0 if oldest is None else int((minute + 1) * MINUTE - oldest),
        )
