"""A database whose statements go over the same wire as the calls to AWS."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from fakes.faults import Wire
from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.engine.database import Database, Row
from smart_redriver.postgres.engine.place import JobsDatabase


class WiredDatabase(Database):
    """A database whose statements meet the wire's script. Postgres cancels a statement if AWS would refuse it."""

    def __init__(self, place: JobsDatabase, connect: Any, wire: Wire) -> None:
        super().__init__(place, connect)
        self._wire = wire

    def _run(self, call: str, statement: Any, parameters: Any) -> list[Row]:
        def act(**given: Any) -> Any:
            return Database._run(self, call, statement, given)

        try:
            return self._wire.carry(call, parameters, act)  # type: ignore[return-value]
        except ClientError as refused:
            raise CallFailed(call, "QueryCanceled", str(refused)) from refused
