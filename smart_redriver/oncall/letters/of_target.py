"""One letter of a DLQ that SQS does not fill: which target it is of, and what became of it there."""

from __future__ import annotations

from collections.abc import Iterator

from redrive.core.case import Case
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from redrive.targets import Origin, Target, TargetKind
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.targets import KINDS, UNFIT
from smart_redriver.oncall.terminal.table import printable


def target_of(session: Session, entry: Entry | None, found: Case | None) -> Target | None:
    """The target that a letter is of, as far as it tells itself, or else the ledger; None for one of a source queue."""
    place = found.source_arn if found else entry.source_arn if entry else None
    for target in session.place.deployment.targets:
        if target.place == place:
            return target
    is_told = entry is not None and not (found and found.letter.unfit)
    return session.place.target(entry.queue) if entry and is_told else None


def target_lines(target: Target | None, letter: Letter | None) -> Iterator[str]:
    """What a person reads of it."""
    if target:
        yield f"{'Target:':<12} {printable(target.place)}, {KINDS[target.kind]}"
    if letter and letter.unfit:
        yield f"{'Unfit:':<12} {UNFIT[letter.unfit]}"


def given_back(entry: Entry, target: Target, origin: Origin) -> str:
    """Where a letter is that was given back to a target."""
    by = " by a person" if entry.status is Status.REPLAYED else ""
    if origin is Origin.LAMBDA:
        return f"given back to {target.name}{by}: processed, waiting there to be tried, or on its way back"
    return f"given back to {target.name}{by}, which accepted it: it does not come back here"


def log_group_of(target: Target | None) -> str | None:
    """Where a function logs if nobody changed that; None for all else.

    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html
    """
    if target is None or target.kind is not TargetKind.FUNCTION:
        return None
    return f"/aws/lambda/{target.place.split(':')[6]}"
