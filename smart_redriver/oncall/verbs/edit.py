"""`redrive edit`: edits letters by hand or by a command, and sends the copies back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import DeadLetters, Source
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of, choose_one, filter_of, ids_of
from smart_redriver.oncall.letters.edit_form import (
    difference,
    fingerprint,
    fingerprint_of_form,
    form_of,
    own_editor,
    read_form,
    write_form,
)
from smart_redriver.oncall.letters.export_file import ExportFile, to_be_kept
from smart_redriver.oncall.letters.fifo_order import COPY, Overtaking
from smart_redriver.oncall.letters.look import Look, find, full_ids, look_through, with_full_ids
from smart_redriver.oncall.letters.presentation import is_of_one_here, not_among_them
from smart_redriver.oncall.moving.ending import (
    destinations_in_words,
    end_dry_run,
    finish,
    tally_in_words,
    tell_new_start,
    tell_order,
    unseen_in_words,
)
from smart_redriver.oncall.moving.selection import (
    SAMPLES,
    facts_of,
    hidden_from,
    nothing_matches,
    unseen_behind,
)
from smart_redriver.oncall.moving.sending import (
    Destinations,
    OwnCommand,
    SendBack,
    Validate,
    validator,
    why_not_served,
)
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.status.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable_line
from smart_redriver.oncall.terminal.terminal import Tone, Verbatim

_CHANGED = "somebody else has edited it meanwhile; edit it again, from what it is now"

#: A person's edit of a letter's form, see `edit_form`. Raises Refused if the edit can't be used.
Hand = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """A letter to edit, and the file that keeps its original."""

    message_id: str
    file: Path
    from_dlq: bool = False
    validate: str | None = None
    reason: str = ""
    insists: bool = False


def edit(session: Session, request: EditRequest, ready: Callable[[], Hand]) -> Exit:
    """Let a hand edit the letter, show the difference, ask, keep the original, send. Raises CallFailed and Refused.

    `ready` returns the hand, or refuses before any call to AWS. While the hand edits, the letter stays visible in its
    queue. The command finds it again afterwards, under the lease: if a replay or a pass has dealt with it meanwhile,
    that stands. If somebody else has edited it meanwhile, it stays as it is.
    """
    check = validator(request.validate) if request.validate else None
    refuse_unless(session.letter_store, Operation.REWRITE)
    hand = ready()
    (full_id,) = full_ids(session, [request.message_id])
    request = replace(request, message_id=full_id)
    with ExportFile(session, request.file) as file:  # before a person has edited in vain
        return _edit(session, request, file, hand, check)


def _edit(
    session: Session, request: EditRequest, file: ExportFile, hand: Hand, check: Validate | None
) -> Exit:
    out_of = session.letters_in(dlq=request.from_dlq)
    before = _find(session, out_of, request.message_id)
    after = _edited_by_hand(before, hand, keeps_rows=session.letter_store.keeps_rows)
    to = _destination(session, after)
    for line in difference(before.letter, after.letter):
        tone = {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1])
        session.terminal.plan(Verbatim(session.terminal.paint(line, tone)))
    if check and (fault := check(after.letter)):
        raise Refused(f"The edited letter is {fault}. Nothing was changed.")
    tell_order(session, from_dlq=request.from_dlq)
    undone = (
        "what its target accepts can't be undone"
        if to.settles_at_once
        else "`redrive undo` takes it"
    )
    session.terminal.plan(f"The original will be kept in {request.file}: {undone}.")
    standing = tell_standing(session)
    question = f"Send the edited copy to {to.name}, and remove the original?"
    confirm_sending(session, question, standing, insists=request.insists, to=[to.name])
    return _send(session, request, file, out_of, before.letter, after.letter)


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
        raise Refused(
            f"{message_id} is not there. `redrive show {message_id}` looks for it elsewhere."
        )
    if why := look.out_of_reach.get(found.message_id):
        raise Refused(f"{message_id} can't be taken now: {why}. Nothing was changed.")
    return found


def _edited_by_hand(found: Case, hand: Hand, *, keeps_rows: bool) -> Case:
    before = found.letter
    after = read_form(hand(write_form(before)), before)
    if keeps_rows and after.attributes != dict(before.attributes):
        raise Refused(
            "A job has no attributes: those are what its row says of its end. Edit the body alone. Nothing was changed."
        )
    if (after.body, after.attributes) == (before.body, dict(before.attributes)):
        raise Refused(
            "Nothing was edited, so nothing was changed. `redrive replay` sends it as it is."
        )
    return replace(found, letter=after)


def _send(
    session: Session,
    request: EditRequest,
    file: ExportFile,
    out_of: DeadLetters,
    before: Letter,
    after: Letter,
) -> Exit:
    was = fingerprint(before)
    signed = session.signed("edited and replayed", request.reason)
    note = f"{signed}, before it was sha256 {was}"
    exactly = Choice(ids=frozenset({before.original_id}))
    what = f"edit {before.original_id}, sha256 {was} before and {fingerprint(after)} after"
    mended = SendBack(
        session,
        out_of,
        note=note,
        validate=lambda letter: None if fingerprint(letter) == was else _CHANGED,
        edit=lambda letter: _mended(letter, after),
        keep=partial(_kept, session, file, dlq=request.from_dlq),
    )
    with recorded(session, what, request.reason) as ended:
        tally = Work(session, out_of, exactly, mended, limit=1, is_sent=True).run()
        ended += [*tally_in_words(tally, "sent the edited copy of"), *file.told()]
    return finish(session, tally, exactly, "sent the edited copy of")


def _kept(
    session: Session, file: ExportFile, cases: Sequence[Case], *, dlq: bool
) -> list[EntryFault]:
    """Write letters to the file. Returns those it can't hold, or that have gone. Raises CallFailed and Refused."""
    kept, unread = to_be_kept(session, cases, dlq=dlq)
    file.write(kept)
    known = {case.message_id for case in kept} | {fault.key for fault in unread}
    gone = [case.message_id for case in cases if case.message_id not in known]
    return unread + [EntryFault(call="KeepLetters", key=one, code="LetterNotThere") for one in gone]


