"""Tells what became of the letters that a command moved, and chooses the exit code."""

from __future__ import annotations

from typing import Any

from redrive.passes.ports import DeadLetters
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.hiding import TRY_AGAIN
from smart_redriver.oncall.moving.work import Tally
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import letters


def tally_in_words(tally: Tally, done_word: str) -> list[str]:
    """A tally in words, one part for each kind of fate."""
    parts = [f"{done_word} {letters(tally.done)}"]
    if tally.discarded:
        parts.append(f"removed {tally.discarded:,} left-over copies of letters sent before")
    parts += [f"skipped {count:,}: {reason}" for reason, count in tally.skipped.most_common()]
    parts += [f"refused {count:,}: {reason}" for reason, count in tally.failed.most_common()]
    if tally.was_interrupted:
        parts.append("interrupted; run it again to go on")
    return parts


def end_dry_run(session: Session, plan: dict[str, Any]) -> Exit:
    """Give the plan that was shown, and say that nothing came of it."""
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
    out_of: DeadLetters | None = None,
) -> Exit:
    """Say what became of the letters, and how well that is.

    Of those `planned` some may be hidden by now in the queue that they were to be taken `out_of`.
    """
    unmet = 0 if choice.ids else _unmet(tally, planned, out_of)
    missing = sorted(choice.ids - tally.ids_done) if not tally.was_interrupted else []
    first, *rest = tally_in_words(tally, done_word)
    session.terminal.say(first[0].upper() + first[1:] + ".")
    for part in rest:
        session.terminal.warn(part[0].upper() + part[1:] + ".")
    for message_id in missing:
        session.terminal.warn(
            f"Not there: {message_id}. `redrive show {message_id}` tells where it is."
        )
    if unmet:
        session.terminal.warn(
            f"Not met: {letters(unmet)}. As many are in somebody's hands, such as a pass's: {TRY_AGAIN}."
        )
    left = bool(unmet or missing or tally.skipped or tally.failed or tally.was_interrupted)
    done = tally.done or tally.discarded
    code = Exit.DONE if not left else Exit.PARTLY if done else Exit.REFUSED
    session.terminal.result(
        {
            "done": tally.done,
            "discarded": tally.discarded,
            "skipped": dict(tally.skipped),
            "failed": dict(tally.failed),
            "missing": missing,
            "not_met": unmet,
            "interrupted": tally.was_interrupted,
        }
    )
    return code


def _unmet(tally: Tally, planned: int, out_of: DeadLetters | None) -> int:
    """Letters of the plan that nobody met and that are hidden; what is not there any more, others have taken."""
    met = tally.done + tally.discarded + tally.skipped.total() + tally.failed.total()
    if out_of is None or tally.was_interrupted or met >= planned:
        return 0
    return min(planned - met, out_of.facts().in_flight)
