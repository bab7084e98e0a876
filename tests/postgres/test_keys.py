"""Tables of a team's own whose ids are UUIDs or texts: letters are known by numbers that are made of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from fakes.faults import Wire, at, die_before
from smart_redriver.engine.errors import SettingsError
from smart_redriver.postgres.doctor.examination import examine
from smart_redriver.postgres.engine.dead_letters import DeadLetters
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.migration import migration_of
from tests.postgres.bench import QUEUE, Bench, die_within, lose_the_answer
from tests.postgres.conftest import new_database
from tests.postgres.desk import PostgresDesk
from tests.postgres.test_every_crash import STATEMENTS

A_MINUTE = timedelta(minutes=1)

#: Types of the ids of jobs and of dead letters.
KINDS = [
    ("uuid", "uuid"),
    ("text", "text"),
    ("uuid", "bigint"),
    ("bigint", "uuid"),
    ("text", "uuid"),
]
_DEFAULTS = {"uuid": "gen_random_uuid()", "text": "'key ' || gen_random_uuid()::text"}


class Keyed(Bench):
    """A worker queue with ids of these types."""

    def take(self, jobs: str, dead: str) -> None:
        self.owner.execute("drop table jobs_parked, jobs_held, jobs_redriven, jobs_redriven_looks")
        self.retype("jobs", "id", jobs)
        self.retype("jobs_dlq", "id", dead)
        if jobs != "bigint":
            self.owner.execute("drop index jobs_dlq_original_id_idx")
            self.owner.execute(f"alter table jobs_dlq alter original_id type {jobs} using null")
        ids = {"jobs.id": jobs, "jobs_dlq.id": dead}
        self.place = self.server.place(
            self.name,
            time_to_fail_seconds=60,
            ids={name: kind for name, kind in ids.items() if kind != "bigint"},
        )
        migration = migration_of(self.place)
        for part in (migration.tables, migration.grants, *migration.index.split(";\n")):
            self.owner.execute(part)
        self.database = self.open()
        self.new_job = _DEFAULTS.get(jobs, "nextval('jobs_id_seq')")

    def retype(self, table: str, column: str, kind: str) -> None:
        if kind != "bigint":
            self.owner.execute(
                f"alter table {table} alter {column} drop default,"
                f" alter {column} type {kind} using gen_random_uuid()::text::{kind},"
                f" alter {column} set default {_DEFAULTS[kind]}"
            )

    def make_ids_alike(self) -> None:
        """Give all dead letters one id."""
        self.owner.execute(
            "alter table jobs_dlq drop constraint jobs_dlq_pkey;"
            " update jobs_dlq set id = (select id from jobs_dlq limit 1)"
        )

    def die(self, *payloads: Any, error: str = "Boom", message: str = "it broke") -> None:
        for one in payloads:
            self.owner.execute(
                "insert into jobs_dlq (original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by,"
                f" failed_at) values ({self.new_job}, %s, 3, %s, %s, 'a\nb', 'w1', %s)",
                (json.dumps(one), error, message, self.clock.now()),
            )


@pytest.fixture(params=KINDS, ids=" ".join)
def keyed(server, request) -> Iterator[Keyed]:
    with new_database(server, "template") as name, Keyed(server, name) as one:
        one.take(*request.param)
        yield one


@pytest.fixture
def typed(keyed, tmp_path, monkeypatch) -> PostgresDesk:
    monkeypatch.chdir(tmp_path)  # where the command keeps letters
    return PostgresDesk(keyed)


def test_the_doctor_finds_nothing_that_is_needed_and_no_index_missing(keyed):
    keyed.owner.execute("analyze")
    found = [one for one in examine(keyed.database) if not one.is_well]

    assert [one.what for one in found if one.is_needed or "index" in one.what] == []


def test_letters_go_back_are_heard_of_and_parked(keyed):
    keyed.die("a", "b", "bad")
    settings = {"max_attempts": 1, "last_chance_seconds": 0, "base_delay_seconds": 0}

    first = keyed.run_pass(**settings)
    assert Counter(keyed.payloads("jobs")) == {"a": 1, "b": 1, "bad": 1}
    keyed.work(lambda one: "Refused" if one == "bad" else None)
    keyed.clock.advance(60)
    second = keyed.run_pass(**settings)

    assert (first.redriven, first.faults, second.faults) == (3, {}, {})
    assert (second.heard["succeeded"], second.heard["failed"]) == (2, 1)
    assert keyed.rows("select payload, error_class from jobs_parked") == [("bad", "Refused")]
    assert keyed.everywhere() == {"a": 1, "b": 1, "bad": 1}


def test_a_parked_row_keeps_its_ids(keyed, typed):
    keyed.die("a")
    before = keyed.rows("select id, original_id from jobs_dlq")

    assert typed("park", "--all", "--yes").code == 0

    assert keyed.rows("select id, original_id from jobs_parked") == before


def test_many_letters_drain_page_by_page(keyed):
    keyed.die(*range(250))

    keyed.live(steps=30, initial_window=1000)

    assert keyed.done == Counter(range(250))
    assert keyed.payloads("jobs_dlq") == []


def test_an_asking_that_lost_its_answer_is_told_the_same(keyed):
    keyed.die("a")
    dlq = DeadLetters(keyed.database, keyed.clock.now)
    jobs = JobsSource(keyed.database, QUEUE, keyed.clock.now)
    some = keyed.outgoing(dlq.receive(10, hidden_for=A_MINUTE))

    first, again = jobs.deliver(some), jobs.deliver(some)

    assert first.new_ids
    assert first.new_ids == again.new_ids
    assert keyed.payloads("jobs") == ["a"]


def test_a_letter_that_its_table_refuses_is_alone_refused(keyed):
    keyed.owner.execute("alter table jobs add check (payload <> '\"bad\"')")
    keyed.die("a", "b", "bad")

    report = keyed.run_pass()

    assert Counter(keyed.payloads("jobs")) == {"a": 1, "b": 1}
    assert keyed.payloads("jobs_dlq") == ["bad"]
    assert report.redriven == 2


def test_rows_with_one_number_are_all_redriven(keyed):
    """As rows would be with two ids of one hash."""
    keyed.die("a", "b")
    keyed.make_ids_alike()

    keyed.live(steps=12)

    assert keyed.done == {"a": 1, "b": 1}


def test_rows_with_one_number_are_parked_or_stay(keyed, typed):
    keyed.die("a", "b")
    keyed.make_ids_alike()

    typed("park", "--all", "--yes")

    assert keyed.everywhere() == {"a": 1, "b": 1}


def test_jobs_of_producers_are_left_out_of_the_evidence_where_ids_are_hashed(keyed):
    keyed.owner.execute("insert into jobs (payload, run_after) values ('1', '2000-01-01')")

    reports = [keyed.run_pass() for _ in range(3)]

    assert [one.faults for one in reports] == [{}, {}, {}]
    seen = keyed.rows("select state::jsonb -> 'jobs' <> '[]' from jobs_redriven_looks")
    assert seen == [("jobs.id" not in keyed.place.ids,)]


# By hand.


def number_of(keyed: Keyed, table: str = "jobs_dlq") -> str:
    hashed = "hashtextextended(id::text, 0) & 9223372036854775807"
    number = hashed if "jobs_dlq.id" in keyed.place.ids else "id"
    ((row,),) = keyed.rows(f"select {number} from {table}")
    return f"{'dlq' if table == 'jobs_dlq' else 'parked'}-{row}"


def test_a_person_sees_replays_and_parks_a_letter_by_its_id(keyed, typed):
    keyed.die("a")
    letter = number_of(keyed)

    shown = typed("show", letter)
    assert shown.code == 0, shown.said
    assert "it broke" in shown.out
    assert typed("park", letter, "--yes").code == 0
    assert typed("replay", number_of(keyed, "jobs_parked"), "--yes").code == 0

    assert keyed.payloads("jobs") == ["a"]
    assert keyed.everywhere() == {"a": 1}


def test_a_person_deletes_and_undoes(keyed, typed):
    keyed.die("a", "b")
    before = Counter(keyed.rows("select id, original_id, payload from jobs_dlq"))

    deleted = typed("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="2")
    assert (deleted.code, keyed.everywhere()) == (0, {})
    undone = [typed("undo", "kept.jsonl", "--yes") for _ in range(2)]

    assert undone[0].code == 0, undone[0].said

    assert Counter(keyed.rows("select id, original_id, payload from jobs_parked")) == before


def test_a_person_edits_a_letter(keyed, typed):
    keyed.die("a")
    edit = ("edit", number_of(keyed), "--from-dlq", "--with", "sed s/a/b/")

    ran = typed(*edit, "--yes")

    assert ran.code == 0, ran.said
    assert keyed.payloads("jobs") == ["b"]


# Crashes.

LETTERS = ["bad 1", *(f"good {n}" for n in range(4))]
SETTINGS = {
    "max_attempts": 1,
    "last_chance_seconds": 0,
    "base_delay_seconds": 0,
    "initial_window": 3,
}


def fails(payload: str) -> str | None:
    return "Refused" if payload.startswith("bad") else None


def lose_an_answer(call, act):
    """Where the call is a statement: it is asked again on another connection."""
    return lose_the_answer(call, act) if call.operation in STATEMENTS else act(**call.request)


@pytest.mark.enumeration
@pytest.mark.parametrize(
    "mishap", [die_before, die_within, lose_an_answer], ids=lambda one: one.__name__
)
def test_a_pass_that_dies_at_any_statement_loses_and_repeats_nothing(keyed, mishap):
    wrong, tried = [], 0
    for number in range(400):
        keyed.begin_anew()
        keyed.die(*LETTERS)
        wire = Wire(at({number: mishap}))
        keyed.live(wire, fails=fails, steps=16, **SETTINGS)
        if len(wire.calls) <= number:
            break
        tried += 1
        if keyed.everywhere() != Counter(LETTERS):
            wrong.append(f"{wire.calls[number]}: lost or repeated {keyed.everywhere()}")
        if keyed.done != Counter(one for one in LETTERS if not fails(one)):
            wrong.append(f"{wire.calls[number]}: done {keyed.done}")

    assert wrong == []
    assert tried > 30


@pytest.mark.parametrize("is_parked", [False, True])
def test_a_letter_is_shown_by_its_rows_own_id(keyed, typed, is_parked):
    if "jobs_dlq.id" not in keyed.place.ids:
        pytest.skip("its rows have numbers")
    keyed.die("a")
    (letter,) = typed("letters", "--json").json["letters"]
    if is_parked:
        assert typed("park", "--all", "--yes").code == 0
    ((own_id,),) = keyed.rows(f"select id::text from {'jobs_parked' if is_parked else 'jobs_dlq'}")

    ran = typed("show", own_id)

    assert ran.code == 0, ran.said
    assert f"{letter['message_id']} is in the {'parking lot' if is_parked else 'DLQ'}" in ran.out
    assert "it broke" in ran.out


def test_a_letter_is_shown_by_its_jobs_own_id(keyed, typed):
    if "jobs.id" not in keyed.place.ids:
        pytest.skip("its jobs have numbers")
    keyed.die("a")
    keyed.run_pass()
    ((own_id,),) = keyed.rows("select id::text from jobs")

    ran = typed("show", own_id)

    assert ran.code == 0, ran.said
    assert "sent back to its source queue" in ran.out


def test_an_id_of_nothing_is_said_not_to_be_found(keyed, typed):
    ran = typed("show", "11111111-2222-3333-4444-555555555555")

    assert ran.code == 1
    assert "it is in neither table, nor in the ledger" in ran.err


# The configuration and the doctor.


@pytest.mark.parametrize(
    "ids", [{"jobs.id": "money"}, {"jobs.payload": "uuid"}, ["uuid"], {"jobs.id": []}]
)
def test_ids_of_anything_else_are_refused(ids):
    with pytest.raises(SettingsError, match="ids"):
        JobsDatabase.of({"host": "h", "dbname": "d", "user": "u", "ids": ids})


def test_a_configuration_with_ids_is_read_as_it_was_written():
    place = JobsDatabase.of(
        {"host": "h", "dbname": "d", "user": "u", "ids": {"jobs.id": "uuid", "jobs_dlq.id": "text"}}
    )

    assert JobsDatabase.parse(place.encode()) == place


def test_the_doctor_says_of_ids_that_are_no_numbers_how_to_name_them(keyed):
    found = examine(keyed.open(place=keyed.server.place(keyed.name)))

    told = [one.advice for one in found if one.what.startswith("types of ") and not one.is_well]
    assert told
    assert all("`ids`" in one for one in told)


def test_the_doctor_misses_an_index_on_the_number(keyed):
    table = "jobs_dlq" if "jobs_dlq.id" in keyed.place.ids else "jobs"
    keyed.owner.execute(f"drop index {table}_number_idx")

    found = [one.what for one in examine(keyed.database) if not one.is_well]

    assert f"index on the number of {table}.id" in found
