"""Says before a plan is agreed to what it does to the order of a FIFO queue's message groups, and what it can't keep."""

from __future__ import annotations

from collections.abc import Iterable

from smart_redriver.oncall.letters.jsonlines import Kept
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import letters


def tell_order(session: Session, *, from_dlq: bool) -> None:
    """What becomes of the order when letters go to their source queues; nothing for standard queues."""
    if not session.dead_letters.is_fifo:
        return
    say = session.terminal.plan
    say(
        "Letters of one message group go in their order, one after the other; where one fails again, those behind it "
        "overtake it."
    )
    if from_dlq:
        say(
            "A letter whose copy is out stays, as nobody knows yet what became of that; so do those behind it in its group."
        )
    else:
        say("What of their groups has gone on meanwhile has overtaken them.")


def tell_gap(session: Session) -> None:
    """What becomes of the order when letters are taken out of the DLQ; nothing for standard queues."""
    if session.dead_letters.is_fifo:
        session.terminal.plan(
            "Their message groups go on without them. A letter whose copy is out stays, as nobody knows yet what became "
            "of that."
        )


def tell_import_order(session: Session, file: Iterable[Kept], *, to_source: bool) -> None:
    """What the letters of a file find of an order; nothing for standard queues. Reads the file."""
    if not session.dead_letters.is_fifo:
        return
    say = session.terminal.plan
    say("Each keeps its message group, in the order of the file.")
    if to_source:
        say("What of their groups has gone on meanwhile has overtaken them.")
    if alone := sum(one.letter.group_id is None for one in file):
        say(
            f"Of no message group, as of a standard queue, and each a group by itself: {letters(alone)}."
        )