def _mended(letter: Letter, after: Letter) -> Letter:
    """The letter in hand, with the content that the person edited."""
    return replace(letter, body=after.body, attributes=after.attributes)


def _destination(session: Session, after: Case) -> Source:
    """The source queue that takes the edited letter. Raises Refused if there is none."""
    destination = Destinations(session).of(after)
    if destination is None:
        raise Refused(f"The letter can't be sent: {why_not_served(after)}. Nothing was changed.")
    name, limit = destination.source.name, destination.facts.max_message_size
    if after.letter.size > limit:
        raise Refused(
            f"The edited letter has {after.letter.size:,} bytes, {name} takes {limit:,}. Nothing was changed."
        )
    return destination.source


_NEW = "it was not in the plan"
#: The answer for a letter that the command leaves as it is.
UNCHANGED = "the command leaves it as it is"


class Transformation:
    """Replaces the bodies of letters by a command's output. Attributes stay. `check` can refuse the output."""

    def __init__(self, command: str, check: Validate | None) -> None:
        """Raises Misused if there is no such command."""
        self._command = OwnCommand("--with", command)
        self._check = check
        self._made: dict[str, Letter] = {}

    def fault_of(self, letter: Letter) -> str | None:
        """Return why the letter stays unchanged; None if `take` has an edited one."""
        finished = self._command.run(letter.body)
        if finished.fault is not None:
            return f"refused by the command: {finished.fault}"
        try:
            body = _body_of(finished.out, letter)
        except ValueError as fault:
            return f"refused: {fault}"
        if body == letter.body:
            return UNCHANGED
        made = replace(letter, body=body)
        if self._check and (refused := self._check(made)):
            return refused
        self._made[letter.message_id] = made
        return None

    def take(self, letter: Letter) -> Letter:
        """Return the edited letter of one without a fault. Works once for each letter."""
        return self._made.pop(letter.message_id)


def _body_of(out: bytes, before: Letter) -> str:
    """The body in the command's output. Raises ValueError if SQS would not take it."""
    try:
        body = out.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise ValueError("the output of the command is not text") from fault
    if not before.body.endswith("\n"):
        body = body.removesuffix("\n")  # which most commands add
    if not body:
        raise ValueError("the command printed nothing")
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRequest:
    """The letters to edit, the command that edits them, and the file that keeps the originals."""

    choice: Choice
    command: str
    file: Path
    from_dlq: bool = False
    validate: str | None = None
    reason: str = ""
    is_dry_run: bool = False
    insists: bool = False


