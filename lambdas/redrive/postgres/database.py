"""Connections to one database, and what can go wrong in a statement, named as calls to AWS are.

Each statement is a transaction of its own (`autocommit`). One that lost its connection may have been carried out, so it
is asked once more: every statement answers the second time what it would have answered the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from redrive.databases import JobsDatabase
from redrive.errors import CallFailed, DatabaseLost
from redrive.postgres.refusals import StatementRefused
from redrive.postgres.statements import Statements

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

#: A statement is one batch, or one page. Who waits longer for a lock of another's goes on without it.
STATEMENT_TIMEOUT: LiteralString = "30s"
LOCK_TIMEOUT: LiteralString = "2s"

#: Row level security is told as an error: rows that it hides from us would look as if they had gone, and so succeeded.
#: Times, texts and numbers come whole and in the form that is read here, whatever the role or the database is set to.
_SETTINGS: LiteralString = (
    f"set statement_timeout = '{STATEMENT_TIMEOUT}'; set lock_timeout = '{LOCK_TIMEOUT}';"
    " set row_security = off; set datestyle = 'ISO'; set client_encoding = 'UTF8'; set extra_float_digits = 3"
)

#: The connection is gone, and with it the answer; and there was none.
LOST = "ConnectionClosedError"
NO_CONNECTION = "EndpointConnectionError"

#: What psycopg raises beside its own errors, of values that it can't write or read.
_UNREADABLE = (TypeError, ValueError, NotImplementedError)


class Database:
    """A database with a worker queue. Safe for threads: each statement has a connection to itself.

    `connect` opens one, in autocommit; it is kept for as long as it works.
    """

    def __init__(self, place: JobsDatabase, connect: Callable[[], Connection]) -> None:
        self.place = place
        self.statements = Statements.of(place)
        self._connect = connect
        self._idle: list[Connection] = []

    def run(self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]) -> list[Row]:
        """The rows that a statement answers with. Raises CallFailed, in the name of `call`."""
        try:
            return self._run(call, statement, parameters)
        except CallFailed as failed:
            if failed.code != LOST:
                raise
            return self._run(call, statement, parameters)

    def rehearse(
        self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]
    ) -> list[Row]:
        """The rows that a statement would answer with, of which nothing stays. Raises CallFailed."""
        with self._connection(call) as connection:
            try:
                with connection.transaction(force_rollback=True):
                    rows = connection.execute(statement, parameters).fetchall()
                    connection.execute("set constraints all immediate")
                    return rows
            except psycopg.Error as error:
                raise _failed(call, error, connection) from error

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def _run(self, call: str, statement: sql.Composed, parameters: Mapping[str, Any]) -> list[Row]:
        with self._connection(call) as connection:
            try:
                cursor = connection.execute(statement, parameters)
                return cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                raise _failed(call, error, connection) from error
            except _UNREADABLE as error:
                raise CallFailed(call, type(error).__name__, str(error)) from error

    @contextmanager
    def _connection(self, call: str) -> Iterator[Connection]:
        # A list's pop and append are whole for threads. None is given back that somebody was interrupted in.
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
                self.close()  # the others have lost their server, too
            raise
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    def _open(self, call: str) -> Connection:
        try:
            connection = self._connect()
            try:
                connection.execute(_SETTINGS)
            except psycopg.Error:
                connection.close()
                raise
        except psycopg.Error as error:
            detail = str(error).partition("\n")[0]
            raise DatabaseLost(call, NO_CONNECTION, detail) from error
        return connection


def _failed(call: str, error: psycopg.Error, connection: Connection) -> CallFailed:
    """By Postgres's own name for what went wrong: "CheckViolation"."""
    refused = StatementRefused.of(call, error)
    return DatabaseLost(call, LOST, refused.detail) if connection.closed else refused
