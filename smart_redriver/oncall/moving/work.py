"""Works through a queue for a person: letter by letter, under the lease, interruptible and resumable.

    lease ─► receive ten ─► choose ─► act ─► receive ten ─► ... ─► give the lease back

Work is cut into stretches of a minute, so that passes can run in between. If a command is killed, others get the queue
when its stretch would have ended. Progress is kept only in the queue and the ledger, so an interrupted run goes on
when it is started again. Letters that were not chosen stay hidden until the end, or they would be received again and
again; then they are released.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Protocol

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.headline import short_name
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL
from smart_redriver.engine.model.circuit import Lease, Orders
from smart_redriver.engine.passes.circuit_keeper import ask_for_next_turn
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.engine.passes.read import read_letters
from smart_redriver.engine.passes.send_back import Forwarded, delete
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, ids_of
from smart_redriver.oncall.letters.fifo_order import COPY, out_of_reach
from smart_redriver.oncall.letters.look import handle_only, ledger_for
from smart_redriver.oncall.letters.presentation import is_of_one_here
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Advance, Terminal

LEASED_TIME = timedelta(seconds=60)
#: Time to finish the letters in hand after the work time; the lease covers it, too.
STOPPING_TIME = timedelta(seconds=30)
#: A pass lasts four minutes at most.
PATIENCE = timedelta(minutes=5)
_ASK_AGAIN_SECONDS = 2.0


def new_owner() -> str:
    """A name for the lease's owner while one command runs. Even two commands of one person wait for each other."""
    return f"oncall-{uuid.uuid4()}"


@contextmanager
def leased_work(session: Session, owner: str) -> Iterator[datetime]:
    """Wait for the lease, hold it, and yield the time when work has to stop. Raises Refused and CallFailed."""
    lease = _acquired(session, owner)
    try:
        session.letter_store.read_anew()
        yield lease.expires_at - STOPPING_TIME
    finally:
        try:
            session.store.release_lease(lease)
        except CallFailed as failed:
            session.terminal.warn(
                f"The lease could not be given back ({failed.code}); it ends by itself within "
                f"{int((LEASED_TIME + STOPPING_TIME).total_seconds())} s."
            )


def _acquired(session: Session, owner: str) -> Lease:
    patient_until = session.clock() + PATIENCE
    is_told = False
    while (now := session.clock()) < patient_until:
        lease = Lease(owner=owner, expires_at=now + LEASED_TIME + STOPPING_TIME)
        if session.store.acquire_lease(lease, now):
            return lease
        if session.place.process is not None:
            ask_for_next_turn(session.store, session.place.queue, owner, now)
        if not is_told:
            session.terminal.warn(
                "Another pass or person is at work on this queue; waiting up to five minutes for it to end."
            )
            is_told = True
        session.sleep(_ASK_AGAIN_SECONDS)
    raise Refused("The queue has been busy for five minutes. `redrive status` shows why.")


def tell_refused(terminal: Terminal, failed: Counter[str], faults: Iterable[EntryFault]) -> None:
    """Count faults in `failed`, and show the first answer of each kind once."""
    for fault in faults:
        kind = f"{fault.call}: {fault.code}"
        if kind not in failed and fault.detail:
            terminal.warn(f"{kind}: {fault.detail.rstrip('.')}.")
        failed[kind] += 1


