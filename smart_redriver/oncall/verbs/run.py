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
from smart_redriver.oncall.stack.function import invoke
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import table
from smart_redriver.oncall.terminal.words import letters

LONGEST_DRY_RUN = timedelta(seconds=60)
_BAD = frozenset({Outcome.FAILED.value, Outcome.REFUSED.value})


def run(session: Session, *, is_dry_run: bool, reason: str = "") -> Exit:
    """Run one pass and print its report. Raises CallFailed and Refused."""
    if is_dry_run:
        report = dry_run(session)
    else:
        session.terminal.plan(
            f"Plan: one pass over the DLQ of {session.place.queue}, as the schedule does it."
        )
        session.terminal.confirm("Run it?")
        with recorded(session, "run a pass", reason) as ended:
            report = invoke(session)
            ended.append(report_in_words(report))
    session.terminal.result(report)
    session.terminal.say(report_in_words(report))
    decisions = report.get("decisions") or []
    if decisions:
        rows = [(one["original_id"], one["decision"], one["reason"]) for one in decisions]
        session.terminal.say()
        session.terminal.say(table(("ID", "DECISION", "REASON"), rows))
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
    before = f"; {letters(depth)} were in the DLQ" if isinstance(depth, int) else ""
    return (
        f"{report.get('outcome')}{reason}: circuit {report.get('circuit_after')}, "
        f"window {report.get('window')}; {', '.join(parts) or 'nothing to do'}{before}."
    )
