"""Payloads and words that mean harm arrive as they were, or are parked so."""

import hashlib
from datetime import timedelta

import pytest

from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.oncall.people import PeoplesLetters
from tests.postgres.bench import QUEUE, Bench

A_MINUTE = timedelta(minutes=1)
MIB = 1 << 20

#: As texts of JSON.
PAYLOADS = {
    "sql": '"\'); drop table jobs; --"',
    "placeholders": '{"%s": "%(rows)s", "{jobs}": "{}"}',
    "dollars": '"$$; delete from jobs_dlq; $$"',
    "quotes": '{"a\\"b": "\\\\", "\'": "\\u2028"}',
    "deep": "[" * 3000 + "]" * 3000,
    "wide": "[" + ",".join("0" for _ in range(200_000)) + "]",
    "digits": "1" + "0" * 5000 + ".000000001",
    "emoji": '"\U0001f4a9' + "é" * 1000 + '"',
    "null": "null",
    "empty": '""',
    "20 MiB": '"' + "x" * (20 * MIB) + '"',
    "20 MiB that don't compress": '"'
    + "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(20 * MIB // 64))
    + '"',
}

DIGEST = "select md5(payload::text) from {table}"


def died(bench: Bench, text: str) -> list[tuple]:
    bench.owner.execute("insert into jobs_dlq (payload) values (%s::jsonb)", (text,))
    return bench.rows(DIGEST.format(table="jobs_dlq"))


def letters(bench: Bench):
    return bench.outgoing(
        DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    )


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_redriven_unchanged(bench, payload):
    before = died(bench, payload)

    sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver(letters(bench))

    assert (sent.faults, list(sent.new_ids)) == ([], ["dlq-1"])
    assert bench.rows(DIGEST.format(table="jobs")) == before
    assert bench.rows("select count(*) from jobs_dlq") == [(0,)]


@pytest.mark.parametrize(
    "moment", ["infinity", "-infinity", "0044-03-15 BC", "0001-01-01 00:00+00"]
)
def test_a_letter_that_died_at_no_time_is_redriven_as_others_are(bench, moment):
    bench.owner.execute("insert into jobs_dlq (payload, failed_at) values ('1', %s)", (moment,))
    died(bench, "2")

    sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver(letters(bench))

    assert (sent.faults, sorted(sent.new_ids)) == ([], ["dlq-1", "dlq-2"])


TRIGGERS = {
    "kept out": "begin return null; end",
    "of another id": "begin new.id := new.id + 1000; return new; end",
}


def guarded(bench: Bench, table: str, body: str) -> None:
    bench.owner.execute(f"create function guard() returns trigger language plpgsql as '{body}'")
    bench.owner.execute(
        f"create trigger guard before insert on {table} for each row execute function guard()"
    )


@pytest.mark.parametrize("body", TRIGGERS.values(), ids=TRIGGERS)
def test_what_a_trigger_keeps_out_of_the_jobs_stays_a_letter(bench, body):
    before = died(bench, '"order"')
    guarded(bench, "jobs", body)

    sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver(letters(bench))

    assert [(one.code, one.is_refusal) for one in sent.faults] == [("InsertSwallowed", True)]
    assert sent.new_ids == {}
    assert bench.rows(DIGEST.format(table="jobs_dlq")) == before
    assert bench.rows("select count(*) from jobs") == [(0,)]
    assert bench.rows("select count(*) from jobs_redriven") == [(0,)]


@pytest.mark.parametrize("body", TRIGGERS.values(), ids=TRIGGERS)
def test_what_a_trigger_keeps_out_of_the_parked_stays_a_letter(bench, body):
    before = died(bench, '"order"')
    guarded(bench, "jobs_parked", body)

    sent = ParkingLot(bench.database, bench.clock.now).park(letters(bench))

    assert [one.code for one in sent.faults] == ["InsertSwallowed"]
    assert bench.rows(DIGEST.format(table="jobs_dlq")) == before


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_parked_unchanged_and_comes_back_so(bench, payload):
    before = died(bench, payload)
    lot = ParkingLot(bench.database, bench.clock.now)

    lot.park(letters(bench))
    parked = bench.rows(DIGEST.format(table="jobs_parked"))
    back = bench.outgoing(lot.receive(10, hidden_for=A_MINUTE))
    JobsSource(bench.database, QUEUE, bench.clock.now).deliver(back)

    assert parked == before
    assert bench.rows(DIGEST.format(table="jobs")) == before


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_person_is_shown_a_payload_or_that_it_is_too_large(bench, payload):
    died(bench, payload)

    (letter,) = PeoplesLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)

    assert 0 < len(letter.body) <= MIB


def test_a_nul_in_a_column_of_json_arrives_as_it_was(bench):
    """A column of `jsonb` takes none; one of `json` keeps the six characters."""
    for table in ("jobs", "jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {table} alter payload type json")
    bench.owner.execute(r"""insert into jobs_dlq (payload) values ('{"a": "\u0000", "a": 1}')""")

    JobsSource(bench.database, QUEUE, bench.clock.now).deliver(letters(bench))

    assert bench.rows("select payload::text from jobs") == [(r'{"a": "\u0000", "a": 1}',)]


@pytest.mark.parametrize(
    "words",
    [
        "'; drop table jobs; --",
        "%s %(now)s {jobs}",
        "\x1b[2J\x07" * 50,
        "x" * 100_000,
        "\n\n",
        "é\u202e",
    ],
    ids=["sql", "placeholders", "terminal", "long", "lines", "direction"],
)
def test_what_a_worker_wrote_of_an_error_stops_no_pass(bench, words):
    bench.die(*range(5), error=words, message=words)

    first = bench.run_pass(base_delay_seconds=0)
    bench.work(lambda n: words if n == 3 else None)
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.faults, second.faults) == (5, {}, {})
    assert second.heard == {"succeeded": 4, "failed": 1}
    assert bench.everywhere().total() == 5
