"""A real Postgres for all of these tests: one server for each process of them, a new database for each test."""

from collections.abc import Iterator
from itertools import count

import pytest

from emulator.postgres import TABLES, PostgresServer, running_postgres
from smart_redriver.postgres.migration import migration_of
from tests.postgres.bench import Bench

_NUMBERS = count()


def new_name() -> str:
    """A database's, that no other has."""
    return f"test_{next(_NUMBERS)}"


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
    name = new_name()
    server.create(name, template="template")
    with Bench(server, name) as one:
        yield one
