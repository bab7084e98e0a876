"""One pass over one DLQ: gather, decide, apply, report.

    peek ─► read queue metrics ─► lease ─► listen ─► look ─► judge ─► outflow: rounds ─► guard ─► commit ─► report

Every pass re-reads the world, so a schedule, a person and a repeated event may all start one. It writes a circuit at
most twice: before its first send, with the verdicts and the batch that it is about to fill, and at the end. After a
crash between the two, the batch is known, but not how full it is. A dry run is the same pass with an executor that does
nothing, and without the lease.

    pass ─► report says: again in 5 s ─► wait ─► pass ─► report says: in a minute ─► end

An invocation runs passes one after another, as long as the consumer reports or letters wait for the rate: a window is
sent, reported on, judged and followed by the next within one invocation. So a consumer gets its letters at the rate
that it can bear.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.headline import pause_in_words
from smart_redriver.engine.model.circuit import Lease, Waiting
from smart_redriver.engine.model.rate import LOOKS_EVERY
from smart_redriver.engine.passes import assess, guard
from smart_redriver.engine.passes.apply import LiveExecutor
from smart_redriver.engine.passes.assess import OnceAMinute
from smart_redriver.engine.passes.circuit_keeper import LeaseKeeper, LostRace
from smart_redriver.engine.passes.dry_run import DryMemory, DryRunExecutor
from smart_redriver.engine.passes.executor import Executor
from smart_redriver.engine.passes.listen import Listener
from smart_redriver.engine.passes.outflow import Outflow
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.peek import has_work, may_have_work, peek, unreadable
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.read import Read
from smart_redriver.engine.passes.reporting import BUSY_SECONDS, report_of
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision

#: How long a pass may take to stop after its deadline: a call with all its retries, and writing the circuit. The lease
#: covers it.
STOPPING_TIME = timedelta(seconds=45)

#: Letters that a dry run decides about.
DRY_RUN_LIMIT = 1_000

#: An invocation begins no pass shortly before this. The schedule ticks every minute: if the third tick found a pass at
#: work, it would leave it alone, and letters would wait for the fourth.
LONGEST_VISIT = timedelta(minutes=3)

#: A pass with less time than this is not begun.
_WORTH_STARTING = timedelta(seconds=10)


def run_invocation(
    tools: Tools, settings: Settings, *, deadline: datetime, pause: Callable[[float], None]
) -> Generator[Report]:
    """Run passes until the schedule's next look is soon enough, and yield the report of each.

    The lease is given back before the last report is yielded. If that call fails, the report names it: the next passes
    find the lease taken until it expires.

    Args:
        deadline: when the last pass must have stopped by itself.
        pause: waits for a number of seconds.

    """
    ends = min(deadline, tools.clock() + LONGEST_VISIT)
    lease = lease_until(tools, deadline)
    tools = replace(tools, metrics_reader=OnceAMinute(tools.metrics_reader))
    try:
        while True:
            report = run_pass(tools, settings, deadline=deadline, lease=lease)
            wait = timedelta(seconds=report.look_again_seconds)
            is_soon = report.look_again_seconds < BUSY_SECONDS
            if not is_soon or tools.clock() + wait + _WORTH_STARTING > ends:
                break
            yield report
            pause(wait.total_seconds())
    finally:
        failed = _given_back(tools, lease)
    if failed is not None:
        report.faults[f"{failed.call}:{failed.code}"] += 1
    yield report


def _given_back(tools: Tools, lease: LeaseKeeper) -> CallFailed | None:
    """Give the lease back, or return the failure that prevented it: the lease then expires by itself."""
    try:
        lease.give_back()
    except CallFailed as failed:
        tools.tell_failed(failed)
        return failed
    return None


def run_pass(
    tools: Tools, settings: Settings, *, deadline: datetime, lease: LeaseKeeper | None = None
) -> Report:
    """Run one pass and report it; `deadline` is when it must have stopped by itself.

    If `lease` is given, the pass keeps it for the next look, and the caller gives it back. AWS's refusals never escape:
    they are in the report and the log, and the letters are in the DLQ.
    """
    started = tools.clock()
    if settings.mode is Mode.DRY_RUN:
        tools = replace(tools, memory=DryMemory(tools.memory))
    try:
        state = peek(tools, settings, deadline)
    except CallFailed as failed:
        report = unreadable(tools, settings, failed)
    else:
        report = _Pass(state, lease).run()
    report.duration_seconds = (tools.clock() - started).total_seconds()
    tools.journal("pass.finished", **report.to_json())
    return report


class _Pass:
    """The steps of one pass, from the peek on."""

    def __init__(self, state: PassState, lease: LeaseKeeper | None) -> None:
        self._state = state
        self._tools = state.tools
        self._lease = lease or lease_until(state.tools, state.deadline)
        self._keeps_lease = lease is not None
        self._outcome = Outcome.DRY_RUN if state.is_dry else Outcome.DONE
        self._reason = ""
        self._decisions: list[tuple[Case, Decision]] = []
        self._listener = Listener(state)
        executor_on = partial(
            LiveExecutor,
            parking_lot=self._tools.parking_lot,
            ledger=self._tools.memory,
            letter_limit=state.dlq.max_message_size,
            parking_lot_limit=state.parking_lot.max_message_size,
            name_of=state.name_of,
            is_over=state.is_over,
            room_to_hide=state.dlq.room_to_hide,
        )
        real = executor_on(self._tools.dead_letters)
        self._lot_executor = executor_on(self._tools.parking_lot)
        self._executor: Executor = (
            DryRunExecutor(self._tools.dead_letters, state.name_of) if state.is_dry else real
        )

    def run(self) -> Report:
        """The pass."""
        with self._ends_quietly():
            self._run()
        self._listener.release()
        if self._state.is_out_of_time:
            self._outcome = Outcome.OUT_OF_TIME
        for context in self._state.contexts:
            for event, fields in context.keeper.events:
                self._tools.journal(event, **fields)
        report = report_of(
            self._state, self._outcome, self._reason, self._decisions, self._tools.clock()
        )
        for verdict in report.verdicts:
            self._tools.journal("batch.judged", **verdict)
        return report

    @contextmanager
    def _ends_quietly(self) -> Iterator[None]:
        """Log what AWS refused, and end the enclosed part of the pass. The first refusal names the outcome."""
        try:
            yield
        except CallFailed as failed:
            self._state.failed(failed)
            self._is_failure(str(failed))
        except LostRace as lost:
            self._outcome, self._reason = Outcome.LOST_RACE, str(lost)

    def _is_failure(self, reason: str) -> None:
        if self._outcome is not Outcome.FAILED:
            self._outcome, self._reason = Outcome.FAILED, reason

    def _run(self) -> None:
        state, now = self._state, self._tools.clock()
        if state.is_paused:
            self._outcome, self._reason = Outcome.PAUSED, _why_paused(state, now)
        self._listener.peek()
        if not self._listener.has_reports and not may_have_work(state, now):
            self._wait(now)
            return
        for context in state.contexts:
            assess.read_queue_metrics(state, context, now)
        for context in state.contexts:
            context.learn_facts()
        if not self._listener.has_reports and not has_work(state, now):
            self._wait(now)
            return
        if state.is_dry:
            self._work()
        else:
            self._work_alone(now)

    def _work_alone(self, now: datetime) -> None:
        """Work under the lease, with circuits that were read after taking it."""
        if not self._lease.take(now):
            self._outcome = Outcome.LEASE_HELD
            self._reason = (
                "another pass is at work on this queue, or ended without giving its lease back"
            )
            self._tools.journal("lease.refused")
            return
        try:
            for context in self._state.contexts:
                context.keeper.load()
                context.complete_left_behind()
            self._work()
        finally:
            if not self._keeps_lease:
                self._give_back_lease()

    def _wait(self, now: datetime) -> None:
        """End a pass that finds nothing to do, and say why."""
        if not self._state.is_paused:
            self._outcome, self._reason = self._why_waiting(now)
        self._remember_waiting(now)

    def _why_waiting(self, now: datetime) -> tuple[Outcome, str]:
        state = self._state
        reason = state.contexts[0].allow(now).reason if state.dlq.depth else "the DLQ is empty"
        if state.is_dry:
            return Outcome.DRY_RUN, reason
        is_idle = not state.dlq.depth and not any(
            context.circuit.pending for context in state.contexts
        )
        return (Outcome.IDLE if is_idle else Outcome.WAITING), reason

    def _remember_waiting(self, now: datetime) -> None:
        """Note since when letters wait, in a pass that has looked at none; write it only if it is new."""
        keeper, waiting = self._state.contexts[0].keeper, Waiting(letters=self._state.dlq.visible)
        remembered = keeper.circuit.with_waiting(waiting, now)
        if remembered == keeper.circuit:
            return
        if self._state.is_dry:
            keeper.change(remembered)
        else:
            keeper.commit(lambda circuit: circuit.with_waiting(waiting, now))

    def _work(self) -> None:
        """Listen and look back, then let letters through, then look after those near expiry."""
        state = self._state
        if self._is_move_running():
            return  # and the reports wait: this pass would not record them
        self._listener.listen()
        # A failure here leaves circuit and letters unchanged, so that the next pass sees them all again.
        looked = Read() if state.is_paused else self._look_back()
        outflow = Outflow(state, self._executor, limit=DRY_RUN_LIMIT if state.is_dry else None)
        keeps_watch = guard.Guard(state, self._executor)
        has_seen_all = False
        with self._ends_quietly():
            if not state.is_paused:
                now = self._tools.clock()
                goes_on = state.deadline - now > LOOKS_EVERY + _WORTH_STARTING
                for context in state.contexts:
                    context.open_gate(now, goes_on=goes_on)
                self._reason = state.contexts[0].permit.reason
                outflow.run(looked)
                has_seen_all = outflow.has_seen_all
            keeps_watch.sweep_dead_letters(has_seen_all=has_seen_all)
            if not state.is_dry:
                keeps_watch.sweep_parking_lot(self._lot_executor, self._tools.parking_lot)
        self._decisions = outflow.decisions
        try:
            self._commit(has_seen_all=has_seen_all)
            if not self._listener.forget():
                self._is_failure("reports that were heard can't be deleted, and come again")
        finally:
            outflow.release()
            keeps_watch.release(self._lot_executor)

    def _is_move_running(self) -> bool:
        state = self._state
        move = self._tools.dead_letters.check_move(state.dlq.arn)
        if move.fault is not None:
            state.failed(move.fault)
        if move.is_running:
            self._outcome = Outcome.MOVE_TASK_RUNNING
            self._reason = "a native move task is emptying the DLQ"
            self._tools.journal("pass.stood_aside", dlq=state.dlq.arn)
        return move.is_running

    def _look_back(self) -> Read:
        now = self._tools.clock()
        looked = assess.look(self._state, self._executor, now)
        for context in self._state.contexts:
            assess.judge(context, now)
        return looked

    def _waiting(self, has_seen_all: bool) -> Waiting:
        """Letters that stay without a known end: by decision, or because the pass did not get to them."""
        state = self._state
        if has_seen_all:
            letters = state.waiting + len(state.effects.stuck)
            return Waiting(letters=letters, since=state.waiting_since)
        return Waiting(letters=max(state.waiting, state.dlq.visible - state.effects.removed))

    def _commit(self, *, has_seen_all: bool) -> None:
        state, now = self._state, self._tools.clock()
        for context in state.contexts:
            if context.refusal is not None:
                self._outcome = Outcome.REFUSED
                self._reason = f"{context.source.name} refused letters: {context.refusal}"
        first = state.contexts[0]
        first.keeper.change(guard.with_first_lot_sweep(first, state, now))
        circuit = first.circuit.with_held_suspects(state.last_chances, now)
        circuit = circuit.with_waiting(self._waiting(has_seen_all), now)
        is_whole = has_seen_all and not state.is_dry
        if (stuck := len(state.effects.stuck)) or is_whole:
            circuit = replace(circuit, stuck=stuck)
        if state.blocking or is_whole:
            circuit = replace(circuit, blocking=state.blocking)
        first.keeper.change(circuit)
        for context in state.contexts:
            if state.is_dry:
                context.keeper.change(context.after_sending(context.circuit, now))
            else:
                context.keeper.commit(partial(context.after_sending, now=now))

    def _give_back_lease(self) -> None:
        try:
            self._lease.give_back()
        except CallFailed as failed:
            # The lease expires by itself; what the pass did stands.
            self._state.failed(failed)


def lease_until(tools: Tools, deadline: datetime) -> LeaseKeeper:
    """The lease of a pass that stops at `deadline`: no other pass gets it before the pass has surely stopped."""
    return LeaseKeeper(tools.memory, Lease(owner=tools.owner, expires_at=deadline + STOPPING_TIME))


def _why_paused(state: PassState, now: datetime) -> str:
    orders = state.contexts[0].circuit.orders
    if not orders.pauses(now):
        return "paused by the setting `mode`"
    return f"paused {pause_in_words(orders, now)}"


#: A schedule's tick may come a little early.
TOLERANCE = timedelta(seconds=10)


@dataclass(slots=True)
class Rhythm:
    """Remembers when the next look is due: in about a minute while something is awaited, else by the schedule.

    The function is invoked every minute. Its memory of the last invocation lets it skip invocations that find nothing
    due; without a memory, after a cold start, it looks.
    """

    next_look: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether a tick of the schedule has to look."""
        return self.next_look is None or now >= self.next_look - TOLERANCE

    def looked(self, report: Report, now: datetime) -> None:
        """Note a pass's report."""
        self.next_look = now + timedelta(seconds=report.look_again_seconds)
