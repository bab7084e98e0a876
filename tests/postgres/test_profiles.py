"""Job libraries: dead jobs of each are redriven in their one table, worked by its own worker, and heard of."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from psycopg.errors import InsufficientPrivilege

from emulator.postgres import PostgresServer
from smart_redriver.engine.errors import SettingsError
from smart_redriver.postgres.doctor.examination import examine
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.profiles import PROFILES
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.migration import ROLE
from smart_redriver.postgres.oncall.databases import Databases
from tests.postgres.bench import QUEUE, Bench
from tests.postgres.conftest import new_database
from tests.postgres.desk import PostgresDesk
from tests.postgres.libraries import GRAPHILE, SCHEMAS, Procrastinate, graphile_work, serve


@pytest.fixture
def bench(server: PostgresServer) -> Iterator[Bench]:
    """A database with nothing in it."""
    with new_database(server) as name, Bench(server, name) as one:
        yield one
        # The role is the server's, and the other tests'.
        one.owner.execute(f"alter role {ROLE} nobypassrls")


A_MINUTE = timedelta(minutes=1)
SETTINGS = {"base_delay_seconds": 0, "initial_window": 10}


def heard(bench, *, passes: int = 3) -> Counter[str]:
    """Outcomes that the next passes hear of, a minute apart."""
    told: Counter[str] = Counter()
    for _ in range(passes):
        bench.clock.advance(60)
        told += bench.run_pass(**SETTINGS).heard
    return told


# The libraries' own workers.


def test_procrastinates_dead_jobs_go_back_are_worked_by_its_worker_and_heard_of(bench):
    serve(bench, "procrastinate")
    library = Procrastinate(bench, fails={"a", "b", "c"})
    library.defer("a", "b", "c", "live")
    library.work()
    ids = bench.rows("select id, args ->> 'name' from procrastinate_jobs where status = 'failed'")

    report = bench.run_pass(**SETTINGS)
    library.fails = {"c"}
    library.work()

    assert (report.redriven, report.faults) == (3, Counter())
    assert sorted(library.done) == ["a", "b", "live"]
    assert heard(bench) == Counter(succeeded=2, failed=1)
    again = "select id, args ->> 'name' from procrastinate_jobs where args ->> 'name' <> 'live'"
    assert bench.rows(again) == ids
    events = "select type::text, count(*) from procrastinate_events where job_id = 1 group by 1"
    assert dict(bench.rows(events))["retried"] == 1


def test_a_job_that_fails_each_time_is_parked_in_its_place_and_can_go_back_from_there(bench):
    serve(bench, "procrastinate")
    library = Procrastinate(bench, fails={"bad"})
    library.defer("bad", *(f"good {n}" for n in range(8)))
    library.fails |= {f"good {n}" for n in range(8)}
    library.work()
    library.fails = {"bad"}
    for _ in range(8):
        bench.run_pass(**SETTINGS, max_attempts=1, last_chance_seconds=0)
        library.work()
        bench.clock.advance(60)

    assert bench.rows("select id from jobs_parked") == [(1,)]
    assert len(library.done) == 8
    assert bench.rows("select status::text from procrastinate_jobs where id = 1") == [("failed",)]
    assert bench.run_pass(**SETTINGS).parked_depth == 1

    letters = ParkingLot(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    source = JobsSource(bench.database, QUEUE, bench.clock.now)
    outgoing = bench.outgoing(letters)
    first, second = source.deliver(outgoing), source.deliver(outgoing)

    assert (first.faults, second.new_ids) == ([], first.new_ids)
    assert bench.rows("select id from jobs_parked") == []
    assert bench.rows("select status::text from procrastinate_jobs where id = 1") == [("todo",)]


@pytest.mark.skipif(not GRAPHILE.exists(), reason="npm ci")
def test_graphile_workers_dead_jobs_go_back_are_worked_by_its_worker_and_heard_of(bench):
    serve(bench, "graphile-worker")
    for _ in range(3):
        bench.owner.execute("select graphile_worker.add_job('charge', '{}', max_attempts => 1)")
    graphile_work(bench, fails=True)
    assert bench.rows("select attempts, last_error from graphile_worker._private_jobs limit 1") == [
        (1, "Declined: card")
    ]

    report = bench.run_pass(**SETTINGS)
    graphile_work(bench, fails=False)

    assert (report.redriven, report.faults) == (3, Counter())
    assert bench.rows("select count(*) from graphile_worker._private_jobs") == [(0,)]
    assert heard(bench) == Counter(succeeded=3)


# Those whose workers speak other languages, by what they do to a row.

RIVER_JOB = (
    "insert into river_job (kind, max_attempts, attempt, state, finalized_at, errors) values ('charge', 3, 3,"
    " 'discarded', now(), array['{\"error\": \"Declined: card\"}'::jsonb])"
)
OBAN_JOB = (
    "insert into oban_jobs (worker, max_attempts, attempt, state, discarded_at, errors) values ('Charge', 3, 3,"
    " 'discarded', now(), array['{\"error\": \"** (Declined) card\"}'::jsonb])"
)
SOLID_JOB = """
insert into solid_queue_jobs (queue_name, class_name, arguments, active_job_id, created_at, updated_at)
values ('default', 'Charge', '{"executions": 3}', 'a', now(), now());
insert into solid_queue_failed_executions (job_id, error, created_at) select id,
  '{"exception_class":"Declined","message":"card \\"4\\"","backtrace":["a.rb:1"]}', now() from solid_queue_jobs;
