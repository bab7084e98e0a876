"""Numbers of rows and jobs that come again: of nobody who is still there it is told that he was sent."""

from datetime import timedelta

from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.source import JobsSource
from tests.postgres.bench import QUEUE, Bench
from tests.postgres.conftest import new_database

A_MINUTE = timedelta(minutes=1)


def test_new_letters_under_the_numbers_of_old_ones_are_letters(bench):
    bench.die("old 1", "old 2")
    bench.live()
    bench.owner.execute("truncate jobs_dlq restart identity")
    bench.clock.advance(3600)
    bench.die("new 1", "new 2")

    bench.live()

    assert bench.done == {"old 1": 1, "old 2": 1, "new 1": 1, "new 2": 1}


def test_all_numbers_may_begin_anew_while_the_ledger_knows_old_ones(bench):
    bench.die("old 1", "old 2")
    bench.run_pass(base_delay_seconds=0)
    bench.owner.execute("truncate jobs, jobs_dlq restart identity")
    bench.clock.advance(3600)
    bench.die("new 1", "new 2")
    bench.owner.execute("alter sequence jobs_id_seq restart")

    bench.live(steps=20)

    assert bench.done == {"new 1": 1, "new 2": 1}
    assert bench.payloads("jobs_dlq") == []


def test_two_queues_with_one_state_table_may_number_their_letters_alike(bench, server):
    """Row 1 of the one is sent while row 1 of the other waits, which is no return of it."""
    bench.die("a 1", "a 2")
    bench.live()
    with new_database(server, "template") as name, Bench(server, name, "charges") as charges:
        charges.dynamodb = bench.dynamodb
        charges.die("b 1", "b 2")

        charges.live(steps=20)

        assert charges.done == {"b 1": 1, "b 2": 1}
        assert "letter.discarded" not in [event for event, _ in charges.events]


def test_what_was_sent_and_is_there_again_is_told_of_and_not_sent_again(bench):
    """A trigger, or a person, has put the row back as it was: the job may be done already."""
    bench.owner.execute(
        "create function back() returns trigger language plpgsql security definer as"
        " $$ begin insert into jobs_dlq select old.*; return null; end $$;"
        " create trigger back after delete on jobs_dlq for each row execute function back()"
    )
    bench.die("a")

    reports = []
    for _ in range(4):
        reports.append(bench.run_pass(base_delay_seconds=0))
        bench.work()
        bench.clock.advance(600)

    assert [one.redriven for one in reports] == [1, 0, 0, 0]
    assert reports[-1].faults == {"DeleteLetters:StillThere": 1}
    assert (bench.done, bench.payloads("jobs_dlq")) == ({"a": 1}, ["a"])


def test_a_row_that_a_trigger_keeps_in_its_table_is_no_job(bench):
    bench.owner.execute(
        "create function keep() returns trigger language plpgsql as $$ begin return null; end $$;"
        " create trigger keep before delete on jobs_dlq for each row execute function keep();"
        " create trigger keep before delete on jobs_parked for each row execute function keep()"
    )
    bench.die("a")
    (letter,) = bench.outgoing(
        DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    )

    sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver([letter])
    parked = ParkingLot(bench.database, bench.clock.now).park([letter])

    assert [one.code for one in (*sent.faults, *parked.faults)] == ["LetterNotThere"] * 2
    assert (sent.new_ids, parked.new_ids) == ({}, {})
    assert (bench.payloads("jobs"), bench.payloads("jobs_parked")) == ([], [])
    assert bench.rows("select count(*) from jobs_redriven") == [(0,)]


def test_of_a_row_that_is_there_and_locked_nothing_is_told_that_was_noted_of_its_number(bench):
    dlq = DeadLetters(bench.database, bench.clock.now)
    jobs = JobsSource(bench.database, QUEUE, bench.clock.now)
    lot = ParkingLot(bench.database, bench.clock.now)
    bench.die("a")
    (letter,) = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    jobs.deliver([letter])
    bench.owner.execute("insert into jobs_dlq (id, payload) values (1, '\"b\"')")
    bench.owner.execute(
        "insert into jobs_parked (id, payload, redrive_trail, parked_at) values (1, '1', %s, now())",
        (letter.metadata.encode(),),
    )

    with bench.server.connect(bench.name, autocommit=False) as other:
        other.execute("select 1 from jobs_dlq for update")
        answers = [jobs.deliver([letter]), lot.park([letter])]

    assert [one.new_ids for one in answers] == [{}, {}]
    assert [one.faults[0].code for one in answers] == ["LetterNotThere"] * 2
    assert bench.payloads("jobs_dlq") == ["b"]


def test_another_letter_that_has_gone_is_not_taken_for_one_that_was_sent(bench):
    dlq = DeadLetters(bench.database, bench.clock.now)
    jobs = JobsSource(bench.database, QUEUE, bench.clock.now)
    bench.die("a")
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.owner.execute("truncate jobs_dlq restart identity")
    bench.clock.advance(60)
    bench.die("b")
    again = bench.outgoing(
        DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    )
    bench.owner.execute("delete from jobs_dlq")

    sent = jobs.deliver(again)

    assert (sent.new_ids, [one.code for one in sent.faults]) == ({}, ["LetterNotThere"])
