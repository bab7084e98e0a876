"""What a pass may count on of its ports, on a real Postgres."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import sql

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.reports.outcomes import Result, parse_outcomes
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.postgres.engine.connection import entry_of
from smart_redriver.postgres.engine.dead_letters import COUNTED, PAGE, DeadLetters, ParkingLot
from smart_redriver.postgres.engine.letters import Handle
from smart_redriver.postgres.engine.outcomes import REMEMBERED, Outcomes
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.oncall.people import PeoplesLetters, PeoplesLot
from tests.postgres.bench import QUEUE, Bench

A_MINUTE = timedelta(minutes=1)


@pytest.fixture
def dlq(bench: Bench) -> DeadLetters:
    return DeadLetters(bench.database, bench.clock.now)


@pytest.fixture
def lot(bench: Bench) -> ParkingLot:
    return ParkingLot(bench.database, bench.clock.now)


@pytest.fixture
def jobs(bench: Bench) -> JobsSource:
    return JobsSource(bench.database, QUEUE, bench.clock.now)


@pytest.fixture
def outcomes(bench: Bench) -> Outcomes:
    return Outcomes(bench.database, QUEUE, bench.clock.now)


def ids(letters):
    return [one.message_id for one in letters]


def test_letters_come_in_the_order_of_their_ids_from_somewhere_on_and_each_once(bench, dlq):
    bench.die(*range(PAGE + 5))

    received = [one for _ in range(11) for one in dlq.receive(10, hidden_for=A_MINUTE)]

    first = int(received[0].message_id.removeprefix("dlq-"))
    around = [*range(first, PAGE + 6), *range(1, first)]
    assert ids(received) == [f"dlq-{n}" for n in around]
    assert dlq.receive(10, hidden_for=A_MINUTE) == []


def test_a_row_says_what_a_report_of_its_end_would_have_said(bench, dlq):
    bench.die("a", error="shop.Declined", message="card 7")
    (letter,) = dlq.receive(10, hidden_for=A_MINUTE)
    unheard = Entry(
        original_id="dlq-1",
        queue=QUEUE,
        first_seen=letter.sent_at,
        status=Status.FAILED,
        current_id="dlq-1",
    )

    assert entry_of(letter, QUEUE, ("shop.Declined",)) == unheard.failed(
        tries=1,
        is_last=True,
        cause="shop.Declined",
        error="shop.Declined: card 7",
        permanent=True,
    )


@pytest.mark.parametrize("gap", [1, 1_000_000_000])
def test_no_letter_is_the_first_that_each_pass_meets(bench, gap):
    """What stays where it is, as nobody takes it, would be every canary. Numbers may have gaps."""
    bench.owner.execute(
        "insert into jobs_dlq (id, payload) select case when n <= 5 then n else n + %s end, '1' from "
        "generate_series(1, 10) n",
        (gap,),
    )
    first = set()

    for _ in range(40):
        another = DeadLetters(bench.database, bench.clock.now)
        first |= set(ids(another.receive(1, hidden_for=A_MINUTE)))
        bench.clock.advance(60)

    assert len(first) == 10


def test_of_many_letters_those_at_the_end_are_begun_with_as_well(bench):
    """Beyond what is counted, the numbers tell about where a letter is."""
    bench.owner.execute(
        "insert into jobs_dlq (id, payload) select n, '1' from generate_series(1, %s) n",
        (2 * COUNTED,),
    )
    first = []

    for _ in range(40):
        another = DeadLetters(bench.database, bench.clock.now)
        first += [Handle.of(one).row for one in another.receive(1, hidden_for=A_MINUTE)]
        bench.clock.advance(60)

    assert min(first) < COUNTED / 10
    assert max(first) > 1.9 * COUNTED


def test_letters_that_come_while_others_are_worked_through_are_met(bench, dlq):
    bench.die("a", "b", "c")
    bench.clock.advance(60)
    seen = ids(dlq.receive(10, hidden_for=A_MINUTE))
    assert dlq.receive(10, hidden_for=A_MINUTE) == []

    bench.die("d")

    assert sorted(seen) == ["dlq-1", "dlq-2", "dlq-3"]
    assert ids(dlq.receive(10, hidden_for=A_MINUTE)) == ["dlq-4"]


def test_a_letter_says_of_what_and_when_it_died_and_not_what_is_in_it(bench, dlq):
    bench.die({"secret": 1}, error="PaymentDeclined", message="card 12\nmore")

    (letter,) = dlq.receive(10, hidden_for=A_MINUTE)

    assert letter.body == ""
    assert letter.attributes["ErrorType"]["StringValue"] == "PaymentDeclined"
    assert letter.attributes["ErrorMessage"]["StringValue"] == "card 12\nmore"
    assert letter.sent_at == bench.clock.now()
    assert letter.first_received_at == bench.clock.now() - bench.place.time_to_fail


def test_a_person_is_shown_payload_and_stack_trace(bench):
    bench.die({"order": 7})
    look = PeoplesLetters(bench.database, bench.clock.now)

    (letter,) = look.receive(10, hidden_for=A_MINUTE)

    assert json.loads(letter.body) == {"order": 7}
    assert letter.attributes["StackTrace"]["StringValue"] == "a\nb"


def test_what_is_in_hand_comes_again_when_its_time_is_up_or_it_is_released(bench, dlq):
    bench.die("a", "b", "c")
    received = sorted(dlq.receive(10, hidden_for=A_MINUTE), key=lambda one: one.message_id)

    assert dlq.hide([(received[1], timedelta())]) == []
    released = dlq.receive(10, hidden_for=timedelta(hours=1))
    bench.clock.advance(60)

    assert ids(released) == ["dlq-2"]
    assert ids(dlq.receive(10, hidden_for=A_MINUTE)) == ["dlq-1", "dlq-3"]


def test_a_held_letter_is_hidden_from_everybody_until_its_time(bench, dlq):
    bench.die("a", "b")
    (first,) = [one for one in dlq.receive(10, hidden_for=A_MINUTE) if one.message_id == "dlq-1"]

    assert dlq.hide([(first, timedelta(hours=2))]) == []
    assert dlq.hide([(first, timedelta(hours=1))]) == []

    another = DeadLetters(bench.database, bench.clock.now)
    assert ids(another.receive(10, hidden_for=A_MINUTE)) == ["dlq-2"]
    assert (dlq.facts().visible, dlq.facts().in_flight) == (1, 1)
    bench.clock.advance(3600)
    later = DeadLetters(bench.database, bench.clock.now)
    assert sorted(ids(later.receive(10, hidden_for=A_MINUTE))) == ["dlq-1", "dlq-2"]
    assert (dlq.facts().visible, dlq.facts().in_flight) == (2, 0)


def test_a_redriven_letter_is_a_job_that_waits_for_its_time_and_begins_anew(bench, dlq, jobs):
    bench.die({"n": 1.5, "é": [None]})
    bench.owner.execute("update jobs_dlq set attempts = 9")

    sent = jobs.deliver(bench.outgoing(dlq.receive(1, hidden_for=A_MINUTE), delay=A_MINUTE))

    assert sent.new_ids == {"dlq-1": "job-2"}
    ((job, payload, attempts, most, run_after, locked, created),) = bench.rows(
        "select id, payload::text, attempts, max_attempts, run_after, locked_at, created_at from jobs"
    )
    assert (job, payload, attempts, most) == (2, '{"n": 1.5, "é": [null]}', 0, 3)
    assert (run_after, locked, created) == (
        bench.clock.now() + A_MINUTE,
        None,
        bench.clock.now(),
    )
    assert bench.payloads("jobs_dlq") == []
    assert dlq.delete(dlq.receive(10, hidden_for=A_MINUTE)) == []


def test_who_asks_again_for_a_redrive_is_told_the_same_and_nothing_is_repeated(bench, dlq, jobs):
    bench.die("a", "b")
    outgoing = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))

    first, second = jobs.deliver(outgoing), jobs.deliver(outgoing)

    assert first.new_ids == second.new_ids
    assert set(first.new_ids) == {"dlq-1", "dlq-2"}
    assert sorted(bench.payloads("jobs")) == ["a", "b"]


def test_a_letter_that_somebody_else_has_in_hand_stays_and_the_others_go(bench, dlq, jobs):
    bench.die("a", "b")
    outgoing = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    with bench.server.connect(bench.name, autocommit=False) as other:
        other.execute("select 1 from jobs_dlq where id = 1 for update")

        sent = jobs.deliver(outgoing)

        assert set(sent.new_ids) == {"dlq-2"}
        (fault,) = sent.faults
        assert (fault.key, fault.code, fault.is_transient) == ("dlq-1", "LetterNotThere", True)
    assert bench.payloads("jobs_dlq") == ["a"]


def test_what_is_gone_without_us_is_a_passing_fault_and_no_other_letter_is_touched(
    bench, dlq, jobs
):
    bench.die("a", "b")
    outgoing = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    bench.owner.execute("delete from jobs_dlq where id = 1")

    sent = jobs.deliver(outgoing)

    assert [one.code for one in sent.faults] == ["LetterNotThere"]
    assert (bench.payloads("jobs"), bench.payloads("jobs_dlq")) == (["b"], [])


def test_a_letter_that_the_table_of_jobs_refuses_is_found_among_the_others(bench, dlq, jobs):
    bench.owner.execute("alter table jobs add check (payload <> '\"bad\"')")
    bench.die("a", "b", "bad", "c", "d")

    sent = jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))

    assert set(sent.new_ids) == {"dlq-1", "dlq-2", "dlq-4", "dlq-5"}
    assert (sent.faults, sent.bounced) == ([], {"dlq-3": "CheckViolation (jobs_payload_check)"})
    (*_, fault) = sent.healed
    assert (fault.key, fault.code) == ("dlq-3", "CheckViolation")
    assert "bad" not in fault.detail.replace("jobs_payload_check", "")
    assert bench.payloads("jobs_dlq") == ["bad"]


def test_a_role_without_the_right_is_a_refusal(bench, dlq, jobs):
    bench.die("a")
    outgoing = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    bench.owner.execute("revoke insert on jobs from smart_redriver")

    sent = jobs.deliver(outgoing)

    assert sent.refused is not None
    assert sent.refused.code == "InsufficientPrivilege"
    assert bench.payloads("jobs_dlq") == ["a"]


def test_a_returned_job_is_known_by_its_job_and_carries_its_metadata(bench, dlq, jobs):
    bench.die("a")
    letters = dlq.receive(10, hidden_for=A_MINUTE)
    (metadata,) = [bench.metadata(one) for one in letters]
    jobs.deliver(bench.outgoing(letters))
    bench.work(lambda _: "Boom")

    (back,) = dlq.receive(10, hidden_for=A_MINUTE)

    assert (back.message_id, back.original_id, back.metadata) == ("job-2", "dlq-1", metadata)


def test_only_the_first_letter_that_names_a_job_of_ours_is_its_return(bench, dlq, jobs):
    """A worker that moves a job twice has made two letters: neither may be taken for a copy of the other and
    dropped.
    """
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.work(lambda _: "Boom")
    bench.owner.execute(
        "insert into jobs_dlq (original_id, payload) select original_id, payload from jobs_dlq"
    )

    first, second = dlq.receive(10, hidden_for=A_MINUTE)
    jobs.deliver(bench.outgoing([first]))

    assert (first.message_id, second.message_id, second.metadata) == ("job-2", "dlq-3", None)
    (again,) = DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    assert (again.message_id, again.metadata) == ("dlq-3", None)


@pytest.mark.parametrize("name", ["tenant", "order", "100%", 'say "so"', "d", "Grüße", "g"])
def test_a_column_that_nobody_was_told_of_is_kept_where_both_tables_have_it(bench, dlq, lot, name):
    column = sql.Identifier(name)
    bench.die("a", "b")
    for table in ("jobs_dlq", "jobs_parked"):
        added = sql.SQL("alter table {} add column {} varchar(9)")
        bench.owner.execute(added.format(sql.Identifier(table), column))
    bench.owner.execute(sql.SQL("update jobs_dlq set {} = 'blue' where id = 1").format(column))

    lot.park(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))

    assert bench.owner.execute(
        sql.SQL("select payload, {} from jobs_parked order by id").format(column)
    ).fetchall() == [("a", "blue"), ("b", None)]


@pytest.mark.parametrize(
    ("dead", "parked"),
    [
        ("add column more text default 'x'", "add column other int"),
        ("add column more text default 'x'", "add column more int"),
        ("add column more varchar(9) default 'x'", "add column more varchar(3)"),
        ("add column more text", "add column more text not null default 'x'"),
        ("add column more int", "add column more int generated always as (attempts + 1) stored"),
        ("add column more int default 7", "add column more int check (more < 3)"),
        ("add column more int default 7", "add column more int unique"),
        ("add column more int default 7", "add column more int references tenants"),
        ("add column our_row int default 7", "add column our_row int"),
        ("add column parked_at int default 7", "add column other int"),
    ],
)
def test_a_column_that_might_not_take_what_the_other_has_keeps_no_letter_from_being_parked(
    bench, dlq, lot, dead, parked
):
    bench.owner.execute("create table tenants (id int primary key)")
    bench.owner.execute(f"alter table jobs_dlq {dead}; alter table jobs_parked {parked}")
    bench.die("a", "b")

    sent = lot.park(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))

    assert (sent.faults, bench.payloads("jobs_parked")) == ([], ["a", "b"])


def test_a_column_that_goes_between_two_moves_is_not_asked_for(bench, dlq, lot):
    for table in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {table} add column tenant text")
    bench.die("a", "b")
    first, second = dlq.receive(10, hidden_for=A_MINUTE)
    lot.park(bench.outgoing([first]))
    bench.owner.execute("alter table jobs_parked drop column tenant")

    sent = lot.park(bench.outgoing([second]))

    assert (sent.faults, bench.payloads("jobs_parked")) == ([], ["a", "b"])


def test_a_parked_letter_keeps_all_of_its_row_and_its_metadata(bench, dlq, lot):
    bench.die({"n": 1}, error="Boom")
    before = bench.rows("select * from jobs_dlq")
    letters = dlq.receive(10, hidden_for=A_MINUTE)

    sent, again = lot.park(bench.outgoing(letters)), lot.park(bench.outgoing(letters))

    assert sent.new_ids == again.new_ids == {"dlq-1": "parked-1"}
    assert bench.payloads("jobs_dlq") == []
    ((*row, metadata, parked_at),) = bench.rows("select * from jobs_parked")
    assert [tuple(row)] == before
    assert (metadata, parked_at) == (bench.metadata(letters[0]).encode(), bench.clock.now())
    (parked,) = lot.receive(10, hidden_for=A_MINUTE)
    assert (parked.message_id, parked.original_id, parked.sent_at) == (
        "parked-1",
        "dlq-1",
        bench.clock.now(),
    )


def test_a_parked_letter_goes_back_as_it_was(bench, dlq, lot, jobs):
    bench.die({"n": 1})
    lot.park(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))

    sent = jobs.deliver(bench.outgoing(lot.receive(10, hidden_for=A_MINUTE)))

    assert sent.new_ids == {"parked-1": "job-2"}
    assert (bench.payloads("jobs"), bench.payloads("jobs_parked")) == ([{"n": 1}], [])


def test_letters_of_both_tables_go_in_one_delivery(bench, dlq, lot, jobs):
    bench.die("a", "b")
    first, second = sorted(dlq.receive(10, hidden_for=A_MINUTE), key=lambda one: one.message_id)
    lot.park(bench.outgoing([first]))
    (parked,) = lot.receive(10, hidden_for=A_MINUTE)

    sent = jobs.deliver(bench.outgoing([second, parked]))

    assert set(sent.new_ids) == {"dlq-2", "parked-1"}
    assert sorted(bench.payloads("jobs")) == ["a", "b"]


def test_a_pass_deletes_no_row_that_is_still_there(bench, dlq):
    """The ledger outlives a database that was restored: what it says was replaced may be a letter again."""
    bench.die("a")
    letters = dlq.receive(10, hidden_for=A_MINUTE)

    (fault,) = dlq.delete(letters)

    assert (fault.key, fault.code) == ("dlq-1", "StillThere")
    assert bench.payloads("jobs_dlq") == ["a"]


def test_a_person_may_delete_letters_of_either_table(bench, dlq, lot):
    bench.die("a", "b")
    theirs = PeoplesLetters(bench.database, bench.clock.now)
    parked = PeoplesLot(bench.database, bench.clock.now)
    first, second = theirs.receive(10, hidden_for=A_MINUTE)
    lot.park(bench.outgoing([second]))

    for table, letters in ((theirs, [first]), (parked, parked.receive(10, hidden_for=A_MINUTE))):
        kept, unread = table.keep(letters)
        assert (unread, table.remove(kept)) == ([], [])

    assert not bench.everywhere()


@pytest.mark.parametrize(
    ("fails", "result"), [(None, Result.SUCCEEDED), ("Boom", Result.FAILED)], ids=str
)
def test_an_outcome_is_told_once_it_is_known(bench, dlq, jobs, outcomes, fails, result):
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    assert outcomes.receive(hidden_for=A_MINUTE) == []
    bench.work(lambda _: fails)

    (report,) = outcomes.receive(hidden_for=A_MINUTE)
    (outcome,) = parse_outcomes(report.body).outcomes
    faults = outcomes.delete([report])

    assert (outcome.result, outcome.error_class) == (result, fails)
    assert (outcome.message_id, outcome.original_id, outcome.batch) == ("job-2", "dlq-1", 1)
    assert (outcome.queue, report.sent_at) == (QUEUE, bench.clock.now())
    assert faults == []
    assert [outcomes.receive(hidden_for=A_MINUTE) for _ in range(2)] == [[], []]


def test_a_job_that_is_locked_or_waits_is_not_known_yet(bench, dlq, jobs, outcomes):
    bench.die("a", "b")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE), delay=A_MINUTE))
    bench.owner.execute("update jobs set locked_at = now(), attempts = 2 where id = 3")

    assert outcomes.receive(hidden_for=A_MINUTE) == []


def test_a_job_that_waits_for_another_try_says_once_how_many_have_failed(
    bench, dlq, jobs, outcomes
):
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    told: list[Any] = []
    for attempts in (1, 1, 2, 9):
        bench.owner.execute("update jobs set attempts = %s", (attempts,))
        for report in outcomes.receive(hidden_for=A_MINUTE):
            told += parse_outcomes(report.body).outcomes
            outcomes.delete([report])
        outcomes.release([])

    assert jobs.facts().max_receive_count == 3
    # Never the last one, for it is there; and of what it died before, as nobody says of what it failed now.
    assert [(one.result, one.receive_count, one.error_class) for one in told] == [
        (Result.FAILED, 1, "Boom"),
        (Result.FAILED, 2, "Boom"),
        (Result.FAILED, 2, "Boom"),
    ]
    bench.work()
    (report,) = outcomes.receive(hidden_for=A_MINUTE)
    assert [one.result for one in parse_outcomes(report.body).outcomes] == [Result.SUCCEEDED]


def test_outcomes_that_were_not_taken_in_are_told_again(bench, dlq, jobs, outcomes):
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.work()
    first = outcomes.receive(hidden_for=A_MINUTE)
    assert outcomes.receive(hidden_for=A_MINUTE) == []

    outcomes.receive(hidden_for=A_MINUTE)
    outcomes.release(first)

    assert [one.body for one in outcomes.receive(hidden_for=A_MINUTE)] == [first[0].body]


def test_a_return_that_follows_a_success_is_the_letter_still(bench, dlq, jobs, outcomes):
    """A worker that deletes its job in one transaction and writes the letter in the next."""
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.work()
    outcomes.delete(outcomes.receive(hidden_for=A_MINUTE))
    bench.owner.execute("insert into jobs_dlq (original_id, payload) values (2, '\"a\"')")

    (back,) = dlq.receive(10, hidden_for=A_MINUTE)

    assert (back.message_id, back.original_id) == ("job-2", "dlq-1")


def test_what_has_succeeded_for_good_is_forgotten(bench, dlq, jobs, outcomes):
    bench.die("a", "b")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.work(lambda payload: "Boom" if payload == "b" else None)
    outcomes.delete(outcomes.receive(hidden_for=A_MINUTE))
    bench.clock.advance(REMEMBERED.total_seconds() + 1)

    outcomes.delete([])

    assert bench.rows("select job_id, returned_as from jobs_redriven") == [(4, 3)]


def test_redrive_metadata_that_somebody_wrote_into_our_table_counts_as_none(
    bench, dlq, jobs, outcomes
):
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.owner.execute("update jobs_redriven set trail = 'no json'")
    bench.work(lambda _: "Boom")

    (report,) = outcomes.receive(hidden_for=A_MINUTE)
    (back,) = dlq.receive(10, hidden_for=A_MINUTE)

    (outcome,) = parse_outcomes(report.body).outcomes
    assert (outcome.original_id, outcome.batch) == ("job-2", None)
    assert (back.metadata, back.metadata_fault is None) == (None, False)


def test_a_row_without_time_or_error_is_a_letter_that_died_now(bench, dlq):
    bench.owner.execute("insert into jobs_dlq (payload) values ('1')")

    (letter,) = dlq.receive(10, hidden_for=A_MINUTE)

    assert (letter.sent_at, letter.attributes) == (bench.clock.now(), {})


def test_a_letter_from_the_future_died_now(bench, dlq):
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) values ('1', %s)",
        (datetime(2999, 1, 1, tzinfo=UTC),),
    )

    (letter,) = dlq.receive(10, hidden_for=A_MINUTE)

    assert letter.sent_at == bench.clock.now()


def test_counts_are_exact_up_to_thousands_and_the_planners_beyond(bench, dlq, jobs):
    bench.owner.execute(
        "insert into jobs_dlq (payload) select '1' from generate_series(1, 12000); analyze jobs_dlq"
    )

    assert dlq.facts().visible == 12_000
    assert jobs.facts().depth == 0


def test_a_database_that_is_away_is_a_failed_call_and_works_again_when_it_is_back(bench, dlq):
    bench.die("a")
    assert dlq.facts().visible == 1
    bench.owner.execute("revoke connect on database " + bench.name + " from public")
    bench.owner.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'smart_redriver'"
        " and datname = current_database()"
    )

    with pytest.raises(CallFailed) as failed:
        dlq.facts()

    assert (failed.value.call, failed.value.code) == ("CountLetters", "EndpointConnectionError")
    bench.owner.execute("grant connect on database " + bench.name + " to public")
    assert dlq.facts().visible == 1


def test_a_connection_that_was_lost_between_two_calls_costs_nothing(bench, dlq):
    bench.die("a")
    dlq.facts()
    bench.owner.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'smart_redriver'"
        " and datname = current_database()"
    )

    assert dlq.facts().visible == 1


def test_a_job_whose_visibility_timeout_runs_is_in_hand_and_not_failed(bench, dlq, jobs):
    bench.owner.execute(
        "alter table jobs drop locked_at, add vt timestamptz not null default now()"
    )
    bench.owner.execute("grant select (vt) on jobs to smart_redriver")
    outcomes = Outcomes(
        bench.open(place=replace(bench.place, in_hand_until="vt")), QUEUE, bench.clock.now
    )
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    taken = "update jobs set attempts = 1, vt = %s"

    bench.owner.execute(taken, (bench.clock.now() + A_MINUTE,))
    assert outcomes.receive(hidden_for=A_MINUTE) == []

    bench.clock.advance(61)
    (report,) = outcomes.receive(hidden_for=A_MINUTE)
    assert [one.result for one in parse_outcomes(report.body).outcomes] == [Result.FAILED]
