"""The order in which consumers of FIFO queues tried messages, and in which they succeeded, group by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Try:
    """One delivery to a consumer, in the world's own time. `done_at` is None if it failed, or is not over yet."""

    at: timedelta
    body: str
    done_at: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaking:
    """A message that overtook one that its producer had sent earlier to the same group."""

    group: str
    body: str
    overtaken: str


@dataclass(slots=True)
class OrderRecord:
    """Messages by their groups. Only messages of FIFO queues are recorded.

    Attributes:
        sent: bodies in the order in which producers sent them.
        tries: in the order in which consumers made them.
        died_at: when a body first came into the DLQ; zero if it died before the world began.

    """

    sent: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    tries: defaultdict[str, list[Try]] = field(default_factory=lambda: defaultdict(list))
    died_at: dict[str, timedelta] = field(default_factory=dict)

    def tried(self, group: str, body: str, at: timedelta) -> Try:
        """Note a delivery, and return it so that its end can be noted."""
        one = Try(at, body)
        self.tries[group].append(one)
        return one

    def done(self, group: str) -> list[str]:
        """Bodies in the order in which they succeeded, one for each success."""
        return [one.body for one in self.tries[group] if one.done_at is not None]

    def overtakings(self, among: Collection[str]) -> list[Overtaking]:
        """Messages `among` these that succeeded before an earlier message of their group, also among them, did.

        Only first successes count. A message that never succeeded, such as a parked poison pill, is not overtaken.
        """
        return [
            found
            for group in self.sent
            for found in self._passed(group, among, list(self._first_successes(group)))
        ]

    def tried_past(self, among: Collection[str]) -> list[Overtaking]:
        """Letters `among` these that came back from the DLQ and were tried before the first success of an earlier one.

        Stricter than `overtakings`: a try that comes too early counts even if it failed. A letter that overtakes many
        is listed with the overtaken one that succeeded last.
        """
        return [found for group in self.sent for found in self._tried_past(group, among)]

    def repeats(self, within: timedelta) -> list[str]:
        """Bodies that succeeded again sooner than `within` after a success; one for each time."""
        return [body for group in self.tries for body in self._repeats(group, within)]

    def _first_successes(self, group: str) -> Iterator[tuple[int, str]]:
        """For each first success, its position among the tries and its body."""
        seen = set()
        for position, one in enumerate(self.tries[group]):
            if one.done_at is not None and one.body not in seen:
                seen.add(one.body)
                yield position, one.body

    def _passed(
        self, group: str, among: Collection[str], successes: list[tuple[int, str]]
    ) -> Iterator[Overtaking]:
        rank = {body: rank for rank, body in enumerate(self.sent[group])}
        ahead: str | None = None
        for _, body in successes:
            if body not in among:
                continue
            if ahead is None or rank[body] > rank[ahead]:
                ahead = body
            else:
                yield Overtaking(group=group, body=ahead, overtaken=body)

    def _tried_past(self, group: str, among: Collection[str]) -> Iterator[Overtaking]:
        success = {body: at for at, body in self._first_successes(group) if body in among}
        last_before: dict[str, str] = {}  # the earlier message that was the last to succeed
        last: str | None = None
        for body in self.sent[group]:
            if last is not None:
                last_before[body] = last
            if body in success and (last is None or success[body] > success[last]):
                last = body
        for position, one in enumerate(self.tries[group]):
            earlier = last_before.get(one.body)
            if earlier is None or one.body not in among:
                continue
            came_back = one.at >= self.died_at.get(one.body, timedelta.max)
            if came_back and position < success[earlier]:
                yield Overtaking(group=group, body=one.body, overtaken=earlier)

    def _repeats(self, group: str, within: timedelta) -> Iterator[str]:
        before: dict[str, timedelta] = {}
        for one in self.tries[group]:
            if one.done_at is None:
                continue
            if one.body in before and one.done_at - before[one.body] < within:
                yield one.body
            before[one.body] = one.done_at
