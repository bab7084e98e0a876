"""The tools of a pass whose DLQ is a table of Postgres, by their names in `Tools`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from redrive.postgres.database import Database
from redrive.postgres.dead_letters import DeadLetters
from redrive.postgres.ledger import WordsOfWorkers
from redrive.postgres.outcomes import Outcomes
from redrive.postgres.parking_lot import ParkingLot
from redrive.postgres.source import JobsSource
from redrive.postgres.witness import LiveWitness


def parts_of(
    database: Database, queue: str, memory: Any, clock: Callable[[], datetime]
) -> dict[str, Any]:
    """What a pass works with besides clock, journal and the like; `memory` is the state table's."""
    dead_letters, witness = DeadLetters(database, clock), LiveWitness(database, clock)
    return {
        "dead_letters": dead_letters,
        "parking_lot": ParkingLot(database, clock),
        "sources": (JobsSource(database, queue, clock),),
        "memory": WordsOfWorkers(memory, dead_letters, queue, database.place.permanent),
        "witness": witness,
        "reports": Outcomes(database, queue, clock, at_each_look=witness.look),
    }
