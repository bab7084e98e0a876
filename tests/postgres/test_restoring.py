"""Rows in files and back: what was deleted, or kept, is put back value by value, or refused."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from smart_redriver.engine.config.settings import Mode
from smart_redriver.postgres.oncall.tables import about
from tests.postgres.desk import PostgresDesk

COLUMNS = "original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by, failed_at"


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


def texts(bench, table: str) -> list[tuple[str, ...]]:
    """A null of SQL and one of JSON are the same to Python."""
    columns = ", ".join(f"{one}::text" for one in COLUMNS.split(", "))
    return bench.rows(f"select id, {columns} from {table} order by id")


@pytest.mark.parametrize("kind", ["jsonb", "json", "text"])
@pytest.mark.parametrize("table", ["jobs_dlq", "jobs_parked"])
def test_a_null_of_json_and_one_of_sql_are_put_back_each_as_it_was(desk, bench, table, kind):
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(
            f"alter table {one} alter column payload type {kind} using payload::text::{kind}, alter column payload "
            "drop not null"
        )
    bench.owner.execute(
        "insert into jobs_dlq (payload, error_msg) values ('null', 'null'), (null, null), ('[null]', '')"
    )
    if table == "jobs_parked":
        desk("park", "--all", "--yes")
    of = ["--from-dlq"] if table == "jobs_dlq" else []
    before = texts(bench, table)

    deleted = desk("delete", "--all", *of, "--export", "kept.jsonl", answer="3")
    gone = texts(bench, table)
    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (deleted.code, gone, undone.code, undone.json["done"]) == (0, [], 0, 3)
    assert texts(bench, "jobs_parked") == before


def test_a_letter_of_json_null_is_back_and_can_be_sent(desk, bench):
    bench.die(None)
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    desk("undo", "kept.jsonl", "--yes")

    assert desk("replay", "dlq-1", "--yes").code == 0
    assert bench.rows("select payload::text from jobs") == [("null",)]


def test_a_row_with_more_columns_than_the_parking_lot_is_refused_whole_and_says_how_to_add_them(
    desk, bench
):
    bench.owner.execute('alter table jobs_dlq add column "Tenant" varchar(9), add column later int')
    bench.die("a", "b")
    bench.owner.execute("""update jobs_dlq set "Tenant" = 'blue' where id = 1""")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="2")

    refused = desk("undo", "kept.jsonl", "--yes", "--json")
    parked = bench.payloads("jobs_parked")
    bench.owner.execute(refused.err.split("`")[1])
    again = desk("undo", "kept.jsonl", "--yes", "--json")

    assert refused.json["failed"] == {"RestoreLetters: NoSuchColumn": 1}
    assert "jobs_parked lacks what the row has: Tenant" in refused.err
    assert (parked, again.json["done"]) == (["b"], 1)
    assert bench.rows('select payload, "Tenant" from jobs_parked order by id') == [
        ("a", "blue"),
        ("b", None),
    ]


def test_a_column_that_no_table_knows_is_named(desk, bench):
    bench.die("a")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    line = json.loads(Path("kept.jsonl").read_text())
    row = json.loads(line["attributes"]["Row"]["StringValue"])
    line["attributes"]["Row"]["StringValue"] = json.dumps({**row, "gone": 1, "emptied": None})
    Path("kept.jsonl").write_text(json.dumps(line))

    ran = desk("undo", "kept.jsonl", "--yes", "--json")

    assert ran.json["failed"] == {"RestoreLetters: NoSuchColumn": 1}
    assert '`alter table "jobs_parked" add column "gone" <type>`' in ran.err
    assert not bench.everywhere()


@pytest.mark.parametrize("content", ["", "[1]", "7", "{}", '{"id": "x"}', '{"id": null}'])
def test_what_is_no_row_is_refused(desk, bench, content):
    bench.die("a")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    line = json.loads(Path("kept.jsonl").read_text())
    line["attributes"]["Row"]["StringValue"] = content
    Path("kept.jsonl").write_text(json.dumps(line))

    ran = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (ran.code, ran.json["done"], sum(ran.json["failed"].values())) == (1, 0, 1)
    assert not bench.everywhere()


def test_a_row_that_a_trigger_keeps_out_of_the_parking_lot_is_not_said_to_be_there(desk, bench):
    bench.die("a")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    bench.owner.execute(
        "create function swallow() returns trigger language plpgsql as 'begin return null; end';"
        "create trigger swallow before insert on jobs_parked for each row execute function swallow()"
    )

    ran = desk("undo", "kept.jsonl", "--yes", "--json")
    bench.owner.execute("drop trigger swallow on jobs_parked")
    again = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (1, {"RestoreLetters: InsertSwallowed": 1})
    assert "a trigger keeps it out of the parking lot" in ran.err
    assert (again.json["done"], bench.payloads("jobs_parked")) == (1, ["a"])


@pytest.mark.parametrize("name", ["d", "r", "a", "c", "our_content", "50%", "%s", 'say "hi"'])
@pytest.mark.parametrize("kind", ["jsonb", "text"])
def test_whatever_a_column_is_called_the_row_is_kept_whole_and_comes_back(desk, bench, name, kind):
    quoted = '"' + name.replace('"', '""') + '"'
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {one} add column {quoted} {kind}".encode())
    bench.die({"a": 1})
    bench.owner.execute(f"""update jobs_dlq set {quoted} = '{{"amount": 3}}'""".encode())

    deleted = desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (deleted.code, undone.code, undone.json["done"]) == (0, 0, 1)
    kept = bench.owner.execute(f"select payload, {quoted}::jsonb from jobs_parked".encode())
    assert kept.fetchall() == [({"a": 1}, {"amount": 3})]


@pytest.mark.parametrize(
    "later",
    [
        "add column region text not null default 'eu'",
        "add column size int generated always as (attempts * 2) stored",
        "add column serial bigint generated always as identity",
    ],
)
def test_columns_that_the_parking_lot_fills_itself_keep_no_row_out(desk, bench, later):
    bench.die("a")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    bench.owner.execute(f"alter table jobs_parked {later}")

    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (undone.code, undone.json["done"]) == (0, 1)
    assert bench.payloads("jobs_parked") == ["a"]


def test_a_row_that_a_trigger_gives_another_number_is_not_put_back(desk, bench):
    """Nobody would find it again by the number that the file, the ledger and a person know."""
    bench.die("a")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    bench.owner.execute(
        "create function other() returns trigger language plpgsql as 'begin new.id := new.id + 1000; return new; end';"
        " create trigger other before insert on jobs_parked for each row execute function other()"
    )

    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert undone.json["failed"] == {"RestoreLetters: InsertSwallowed": 1}
    assert not bench.everywhere()


@pytest.mark.parametrize("verb", ["undo", "import"])
def test_what_somebody_deletes_by_sql_after_it_was_put_back_is_put_back_again(desk, bench, verb):
    bench.die("a", "b")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="2")
    desk("undo", "kept.jsonl", "--yes")
    bench.owner.execute("delete from jobs_parked where id = 1")

    ran = desk(verb, "kept.jsonl", "--yes", "--json")

    assert (ran.json["done"], sum(ran.json["skipped"].values())) == (1, 1)
    assert bench.payloads("jobs_parked") == ["a", "b"]


@pytest.mark.parametrize("verb", ["undo", "import"])
def test_what_was_sent_since_is_put_back_by_nobody_whatever_became_of_it(desk, bench, verb):
    bench.die("a", "b", "c")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="3")
    desk("undo", "kept.jsonl", "--yes")
    desk("replay", "--all", "--yes")
    bench.clock.advance(3600)
    bench.work(lambda payload: "Boom" if payload == "b" else None)

    ran = desk(verb, "kept.jsonl", "--yes", "--json")

    assert (ran.json["done"], sum(ran.json["skipped"].values())) == (0, 3)
    assert bench.everywhere() == dict.fromkeys("abc", 1)


def test_rows_that_stay_in_the_dlq_are_said_to_be_there(desk, bench):
    bench.die("a")
    bench.owner.execute(
        "create table audits (letter bigint references jobs_dlq); insert into audits values (1)"
    )
    for _ in range(2):
        refused = desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")

    ran = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (refused.code, len(Path("kept.jsonl").read_text().splitlines())) == (1, 2)
    assert "Plan: put 1 letter of kept.jsonl" in ran.err
    assert ran.json["skipped"] == {"it is in the DLQ, as it was": 1}


def test_a_row_that_something_refers_to_keeps_no_other_from_being_deleted(desk, bench):
    bench.die(*range(7))
    bench.owner.execute(
        "create table audits (letter bigint references jobs_dlq); insert into audits values (4)"
    )

    ran = desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", "--json", answer="7")

    assert (ran.code, ran.json["done"]) == (3, 6)
    assert ran.json["failed"] == {"DeleteLetters: ForeignKeyViolation": 1}
    assert "audits" in ran.err
    assert bench.payloads("jobs_dlq") == [3]


@pytest.mark.parametrize("payload", ['"a\\u0000b"', '"\\ud800"', '{"n": 1e400000}'])
def test_a_row_that_can_t_be_kept_is_not_deleted_and_keeps_no_other_from_it(desk, bench, payload):
    bench.owner.execute("alter table jobs_dlq alter column payload type json using payload::json")
    bench.die(*range(4))
    bench.owner.execute("update jobs_dlq set payload = %s::json where id = 2", (payload,))

    exported = desk("export", "all.jsonl", "--from-dlq", "--json")
    ran = desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", "--json", answer="4")

    assert (exported.code, exported.json["count"], exported.json["is_complete"]) == (3, 3, False)
    assert (ran.code, ran.json["done"], sum(ran.json["failed"].values())) == (3, 3, 1)
    assert bench.rows("select payload::text from jobs_dlq") == [(payload,)]
    assert len(Path("kept.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("is_done", [False, True])
def test_a_return_that_was_sent_on_and_not_written_down_is_not_said_to_be_gone(bench, is_done):
    """The ledger still has it under its old job: whoever sent it died before he wrote the next one down."""
    bench.die("a")
    dead, jobs = bench.tools().dead_letters, bench.tools().sources[0]
    (letter,) = dead.receive(1, hidden_for=timedelta())
    jobs.deliver(bench.outgoing([letter]))
    bench.work(lambda _: "Boom")
    bench.run_pass(mode=Mode.PAUSED)
    (returned,) = bench.tools().dead_letters.receive(1, hidden_for=timedelta())
    jobs.deliver(bench.outgoing([returned]))
    if is_done:
        bench.work()

    assert returned.message_id == "job-2"
    assert about(bench.database, ["job-2", "job-77"]) == {"job-2"}


def test_a_column_is_put_back_however_its_name_is_spelt_in_the_file(desk, bench):
    for table in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f'alter table {table} add column "größe" text')
    bench.die("a")
    bench.owner.execute("""update jobs_dlq set "größe" = 'XL'""")
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    line = json.loads(Path("kept.jsonl").read_text())
    row = line["attributes"]["Row"]
    row["StringValue"] = json.dumps(json.loads(row["StringValue"]))
    Path("kept.jsonl").write_text(json.dumps(line))

    ran = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (r"gr\u00f6\u00dfe" in row["StringValue"], ran.json["done"]) == (True, 1)
    assert bench.rows('select payload, "größe" from jobs_parked') == [("a", "XL")]


def test_a_column_that_came_later_has_its_default_whatever_stands_in_the_payload(desk, bench):
    bench.die({"tenant": 1})
    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    bench.owner.execute("alter table jobs_parked add column tenant text not null default 'x'")

    assert desk("undo", "kept.jsonl", "--yes").code == 0
    assert bench.rows("select payload, tenant from jobs_parked") == [({"tenant": 1}, "x")]


def test_letters_of_the_largest_numbers_are_found_by_them(desk, bench):
    largest = (1 << 63) - 1
    bench.owner.execute("select setval('jobs_dlq_id_seq', %s)", (largest - 2,))
    bench.die("a", "b")

    parked = desk("park", f"dlq-{largest - 1}", "--yes")
    beyond = desk("replay", f"dlq-{largest + 1}", "--from-dlq", "--yes")
    sent = desk("replay", f"dlq-{largest}", "--from-dlq", "--yes")

    assert (parked.code, beyond.code, sent.code) == (0, 1, 0)
    assert (bench.payloads("jobs_parked"), bench.payloads("jobs")) == (["a"], ["b"])


@pytest.mark.parametrize("table", ["jobs_dlq", "jobs_parked"])
def test_what_somebody_changes_between_the_file_and_the_delete_stays_as_it_is_now(
    desk, bench, table
):
    bench.die("old", "other")
    if table == "jobs_parked":
        desk("park", "--all", "--yes")
    of = ["--from-dlq"] if table == "jobs_dlq" else []

    def change(call):
        if call.operation == "DeleteLetters":
            bench.owner.execute(f"update {table} set payload = '\"new\"' where id = 1")

    ran = desk(
        "delete", "--all", *of, "--export", "kept.jsonl", "--json", answer="2", script=change
    )

    assert (ran.code, ran.json["failed"]) == (3, {"DeleteLetters: ChangedMeanwhile": 1})
    assert bench.rows(f"select id, payload #>> '{{}}' from {table}") == [(1, "new")]


def test_a_text_of_json_is_put_back_to_the_letter(desk, bench):
    """Signatures are of texts: of spaces, of order, of keys that are there twice."""
    text = '{"b": 1.0,  "a":1, "a":2, "sig": 1e2}'
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {one} alter column payload type json")
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) values (%s::json, now())", (text,)
    )

    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    desk("undo", "kept.jsonl", "--yes")

    assert bench.rows("select payload::text from jobs_parked") == [(text,)]


def test_a_float_is_put_back_to_the_last_digit_whatever_the_database_prints(desk, bench):
    bench.owner.execute(f"alter database {bench.name} set extra_float_digits = 0")
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {one} add column score float8")
    bench.owner.execute(
        "insert into jobs_dlq (payload, score, failed_at) values ('1', 0.1::float8 + 0.2::float8, now())"
    )

    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")
    desk("undo", "kept.jsonl", "--yes")

    assert bench.rows("select score = 0.1::float8 + 0.2::float8 from jobs_parked") == [(True,)]


def test_of_a_returned_letter_that_is_deleted_nothing_is_left(desk, bench):
    bench.die("a")
    bench.run_pass(base_delay_seconds=0)
    bench.work(lambda _: "Boom")
    bench.clock.advance(60)
    bench.run_pass(mode=Mode.PAUSED)  # it hears what became of the letter, and leaves it there
    known = bench.rows("select count(*) from jobs_redriven where returned_as is not null")

    desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="1")

    assert known == [(1,)]
    assert bench.rows("select count(*) from jobs_redriven") == [(0,)]


def share_an_id(bench) -> None:
    """Let the first two letters have one id, as rows of two partitions can."""
    bench.owner.execute("alter table jobs_dlq drop constraint jobs_dlq_pkey")
    bench.owner.execute("update jobs_dlq set id = 1 where id = 2")


@pytest.mark.parametrize(
    "verb", [("delete", "--export", "kept.jsonl"), ("edit", "--with", "sed s/[abc]/q/")]
)
def test_rows_that_share_an_id_are_left_and_keep_no_other_letter(desk, bench, verb):
    """A file would have one of them."""
    bench.die("a", "b", "c")
    share_an_id(bench)

    ran = desk(*verb, "--all", "--from-dlq", "--json", "--yes")

    assert (ran.code, ran.json["done"]) == (3, 1)
    assert ran.json["failed"] == {"KeepLetters: IdNotUnique": 1}
    assert "rows of jobs_dlq share its id: give each an id of its own" in ran.err
    assert sorted(bench.payloads("jobs_dlq")) == ["a", "b"]


def test_an_export_says_which_rows_share_an_id(desk, bench):
    bench.die("a", "b", "c")
    share_an_id(bench)

    ran = desk("export", "all.jsonl", "--from-dlq", "--json")

    assert (ran.code, ran.json["count"], ran.json["is_complete"]) == (3, 1, False)
    assert "share its id" in ran.err


@pytest.mark.parametrize(
    ("verb", "call"),
    [
        (("delete", "--export", "kept.jsonl"), "DeleteLetters"),
        (("edit", "--with", "sed s/a/q/"), "RedriveLetters"),
    ],
)
def test_a_row_that_gets_the_id_of_a_kept_one_stays(desk, bench, verb, call):
    bench.die("a", "b")

    def share(one):
        if one.operation == call and bench.rows("select from jobs_dlq where id = 2"):
            share_an_id(bench)

    desk(*verb, "dlq-1", "--from-dlq", "--json", "--yes", script=share)

    assert bench.payloads("jobs_dlq") == ["b"]
    assert bench.payloads("jobs") == (["q"] if call == "RedriveLetters" else [])


@pytest.mark.parametrize(
    "verb",
    [("delete", "dlq-1"), ("edit", "dlq-1", "--with", "echo 2")],
    ids=lambda verb: verb[0],
)
def test_a_parked_row_that_is_back_is_no_left_over_for_a_pass(desk, bench, verb):
    """Passes took it for a copy that was sent on, could not delete it, and reported that as a fault for ever."""
    desk.park(1)
    assert desk(*verb, "--export", "kept.jsonl", "--yes").code == 0
    bench.run_pass()
    bench.clock.advance(600)
    bench.work(lambda _: "Boom")
    assert desk("undo", "kept.jsonl", "--yes").code == 0
    assert bench.payloads("jobs_parked") == [1]

    report = bench.run_pass()

    assert (report.faults, report.discarded) == ({}, 0)
