"""The fates of all messages of a source topic, minute by minute: evidence for the consumers, and against poison.

    end of the topic       moves with messages that anybody writes
    the group's position   moves with messages that are processed
    the DLQ topic          grows by messages that failed

Messages that the group has passed, and that did not come to the DLQ topic, have succeeded. Positions are read before
the DLQ topic, so that a group that writes there before it commits never looks better than it is. If letters may come
after the commit, no metrics are reported.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import attrgetter

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.queue_metrics import PERIOD, Minute, QueueMetrics, minute_of
from smart_redriver.engine.model.rate import LIVE_MINUTES
from smart_redriver.kafka.engine.open_letters import OpenLetters
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log, Partition

#: How many looks to keep, one a minute: longer than a verdict ever waits.
KEPT = timedelta(hours=4)

#: How long dying messages show that the consumers have too much to do.
LATELY = timedelta(seconds=10)

#: How long the minutes before the first look are used for the number of messages that come.
LIVE_BEFORE = (LIVE_MINUTES + 2) * PERIOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One topic at one moment, in messages since its beginning.

    Attributes:
        written: messages written by anybody. `ours`: those that this process redrove.
        passed: messages that the group has processed. `succeeded`: those that did not come to the DLQ topic.
        behind: messages that the group has still to read.

    """

    at: datetime
    written: int
    ours: int
    passed: int
    succeeded: int
    behind: int

    @property
    def live(self) -> int:
        """Messages that others have written."""
        return self.written - self.ours

    @property
    def minute(self) -> datetime:
        """When its minute began."""
        return self.at.astimezone(UTC).replace(second=0, microsecond=0)


class TopicMetricsReader:
    """Looks at the source topics, as long as the process lives."""

    def __init__(
        self, log: Log, open_letters: OpenLetters, place: KafkaTopics, clock: Callable[[], datetime]
    ) -> None:
        self._log = log
        self._open_letters = open_letters
        self._place = place
        self._clock = clock
        self._ours = dict.fromkeys(place.topics, 0)
        self._looks: dict[str, list[Look]] = {one: [] for one in place.topics}
        #: Where the group was at the last look, or where a partition began that it has never committed.
        self._positions: dict[str, dict[Partition, int]] = {one: {} for one in place.topics}
        self._sent_before: dict[str, tuple[tuple[datetime, int], ...]] = {}
        self._deaths: dict[str, deque[tuple[datetime, int]]] = {
            one: deque() for one in place.topics
        }
        self._failure: CallFailed | None = None

    def dying(self, topic: str) -> int:
        """Others' messages of a topic that have come to the DLQ topic within the last seconds."""
        deaths, now = self._deaths[topic], self._clock()
        if not self._open_letters.has_read_all:
            deaths.clear()  # records read later are not new
            return 0
        deaths.append((now, self._open_letters.arrived_live[topic]))
        while deaths[0][0] < now - LATELY:
            deaths.popleft()
        return deaths[-1][1] - deaths[0][1]

    def sent(self, topic: str, count: int) -> None:
        """Note how many messages were redriven to a topic."""
        self._ours[topic] += count

    def look(self) -> None:
        """See how far the group is. Raises nothing: a failure is reported to callers of `since`."""
        if self._place.commits_first:
            return
        try:
            self._look()
            self._failure = None
        except CallFailed as failed:
            self._failure = failed

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:
        """The minutes that are over; none if there were only redriven messages. Raises CallFailed.

        Before the first look, only the number of sent messages is known, and no outcomes.
        """
        if self._failure is not None:
            raise self._failure
        known = self._looks.get(queue_name, [])
        first = start.astimezone(UTC).replace(second=0, microsecond=0)
        looks = known[bisect_left(known, first, key=attrgetter("at")) :]
        has_live = bool(looks) and (looks[-1].live > looks[0].live or looks[0].behind > 0)
        before = tuple(
            one for one in self._sent_before.get(queue_name, ()) if one[0] >= now - LIVE_BEFORE
        )
        return QueueMetrics(tuple(_minutes(looks)) if has_live else (), sent_before=before)

    def _look(self) -> None:
        committed = {
            one: self._log.committed(self._place.consumer_group, one) for one in self._place.topics
        }
        has_read_all = self._open_letters.look()
        now = self._clock()
        for topic, positions in committed.items():
            if not has_read_all:
                self._looks[topic].clear()  # failures are no longer known
                self._positions[topic] = {}
                continue
            bounds = self._log.bounds(topic)
            if self._move(topic, positions, bounds):
                self._looks[topic].clear()  # successes are no longer known
            if topic not in self._sent_before:
                self._sent_before[topic] = self._sent_lately(topic, now)
            written = sum(end for _, end in bounds.values())
            self._add(topic, now, written=written, passed=sum(self._positions[topic].values()))

    def _move(
        self,
        topic: str,
        committed: Mapping[Partition, int],
        bounds: Mapping[Partition, tuple[int, int]],
    ) -> bool:
        """Note the group's positions in a topic. Returns whether it was set back, to process messages again."""
        before = self._positions[topic]
        after = {
            one: committed.get(one, before.get(one, first)) for one, (first, _) in bounds.items()
        }
        self._positions[topic] = after
        return any(at < before.get(one, at) for one, at in after.items())

    def _sent_lately(self, topic: str, now: datetime) -> tuple[tuple[datetime, int], ...]:
        """Return the number of messages written in each of the minutes before; none if the log can't tell."""
        first = minute_of(now)
        minutes = [first - n * PERIOD for n in range(LIVE_MINUTES, -1, -1)]
        try:
            written = [self._log.written_by(topic, one) for one in minutes]
        except CallFailed:
            return ()
        return tuple(
            (at, max(0, after - before))
            for at, (before, after) in zip(minutes[:-1], pairwise(written), strict=True)
        )

    def _add(self, topic: str, now: datetime, *, written: int, passed: int) -> None:
        looks = self._looks[topic]
        if looks and written < looks[-1].written:
            looks.clear()  # a topic that was made anew
        succeeded = passed - self._open_letters.arrived[topic]
        look = Look(
            at=now,
            written=written,
            ours=self._ours[topic],
            passed=passed,
            # A failure that the group has not passed yet is balanced when it is passed.
            succeeded=max(succeeded, looks[-1].succeeded) if looks else succeeded,
            behind=max(0, written - passed),
        )
        if len(looks) > 1 and looks[-1].minute == looks[-2].minute:
            looks.pop()
        looks.append(look)
        while looks[0].at < now - KEPT:
            looks.pop(0)


def _minutes(looks: Sequence[Look]) -> Iterator[Minute]:
    """Yield each minute that is over. Changes between two looks count for the first look's minute."""
    told: dict[datetime, Minute] = {}
    for before, after in pairwise(looks):
        at = before.minute
        known = told.get(at, Minute(at=at))
        told[at] = Minute(
            at=at,
            sent=known.sent + after.written - before.written,
            received=known.received + max(0, after.passed - before.passed),
            deleted=known.deleted + after.succeeded - before.succeeded,
            visible=after.behind,
            in_flight=0,
            delayed=0,
        )
        while (at := at + PERIOD) < after.minute:
            told[at] = Minute(at=at, visible=after.behind, in_flight=0, delayed=0)
    if looks:
        last = looks[-1].minute
        yield from (one for at, one in sorted(told.items()) if at < last)
