"""PgBouncer between: what a pass sets is there for each statement of its own, and for nobody else's."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from emulator.postgres import NOBODY, STARTS_WITHIN, PostgresServer
from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.engine.dead_letters import DeadLetters
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.migration import ROLE
from tests.postgres.bench import QUEUE, Bench

#: Where `make .pgbouncer/.ready` has unpacked it.
UNPACKED = Path(__file__).parents[2] / ".pgbouncer"
PROGRAM = UNPACKED / "usr/sbin/pgbouncer"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="make .pgbouncer/.ready")

#: One server session for each database, so that every client meets what another has left.
CONFIGURATION = """
[databases]
* = host={server} port=5432
[pgbouncer]
pool_mode = transaction
default_pool_size = 1
auth_type = trust
auth_file = {directory}/users
unix_socket_dir = {directory}
listen_port = 6432
logfile =
"""


@pytest.fixture(scope="module")
def pooler(server: PostgresServer) -> Iterator[Path]:
    """The directory of its socket."""
    directory = Path(tempfile.mkdtemp(prefix="pgb-"))
    (directory / "ini").write_text(
        CONFIGURATION.format(server=server.directory, directory=directory)
    )
    (directory / "users").write_text(f'"{ROLE}" ""\n"postgres" ""\n')
    # It does not run as root, and that user may not see what is below the repository.
    program = shutil.copy(PROGRAM, directory)
    for one in UNPACKED.rglob("lib*.so.*"):
        shutil.copy(one, directory)
    directory.chmod(0o755)
    identity: dict[str, Any] = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
    if identity:
        os.chown(directory, NOBODY, NOBODY)
    process = subprocess.Popen(
        [program, directory / "ini"],
        env={"LD_LIBRARY_PATH": str(directory)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **identity,
    )
    try:
        wait_for(directory, process)
        yield directory
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(directory)


def wait_for(directory: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while not (directory / ".s.PGSQL.6432").exists():
        assert process.poll() is None, "it did not start"
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def pooled(bench: Bench, pooler: Path) -> Bench:
    """The role's connections go through the pooler."""
    bench.database = bench.open(connect=lambda: connect(bench, pooler))
    return bench


def connect(bench: Bench, pooler: Path, user: str = ROLE) -> psycopg.Connection:
    return psycopg.connect(
        host=str(pooler),
        port=6432,
        dbname=bench.name,
        user=user,
        autocommit=True,
        prepare_threshold=None,
    )


def test_letters_go_and_their_outcomes_are_heard_through_a_pooler(pooled):
    pooled.die("a", "b", "c")

    assert pooled.live(base_delay_seconds=0) == 0

    assert sorted(pooled.done.elements()) == ["a", "b", "c"]


def test_what_a_pass_sets_is_not_left_to_the_next_client(pooled, pooler):
    names = ["statement_timeout", "lock_timeout", "row_security", "timezone", "extra_float_digits"]
    shown = "select " + ", ".join(f"current_setting('{one}')" for one in names)
    with connect(pooled, pooler) as another:
        before = another.execute(shown).fetchone()

        DeadLetters(pooled.database, pooled.clock.now).facts()

        assert another.execute(shown).fetchone() == before


def test_rows_that_are_hidden_are_told_whatever_another_client_has_set(pooled, pooler):
    """A hidden row would look like a success."""
    pooled.owner.execute("alter table jobs_dlq enable row level security")
    with connect(pooled, pooler) as another:
        another.execute("set row_security = on")
        another.execute("set statement_timeout = '1h'")

        with pytest.raises(CallFailed) as refused:
            DeadLetters(pooled.database, pooled.clock.now).facts()

    assert refused.value.code == "InsufficientPrivilege"


def test_a_time_without_a_zone_is_one_of_utc_whatever_the_roles_is(bench):
    bench.owner.execute(f"alter role {ROLE} in database {bench.name} set timezone = '+14'")
    bench.owner.execute("alter table jobs alter run_after type timestamp using now()")
    bench.die("a")
    delay = timedelta(minutes=1)
    letters = DeadLetters(bench.database, bench.clock.now).receive(1, hidden_for=delay)

    JobsSource(bench.database, QUEUE, bench.clock.now).deliver(bench.outgoing(letters, delay=delay))

    ((run_after,),) = bench.rows("select run_after from jobs")
    assert run_after == (bench.clock.now() + delay).replace(tzinfo=None)
