"""`redrive run`: runs one pass now, in the deployed function. A dry run happens here, with the caller's credentials.

With `--forever`, passes run here, beside queues that no function can reach, until the process is stopped.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from smart_redriver.engine.config.backends import OPEN_STATE, Stopped
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.counts import letters
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Outcome
from smart_redriver.engine.wiring import make_tools
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.deployment_file import read_file
from smart_redriver.oncall.deployment.session import Session, function_of, invoke
from smart_redriver.oncall.letters.presentation import why_held, why_parked
from smart_redriver.oncall.status.passes import acts_in_words
from smart_redriver.oncall.status.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Misused, Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import told_to_end
from smart_redriver.oncall.terminal.words import await_a_verdict

LONGEST_DRY_RUN = timedelta(seconds=60)
#: Outcomes of a pass that did not do what it was run for.
_UNDONE = (
    Outcome.FAILED,
    Outcome.REFUSED,
    Outcome.LEASE_HELD,
    Outcome.LOST_RACE,
    Outcome.MOVE_TASK_RUNNING,
)


def run(session: Session, *, is_dry_run: bool, reason: str = "") -> Exit:
    """Run one pass and print its report. Raises CallFailed and Refused."""
    if is_dry_run:
        report = dry_run(session)
        if session.settings.mode is Mode.PAUSED:
            session.terminal.plan("The setting `mode` is paused. Otherwise the next pass would:")
    else:
        _ = function_of(session.place)
        session.terminal.plan(
            f"Plan: one pass over the DLQ of {session.place.name}, as the schedule does it."
        )
        tell_standing(session)
        session.terminal.confirm("Run it?")
        with recorded(session, "run a pass", reason) as ended:
            report = invoke(session)
            ended.append(report_in_words(report))
    session.terminal.result(report)
    session.terminal.say(report_in_words(report))
    _tell_more(session, report)
    return Exit.REFUSED if report.get("outcome") in _UNDONE else Exit.DONE


def dry_run(session: Session) -> dict[str, Any]:
    """Make the next pass as a dry run, with the caller's credentials.

    Looking is not free: it raises the receive counts of the letters by one.
    """
    tools = make_tools(
        session.letter_store.connection,
        session.place.deployment,
        dynamodb=session.aws.dynamodb,
        journal=_silent,
        clock=session.clock,
        rng=Random(),
        owner=f"oncall-{uuid.uuid4()}",
        pause=session.sleep,
    )
    settings = replace(session.settings, mode=Mode.DRY_RUN)
    return run_pass(tools, settings, deadline=session.clock() + LONGEST_DRY_RUN).to_json()


def run_forever(session: Session, file: Path) -> Exit:
    """Run passes as configured in a file until the process is asked to end. Raises Misused, Refused and CallFailed."""
    process = read_file(file)
    session.terminal.plan(f"Plan: passes as {file} says, until this process is stopped.")
    session.terminal.confirm("Run them?")
    terminal = session.terminal

    def tell(event: str, /, **fields: object) -> None:
        at = f"{session.clock():%Y-%m-%dT%H:%M:%SZ}"
        terminal.out.write(json.dumps({"at": at, "event": event, **fields}, default=str) + "\n")
        terminal.out.flush()

    is_to_end = Event()

    def pause(seconds: float) -> None:
        if is_to_end.wait(seconds):
            raise Stopped

    with told_to_end(lambda *_: is_to_end.set()):
        try:
            process.run(tell, pause, is_to_end.is_set, session.aws.beside_no_file())
        except CallFailed as failed:
            if failed.call != OPEN_STATE:
                raise
            raise Refused(f"{failed.detail} {file} names it under [state].") from failed
    return Exit.DONE


def _silent(_event: str, /, **_fields: object) -> None:
    """A journal that logs nothing, because the terminal shows it."""


def report_in_words(report: Mapping[str, Any]) -> str:
    """A report in one line."""
    parts = [f"{report['examined']:,} examined"] if report.get("examined") else []
    parts += acts_in_words(report)
    parts += [f"{report['failed']:,} failed"] if report.get("failed") else []
    parts += [f"{count:,} held as {why}" for why, count in (report.get("held") or {}).items()]
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
    return "; ".join(map(_circuit_in_words, circuits)) or "circuit not known"


def _circuit_in_words(circuit: Mapping[str, Any]) -> str:
    told = f"circuit of {circuit['queue']} {' to '.join(circuit['states'])}"
    unknown = circuit.get("outcome_unknown")  # a pass of an older version does not report it
    return f"{told}, {await_a_verdict(unknown)}" if unknown else told


def _tell_more(session: Session, report: Mapping[str, Any]) -> None:
    """Show verdicts, the meaning of reasons, and in a dry run each decision."""
    say = session.terminal.say
    if seen := report.get("headline"):
        say(printable(seen))
    for one in report.get("verdicts") or ():
        say(
            f"Verdict on batch {one['batch']} of {one['queue']} ({letters(one['size'])}): {one['verdict']}, "
            f"{one['reason']}."
        )
    for kind, why in (("held", why_held), ("parked", why_parked)):
        for reason in report.get(kind) or report.get("would", {}).get(kind) or {}:
            if words := why(reason):
                say(f"{reason}: {words}.")
    if decisions := report.get("decisions"):
        rows = [(one["original_id"], one["decision"], one["reason"]) for one in decisions]
        say()
        session.terminal.table(("ID", "DECISION", "REASON"), rows)


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `run`. Raises Misused for options that `--forever` has no use for."""
    if file := given.get("forever"):
        if given["dry_run"]:
            raise Misused(
                "--forever makes real passes. To see what the next one would do, leave it out: "
                f"`redrive run --dry-run --stack {file}`."
            )
        if given.get("reason"):
            raise Misused("--forever takes no --reason: the audit trail does not list its passes.")
        return run_forever(session, file)
    return run(session, is_dry_run=given["dry_run"], reason=given.get("reason", ""))
