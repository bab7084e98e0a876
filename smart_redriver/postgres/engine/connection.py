"""One worker queue while a process lives: what its passes work with, and how fast its DLQ grows.

Growth matters: ten thousand old letters worry nobody, but two hundred new ones in five minutes do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.aws.clients import client
from smart_redriver.engine.aws.metrics import QUEUE, Metric, write
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.passes.ports import Memory, Tools
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.wiring import Parts
from smart_redriver.postgres.engine.credentials import open_database
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.letters import cause_of, error_of, first_line
from smart_redriver.postgres.engine.outcomes import Outcomes
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.queue_metrics import JobMetricsReader
from smart_redriver.postgres.engine.source import JobsSource

#: Redrive metadata keeps the time when its letter was first seen in whole seconds.
_AS_STORED = timedelta(seconds=1)


class WordsOfWorkers:
    """A memory that knows why a letter in hand died, even if the ledger does not have the letter yet.

    So the circuits by cause know letters from their first visit on. Everything else comes from the memory itself.
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
        """The ledger's entries, and entries from the rows of letters that it does not know. Raises CallFailed."""
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
    """Whether the entry belongs to another, gone letter: numbers are reused after `truncate ... restart identity`.

    A row from a backup or a file has the same time of death as before. If a row has no time, this can't be known.
    """
    says_when = letter.first_received_at is not None
    is_later = letter.sent_at >= entry.first_seen + _AS_STORED
    return says_when and is_later and entry.has_replaced(letter.message_id)


def entry_of(letter: Letter, queue: str, permanent: Container[str]) -> Entry:
    """The entry that a report of the letter's last failure would have made."""
    error_class, message = error_of(letter)
    cause = cause_of(error_class, message)
    # Not by `Entry.failed`: a copy of an entry takes longer than the rest of this.
    return Entry(
        original_id=letter.message_id,
        queue=queue,
        first_seen=letter.sent_at,
        status=Status.FAILED,
        current_id=letter.message_id,
        failed_tries=1,
        is_settled=True,
        cause=cause,
        error=": ".join(part for part in (cause, first_line(message)) if part) or None,
        is_permanent=error_class in permanent,
    )


class PeoplesLedger(WordsOfWorkers):
    """The same for people. For them, every row that is there is a letter, even if the ledger says that it was sent.

    Send and delete are one transaction, so a crash leaves no copies: if a row is there again, a person has restored it
    from a backup or a file.
    """

    def read_ledger(self, message_ids: Iterable[str]) -> Any:
        """The ledger's entries, with no id marked as replaced. Raises CallFailed."""
        known = super().read_ledger(message_ids)
        for one, entry in known.entries.items():
            known.entries[one] = replace(entry, replaced_ids=())
        return known


#: Parallel rounds: each has a connection, and a database has about a hundred for all its users.
WORKERS = 8

DEAD_LETTERS_ADDED = Metric(name="DeadLettersAdded", always=True)

#: Letters that died within this time are new.
LATELY = timedelta(minutes=5)

#: How many rows at the end of the table to look at: more new letters than that are just as bad.
LATEST = 1_000


def added_lately(database: Database, now: datetime) -> int:
    """Count letters that have died lately, including returned ones. Raises CallFailed."""
    parameters = {"since": now - LATELY, "latest": LATEST}
    ((added,),) = database.run("CountNew", database.statements.count_new, parameters)
    return int(added)


class WorkerQueue:
    """See `smart_redriver.engine.wiring.Connection`."""

    workers = WORKERS

    def __init__(self, database: Database, queue: str) -> None:
        self._database = database
        self._queue = queue

    def parts(self, memory: Memory, clock: Callable[[], datetime]) -> Parts:
        """Adapters over the database. `memory` is in the state table."""
        database, queue = self._database, self._queue
        dead_letters, metrics_reader = (
            DeadLetters(database, clock),
            JobMetricsReader(database, clock),
        )
        return {
            "dead_letters": dead_letters,
            "parking_lot": ParkingLot(database, clock),
            "sources": (JobsSource(database, queue, clock),),
            "memory": WordsOfWorkers(memory, dead_letters, queue, database.place.permanent),
            "metrics_reader": metrics_reader,
            "reports": Outcomes(database, queue, clock, at_each_look=metrics_reader.look),
        }

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:
        """Log how fast the DLQ grows, as a metric."""
        try:
            added = added_lately(self._database, tools.clock())
        except CallFailed as failed:
            tools.tell_failed(failed)
        else:
            write({DEAD_LETTERS_ADDED: [added]}, kept, **{QUEUE: self._queue})

    def close(self) -> None:
        """Close idle connections."""
        self._database.close()


def connect(deployment: Deployment, settings: Settings) -> WorkerQueue:  # noqa: ARG001
    """The worker queue of a function, before its first query."""
    place = deployment.location
    assert isinstance(place, JobsDatabase), "read by this backend"  # noqa: S101 - a mistake of ours
    return WorkerQueue(open_database(place, client), deployment.queue_name)
