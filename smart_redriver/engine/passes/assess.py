"""Looks back: reads queue metrics, receives the DLQ if a verdict depends on it, and gives all certain verdicts.

No letter leaves the DLQ here, and only the marks of returns are written: see `Entry.counts_as_evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model import judging
from smart_redriver.engine.model.evidence import LIVE_LOOKBACK
from smart_redriver.engine.model.queue_metrics import PERIOD, QueueMetrics
from smart_redriver.engine.passes.executor import Executor
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import QueueMetricsReader
from smart_redriver.engine.passes.read import Read, bytes_in_hand, read_letters
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Discard
from smart_redriver.engine.triage.ordered import copies_among, without_copies

#: A DLQ of at most this many letters is received as a whole if it may hold returns or a canary is chosen.
LOOK_LIMIT = 100

#: A DLQ of at most this many letters is received as a whole if the metrics say that it holds returns. A deeper one is
#: not: receiving and releasing buries letters, and returns queue up at its far end.
SEARCH_LIMIT = 1_000

#: How far before the first letter metrics are read: they show what was in the queue and how much producers send.
BEFORE = LIVE_LOOKBACK + timedelta(minutes=2)


def read_queue_metrics(state: PassState, context: SourceContext, now: datetime) -> None:
    """Read the source's metrics if they can change anything; without them a verdict takes longer."""
    if not context.wants_metrics(letters=state.dlq.depth, visible=state.dlq.visible):
        return
    circuit = context.circuit
    since = circuit.failed_at if circuit.left_failing and circuit.failed_at else now
    start = min((one.sent_at for one in circuit.pending), default=since)
    start = min(start, context.counted_since() or start)
    try:
        metrics = state.tools.metrics_reader.since(start - BEFORE, now, context.source.name)
        context.metrics = (
            metrics if metrics.has_gauges else metrics.up_to_untold(context.sent_lately())
        )
    except CallFailed as failed:
        state.failed(failed)


def judge(context: SourceContext, now: datetime) -> None:
    """Give every verdict that is certain now."""
    circuit, rulings = context.judged(now)
    context.rulings += tuple(one for one in rulings if one.judgement.verdict is not None)
    context.keeper.change(circuit)


def is_worth_a_look(state: PassState, now: datetime) -> bool:
    """Whether a look at the DLQ can matter for a verdict or the choice of a canary."""
    return 0 < state.dlq.depth <= _letters_to_look_at(state, now)


def look(state: PassState, executor: Executor, now: datetime) -> Read:
    """Receive the DLQ if a verdict or the choice of a canary depends on it. Raises CallFailed."""
    if not is_worth_a_look(state, now):
        return Read()
    limit = _letters_to_look_at(state, now)
    tools = state.tools
    read = read_letters(
        tools.dead_letters,
        tools.memory,
        limit,
        hidden_for=state.hidden_for(),
        max_bytes=bytes_in_hand(state.settings.memory_mib) // 2,
    )
    returns = [
        (context, context.count_returns(some, now))
        for context, some in state.by_context(read.cases)
    ]
    try:
        marked = executor.mark_returns(read.cases, state.version_to_mark(read.cases), now)
    except CallFailed:
        # A pass that follows at once must not find them hidden.
        state.did(executor.release(read.cases))
        raise
    for context, some in returns:
        context.keeper.change(judging.charge(context.circuit, some))
    if tools.dead_letters.is_fifo:
        marked = discard_copies(state, executor, marked)
    return Read(tuple(marked), read.asked, read.is_end)


def _letters_to_look_at(state: PassState, now: datetime) -> int:
    looks_back = [context for context in state.contexts if not context.has_looked_back(now)]
    has_returns = any(context.has_returns() for context in looks_back)
    if has_returns or any(context.compares(state.dlq.depth, now) for context in state.contexts):
        return SEARCH_LIMIT
    may_have_returns = any(context.may_have_returns(now) for context in looks_back)
    if may_have_returns or any(context.allow(now).is_trial for context in state.contexts):
        return LOOK_LIMIT
    return 0


class OnceAMinute:
    """A reader that reads at most once a minute: CloudWatch has news each minute, and each answer costs money."""

    def __init__(self, metrics_reader: QueueMetricsReader) -> None:
        self._metrics_reader = metrics_reader
        self._said: dict[str, tuple[datetime, datetime, QueueMetrics]] = {}

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:
        """The metrics of a span that includes this one, read less than a minute ago. Raises CallFailed."""
        asked_at, since, metrics = self._said.get(queue_name, (now - PERIOD, now, QueueMetrics()))
        if now >= asked_at + PERIOD or start < since:
            metrics = self._metrics_reader.since(start, now, queue_name)
            self._said[queue_name] = (now, start, metrics)
        return metrics


def discard_copies(state: PassState, executor: Executor, marked: Sequence[Case]) -> list[Case]:
    """Discard copies in hand that have been marked as returned, and return the letters that are left.

    They are marked first: a copy that is gone without a mark would look like one that succeeded.
    """
    copies = copies_among(marked)
    if copies:
        state.did(executor.discard([(case, Discard(reason="RETURNED_COPY")) for case in copies]))
    if copies and state.is_dry:
        state.did(
            executor.release(copies)
        )  # no look receives them again: the letters before them in their group are hidden
    return without_copies(marked, copies)
