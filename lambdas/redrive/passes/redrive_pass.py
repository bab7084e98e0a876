"""One pass over one queue: gather, decide, apply, report.

    peek ─► lease ─► assess: measure, look, judge ─► outflow: rounds ─► retention guard ─► settle ─► report

Every pass re-reads the world, so a schedule, a person and a repeated event may all start one. It writes the
circuit twice at most: before its first send, with the verdicts and the batch it is about to fill, and at the
end. Between the two a crash leaves a batch that is known, if not how full it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.aws.state_table import Lease
from redrive.core import breaker
from redrive.core.circuit import Circuit
from redrive.core.queue_facts import QueueFacts
from redrive.core.report import Outcome, Report
from redrive.core.retention import is_dlq_sweep_due, is_lot_sweep_due
from redrive.errors import CallFailed
from redrive.passes.assess import assess
from redrive.passes.circuit_keeper import CircuitKeeper, LostRace
from redrive.passes.dry_run import dry_run
from redrive.passes.guard import guard_retention, with_first_lot_sweep
from redrive.passes.outflow import Outflow
from redrive.passes.tools import Tools, Workplace
from redrive.settings import Mode, Settings

#: What a pass may need to stop after its deadline; the lease covers it.
STOPPING_TIME = timedelta(seconds=15)


def run_pass(tools: Tools, queue: str, settings: Settings, *, deadline: datetime) -> Report:
    """Run one pass and report it; `deadline` is when it has to have stopped by itself.

    AWS's refusals never escape: they are in the report and the log, and the letters are in the DLQ.
    """
    report = Report(queue=queue, mode=settings.mode.value)
    started = tools.clock()
    one = _Pass(tools, settings, report, deadline)
    with one.ends_quietly():
        one.run()
    report.duration_seconds = (tools.clock() - started).total_seconds()
    tools.journal("pass.finished", **report.to_json())
    return report


class _Pass:
    """The steps of one pass, from the peek that costs next to nothing to the work under the lease."""

    def __init__(
        self, tools: Tools, settings: Settings, report: Report, deadline: datetime
    ) -> None:
        self._tools = tools
        self._settings = settings
        self._report = report
        self._deadline = deadline
        self._lease = Lease(owner=tools.owner, expires_at=deadline + STOPPING_TIME)

    @contextmanager
    def ends_quietly(self) -> Iterator[None]:
        """What AWS refused is told, and ends the part of the pass inside. The first refusal names the outcome."""
        try:
            yield
        except CallFailed as failed:
            self._tell(failed)
            if self._report.outcome is not Outcome.FAILED:
                self._report.outcome, self._report.reason = Outcome.FAILED, str(failed)
        except LostRace as lost:
            self._report.outcome, self._report.reason = Outcome.LOST_RACE, str(lost)

    def run(self) -> None:
        """The pass. Raises CallFailed and LostRace."""
        keeper = CircuitKeeper(self._tools, self._settings, self._report)
        self._is_paused = self._settings.mode is Mode.PAUSED or keeper.circuit.orders.pauses(
            self._tools.clock()
        )
        dlq = self._tools.queues.dead_letter_queue()
        self._report.depth = dlq.depth
        parking_lot = self._tools.queues.parking_lot()
        self._report.parked_depth = parking_lot.depth
        if self._settings.mode is Mode.DRY_RUN:
            self._report.outcome = Outcome.DRY_RUN
            permit = breaker.allow(keeper.circuit, self._settings, self._tools.clock())
            self._report.reason = permit.reason
            if dlq.depth:
                dry_run(self._workplace(dlq, parking_lot), keeper.circuit, permit)
        elif not self._has_nothing_to_do(keeper.circuit, dlq, parking_lot):
            with self._lease_held() as is_held:
                if is_held:
                    keeper.load()
                    self._work(self._workplace(dlq, parking_lot), keeper)

    def _has_nothing_to_do(
        self, circuit: Circuit, dlq: QueueFacts, parking_lot: QueueFacts
    ) -> bool:
        """Peek before anything costs: an empty DLQ, or a circuit that waits for its time."""
        now = self._tools.clock()
        if dlq.depth and is_dlq_sweep_due(circuit, now, is_paused=self._is_paused):
            return False
        if parking_lot.depth and is_lot_sweep_due(circuit, now):
            return False
        if self._is_paused:
            self._note_pause(circuit)
            return True
        if any(batch.due_at <= now for batch in circuit.pending):
            return False
        permit = breaker.allow(circuit, self._settings, now)
        if dlq.depth and permit.limit:
            return False
        is_idle = not dlq.depth and not circuit.pending
        self._report.outcome = Outcome.IDLE if is_idle else Outcome.WAITING
        self._report.reason = permit.reason if dlq.depth else "the DLQ is empty"
        return True

    def _note_pause(self, circuit: Circuit) -> None:
        orders = circuit.orders
        self._report.outcome = Outcome.PAUSED
        self._report.reason = "paused by the setting `mode`"
        if orders.is_paused:
            end = orders.paused_until
            until = f" until {end:%Y-%m-%dT%H:%M:%SZ}" if end else ""
            self._report.reason = f"paused by {orders.by}{until}: {orders.reason}"

    def _workplace(self, dlq: QueueFacts, parking_lot: QueueFacts) -> Workplace:
        return Workplace(
            tools=self._tools,
            settings=self._settings,
            report=self._report,
            deadline=self._deadline,
            dlq=dlq,
            parking_lot=parking_lot,
            sources=self._tools.queues.source_queues(),
        )

    def _work(self, place: Workplace, keeper: CircuitKeeper) -> None:
        """Under the lease: look back, then let letters through, then look after those near expiry."""
        move = self._tools.queues.check_move(place.dlq.arn)
        if move.fault is not None:
            self._tell(move.fault)
        if move.is_running:
            self._report.outcome = Outcome.MOVE_TASK_RUNNING
            self._report.reason = "a native move task is emptying the DLQ"
            self._tools.journal("pass.stood_aside", dlq=place.dlq.arn)
            return
        rounds = place.rounds()
        if self._is_paused:
            self._note_pause(keeper.circuit)
            looked = []
        else:
            # What fails here leaves circuit and letters as they are, so that the next pass sees it all again.
            looked = assess(place, keeper, rounds)
        outflow = Outflow(place, keeper, rounds)
        with self.ends_quietly():
            if not self._is_paused:
                outflow.run(looked)
            guard_retention(place, keeper, rounds, is_paused=self._is_paused)

        def settled(circuit: Circuit) -> Circuit:
            now = self._tools.clock()
            circuit = outflow.settled(circuit, now)
            if circuit.depth is not None:
                circuit = replace(circuit, depth=circuit.depth.less(rounds.removed, now))
            return with_first_lot_sweep(circuit, place, now)

        try:
            keeper.settle(settled)
        finally:
            outflow.release()

    @contextmanager
    def _lease_held(self) -> Iterator[bool]:
        is_held = self._tools.store.acquire_lease(self._lease, self._tools.clock())
        if not is_held:
            self._report.outcome = Outcome.LEASE_HELD
            self._report.reason = "another pass is at work on this queue"
            self._tools.journal("lease.refused")
        try:
            yield is_held
        finally:
            if is_held:
                self._release_lease()

    def _release_lease(self) -> None:
        try:
            self._tools.store.release_lease(self._lease)
        except CallFailed as failed:
            # It expires by itself; what the pass did stands.
            self._tell(failed)

    def _tell(self, failed: CallFailed) -> None:
        self._report.saw_fault(failed)
        self._tools.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)
