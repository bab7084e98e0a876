"""Gathers evidence and has the batches judged that are due: the half of a pass that looks back.

    measure ─► look ─► judge ─► doubt? ─► ask CloudWatch for live traffic ─► judge again

Nothing leaves the DLQ here, and nothing but the returns' marks is written: see `Entry.counts_as_evidence`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime

from redrive.core import breaker
from redrive.core.circuit import Depth
from redrive.core.triage import batch_of, is_unseen_return
from redrive.core.verdict import Evidence
from redrive.errors import CallFailed
from redrive.passes.circuit_keeper import CircuitKeeper
from redrive.passes.rounds import Examined, Rounds
from redrive.passes.tools import Workplace

#: A DLQ of at most this many letters is received as a whole when a verdict is due: then no return can hide.
#: A deeper one is not: receiving and releasing buries letters, and returns queue up at its far end.
LOOK_LIMIT = 100

#: Returns seen, by the batch that they come from and whether the letter was a suspect.
Returns = Counter[tuple[int, bool]]


def assess(place: Workplace, keeper: CircuitKeeper, rounds: Rounds) -> list[Examined]:
    """Judge what can be judged; the letters that were received for that, to be decided about. Raises CallFailed."""
    now = place.tools.clock()
    _measure(place, keeper, now)
    looked = _look(place, keeper, rounds, now)
    _judge(place, keeper, saw_every_letter=len(looked) >= place.dlq.depth)
    return looked


def count_returns(place: Workplace, examined: list[Examined], version: int) -> Returns:
    """The returns among letters that no pass has charged to the circuit yet."""
    returns: Returns = Counter()
    for one in examined:
        batch = batch_of(one.letter, one.entry)
        if batch is not None and is_unseen_return(one.letter, one.entry, version):
            returns[batch, one.entry is not None and one.entry.is_suspect] += 1
    place.report.returned += returns.total()
    return returns


def _measure(place: Workplace, keeper: CircuitKeeper, now: datetime) -> None:
    circuit = keeper.circuit
    depth = (
        circuit.depth.measured(place.dlq.depth, now, letters_are_out=bool(circuit.pending))
        if circuit.depth
        else Depth(letters=place.dlq.depth, at=now)
    )
    keeper.change(replace(circuit, depth=depth))


def _look(place: Workplace, keeper: CircuitKeeper, rounds: Rounds, now: datetime) -> list[Examined]:
    """Receive a shallow DLQ as a whole where that can decide a verdict or choose the canary."""
    is_due = any(batch.due_at <= now for batch in keeper.circuit.pending)
    permit = breaker.allow(keeper.circuit, place.settings, now)
    if not 0 < place.dlq.depth <= LOOK_LIMIT or not (is_due or permit.is_canary):
        return []
    looked = rounds.gather(LOOK_LIMIT, hidden_for=place.hidden_for())
    returns = count_returns(place, looked, keeper.version)
    try:
        looked = rounds.mark_returns(looked, keeper.version, now)
    except CallFailed:
        # A pass that follows at once must not take their absence for success.
        rounds.release(looked)
        raise
    keeper.change(breaker.charge(keeper.circuit, returns))
    return looked


def _judge(place: Workplace, keeper: CircuitKeeper, *, saw_every_letter: bool) -> None:
    now = place.tools.clock()
    depth = keeper.circuit.depth
    evidence = Evidence(
        unexplained=depth.unexplained if depth else 0.0,
        saw_every_letter=saw_every_letter,
        source_backlog=place.sources.backlog,
        max_receive_count=place.sources.max_receive_count(place.settings.max_receive_count),
    )
    circuit, rulings = breaker.judge(keeper.circuit, evidence, place.settings, now)
    doubted = [one.batch for one in rulings if one.judgement.wants_traffic]
    if doubted:
        since = min(batch.first_try_at for batch in doubted)
        evidence = _with_traffic(place, evidence, since, now)
        circuit, rulings = breaker.judge(keeper.circuit, evidence, place.settings, now)
    for ruling in rulings:
        place.report.saw_ruling(ruling)
    for verdict in place.report.verdicts:
        place.tools.journal("batch.judged", **verdict)
    keeper.change(circuit)


def _with_traffic(place: Workplace, evidence: Evidence, since: datetime, now: datetime) -> Evidence:
    try:
        traffic = place.tools.live_traffic.since(since, now, place.sources.arns)
    except CallFailed as failed:
        # Live traffic only ever speaks in doubt: without it the verdict stands as our own letters tell it.
        place.report.saw_fault(failed)
        place.tools.journal("call.failed", call=failed.call, code=failed.code)
        return evidence
    return replace(evidence, traffic=traffic)