class Throttle:
    """A limit of `rate` letters a second over all workers. A rate of 0 means no limit.

    Workers wait with nothing in hand: while they wait, both hidden letters and the lease could go to others.
    """

    def __init__(self, rate: float, clock: Callable[[], datetime]) -> None:
        self._rate = rate
        self._clock = clock
        self._free_at = clock()
        self._lock = Lock()

    def at_once(self, most: int) -> int:
        """How many letters to take in hand at once: those of five seconds, at most `most`."""
        return most if self._rate == 0 else max(1, min(most, int(self._rate * 5)))

    def side_by_side(self, most: int) -> int:
        """The number of workers, at most `most`: all they have in hand takes a second to send. At least one."""
        return most if self._rate == 0 else max(1, min(most, int(self._rate / self.at_once(10))))

    def wait_seconds(self) -> float:
        """Return the time until the next letter may be sent; 0 for now."""
        with self._lock:
            return max(0.0, (self._free_at - self._clock()).total_seconds())

    def spend(self, letters: int) -> None:
        """Note letters that are about to be sent."""
        if self._rate == 0 or letters == 0:
            return
        with self._lock:
            starts = max(self._clock(), self._free_at)
            self._free_at = starts + timedelta(seconds=letters / self._rate)


class NewPause:
    """Watches for a pause that begins after a command did. A pause of all the DLQ's queues is meant.

    Raises CallFailed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known = self._orders()

    def by(self) -> str:
        """Return who has paused the queue since the command began; empty if nobody has. Raises CallFailed."""
        orders = self._orders()
        if orders is None or orders == self._known:
            return ""
        return short_name(orders.by) or "somebody"

    def _orders(self) -> Orders | None:
        circuit = self._session.store.load_circuit()
        is_paused = circuit is not None and circuit.orders.pauses(self._session.clock())
        return circuit.orders if circuit is not None and is_paused else None


#: After a kill, the letters in hand are visible again after this time.
HIDDEN_FOR = timedelta(minutes=5)
#: After Ctrl-C, a command that waits for its rate goes on for at most this long.
_LONGEST_SLEEP_SECONDS = 5.0


#: The most letters whose outcomes are followed: nobody waits to see what became of each one beyond that.
_MOST_FOLLOWED = 1_000


@dataclass(slots=True)
class Tally:
    """The letters that a command has dealt with so far. `skipped` and `failed` count by reason.

    `first_done` has the original ids of the first letters that were done: enough to follow what becomes of them.
    `paused_by`: whose pause interrupted it; empty if none did.
    """

    done: int = 0
    discarded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    ids_done: set[str] = field(default_factory=set)
    first_done: set[str] = field(default_factory=set)
    was_interrupted: bool = False
    paused_by: str = ""


@dataclass(slots=True, kw_only=True)
class Acted:
    """The result of an act on a few letters: those done, and those skipped or refused, with the reason.

    `postponed` letters were not reached in time, and are received again under the next lease.
    """

    done: list[Case] = field(default_factory=list)
    postponed: list[Case] = field(default_factory=list)
    skipped: list[tuple[Case, str]] = field(default_factory=list)
    faults: list[EntryFault] = field(default_factory=list)


class Act(Protocol):
    """Applies the command to at most ten letters. Raises CallFailed."""

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:
        """Act on them. Start nothing new after `until`, when the lease is about to end."""
        ...


class Work:
    """One command's work through one queue. With `once_each`, a letter that comes back meanwhile is left there.

    `is_sent`: whether letters go to their source queues, where letters of a FIFO queue may not overtake each other.
    `heeds_pause`: whether a pause that begins meanwhile ends the work with the minute's stretch.
    """

    def __init__(
        self,
        session: Session,
        out_of: DeadLetters,
        choice: Choice,
        act: Act,
        *,
        limit: int | None = None,
        workers: int = 1,
        throttle: Throttle | None = None,
        once_each: bool = False,
        is_sent: bool = False,
        heeds_pause: bool = False,
    ) -> None:
        self._session = session
        self._out_of = out_of
        self._ledger = ledger_for(session, out_of)
        self._choice = choice
        self._act = act
        self._limit = limit
        # On a FIFO queue, letters in one worker's hand hide the rest of their groups: an empty answer to another worker
        # does not mean the end.
        self._workers = 1 if limit is not None or out_of.is_fifo else workers
        self._throttle = throttle
        if throttle is not None:
            self._workers = throttle.side_by_side(self._workers)
        self._once_each = once_each
        self._is_sent = is_sent
        self._heeds_pause = heeds_pause
        self._had: set[str] = set()
        self._few = ENTRIES_PER_CALL if throttle is None else throttle.at_once(ENTRIES_PER_CALL)
        self._tally = Tally()
        self._left: dict[str, Letter] = {}
        #: How many of the letters left behind were seen again since the last new one.
        self._met_again = 0
        self._has_postponed = False
        self._lock = Lock()
        self._is_over = False
        self._advance: Advance = lambda _: None

    def run(self, advance: Advance = lambda _: None) -> Tally:
        """Work until the queue shows no more, the limit is reached, Ctrl-C, or a pause that is heeded.

        Raises CallFailed and Refused.
        """
        self._advance = advance
        owner = new_owner()
        pause = NewPause(self._session) if self._heeds_pause else None
        with self._session.terminal.interrupts() as self._interrupts:
            try:
                while not self._has_to_stop():
                    with leased_work(self._session, owner) as ends_at:
                        if pause and (paused_by := pause.by()):
                            self._tally.paused_by = paused_by
                            break
                        self._work_until(ends_at)
                    if self._has_postponed:
                        # While the postponed letters were in hand, another worker may have found the queue empty.
                        self._is_over = self._has_postponed = False
            finally:
                self._release()
        is_ended = self._interrupts.came or bool(self._tally.paused_by)
        self._tally.was_interrupted = is_ended and not self._is_over
        return self._tally

    def _has_to_stop(self) -> bool:
        return self._is_over or self._interrupts.came

    def _work_until(self, ends_at: datetime) -> None:
        if self._workers == 1:
            self._work(ends_at)
            return
        with ThreadPoolExecutor(self._workers) as pool:
            for worker in [pool.submit(self._work, ends_at) for _ in range(self._workers)]:
                worker.result()

    def _work(self, ends_at: datetime) -> None:
        try:
            while not self._has_to_stop() and self._session.clock() < ends_at:
                if self._throttle and (wait := self._throttle.wait_seconds()):
                    self._session.sleep(min(wait, _LONGEST_SLEEP_SECONDS))
                    continue
                read = read_letters(self._out_of, self._ledger, self._few, hidden_for=HIDDEN_FOR)
                fresh = self._fresh(read.cases)
                if not read.cases or self._has_met_all_again():
                    self._is_over = True
                    return
                if fresh:
                    self._act_on(fresh, ends_at)
        except BaseException:
            self._is_over = True  # for the other workers
            raise

    def _fresh(self, cases: Sequence[Case]) -> list[Case]:
        """Return letters not seen before.

        Letters left behind are visible again after `HIDDEN_FOR`, and each receive hides them anew.
        """
        with self._lock:
            fresh = [case for case in cases if case.message_id not in self._left]
            again = [case for case in cases if case.message_id in self._left]
            self._left |= {case.message_id: handle_only(case.letter) for case in again}
            self._met_again = 0 if fresh else self._met_again + len(again)
        return fresh

    def _has_met_all_again(self) -> bool:
        """Whether all letters left behind came again, and no new one: there are no others, or no time to find them."""
        return bool(self._left) and self._met_again >= len(self._left)

    def _act_on(self, fresh: list[Case], ends_at: datetime) -> None:
        replaced, here = _apart(fresh)
        why = out_of_reach(here, is_sent=self._is_sent) if self._out_of.is_fifo else {}
        selection = [case for case in here if self._is_selected(case)]
        chosen = self._within_limit([case for case in selection if case.message_id not in why])
        discarded = self._delete(replaced)
        acted = self._act_on_chosen(chosen, ends_at)
        acted.skipped += [
            (one, why[one.message_id]) for one in selection if self._is_told(one, why)
        ]
        copies = _copies_of_done(here, why, acted)
        discarded_copies = self._delete(copies)
        left = _left_of(here, (*acted.done, *acted.postponed, *copies))
        with self._lock:
            self._left |= left
            self._had.update(case.original_id for case in acted.done)
            self._note_refused(chosen, acted)
            self._count(acted, replaced, discarded)
            self._count(Acted(), copies, discarded_copies)
        if acted.postponed:
            self._has_postponed = True
            self._out_of.hide((case.letter, timedelta()) for case in acted.postponed)
        self._advance(len(acted.done))

    def _delete(self, cases: Sequence[Case]) -> Forwarded:
        return delete([case.letter for case in cases], self._out_of)

    def _act_on_chosen(self, chosen: list[Case], ends_at: datetime) -> Acted:
        if self._throttle:
            self._throttle.spend(len(chosen))
        return self._act(chosen, until=ends_at) if chosen else Acted()

    def _is_selected(self, case: Case) -> bool:
        return self._choice.takes(case) and not (self._once_each and case.original_id in self._had)

    def _is_told(self, case: Case, why: Mapping[str, str]) -> bool:
        """Whether to report that it is left out. A copy that came back is reported only if somebody named it."""
        reason = why.get(case.message_id)
        return reason is not None and (reason != COPY or case.message_id in self._choice.ids)

    def _within_limit(self, chosen: list[Case]) -> list[Case]:
        if self._limit is None:
            return chosen
        return chosen[: self._limit - self._tally.done]

    def _count(self, acted: Acted, replaced: Sequence[Case], discarded: Forwarded) -> None:
        tally = self._tally
        tally.done += len(acted.done)
        room = _MOST_FOLLOWED - len(tally.first_done)
        tally.first_done |= {case.original_id for case in acted.done[:room]}
        tally.discarded += discarded.removed
        tally.skipped.update(reason for _, reason in acted.skipped)
        refused = [*acted.faults, *discarded.not_deleted]
        tell_refused(self._session.terminal, tally.failed, refused)
        if self._choice.ids:
            for case in (
                *acted.done,
                *self._of_gone(replaced),
                *(case for case, _ in acted.skipped),
            ):
                tally.ids_done |= ids_of(case)
        has_all_ids = bool(self._choice.ids) and self._choice.ids <= tally.ids_done
        if has_all_ids or (self._limit is not None and tally.done >= self._limit):
            self._is_over = True

    def _of_gone(self, replaced: Sequence[Case]) -> list[Case]:
        """Left-over copies whose letters are no longer here. A letter that is here has another copy under its name."""
        is_dlq = self._out_of is not self._session.parking_lot
        return [one for one in replaced if not is_of_one_here(one, to_dlq=is_dlq)]

    def _note_refused(self, chosen: Sequence[Case], acted: Acted) -> None:
        """Count named letters that were refused as dealt with, too: they are there, and stay where they are."""
        refused = {fault.key for fault in acted.faults} if self._choice.ids else set()
        for case in chosen:
            if case.message_id in refused:
                self._tally.ids_done |= ids_of(case)

    def _release(self) -> None:
        if self._left:
            self._out_of.hide((letter, timedelta()) for letter in self._left.values())


def _apart(fresh: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Letters whose id was replaced, and the others."""
    replaced = [case for case in fresh if case.is_replaced]
    return replaced, [case for case in fresh if not case.is_replaced]


def _left_of(here: Sequence[Case], done: Sequence[Case]) -> dict[str, Letter]:
    """Return the handles that release the letters that stay, by message id."""
    gone = {case.message_id for case in done}
    return {
        case.message_id: handle_only(case.letter) for case in here if case.message_id not in gone
    }


def _copies_of_done(here: Sequence[Case], why: Mapping[str, str], acted: Acted) -> list[Case]:
    """Returned copies of letters that are done now: the ledger has named them as replaced since."""
    done = {case.original_id for case in acted.done}
    return [
        case
        for case in here
        if why.get(case.message_id) == COPY
        and case.original_id in done
        and case.entry is not None
        and case.entry.current_id == case.message_id
    ]