@dataclass(slots=True)
class Trial:
    """The command's effect on letters: the original ids of those it changes, how many stay and why, and sample pairs.

    `left_over` has the ids of copies of letters that were sent already and are elsewhere. They are removed. `unseen`
    letters were hidden, or behind others of their group. `missing`: named ids that were not found. `queues`: the
    source queues that changed letters belong to.
    """

    changed: set[str] = field(default_factory=set)
    left_over: set[str] = field(default_factory=set)
    overtaking: int = 0
    unseen: int = 0
    missing: set[str] = field(default_factory=set)
    staying: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[Letter, Letter]] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    cost: str = ""

    @property
    def count(self) -> int:
        """The number of letters that the command was tried on."""
        return len(self.changed) + self.staying.total()

    def met_left_over(self, case: Case, *, is_dlq: bool) -> None:
        """Note a copy of a letter that was sent already, unless the letter is here under another id."""
        if not is_of_one_here(case, to_dlq=is_dlq):
            self.left_over.add(case.message_id)
            self.missing -= ids_of(case)

    def refuse_unless_useful(self) -> None:
        """Raise Refused if the command changes no letter, and no left-over copy is removed."""
        if not self.changed and not self.left_over:
            why = "; ".join(f"{count:,}: {one}" for one, count in self.staying.most_common())
            raise Refused(f"The command changes no letter: nothing to do ({why}).")

    def lines(self, *, keeps_order: bool) -> Iterator[str]:
        """Yield the lines of a plan. `keeps_order`: whether letters are of a FIFO queue."""
        for before, after in self.samples:
            yield printable_line(f"  such as {before.original_id}:")
            for line in difference(before, after):
                yield Verbatim(f"    {line}")
        if self.left_over:
            yield f"Left-over copies of letters sent before, which are removed: {len(self.left_over):,}."
        for why, count in self.staying.most_common():
            yield printable_line(f"Left unchanged: {letters(count)}, {why}.")
        if self.overtaking:
            yield f"Overtake earlier letters of their message group, which stay: {letters(self.overtaking)}."
        for message_id in sorted(self.missing):
            yield not_among_them(message_id)
        yield from unseen_in_words(self.unseen, keeps_order=keeps_order)
        yield self.cost

    def to_json(self) -> dict[str, Any]:
        return {
            "count": len(self.changed),
            "staying": dict(self.staying),
            **({"missing": sorted(self.missing)} if self.missing else {}),
            **({"hidden": self.unseen} if self.unseen else {}),
        }


def rewrite(session: Session, request: RewriteRequest) -> Exit:
    """Try the command on all letters, show differences and counts, ask, keep the originals, send.

    Raises CallFailed and Refused.
    """
    check = validator(request.validate) if request.validate else None
    transformation = Transformation(request.command, check)
    refuse_unless(session.letter_store, Operation.REWRITE)
    request = replace(request, choice=with_full_ids(session, request.choice))
    out_of = session.letters_in(dlq=request.from_dlq)
    trial = _try(session, request, out_of, transformation)
    _tell_plan(session, request, trial)
    standing = tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, trial.to_json())
    question = (
        f"Send the command's output for {letters(len(trial.changed))}, and remove the originals?"
    )
    confirm_sending(session, question, standing, insists=request.insists, to=trial.queues)
    return _send_rewritten(session, request, out_of, transformation, trial)


def _try(
    session: Session, request: RewriteRequest, out_of: DeadLetters, transformation: Transformation
) -> Trial:
    """Try the command on every selected letter. Raises Refused if it changes none."""
    trial = Trial(missing=set(request.choice.ids))
    facts = facts_of(session, from_dlq=request.from_dlq, exactly=not request.choice.ids)
    look = look_through(session, out_of, facts.depth, is_sent=True, is_slow=True)
    overtaking = Overtaking(keeps_order=out_of.is_fifo)
    destinations = Destinations(session)
    with look, session.terminal.progress("Trying", facts.depth) as advance:
        for case in look:
            advance(1)
            if case.is_replaced:
                trial.met_left_over(case, is_dlq=request.from_dlq)
            elif (why := look.out_of_reach.get(case.message_id)) != COPY:
                if request.choice.takes(case):
                    trial.missing -= ids_of(case)
                    _try_on(case, transformation, trial, why, destinations)
                overtaking.saw(case, is_selected=case.original_id in trial.changed)
            if request.choice.is_met_by(trial.count):
                break
        else:
            trial.unseen = _unseen(request.choice, trial, look, facts, is_fifo=out_of.is_fifo)
    trial.cost = look.cost()
    trial.overtaking = overtaking.count
    if look.is_cut_short:
        raise Refused(
            "There are too many to try it on in one look, or it is too slow. Narrow the choice."
        )
    if not trial.count and not trial.left_over:
        raise nothing_matches(session, request.choice, facts, from_dlq=request.from_dlq)
    trial.refuse_unless_useful()
    return trial


