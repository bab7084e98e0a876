"""One worker queue, for as long as a process lives: what its passes work with, and how fast its DLQ grows.

A table of ten thousand old letters worries nobody, two hundred new ones in five minutes do.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import datetime, timedelta

from smart_redriver.engine.aws.clients import client
from smart_redriver.engine.aws.metrics import QUEUE, Metric, write
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.ports import Memory, Tools
from smart_redriver.engine.wiring import Parts
from smart_redriver.postgres.engine.credentials import open_database
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.ledger import WordsOfWorkers
from smart_redriver.postgres.engine.outcomes import Outcomes
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.engine.witness import LiveWitness

#: Rounds at once: each has a connection, and a database has some hundred for all who use it.
WORKERS = 8

DEAD_LETTERS_ADDED = Metric(name="DeadLettersAdded", always=True)

#: New is what has died within so long.
LATELY = timedelta(minutes=5)

#: The rows at the end of the table that are looked at; more new ones than that are as bad as so many.
LATEST = 1_000


def added_lately(database: Database, now: datetime) -> int:
    """Letters that have died lately, returned ones among them. Raises CallFailed."""
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
        """Adapters over the database; `memory` is the state table's."""
        database, queue = self._database, self._queue
        dead_letters, witness = DeadLetters(database, clock), LiveWitness(database, clock)
        return {
            "dead_letters": dead_letters,
            "parking_lot": ParkingLot(database, clock),
            "sources": (JobsSource(database, queue, clock),),
            "memory": WordsOfWorkers(memory, dead_letters, queue, database.place.permanent),
            "witness": witness,
            "reports": Outcomes(database, queue, clock, at_each_look=witness.look),
        }

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:
        """Write how fast the DLQ grows to the log, as a metric."""
        try:
            added = added_lately(self._database, tools.clock())
        except CallFailed as failed:
            tools.tell_failed(failed)
        else:
            write({DEAD_LETTERS_ADDED: [added]}, kept, **{QUEUE: self._queue})

    def close(self) -> None:
        """Close the connections that are idle."""
        self._database.close()


def connect(deployment: Deployment, settings: Settings) -> WorkerQueue:  # noqa: ARG001
    """The worker queue of a function, of which nothing is asked yet."""
    place = deployment.location
    assert isinstance(place, JobsDatabase), "read by this backend"  # noqa: S101 - a mistake of ours
    return WorkerQueue(open_database(place, client), deployment.queue_name)
