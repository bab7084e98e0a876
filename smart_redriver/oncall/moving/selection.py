"""Counts the letters that a command is about, and shows samples, before it asks a person whether to go on.

The count comes from the ledger where possible, so that nothing has to be received. Otherwise letters are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.messages.letter import Letter, Unfit
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.message_store import UNFIT
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, cause_in_hand, ids_of
from smart_redriver.oncall.letters.fifo_order import COPY, Overtaking, is_cut
from smart_redriver.oncall.letters.ledger_scan import find_entry, parked_entries
from smart_redriver.oncall.letters.look import SHORT_LOOK_LETTERS, Look, look_through
from smart_redriver.oncall.letters.presentation import (
    HIDDEN,
    NOT_PARKED_BY_LEDGER,
    REASONS,
    TRY_AGAIN,
    belongs,
    hidden_in_words,
    label,
    not_among_them,
)
from smart_redriver.oncall.status.waiting import Waits
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import cut

SAMPLES = 3
#: All letters of the DLQ form one group, because none is looked at for its cause.
IN_THE_DLQ = "in the DLQ"
#: The reason why some letters of a FIFO queue can't be seen.
CUT = "SQS hands out ten letters of a message group until the first is deleted; those behind them can't be seen."
#: If the ledger gave the count, samples are looked for among this many letters.
_LOOKED_AT_FOR_SAMPLES = 100
_SAMPLE_LENGTH = 200
#: A letter parked for one of these reasons may still fit no target.
_UNFIT = frozenset(one.value for one in Unfit)
#: With targets, people may also have parked letters that fit none.
_MAY_BE_UNFIT = _UNFIT | {"BY_HAND"}


@dataclass(slots=True, kw_only=True)
class Selection:
    """Letters that a command is about. `count` is exact, or a lower bound if there were too many to look at.

    `left_over` counts copies of letters that were sent already; any command that works through the queue removes them.
    In a FIFO queue, some letters are `left_out`, counted by reason, and some are `overtaking` unselected letters of
    their group. `is_cut`: groups have more letters than can be seen. `is_cut_elsewhere`: only groups without a selected
    letter have, so that `unseen` letters stay. `hidden` letters could not be looked at, and stay. `missing`: named ids
    that were not found. `in_hand`: how many were looked at. `came_back`: by queue, when these were last sent there, to
    fail again. `queues`: the source queues that letters belong to; empty if not all of them are known.
    """

    count: int = 0
    left_over: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    overtaking: int = 0
    is_cut: bool = False
    is_cut_elsewhere: bool = False
    unseen: int = 0
    hidden: int = 0
    groups: Counter[str] = field(default_factory=Counter)
    samples: list[Letter] = field(default_factory=list)
    in_hand: int = 0
    came_back: dict[str, list[datetime]] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    is_exact: bool = True
    missing: set[str] = field(default_factory=set)
    cost: str = ""

    def add(self, case: Case, *, is_parked: bool) -> None:
        """Count a letter in hand."""
        self.count += 1
        self.groups[_group(case, is_parked=is_parked)] += 1
        self.show(case)

    def show(self, case: Case) -> None:
        """Keep a letter as a sample, until there are enough. Note when it was last sent."""
        self.in_hand += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(case.letter)
        entry = case.entry
        if entry and entry.last_redrive and not (case.is_replaced or case.is_kept):
            self.came_back.setdefault(entry.queue, []).append(entry.last_redrive)

    def end(self, look: Look) -> None:
        """Note how far the look got."""
        self.is_exact = not look.is_cut_short and not self.is_cut
        if not self.is_exact:
            self.missing.clear()  # they may be among letters not looked at
            self.queues.clear()
        self.cost = look.cost()

    def lines(self) -> Iterator[str]:
        """Groups, the largest first, and samples, as lines of a plan."""
        if self.left_over:
            yield f"  {self.left_over:>7,}  left-over copies of letters sent before are removed"
        for why, count in self.left_out.most_common():
            yield f"  {count:>7,}  left out: {why}"
        if self.overtaking:
            yield f"  {self.overtaking:>7,}  overtake earlier letters of their message group, which stay"
        if self.is_cut:
            yield f"  {CUT}"
        if self.hidden:
            yield f"  {self.hidden:>7,}  {HIDDEN}"
        ranked = sorted(self.groups.items(), key=lambda pair: (-pair[1], pair[0]))
        yield from (f"  {count:>7,}  {group}" for group, count in ranked)
        for message_id in sorted(self.missing):
            yield f"  {not_among_them(message_id)}"
        for letter in self.samples:
            yield f"  such as {letter.original_id}:"
            yield f"      {sample(letter.body)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "is_exact": self.is_exact,
            "groups": dict(self.groups),
            **({"left_out": dict(self.left_out)} if self.left_out else {}),
            **({"overtaking": self.overtaking} if self.overtaking else {}),
            **({"hidden": self.hidden} if self.hidden else {}),
            **({"missing": sorted(self.missing)} if self.missing else {}),
            "samples": [
                {"original_id": one.original_id, "body": cut(one.body, _SAMPLE_LENGTH)}
                for one in self.samples
            ],
        }


def sample(body: str) -> str:
    """The beginning of a body, on one line."""
    return cut(printable(body), _SAMPLE_LENGTH)


def find_selection(
    session: Session, choice: Choice, *, from_dlq: bool, is_sent: bool = False
) -> Selection:
    """Count the selected letters. Raises Refused if there are none, and CallFailed.

    `is_sent`: whether they will go to their source queues.
    """
    facts = facts_of(session, from_dlq=from_dlq, exactly=not choice.ids)
    # A count can be a minute old: if it shows nothing, there may still be something.
    selection = _all(facts) if from_dlq and choice.is_all and facts.visible else None
    if not from_dlq:
        selection = _as_the_ledger_has_it(session, choice, facts.depth, is_sent=is_sent)
    if selection is not None:
        _add_samples(session, choice, selection, from_dlq=from_dlq)
    else:
        selection = _as_they_are(session, choice, facts, from_dlq=from_dlq, is_sent=is_sent)
    if not selection.count and not selection.left_over:
        raise none_in_reach(selection.left_out) or nothing_matches(
            session, choice, facts, from_dlq=from_dlq
        )
    return selection


def facts_of(session: Session, *, from_dlq: bool, exactly: bool = False) -> QueueFacts:
    """The facts of a queue that has letters, with an exact count where possible.

    Raises Refused for an empty queue, and CallFailed.
    """
    facts = session.letter_store.facts(dlq=from_dlq, exactly=exactly)
    if facts.depth:
        return facts
    if from_dlq:
        raise Refused("The DLQ is empty: nothing to do. `redrive status` tells more.")
    waiting = session.letter_store.facts(dlq=True, exactly=False).depth
    where = (
        f"{letters(waiting)} in the DLQ: add --from-dlq"
        if waiting
        else "`redrive status` tells more"
    )
    raise Refused(f"The parking lot is empty: nothing to do. {where}.")


def tell_selection(session: Session, choice: Choice, selection: Selection) -> None:
    """Show the selected letters, and what finding them cost."""
    say = session.terminal.plan
    for line in selection.lines():
        say(line)
    if not choice.filter.is_empty:
        say(f"Only those {choice.filter.in_words()}.")
    if choice.filter.compiled and choice.filter.compiled.warning:
        say(f"Mind: {choice.filter.compiled.warning}.")
    if selection.cost:
        say(selection.cost)


def _all(facts: QueueFacts) -> Selection:
    groups = Counter({IN_THE_DLQ: facts.visible})
    return Selection(count=facts.visible, groups=groups, hidden=facts.hidden)


def hidden_from(look: Look, facts: QueueFacts) -> int:
    """How many letters a look to the end of a queue did not meet, as they were hidden when the `facts` were read."""
    return max(0, min(facts.hidden, facts.depth - look.seen))


def _note_end(
    selection: Selection, look: Look, facts: QueueFacts, *, moves_cut_group: bool
) -> None:
    """Note what a look to the end of the queue did not meet."""
    selection.is_cut = look.is_cut
    selection.is_cut_elsewhere = look.is_cut and not look.is_cut_short and not moves_cut_group
    if selection.is_cut_elsewhere:
        selection.unseen = unseen_behind(look, facts)
    if not look.is_cut:
        selection.hidden = hidden_from(look, facts)


def unseen_behind(look: Look, facts: QueueFacts) -> int:
    """How many letters of a FIFO queue a look to its end did not meet: those behind others count as visible."""
    return max(0, facts.depth - look.seen)


def _as_the_ledger_has_it(
    session: Session, choice: Choice, depth: int, *, is_sent: bool
) -> Selection | None:
    """Count parked letters by the ledger; None if that is not the whole truth.

    Only the letter itself shows whether it fits a target now, if it fitted none before.
    """
    selection, listed = Selection(missing=set(choice.ids)), 0
    targets = session.place.deployment.targets
    may_be_unfit = _MAY_BE_UNFIT if targets else _UNFIT
    for entry in parked_entries(session):
        listed += 1
        if not choice.takes_entry(entry):
            continue
        is_doubtful = is_sent and entry.park_reason in may_be_unfit
        if choice.filter.needs_body_of(entry) or is_doubtful:
            return None
        selection.groups[_label(entry)] += 1
        selection.queues.add(entry.queue)
        selection.missing -= {entry.current_id, entry.original_id}
    if _lists_gone_letters(choice, listed, depth):
        return None
    if is_sent and targets and listed < depth:
        return None  # letters of a target that was removed are not listed
    return _if_told(selection, choice, unlisted=max(0, depth - listed))


def _lists_gone_letters(choice: Choice, listed: int, depth: int) -> bool:
    # Somebody took letters out without telling the ledger, or the depth is a minute old.
    return listed > depth and (depth <= SHORT_LOOK_LETTERS or not choice.is_all)


def _if_told(selection: Selection, choice: Choice, *, unlisted: int) -> Selection | None:
    if choice.is_all and unlisted:
        selection.groups[NOT_PARKED_BY_LEDGER] = unlisted
        selection.queues.clear()
    selection.count = selection.groups.total()
    return selection if choice.is_all or _is_told(choice, selection.count, unlisted) else None


def _is_told(choice: Choice, count: int, unlisted: int) -> bool:
    """Whether the ledger's entries are enough to know all selected letters."""
    wanted = choice.filter
    if wanted.needs_body:
        return False
    if choice.ids and wanted.is_empty:
        return count == len(choice.ids)
    return not unlisted or (count > 0 and wanted.reason is not None)


