"""The `redrive` command on a worker queue: each verb as for any queue, on a real database."""

import json
import sys
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.faults import on, refuse
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import DatabaseLost
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Outcome
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.postgres.engine.database import LOST
from tests.postgres.desk import PostgresDesk
from tests.postgres.test_live_jobs import PARTITIONED_DLQ


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


def audited(desk) -> list[str]:
    """What was begun, as the audit trail has it."""
    lines = [line["what"] for line in desk("history", "--json").json["changes"]]
    return [one.removesuffix(": begun") for one in lines if one.endswith(": begun")]


# Looking.


def test_status_tells_of_tables_as_of_queues(desk, bench):
    bench.die(1, 2)
    bench.clock.advance(90)
    bench.owner.execute("insert into jobs (payload) values ('1')")

    (told,) = desk("status", "--json").json["queues"]

    assert (told["queue"], told["origin"]) == ("orders", "postgres")
    assert told["depths"] == {"source": 1, "dead_letters": 2, "parked": 0}
    assert (told["oldest_letter_seconds"], told["unknown"]) == (90, {})
    assert desk("status", "--overview", "--json").json["homes"][0]["queues"][0]["unknown"] == {}


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        ("revoke insert on jobs from smart_redriver", "InsufficientPrivilege"),
        ("alter table jobs rename payload to body", "UndefinedColumn"),
    ],
)
def test_status_says_that_the_table_refuses_letters_and_not_that_the_consumer_is_down(
    desk, bench, harm, code
):
    bench.die(1, 2)
    bench.owner.execute(harm)
    for _ in range(Settings().failure_threshold):
        report = bench.run_pass()
        bench.clock.advance(60)
    assert report.circuit_after == State.OPEN.value

    status = desk("status")

    assert f" refuses letters: {code}. 2 letters wait." in status.out
    assert "`redrive doctor` says what is missing" in status.out
    assert "onsumer likely down" not in status.out


def test_status_counts_jobs_and_letters_and_no_messages(desk, bench):
    bench.die(1, 2, 3)
    desk("park", "dlq-1", "--yes")
    bench.owner.execute("insert into jobs_held values (false, 2, now() + interval '10 years')")
    bench.owner.execute("insert into jobs (payload) values ('1'), ('2')")

    said = desk("status").out

    assert "Source:      orders, 2 jobs\n" in said
    assert "DLQ:         2 letters (1 held until later)" in said
    assert "Parking lot: 1 letter, which waits for a person" in said
    assert "message" not in said


def test_status_speaks_of_no_expiry_where_nothing_expires(desk, bench):
    bench.die(1)
    bench.die(2, error="Boom")
    desk("pause", "--reason", "deploying", "--yes")
    desk("run", "--yes")

    ran = desk("status")

    assert "deploying" in ran.out
    assert "expire" not in ran.out


def test_causes_are_counted_by_the_database_the_most_frequent_first(desk, bench):
    bench.die(1, 2, error="Rare")
    bench.die(*range(5), error="Usual", message="every\nday")
    bench.die(8, error="RuntimeError", message="row 17 is 'gone'")
    bench.die(9, error="RuntimeError", message="row 18 is 'lost'")
    bench.owner.execute("insert into jobs_dlq (payload) values ('1')")
    desk("park", "dlq-1", "--yes")

    (told,) = desk("causes", "--json").json["queues"]

    assert [(one["cause"], one["in_dlq"], one["parked"]) for one in told["groups"]] == [
        ("Usual", 5, 0),
        ("Rare", 1, 1),
        ("RuntimeError: row # is #", 2, 0),
        (None, 1, 0),
    ]
    assert told["groups"][0]["example"] == {"original_id": "dlq-7", "first_line": "every"}
    assert told["groups"][0]["since"] == "2026-01-01T00:00:00Z"


def test_a_returned_letter_is_known_by_its_first_id_by_its_job_and_by_its_row(desk, bench):
    bench.die("a")
    bench.run_pass(base_delay_seconds=0)
    bench.work(lambda _: "Boom")
    bench.clock.advance(60)
    bench.run_pass(mode=Mode.PAUSED)

    (group,) = desk("causes", "--json").json["queues"][0]["groups"]
    shown = [desk("show", one, "--json") for one in ("dlq-1", "job-2", "dlq-2")]

    assert group["example"]["original_id"] == "dlq-1"
    assert [one.json["message"]["message_id"] for one in shown] == ["job-2"] * 3


