"""`redrive run`: one pass now, by the deployed function; a dry run here, with the caller's own credentials."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from redrive.core.report import Outcome
from redrive.passes.redrive_pass import run_pass
from redrive.settings import Mode
from redrive.wiring import make_tools
from smart_redriver.oncall.letters.presentation import why_held, why_parked
from smart_redriver.oncall.stack.function import invoke
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import letters

LONGEST_DRY_RUN = timedelta(seconds=60)
_BAD = frozenset({Outcome.FAILED.value, Outcome.REFUSED.value})


def run(session: Session, *, is_dry_run: bool, reason: str = "") -> Exit:
    """Run one pass and print its report. Raises CallFailed and Refused."""
    if is_dry_run:
        report = dry_run(session)
        if session.settings.mode is Mode.PAUSED:
            session.terminal.plan("The setting `mode` is paused; were it not, the next pass would:")
    else:
        session.terminal.plan(
            f"Plan: one pass over the DLQ of {session.place.queue}, as the schedule does it."
        )
        tell_standing(session)
        session.terminal.confirm("Run it?")
        with recorded(session, "run a pass", reason) as ended:
            report = invoke(session)
            ended.append(report_in_words(report))
    session.terminal.result(report)
    session.terminal.say(report_in_words(report))
    _tell_more(session, report)
    return Exit.REFUSED if report.get("outcome") in _BAD else Exit.DONE


def dry_run(session: Session) -> dict[str, Any]:
    """The next pass without its deeds, with the caller's credentials.

    Looking is not free: the receive counts of the letters that it looks at rise by one.
    """
    tools = make_tools(
        session.place.deployment,
        sqs=session.aws.sqs,
        dynamodb=session.aws.dynamodb,
        cloudwatch=session.aws.client("cloudwatch"),
        journal=_silent,
        clock=session.clock,
        rng=Random(),
        owner=f"oncall-{uuid.uuid4()}",
        pause=session.sleep,
        reach=session.reach,
        database=session.lodging.database,
    )
    settings = replace(session.settings, mode=Mode.DRY_RUN)
    return run_pass(tools, settings, deadline=session.clock() + LONGEST_DRY_RUN).to_json()


def _silent(_event: str, /, **_fields: object) -> None:
    """A journal for what is told on the terminal instead."""


def report_in_words(report: Mapping[str, Any]) -> str:
    """A report in one line."""
    parts = [
        f"{report.get(name, 0)} {name}"
        for name in ("examined", "redriven", "returned", "discarded", "renewed", "failed")
        if report.get(name)
    ]
    for kind in ("parked", "held"):
        parts += [f"{count} {kind} as {why}" for why, count in (report.get(kind) or {}).items()]
    parts += [f"{count} faults {fault}" for fault, count in (report.get("faults") or {}).items()]
    reason = f" ({report['reason']})" if report.get("reason") else ""
    depth = report.get("depth")
    before = (
        f"; {letters(depth)} {'was' if depth == 1 else 'were'} in the DLQ"
        if isinstance(depth, int)
        else ""
    )
    return (
        f"{report.get('outcome')}{reason}: {_circuits_in_words(report)}; "
        f"{', '.join(parts) or 'nothing to do'}{before}."
    )


def _circuits_in_words(report: Mapping[str, Any]) -> str:
    circuits = report.get("circuits") or ()
    changes = [f"circuit of {one['queue']} {' to '.join(one['states'])}" for one in circuits]
    return ", ".join(changes) or "circuit not known"


def _tell_more(session: Session, report: Mapping[str, Any]) -> None:
    """Verdicts, what reasons mean, and in a dry run each decision."""
    say = session.terminal.say
    for one in report.get("verdicts") or ():
        say(
            f"Verdict on batch {one['batch']} of {one['queue']} ({letters(one['size'])}): {one['verdict']}, "
            f"{one['reason']}."
        )
    for kind, why in (("held", why_held), ("parked", why_parked)):
        for reason in report.get(kind) or {}:
            if words := why(reason):
                say(f"{reason}: {words}.")
    if decisions := report.get("decisions"):
        rows = [(one["original_id"], one["decision"], one["reason"]) for one in decisions]
        say()
        session.terminal.table(("ID", "DECISION", "REASON"), rows)
