"""What is known of letters of a file before they are brought back: what the ledger says, and what can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redrive.core.ledger import Entry, Status
from smart_redriver.oncall.letters.jsonlines import Kept
from smart_redriver.oncall.stack.session import Session


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The ledger's entries, and of which of them nothing is about any more, by original ids."""

    entries: Mapping[str, Entry]
    gone: frozenset[str]

    @classmethod
    def of(cls, session: Session, few: Iterable[Kept]) -> Whereabouts:
        """Look. Raises CallFailed."""
        entries = session.store.read_ledger(one.letter.original_id for one in few).entries
        deleted = {key for key, entry in entries.items() if entry.status is Status.DELETED}
        others = [entry for key, entry in entries.items() if key not in deleted]
        return cls(entries, frozenset(deleted | session.lodging.nowhere(others)))
