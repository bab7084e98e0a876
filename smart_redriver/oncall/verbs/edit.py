"""`redrive edit`: mend one letter by hand and send the mended copy back to its source queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from redrive.core.case import Case
from redrive.core.letter import Letter
from redrive.passes.ports import DeadLetters
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.edit_form import difference, read_form, write_form
from smart_redriver.oncall.letters.export_file import ExportFile
from smart_redriver.oncall.letters.fingerprints import fingerprint
from smart_redriver.oncall.letters.look import find
from smart_redriver.oncall.moving.ending import finish, tally_in_words
from smart_redriver.oncall.moving.group_order import tell_order
from smart_redriver.oncall.moving.sending import Destinations, SendBack, why_not_served
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.lodging import Deed, refuse_unless
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable_line
from smart_redriver.oncall.terminal.terminal import Tone

_CHANGED = "somebody else has edited it meanwhile; edit it again, from what it is now"

#: What a person makes of a letter's form, see `edit_form`. Raises Refused where nothing may come of it.
Hand = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """Which letter to edit, and the file that keeps it as it was."""

    message_id: str
    file: Path
    from_dlq: bool = False
    validate: str | None = None
    reason: str = ""
    insists: bool = False


def edit(session: Session, request: EditRequest, ready: Callable[[], Hand]) -> Exit:
    """Let a hand edit the letter, show the difference, ask, keep the original, send. Raises CallFailed and Refused.

    `ready` gives the hand, or refuses before anything is asked of AWS. While the hand is at work the letter lies
    where it was, visible. It is found again afterwards, under the lease: what a replay or a pass did to it
    meanwhile stands. What somebody else edited meanwhile stays.
    """
    check = validator(request.validate) if request.validate else None
    refuse_unless(session.lodging, Deed.REWRITE)
    hand = ready()
    out_of = session.letters_in(dlq=request.from_dlq)
    before = _find(session, out_of, request.message_id)
    after = _edited_by_hand(before, hand)
    to = _destination(session, after)
    for line in difference(before.letter, after.letter):
        tone = {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1])
        session.terminal.plan(session.terminal.paint(printable_line(line), tone))
    if check and (fault := check(after.letter)):
        raise Refused(f"The edited letter is {fault}. Nothing was changed.")
    tell_order(session, from_dlq=request.from_dlq)
    session.terminal.plan(f"The original is kept in {request.file}: `redrive undo` takes it.")
    standing = tell_standing(session)
    question = f"Send the edited copy to {to}, and remove the original?"
    confirm_sending(session, question, standing, insists=request.insists)
    return _send(session, request, out_of, before.letter, after.letter)


def _find(session: Session, out_of: DeadLetters, message_id: str) -> Case:
    found, look = find(
        session,
        out_of,
        Choice(ids=frozenset({message_id})).takes,
        out_of.facts().depth,
        is_sent=True,
    )
    session.terminal.say(look.cost())
    if found is None:
        raise Refused(f"{message_id} is not there. `redrive show {message_id}` tells where it is.")
    if why := look.out_of_reach.get(found.message_id):
        raise Refused(f"{message_id} can't be taken now: {why}. Nothing was changed.")
    return found


def _edited_by_hand(found: Case, hand: Hand) -> Case:
    before = found.letter
    after = read_form(hand(write_form(before)), before)
    if (after.body, after.attributes) == (before.body, dict(before.attributes)):
        raise Refused(
            "Nothing was edited, so nothing was changed. `redrive replay` sends it as it is."
        )
    return replace(found, letter=after)


def _send(
    session: Session, request: EditRequest, out_of: DeadLetters, before: Letter, after: Letter
) -> Exit:
    was = fingerprint(before)
    note = f"edited and replayed by {session.who}, before it was sha256 {was}"
    exactly = Choice(ids=frozenset({before.message_id}))
    what = f"edit {before.original_id}, sha256 {was} before and {fingerprint(after)} after"
    with ExportFile(request.file, session.name_of) as file:
        mended = SendBack(
            session,
            out_of,
            note=note,
            validate=lambda letter: None if fingerprint(letter) == was else _CHANGED,
            edit=lambda letter: _mended(letter, after),
            keep=file.write,
        )
        with recorded(session, what, request.reason) as ended:
            tally = Work(session, out_of, exactly, mended, limit=1, is_sent=True).run()
            ended += [*tally_in_words(tally, "sent the edited copy of"), *file.told()]
    return finish(session, tally, exactly, "sent the edited copy of")


def _mended(letter: Letter, after: Letter) -> Letter:
    """The letter in hand, with what the person made of its content."""
    return replace(letter, body=after.body, attributes=after.attributes)


def _destination(session: Session, after: Case) -> str:
    """The name of the source queue that takes the edited letter. Raises Refused where none does."""
    destination = Destinations(session).of(after)
    if destination is None:
        raise Refused(f"The letter can't be sent: {why_not_served(after)}. Nothing was changed.")
    name, limit = destination.source.name, destination.facts.max_message_size
    if after.letter.size > limit:
        raise Refused(
            f"The edited letter has {after.letter.size:,} bytes, {name} takes {limit:,}. Nothing was changed."
        )
    return name
