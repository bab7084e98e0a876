"""Looks through a queue for letters near expiry: the retention guard's hands.

A sweep releases nothing: what it leaves stays hidden until the pass is over, or it would meet the same letters again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from redrive.core.circuit import Circuit
from redrive.core.report import Report
from redrive.core.retention import SWEEP_LIMIT, is_expiring, is_worth_renewing
from redrive.core.triage import Discard, Park, ParkReason, count_strikes
from redrive.passes.rounds import ROUND_SIZE, Examined, Rounds


class Sweep:
    """One look through one queue, by the `rounds` that receive from it."""

    def __init__(
        self,
        rounds: Rounds,
        report: Report,
        *,
        retention: timedelta,
        clock: Callable[[], datetime],
        deadline: datetime,
    ) -> None:
        self._rounds = rounds
        self._report = report
        self._retention = retention
        self._clock = clock
        self._deadline = deadline
        #: Letters that should have gone are still there: the next pass has to look again.
        self.has_unfinished_work = False
        self._has_sent_any = False

    def park_expiring(self, circuit: Circuit, *, hidden_for: timedelta) -> datetime | None:
        """Park the DLQ's letters near expiry; the first send of the oldest one that stays. Raises CallFailed."""
        oldest: datetime | None = None
        left = SWEEP_LIMIT
        while left > 0 and (examined := self._gather(hidden_for)):
            now = self._clock()
            replaced = [one for one in examined if _is_replaced(one)]
            self._rounds.apply_discards([(one, Discard()) for one in replaced])
            here = [one for one in examined if one not in replaced]
            for one in here:
                self._report.saw_letter(one.letter.sent_at, self._retention, now)
            expiring = [one for one in here if is_expiring(one.letter, self._retention, now)]
            self._send_on(
                self._rounds.apply_parks,
                [
                    (
                        one,
                        Park(
                            reason=ParkReason.EXPIRING,
                            strikes=count_strikes(one.letter, one.entry, circuit),
                        ),
                    )
                    for one in expiring
                ],
                now,
            )
            oldest = _oldest(oldest, [one for one in here if one not in expiring])
            left -= len(examined) - len(expiring)
        return oldest

    def renew_parked(self, *, hidden_for: timedelta) -> datetime | None:
        """Send parked letters to the parking lot anew; the send of the oldest one now in it. Raises CallFailed."""
        oldest: datetime | None = None
        while examined := self._gather(hidden_for):
            now = self._clock()
            replaced = [one for one in examined if _is_replaced(one)]
            self._rounds.apply_discards([(one, Discard()) for one in replaced])
            here = [one for one in examined if one not in replaced]
            renewed = [one for one in here if is_worth_renewing(one.letter, self._retention, now)]
            self._send_on(self._rounds.renew, [(one, _as_it_was(one)) for one in renewed], now)
            oldest = _oldest(oldest, [one for one in here if one not in renewed])
            if renewed:
                oldest = min(oldest or now, now)
        return oldest

    def _send_on(
        self,
        send: Callable[[Sequence[tuple[Examined, Park]], datetime], bool],
        letters: Sequence[tuple[Examined, Park]],
        now: datetime,
    ) -> None:
        if letters:
            self._has_sent_any = True
            self.has_unfinished_work |= not send(letters, now)

    def _gather(self, hidden_for: timedelta) -> list[Examined]:
        if self._clock() >= self._deadline:
            # A sweep that found work and ran out of time has more; one that found none met the oldest letters.
            self.has_unfinished_work |= self._has_sent_any
            return []
        return self._rounds.gather(ROUND_SIZE, hidden_for=hidden_for)


def _is_replaced(one: Examined) -> bool:
    return one.entry is not None and one.entry.has_replaced(one.letter.message_id)


def _as_it_was(one: Examined) -> Park:
    known = {reason.value: reason for reason in ParkReason}
    reason = known.get((one.entry and one.entry.park_reason) or "", ParkReason.EXPIRING)
    return Park(reason=reason, strikes=one.entry.strikes if one.entry else 0)


def _oldest(so_far: datetime | None, examined: list[Examined]) -> datetime | None:
    return (
        min((one.letter.sent_at for one in examined), default=so_far)
        if so_far is None
        else min((so_far, *(one.letter.sent_at for one in examined)))
    )