def _add_samples(session: Session, choice: Choice, selection: Selection, *, from_dlq: bool) -> None:
    if not selection.count:
        return
    limit = SAMPLES if choice.is_all else _LOOKED_AT_FOR_SAMPLES
    out_of = session.letters_in(dlq=from_dlq, ids=choice.ids, contains=choice.filter.contains)
    look = Look(session=session, out_of=out_of, limit=limit)
    with look:
        for case in look:
            if choice.takes(case):
                selection.show(case)
            if len(selection.samples) == min(SAMPLES, selection.count):
                break
    selection.cost = look.cost()


def _as_they_are(
    session: Session, choice: Choice, facts: QueueFacts, *, from_dlq: bool, is_sent: bool
) -> Selection:
    selection = Selection(missing=set(choice.ids))
    out_of = session.letters_in(dlq=from_dlq, ids=choice.ids, contains=choice.filter.contains)
    overtaking = Overtaking(keeps_order=out_of.is_fifo)
    moves_cut_group = False
    look = look_through(session, out_of, facts.depth, is_sent=is_sent)
    with look, session.terminal.progress("Counting", facts.depth) as advance:
        for case in look:
            advance(1)
            is_selected = choice.takes(case)
            moves_cut_group |= is_cut(case) and (is_selected or case.is_replaced)
            if case.is_replaced:
                selection.left_over += 1
                continue
            why = look.out_of_reach.get(case.message_id) or _unfit(case, is_sent=is_sent)
            if why != COPY:
                overtaking.saw(case, is_selected=why is None and is_selected)
            if is_selected:
                selection.missing -= ids_of(case)
                _count(session, selection, choice, case, why, is_parked=not from_dlq)
            if choice.is_met_by(selection.count + selection.left_out.total()):
                break
        else:
            _note_end(selection, look, facts, moves_cut_group=moves_cut_group)
    selection.overtaking = overtaking.count if is_sent else 0
    selection.end(look)
    return selection