def test_letters_are_peeked_at_and_nothing_changes(desk, bench):
    bench.die(*range(5), error="Usual")
    before = bench.rows("select * from jobs_dlq")

    told = desk("letters", "--limit", "3", "--body", "--json").json

    assert (told["depth"], told["seen"], told["receives"]) == (5, 3, 0)
    assert [(one["message_id"], one["cause"], one["body"]) for one in told["letters"]] == [
        ("dlq-1", "Usual", "0"),
        ("dlq-2", "Usual", "1"),
        ("dlq-3", "Usual", "2"),
    ]
    assert bench.rows("select * from jobs_dlq") == before
    assert bench.rows("select * from jobs_held") == []


def test_one_letter_is_shown_with_payload_and_stack_trace(desk, bench):
    bench.die({"order": 7}, error="Boom", message="\x1b[2Jit broke")

    ran = desk("show", "dlq-1")

    assert ran.code == 0
    assert "dlq-1 is in the DLQ." in ran.out
    assert '{"order": 7}' in ran.out
    assert "  Stack trace:\n    a\n    b\n" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("table", ["jobs_dlq", "jobs_parked"])
def test_a_letter_without_a_payload_is_shown_without_one_and_not_as_a_large_one(desk, bench, table):
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {one} alter column payload drop not null")
    bench.owner.execute("insert into jobs_dlq (payload) values (null), ('null')")
    if table == "jobs_parked":
        desk("park", "--all", "--yes")

    empty, null = desk("show", "dlq-1"), desk("show", "dlq-2")

    assert empty.out.endswith("\n(nothing)\n")
    assert null.out.endswith("\nnull\n")
    assert desk("show", "dlq-1", "--json").json["message"]["body"] == ""


def test_a_letter_that_is_held_is_found_by_its_id(desk, bench):
    bench.die("a")
    bench.owner.execute("insert into jobs_held values (false, 1, now() + interval '10 years')")

    assert desk("show", "dlq-1", "--json").json["message"]["body"] == '"a"'
    assert desk("replay", "dlq-1", "--from-dlq", "--yes").code == 0
    assert bench.payloads("jobs") == ["a"]


@pytest.mark.parametrize("named", ["dlq-1", "parked-1"])
def test_a_parked_letter_that_was_deleted_by_sql_is_said_to_be_gone(desk, bench, named):
    desk.park("a", "b")
    bench.owner.execute("delete from jobs_parked where id = 1")

    shown, told = desk("show", named), desk("show", named, "--json").json

    assert shown.code == 0
    assert "dlq-1 is gone: its row has left the tables, and not by the re-driver." in shown.out
    assert "Waits for" not in shown.out
    assert "parked BY_HAND" in shown.out
    assert (told["where"].partition(":")[0], told["waits"]) == ("gone", None)
    assert "dlq-2 is in the parking lot." in desk("show", "dlq-2").out


@pytest.mark.parametrize(
    "letter_id", ["dlq-2", "dlq-0", "parked-1", "x", "job-1", "dlq-" + "9" * 30, "1; drop table x"]
)
def test_who_names_a_letter_that_is_not_there_is_told_so(desk, bench, letter_id):
    bench.die("a")

    shown, sent = desk("show", letter_id), desk("replay", letter_id, "--from-dlq", "--yes")

    assert (shown.code, sent.code) == (1, 1)
    assert "was not found" in shown.err
    assert "None of these was found" in sent.err
    assert bench.payloads("jobs_dlq") == ["a"]


@pytest.mark.parametrize("held", [0, 10_300])
def test_a_table_that_was_never_analyzed_is_counted_to_its_end(desk, bench, held):
    """Nothing says so when a count stops at 10,000, and people would take it for all there are."""
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) select to_jsonb(n), %s from generate_series(1, 20500) n",
        (bench.clock.now(),),
    )
    bench.owner.execute(
        "insert into jobs_held select false, n, %s from generate_series(1, %s) n",
        (bench.clock.now() + timedelta(hours=1), held),
    )

    status, overview = desk("status", "--json").json, desk("status", "--overview", "--json").json

    assert status["queues"][0]["depths"]["dead_letters"] == 20_500
    assert overview["homes"][0]["queues"][0]["depths"]["dead_letters"] == 20_500


