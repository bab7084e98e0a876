"""Says how a change affects the order of a FIFO queue, and how it ended: counts and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.export_file import Kept
from smart_redriver.oncall.letters.presentation import (
    HIDDEN,
    HIDDEN_OR_BEHIND,
    TRY_AGAIN,
    not_among_them,
)
from smart_redriver.oncall.moving.work import Tally
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import listed


def tally_in_words(tally: Tally, done_word: str) -> list[str]:
    """A tally in words, one part for each kind of fate."""
    parts = [f"{done_word} {letters(tally.done)}"]
    if tally.discarded:
        parts.append(f"removed {tally.discarded:,} left-over copies of letters sent before")
    parts += [f"skipped {count:,}: {reason}" for reason, count in tally.skipped.most_common()]
    parts += [f"refused {count:,}: {reason}" for reason, count in tally.failed.most_common()]
    if tally.paused_by:
        parts.append(f"stopped, as {tally.paused_by} paused the queue; run it again to go on")
    elif tally.was_interrupted:
        parts.append("interrupted; run it again to go on")
    return parts


def end_dry_run(session: Session, plan: dict[str, Any]) -> Exit:
    """Output the plan that was shown, and say that nothing was done."""
    session.terminal.result({"plan": plan})
    session.terminal.say("Nothing was changed: this was a dry run.")
    return Exit.DONE


def finish(
    session: Session,
    tally: Tally,
    choice: Choice,
    done_word: str,
    *,
    planned: int = 0,
    hidden: int = 0,
    unseen: int = 0,
    out_of: DeadLetters | None = None,
) -> Exit:
    """Say what became of the letters, and return the exit code for it.

    Some of the `planned` letters may be hidden by now in the queue they were to be taken `out_of`. So many letters were
    `hidden` when it was planned, and may still be: nobody knows whether they were meant, too. `unseen` letters
    were left alone because the plan could not see them; they count as far as they are still there.
    """
    unmet, gone, hidden = _not_met(tally, 0 if choice.ids else planned, hidden, out_of)
    unseen = min(unseen, out_of.facts().depth) if unseen and out_of is not None else 0
    missing = sorted(choice.ids - tally.ids_done) if not tally.was_interrupted else []
    first, *rest = tally_in_words(tally, done_word)
    session.terminal.say(first[0].upper() + first[1:] + ".")
    for part in rest:
        session.terminal.warn(part[0].upper() + part[1:] + ".")
    keeps_order = out_of is not None and out_of.is_fifo
    for warning in (
        *map(not_among_them, missing),
        *_warnings(unmet, gone, max(0, hidden - unmet), keeps_order=keeps_order),
        *unseen_in_words(unseen, keeps_order=keeps_order),
    ):
        session.terminal.warn(warning)
    is_too_late = bool(gone) and not tally.done
    stays = (unmet, hidden, unseen, missing, tally.skipped, tally.failed, tally.was_interrupted)
    session.terminal.result(
        {
            "done": tally.done,
            "discarded": tally.discarded,
            "skipped": dict(tally.skipped),
            "failed": dict(tally.failed),
            "missing": missing,
            "not_met": unmet,
            "gone": gone,
            "hidden": hidden + unseen,
            "interrupted": tally.was_interrupted,
        }
    )
    return _exit(tally, is_all=not (is_too_late or any(stays)))


def _warnings(unmet: int, gone: int, hidden: int, *, keeps_order: bool) -> Iterator[str]:
    if unmet:
        behind = ", or they are behind letters of their message group that stay" * keeps_order
        yield f"Not met: {letters(unmet)}. A pass or a person is working on them{behind}: {TRY_AGAIN}."
    if gone:
        yield (
            f"Gone: {letters(gone)} of the plan, which somebody else took meanwhile: "
            "`redrive history` tells who."
        )
    if hidden:
        yield f"{letters(hidden)} {HIDDEN}"


def unseen_in_words(unseen: int, *, keeps_order: bool) -> Iterator[str]:
    """Say why letters are left alone that could not be looked at; nothing if there are none."""
    if unseen:
        yield f"{letters(unseen)} {HIDDEN_OR_BEHIND if keeps_order else HIDDEN}"


def _exit(tally: Tally, *, is_all: bool) -> Exit:
    if is_all:
        return Exit.DONE
    return Exit.PARTLY if tally.done or tally.discarded else Exit.REFUSED


def _not_met(
    tally: Tally, planned: int, hidden: int, out_of: DeadLetters | None
) -> tuple[int, int, int]:
    """Count letters of the plan that were not found: those that can't be met now, and those that are no longer there.

    The third count is of those that were `hidden` from the plan and still are.
    In a FIFO queue, letters behind others of their group can't be met although they count as visible.
    """
    stay = tally.skipped.total() + tally.failed.total()
    met = tally.done + tally.discarded + stay
    short = 0 if tally.was_interrupted else max(0, planned - met)
    if out_of is None or not (short or hidden):
        return 0, 0, 0
    facts = out_of.facts()
    there = max(0, facts.depth - stay) if out_of.is_fifo else facts.hidden
    unmet = min(short, there)
    return unmet, short - unmet, min(hidden, facts.hidden)


def destinations_in_words(session: Session) -> str:
    """Name the sources that letters go back to. Several share a DLQ, and each gets only its own letters."""
    names = session.place.sources
    return f"{listed(names)}{', each to its own' if len(names) > 1 else ''}"


def tell_new_start(session: Session) -> None:
    """Say how the record of letters that are sent begins. A target gets none with them."""
    carry = any(one.carries_metadata for one in session.sources)
    metadata = "keeps its metadata if there is room for it, and " if carry else ""
    session.terminal.plan(f"Each {metadata}starts without strikes.")


def tell_order(session: Session, *, from_dlq: bool) -> None:
    """Say how the order changes when letters go to their source queues; nothing for standard queues."""
    if not session.dead_letters.is_fifo:
        return
    say = session.terminal.plan
    say(
        "Letters of one message group go in their order, one after the other; where one fails again, those behind it "
        "overtake it."
    )
    if from_dlq:
        say(
            "A letter whose copy is out stays until its outcome is known, and so do those behind it in its group."
        )
    else:
        say("Messages of their groups that were processed meanwhile have overtaken them.")


def tell_gap(session: Session) -> None:
    """Say how the order changes when letters are taken out of the DLQ; nothing for standard queues."""
    if session.dead_letters.is_fifo:
        session.terminal.plan(
            "Their message groups go on without them. A letter whose copy is out stays, as nobody knows yet what "
            "became of that."
        )


def tell_import_order(session: Session, file: Iterable[Kept], *, to_source: bool) -> None:
    """Say where a file's letters go in the order; nothing for standard queues. Reads the file."""
    if not session.dead_letters.is_fifo:
        return
    say = session.terminal.plan
    say("Each keeps its message group, in the order of the file.")
    if to_source:
        say("Messages of their groups that were processed meanwhile have overtaken them.")
    if alone := sum(one.letter.group_id is None for one in file):
        say(f"Without a message group, so each becomes a group of its own: {letters(alone)}.")