def _unfit(case: Case, *, is_sent: bool) -> str | None:
    """Return the reason why no target takes a letter that will be sent."""
    return UNFIT[case.letter.unfit] if is_sent and case.letter.unfit else None


def _count(
    session: Session,
    selection: Selection,
    choice: Choice,
    case: Case,
    why: str | None,
    *,
    is_parked: bool,
) -> None:
    """Count a selected letter, or why it stays. A returned copy counts only if it was named."""
    if why is None:
        selection.add(case, is_parked=is_parked)
        selection.queues.add(session.name_of(case))
    elif why != COPY or case.message_id in choice.ids:
        selection.left_out[why] += 1


def _group(case: Case, *, is_parked: bool) -> str:
    if not is_parked:
        return cause_in_hand(case)
    is_known = case.entry is not None and case.entry.status is Status.PARKED
    return _label(case.entry) if is_known and case.entry else NOT_PARKED_BY_LEDGER


def _label(entry: Entry) -> str:
    return " · ".join(label(entry))


def none_in_reach(left_out: Mapping[str, int]) -> Refused | None:
    """Refuse because no selected letter can be taken; None if none was left out."""
    if not left_out:
        return None
    why = "; ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
    return Refused(f"No letter can be taken now ({why}). Nothing was changed.")


def nothing_matches(
    session: Session, choice: Choice, facts: QueueFacts, *, from_dlq: bool
) -> Refused:
    """Refuse because no letter is selected, and say where to look."""
    if choice.ids:
        hidden = list(_hidden(session, choice, facts, from_dlq=from_dlq))
        none = "None of these was found. `redrive show ID` shows where a letter is."
        return Refused(" ".join(hidden) or none)
    if from_dlq and facts.hidden:
        return Refused(
            f"No letter of the DLQ that can be taken now matches; {facts.hidden:,} "
            f"{'is' if facts.hidden == 1 else 'are'} hidden: `redrive letters --held` says until when."
        )
    if facts.hidden:
        return Refused(
            f"No parked letter that can be taken now matches; {facts.hidden:,} "
            f"{'is' if facts.hidden == 1 else 'are'} in use by a pass or a person: {TRY_AGAIN}."
        )
    reason = (choice.filter.reason or "").upper()
    if reason and reason not in REASONS:
        return Refused(f"No letter is parked as {reason}. Reasons are {', '.join(REASONS)}.")
    listing = "redrive letters" if from_dlq else "redrive parked --list"
    return Refused(f"No letter matches: nothing to do. `{listing}` shows what there is.")


def _hidden(
    session: Session, choice: Choice, facts: QueueFacts, *, from_dlq: bool
) -> Iterator[str]:
    """Yield a line, as `show` does, for each named letter that is there according to the ledger."""
    where = "in the DLQ" if from_dlq else "in the parking lot"
    waits = Waits.of(session)
    for message_id in sorted(choice.ids):
        entry = find_entry(session, message_id)
        if entry and belongs(entry, to_dlq=from_dlq):
            wait = waits.alone(entry)
            words = hidden_in_words(wait.until if wait else None, facts, session.clock())
            if words:
                yield f"{message_id} is {where}, {words}."