def test_a_pass_reports_how_many_letters_partitions_have_that_autovacuum_analyzed(bench):
    bench.owner.execute(PARTITIONED_DLQ)
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) select to_jsonb(n), %s from generate_series(1, 20500) n",
        (bench.clock.now(),),
    )
    bench.owner.execute("analyze jobs_dlq_all")

    assert bench.run_pass(mode=Mode.DRY_RUN).depth == 20_500


def test_a_plan_counts_more_letters_than_an_estimate_does(desk, bench):
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) select to_jsonb(n), %s from generate_series(1, 10500) n",
        (bench.clock.now(),),
    )

    plan = desk("replay", "--all", "--from-dlq", "--dry-run", "--json").json["plan"]

    assert (plan["count"], plan["is_exact"]) == (10_500, True)


def test_a_search_goes_to_the_end_of_a_table_that_is_only_estimated(desk, bench):
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) select to_jsonb(n), %s from generate_series(1, 10500) n",
        (bench.clock.now(),),
    )

    exported = desk("export", "kept.jsonl", "--from-dlq", "--contains", "10499", "--json")
    peeked = desk("letters", "--limit", "20000", "--contains", "10499", "--json")

    assert (exported.json["count"], exported.json["is_complete"]) == (1, True)
    assert (peeked.json["seen"], len(peeked.json["letters"])) == (10_500, 1)


@pytest.mark.parametrize(
    ("wanted", "most"),
    [(("--contains", "299"), {"ReadLetters": 4, "BatchGetItem": 3}), (("--cause", "Boom"), {"BatchGetItem": 8})],
    ids=["a text, by the database", "a cause, a hundred letters a look-up"],
)  # fmt: skip
def test_a_filter_costs_few_calls(desk, bench, wanted, most):
    bench.die(*range(300))
    calls: Counter[str] = Counter()

    def count(call):
        calls[call.operation] += 1

    plan = desk("replay", *wanted, "--from-dlq", "--dry-run", "--json", script=count).json["plan"]

    assert plan["count"] == (1 if wanted[0] == "--contains" else 300)
    assert {one: calls[one] for one in most if calls[one] > most[one]} == {}


# Sending back.


