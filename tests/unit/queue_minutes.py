"""Metrics of a source queue, written minute by minute: what a consumer did with what was sent to it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Self

from smart_redriver.engine.model.batch import Batch, Judged
from smart_redriver.engine.model.evidence import Evidence, gather_evidence
from smart_redriver.engine.model.queue_metrics import PERIOD, Minute, QueueMetrics
from tests.unit.examples import NOW, a_batch, ago

#: A minute before the ordinary batch, which was sent ten minutes ago.
BEGIN = ago(minutes=11)

#: Receives of one message before SQS moves it to the DLQ.
MAX_RECEIVES = 3


class MinuteKeeper:
    """Keeps a queue's metrics as SQS would: every minute with its counters, and its gauges as they stand at its end.

    It begins with `present` messages that were there before. All that is said of a minute is in messages.
    """

    def __init__(self, first: datetime, present: int = 0) -> None:
        self._next = first
        self._held = present
        self._minutes: list[Minute] = []
        self._enter(visible=present)

    def minute(
        self, *, sent: int = 0, tries: int = 0, deleted: int = 0, moved: int = 0, in_flight: int = 0
    ) -> Self:
        """One minute more: `tries` were received without a delete, `moved` went to the DLQ after their last."""
        self._held += sent - deleted - moved
        assert self._held >= in_flight >= 0, "more left the queue than was in it"
        return self._enter(
            sent=sent,
            received=deleted + tries,
            deleted=deleted,
            visible=self._held - in_flight,
            in_flight=in_flight,
        )

    def quiet(self, minutes: int) -> Self:
        """Minutes in which nothing happens."""
        for _ in range(minutes):
            self.minute()
        return self

    def until(self, instant: datetime) -> Self:
        """Quiet minutes up to an instant."""
        return self.quiet(max(0, (instant - self._next) // PERIOD))

    @property
    def metrics(self) -> QueueMetrics:
        return QueueMetrics(tuple(self._minutes))

    def _enter(self, **counted: int) -> Self:
        self._minutes.append(Minute(at=self._next, **counted))
        self._next += PERIOD
        return self


def a_minute(minutes_ago: int, **changes: Any) -> Minute:
    """A minute that began so long ago, in which nothing was there and nothing happened."""
    usual: dict[str, Any] = {"visible": 0, "in_flight": 0, "delayed": 0}
    return Minute(at=NOW - timedelta(minutes=minutes_ago), **usual | changes)


def known(keeper: MinuteKeeper, *others: Batch | Judged, batch: Batch | None = None) -> Evidence:
    """What is known of the ordinary batch, or of `batch`, beside others of ours."""
    return gather_evidence(batch or a_batch(), others, keeper.metrics, max_receives=MAX_RECEIVES)