def _unseen(choice: Choice, trial: Trial, look: Look, facts: QueueFacts, *, is_fifo: bool) -> int:
    """How many letters, which may be meant, a look to the end did not meet."""
    if choice.ids and not trial.missing:
        return 0
    return unseen_behind(look, facts) if is_fifo else hidden_from(look, facts)


def _try_on(
    case: Case,
    transformation: Transformation,
    trial: Trial,
    out_of_reach: str | None,
    destinations: Destinations,
) -> None:
    unserved = destinations.refusal_of(case)
    if fault := out_of_reach or unserved or transformation.fault_of(case.letter):
        trial.staying[fault] += 1
        return
    trial.changed.add(case.original_id)
    if destination := destinations.of(case):
        trial.queues.add(destination.source.name)
    after = transformation.take(case.letter)
    if len(trial.samples) < SAMPLES:
        trial.samples.append((case.letter, replace(after, receipt_handle="")))


def _tell_plan(session: Session, request: RewriteRequest, trial: Trial) -> None:
    say = session.terminal.plan
    say(
        f"Plan: pipe {letters(len(trial.changed))} through `{request.command}`, send the results to "
        f"{destinations_in_words(session)}, and remove the originals, which are kept in {request.file}:"
    )
    for line in trial.lines(keeps_order=session.dead_letters.is_fifo):
        say(line)
    if not request.choice.filter.is_empty:
        say(f"Only those {request.choice.filter.in_words()}.")
    tell_new_start(session)
    tell_order(session, from_dlq=request.from_dlq)


def _send_rewritten(
    session: Session,
    request: RewriteRequest,
    out_of: DeadLetters,
    transformation: Transformation,
    trial: Trial,
) -> Exit:

    def fault_of(letter: Letter) -> str | None:
        # A left-over copy may have the id of a letter that has come back since.
        return transformation.fault_of(letter) if letter.original_id in trial.changed else _NEW

    note = session.signed(f"edited with `{request.command}` and replayed", request.reason)
    what = f"edit {request.choice.in_words()} with `{request.command}`"
    with ExportFile(session, request.file) as file:
        act = SendBack(
            session,
            out_of,
            note=note,
            validate=fault_of,
            edit=transformation.take,
            keep=partial(_kept, session, file, dlq=request.from_dlq),
        )
        agreed = Choice(
            ids=frozenset(trial.changed | trial.left_over)
        )  # nobody agreed to letters that arrive meanwhile
        work = Work(
            session,
            out_of,
            agreed,
            act,
            once_each=True,
            is_sent=True,
            heeds_pause=not request.insists,
        )
        with (
            recorded(session, what, request.reason) as ended,
            session.terminal.progress("Editing", len(trial.changed)) as advance,
        ):
            tally = work.run(advance)
            tally.skipped.update(trial.staying)
            ended += [*tally_in_words(tally, "sent edited copies of"), *file.told()]
    is_named = bool(request.choice.ids)
    return finish(
        session,
        tally,
        Choice(ids=agreed.ids | trial.missing) if is_named else request.choice,
        "sent edited copies of",
        planned=trial.count + len(trial.left_over),
        unseen=trial.unseen,
        out_of=out_of,
    )


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `edit`: one letter by an editor or the page, or many by a command."""
    file = given.get("export") or session.new_file("edited")
    more = {
        "file": file,
        "from_dlq": given["from_dlq"],
        "validate": given.get("validate"),
        "reason": given.get("reason", ""),
        "insists": given.get("even_though_paused", False),
    }
    if "command" in given:
        choice, is_dry_run = choice_of(given, session.clock()), given["dry_run"]
        many = RewriteRequest(
            choice=choice, command=given["command"], is_dry_run=is_dry_run, **more
        )
        return rewrite(session, many)
    if "body" in given:
        return edit(
            session, EditRequest(message_id=given["id"], **more), lambda: _as_on_page(given)
        )
    is_all = given["all"] or given["dry_run"]
    one = choose_one(given.get("ids", ()), filter_of(given, session.clock()), is_all=is_all)
    ready = partial(own_editor, session.terminal)
    return edit(session, EditRequest(message_id=one, **more), ready)


def _as_on_page(given: Mapping[str, Any]) -> Hand:
    """A hand that gives a letter the content from the page, unless the letter has changed since."""

    def hand(form: str) -> str:
        if fingerprint_of_form(form) != given["was"]:
            raise Refused("The letter is not as it was when you opened it. Open it once more.")
        return form_of(json.dumps(given["attributes"]), given["body"])

    return hand
