"""`redrive replay`: letters back to their source queue, once their cause is mended."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.ledger_scan import parked_entries
from smart_redriver.oncall.letters.presentation import label
from smart_redriver.oncall.moving.ending import finish, summary_of, tally_in_words
from smart_redriver.oncall.moving.sending import SendBack
from smart_redriver.oncall.moving.throttle import Throttle
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import letters, listed

#: Letters on AWS need five calls for each ten; eight workers make several hundred a second of that.
WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What to replay and how. `rate` is letters a second, 0 for no limit, None for the setting `max_rate`."""

    choice: Choice
    from_dlq: bool = False
    rate: float | None = None
    validate: str | None = None
    reason: str = ""
    is_dry_run: bool = False
    workers: int = WORKERS


@dataclass(slots=True)
class Plan:
    """What would happen. `count` is exact where the ledger alone can tell, else at most."""

    count: int
    groups: Counter[str]
    rate: float
    is_exact: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": {
                "count": self.count,
                "is_exact": self.is_exact,
                "rate": self.rate,
                "groups": dict(self.groups),
            }
        }


def replay(session: Session, request: ReplayRequest) -> Exit:
    """Show the plan, ask, send back. Raises CallFailed and Refused."""
    validate = validator(request.validate) if request.validate else None
    plan = _plan(session, request)
    _tell_plan(session, request, plan)
    if request.is_dry_run:
        session.terminal.result(plan.to_json())
        session.terminal.say("Nothing was changed: this was a dry run.")
        return Exit.DONE
    session.terminal.confirm("Send them back?")
    out_of = session.letters_in(dlq=request.from_dlq)
    note = f"replayed by {session.who}" + (f": {request.reason}" if request.reason else "")
    throttle = Throttle(plan.rate, session.clock, session.sleep)
    work = Work(
        session,
        out_of,
        request.choice,
        SendBack(session, out_of, note=note, validate=validate),
        workers=request.workers,
        throttle=throttle,
    )
    what = f"replay {request.choice.in_words()}{' from the DLQ' if request.from_dlq else ''}"
    with (
        recorded(session, what, request.reason) as ended,
        session.terminal.progress("Replaying", plan.count or None) as advance,
    ):
        tally = work.run(advance)
        ended.extend(tally_in_words(tally, "replayed"))
    return finish(session, tally, request.choice, "replayed")


def _plan(session: Session, request: ReplayRequest) -> Plan:
    rate = session.settings.max_rate if request.rate is None else request.rate
    depth = session.letters_in(dlq=request.from_dlq).facts().depth
    if not depth:
        where = "The DLQ" if request.from_dlq else "The parking lot"
        raise Refused(f"{where} is empty: there is nothing to replay. `redrive status` tells more.")
    if request.from_dlq:
        ids = len(request.choice.ids)
        is_exact = bool(ids) or request.choice.filter.is_empty
        return Plan(ids or depth, Counter({"in the DLQ": ids or depth}), rate, is_exact)
    groups: Counter[str] = Counter()
    listed = 0
    for entry in parked_entries(session):
        listed += 1
        if request.choice.takes_entry(entry):
            groups[" · ".join(label(entry))] += 1
    is_all = request.choice.filter.is_empty and not request.choice.ids
    unlisted = max(0, depth - listed)
    if unlisted and (is_all or not groups):
        groups["not in the ledger"] = unlisted
    if not groups:
        raise Refused("No parked letter matches. `redrive parked --list` shows what there is.")
    is_exact = is_all or not (unlisted or request.choice.filter.needs_body)
    return Plan(groups.total(), groups, rate, is_exact)


def _tell_plan(session: Session, request: ReplayRequest, plan: Plan) -> None:
    say = session.terminal.plan
    most = "" if plan.is_exact else "at most "
    pace = "as fast as it goes"
    if plan.rate:
        pace = f"{plan.rate:g} a second, about {math.ceil(plan.count / plan.rate):,} s"
    say(f"Plan: replay {most}{letters(plan.count)} to {listed(session.place.sources)}, {pace}:")
    for line in summary_of(plan.groups):
        say(line)
    if not request.choice.filter.is_empty:
        say(f"Only those {request.choice.filter.in_words()}.")
    if request.validate:
        say(f"Each body is given to `{request.validate}` first; those it refuses stay.")
    say("Each keeps its trail and starts with no strikes.")
    if request.from_dlq:
        say(
            "What is replayed from the DLQ is no evidence to the circuit breaker; `redrive drain` is."
        )
