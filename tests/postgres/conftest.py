"""A real Postgres for all of these tests: one server for each process of them, a new database for each test."""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from emulator.postgres import TABLES, PostgresServer
from redrive.postgres.migration import migration_of
from tests.postgres.bench import Bench

_NUMBERS = count()


def prepared(directory: Path) -> PostgresServer:
    """A server under way, with a database `template` that has the team's tables and ours."""
    running = PostgresServer(directory)
    running.start()
    running.create("template")
    migration = migration_of(running.place("template"))
    with running.connect("template") as owner:
        for part in (TABLES, migration.tables, migration.grants, migration.index):
            owner.execute(part)
    return running


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    # A short name: a socket's path has a hundred letters at most.
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    running = prepared(directory)
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(directory)


@pytest.fixture
def bench(server: PostgresServer) -> Iterator[Bench]:
    name = f"test_{next(_NUMBERS)}"
    server.create(name, template="template")
    with Bench(server, name) as one:
        yield one
