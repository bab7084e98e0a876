"""The state table as a file of SQLite: lease, circuit and ledger, item by item as DynamoDB would have them.

Each call is one transaction that is on disk when it returns. Processes on one machine may share the file: SQLite has
them wait for each other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from smart_redriver.engine.aws import items
from smart_redriver.engine.aws.state_table import Known
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Trail
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.lease import Lease
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.reports.processing import Told
from smart_redriver.engine.triage.ledger import Entry

Item = dict[str, Any]

#: Seconds that one process waits for another's transaction.
_PATIENCE = 10.0

_TABLE = "create table if not exists state (key text primary key, item text not null, ends integer) without rowid"

#: What reading an item raises that no version wrote.
_DAMAGES = (KeyError, ValueError, TypeError, OverflowError)

#: Keys of one query: SQLite allows 32,766 parameters, and 999 in old versions.
_KEYS_AT_ONCE = 500


class SqliteMemory:
    """See `passes.ports.Memory`. `queue`: whose lease and circuit these are."""

    def __init__(
        self, connection: sqlite3.Connection, queue: str, clock: Callable[[], datetime]
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._clock = clock

    @classmethod
    def open(cls, file: Path, queue: str, clock: Callable[[], datetime]) -> SqliteMemory:
        """The file, made where it is not there. Raises CallFailed."""
        with _naming("OpenState"):
            connection = sqlite3.connect(
                file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            connection.execute(_TABLE)
        return cls(connection, queue, clock)

    def of(self, queue: str) -> SqliteMemory:
        """The same for another source topic."""
        return SqliteMemory(self._connection, queue, self._clock)

    def acquire_lease(self, lease: Lease, now: datetime) -> bool:
        """Take the lease unless another holds it. Raises CallFailed."""
        key = items.lease_key(self._queue)
        with self._transaction("TakeLease"):
            owner, until = self._lease(key)
            is_free = until <= now.timestamp() or owner == lease.owner
            if is_free:
                ends = lease.expires_at.timestamp()
                self._put(key, {"owner": lease.owner, "until": ends}, int(ends))
        return is_free

    def release_lease(self, lease: Lease) -> bool:
        """Give the lease back; False when it is another's. Raises CallFailed."""
        key = items.lease_key(self._queue)
        with self._transaction("GiveBackLease"):
            is_ours = self._lease(key)[0] == lease.owner
            if is_ours:
                self._connection.execute("delete from state where key = ?", (_text(key),))
        return is_ours

    def load_circuit(self) -> Circuit | None:
        """The circuit; None before the first write. Raises CallFailed."""
        with _naming("ReadCircuit"):
            item = self._get(items.circuit_key(self._queue))
        with _reading("ReadCircuit", "UnreadableCircuit"):
            return items.circuit_from_item(self._queue, item) if item else None

    def save_circuit(self, circuit: Circuit) -> Circuit | None:
        """Write over the version that it was read as; None when another got there first. Raises CallFailed."""
        written = replace(circuit, version=circuit.version + 1)
        key = items.circuit_key(self._queue)
        with self._transaction("WriteCircuit"):
            item = self._get(key)
            with _reading("WriteCircuit", "UnreadableCircuit"):
                known = items.circuit_from_item(self._queue, item).version if item else 0
            is_ours = known == circuit.version
            if is_ours:
                self._put(key, items.circuit_to_item(written), None)
        return written if is_ours else None

    def load_hint(self) -> Hint | None:
        """The last hint about the consumer. Raises CallFailed."""
        with _naming("ReadHint"):
            item = self._get(items.hint_key(self._queue))
        with _reading("ReadHint", "UnreadableHint"):
            return items.hint_from_item(item) if item else None

    def save_hint(self, hint: Hint) -> Hint | None:
        """Write what somebody says of the consumer, and return what was said before. Raises CallFailed."""
        before = self.load_hint()
        self._put_all("WriteHint", [items.hint_to_item(self._queue, hint)])
        return before

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """What the ledger knows under these ids. Raises CallFailed."""
        known = Known()
        wanted = [_text(items.message_key(one)) for one in dict.fromkeys(message_ids)]
        for item in self._all(wanted):
            with _reading("ReadLedger", "UnreadableEntry"):
                message_id = item["PK"]["S"].partition("#")[2]
                if trail := items.kept_trail_from_item(item):
                    known.trails[message_id] = trail
                else:
                    known.entries[message_id] = items.entry_from_item(item)
        return known

    def write_ledger(
        self, entries: Sequence[Entry], kept_trails: Sequence[tuple[str, Trail]], now: datetime
    ) -> None:
        """Write entries and kept trails, all or none. Raises CallFailed."""
        self._put_all(
            "WriteLedger",
            [
                *(items.kept_trail_to_item(at, trail, now) for at, trail in kept_trails),
                *(items.entry_to_item(one, now) for one in entries),
            ],
        )

    def write_failures(self, failures: Sequence[Told], until: datetime) -> None:
        """Write how letters failed. Raises CallFailed."""
        self._put_all("WriteFailures", [items.failure_to_item(one, until) for one in failures])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _put_all(self, call: str, some: Sequence[Item]) -> None:
        if some:
            with self._transaction(call):
                for one in some:
                    self._put(
                        {"PK": one["PK"]}, one, int(one["TTL"]["N"]) if "TTL" in one else None
                    )
                now = int(self._clock().timestamp())
                self._connection.execute("delete from state where ends < ?", (now,))

    def _all(self, keys: Sequence[str]) -> Iterator[Item]:
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[first : first + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"select item from state where key in ({marks})"  # noqa: S608 - marks alone
            with _naming("ReadLedger"):
                rows = self._connection.execute(query, some).fetchall()
            for (text,) in rows:
                yield _item("ReadLedger", text)

    def _lease(self, key: Item) -> tuple[str, float]:
        """Who holds it, and until when; nobody until the beginning of time."""
        held = self._get(key) or {"owner": "", "until": 0}
        with _reading("ReadLease", "UnreadableLease"):
            return str(held["owner"]), float(held["until"])

    def _get(self, key: Item) -> Item | None:
        rows = self._connection.execute("select item from state where key = ?", (_text(key),))
        row = rows.fetchone()
        return _item("ReadItem", row[0]) if row else None

    def _put(self, key: Item, item: Item, ends: int | None) -> None:
        self._connection.execute(
            "insert or replace into state values (?, ?, ?)", (_text(key), json.dumps(item), ends)
        )

    @contextmanager
    def _transaction(self, call: str) -> Iterator[None]:
        with _naming(call):
            self._connection.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")


@contextmanager
def _naming(call: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise CallFailed(call, type(error).__name__, str(error)) from error


@contextmanager
def _reading(call: str, code: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGES as fault:
        detail = f"{fault!r}: damaged, or of a version that this one does not know"
        raise CallFailed(call, code, detail) from fault


def _item(call: str, text: str) -> Item:
    with _reading(call, "UnreadableEntry"):
        item: Item = json.loads(text)
    return item


def _text(key: Item) -> str:
    text: str = key["PK"]["S"]
    return text
