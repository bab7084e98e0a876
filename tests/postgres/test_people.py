"""What people do by hand: the doctor, groups, one letter, and sending it back."""

import json
import sys

import pytest

from redrive.postgres.__main__ import main
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
    ],
)
def test_the_doctor_names_what_is_not_well_and_what_to_do(bench, told, capsys, harm, code, line):
    bench.owner.execute(harm)

    found, said = told(capsys, "doctor")

    assert found == code
    assert any(one.startswith(line) for one in said.splitlines()), said


def test_letters_are_grouped_by_class_the_most_frequent_first(bench, told, capsys):
    bench.die(1, 2, error="Rare")
    bench.die(*range(5), error="Usual", message="every\nday")
    bench.owner.execute("insert into jobs_dlq (payload) values ('1')")

    code, said = told(capsys, "groups")

    assert code == 0
    assert [one.split()[:2] for one in said.splitlines()] == [
        ["5", "Usual"],
        ["2", "Rare"],
        ["1", "(no"],
    ]


def test_one_letter_is_shown_with_payload_and_stack_trace(bench, told, capsys):
    bench.die({"order": 7}, error="Boom", message="\x1b[2Jit broke")

    code, said = told(capsys, "show", "1")

    assert code == 0
    assert '{"order": 7}' in said
    assert "StackTrace: a\nb" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "letter_id", ["2", "dlq-0", "parked-1", "x", "job-1", "1; drop table jobs"]
)
def test_who_asks_for_a_letter_that_is_not_there_is_told_so(bench, told, capsys, letter_id):
    bench.die("a")

    code, said = told(capsys, "show", letter_id)

    assert code == 1
    assert "no letter" in said


def test_one_letter_is_sent_back_and_its_return_is_known(bench, told, capsys):
    bench.die("a", "b")

    code, said = told(capsys, "replay", "dlq-2", "--queue", "orders")

    assert (code, said) == (0, "dlq-2 is job-3 now\n")
    assert (bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (["b"], ["a"])
    ((trail,),) = bench.rows("select trail::json from jobs_redriven")
    assert (trail["id"], trail["n"], trail["batch"]) == ("dlq-2", 1, 0)


def test_a_replayed_letter_and_the_passes_get_along(bench, told, capsys):
    bench.die("a")
    told(capsys, "replay", "1", "--queue", "orders")
    bench.clock.advance(86_400 * 365 * 2)  # the command's clock is the machine's
    bench.work(lambda _: "Boom")
    bench.clock.advance(60)

    first = bench.run_pass(base_delay_seconds=0)
    bench.work()
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.faults, second.heard) == (1, {}, {"succeeded": 1})
    assert bench.everywhere() == {"a": 1}


@pytest.mark.parametrize(
    ("program", "code", "stays"),
    [
        ("import json,sys; json.load(sys.stdin)['order']", 0, False),
        ("import sys; sys.exit('no such order')", 1, True),
    ],
)
def test_a_program_of_the_teams_may_refuse_a_payload_before_it_is_sent(
    bench, told, capsys, program, code, stays
):
    bench.die({"order": 7})
    validate = f'"{sys.executable}" -c "{program}"'

    found, said = told(capsys, "replay", "1", "--queue", "orders", "--validate", validate)

    assert found == code
    assert ("stays: no such order" in said) is stays
    assert bench.payloads("jobs_dlq" if stays else "jobs") == [{"order": 7}]


def test_a_database_that_is_not_there_is_told(tmp_path, capsys):
    file = tmp_path / "database.json"
    file.write_text(json.dumps({"host": str(tmp_path), "dbname": "d", "sslmode": "disable"}))

    assert main(["doctor", "--database", str(file)]) == 2
    assert "EndpointConnectionError" in capsys.readouterr().err
