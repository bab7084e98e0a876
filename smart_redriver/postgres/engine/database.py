"""Connections to one database, and failures of statements, named in the same way as those of calls to AWS.

Each statement is a transaction of its own, with the settings that it needs: a pooler may give each transaction to
another session, and longer-lived settings would affect other clients. A statement that lost its connection may have
been carried out, so it is run once more: every statement returns the same the second time as it would have the first
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from smart_redriver.engine.errors import CallFailed, DatabaseLost
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.statements import Statements

#: A row that should have been inserted is not there. Statements that move letters divide by how often it is there, so
#: that they then do nothing.
SWALLOWED = "InsertSwallowed"
_SWALLOWED_DETAIL = (
    "a trigger keeps rows out of the table or changes their ids, or a check divides by zero: "
    "nothing was moved"
)


class About(Enum):
    """Which letters a refusal would hit as well: none at another moment, everybody's, or some."""

    MOMENT = "MOMENT"
    EVERYBODY = "EVERYBODY"
    SOME = "SOME"


#: Connections, conflicting transactions, locks, a server that starts or stops.
_MOMENT = ("08", "40", "55P03", "57P")

#: Read-only transactions, authentication, the database, a schema, resources, an operator's actions, the machine.
_EVERYBODY = ("25", "28", "3D", "3F", "53", "57", "58")
#: Exceptions among these: one letter may need more memory or time than there is.
_SOME = ("53200", "57014")

#: Rights, names, and what the table can't do. From a function, they may be about one row.
_EVERYBODY_OUTSIDE_FUNCTIONS = ("0A", "42", "55")

#: PL/pgSQL's marker for an error in its context, in every language.
_RAISED = "RAISE"


class StatementRefused(CallFailed):
    """Raised when Postgres refuses a statement. Nothing of it was done.

    `about`: which letters it would hit as well. `may_be_one`: a single row may be the reason. `answer`: its code with
    the name of a constraint or column, but nothing from a row.
    """

    def __init__(self, call: str, code: str, detail: str, *, sqlstate: str, context: str) -> None:
        super().__init__(call, code, detail)
        self.about = about(sqlstate, context)
        self.may_be_one = self.about is About.SOME or bool(context)
        self.answer = code

    @classmethod
    def of(cls, call: str, error: psycopg.Error) -> StatementRefused:
        """Describe psycopg's error by the first line of its text, because later lines may quote a row."""
        code, detail = type(error).__name__, str(error).partition("\n")[0]
        context = error.diag.context or ""
        if isinstance(error, psycopg.errors.DivisionByZero) and not context:
            code, detail = SWALLOWED, _SWALLOWED_DETAIL
        refused = cls(call, code, detail, sqlstate=error.sqlstate or "", context=context)
        if name := error.diag.constraint_name or error.diag.column_name:
            refused.answer = f"{code} ({name})"
        return refused


def about(sqlstate: str, context: str) -> About:
    """Which letters a refusal with this code would hit, too. `context`: the function or index behind it, or empty."""
    if _RAISED in context:
        return About.SOME
    if sqlstate.startswith(_MOMENT):
        return About.MOMENT
    if context or sqlstate.startswith(_SOME):
        return About.SOME
    is_everybodys = sqlstate.startswith((*_EVERYBODY, *_EVERYBODY_OUTSIDE_FUNCTIONS))
    return About.EVERYBODY if is_everybodys else About.SOME


Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

#: A statement is one batch or one page. A caller whose statement waits longer for another's lock goes on without it.
STATEMENT_TIMEOUT: LiteralString = "30s"
LOCK_TIMEOUT: LiteralString = "2s"

#: Row-level security must raise an error: rows that it hides would look gone, and therefore successful.
#: Times, texts and numbers come complete and in the form that is read here, regardless of settings of the role or the
#: database. A time without a zone is in UTC.
_BEGIN: LiteralString = (
    f"begin; set local statement_timeout = '{STATEMENT_TIMEOUT}'; set local lock_timeout = '{LOCK_TIMEOUT}';"
    " set local row_security = off; set local timezone = 'UTC'; set local datestyle = 'ISO';"
    " set local client_encoding = 'UTF8'; set local extra_float_digits = 3"
)

#: The connection is gone, and the answer with it; or there was no connection.
LOST = "ConnectionClosedError"
NO_CONNECTION = "EndpointConnectionError"

#: Errors other than its own that psycopg raises for values that it can't write or read.
_UNREADABLE = (TypeError, ValueError, NotImplementedError)


class Database:
    """A database with a worker queue. It is thread-safe: each statement has its own connection.

    `connect` opens one, in autocommit. It is kept as long as it works.
    """

    def __init__(self, place: JobsDatabase, connect: Callable[[], Connection]) -> None:
        self.place = place
        self.statements = Statements.of(place)
        self._connect = connect
        self._idle: list[Connection] = []

    def run(self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]) -> list[Row]:
        """Run a statement and return its rows. Raises CallFailed, in the name of `call`."""
        try:
            return self._run(call, statement, parameters)
        except CallFailed as failed:
            if failed.code != LOST:
                raise
            return self._run(call, statement, parameters)

    def rehearse(
        self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]
    ) -> list[Row]:
        """Run a statement, roll it back, and return its rows. Raises CallFailed."""
        with self._transaction(call, ends="rollback") as connection:
            rows = connection.execute(statement, parameters).fetchall()
            connection.execute("set constraints all immediate")
            return rows

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _run(self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]) -> list[Row]:
        with self._transaction(call) as connection:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _transaction(self, call: str, ends: LiteralString = "commit") -> Iterator[Connection]:
        """A transaction on a connection of its own. Raises CallFailed with nothing done, or with the answer lost."""
        with self._connection(call) as connection:
            try:
                connection.execute(_BEGIN)
                yield connection
                connection.execute(ends)
            except psycopg.Error as error:
                failed = _failed(call, error, connection)
                _roll_back(connection)
                raise failed from error
            except _UNREADABLE as error:
                _roll_back(connection)
                raise CallFailed(call, type(error).__name__, str(error)) from error

    @contextmanager
    def _connection(self, call: str) -> Iterator[Connection]:
        # A list's pop and append are atomic for threads. A connection whose use was interrupted is not given back.
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open(call)
        try:
            yield connection
        except CallFailed:
            if not connection.closed:
                self._idle.append(connection)
            else:
                self.close()  # the other connections have lost their server, too
            raise
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def _open(self, call: str) -> Connection:
        try:
            return self._connect()
        except psycopg.Error as error:
            detail = str(error).partition("\n")[0]
            raise DatabaseLost(call, NO_CONNECTION, detail) from error


def _roll_back(connection: Connection) -> None:
    """Roll the connection back. One that can't be rolled back is no longer usable."""
    try:
        if not connection.closed:
            connection.execute("rollback")
    except psycopg.Error:
        connection.close()


def _failed(call: str, error: psycopg.Error, connection: Connection) -> CallFailed:
    """Return the failure with Postgres's own name for the fault, such as "CheckViolation"."""
    refused = StatementRefused.of(call, error)
    return DatabaseLost(call, LOST, refused.detail) if connection.closed else refused