"""
SOLID_FAILS = """
delete from solid_queue_claimed_executions;
insert into solid_queue_failed_executions (job_id, error, created_at)
select max(id), '{"exception_class":"Declined","message":"card"}', now() from solid_queue_jobs
"""
GOOD_JOB = (
    "insert into good_jobs (serialized_params, job_class, executions_count, scheduled_at, performed_at, finished_at,"
    " error, error_event, created_at, updated_at) values ('{\"job_class\": \"Charge\"}', 'Charge', 3, now(), now(),"
    " now(), 'Declined: card', 4, now(), now())"
)
PGMQ_JOB = "select pgmq.send('jobs', '{}'); update pgmq.q_jobs set read_ct = 3, vt = now() - interval '1 second'"
#: By profile: a job that dies, its state, what a worker does to take it, to be done with it, to fail with it for good.
LIVES = {
    "river": (
        RIVER_JOB,
        "select state::text, attempt from river_job",
        ("available", 0),
        "update river_job set state = 'running', attempt = attempt + 1",
        "update river_job set state = 'completed', finalized_at = now()",
        "update river_job set state = 'discarded', finalized_at = now()",
    ),
    "oban": (
        OBAN_JOB,
        "select state::text, attempt from oban_jobs",
        ("available", 0),
        "update oban_jobs set state = 'executing', attempt = attempt + 1",
        "update oban_jobs set state = 'completed', completed_at = timezone('UTC', now())",
        "update oban_jobs set state = 'discarded', discarded_at = timezone('UTC', now())",
    ),
    "solid_queue": (
        SOLID_JOB,
        "select 'available', count(s.id) from solid_queue_jobs j left join solid_queue_scheduled_executions s"
        " on s.job_id = j.id and s.queue_name = j.queue_name and s.scheduled_at = j.scheduled_at",
        ("available", 1),
        "delete from solid_queue_scheduled_executions; insert into solid_queue_claimed_executions (job_id, created_at)"
        " select id, now() from solid_queue_jobs",
        "delete from solid_queue_claimed_executions; update solid_queue_jobs set finished_at = now()",
        SOLID_FAILS,
    ),
    "good_job": (
        GOOD_JOB,
        "select case when finished_at is null and performed_at is null then 'available' end, executions_count"
        " from good_jobs",
        ("available", 0),
        "update good_jobs set performed_at = now(), executions_count = executions_count + 1",
        "update good_jobs set finished_at = now(), error = null",
        "update good_jobs set finished_at = now(), error = 'Declined: card'",
    ),
    "pgmq": (
        PGMQ_JOB,
        "select 'available', read_ct from pgmq.q_jobs",
        ("available", 0),
        "select pgmq.read('jobs', 3600, 1)",
        "select pgmq.delete('jobs', 1::bigint)",
        "update pgmq.q_jobs set read_ct = 3, vt = now() - interval '1 second'",
    ),
}


@pytest.mark.parametrize("profile", LIVES)
def test_a_dead_job_goes_back_in_its_row_and_its_outcome_is_heard(bench, profile):
    dies, state, as_new, takes, ends, fails = LIVES[profile]
    serve(bench, profile)
    bench.owner.execute(dies)

    report = bench.run_pass(**SETTINGS)
    assert (report.redriven, report.faults) == (1, Counter())
    assert bench.rows(state) == [as_new]

    bench.owner.execute(takes)
    assert heard(bench) == Counter()

    bench.owner.execute(fails)
    assert heard(bench)["failed"] == 1
    assert bench.rows(state) == [as_new], "and was redriven again"

    bench.owner.execute(takes)
    bench.owner.execute(ends)
    assert heard(bench) == Counter(succeeded=1)


def test_a_job_that_retry_on_made_anew_speaks_for_the_one_before(bench):
    """Active Job finishes the row, which would look like a success, and makes another."""
    serve(bench, "solid_queue")
    bench.owner.execute(SOLID_JOB)
    claims, finishes = LIVES["solid_queue"][3:5]
    retries = (
        "delete from solid_queue_claimed_executions; update solid_queue_jobs set finished_at = now();"
        " insert into solid_queue_jobs (queue_name, class_name, arguments, active_job_id, created_at, updated_at)"
        " values ('default', 'Charge', '{}', 'a', now(), now())"
    )

    bench.run_pass(**SETTINGS)
    bench.owner.execute(claims)
    bench.owner.execute(retries)
    assert heard(bench) == Counter()

    bench.owner.execute(SOLID_FAILS)
    assert heard(bench)["failed"] == 1
    told = "select job_id, row_id, died_of, died_saying from jobs_redriven where settled_at is null"
    assert bench.rows(told) == [(2, 2, "Declined", "card")]
    (metadata,) = bench.rows("select trail::json ->> 'n' from jobs_redriven where job_id = 2")
    assert metadata == ("2",), "it is the same letter"

    bench.owner.execute(finishes)
    bench.owner.execute("delete from solid_queue_scheduled_executions")
    assert heard(bench) == Counter(succeeded=1)


def test_what_solid_queue_says_of_an_error_is_read(bench):
    serve(bench, "solid_queue")
    bench.owner.execute(SOLID_JOB)
    bench.owner.execute("update solid_queue_failed_executions set error = 'no JSON' where id = 2")

    bench.run_pass(**SETTINGS)

    assert bench.rows("select died_of, died_saying from jobs_redriven") == [
        ("Declined", 'card \\"4\\"')
    ]


def test_ids_that_are_no_numbers_get_one_for_as_long_as_it_is_needed(bench):
    serve(bench, "good_job")
    for _ in range(3):
        bench.owner.execute(GOOD_JOB)
    ids = bench.rows("select id from good_jobs order by id")
    _, _, _, takes, ends, _ = LIVES["good_job"]

    assert bench.run_pass(**SETTINGS).redriven == 3
    bench.owner.execute(f"{takes}; {ends}")

    assert heard(bench) == Counter(succeeded=3)
    assert bench.rows("select key from jobs_redriven_keys order by key") == ids
    bench.clock.advance(4000)
    bench.owner.execute(GOOD_JOB)
    bench.run_pass(**SETTINGS)
    bench.owner.execute(f"{takes} where finished_at is null; {ends}")
    assert heard(bench) == Counter(succeeded=1)
    ((last,),) = bench.rows("select key from jobs_redriven_keys")
    assert last not in ids
    assert len(bench.rows("select id from good_jobs")) == 4


def test_a_letter_whose_id_is_no_number_is_parked_in_its_place_and_goes_back(bench):
    serve(bench, "good_job")
    bench.owner.execute(GOOD_JOB)
    letters = DeadLetters(bench.database, bench.clock.now)
    lot = ParkingLot(bench.database, bench.clock.now)
    source = JobsSource(bench.database, QUEUE, bench.clock.now)

    lot.park(bench.outgoing(letters.receive(10, hidden_for=A_MINUTE)))
    assert (letters.facts().visible, lot.facts().visible) == (0, 1)
    sent = source.deliver(bench.outgoing(lot.receive(10, hidden_for=A_MINUTE)))

    assert (len(sent.new_ids), sent.faults) == (1, [])
    assert bench.rows("select finished_at, error from good_jobs") == [(None, None)]


# All of them.


@pytest.mark.parametrize("profile", SCHEMAS)
def test_the_doctor_finds_a_library_well_and_names_what_is_not(bench, profile, tmp_path):
    if profile == "graphile-worker" and not GRAPHILE.exists():
        pytest.skip("npm ci")
    serve(bench, profile)
    table, column = bench.place.jobs, PROFILES[profile].writes[0]
    file = tmp_path / "database.json"
    given = {"host": bench.place.host, "dbname": bench.name, "sslmode": "disable", "user": ROLE}
    file.write_text(json.dumps(given))
    doctor = ["doctor", "--database", str(file), "--library", profile]

    well = desk_of(bench)(*doctor)
    assert well.code == 0
    assert "WRONG" not in well.out
    assert "grant select (" in well.out

    bench.owner.execute(f"revoke update ({column}) on {table} from {ROLE}")
    ill = desk_of(bench)(*doctor)
    assert ill.code == 1
    assert f"grant it: {column}" in ill.out


def desk_of(bench: Bench) -> PostgresDesk:
    """A person whose connections are their own."""
    desk = PostgresDesk(bench)
    desk.databases = Databases()
    return desk


@pytest.mark.parametrize("is_deployed", [True, False], ids=["of a queue", "of a file"])
def test_the_command_says_what_a_librarys_tables_lack_and_what_it_would_grant(
    bench, tmp_path, is_deployed
):
    serve(bench, "oban")
    bench.owner.execute(f"revoke update (attempt) on oban_jobs from {ROLE}")
    file = tmp_path / "database.json"
    given = {"host": bench.place.host, "dbname": bench.name, "sslmode": "disable", "user": ROLE}
    file.write_text(json.dumps(given))
    if is_deployed:
        bench.place = bench.server.place(bench.name, user=ROLE)

    told = desk_of(bench)(
        "doctor", *([] if is_deployed else ["--database", str(file)]), "--library", "oban"
    )

    assert told.code == 1
    assert 'The migration grants: grant select ("id", "state", "args"' in told.out
    assert "grant update (attempt) on oban_jobs to smart_redriver" in told.out


def test_the_command_says_that_a_role_can_not_connect_yet(bench, tmp_path):
    file = tmp_path / "database.json"
    given = {"host": bench.place.host, "dbname": bench.name, "sslmode": "disable", "user": "new"}
    file.write_text(json.dumps(given))

    told = desk_of(bench)("doctor", "--database", str(file), "--library", "river")

    assert told.code == 1
    assert 'grant select ("id", "state", "args"' in told.out
    assert 'role "new" does not exist' in told.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--library", "sidekiq"], "profile"),
        (["--database", "nowhere.json"], "can't be read"),
    ],
)
def test_the_command_says_what_it_can_not_take(bench, given, said):
    told = desk_of(bench)("doctor", *given)

    assert told.code not in (0, 1)
    assert said in told.err


def test_the_doctor_tells_that_a_table_is_not_the_librarys(bench):
    bench.owner.execute("create table river_job (id bigserial primary key, state text)")
    bench.place = bench.server.place(bench.name, profile="river")

    (missing, *_) = examine(bench.open())

    assert missing.advice.startswith("missing: args, attempt")


@pytest.mark.parametrize("profile", SCHEMAS)
def test_the_role_may_make_jobs_due_and_nothing_else(bench, profile):
    if profile == "graphile-worker" and not GRAPHILE.exists():
        pytest.skip("npm ci")
    serve(bench, profile)
    table = bench.place.jobs
    with bench.server.connect(bench.name, user=ROLE) as role:
        for denied in (f"delete from {table}", f"insert into {table} default values"):
            with pytest.raises(InsufficientPrivilege):
                role.execute(denied)


def test_a_profile_says_all_of_a_table_but_its_name():
    given = {"host": "h", "dbname": "d", "user": "u", "profile": "river", "jobs": "app.river_job"}

    place = JobsDatabase.of(given)

    assert JobsDatabase.parse(place.encode()) == place
    with pytest.raises(SettingsError, match="nothing: the profile says it"):
        JobsDatabase.of({**given, "columns": {"jobs.id": "x"}})
    with pytest.raises(SettingsError, match="own, procrastinate"):
        JobsDatabase.of({**given, "profile": "celery"})
