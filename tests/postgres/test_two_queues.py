"""Two worker queues of one state table, whose rows and jobs have the same numbers, and the people on call for both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from smart_redriver.oncall.terminal.exits import Exit
from tests.postgres.bench import Bench
from tests.postgres.conftest import new_database
from tests.postgres.desk import PostgresDesk

SETTINGS = {"max_attempts": 1, "last_chance_seconds": 0, "base_delay_seconds": 0}


@pytest.fixture
def charges(bench, server) -> Iterator[Bench]:
    with new_database(server, "template") as name, Bench(server, name, "charges") as one:
        one.clock, one.dynamodb = bench.clock, bench.dynamodb
        yield one


@pytest.fixture
def desks(bench, charges, tmp_path, monkeypatch) -> tuple[PostgresDesk, PostgresDesk]:
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench), PostgresDesk(charges)


def test_letters_of_one_number_are_shown_each_by_its_own_queue(bench, charges, desks):
    ours, theirs = desks
    bench.die("a", error="OrderRefused")
    charges.die("b", error="ChargeRefused")
    assert ours("park", "dlq-1", "--reason", "ours alone", "--yes").code == 0

    shown, other = ours("show", "dlq-1").out, theirs("show", "dlq-1").out

    assert ("OrderRefused" in shown, "ours alone" in shown) == (True, True)
    assert ("ChargeRefused" in other, "ours alone" in other) == (True, False)
    assert (charges.payloads("jobs_dlq"), charges.payloads("jobs_parked")) == (["b"], [])
    assert "OrderRefused" not in theirs("parked").out + theirs("causes").out


def test_jobs_of_one_number_that_came_back_are_shown_each_by_its_own_queue(bench, charges, desks):
    ours, theirs = desks
    for one, payload in ((bench, "a"), (charges, "b")):
        one.die(payload)
        one.run_pass(base_delay_seconds=0)
        ((number,),) = one.rows("select job_id from jobs_redriven")
        one.work(lambda payload: f"Refused{payload.upper()}")
        one.run_pass(base_delay_seconds=3600)

    shown, other = ours("show", f"job-{number}").out, theirs("show", f"job-{number}").out

    assert ("RefusedA" in shown, "RefusedB" in shown) == (True, False)
    assert ("RefusedA" in other, "RefusedB" in other) == (False, True)


def test_a_file_of_one_queue_is_refused_by_the_other(bench, charges, desks):
    ours, theirs = desks
    bench.die("a")
    charges.die("b")
    ours("delete", "dlq-1", "--from-dlq", "--export", "kept.jsonl", answer="1")

    for verb in ("undo", "import"):
        ran = theirs(verb, "kept.jsonl", "--yes")
        assert ran.code == Exit.REFUSED, ran.said
        assert "1 letter of orders" in ran.said

    assert (charges.payloads("jobs_dlq"), charges.payloads("jobs_parked")) == (["b"], [])
    assert ours("undo", "kept.jsonl", "--yes").code == 0
    assert bench.payloads("jobs_parked") == ["a"]


def test_both_drain_and_each_hears_of_its_own_jobs(bench, charges):
    def fails(payload: str) -> str | None:
        return "Refused" if payload == "bad" else None

    bench.die("a", "bad", "b")
    charges.die("bad", "c", "d")

    for _ in range(8):
        for one in (bench, charges):
            one.run_pass(**SETTINGS)
            one.work(fails)
        bench.clock.advance(30)

    assert (bench.done, charges.done) == ({"a": 1, "b": 1}, {"c": 1, "d": 1})
    assert (bench.payloads("jobs_parked"), charges.payloads("jobs_parked")) == (["bad"], ["bad"])


def test_the_audit_of_one_queue_counts_no_letter_of_the_other(bench, charges, desks):
    ours, _ = desks
    bench.die("a")
    charges.die("b", "c", "d")
    for one in (bench, charges):
        one.run_pass(base_delay_seconds=0)
        one.work()
        one.clock.advance(60)
        one.run_pass(base_delay_seconds=0)

    told = ours("audit", "--json")

    assert told.code == 0, told.said
    assert {fate: count for fate, count in told.json["fates"].items() if count} == {"DONE": 1}
