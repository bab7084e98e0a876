"""What people ask before anything is deployed: the doctor, of a file."""

import json
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from smart_redriver.postgres.migration import migration_of
from smart_redriver.postgres.oncall.databases import Databases
from tests.oncall.ran import Ran
from tests.postgres.bench import Bench
from tests.postgres.desk import PostgresDesk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "database.json"


@pytest.fixture
def doctor(bench: Bench, file: Path) -> Callable[[], Ran]:
    """Runs the command on the bench's own database, of which the file tells."""
    file.write_text(bench.server.place(bench.name, user="smart_redriver").encode())
    desk = PostgresDesk(bench)
    desk.databases = Databases()
    return lambda: desk("doctor", "--database", str(file))


def test_the_doctor_finds_a_prepared_database_well_but_for_tls(doctor):
    told = doctor()

    assert told.code == 0
    assert "WRONG" not in told.out
    assert [one.strip() for one in told.out.splitlines() if one.startswith("  ?")] == [
        "?      Not true of the database, though passes work: TLS, verified."
    ]
    assert "Nothing to fix was found. See also 1 thing marked ?." in told.out


@pytest.mark.parametrize(
    "table", ["jobs_parked", "jobs_held", "jobs_redriven", "jobs_redriven_looks"]
)
def test_a_missing_table_is_made_by_its_own_statements_as_the_doctor_advises(bench, doctor, table):
    """The whole migration refuses to run beside the other tables: they may be another queue's."""
    bench.owner.execute(f"drop table {table}")
    told = doctor()
    made = migration_of(bench.place)
    with pytest.raises(psycopg.errors.DuplicateTable):
        bench.owner.execute(f"begin; {made.tables} {made.grants} commit")
    bench.owner.execute("rollback")

    for statement in f"{made.tables}\n{made.grants}".split(";\n"):
        if f'"{table}"' in statement and "$redriver$" not in statement:
            bench.owner.execute(statement)

    assert "run only its statements about this table (docs/postgres.md)" in told.out
    assert doctor().code == 0


@pytest.mark.parametrize(
    ("harm", "code", "what", "advice"),
    [
        ("drop table jobs_held", 1, "table jobs_held", "run the migration"),
        ("revoke insert on jobs from smart_redriver", 1, "insert on jobs", "grant it"),
        (
            "alter table jobs_dlq rename column error_msg to message",
            1,
            "columns of jobs_dlq",
            "missing: error_msg",
        ),
        (
            "revoke usage on sequence jobs_id_seq from smart_redriver",
            1,
            "the sequence of jobs.id",
            "a serial or identity column",
        ),
        ("drop index jobs_dlq_original_id_idx", 0, "index on jobs_dlq.original_id", "create index"),
        (
            "revoke select (run_after) on jobs from smart_redriver",
            1,
            "select of id, attempts, run_after, locked_at of jobs",
            "grant it: run_after",
        ),
        ("drop table jobs_redriven_looks", 1, "table jobs_redriven_looks", "run the migration"),
        ("drop index jobs_run_after_idx", 0, "index on jobs.run_after", "create index"),
        ("grant delete on jobs to smart_redriver", 0, "no delete on jobs", "revoke it"),
        (
            "alter table jobs_dlq add column host text",
            0,
            "no further columns of jobs_dlq",
            "not kept of a letter that becomes a job: host;",
        ),
    ],
)
def test_the_doctor_names_what_is_not_well_and_what_to_do(bench, doctor, harm, code, what, advice):
    bench.owner.execute(harm)

    told = doctor()

    assert told.code == code
    fault = f"Not true of the database{'' if code else ', though passes work'}: {what}."
    lines = told.out.splitlines()
    (place,) = [number for number, one in enumerate(lines) if one.endswith(fault)]
    assert lines[place + 1].strip().startswith(f"-> {advice}"), told.out


def test_a_database_that_is_not_there_is_told(bench, tmp_path, file):
    file.write_text(json.dumps({"host": str(tmp_path), "dbname": "d", "sslmode": "disable"}))
    desk = PostgresDesk(bench)
    desk.databases = Databases()

    told = desk("doctor", "--database", str(file))

    assert told.code == 1
    assert f"at {tmp_path}:5432 can't be used from here: " in told.out


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[1]", b'{"host": NaN}'])
def test_a_file_that_is_no_configuration_is_told(bench, file, content):
    file.write_bytes(content)

    told = PostgresDesk(bench)("doctor", "--database", str(file))

    assert told.code == 2
    assert told.err
