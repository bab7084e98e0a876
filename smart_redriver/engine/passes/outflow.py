"""Lets letters through as the permits allow: the sending half of a pass, in rounds that run side by side.

    worker 1  ▒▒read▒▒ ▒▒send, record, delete▒▒ ▒▒read▒▒ ...
    worker 2     ▒▒read▒▒    ▒▒send, record, delete▒▒ ...
    the pass        decide      decide   add up  ...

Workers call AWS, and one thread decides. So the permit, the pacer, the circuit and the report have one writer and need
no lock. One worker does a letter's send, ledger write and delete in order. There are never more rounds under way than
workers: that is the backpressure, and the bound on memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ParamSpec, TypeVar

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.passes.assess import discard_copies
from smart_redriver.engine.passes.executor import Destination, Effects, Executor
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.read import (
    LETTERS_A_RECEIVE,
    ROUND_BYTES,
    ROUND_SIZE,
    Read,
    bytes_in_hand,
    read_letters,
)
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.triage.admission import CONTROLS_AMONG
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision, Hold, Park, ParkReason, Redrive, Renew

P = ParamSpec("P")
T = TypeVar("T")

#: A worker's tasks: read letters, or carry out decisions about some.
Reading = Callable[[], Read]
Doing = Callable[[], Effects]

#: Letters beyond the permit that a pass looks at if some circuits are closed and others open.
SCAN_BEYOND = 2_000
#: The same if up to nine letters that follow in its group come with each.
SCAN_BEYOND_FIFO = 10 * SCAN_BEYOND


class Outflow:
    """The letters that one pass redrives, parks and holds. Only readings and doings leave the pass's thread."""

    def __init__(self, state: PassState, executor: Executor, *, limit: int | None = None) -> None:
        self._state = state
        self._executor = executor
        self._limit = limit
        self._room_at_first = 0
        self._asked = 0
        self._examined = 0
        self._in_hand: set[str] = set()
        self._released: list[Case] = []
        self._is_end = False
        self._is_stopped = False
        self._letter_bytes: float | None = None
        self._looked_bytes = 0
        self.decisions: list[tuple[Case, Decision]] = []

    def run(self, looked: Read) -> None:
        """Handle the letters in hand first, then go round by round. Raises CallFailed and LostRace."""
        self._room_at_first = self._room
        self._returns_are_marked = bool(looked.cases)
        self._note_end(is_end=looked.is_end)
        if looked.cases:
            self._weigh(looked.cases)
            self._looked_bytes = sum(case.letter.weight for case in looked.cases)
        workers = self._state.tools.workers
        with _Here() if workers == 1 else ThreadPoolExecutor(workers) as pool:
            _Rounds(self, pool).run(looked if looked.cases else None)

    @property
    def has_seen_all(self) -> bool:
        """Whether every letter that the DLQ showed was decided about."""
        return self._is_end and not self._is_stopped

    def release(self) -> None:
        """Release letters that were not due. Only after the last round, which would otherwise receive them again."""
        self._state.did(self._executor.release(self._released))

    def width(self) -> int:
        """Rounds at once: as many as the waiting letters fill and memory allows; one until letters were weighed."""
        if self._letter_bytes is None or self._is_end:
            return 1
        room = min(self._room, self._state.dlq.visible)
        round_bytes = min(ROUND_SIZE * self._letter_bytes, ROUND_BYTES + 10 * self._letter_bytes)
        free = bytes_in_hand(self._state.settings.memory_mib) - self._looked_bytes
        fits = free // max(1, int(round_bytes))
        return max(1, min(self._state.tools.workers, -(-room // ROUND_SIZE), fits))

    def next_reading(self) -> Reading | None:
        """One more round, while a permit has room that no round under way has asked for.

        None while there is no round to begin, and for good once nothing is under way.
        """
        wanted = self._to_examine() - self._asked
        if wanted <= 0 or self._is_end or self._is_stopped:
            return None
        if len(self._state.contexts) > 1 or self._state.dlq.is_fifo:
            # Most letters received may be another source's, or follow in their groups: one by one, each would cost two
            # calls.
            wanted = max(wanted, LETTERS_A_RECEIVE)
        limit = min(wanted, ROUND_SIZE)
        self._asked += limit
        state = self._state
        return partial(self._read, limit, state.hidden_for())

    def decide(self, read: Read) -> Doing | None:
        """Decide about letters in hand."""
        state, now = self._state, self._state.tools.clock()
        self._asked -= read.asked
        self._note_end(is_end=read.is_end)
        self._weigh(read.cases)
        if now >= state.deadline:
            state.is_out_of_time = True
            self._is_stopped = True
            return None  # another pass may have the lease by now, and the letters are visible again soon
        are_marked = state.dlq.is_fifo or self._returns_are_marked
        cases = self._noted(read.cases, now)
        decided = self._decided(cases, now)
        if state.dlq.is_fifo and any(map(_leaves_as_it_expires, decided)):
            # Letters behind them in their groups can be received once they are gone, and expire just as soon.
            self._is_end = False
        self._examined += len(cases)
        try:
            destinations = self._destinations(decided, now)
        except Exception:
            self._release_later(cases)
            raise
        if state.is_dry:
            self.decisions += [(one.without_content(), what) for one, what in decided]
        stay = _due(decided, now, keeps=state.dlq.is_fifo)
        self._release_later(read.cases if state.is_dry else stay)
        version = None if are_marked else state.version_to_mark(cases)
        self._in_hand |= {case.original_id for case in cases}
        return partial(self._carry_out, decided, destinations, now, version)

    def _noted(self, cases: Sequence[Case], now: datetime) -> list[Case]:
        """One copy of each letter in hand; charges returns to their batches, unless that is done."""
        are_marked, self._returns_are_marked = self._returns_are_marked, False
        if self._state.dlq.is_fifo and not are_marked:
            return self._without_further_copies(self._without_copies(cases, now))
        cases = self._without_further_copies(cases)
        if not are_marked:
            self._charge_later(cases, now)
        return cases

    def _without_copies(self, cases: Sequence[Case], now: datetime) -> list[Case]:
        """Letters of a FIFO queue without returned copies, which are charged, marked and discarded at once."""
        state = self._state
        self._charge_later(cases, now)
        try:
            marked = self._executor.mark_returns(cases, state.version_to_mark(cases), now)
        except CallFailed:
            self._release_later(cases)
            raise
        return discard_copies(state, self._executor, marked)

    def _charge_later(self, cases: Sequence[Case], now: datetime) -> None:
        for context, some in self._state.by_context(cases):
            context.charge_later(context.count_returns(some, now))

    def add_up(self, effects: Effects) -> None:
        """Add up what was done. Raises the CallFailed that ended it early."""
        for context in self._state.contexts:
            context.sent([one for one in effects.sendings if one.source == context.source.name])
            if code := effects.refusals.get(context.source.name):
                context.refusal = code
                self._is_stopped = True
        if effects.bounced and all(one.has_succeeded is False for one in effects.sendings):
            self._is_stopped = True  # a target that accepts none is not tried with all that may go
        if effects.is_cut:
            self._state.is_out_of_time = self._is_stopped = True
        self._release_later([*effects.bounced, *effects.stuck])
        self._state.did(effects)
        if effects.failure is not None:
            self._is_stopped = True
            raise effects.failure

    def _note_end(self, *, is_end: bool) -> None:
        """Take an empty answer for the end of the DLQ, unless the limit of in-flight messages may be the cause."""
        if is_end and self._state.dlq.can_seem_empty:
            self._is_stopped = True
            in_flight = self._state.dlq.in_flight
            self._state.tools.journal("dlq.seems_empty", in_flight=in_flight)
        else:
            self._is_end |= is_end

    @property
    def _room(self) -> int:
        return sum(context.room for context in self._state.contexts)

    def _to_examine(self) -> int:
        """Return the number of letters that are worth receiving now: as many as may go."""
        if self._room <= 0:
            return 0
        if self._limit is not None and self._examined >= self._limit:
            return 0
        beyond = SCAN_BEYOND_FIFO if self._state.dlq.is_fifo else SCAN_BEYOND
        is_mixed = len(self._state.contexts) > 1 or self._state.dlq.is_fifo
        if is_mixed and self._examined >= self._room_at_first + beyond:
            return 0
        return self._room

    def _read(self, limit: int, hidden_for: timedelta) -> Read:
        tools = self._state.tools
        return read_letters(
            tools.dead_letters, tools.memory, limit, hidden_for=hidden_for, max_bytes=ROUND_BYTES
        )

    def _carry_out(
        self,
        decided: Sequence[tuple[Case, Decision]],
        destinations: Mapping[str, Destination],
        now: datetime,
        version: int | None,
    ) -> Effects:
        return self._executor.carry_out(
            decided,
            destinations,
            now,
            version_to_mark=version,
            is_one_of_many=min(self._room_at_first, self._state.dlq.depth) > ROUND_SIZE,
        )

    def _release_later(self, cases: Iterable[Case]) -> None:
        self._released += [case.without_content() for case in cases]

    def _weigh(self, cases: Sequence[Case]) -> None:
        if cases:
            mean = sum(case.letter.weight for case in cases) / len(cases)
            self._letter_bytes = max(self._letter_bytes or 1.0, mean)

    def _without_further_copies(self, cases: Sequence[Case]) -> list[Case]:
        one_of_each = self._one_of_each(cases)
        if self._state.dlq.is_fifo:
            # A hidden copy would cut its group off: the letters before it could be taken for the whole group.
            here = {case.message_id for case in one_of_each}
            self._release_later([case for case in cases if case.message_id not in here])
        return one_of_each

    def _one_of_each(self, cases: Sequence[Case]) -> list[Case]:
        """Letters without second copies, which the next pass will receive: the ledger has one entry for all copies.

        SQS may hand a letter out twice, and a crash may leave two copies; another round may have the other one.
        """
        first: dict[str, Case] = {}
        for case in cases:
            first.setdefault(case.original_id, case)
        return [case for original_id, case in first.items() if original_id not in self._in_hand]

    def _decided(self, cases: Sequence[Case], now: datetime) -> list[tuple[Case, Decision]]:
        state = self._state
        decided: list[tuple[Case, Decision]] = []
        # Too few letters to compare suspects with are as good as none: controls are chosen before those are received.
        unseen = 0 if self._is_end else state.dlq.visible - self._examined - len(cases)
        beyond = unseen / max(1, len(cases)) if unseen >= CONTROLS_AMONG else 0.0
        for context, some in state.by_context(cases):
            rolls = [state.tools.rng.random() for _ in some]
            terms = state.terms(context)
            of_context = context.decide(some, rolls, terms, now, beyond=beyond)
            for case, what in of_context:
                state.saw_letter(case, what, now)
                if isinstance(what, Hold):
                    state.left(case, what, terms, now)
                elif isinstance(what, Renew):
                    state.waits(case, terms, now)
            decided += of_context
        return decided

    def _destinations(
        self, decided: Sequence[tuple[Case, Decision]], now: datetime
    ) -> dict[str, Destination]:
        redriven = {what.destination for _, what in decided if isinstance(what, Redrive)}
        return {
            context.known_facts.arn: context.destination(
                now, self._state.deadline, self._save(context)
            )
            for context in self._state.contexts
            if context.known_facts.arn in redriven
        }

    def _save(self, context: SourceContext) -> Callable[[Circuit], None]:
        return context.keeper.change if self._state.is_dry else context.keeper.save


def _leaves_as_it_expires(decided: tuple[Case, Decision]) -> bool:
    _, what = decided
    return isinstance(what, Park) and what.reason is ParkReason.EXPIRING


def _due(decided: Sequence[tuple[Case, Decision]], now: datetime, *, keeps: bool) -> list[Case]:
    """The letters that stay and are hidden no longer than the pass; with `keeps`, also letters that were redriven."""
    return [
        case
        for case, what in decided
        if (isinstance(what, Hold) and what.until <= now) or (keeps and isinstance(what, Redrive))
    ]


class _Rounds:
    """The rounds under way. After a failure no new round begins, and those under way finish."""

    def __init__(self, outflow: Outflow, pool: futures.Executor) -> None:
        self._outflow = outflow
        self._pool = pool
        self._readings: dict[Future[Read], None] = {}
        self._doings: dict[Future[Effects], None] = {}
        self._error: Exception | None = None

    def run(self, first: Read | None) -> None:
        """Run rounds until there is no next one, beginning with letters in hand. Raises what a reading raised."""
        if first is not None:
            self._go_on(lambda: self._decide(first))
        while True:
            self._begin()
            under_way: list[Future[Any]] = [*self._readings, *self._doings]
            if not under_way:
                break
            wait(under_way, return_when=FIRST_COMPLETED)
            for done in under_way:  # in the order in which they were begun
                if done.done():
                    self._go_on(lambda done=done: self._finish(done))  # type: ignore[misc]
        if self._error is not None:
            raise self._error

    def _begin(self) -> None:
        while self._error is None and (
            len(self._readings) + len(self._doings) < self._outflow.width()
        ):
            reading = self._outflow.next_reading()
            if reading is None:
                return
            self._readings[self._pool.submit(reading)] = None

    def _finish(self, done: Future[Read] | Future[Effects]) -> None:
        if done in self._doings:
            del self._doings[done]  # type: ignore[arg-type]
            self._outflow.add_up(done.result())  # type: ignore[arg-type]
        else:
            del self._readings[done]  # type: ignore[arg-type]
            self._decide(done.result())  # type: ignore[arg-type]

    def _decide(self, read: Read) -> None:
        doing = self._outflow.decide(read)
        if doing is not None:
            self._doings[self._pool.submit(doing)] = None

    def _go_on(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._error = self._error or error


class _Here(futures.Executor):
    """Runs each task at once, in the calling thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # it is raised when the result is read
            done.set_exception(error)
        return done
