"""The table that letters are parked in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from psycopg import sql

from redrive.core.outgoing import Outgoing, Sent
from redrive.database_names import DEAD_COLUMNS, OF_PARKED
from redrive.errors import EntryFault
from redrive.postgres.batches import Batches
from redrive.postgres.dead_letters import DeadLetters
from redrive.postgres.letters import Handle
from redrive.postgres.statements import composed, names_of
from redrive.postgres.texts import PARK

#: Before the name of a column: in the list of columns, of the row in the DLQ, of that row when it has left.
_PREFIXES: tuple[LiteralString, ...] = ("", "d.", "g.")


class ParkingLot(DeadLetters):
    """The table that holds letters for a person: letters are moved to it, too, with all that both tables have a column for."""

    _is_parked = True

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Move letters here out of the DLQ, each with its trail. One that is parked already stays."""
        batches = Batches("ParkLetters", self._park)
        if outgoing:
            batches.run(outgoing)
        batches.sent.faults += [
            EntryFault.of(failed, one.letter.message_id) for one, failed in batches.refused
        ]
        return batches.sent

    def _park(self, some: Sequence[Outgoing]) -> dict[int, str]:
        handles = [Handle.of(one.letter) for one in some]
        parameters = {
            "rows": [one.row for one in handles],
            "trails": [one.trail.encode() for one in some],
            "left_jobs": [one.job for one in handles],
            "now": self._clock(),
        }
        rows = self._database.run("ParkLetters", self._statement(), parameters)
        return {row: f"parked-{row}" for (row,) in rows}

    def _statement(self) -> sql.Composed:
        """With the further columns as they are now: a table may get one, or lose one, between two passes. Raises CallFailed."""
        place, known = self._database.place, self._database.statements
        called = [place.column(f"jobs_dlq.{one}") for one in DEAD_COLUMNS]
        told = {"known": [*called, *place.carried, *OF_PARKED]}
        beside = [name for (name,) in self._database.run("ReadColumns", known.beside, told)]
        lists = {
            f"{prefix.strip('.')}beside": sql.Composed(
                [sql.SQL(f", {prefix}") + sql.Identifier(one.replace("%", "%%")) for one in beside]
            )
            for prefix in _PREFIXES
        }
        return composed(PARK, {**names_of(place), **lists})
