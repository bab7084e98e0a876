"""`redrive delete`: deletes letters that need nothing more. It always writes them to a file first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of
from smart_redriver.oncall.letters.export_file import ExportFile
from smart_redriver.oncall.letters.look import with_full_ids
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words, tell_gap
from smart_redriver.oncall.moving.selection import CUT, find_selection, tell_selection
from smart_redriver.oncall.moving.sending import WriteAndDelete
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.status.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """The letters to delete, and the file that keeps them."""

    choice: Choice
    file: Path
    from_dlq: bool = False
    reason: str = ""
    is_dry_run: bool = False


def delete(session: Session, request: DeleteRequest) -> Exit:
    """Count, ask for the count, write, delete. Raises CallFailed and Refused."""
    refuse_unless(session.letter_store, Operation.DELETE)
    request = replace(request, choice=with_full_ids(session, request.choice))
    out_of = session.letters_in(
        dlq=request.from_dlq, ids=request.choice.ids, contains=request.choice.filter.contains
    )
    selection = find_selection(session, request.choice, from_dlq=request.from_dlq)
    if not selection.is_exact and not selection.is_cut_elsewhere:
        few = (
            f"{CUT} Name those that are seen by their ids"
            if selection.is_cut
            else "There are too many to count in one look. Narrow the choice"
        )
        raise Refused(f"{few}, or use --all. Nothing was changed.")
    count = selection.count
    session.terminal.plan(
        f"Plan: write {letters(count)} of {session.place.name} ({request.choice.in_words()}) to {request.file}, "
        "then delete them. `redrive import` would bring them back:"
    )
    tell_selection(session, request.choice, selection)
    if request.from_dlq:
        tell_gap(session)
    tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, selection.to_json())
    session.terminal.confirm(f"Delete {letters(count)}?", expected=str(count))
    what = f"delete {request.choice.in_words()}{' from the DLQ' if request.from_dlq else ''}"
    with ExportFile(session, request.file) as file:
        work = Work(
            session,
            out_of,
            request.choice,
            WriteAndDelete(session, file, request.reason, from_dlq=request.from_dlq),
            limit=count,  # letters that arrive meanwhile were not agreed to
        )
        with (
            recorded(session, what, request.reason) as ended,
            session.terminal.progress("Deleting", count) as advance,
        ):
            tally = work.run(advance)
            ended += [*tally_in_words(tally, "deleted"), *file.told()]
    return finish(
        session,
        tally,
        request.choice,
        "deleted",
        planned=count,
        hidden=selection.hidden,
        unseen=selection.unseen,
        out_of=out_of,
    )


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `delete`."""
    request = DeleteRequest(
        choice=choice_of(given, session.clock()),
        file=given.get("export") or session.new_file("deleted"),
        from_dlq=given["from_dlq"],
        reason=given.get("reason", ""),
        is_dry_run=given.get("dry_run", False),
    )
    return delete(session, request)
