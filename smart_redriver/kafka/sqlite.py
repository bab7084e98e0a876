"""The state table as a file of SQLite, with the calls of a DynamoDB client: for passes and for the command.

Each call, even for a batch, is one transaction that is on disk when it returns. Processes on one machine may share the
file: SQLite makes them wait for each other. Of DynamoDB's expressions, only those that this package writes are
supported.
"""
# ruff: noqa: N803 - the parameters have boto3's names

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from smart_redriver.engine.config.backends import OPEN_STATE
from smart_redriver.engine.errors import CallFailed

Item = Mapping[str, Any]

#: The table's name for its callers. The file has one table.
TABLE = "state"

#: Seconds that a process waits for another's transaction.
_PATIENCE = 10.0

_MAKE = "create table if not exists state (key text primary key, item text not null, ends integer) without rowid"
_NAME = (
    "create table if not exists identity (id text not null)",
    "insert into identity select lower(hex(randomblob(8))) where not exists (select 1 from identity)",
)


class SqliteTable:
    """The calls that `StateStore`, the audit trail and scans of the ledger make. Each raises CallFailed.

    A connection would go on with a file that was deleted, beside another process with a new one. So each call sees
    whether the opened file is still at its path.
    """

    def __init__(
        self, connection: sqlite3.Connection, clock: Callable[[], float], file: Path
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._file = file
        self._opened = os.stat(file)  # noqa: PTH116 - a call of a tenth of the time
        self._lock = Lock()

    @classmethod
    def open(cls, file: Path, clock: Callable[[], float], *, is_made: bool = False) -> SqliteTable:
        """Open the file. If `is_made`, make it if it does not exist. Raises CallFailed, which says what to do.

        The folder is never made: if a disk is not mounted, an empty state would make passes send letters again.
        """
        try:
            mode = "rwc" if is_made else "rw"
            connection = sqlite3.connect(
                f"{file.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = full")
            connection.execute(_MAKE)
            return cls(connection, clock, file.absolute())
        except (sqlite3.Error, OSError) as error:
            why = _why_not_opened(file.absolute(), error, is_made=is_made)
            raise CallFailed(OPEN_STATE, type(error).__name__, why) from error

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = True) -> Item:  # noqa: ARG002
        """The item under a key."""
        with self._transaction("GetItem"):
            item = self._get(Key)
        return {"Item": item} if item else {}

    def put_item(self, *, Item: Item, ReturnValues: str = "NONE", **request: Any) -> Item:
        """Write an item, if its condition holds for the one that is there."""
        with self._transaction("PutItem"):
            before = self._met("PutItem", Item, request)
            self._put(Item)
        return {"Attributes": before} if before and ReturnValues == "ALL_OLD" else {}

    def delete_item(self, *, Key: Item, **request: Any) -> Item:
        """Delete an item, if its condition holds for it."""
        with self._transaction("DeleteItem"):
            self._met("DeleteItem", Key, request)
            self._connection.execute("delete from state where key = ?", (_text(Key),))
        return {}

    def update_item(self, *, Key: Item, UpdateExpression: str, **request: Any) -> Item:
        """Set attributes to a value, or append to a list, if the condition holds."""
        with self._transaction("UpdateItem"):
            before = self._met("UpdateItem", Key, request) or Key
            self._put({**before, **_set(UpdateExpression, request, before)})
        return {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> Item:
        """The items under some keys."""
        found: dict[str, list[Item]] = {}
        with self._transaction("BatchGetItem"):
            for table, asked in RequestItems.items():
                items = [self._get(key) for key in asked["Keys"]]
                found[table] = [one for one in items if one is not None]
        return {"Responses": found}

    def batch_write_item(self, *, RequestItems: Mapping[str, Sequence[Item]]) -> Item:
        """Write items, all or none, and delete those that have expired."""
        with self._transaction("BatchWriteItem"):
            for requests in RequestItems.values():
                for one in requests:
                    self._put(one["PutRequest"]["Item"])
            self._connection.execute("delete from state where ends < ?", (int(self._clock()),))
        return {}

    def scan(self, *, FilterExpression: str, **request: Any) -> Item:
        """All items for which a condition holds."""
        holds = _condition(FilterExpression, request)
        with self._transaction("Scan"):
            rows = self._connection.execute("select item from state order by key").fetchall()
        items = [_item("Scan", text) for (text,) in rows]
        return {"Items": [one for one in items if holds(one)]}

    def identity(self) -> str:
        """A unique name of this file. A copy has the same name. Raises CallFailed."""
        with self._transaction("NameState"):
            for statement in _NAME:
                self._connection.execute(statement)
            (name,) = self._connection.execute("select id from identity").fetchone()
        return str(name)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _met(self, call: str, key: Item, request: Mapping[str, Any]) -> Item | None:
        """The existing item, which must meet the request's condition if there is one."""
        item = self._get(key)
        expression = request.get("ConditionExpression")
        if expression and not _condition(expression, request)(item or {}):
            raise CallFailed(call, "ConditionalCheckFailedException", "the condition does not hold")
        return item

    def _get(self, key: Item) -> Item | None:
        rows = self._connection.execute("select item from state where key = ?", (_text(key),))
        row = rows.fetchone()
        return _item("GetItem", row[0]) if row else None

    def _put(self, item: Item) -> None:
        ends = int(float(item["TTL"]["N"])) if "TTL" in item else None
        row = (_text(item), json.dumps(item), ends)
        self._connection.execute("insert or replace into state values (?, ?, ?)", row)

    @contextmanager
    def _transaction(self, call: str) -> Iterator[None]:
        with self._lock, _naming(call):
            self._connection.execute("begin immediate")
            try:
                self._see_the_file(call)
                yield
            except BaseException:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def _see_the_file(self, call: str) -> None:
        """Raises CallFailed if the opened file is no longer at its path."""
        try:
            is_there = os.path.samestat(self._opened, os.stat(self._file))  # noqa: PTH116
        except OSError:
            is_there = False
        if not is_there:
            raise CallFailed(
                call,
                "StateReplaced",
                f"the state {self._file} is gone or was replaced. Stop the process and put the file back. Without it, "
                "a new start sends letters that are out again",
            )


def _why_not_opened(file: Path, error: Exception, *, is_made: bool) -> str:
    """Why a file can't be opened, and the remedy, because SQLite has the same message for every reason."""
    if not os.path.isdir(file.parent):  # noqa: PTH112 - False where one may not look
        return (
            f"The folder {file.parent} of the state is not there. Make it, on a disk that stays, for the user that "
            "runs the process."
        )
    if os.path.isdir(file):  # noqa: PTH112
        return f"The state {file} is a folder. Name a file in it."
    if not is_made and not os.path.exists(file):  # noqa: PTH110
        return (
            f"The state {file} is not there. The process makes it when it first runs: see that it has, and that this "
            "is its machine."
        )
    return (
        f"The state {file} can't be opened ({error}). See that you may read and write the file and its folder, and "
        "that it is a state."
    )


@contextmanager
def _naming(call: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise CallFailed(call, type(error).__name__, str(error)) from error


def _item(call: str, text: str) -> Item:
    try:
        item: Item = json.loads(text)
    except ValueError as fault:
        raise CallFailed(call, "UnreadableEntry", f"{fault!r}: the file is damaged") from fault
    return item


def _text(key: Item) -> str:
    text: str = key["PK"]["S"]
    return text


#: `name = :value`, with size(name) or another comparison; or a function of a name, and of a value with some.
_COMPARISON = re.compile(r"(?:(size)\((#?\w+)\)|(#?\w+)) (=|<|<=) (:\w+)")
_FUNCTION = re.compile(r"(attribute_not_exists|contains)\((#?\w+)(?:, (:\w+))?\)")
_ASSIGNMENT = re.compile(r"(#\w+) = (?:list_append\(if_not_exists\(\1, (:\w+)\), (:\w+)\)|(:\w+))")

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
}

_Condition = Callable[[Item], bool]


def _condition(expression: str, request: Mapping[str, Any]) -> _Condition:
    """Parse a condition: terms joined by OR, each of tests joined by AND."""
    terms = [
        [_test(test, request) for test in term.split(" AND ")] for term in expression.split(" OR ")
    ]
    return lambda item: any(all(test(item) for test in term) for term in terms)


def _test(text: str, request: Mapping[str, Any]) -> _Condition:
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})
    if found := _FUNCTION.fullmatch(text):
        function, name, value = found.groups()
        name = names.get(name, name)
        if function == "contains":
            return lambda item: _contains(item.get(name), values[value])
        return lambda item: name not in item
    found = _COMPARISON.fullmatch(text)
    assert found is not None, f"no condition that the package writes: {text}"  # noqa: S101
    measure, measured, name, comparison, value = found.groups()
    name, compare = names.get(measured or name, measured or name), _COMPARE[comparison]
    wanted = _plain(values[value])
    if measure:
        return lambda item: name in item and compare(len(_plain(item[name])), wanted)
    return lambda item: name in item and compare(_plain(item[name]), wanted)


def _set(expression: str, request: Mapping[str, Any], before: Item) -> dict[str, Any]:
    names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
    changed: dict[str, Any] = {}
    for name, none, more, value in _ASSIGNMENT.findall(expression.removeprefix("SET ")):
        if value:
            changed[names[name]] = values[value]
        else:
            there = before.get(names[name], values[none])
            changed[names[name]] = {"L": [*there["L"], *values[more]["L"]]}
    return changed


def _plain(value: Item) -> Any:
    """A value without its type. A number becomes a number."""
    ((kind, plain),) = value.items()
    return float(plain) if kind == "N" else plain


def _contains(there: Item | None, wanted: Item) -> bool:
    """Whether a list, a set or a text contains a value."""
    if there is None:
        return False
    ((kind, plain),) = there.items()
    return (wanted if kind == "L" else _plain(wanted)) in plain
