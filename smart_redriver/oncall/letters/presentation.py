"""How letters and their ledger entries are shown, in every command alike."""

from __future__ import annotations

from typing import Any

from redrive.core.ledger import Entry
from redrive.core.letter import Letter
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import stamp

#: A label for letters whose consumer left no error on them.
NO_ERROR = "no error given"


def label(entry: Entry) -> tuple[str, str]:
    """Reason and error, as groups are named."""
    return entry.park_reason or "UNKNOWN", entry.error or NO_ERROR


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """A ledger entry as every `--json` shows it."""
    return {
        "original_id": entry.original_id,
        "current_id": entry.current_id,
        "status": entry.status.value,
        "reason": entry.park_reason,
        "error": entry.error,
        "redrive_count": entry.redrive_count,
        "strikes": entry.strikes,
        "first_seen": stamp(entry.first_seen),
        "last_redrive": stamp(entry.last_redrive),
        "parked_at": stamp(entry.parked_at),
        "history": list(entry.history),
    }


def shown_body(letter: Letter) -> str:
    """The body line by line, with nothing in it that a terminal obeys."""
    return "\n".join(_printable_line(line) for line in letter.body.splitlines())


def _printable_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())].expandtabs()
    return indent + printable(line)