def test_one_letter_is_sent_back_in_no_batch_and_it_is_recorded(desk, bench):
    bench.die("a", "b")

    ran = desk("replay", "dlq-2", "--from-dlq", "--reason", "fixed", "--yes")

    assert (ran.code, bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (0, ["b"], ["a"])
    ((metadata,),) = bench.rows("select trail::json from jobs_redriven")
    assert (metadata["id"], metadata["n"], metadata["batch"]) == ("dlq-2", 1, 0)
    assert audited(desk) == ["replay named dlq-2 from the DLQ"]
    assert "dlq-2 is sent back to its source queue by a person" in desk("show", "dlq-2").out


@pytest.mark.parametrize("named", ["dlq-1", "--all"])
def test_who_looks_for_letters_in_an_empty_lot_is_told_where_they_are(desk, bench, named):
    bench.die("a", "b")

    told = desk("replay", named, "--yes")

    assert told.code == 1
    assert told.err == (
        "The parking lot is empty: nothing to do. 2 letters in the DLQ: add --from-dlq.\n"
    )


def test_a_plan_that_is_declined_changes_nothing(desk, bench):
    bench.die("a")

    ran = desk("replay", "--all", "--from-dlq", answer="no")

    assert (ran.code, bench.payloads("jobs_dlq"), audited(desk)) == (1, ["a"], [])
    assert "Plan: replay 1 letter to orders" in ran.said


def test_letters_of_one_cause_are_sent_back_and_no_others(desk, bench):
    bench.die("a", "b", error="payments.Declined")
    bench.die("c", error="Boom")

    ran = desk("replay", "--cause", "declined", "--from-dlq", "--yes")

    assert (ran.code, bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (0, ["a", "b"], ["c"])


def test_a_filter_looks_at_whole_payloads_however_large(desk, bench):
    bench.die({"blob": "x" * 1_500_000, "wanted": True}, {"wanted": False})

    ran = desk("replay", "--where", "wanted", "--from-dlq", "--yes")

    assert ran.code == 0
    assert bench.rows("select payload->'wanted' from jobs") == [(True,)]


def test_all_letters_are_sent_back_by_several_workers_each_once(desk, bench):
    bench.die(*range(137))

    ran = desk("replay", "--all", "--from-dlq", "--rate", "0", "--yes", "--json")

    assert (ran.code, ran.json["done"]) == (0, 137)
    bench.work()
    assert bench.done == dict.fromkeys(range(137), 1)


@pytest.mark.parametrize(
    ("program", "code", "stays"),
    [
        ("import json,sys; assert len(json.load(sys.stdin)['blob']) == 1500000", 0, False),
        ("import sys; sys.exit('no such order')", 1, True),
    ],
    ids=["takes", "refuses"],
)
def test_the_teams_own_handle_is_given_the_whole_payload_before_the_insert(
    desk, bench, program, code, stays
):
    bench.die({"blob": "x" * 1_500_000})
    validate = f'"{sys.executable}" -c "{program}"'

    ran = desk("replay", "dlq-1", "--from-dlq", "--validate", validate, "--yes")

    assert ran.code == code
    assert ("not valid: no such order" in ran.said) is stays
    assert len(bench.payloads("jobs_dlq" if stays else "jobs")) == 1


def test_a_replayed_letter_and_the_passes_get_along(desk, bench):
    bench.die("a")
    desk("replay", "dlq-1", "--from-dlq", "--yes")
    bench.work(lambda _: "Boom")
    bench.clock.advance(60)

    first = bench.run_pass(base_delay_seconds=0)
    bench.work()
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.faults, second.heard) == (1, {}, {"succeeded": 1})
    assert bench.everywhere() == {"a": 1}


def test_a_row_that_a_backup_has_brought_back_is_sent_and_not_taken_for_a_left_over(desk, bench):
    """A pass reports it and leaves it: only a person knows that the database was restored."""
    bench.die("a")
    bench.run_pass()
    bench.owner.execute("truncate jobs, jobs_redriven")
    bench.owner.execute("insert into jobs_dlq (id, payload, attempts) values (1, '\"a\"', 3)")
    bench.clock.advance(60)
    assert "DeleteLetters:StillThere" in bench.run_pass().faults

    ran = desk("replay", "dlq-1", "--from-dlq", "--yes", "--json")

    assert (ran.json["done"], ran.json["discarded"]) == (1, 0)
    assert (bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (["a"], [])


# Setting aside, deleting, keeping.


def test_letters_are_parked_and_sent_back_from_there_by_any_of_their_ids(desk, bench):
    bench.die("a", "b", "c", error="Boom")

    parked = desk("park", "--cause", "Boom", "--reason", "until 2.4.2 is out", "--yes")
    groups = desk("parked", "--json").json["groups"]
    desk("replay", "dlq-1", "parked-2", "--yes")

    assert parked.code == 0
    assert [(one["reason"], one["cause"], one["count"]) for one in groups] == [
        ("BY_HAND", "Boom", 3)
    ]
    assert (bench.payloads("jobs"), bench.payloads("jobs_parked")) == (["a", "b"], ["c"])


COLUMNS = "original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by, failed_at"


@pytest.mark.parametrize("table", ["jobs_dlq", "jobs_parked"])
def test_what_is_deleted_is_in_a_file_first_and_undo_puts_its_rows_back(desk, bench, table):
    bench.die({"order": "7'; --", "n": 1.50}, error="Boom", message="x" * 3000 + "\ny")
    if table == "jobs_parked":
        desk("park", "--all", "--yes")
    of = ["--from-dlq"] if table == "jobs_dlq" else []
    before = bench.rows(f"select id, {COLUMNS} from {table}")

    deleted = desk("delete", "--all", *of, "--export", "kept.jsonl", answer="1")
    assert (deleted.code, bench.everywhere()) == (0, {})
    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert (undone.code, undone.json["done"]) == (0, 1)
    assert bench.rows(f"select id, {COLUMNS} from jobs_parked") == before
    desk("replay", "dlq-1", "--yes")
    assert bench.rows("select payload from jobs") == [({"order": "7'; --", "n": 1.5},)]


def test_undo_puts_nothing_back_twice(desk, bench):
    bench.die("a", "b")
    desk("delete", "dlq-1", "--from-dlq", "--export", "kept.jsonl", "--yes", answer="1")
    desk("undo", "kept.jsonl", "--yes")

    again = desk("undo", "kept.jsonl", "--yes", "--json")
    imported = desk("import", "kept.jsonl", "--yes", "--json")

    assert (again.json["done"], imported.json["done"]) == (0, 0)
    assert bench.everywhere() == {"a": 1, "b": 1}


@pytest.mark.parametrize("had_strikes", [True, False], ids=["known", "never met"])
@pytest.mark.parametrize("is_parked", [True, False], ids=["parked", "in the DLQ"])
def test_a_letter_whose_delete_is_refused_keeps_its_strikes_and_its_history(
    desk, bench, is_parked, had_strikes
):
    if had_strikes:
        for n in range(8):
            bench.die(f"good {n}")
        bench.die("bad")
        for _ in range(3):
            bench.run_pass(base_delay_seconds=0)
            bench.work(lambda payload: "Boom" if payload == "bad" else None)
            bench.clock.advance(60)
    else:
        bench.die("bad")
    if is_parked:
        desk("park", "--all", "--yes")
    memory, name = bench.tools().memory, "dlq-9" if had_strikes else "dlq-1"
    before = memory.read_ledger([name]).entries.get(name)
    table = "jobs_parked" if is_parked else "jobs_dlq"
    bench.owner.execute(f"revoke delete on {table} from smart_redriver")

    ran = desk("delete", "--all", *([] if is_parked else ["--from-dlq"]), "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (1, {"DeleteLetters: InsufficientPrivilege": 1})
    after = memory.read_ledger([name]).entries[name]
    if before is not None:
        assert after == before
        assert bool(after.strikes) == had_strikes
    assert (after.status is Status.DELETED, bench.payloads(table)) == (False, ["bad"])
    bench.owner.execute(f"grant delete on {table} to smart_redriver")
    if not is_parked:
        bench.live(steps=20)
        assert bench.done["bad"] == 1


def test_a_delete_that_is_broken_off_keeps_what_the_ledger_knew(desk, bench):
    bench.die("a")
    desk("park", "--all", "--yes")
    memory = bench.tools().memory
    before = memory.read_ledger(["dlq-1"]).entries["dlq-1"]

    def broken_off(call):
        return interrupt if call.operation == "DeleteLetters" else None

    def interrupt(call, act):
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        desk("delete", "--all", "--yes", script=broken_off)

    assert memory.read_ledger(["dlq-1"]).entries["dlq-1"] == before
    assert bench.payloads("jobs_parked") == ["a"]


def test_a_replay_says_whom_the_table_refuses_and_the_others_go(desk, bench):
    bench.owner.execute("alter table jobs add constraint small check (payload::text::int < 3)")
    desk.park(1, 2, 3)

    ran = desk("replay", "--all", "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (3, {"orders: CheckViolation (small)": 1})
    assert (sorted(bench.payloads("jobs")), bench.payloads("jobs_parked")) == ([1, 2], [3])


def test_a_replay_says_why_the_table_takes_nobody(desk, bench):
    bench.owner.execute("alter table jobs add region text not null")
    desk.park(1, 2, 3)

    ran = desk("replay", "--all", "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (1, {"RedriveLetters for orders: NotNullViolation": 3})
    assert bench.payloads("jobs_parked") == [1, 2, 3]


def test_a_letter_whose_delete_was_lost_is_not_imported_beside_itself(desk, bench):
    bench.die("a")
    desk("export", "kept.jsonl", "--from-dlq")

    ran = desk("import", "kept.jsonl", "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (1, {"RestoreLetters: StillThere": 1})
    assert (bench.payloads("jobs_dlq"), bench.payloads("jobs_parked")) == (["a"], [])


def test_an_export_has_whole_rows_and_leaves_them_where_they_are(desk, bench):
    bench.die({"blob": "x" * 1_500_000}, "b")

    ran = desk("export", "kept.jsonl", "--from-dlq", "--json")

    lines = [json.loads(one) for one in Path("kept.jsonl").read_text().splitlines()]
    rows = [json.loads(one["attributes"]["Row"]["StringValue"]) for one in lines]
    assert (ran.code, ran.json["count"]) == (0, 2)
    assert [one["payload"] for one in rows] == bench.payloads("jobs_dlq")
    assert len(json.loads(lines[0]["body"])["blob"]) == 1_500_000


def test_a_file_without_rows_is_refused_letter_by_letter(desk, bench):
    bench.die("a")
    desk("export", "kept.jsonl", "--from-dlq")
    bench.begin_anew()
    desk.clients["dynamodb"].dynamodb = bench.dynamodb
    line = json.loads(Path("kept.jsonl").read_text())
    del line["attributes"]["Row"]
    Path("kept.jsonl").write_text(json.dumps(line))

    ran = desk("import", "kept.jsonl", "--yes", "--json")

    assert (ran.code, ran.json["failed"]) == (1, {"RestoreLetters: NoRow": 1})
    assert not bench.everywhere()


def test_what_a_table_does_not_need_is_refused_with_what_to_do_instead(desk, bench):
    bench.die("a")
    desk("export", "kept.jsonl", "--from-dlq")

    ran = desk("import", "kept.jsonl", "--to", "source", "--yes")

    assert (ran.code, audited(desk)) == (1, [])
    assert "`redrive replay`" in ran.err
    assert bench.everywhere() == {"a": 1}


# Orders to passes.


def test_a_pause_holds_passes_until_it_is_resumed(desk, bench):
    bench.die("a")
    desk("pause", "--reason", "deploying", "--yes")
    paused = bench.run_pass()
    desk("resume", "--yes")
    bench.clock.advance(60)

    assert (paused.redriven, bench.run_pass().redriven) == (0, 1)
    assert audited(desk) == ["pause until `redrive resume`", "resume"]


def test_a_circuit_that_is_forced_open_lets_nothing_through(desk, bench):
    bench.die("a")

    assert desk("open", "--reason", "look first", "--yes").code == 0
    assert bench.run_pass().redriven == 0


@pytest.mark.parametrize("column", ["failed_at", "payload"])
def test_a_drain_says_once_what_keeps_letters_where_they_are(desk, bench, column):
    bench.die("a", "b")
    bench.owner.execute(f"alter table jobs_dlq rename {column} to other")

    ran = desk("drain", "--for", "5m", "--yes")

    assert ran.code == 1
    assert (
        ran.out.count("The pass met ") == ran.out.count("Letters: UndefinedColumn. `redrive") == 1
    )
    assert "2 left of 2" in ran.out


def test_a_drain_is_followed_until_the_table_is_empty(desk, bench):
    bench.die(*range(30))

    ran = desk("drain", "--yes", "--json")

    assert (ran.code, ran.json["depth"]) == (0, 0)
    assert len(bench.payloads("jobs")) == 30


def test_a_dry_run_tells_what_the_next_pass_would_do_and_does_nothing(desk, bench):
    bench.die("a", "b")

    report = desk("run", "--dry-run", "--json").json

    assert [one["decision"] for one in report["decisions"]] == ["redrive", "redrive"]
    assert (bench.payloads("jobs_dlq"), bench.rows("select * from jobs_held")) == (["a", "b"], [])


def test_the_functions_log_tells_of_its_passes(desk, bench):
    bench.die("a")
    desk("run", "--yes")

    assert "redriven=1" in desk("logs").out
    assert desk("status", "--json").json["queues"][0]["last_pass"]["outcome"] == "DONE"


@pytest.mark.parametrize(
    ("harm", "code", "told"),
    [
        ("select 1", 0, "The database: insert on jobs."),
        (
            "revoke insert on jobs from smart_redriver",
            1,
            "Not true of the database: insert on jobs.",
        ),
        ("drop index jobs_dlq_original_id_idx", 0, "though passes work: index on jobs_dlq"),
    ],
)
def test_the_doctor_looks_at_database_table_passes_and_role(desk, bench, harm, code, told):
    bench.owner.execute(harm)
    desk.alarms.in_alarm.append("orders CircuitOpen")
    desk("run", "--yes")

    ran = desk("doctor", "--all")

    assert (ran.code, told in ran.out) == (code, True), ran.out
    assert "The function may do what it needs with" in ran.out


def test_the_doctor_advises_no_policy_of_aws_if_the_role_may_not_log_in(desk, bench):
    bench.owner.execute("alter role smart_redriver nologin")
    try:
        ran = desk("doctor")
    finally:
        bench.owner.execute("alter role smart_redriver login")

    assert "The database could not be checked: " in ran.out
    assert "is not permitted to log in" in ran.out
    assert "See that its role can log in from here" in ran.out
    assert "RedriveViewer" not in ran.out


# Together with passes, and with each other.


def test_a_pass_in_the_middle_of_a_replay_takes_no_letter_twice(desk, bench):
    """The shift's lease keeps it out; between two shifts it may work, and what it took is not met again."""
    bench.die(*range(25))
    other = bench.tools(owner="a pass")
    reports = []

    def pass_between(call):
        if call.operation == "RedriveLetters":
            deadline = bench.clock.now() + timedelta(minutes=3)
            reports.append(run_pass(other, Settings(initial_window=100), deadline=deadline))

    desk("replay", "--all", "--from-dlq", "--yes", script=pass_between)
    bench.work()

    assert {one.outcome for one in reports} == {Outcome.LEASE_HELD}
    assert bench.done == dict.fromkeys(range(25), 1)


def test_a_pass_between_plan_and_yes_leaves_the_replay_what_is_left(desk, bench):
    bench.die(*range(5))
    worked: list[Any] = []

    def pass_before_the_work(call):
        # The audit trail's line is what follows the yes.
        if call.operation == "PutItem" and not worked:
            worked.append(1)
            bench.run_pass(initial_window=2, base_delay_seconds=0)

    ran = desk("replay", "--all", "--from-dlq", "--yes", "--json", script=pass_before_the_work)
    bench.work()

    assert ran.json["done"] == 3
    assert bench.done == dict.fromkeys(range(5), 1)


def test_of_a_replay_and_a_delete_at_once_each_letter_is_one_s(desk, bench):
    bench.die(*range(5))
    typed: list[Any] = []

    def replay_in_between(call):
        if call.operation == "KeepLetters" and not typed:
            typed.append(1)
            bench.owner.execute("delete from jobs_dlq where id = 2")  # somebody else's, by SQL

    ran = desk("delete", "--all", "--from-dlq", "--yes", "--json", script=replay_in_between)

    kept = [json.loads(one) for one in next(Path().glob("deleted-*")).read_text().splitlines()]
    assert (ran.json["done"], [one["message_id"] for one in kept]) == (
        4,
        ["dlq-1", "dlq-3", "dlq-4", "dlq-5"],
    )
    assert not bench.payloads("jobs_dlq")


@pytest.mark.parametrize(
    ("payload", "stays"), [({"order_id": 7}, False), ({"order": 7}, True)], ids=["good", "bad"]
)
def test_the_examples_check_runs_the_workers_handle_and_books_nothing(desk, bench, payload, stays):
    bench.owner.execute("create table booked (order_id int primary key)")
    bench.die(payload)
    place = f"host={bench.server.directory} dbname={bench.name} user=postgres"
    program = Path(__file__).parents[2] / "examples" / "postgres_worker" / "check.py"

    ran = desk(
        "replay", "dlq-1", "--from-dlq", "--yes",
        "--validate", f"{sys.executable} {program} '{place}' orders:handle",
    )  # fmt: skip

    assert ("PermanentError: an order without an id" in ran.said) is stays
    assert bench.payloads("jobs_dlq" if stays else "jobs") == [payload]
    assert bench.rows("select * from booked") == []


def test_a_database_that_goes_while_it_is_asked_is_not_said_to_be_aws(desk, bench):
    bench.die("a")

    gone = DatabaseLost("ReadLetters", LOST, "server closed the connection unexpectedly")

    ran = desk("park", "--all", "--yes", script=on("ReadLetters", refuse(gone)))

    assert ran.code == 1
    assert "The database was lost while it was asked (ReadLetters: server closed" in ran.err
    assert bench.everywhere() == {"a": 1}
