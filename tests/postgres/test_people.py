"""What people ask before anything is deployed: the doctor."""

import json

import pytest

from smart_redriver.postgres.__main__ import main
from tests.postgres.bench import Bench


@pytest.fixture
def told(bench: Bench, tmp_path):
    """Runs the command; its exit code and what it says."""
    file = tmp_path / "database.json"
    place = bench.server.place(bench.name, user="smart_redriver")
    file.write_text(place.encode())

    def run(capsys, verb, *arguments):
        code = main([verb, "--database", str(file), *arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_the_doctor_finds_a_prepared_database_well_but_for_tls(told, capsys):
    code, said = told(capsys, "doctor")

    assert code == 0
    assert "FAIL" not in said
    assert [one.split(":")[0] for one in said.splitlines() if one[:4] == "warn"] == [
        "warn  TLS, verified"
    ]


@pytest.mark.parametrize(
    ("harm", "code", "line"),
    [
        ("drop table jobs_held", 1, "FAIL  table jobs_held: run the migration"),
        ("revoke insert on jobs from smart_redriver", 1, "FAIL  insert on jobs: grant it"),
        (
            "alter table jobs_dlq rename column error_msg to message",
            1,
            "FAIL  columns of jobs_dlq: missing: error_msg",
        ),
        (
            "revoke usage on sequence jobs_id_seq from smart_redriver",
            1,
            "FAIL  the sequence of jobs.id",
        ),
        ("drop index jobs_dlq_original_id_idx", 0, "warn  index on jobs_dlq.original_id"),
        (
            "revoke select (run_after) on jobs from smart_redriver",
            1,
            "FAIL  select of id, attempts, run_after, locked_at of jobs: grant it: run_after",
        ),
        (
            "drop table jobs_redriven_looks",
            1,
            "FAIL  table jobs_redriven_looks: run the migration",
        ),
        ("drop index jobs_run_after_idx", 0, "warn  index on jobs.run_after"),
        ("grant delete on jobs to smart_redriver", 0, "warn  no delete on jobs: revoke it"),
        (
            "alter table jobs_dlq add column host text",
            0,
            "warn  no further columns of jobs_dlq: not kept of a letter that becomes a job: host;",
        ),
    ],
)
def test_the_doctor_names_what_is_not_well_and_what_to_do(bench, told, capsys, harm, code, line):
    bench.owner.execute(harm)

    found, said = told(capsys, "doctor")

    assert found == code
    assert any(one.startswith(line) for one in said.splitlines()), said


def test_a_database_that_is_not_there_is_told(tmp_path, capsys):
    file = tmp_path / "database.json"
    file.write_text(json.dumps({"host": str(tmp_path), "dbname": "d", "sslmode": "disable"}))

    assert main(["doctor", "--database", str(file)]) == 2
    assert "EndpointConnectionError" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[1]", b'{"host": NaN}'])
def test_a_file_that_is_no_configuration_is_told(tmp_path, capsys, content):
    file = tmp_path / "database.json"
    file.write_bytes(content)

    assert main(["doctor", "--database", str(file)]) == 2
    assert capsys.readouterr().err
