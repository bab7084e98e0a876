"""Which due letters may go now: hands out the permit's room and the rate, letter by letter. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY
from smart_redriver.engine.model.batch import APART, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import Permit
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.cause_gate import CauseGate
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
    Renew,
)
from smart_redriver.engine.triage.ordered import Fate, LookAhead, fate, in_order
from smart_redriver.engine.triage.triage import Terms, failed_at, hold_unless_expiring, triage

#: Letters that stay as controls, and the fewest letters to choose them from.
CONTROLS = 3
CONTROLS_AMONG = 8

#: If many letters fail while others succeed, a control may be poison, too. Enough stay that half of them are all poison
#: only with this chance; a half has at most `MOST_CONTROLS`.
CHANCE_OF_NO_CONTROL = 0.02
MOST_CONTROLS = 12

#: The longest time that suspects wait to be compared: if producers' messages keep coming, some batch is always out.
CONTROLS_PATIENCE = timedelta(hours=1)

#: A trial takes a suspect when the other letters have had this many more redrives. Never to try one would be wrong: a
#: letter without strikes can be poison, and a suspect can be a good letter whose downstream is up again.
SUSPECTS_TURN = 2

#: A flapping consumer can be in step with verdicts, so that each batch meets it while it is down. Each time that
#: happened, letters are spread by this much more, unless they go at a rate, which spreads them.
SPREAD = timedelta(minutes=1)


class Admission:
    """Decides about the letters of one source queue, round by round. `room`: letters that may still go.

    `awaits_suspects`: letters of successful batches are still being tried, and may come back.
    """

    def __init__(
        self,
        circuit: Circuit,
        permit: Permit,
        settings: Settings,
        now: datetime,
        gate: CauseGate | None = None,
        *,
        awaits_suspects: bool,
        is_quiet: bool = False,
        can_delay: bool = True,
        ahead: timedelta | None = None,
        owed_since: datetime | None = None,
    ) -> None:
        self._gate = gate or CauseGate(circuit, settings, 0.0)
        self._is_trial = permit.is_trial
        self._spread = SPREAD * circuit.flaps * (circuit.rate is None)
        self._nearly_convicted = 0
        self._settings = settings
        self._awaits_suspects = awaits_suspects
        self._is_quiet = is_quiet
        self._expects_suspects = awaits_suspects
        self._suspects = 0
        self._controls_held = 0
        self._have_company = False
        #: Suspects that go beside controls and take no room.
        self.beside_controls = 0
        #: When the last suspect seen becomes visible that is hidden because its send can't be delayed.
        self.suspects_until = circuit.suspects_until
        self._look_ahead = LookAhead(circuit, now)
        rate = _rate(circuit, settings.max_rate, now)
        if permit.is_apart:
            apart = 1 / APART.total_seconds()
            rate = min(rate or apart, apart)
        starts_at = _paced_from(circuit, now) if can_delay else circuit.paced_until
        self._pacer = Pacer(rate, starts_at, owed_since)
        for one in circuit.pending:
            if one.is_complete:
                self._pacer.book(one.size, one.first_try_at, one.tried_by, now)
        # A letter that gets no second within `ahead` is not worth receiving.
        seconds = self._pacer.room(now, ahead) if ahead is not None else permit.limit
        self.room = min(permit.limit, seconds)
        self._is_rated = self.room < permit.limit

    @property
    def waits_for_rate(self) -> bool:
        """Whether the rate is used up, and allowed fewer letters than the permit."""
        return self._is_rated and self.room <= 0

    @property
    def paced_until(self) -> datetime | None:
        """The time up to which admitted letters use up the rate."""
        return self._pacer.until

    def decide(
        self,
        cases: Sequence[Case],
        rolls: Sequence[float],
        circuit: Circuit,
        terms: Terms,
        now: datetime,
        *,
        beyond: float = math.inf,
    ) -> list[tuple[Case, Decision]]:
        """Decide about each letter, with one roll for each. `beyond`: for each, so many in the DLQ are not in hand yet.

        Letters near their expiry go first, then letters without strikes, oldest first, because a suspect proves little.
        A trial takes the least redriven letter, and a suspect two redrives later: if it always took the same letter,
        and that were poison, no canary would ever succeed. The first letter that gets no second within the rate, at
        most 15 minutes ahead, ends the room: the next pass goes on.
        """
        decided: list[tuple[Case, Decision]] = []
        due: list[tuple[Case, Redrive]] = []
        self._gate.look_at(cases, now)
        for case, decision in self._triaged(cases, rolls, circuit, terms, now):
            if isinstance(decision, Redrive):
                due.append((case, decision))
            else:
                decided.append((case, decision))
        due, held = self._gate.let_through(due, terms, now, is_trial=self._is_trial)
        decided += held
        due.sort(key=lambda one: self._order(*one))
        if terms.is_fifo:
            due, waiting = self._look_ahead.let_through(due)
            decided += [(case, _awaiting(case, what.strikes, terms, now)) for case, what in waiting]
        in_no_hurry = [one for one in due if not one[1].is_expiring]
        self._suspects += sum(not what.is_unblemished for _, what in in_no_hurry)
        if _are_followed(due, decided):
            beyond = math.inf
        self._note_held_back(decided, terms, now)
        self._note_suspects([case for case, _ in in_no_hurry], circuit, now)
        controls = self._controls(in_no_hurry, circuit, terms, now, beyond)
        for (case, decision), roll in zip(due, rolls, strict=False):
            what: Decision
            if case.message_id in controls:
                what = hold_unless_expiring(case, decision.strikes, HoldReason.CONTROL, terms, now)
            else:
                what = self._admit(case, decision, terms, now, roll)
            self._gate.went(case, what)
            decided.append((case, what))
        self._gate.decided(decided)
        return decided

    def _triaged(
        self,
        cases: Sequence[Case],
        rolls: Sequence[float],
        circuit: Circuit,
        terms: Terms,
        now: datetime,
    ) -> Iterable[tuple[Case, Decision]]:
        """Each letter's decision, as if the permit were unlimited."""
        decided = [
            (case, self._triage(case, circuit, terms, now, roll))
            for case, roll in zip(cases, rolls, strict=True)
        ]
        return in_order(decided, terms, self._settings, now) if terms.is_fifo else decided

    def _triage(
        self, case: Case, circuit: Circuit, terms: Terms, now: datetime, roll: float
    ) -> Decision:
        if case.is_kept and (held := self._kept(case, circuit, terms, now)):
            return held
        decision = triage(case, circuit, terms, self._settings, now, roll)
        is_in_dlq = isinstance(decision, Redrive | Hold)
        if is_in_dlq and self._gate.convicted(case, terms, now):
            return Park(reason=ParkReason.MAX_ATTEMPTS, strikes=case.strikes(circuit))
        return decision

    def _kept(self, case: Case, circuit: Circuit, terms: Terms, now: datetime) -> Decision | None:
        """The decision about a letter whose copy is out or done; None if the copy is back."""
        match fate(case, circuit, terms, self._settings, now):
            case Fate.DONE:
                return Discard(reason="SUCCEEDED")
            case Fate.OUT:
                return _awaiting(case, case.strikes(circuit), terms, now)
            case Fate.BACK:
                return None

    def _note_held_back(
        self, decided: Sequence[tuple[Case, Decision]], terms: Terms, now: datetime
    ) -> None:
        """Note suspects that wait for their backoff because their send can't be delayed: the controls are for them."""
        if terms.is_fifo or terms.longest_delay:
            return
        waits = [
            what.until
            for _, what in decided
            if isinstance(what, Hold)
            and what.reason is HoldReason.BACKOFF
            and what.strikes > 0
            and what.until <= now + MAX_SQS_DELAY
        ]
        if waits:
            self.suspects_until = max([*waits, self.suspects_until or now])
            self._awaits_suspects = self._expects_suspects = True

    def _note_suspects(self, due: Sequence[Case], circuit: Circuit, now: datetime) -> None:
        self._expects_suspects = (
            self._expects_suspects
            or circuit.has_suspects
            or (self._is_quiet and _are_many_out(circuit, now))
            or any(_came_back_from_a_success(case, circuit) for case in due)
        )

    def _controls(
        self,
        due: Sequence[tuple[Case, Redrive]],
        circuit: Circuit,
        terms: Terms,
        now: datetime,
        beyond: float,
    ) -> set[str]:
        """If there are or may be suspects, the last few letters without strikes stay until the batch's verdict.

        Letters that were never tried are the best controls. Afterwards they go together with the suspects, which wait
        for that, too: without controls, a suspect on a quiet queue can't be told from a letter that met an outage. Half
        of the controls then stay once more, because letters that become suspects only now must be compared, too. If a
        message takes long to fail, letters that are still being tried may be the first suspects.
        """
        if not self._wants_controls(due, beyond):
            return set()
        unblemished = [case for case, decision in due if decision.is_unblemished]
        unblemished.sort(key=attrgetter("redrives"), reverse=True)
        controls = _enough_controls(circuit, self._suspects) if self._is_quiet else CONTROLS
        # As many of those not in hand yet are likely to have no strikes.
        in_all = len(unblemished) * (1 + beyond) + self._controls_held
        is_few = in_all < CONTROLS_AMONG - CONTROLS + controls
        suspects = _patient_suspects(due, terms, now)
        # They stay for a verdict that is still to come.
        if is_few and not (in_all and (circuit.pending or self._awaits_suspects)):
            kept = _later_controls(unblemished, controls // 2)
            return kept | suspects if self._lack_company(unblemished, kept, beyond) else kept
        stay = max(0, controls - self._controls_held)
        kept = {case.message_id for case in unblemished[max(0, len(unblemished) - stay) :]}
        self._controls_held += len(kept)
        return suspects | kept

    def _lack_company(self, unblemished: Sequence[Case], kept: set[str], beyond: float) -> bool:
        """Whether suspects of a quiet queue have to wait for another round, as this one has no control beside them."""
        self._have_company |= self._is_quiet and len(kept) < len(unblemished)
        are_more = beyond > 0 or self._controls_held > 0
        return self._is_quiet and are_more and not self._have_company

    def _wants_controls(self, due: Sequence[tuple[Case, Redrive]], beyond: float) -> bool:
        """Whether there are or may be suspects, and these are the last letters."""
        if self._is_trial or not self._expects_suspects:
            return False
        if not self._is_quiet:
            return not beyond and len(due) < self.room
        # If no other messages succeed, the letters to compare with must not all go before the suspects.
        waiting = sum(what.is_unblemished for _, what in due)
        return self._controls_held > 0 or waiting * (1 + beyond) < self.room

    def _order(self, case: Case, decision: Redrive) -> tuple[bool, int, bool, timedelta, datetime]:
        is_suspect = not decision.is_unblemished
        turn = self._is_trial * (case.redrives + SUSPECTS_TURN * is_suspect)
        return (
            not decision.is_expiring,
            turn,
            is_suspect,
            decision.delay,
            case.letter.sent_at,
        )

    def _admit(
        self, case: Case, decision: Redrive, terms: Terms, now: datetime, roll: float
    ) -> Decision:
        # A trial goes at once, because it has to show how the consumer is now. So do letters that can't be delayed.
        can_delay = terms.longest_delay > timedelta()
        is_at_once = self._is_trial or not can_delay
        wanted = timedelta() if is_at_once else self._spread_out(decision, terms, roll)
        ahead = min(wanted + terms.ahead, terms.longest_delay or terms.ahead)
        # All suspects go beside the same controls: they are expected to fail, so the window isn't for them.
        is_free = self._have_company and not decision.is_unblemished
        slot = self._pacer.slot(wanted, now, ahead) if self.room > 0 or is_free else None
        if slot is None:
            self._is_rated |= self.room > 0
            self.room = 0
            return hold_unless_expiring(case, decision.strikes, HoldReason.NO_PERMIT, terms, now)
        if is_free:
            self.beside_controls += 1
        else:
            self.room -= 1
        self._nearly_convicted += self._is_nearly_convicted(decision)
        return replace(decision, delay=slot) if can_delay else decision

    def _spread_out(self, decision: Redrive, terms: Terms, roll: float) -> timedelta:
        """The delay of a letter: its backoff, and more if it must be kept apart from certain others."""
        spread = self._spread * roll
        if self._is_nearly_convicted(decision):
            # If there is no time for all, the rest go in between.
            spread += APART * (self._nearly_convicted + roll)
        free = terms.longest_delay - decision.delay
        return decision.delay + (
            spread % free if spread > free > timedelta() else min(spread, free)
        )

    def _is_nearly_convicted(self, decision: Redrive) -> bool:
        return 0 < decision.strikes >= self._settings.max_attempts - 1


def _are_many_out(circuit: Circuit, now: datetime) -> bool:
    """Whether the first suspects may be about to return. If all others went, none could be compared with them."""
    return sum(one.size for one in circuit.pending if now < one.due_at) >= CONTROLS_AMONG


def _enough_controls(circuit: Circuit, suspects: int) -> int:
    """How many letters stay so that a good one is likely in the larger half of them, which goes first.

    The suspects that this pass has met may have failed since the last verdict.
    """
    if not circuit.fared.succeeded:
        return CONTROLS
    fared = replace(circuit.fared, failed=max(circuit.fared.failed, suspects))
    half = next(
        n
        for n in range(1, MOST_CONTROLS + 1)
        if n == MOST_CONTROLS or fared.chance_that_all_fail(n) <= CHANCE_OF_NO_CONTROL
    )
    return max(CONTROLS, 2 * half - 1)


def _patient_suspects(due: Sequence[tuple[Case, Redrive]], terms: Terms, now: datetime) -> set[str]:
    """The suspects that can wait longer to be compared."""
    since = now - CONTROLS_PATIENCE
    return {
        case.message_id
        for case, decision in due
        if not decision.is_unblemished and failed_at(case, terms, now) > since
    }


def _later_controls(unblemished: Sequence[Case], most: int) -> set[str]:
    """Up to half of the least redriven letters without strikes: the others go now, and these go with later suspects.

    Letters with more redrives in vain don't stay: they may all be unrecognized suspects.
    """
    least = [one for one in unblemished if one.redrives == unblemished[-1].redrives]
    kept = min(most, len(least) // 2)
    return {case.message_id for case in least[len(least) - kept :]}


def _awaiting(case: Case, strikes: int, terms: Terms, now: datetime) -> Hold | Park | Renew:
    return hold_unless_expiring(case, strikes, HoldReason.AWAITING_VERDICT, terms, now)


def _are_followed(
    due: Sequence[tuple[Case, Redrive]], decided: Sequence[tuple[Case, Decision]]
) -> bool:
    """Whether letters follow in the groups of those without strikes: they can be compared with later."""
    ahead = {case.letter.group_id for case, decision in due if decision.is_unblemished}
    return any(
        isinstance(what, Hold) and what.reason is HoldReason.GROUP and case.letter.group_id in ahead
        for case, what in decided
    )


def _came_back_from_a_success(case: Case, circuit: Circuit) -> bool:
    judged = circuit.judged_batch(case.batch)
    return case.is_suspect or (judged is not None and judged.verdict is Verdict.SUCCESS)


def _rate(circuit: Circuit, max_rate: float, now: datetime) -> float:
    """Letters a second: what the consumer can bear, up to the setting, or above it while a person's drain is on.

    0 means no limit.
    """
    if max_rate and circuit.orders.drains(now):
        max_rate = max(max_rate, circuit.orders.drain_rate or max_rate)
    borne = circuit.rate.per_second if circuit.rate is not None else 0.0
    return min(max_rate or borne, borne or max_rate)


def _paced_from(circuit: Circuit, now: datetime) -> datetime | None:
    """The first free second. Letters that go at once and letters that wait for a second reach the consumer together."""
    if circuit.rate is None:
        return circuit.paced_until
    # The last second of the previous pass may be full.
    return max(now, circuit.paced_until or now) + timedelta(seconds=1)


class Pacer:
    """Deals out the seconds of one pass so that the consumer sees at most `max_rate` letters in each.

    SQS itself does the waiting, by `DelaySeconds`: a pass that redrives 10,000 letters in five seconds still
    reaches the consumer as a steady stream. Seconds are counted on the wall clock and not from each send, or the
    rounds of one pass would share some. State: one counter a second, at most those of a pass and 901 more.
    `starts_at` is where the previous pass left off: its letters may still be on their way. The seconds after
    `owed_since` that have passed are dealt out, too, to letters that are wanted at once.
    """

    def __init__(
        self,
        max_rate: float,
        starts_at: datetime | None = None,
        owed_since: datetime | None = None,
    ) -> None:
        self._rate = max_rate
        self._taken: defaultdict[int, float] = defaultdict(float)
        self._first = math.ceil(starts_at.timestamp()) if starts_at and max_rate else 0
        self._owed_from = int(owed_since.timestamp()) + 1 if owed_since and max_rate else None
        #: The rate is used up to here: the next pass starts here.
        self.until = starts_at

    def book(self, letters: int, first: datetime, last: datetime, now: datetime) -> None:
        """Book letters of an earlier pass that are on their way until `last`, spread evenly over the seconds."""
        seconds = (last - first).total_seconds()
        if not self._rate or last <= now or not seconds:
            return
        start, end = int(now.timestamp()), math.ceil(last.timestamp())
        for second in range(start, end):
            self._taken[second] += letters / seconds

    def slot(
        self, wanted: timedelta, now: datetime, ahead: timedelta = MAX_SQS_DELAY
    ) -> timedelta | None:
        """The delay from `now` to the first free second at or after `wanted`; None if it is more than `ahead`."""
        start, last = int(now.timestamp()), int(ahead.total_seconds())
        wait, first = math.ceil(wanted.total_seconds()), self._first_second(start) - start
        earliest = max(wait, first) if wait else first
        delay = earliest
        while delay <= last and self._rate and not self._has_room(start + delay):
            delay += 1
        if delay > last:
            return None
        self._taken[start + delay] += 1
        if self._rate:
            self._note_used_up(start, delay, has_waited=delay - earliest > 2 / self._rate)
        return timedelta(seconds=max(0, delay))

    def room(self, now: datetime, ahead: timedelta) -> int:
        """Return how many letters get a second from now until `ahead`."""
        start, end = int(now.timestamp()), int((now + ahead).timestamp())
        return sum(self._left(second) for second in range(self._first_second(start), end + 1))

    def _first_second(self, start: int) -> int:
        """The first second that is not used up: before `start` if seconds are owed."""
        return max(self._first, min(start, self._owed_from or start))

    def _note_used_up(self, start: int, delay: int, *, has_waited: bool) -> None:
        """Note the first second that has room, and the last one that a letter had to wait for.

        At a slow rate the first letter uses up the rate for a while. Passes may follow each other within seconds, and
        without this each would find the same second free.
        """
        first, last = self._first_second(start), start + int(MAX_SQS_DELAY.total_seconds())
        while first <= last and not self._has_room(first):
            first += 1
        until = max(first, start + delay) if has_waited else first
        self._first = first
        if until > start:
            ends = datetime.fromtimestamp(until, UTC)
            self.until = max(self.until or ends, ends)

    def _has_room(self, second: int) -> bool:
        return self._left(second) > 0

    def _left(self, second: int) -> int:
        # A rate below one a second allows a letter only in some seconds: floor((s+1)r) - floor(sr).
        allowed = math.floor((second + 1) * self._rate) - math.floor(second * self._rate)
        return max(0, math.ceil(allowed - self._taken.get(second, 0.0)))
