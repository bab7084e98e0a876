"""`redrive edit --with COMMAND`: the letters of a schema mismatch made right by a command, many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from redrive.core.case import Case
from redrive.core.letter import Letter
from redrive.passes.ports import DeadLetters
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.edit_form import difference
from smart_redriver.oncall.letters.export_file import ExportFile
from smart_redriver.oncall.letters.look import look_through
from smart_redriver.oncall.letters.reach import COPY, Overtaking
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words
from smart_redriver.oncall.moving.group_order import tell_order
from smart_redriver.oncall.moving.meant import CUT, SAMPLES, facts_of, nothing_matches
from smart_redriver.oncall.moving.sending import SendBack
from smart_redriver.oncall.moving.transform import Transformation
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.lodging import Deed, refuse_unless
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable_line
from smart_redriver.oncall.terminal.words import letters, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRequest:
    """Which letters, what makes them right, and the file that keeps them as they were."""

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
    """What the command makes of the letters: which it changes, by id, and how many stay and why. Pairs for show.

    `left_over` are ids of copies of letters that were sent already, which are removed.
    """

    changed: set[str] = field(default_factory=set)
    left_over: set[str] = field(default_factory=set)
    overtaking: int = 0
    is_cut: bool = False
    staying: Counter[str] = field(default_factory=Counter)
    samples: list[tuple[Letter, Letter]] = field(default_factory=list)
    cost: str = ""

    @property
    def count(self) -> int:
        """Letters that it was tried on."""
        return len(self.changed) + self.staying.total()

    def lines(self) -> Iterator[str]:
        """As lines of a plan."""
        for before, after in self.samples:
            yield f"  such as {before.original_id}:"
            for line in difference(before, after):
                yield f"    {line}"
        if self.left_over:
            yield f"Left-over copies of letters sent before, which are removed: {len(self.left_over):,}."
        for why, count in self.staying.most_common():
            yield f"Stay as and where they are: {letters(count)}, {why}."
        if self.overtaking:
            yield f"Overtake earlier letters of their message group, which stay: {letters(self.overtaking)}."
        if self.is_cut:
            yield f"{CUT} Run it again for them."
        yield self.cost


def rewrite(session: Session, request: RewriteRequest) -> Exit:
    """Try the command on all, show differences and counts, ask, keep the originals, send. Raises CallFailed and Refused."""
    check = validator(request.validate) if request.validate else None
    transformation = Transformation(request.command, check)
    refuse_unless(session.lodging, Deed.REWRITE)
    out_of = session.letters_in(dlq=request.from_dlq)
    trial = _try(session, request, out_of, transformation)
    _tell_plan(session, request, trial)
    standing = tell_standing(session)
    if request.is_dry_run:
        plan = {"count": len(trial.changed), "staying": dict(trial.staying)}
        return end_dry_run(session, plan)
    question = (
        f"Send {letters(len(trial.changed))} as the command makes them, and remove the originals?"
    )
    confirm_sending(session, question, standing, insists=request.insists)
    return _send(session, request, out_of, transformation, trial)


def _try(
    session: Session, request: RewriteRequest, out_of: DeadLetters, transformation: Transformation
) -> Trial:
    """Let the command make what it makes of every letter that is meant. Raises Refused where it makes nothing."""
    trial = Trial()
    facts = facts_of(session, from_dlq=request.from_dlq)
    look = look_through(session, out_of, facts.depth, is_sent=True, is_slow=True)
    overtaking = Overtaking()
    with look, session.terminal.progress("Trying", facts.depth) as advance:
        for case in look:
            advance(1)
            if case.is_replaced:
                trial.left_over.add(case.message_id)
            elif (why := look.out_of_reach.get(case.message_id)) != COPY:
                if request.choice.takes(case):
                    _try_on(case, transformation, trial, why)
                overtaking.saw(case, is_meant=case.message_id in trial.changed)
            if request.choice.ids and trial.count == len(request.choice.ids):
                break
    trial.cost = look.cost()
    trial.overtaking, trial.is_cut = overtaking.count, look.is_cut
    if look.is_cut_short:
        raise Refused(
            "There are too many to try it on in one look, or it is too slow. Narrow the choice."
        )
    if not trial.count and not trial.left_over:
        raise nothing_matches(session, request.choice, facts, from_dlq=request.from_dlq)
    if not trial.changed and not trial.left_over:
        why = "; ".join(f"{count:,}: {one}" for one, count in trial.staying.most_common())
        raise Refused(f"The command changes no letter: nothing to do ({why}).")
    return trial


def _try_on(
    case: Case, transformation: Transformation, trial: Trial, out_of_reach: str | None
) -> None:
    if fault := out_of_reach or transformation.fault_of(case.letter):
        trial.staying[fault] += 1
        return
    trial.changed.add(case.message_id)
    after = transformation.take(case.letter)
    if len(trial.samples) < SAMPLES:
        trial.samples.append((case.letter, replace(after, receipt_handle="")))


def _tell_plan(session: Session, request: RewriteRequest, trial: Trial) -> None:
    say = session.terminal.plan
    say(
        f"Plan: give {letters(len(trial.changed))} to `{request.command}`, send what it makes of them to "
        f"{listed(session.place.sources)}, and remove the originals, which are kept in {request.file}:"
    )
    for line in trial.lines():
        say(printable_line(line))
    if not request.choice.filter.is_empty:
        say(f"Only those {request.choice.filter.in_words()}.")
    say("Each keeps its trail and starts with no strikes.")
    tell_order(session, from_dlq=request.from_dlq)


def _send(
    session: Session,
    request: RewriteRequest,
    out_of: DeadLetters,
    transformation: Transformation,
    trial: Trial,
) -> Exit:
    note = f"edited with `{request.command}` and replayed by {session.who}"
    what = f"edit {request.choice.in_words()} with `{request.command}`"
    with ExportFile(request.file, session.name_of) as file:
        act = SendBack(
            session,
            out_of,
            note=note,
            validate=transformation.fault_of,
            edit=transformation.take,
            keep=file.write,
        )
        agreed = Choice(
            ids=frozenset(trial.changed | trial.left_over)
        )  # what arrives meanwhile nobody has agreed to
        work = Work(session, out_of, agreed, act, once_each=True, is_sent=True)
        with (
            recorded(session, what, request.reason) as ended,
            session.terminal.progress("Editing", len(trial.changed)) as advance,
        ):
            tally = work.run(advance)
            tally.skipped.update(trial.staying)
            ended += [*tally_in_words(tally, "sent edited copies of"), *file.told()]
    return finish(session, tally, agreed, "sent edited copies of")
