"""`redrive replay`: letters back to their source queue, once their cause is mended."""

from __future__ import annotations

import math
from dataclasses import dataclass

from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words
from smart_redriver.oncall.moving.group_order import tell_order
from smart_redriver.oncall.moving.meant import Meant, find_meant, tell_meant
from smart_redriver.oncall.moving.sending import SendBack
from smart_redriver.oncall.moving.throttle import Throttle
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.words import letters, listed

#: Letters on AWS need five calls for each ten; eight workers make several hundred a second of that.
WORKERS = 8

#: Letters a second: one in some seventeen minutes.
SLOWEST = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What to replay and how. `rate` is letters a second, 0 for no limit, None for the setting `max_rate`.

    `insists`: although the queue is paused, or its circuit not closed.
    """

    choice: Choice
    from_dlq: bool = False
    rate: float | None = None
    validate: str | None = None
    reason: str = ""
    is_dry_run: bool = False
    insists: bool = False
    workers: int = WORKERS


def replay(session: Session, request: ReplayRequest) -> Exit:
    """Show the plan, ask, send back. Raises CallFailed and Refused."""
    validate = validator(request.validate) if request.validate else None
    rate = session.settings.max_rate if request.rate is None else request.rate
    if 0 < rate < SLOWEST:
        raise Misused(
            f"{rate:g} letters a second are too few: {SLOWEST:g} at least, or 0 for no limit."
        )
    meant = find_meant(session, request.choice, from_dlq=request.from_dlq, is_sent=True)
    _tell_plan(session, request, meant, rate)
    standing = tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, {**meant.to_json(), "rate": rate})
    confirm_sending(session, "Send them back?", standing, insists=request.insists)
    out_of = session.letters_in(dlq=request.from_dlq, ids=request.choice.ids)
    note = session.signed("replayed", request.reason)
    throttle = Throttle(rate, session.clock)
    work = Work(
        session,
        out_of,
        request.choice,
        SendBack(session, out_of, note=note, validate=validate),
        workers=request.workers,
        throttle=throttle,
        is_sent=True,
        once_each=True,  # what its consumer parks again at once would be sent for as long as this runs
    )
    what = f"replay {request.choice.in_words()}{' from the DLQ' if request.from_dlq else ''}"
    with (
        recorded(session, what, request.reason) as ended,
        session.terminal.progress("Replaying", meant.count) as advance,
    ):
        tally = work.run(advance)
        ended.extend(tally_in_words(tally, "replayed"))
    return finish(session, tally, request.choice, "replayed", planned=meant.count, out_of=out_of)


def _tell_plan(session: Session, request: ReplayRequest, meant: Meant, rate: float) -> None:
    say = session.terminal.plan
    least = "" if meant.is_exact else "at least "
    pace = "as fast as it goes"
    if rate:
        pace = f"{rate:g} a second, about {math.ceil(meant.count / rate):,} s"
    say(f"Plan: replay {least}{letters(meant.count)} to {listed(session.place.sources)}, {pace}:")
    tell_meant(session, request.choice, meant)
    if request.validate:
        say(f"Each body is given to `{request.validate}` first; those it refuses stay.")
    say("Each keeps its trail and starts with no strikes.")
    tell_order(session, from_dlq=request.from_dlq)
    if request.from_dlq:
        say(
            "What is replayed from the DLQ is no evidence to the circuit breaker; `redrive drain` is."
        )
