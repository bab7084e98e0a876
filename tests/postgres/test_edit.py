"""`redrive edit` where letters are rows: the payload that a person mends is the job's, and undo brings back the row."""

import json
from pathlib import Path

import pytest

from fakes.faults import on
from smart_redriver.engine.config.settings import Mode
from smart_redriver.oncall.terminal.exits import Exit
from tests.postgres.desk import PostgresDesk

WRONG, RIGHT = {"order": 7, "currency": None}, {"order": 7, "currency": "EUR"}
MEND = ("--with", "sed s/null/'\"EUR\"'/")


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


def kept() -> list[dict]:
    return [json.loads(one) for one in Path("kept.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("is_parked", [False, True], ids=["DLQ", "parking lot"])
def test_what_a_command_makes_of_payloads_are_the_jobs_and_the_rows_are_in_a_file(
    desk, bench, is_parked
):
    bench.die(WRONG, {"order": 8})
    if is_parked:
        desk("park", "--all", "--yes")
    of = [] if is_parked else ["--from-dlq"]

    ran = desk("edit", "--all", *MEND, *of, "--export", "kept.jsonl", "--yes", "--json")

    assert (ran.code, ran.json["done"]) == (Exit.PARTLY, 1), ran.said
    assert bench.payloads("jobs") == [RIGHT]
    assert bench.payloads("jobs_parked" if is_parked else "jobs_dlq") == [{"order": 8}]
    (letter,) = kept()
    row = json.loads(letter["attributes"]["Row"]["StringValue"])
    assert (json.loads(letter["body"]), row["payload"]) == (WRONG, WRONG)


@pytest.mark.parametrize("kind", ["varchar(20)", "char(20)", "short"])
def test_a_payload_that_is_too_long_for_a_job_is_refused_and_not_cut(desk, bench, kind):
    bench.die(WRONG)
    bench.owner.execute("create domain short as varchar(20)")
    bench.owner.execute(f"alter table jobs alter payload type {kind}")

    ran = desk("edit", "--all", *MEND, "--from-dlq", "--yes")

    assert "StringDataRightTruncation" in ran.said
    assert (bench.payloads("jobs"), bench.payloads("jobs_dlq")) == ([], [WRONG])


def test_an_edited_letter_is_worked_and_heard_of_as_any(desk, bench):
    bench.die(WRONG)

    desk("edit", "--all", *MEND, "--from-dlq", "--yes")
    bench.work()
    report = bench.run_pass()

    assert bench.everywhere() == {json.dumps(RIGHT, sort_keys=True): 1}
    assert report.heard["succeeded"] == 1
    assert bench.rows("select settled_at is not null, returned_as from jobs_redriven") == [
        (True, None)
    ]


@pytest.mark.parametrize(
    "kind", ["jsonb", "json", "text", "varchar(200)"], ids=lambda kind: kind.partition("(")[0]
)
def test_a_payload_of_any_type_is_edited(desk, bench, kind):
    for table in ("jobs", "jobs_dlq", "jobs_parked"):
        bench.owner.execute(
            f"alter table {table} alter payload type {kind} using payload::text::{kind}"
        )
    bench.die(WRONG)

    ran = desk("edit", "--all", *MEND, "--from-dlq", "--yes")

    assert ran.code == 0, ran.said
    (payload,) = bench.payloads("jobs")
    assert (payload if isinstance(payload, dict) else json.loads(payload)) == RIGHT


def test_what_is_no_payload_stays_as_it_was_and_others_go(desk, bench):
    bench.die({"order": 7}, {"order": 8})

    ran = desk("edit", "--all", "--with", "sed s/8}/8/\\;s/7/9/", "--from-dlq", "--yes", "--json")

    assert (ran.code, ran.json["done"]) == (Exit.PARTLY, 1), ran.said
    assert ran.json["failed"] == {"orders: InvalidTextRepresentation": 1}
    assert (bench.payloads("jobs"), bench.payloads("jobs_dlq")) == ([{"order": 9}], [{"order": 8}])


def test_a_row_that_somebody_changes_meanwhile_is_left(desk, bench):
    bench.die(WRONG)

    def change(call, act):
        bench.owner.execute("update jobs_dlq set payload = '1'")
        return act(**call.request)

    ran = desk(
        "edit", "--all", *MEND, "--from-dlq", "--yes", "--json", script=on("RedriveLetters", change)
    )

    assert (ran.code, ran.json["failed"]) == (
        1,
        {"RedriveLetters for orders: LetterNotThere": 1},
    ), ran.said
    assert bench.everywhere() == {1: 1}
    assert bench.payloads("jobs_dlq") == [1]


def test_one_letter_is_edited_by_hand_and_its_attributes_are_not(desk, bench, monkeypatch):
    bench.die(WRONG)
    monkeypatch.setenv("EDITOR", "sed -i s/it.broke/x/")
    refused = desk("edit", "dlq-1", "--from-dlq", "--yes")
    monkeypatch.setenv("EDITOR", "sed -i s/null/1/")
    edited = desk("edit", "dlq-1", "--from-dlq", "--yes")

    assert (refused.code, edited.code) == (1, 0), edited.said
    assert "Edit the body alone" in refused.err
    assert '+{"order": 7, "currency": 1}' in edited.out
    assert bench.everywhere() == {json.dumps({"order": 7, "currency": 1}, sort_keys=True): 1}


@pytest.mark.parametrize("is_parked", [False, True], ids=["back in the DLQ", "parked"])
def test_undo_brings_back_the_row_where_the_edited_copy_died_again(desk, bench, is_parked):
    bench.die(WRONG)
    before = bench.rows("select id, original_id, payload, error_class, stacktrace from jobs_dlq")
    desk("edit", "--all", *MEND, "--from-dlq", "--export", "kept.jsonl", "--yes")
    bench.work(fails=lambda _: "Boom")
    bench.run_pass(mode=Mode.DRY_RUN)
    if is_parked:
        desk("park", "--all", "--yes")

    undone = desk("undo", "kept.jsonl", "--export", "undone.jsonl", "--yes", "--json")
    again = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (undone.code, undone.json["done"]) == (0, 1), undone.said
    there = "select id, original_id, payload, error_class, stacktrace from jobs_parked"
    assert bench.rows(there) == before
    assert bench.everywhere() == {json.dumps(WRONG, sort_keys=True): 1}
    (present,) = Path("undone.jsonl").read_text().splitlines()
    assert json.loads(json.loads(present)["body"]) == RIGHT
    assert (again.json["done"], again.json["skipped"]) == (0, {"it is as it was": 1})


def test_undo_says_where_a_letter_is_that_the_parking_lot_refuses(desk, bench):
    bench.die(WRONG)
    desk("edit", "--all", *MEND, "--from-dlq", "--export", "kept.jsonl", "--yes")
    bench.work(fails=lambda _: "Boom")
    bench.run_pass(mode=Mode.DRY_RUN)
    bench.owner.execute("alter table jobs_parked add check (payload is null)")

    refused = desk("undo", "kept.jsonl", "--yes", "--json")
    bench.owner.execute("alter table jobs_parked drop constraint jobs_parked_payload_check")
    again = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (refused.code, refused.json["failed"]) == (1, {"RestoreLetters: CheckViolation": 1})
    assert "Not put back, and only in kept.jsonl: 1 letter." in refused.err
    assert (again.code, again.json["done"]) == (0, 1)
    assert bench.everywhere() == {json.dumps(WRONG, sort_keys=True): 1}


def test_undo_leaves_what_has_been_done(desk, bench):
    bench.die(WRONG)
    desk("edit", "--all", *MEND, "--from-dlq", "--export", "kept.jsonl", "--yes")
    bench.work()

    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert undone.json["done"] == 0
    assert bench.everywhere() == {json.dumps(RIGHT, sort_keys=True): 1}


def test_no_advice_of_a_queue_is_given_about_a_row(desk, bench):
    """`import --even-though-there` sends what SQS has purged, and no row."""
    bench.die(WRONG, 7)
    desk("edit", "dlq-1", *MEND, "--from-dlq", "--export", "edited.jsonl", "--yes")
    desk("delete", "dlq-2", "--from-dlq", "--export", "deleted.jsonl", "--yes")
    desk("undo", "deleted.jsonl", "--yes")

    edited = desk("undo", "edited.jsonl", "--yes", "--json")
    there = desk("import", "deleted.jsonl", "--even-though-there", "--yes", "--json")
    plan = desk("import", "deleted.jsonl", "--even-though-there", "--dry-run")

    assert edited.json["skipped"] == {
        "its copy was not met: done, still a job, or on its way; undo again if it dies": 1
    }
    assert there.json["skipped"] == {"its row is in the DLQ or the parking lot": 1}
    assert "except those that are out, succeeded or still there by the ledger" in plan.out
