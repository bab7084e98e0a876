"""How every command shows letters and ledger entries, and the reasons why a letter can't be taken now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from smart_redriver.engine.messages.letter import bytes_of
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import HoldReason, ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.terminal.words import ago, stamp

#: Reasons why letters stay in the DLQ, in words.
HELD = {
    HoldReason.AWAITING_VERDICT: "wait for the verdict on their batch",
    HoldReason.BACKOFF: "are on backoff",
    HoldReason.LAST_CHANCE: "failed while others succeeded, and wait for their last chance",
    HoldReason.CAUSE: "failed for a cause whose letters are held together, and wait for its canary",
    HoldReason.NO_PERMIT: "are due, and wait for the circuit to let them through",
    HoldReason.GROUP: "wait for an earlier letter of their message group",
    HoldReason.BLOCKED: "are poison that blocks its message group, and wait for a person",
}
#: Reasons why a letter was parked, in words.
PARKED = {
    ParkReason.MAX_ATTEMPTS: "failed too often while others succeeded",
    ParkReason.PERMANENT: "can never succeed, as its consumer reported",
    ParkReason.GAVE_UP: "met no working consumer for too long",
    ParkReason.UNDELIVERABLE: "is refused by its source queue or target, for its size or content",
    ParkReason.UNKNOWN_SOURCE: "came from a queue that is not served",
    ParkReason.UNKNOWN_ORIGIN: "names no listed target or topic as its origin",
    ParkReason.INCOMPLETE: "lacks a part of its message, or never failed",
    ParkReason.EXPIRING: "was about to expire in the DLQ",
}

#: Reasons why people put a letter there, in words.
PARKED_BY_PEOPLE = {
    "BY_HAND": "was set aside by a person",
    "IMPORTED": "was imported by a person",
}

#: All reasons that `--parked-as` accepts.
REASONS = (*(one.value for one in PARKED), *PARKED_BY_PEOPLE)

#: The name of letters whose consumer reported no cause, and left no error on them.
NO_CAUSE = "no cause reported"


def label(entry: Entry) -> tuple[str, str]:
    """The reason and the cause that name a group. Without a report, the cause is the error that the message carries."""
    return entry.park_reason or "UNKNOWN", entry.cause or entry.error or NO_CAUSE


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """A ledger entry as `--json` shows it in every command."""
    return {
        "original_id": entry.original_id,
        "current_id": entry.current_id,
        "status": entry.status.value,
        "reason": entry.park_reason,
        "cause": entry.cause,
        "error": entry.error,
        "is_permanent": entry.is_permanent or entry.park_reason == ParkReason.PERMANENT.value,
        "redrive_count": entry.redrive_count,
        "strikes": entry.strikes,
        "first_seen": stamp(entry.first_seen),
        "last_redrive": stamp(entry.last_redrive),
        "parked_at": stamp(entry.parked_at),
        "held_until": stamp(entry.not_before) if entry.status is Status.RETURNED else None,
        "history": list(entry.history),
    }


def why_held(reason: str) -> str:
    """Explain a reason to hold letters; empty for an unknown one."""
    return next((words for known, words in HELD.items() if known.value == reason), "")


def why_parked(reason: str) -> str:
    """Explain a reason to park a letter; empty for an unknown one."""
    by_pass = {known.value: words for known, words in PARKED.items()}
    return (by_pass | PARKED_BY_PEOPLE).get(reason, "")


#: The most bytes that are shown of a body, an attribute or a stack trace.
_MOST_BYTES = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The room for a text by others, in lines and bytes. None means no limit. `rest`: what shows all of it."""

    rows: int | None = None
    size: int | None = None
    rest: str = "--whole"

    @classmethod
    def on(cls, terminal: Terminal, rest: str = "--whole") -> Room:
        """The room on one screen; a byte limit alone if the output is no terminal."""
        rows, columns = terminal.rows, terminal.columns
        screen = rows * columns if rows and columns else _MOST_BYTES
        return cls(rows=rows, size=min(screen, _MOST_BYTES), rest=rest)

    def beginning_of(self, text: str) -> str:
        """The beginning that fits, and how many more bytes there are."""
        shown = "".join(text.splitlines(keepends=True)[: self.rows])
        if self.size is not None:
            shown = shown.encode()[: self.size].decode(errors="ignore")
        more = bytes_of(text) - bytes_of(shown)
        if not more:
            return text
        ending = f"... {more:,} more bytes: {self.rest}"
        return "\n".join([*shown.splitlines(), ending])

    def end_of(self, lines: list[str]) -> list[str]:
        """The last lines, which name the error, and how many more lines come before."""
        if self.rows is None or len(lines) <= self.rows:
            return lines
        return [f"... {len(lines) - self.rows:,} lines before: {self.rest}", *lines[-self.rows :]]


def shown_body(body: str) -> str:
    """The body line by line, without anything that a terminal obeys."""
    return "\n".join(_printable_line(line) for line in body.splitlines())


def _printable_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())].expandtabs()
    return indent + printable(line)


def not_among_them(message_id: str) -> str:
    """Say that a named letter was not found, or is left out by a filter."""
    return f"Not among them: {message_id}. `redrive show {message_id}` looks for it."


#: Behind a number of letters that nobody could look at.
HIDDEN = "hidden, until their next try or while a pass or a person works on them: not looked at."
#: The same of a FIFO queue, where a command leaves letters of a long message group.
HIDDEN_OR_BEHIND = (
    "hidden, or behind the first ten of their message group: not looked at. Run it again once "
    "they can be seen."
)
#: Some messages in the parking lot. The ledger may know them otherwise: as replayed, if their consumer parked them
#: again.
NOT_PARKED_BY_LEDGER = "not in the ledger as parked"
#: For a letter that is hidden until an unknown moment: a pass or a command hides it for minutes at most.
TRY_AGAIN = "try again in five minutes"
_IN_HAND = f"hidden: a pass or a person is working on it; {TRY_AGAIN}"
_IN_THE_DLQ = (Status.RETURNED, Status.FAILED)


def hidden_in_words(until: datetime | None, facts: QueueFacts, now: datetime) -> str | None:
    """Say why a letter that was not found in its queue is hidden, from these facts; None if nothing is hidden there.

    `until`: the moment that this letter alone waits for, if any.
    """
    if until and until > now:
        return f"hidden until {stamp(until)} ({ago(until, now)})"
    return _IN_HAND if facts.hidden else None


def belongs(entry: Entry, *, to_dlq: bool) -> bool:
    """Whether the ledger says for sure that the letter is in this queue."""
    return entry.status in (_IN_THE_DLQ if to_dlq else (Status.PARKED,))


def is_of_one_here(left_over: Case, *, to_dlq: bool) -> bool:
    """Whether the letter of a left-over copy is still in this queue because it was renewed or came back."""
    return left_over.entry is not None and belongs(left_over.entry, to_dlq=to_dlq)
