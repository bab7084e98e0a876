"""A table that takes nobody costs no letter anything; a letter that it alone does not take stops no other."""

from datetime import timedelta

import pytest

from fakes.faults import Wire
from smart_redriver.engine.errors import DatabaseLost
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.report import Outcome
from smart_redriver.postgres.engine.database import LOST, About, StatementRefused, about
from smart_redriver.postgres.engine.dead_letters import Batches, DeadLetters, ParkingLot
from smart_redriver.postgres.engine.letters import Handle
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.migration import ROLE
from tests.postgres.bench import QUEUE, Bench

A_MINUTE = timedelta(minutes=1)


def guard(table: str, body: str, when: str = "before insert", kind: str = "trigger") -> str:
    return (
        f"create function guard() returns trigger language plpgsql as $$ begin {body} end $$;"
        f" create {kind} guard {when} on {table} {{deferred}} for each row execute function guard()"
    ).replace("{deferred}", "deferrable initially deferred" if "constraint" in kind else "")


PARTITIONED = """
drop table jobs;
create table jobs (
  id bigserial, payload jsonb not null, attempts int not null default 0, max_attempts int not null default 3,
  run_after timestamptz not null default now(), locked_at timestamptz, locked_by text,
  created_at timestamptz not null default now(), primary key (id, created_at)
) partition by range (created_at);
grant select (id, attempts, run_after, locked_at), insert on jobs to smart_redriver;
grant usage on sequence jobs_id_seq to smart_redriver;
"""

#: What breaks a table for everybody, and what mends it.
BROKEN = {
    "a new column": (
        "alter table jobs add region text not null",
        "alter table jobs alter region set default 'eu'",
    ),
    "no right": ("revoke insert on jobs from smart_redriver", f"grant insert on jobs to {ROLE}"),
    "no partition": (PARTITIONED, "create table jobs_1 partition of jobs default"),
    "a check": (
        "alter table jobs add constraint never check (false) not valid",
        "alter table jobs drop constraint never",
    ),
    "kept out": (guard("jobs", "return null;"), "drop trigger guard on jobs"),
    "raised": (guard("jobs", "raise exception 'not today';"), "drop trigger guard on jobs"),
    "a trigger's mistake": (
        guard("jobs", "new.nothing := 1; return new;"),
        "drop trigger guard on jobs",
    ),
    "a full disk within a trigger": (
        guard("jobs", "raise exception 'no room' using errcode = 'disk_full';"),
        "drop trigger guard on jobs",
    ),
    "raised at the commit": (
        guard("jobs", "raise exception 'too late';", "after insert", "constraint trigger"),
        "drop trigger guard on jobs",
    ),
    "refused deletes": (
        guard("jobs_dlq", "raise exception 'keep it';", "before delete"),
        "drop trigger guard on jobs_dlq",
    ),
    "no notes": (
        "revoke insert on jobs_redriven from smart_redriver",
        f"grant insert on jobs_redriven to {ROLE}",
    ),
    "all that there is": (
        "alter table jobs add check (payload ? 'region')",
        "alter table jobs drop constraint jobs_payload_check",
    ),
    "no deletes": (
        "create rule guard as on delete to jobs_dlq do instead nothing",
        "drop rule guard on jobs_dlq",
    ),
}


def known_of(bench: Bench, *ids: str):
    return bench.tools().memory.read_ledger(ids).entries


