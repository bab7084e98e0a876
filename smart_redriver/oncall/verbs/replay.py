"""`redrive replay`: sends letters back to their source queue, once their cause is fixed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of
from smart_redriver.oncall.letters.look import with_full_ids
from smart_redriver.oncall.letters.presentation import label
from smart_redriver.oncall.moving.ending import (
    destinations_in_words,
    end_dry_run,
    finish,
    tally_in_words,
    tell_new_start,
    tell_order,
)
from smart_redriver.oncall.moving.selection import (
    IN_THE_DLQ,
    Selection,
    find_selection,
    tell_selection,
)
from smart_redriver.oncall.moving.sending import SendBack, Validate, validator
from smart_redriver.oncall.moving.work import Throttle, Work
from smart_redriver.oncall.status.outlook import Basis, forecast
from smart_redriver.oncall.status.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import span

#: On AWS, ten letters need five calls; eight workers manage several hundred letters a second.
WORKERS = 8

#: Letters a second: one in about seventeen minutes.
SLOWEST = 0.001

#: The answer that sends one letter before the others.
_ONE = "one"
#: The next minute's pass reads reports. Without reports, CloudWatch shows the outcome within five minutes.
_OUTCOME_WITHIN = timedelta(minutes=5)
_BETWEEN_LOOKS_SECONDS = 10.0
_UNKNOWN = "nothing is known yet: `redrive show ID` tells later"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """The letters to replay, and how. `rate` is letters a second, 0 for no limit, None for the setting `max_rate`.

    `insists`: even if the queue is paused, or its circuit is not closed. `follows`: wait until the outcomes are known.
    """

    choice: Choice
    from_dlq: bool = False
    rate: float | None = None
    validate: str | None = None
    reason: str = ""
    is_dry_run: bool = False
    insists: bool = False
    follows: bool = False
    workers: int = WORKERS


def replay(session: Session, request: ReplayRequest) -> Exit:
    """Show the plan, ask, send back. Raises CallFailed and Refused."""
    validate = validator(request.validate) if request.validate else None
    rate = session.settings.max_rate if request.rate is None else request.rate
    if 0 < rate < SLOWEST:
        raise Misused(
            f"{rate:g} letters a second are too few: {SLOWEST:g} at least, or 0 for no limit."
        )
    request = replace(request, choice=with_full_ids(session, request.choice))
    selection = find_selection(session, request.choice, from_dlq=request.from_dlq, is_sent=True)
    _tell_plan(session, request, selection, rate)
    standing = tell_standing(session)
    basis = Basis(
        groups=causes_of(selection),
        came_back=selection.came_back,
        part=selection.in_hand if selection.in_hand < selection.count else None,
    )
    for line in forecast(standing.seen, standing.circuits, basis):
        session.terminal.plan(printable(line))
    if request.is_dry_run:
        return end_dry_run(session, {**selection.to_json(), "rate": rate})
    first = selection.samples[0].original_id if selection.count > 1 and selection.samples else None
    is_one = confirm_sending(
        session,
        "Send them back?",
        standing,
        insists=request.insists,
        to=selection.queues,
        other=_ONE if first else None,
    )
    if is_one and first:
        one = replace(request, choice=Choice(ids=frozenset({first})), follows=True)
        end = _send(session, one, rate, planned=1, validate=validate)
        session.terminal.say(f"{letters(selection.count - 1)} of the plan stay where they are.")
        return end
    return _send(
        session,
        request,
        rate,
        planned=selection.count,
        hidden=selection.hidden,
        unseen=selection.unseen,
        validate=validate,
    )


def _send(
    session: Session,
    request: ReplayRequest,
    rate: float,
    *,
    planned: int,
    hidden: int = 0,
    unseen: int = 0,
    validate: Validate | None,
) -> Exit:
    """Send the letters, and say what became of them if requested. Raises CallFailed and Refused."""
    out_of = session.letters_in(
        dlq=request.from_dlq, ids=request.choice.ids, contains=request.choice.filter.contains
    )
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
        heeds_pause=not request.insists,
        once_each=True,  # a letter that its consumer parks again at once would be sent again and again
    )
    what = f"replay {request.choice.in_words()}{' from the DLQ' if request.from_dlq else ''}"
    with (
        recorded(session, what, request.reason) as ended,
        session.terminal.progress("Replaying", planned) as advance,
    ):
        tally = work.run(advance)
        ended.extend(tally_in_words(tally, "replayed"))
    end = finish(
        session,
        tally,
        request.choice,
        "replayed",
        planned=planned,
        hidden=hidden,
        unseen=unseen,
        out_of=out_of,
    )
    if tally.done and request.follows:
        _follow(session, tally.first_done)
    elif tally.done:
        session.terminal.say(
            "Accepted is done: what fails at its target later does not come back to this DLQ."
            if all(one.settles_at_once for one in session.sources)
            else "Sent is not done: what fails again is back in the DLQ. `--follow` waits for it, `redrive audit` "
            "counts it."
        )
    return end


def causes_of(selection: Selection) -> dict[str, int]:
    """Count letters by cause, if causes are known. The name of a group of parked letters has its reason, too."""
    found: Counter[str] = Counter()
    for group, count in selection.groups.items():
        if group != IN_THE_DLQ:
            found[group.rpartition(" · ")[2]] += count
    return found


def _follow(session: Session, ids: Set[str]) -> None:
    """Wait until it is known what became of the sent letters, and report it. Raises CallFailed."""
    until = session.clock() + _OUTCOME_WITHIN
    session.terminal.say(
        f"Waiting for their outcome, for {span(_OUTCOME_WITHIN)} at most; Ctrl-C only ends the waiting."
    )
    fates = _fates(session, ids)
    try:
        while fates[_UNKNOWN] and session.clock() < until:
            session.sleep(_BETWEEN_LOOKS_SECONDS)
            fates = _fates(session, ids)
    except KeyboardInterrupt:
        pass  # the letters are sent
    for fate, count in fates.most_common():
        session.terminal.say(f"{letters(count)}: {fate}.")


def _fates(session: Session, ids: Set[str]) -> Counter[str]:
    """Count letters by their fate in the ledger. A pass writes it when it reads reports, or finds the letters."""
    entries = session.store.read_ledger(sorted(ids)).entries
    return Counter(_fate(entry) for entry in entries.values())


def _fate(entry: Entry) -> str:
    if entry.status is Status.SUCCEEDED:
        return "succeeded"
    if entry.status in (Status.RETURNED, Status.FAILED, Status.PARKED) or entry.is_settled:
        return f"failed again, {label(entry)[1]}"
    return _UNKNOWN


def _tell_plan(session: Session, request: ReplayRequest, selection: Selection, rate: float) -> None:
    say = session.terminal.plan
    least = "" if selection.is_exact else "at least "
    pace = "as fast as it goes"
    if rate:
        pace = f"{rate:g} a second, about {math.ceil(selection.count / rate):,} s"
    say(
        f"Plan: replay {least}{letters(selection.count)} to {destinations_in_words(session)}, {pace}:"
    )
    tell_selection(session, request.choice, selection)
    if request.validate:
        say(f"Each body is given to `{request.validate}` first; those it refuses stay.")
    tell_new_start(session)
    tell_order(session, from_dlq=request.from_dlq)
    if request.from_dlq:
        say(
            "Letters replayed from the DLQ are no evidence for the circuit breaker; those of `redrive drain` are."
        )


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `replay`."""
    request = ReplayRequest(
        choice=choice_of(given, session.clock()),
        from_dlq=given["from_dlq"],
        rate=given.get("rate"),
        validate=given.get("validate"),
        reason=given.get("reason", ""),
        is_dry_run=given.get("dry_run", False),
        insists=given.get("even_though_paused", False),
        follows=given.get("follow", False),
    )
    return replay(session, request)
