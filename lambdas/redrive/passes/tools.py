"""What a pass works with, and what its steps share once it is at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from redrive.aws.sqs import Queues
from redrive.aws.state_table import StateStore
from redrive.aws.traffic import LiveTraffic
from redrive.core.queue_facts import QueueFacts, Sources
from redrive.core.report import Report
from redrive.core.triage import Queues as QueueTerms
from redrive.passes.journal import Journal
from redrive.passes.rounds import Rounds
from redrive.settings import Settings

#: Letters stay hidden this much longer than the pass can last.
HIDDEN_MARGIN = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a pass works with. `clock` is read once a step; `rng` rolls the jitter; `owner` names this pass.

    `workers` is how many rounds may be under way at once; with one, a pass is the same whenever it is repeated.
    """

    queues: Queues
    store: StateStore
    live_traffic: LiveTraffic
    journal: Journal
    clock: Callable[[], datetime]
    rng: Random
    owner: str
    workers: int = 1


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """What the steps of one pass share: the tools, the queues as they were measured, the report to fill."""

    tools: Tools
    settings: Settings
    report: Report
    deadline: datetime
    dlq: QueueFacts
    parking_lot: QueueFacts
    sources: Sources

    @property
    def terms(self) -> QueueTerms:
        """What triage has to know of the queues."""
        return QueueTerms(
            destinations=self.sources.size_limits,
            default_destination=self.sources.default_arn,
            retention=self.dlq.retention,
        )

    def time_to_fail(self) -> timedelta:
        """From a letter's first try to the moment when, having failed, it has returned and can be counted."""
        grace = timedelta(seconds=self.settings.verdict_grace_seconds)
        return self.sources.time_to_fail(self.settings.max_receive_count) + grace

    def hidden_for(self) -> timedelta:
        """How long a letter received now stays hidden: until this pass is surely over."""
        return max(self.deadline - self.tools.clock(), timedelta()) + HIDDEN_MARGIN

    def rounds(self, queues: Queues | None = None) -> Rounds:
        """The hands that receive from the DLQ, or from what `queues` has in its place."""
        return Rounds(
            queues or self.tools.queues,
            self.tools.store,
            self.report,
            self.tools.journal,
            source_limits=self.sources.size_limits,
            parking_lot_limit=self.parking_lot.max_message_size,
        )