@pytest.mark.parametrize(("broken", "mended"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("window", [100, 1])
def test_a_table_that_takes_nobody_costs_no_letter_anything(bench, broken, mended, window):
    bench.die("a", "b", "c")
    bench.owner.execute(broken)

    for _ in range(8):
        report = bench.run_pass(initial_window=window, base_delay_seconds=0)
        assert (report.redriven, report.parked) == (0, {})
        bench.clock.advance(3600)

    assert bench.payloads("jobs_dlq") == ["a", "b", "c"]
    assert known_of(bench, "dlq-1", "dlq-2", "dlq-3") == {}
    circuit = bench.tools().memory.load_circuit()
    assert circuit is not None
    assert circuit.state is State.OPEN
    assert "refused letters" in circuit.reason
    bench.owner.execute(mended)
    bench.live(steps=12)
    assert bench.done == {"a": 1, "b": 1, "c": 1}


def test_a_database_that_may_not_be_written_to_costs_no_letter_anything(bench):
    bench.die("a", "b", "c")
    bench.database.close()
    bench.owner.execute(f"alter role {ROLE} set default_transaction_read_only = on")
    try:
        reports = [bench.run_pass(base_delay_seconds=0) for _ in range(4)]
    finally:
        bench.owner.execute(f"alter role {ROLE} reset default_transaction_read_only")

    assert [(one.redriven, one.parked) for one in reports] == [(0, {})] * 4
    assert bench.payloads("jobs_dlq") == ["a", "b", "c"]


@pytest.mark.parametrize(("broken", "mended"), BROKEN.values(), ids=BROKEN)
def test_a_table_that_takes_nobody_costs_a_lone_letter_nothing(bench, broken, mended):
    bench.die("a")
    bench.owner.execute(broken)

    for _ in range(3):
        assert bench.run_pass(base_delay_seconds=0).redriven == 0
        bench.clock.advance(3600)

    assert (bench.payloads("jobs_dlq"), known_of(bench, "dlq-1")) == (["a"], {})
    bench.owner.execute(mended)
    bench.live(steps=12)
    assert bench.done == {"a": 1}


def test_a_table_that_is_gone_ends_the_pass_and_costs_no_letter_anything(bench):
    bench.die("a")
    bench.owner.execute("alter table jobs rename to tasks")

    report = bench.run_pass()

    assert (report.outcome, list(report.faults)) == (
        Outcome.FAILED,
        ["ReadOutcomes:UndefinedTable", "CountJobs:UndefinedTable"],
    )
    assert bench.payloads("jobs_dlq") == ["a"]


BAD = """(new.payload #>> '{}' = 'bad')"""

#: What refuses one payload alone.
REFUSES_ONE = {
    "a check": "alter table jobs add check (payload <> '\"bad\"')",
    "a unique value": "create unique index on jobs (payload);"
    " insert into jobs (id, payload, run_after) values (1000, '\"bad\"', 'infinity')",
    "kept out": guard("jobs", f"if {BAD} then return null; end if; return new;"),
    "another id": guard("jobs", f"if {BAD} then new.id := new.id + 999; end if; return new;"),
    "raised": guard("jobs", f"if {BAD} then raise exception 'no'; end if; return new;"),
    "a trigger's mistake": guard("jobs", f"if {BAD} then new.nothing := 1; end if; return new;"),
    "raised at the commit": guard(
        "jobs",
        f"if {BAD} then raise exception 'no'; end if; return null;",
        "after insert",
        "constraint trigger",
    ),
    **{
        code: guard(
            "jobs",
            f"if {BAD} then raise exception 'no' using errcode = '{code}'; end if; return new;",
        )
        for code in (
            "08006",
            "25006",
            "40001",
            "42501",
            "53100",
            "55P03",
            "57014",
            "XX000",
            "ZZ001",
        )
    },
}


@pytest.mark.parametrize("broken", REFUSES_ONE.values(), ids=REFUSES_ONE)
def test_a_letter_that_is_refused_beside_others_stays_with_a_strike_and_they_go(bench, broken):
    bench.owner.execute(broken)
    bench.die("a", "b", "bad", "c", "d")

    report = bench.run_pass(base_delay_seconds=0)
    bench.work(lambda payload: "Boom" if payload == "bad" else None)
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (bench.done, report.parked) == ({"a": 1, "b": 1, "c": 1, "d": 1}, {})
    assert [one["verdict"] for one in second.verdicts] == ["SUCCESS"]
    assert bench.payloads("jobs_dlq") == ["bad"]
    (code,) = {one.partition(":")[2] for one in report.faults}
    entry = known_of(bench, "dlq-3")["dlq-3"]
    assert entry.cause is not None
    assert entry.cause.startswith(code)
    assert entry.strikes == 1


@pytest.mark.parametrize("broken", REFUSES_ONE.values(), ids=REFUSES_ONE)
def test_the_first_letter_of_all_keeps_no_other_from_going(bench, broken):
    """Where canaries are of one letter, it is the first of them; and it ends in the parking lot, in its time."""
    bench.owner.execute(broken)
    bench.die("bad", *range(5))

    bench.live(initial_window=1, steps=80, base_delay_seconds=30)

    assert {n: bench.done[n] for n in range(5)} == dict.fromkeys(range(5), 1)
    assert bench.payloads("jobs_dlq") + bench.payloads("jobs_parked") == ["bad"]
    assert bench.rows("select count(*) from jobs where id <> 1000") == [(0,)]


@pytest.mark.parametrize("bad", [5, 20])
def test_many_refused_letters_at_the_head_keep_nobody_waiting(bench, bad):
    """They stay where they are, so that canaries have to come from elsewhere;
    nor does a window of theirs alone end it.
    """
    bench.owner.execute(REFUSES_ONE["a check"])
    bench.die(*["bad"] * bad, *range(100))

    bench.live(initial_window=5, steps=30)

    assert {n: bench.done[n] for n in range(100)} == dict.fromkeys(range(100), 1)
    assert bench.payloads("jobs_dlq") + bench.payloads("jobs_parked") == ["bad"] * bad


def test_what_a_table_took_before_does_not_speak_for_it_for_long(bench):
    """An environment of Lambda keeps its adapters from pass to pass."""
    tools = bench.tools()
    bench.die("a")
    assert bench.run_pass(tools=tools, base_delay_seconds=0).redriven == 1
    bench.owner.execute(BROKEN["a new column"][0].replace("not null", "not null default ''"))
    bench.owner.execute("alter table jobs alter region drop default")
    bench.clock.advance(60)
    bench.die("b", "c")

    report = bench.run_pass(tools=tools, base_delay_seconds=0)

    assert (report.redriven, report.outcome) == (0, Outcome.REFUSED)
    assert known_of(bench, "dlq-2", "dlq-3") == {}


def test_a_connection_that_is_lost_while_others_are_tried_is_nobodys_fault(bench):
    bench.die({"amount": -1}, *[{"amount": 1}] * 6)
    bench.owner.execute("alter table jobs add check ((payload ->> 'amount')::int > 0)")

    def lose(call):
        if call.operation == "FindOthers":
            raise DatabaseLost(call.operation, LOST)

    source = JobsSource(bench.open(Wire(lose)), QUEUE, bench.clock.now)
    letters = DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=timedelta(1))

    sent = source.deliver(bench.outgoing([one for one in letters if one.message_id == "dlq-1"]))

    assert (sent.bounced, sent.new_ids) == ({}, {})
    (fault,) = sent.faults
    assert (fault.code, fault.is_transient) == (LOST, True)


def test_a_pass_goes_on_past_a_letter_that_is_refused(bench):
    bench.owner.execute(REFUSES_ONE["a check"])
    bench.die("bad", *range(250))

    report = bench.run_pass(initial_window=1000, base_delay_seconds=0)

    assert (report.redriven, report.bounced, bench.payloads("jobs_dlq")) == (250, 1, ["bad"])


def test_what_is_tried_to_learn_of_the_table_leaves_nothing(bench):
    bench.owner.execute(REFUSES_ONE["a check"])
    bench.die("good", "bad")
    dlq = DeadLetters(bench.database, bench.clock.now)
    (bad,) = bench.outgoing(
        [one for one in dlq.receive(10, hidden_for=A_MINUTE) if one.message_id == "dlq-2"]
    )

    sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver([bad])

    assert sent.bounced == {"dlq-2": "CheckViolation (jobs_payload_check)"}
    assert (bench.payloads("jobs_dlq"), bench.payloads("jobs")) == (["good", "bad"], [])
    assert bench.rows("select count(*) from jobs_redriven") == [(0,)]


@pytest.mark.parametrize("good", [1, 50, 500, 1000])
def test_one_good_letter_is_found_among_many_that_are_refused(bench, good):
    """Wherever it is: passes try others each time."""
    bench.owner.execute(REFUSES_ONE["a check"])
    bench.owner.execute(
        "insert into jobs_dlq (id, payload) select n, case when n = %s then '1' else '\"bad\"' end::jsonb"
        " from generate_series(1, 1000) n where n = %s or n %% 25 = 0",
        (good, good),
    )
    jobs = JobsSource(bench.database, QUEUE, bench.clock.now)
    dlq = DeadLetters(bench.database, bench.clock.now)
    bad = bench.outgoing(
        [one for one in dlq.receive(100, hidden_for=A_MINUTE) if one.message_id != f"dlq-{good}"]
    )[:10]

    answers = []
    for _ in range(30):
        answers.append(len(jobs.deliver(bad).bounced))
        bench.clock.advance(60)

    assert set(answers) <= {0, 10}
    assert 10 in answers
    assert bench.rows("select count(*) from jobs") == [(0,)]


@pytest.mark.parametrize(
    ("slow", "tried", "refused"),
    [
        ({1}, [10, 5, 2, 1, 1, 3, 5], ["dlq-1"]),
        ({10}, [10, 5, 5, 2, 3, 1, 2, 1, 1], ["dlq-10"]),
        (set(range(1, 11)), [10, 5, 2, 1, 1], ["dlq-1", "dlq-2"]),
    ],
    ids=["the first", "the last", "all"],
)
def test_a_letter_that_takes_all_the_time_there_is_is_found_and_the_others_go(
    bench, slow, tried, refused
):
    """A statement with it takes half a minute. Where all do, few are begun; and every letter is answered for."""
    bench.die(*range(10))
    received = DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    letters = bench.outgoing(sorted(received, key=lambda one: Handle.of(one).row))
    sizes = []

    def move(some):
        sizes.append(len(some))
        rows = {Handle.of(one.letter).row for one in some}
        if rows.isdisjoint(slow):
            return {row: f"job-{row}" for row in rows}
        bench.clock.advance(30)
        raise StatementRefused("Move", "QueryCanceled", "too long", sqlstate="57014", context="")

    batches = Batches("Move", move, clock=lambda: bench.clock.now().timestamp())
    batches.run(letters)

    assert sizes == tried
    assert [one.letter.message_id for one, _ in batches.refused] == refused
    assert len(batches.sent.new_ids) == 10 - len(slow)
    assert {one.code for one in batches.sent.faults} == ({"NotTried"} if len(slow) > 1 else set())
    assert len(batches.sent.faults) + len(refused) + len(batches.sent.new_ids) == 10


def test_a_lock_is_a_moments_trouble(bench):
    bench.die("a", "b")
    dlq = DeadLetters(bench.database, bench.clock.now)
    letters = bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    with bench.server.connect(bench.name, autocommit=False) as other:
        other.execute("lock jobs in access exclusive mode")

        sent = JobsSource(bench.database, QUEUE, bench.clock.now).deliver(letters)

    assert [(one.code, one.is_transient) for one in sent.faults] == [("LockNotAvailable", True)] * 2
    assert sent.bounced == {}


def test_a_letter_that_can_not_be_parked_keeps_no_other_from_being(bench):
    bench.owner.execute("alter table jobs_parked add check (payload <> '\"bad\"')")
    bench.die("a", "b", "bad", "c")
    dlq = DeadLetters(bench.database, bench.clock.now)

    sent = ParkingLot(bench.database, bench.clock.now).park(
        bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE))
    )

    assert [(one.key, one.code) for one in sent.faults] == [("dlq-3", "CheckViolation")]
    assert (bench.payloads("jobs_dlq"), sent.bounced) == (["bad"], {})
    assert bench.payloads("jobs_parked") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("sqlstate", "context", "expected"),
    [
        ("23502", "", About.SOME),
        ("22P02", "", About.SOME),
        ("P0001", "PL/pgSQL function guard() line 1 at RAISE", About.SOME),
        ("54000", "", About.SOME),
        ("57014", "", About.SOME),
        ("53200", "", About.SOME),
        ("XX000", "", About.SOME),
        ("", "", About.SOME),
        ("42501", "", About.EVERYBODY),
        ("42703", "PL/pgSQL function guard() line 1 at assignment", About.SOME),
        ("0A000", "", About.EVERYBODY),
        ("25006", "", About.EVERYBODY),
        ("53100", "", About.EVERYBODY),
        ("28000", "", About.EVERYBODY),
        ("3D000", "", About.EVERYBODY),
        ("55000", "", About.EVERYBODY),
        ("58030", "", About.EVERYBODY),
        ("08006", "", About.MOMENT),
        ("40P01", "while inserting index tuple (0,1)", About.MOMENT),
        ("40001", "PL/pgSQL function guard() line 1 at RAISE", About.SOME),
        ("55P03", "while locking tuple (0,1)", About.MOMENT),
        ("57P01", "", About.MOMENT),
    ],
)
def test_whom_a_refusal_is_about(sqlstate, context, expected):
    assert about(sqlstate, context) is expected
