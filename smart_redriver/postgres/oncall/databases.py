"""Connections to the databases of worker queues from a person's machine, with the person's own credentials."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.postgres.engine.place import JobsDatabase

if TYPE_CHECKING:
    from smart_redriver.postgres.engine.database import Connection, Database

#: libpq's own variable for a file of certificate authorities: the function's file is in its bundle, and not here.
#: https://www.postgresql.org/docs/current/libpq-envars.html
AUTHORITIES = "PGSSLROOTCERT"

MakeClient = Callable[[str], Any]


class Databases:
    """Databases by their place, for all sessions of one command. Nothing is opened before its first use."""

    def __init__(self) -> None:
        self._known: dict[str, Database] = {}
        self._clients: dict[str, MakeClient] = {}
        self._lock = Lock()

    def of(self, place: JobsDatabase, make_client: MakeClient) -> Database:
        """The database, with credentials that the latest `make_client` gets from AWS. Raises Refused."""
        key = place.encode()
        with self._lock:
            self._clients[key] = make_client
            if key not in self._known:
                self._known[key] = self._open(key, _with_authorities(place))
            return self._known[key]

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            while self._known:
                self._known.popitem()[1].close()

    def _client(self, key: str, service: str) -> Any:
        return self._clients[key](service)

    def _open(self, key: str, place: JobsDatabase) -> Database:
        try:
            import psycopg

            from smart_redriver.postgres.engine.credentials import Connector
            from smart_redriver.postgres.engine.database import Database
        except ImportError as missing:
            raise Refused(
                f"This queue is a table of Postgres, and psycopg can't be used here ({missing}): install "
                "smart-redriver[oncall,postgres], the package with these extras."
            ) from missing
        connector = Connector(place, partial(self._client, key))

        def connect() -> Connection:
            try:
                return connector()
            except psycopg.OperationalError as fault:
                raise Refused(_unreachable(place, str(fault))) from fault

        return Database(place, connect)


def _with_authorities(place: JobsDatabase) -> JobsDatabase:
    """The place with a file of authorities on this machine. Raises Refused if there is none."""
    if place.sslmode == "disable" or place.sslrootcert == "system":
        return place
    here = os.environ.get(AUTHORITIES) or place.sslrootcert
    if not Path(here).is_file():
        raise Refused(
            f"The authorities that sign for {place.host} are in a file that is not on this machine. Name your copy "
            f"of it: {AUTHORITIES}=global-bundle.pem redrive ... (docs/postgres.md)."
        )
    return replace(place, sslrootcert=here)


def _unreachable(place: JobsDatabase, detail: str) -> str:
    return (
        f"The database {place.dbname} at {place.host}:{place.port} can't be used from here: "
        f"{detail.strip().splitlines()[0]}. "
        "Nothing was changed by that. The command connects from this machine, with your own credentials "
        "(docs/postgres.md, By hand)."
    )
