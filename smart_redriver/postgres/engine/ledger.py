"""The ledger, with what workers wrote beside their letters: it counts as their report of a letter's death."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.postgres.engine.dead_letters import DeadLetters
from smart_redriver.postgres.engine.letters import cause_of, error_of, first_line

#: A trail keeps whole seconds of when its letter was first seen.
_AS_STORED = timedelta(seconds=1)


class WordsOfWorkers:
    """A memory that knows of a letter in hand why it died, where the ledger has not heard of it before.

    So the circuits by cause know letters from their first visit on. Everything else is the memory's own.
    """

    def __init__(
        self, memory: Any, dead_letters: DeadLetters, queue: str, permanent: Container[str]
    ) -> None:
        self._memory = memory
        self._permanent = permanent
        self._dead_letters = dead_letters
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def read_ledger(self, message_ids: Iterable[str]) -> Any:
        """What the ledger knows, and of the letters that it does not know what their rows say. Raises CallFailed."""
        ids = list(message_ids)
        known = self._memory.read_ledger(ids)
        for one in ids:
            letter = self._dead_letters.in_hand(one)
            if letter is None:
                continue
            entry = known.entries.get(one)
            if entry is None or _has_its_number_anew(letter, entry):
                known.entries[one] = entry_of(letter, self._queue, self._permanent)
        return known


def _has_its_number_anew(letter: Letter, entry: Entry) -> bool:
    """Whether the entry is of another letter, that has gone: numbers come again after `truncate ... restart identity`.

    What a backup or a file brought back has died when that one did; where a row does not say when, nobody can tell.
    """
    says_when = letter.first_received_at is not None
    is_later = letter.sent_at >= entry.first_seen + _AS_STORED
    return says_when and is_later and entry.has_replaced(letter.message_id)


def entry_of(letter: Letter, queue: str, permanent: Container[str]) -> Entry:
    """What a report of its last failure would have made of it."""
    error_class, message = error_of(letter)
    cause = cause_of(error_class, message)
    entry = Entry(
        original_id=letter.message_id,
        queue=queue,
        first_seen=letter.sent_at,
        status=Status.FAILED,
        current_id=letter.message_id,
    )
    error = ": ".join(part for part in (cause, first_line(message)) if part) or None
    return entry.failed(
        tries=1, is_last=True, cause=cause, error=error, permanent=error_class in permanent
    )


class PeoplesLedger(WordsOfWorkers):
    """The same for people, to whom a row that is there is a letter, whatever the ledger says was sent before.

    Send and delete are one transaction, so that no copy is left over by a crash: what is there again a person has put
    back, from a backup or a file.
    """

    def read_ledger(self, message_ids: Iterable[str]) -> Any:
        """What the ledger knows, in which nothing has been replaced. Raises CallFailed."""
        known = super().read_ledger(message_ids)
        for one, entry in known.entries.items():
            known.entries[one] = replace(entry, replaced_ids=())
        return known
