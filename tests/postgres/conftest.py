"""A real Postgres for all of these tests: one server for each process of them, a new database for each test."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from emulator.postgres import TABLES, PostgresServer, running_postgres
from smart_redriver.postgres.migration import migration_of
from tests.postgres.bench import Bench

_NUMBERS = count()


@contextmanager
def new_database(server: PostgresServer, template: str = "template1") -> Iterator[str]:
    """The name of a database of its own, which is dropped in the end: thousands of them would fill the memory."""
    name = f"test_{next(_NUMBERS)}"
    server.create(name, template=template)
    yield name
    with server.connect("postgres") as owner:
        owner.execute(f'drop database "{name}" with (force)')


def prepare(running: PostgresServer) -> PostgresServer:
    """The server, with a database `template` that has the team's tables and ours."""
    running.create("template")
    migration = migration_of(running.place("template"))
    with running.connect("template") as owner:
        for part in (TABLES, migration.tables, migration.grants, migration.index):
            owner.execute(part)
    return running


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    # Whether a table was analyzed lately is for each test to say.
    with running_postgres("autovacuum=off") as running:
        yield prepare(running)


@pytest.fixture(scope="session")
def own() -> Iterator[PostgresServer]:
    """One without our role until a world makes it."""
    with running_postgres() as running:
        yield running


@pytest.fixture
def bench(server: PostgresServer) -> Iterator[Bench]:
    with new_database(server, "template") as name, Bench(server, name) as one:
        yield one
