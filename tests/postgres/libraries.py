"""Job libraries on a test's database: the schema that each makes, and its own worker where that is Python or Node."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from procrastinate import App, PsycopgConnector

from smart_redriver.postgres.migration import migration_of
from tests.postgres.bench import Bench

ROOT = Path(__file__).parents[2]
GRAPHILE = ROOT / "node_modules/graphile-worker"

#: As https://github.com/riverqueue/river has it, migrations 2 to 6, in one, with its index of unique jobs.
RIVER = """
create type river_job_state as enum ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable',
                                     'running', 'scheduled');
create table river_job (
  id bigserial primary key, state river_job_state not null default 'available', attempt smallint not null default 0,
  max_attempts smallint not null, attempted_at timestamptz, created_at timestamptz not null default now(),
  finalized_at timestamptz, scheduled_at timestamptz not null default now(), priority smallint not null default 1,
  args jsonb not null default '{}', attempted_by text[], errors jsonb[], kind text not null,
  metadata jsonb not null default '{}', queue text not null default 'default',
  tags varchar(255)[] not null default '{}', unique_key bytea, unique_states bit(8),
  constraint finalized_or_finalized_at_null check (
    (finalized_at is null and state not in ('cancelled', 'completed', 'discarded')) or
    (finalized_at is not null and state in ('cancelled', 'completed', 'discarded'))),
  constraint priority_in_range check (priority >= 1 and priority <= 4),
  constraint queue_length check (char_length(queue) > 0 and char_length(queue) < 128),
  constraint kind_length check (char_length(kind) > 0 and char_length(kind) < 128)
);
create function river_job_state_in_bitmask(bitmask bit(8), state river_job_state) returns boolean language sql immutable
  return get_bit(bitmask, case state when 'available' then 7 when 'cancelled' then 6 when 'completed' then 5
    when 'discarded' then 4 when 'pending' then 3 when 'retryable' then 2 when 'running' then 1 else 0 end) = 1;
create unique index river_job_unique_idx on river_job (unique_key)
  where unique_key is not null and unique_states is not null and river_job_state_in_bitmask(unique_states, state);
"""

#: As https://github.com/oban-bg/oban has it, migrations 1 to 14, in one.
OBAN = """
create type oban_job_state as enum ('available', 'suspended', 'scheduled', 'executing', 'retryable', 'completed',
                                    'discarded', 'cancelled');
create table oban_jobs (
  id bigserial primary key, state oban_job_state not null default 'available', queue text not null default 'default',
  worker text not null, args jsonb not null default '{}', errors jsonb[] not null default array[]::jsonb[],
  attempt integer not null default 0, max_attempts integer not null default 20,
  inserted_at timestamp not null default timezone('UTC', now()),
  scheduled_at timestamp not null default timezone('UTC', now()), attempted_at timestamp, completed_at timestamp,
  attempted_by text[], discarded_at timestamp, priority integer not null default 0, tags text[] default array[]::text[],
  meta jsonb default '{}', cancelled_at timestamp,
  constraint attempt_range check (attempt between 0 and max_attempts),
  constraint positive_max_attempts check (max_attempts > 0)
);
"""


#: As https://github.com/rails/solid_queue has it in its schema of version 1.2, the tables that a job goes through. As
#: Rails makes them: times are without a zone.
SOLID_QUEUE = """
create table solid_queue_jobs (
  id bigserial primary key, queue_name varchar not null, class_name varchar not null, arguments text,
  priority integer not null default 0, active_job_id varchar, scheduled_at timestamp(6), finished_at timestamp(6),
  concurrency_key varchar, created_at timestamp(6) not null, updated_at timestamp(6) not null
);
create index on solid_queue_jobs (active_job_id);
create index on solid_queue_jobs (finished_at);
create table solid_queue_ready_executions (
  id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
  queue_name varchar not null, priority integer not null default 0, created_at timestamp(6) not null
);
create table solid_queue_scheduled_executions (
  id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
  queue_name varchar not null, priority integer not null default 0, scheduled_at timestamp(6) not null,
  created_at timestamp(6) not null
);
create table solid_queue_claimed_executions (
  id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
  process_id bigint, created_at timestamp(6) not null
);
create table solid_queue_failed_executions (
  id bigserial primary key, job_id bigint not null unique references solid_queue_jobs on delete cascade,
  error text, created_at timestamp(6) not null
);
"""

#: As https://github.com/bensheldon/good_job has it in version 4, the table of jobs.
GOOD_JOB = """
create table good_jobs (
  id uuid primary key default gen_random_uuid(), queue_name text, priority integer, serialized_params jsonb,
  scheduled_at timestamp, performed_at timestamp, finished_at timestamp, error text, created_at timestamp not null,
  updated_at timestamp not null, active_job_id uuid, concurrency_key text, cron_key text, retried_good_job_id uuid,
  cron_at timestamp, batch_id uuid, batch_callback_id uuid, is_discrete boolean, executions_count integer,
  job_class text, error_event smallint, labels text[], locked_by_id uuid, locked_at timestamp(6), lock_type smallint
);
create index on good_jobs (scheduled_at) where finished_at is null;
create index on good_jobs (finished_at desc) where finished_at is not null and error is not null;
create unique index on good_jobs (cron_key, cron_at desc nulls last) where cron_key is not null;
"""


def pgmq_schema() -> str:
    """The extension's SQL, as it is installed where extensions can't be."""
    return (files("pgmq") / "sql/pgmq.sql").read_text() + "; select pgmq.create('jobs');"


def procrastinate_schema() -> str:
    """Its own."""
    return (files("procrastinate") / "sql/schema.sql").read_text()


SCHEMAS: dict[str, Callable[[], str]] = {
    "procrastinate": procrastinate_schema,
    "graphile-worker": lambda: "",
    "river": lambda: RIVER,
    "oban": lambda: OBAN,
    "solid_queue": lambda: SOLID_QUEUE,
    "good_job": lambda: GOOD_JOB,
    "pgmq": pgmq_schema,
}


def serve(bench: Bench, profile: str, **more: Any) -> None:
    """The library's schema and ours; the bench's passes are over it from now on."""
    if profile == "graphile-worker":
        graphile("runMigrations", bench)
    bench.owner.execute(SCHEMAS[profile]())
    bench.place = bench.server.place(bench.name, profile=profile, time_to_fail_seconds=60, **more)
    migration = migration_of(bench.place)
    for part in (migration.tables, migration.grants, migration.index):
        if part:
            bench.owner.execute(part)
    bench.database = bench.open()


class Procrastinate:
    """An app with one task, and its worker."""

    def __init__(self, bench: Bench, fails: set[str]) -> None:
        self.done: list[str] = []
        self.fails = fails
        self._bench = bench

    def defer(self, *names: str) -> None:
        asyncio.run(self._with_app(lambda app, task: self._defer(task, names)))

    def work(self) -> None:
        """Let the library's worker run until nothing is due."""
        asyncio.run(
            self._with_app(
                lambda app, task: app.run_worker_async(
                    wait=False, install_signal_handlers=False, listen_notify=False
                )
            )
        )

    async def _with_app(self, act: Callable[[App, Any], Any]) -> None:
        where = {"host": str(self._bench.server.directory), "user": "postgres"}
        app = App(connector=PsycopgConnector(kwargs={**where, "dbname": self._bench.name}))

        @app.task(name="charge")
        async def charge(name: str) -> None:
            if name in self.fails:
                raise ValueError(name)
            self.done.append(name)

        async with app.open_async():
            await act(app, charge)

    async def _defer(self, task: Any, names: tuple[str, ...]) -> None:
        for one in names:
            await task.defer_async(name=one)


def graphile(act: str, bench: Bench, tasks: str = "{}") -> None:
    """Call a function of the library's."""
    script = f"""
    import {{ {act} }} from "graphile-worker";
    await {act}({{
      connectionString: "postgres://postgres@localhost/{bench.name}?host={bench.server.directory}",
      noHandleSignals: true,
      taskList: {tasks},
    }});
    """
    command = ["node", "--input-type=module", "--eval", script]
    ended = subprocess.run(command, check=False, capture_output=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr.decode()


def graphile_work(bench: Bench, *, fails: bool) -> None:
    """Let the library's worker run until nothing is due."""
    act = 'throw new Error("Declined: card")' if fails else ""
    graphile("runOnce", bench, f"{{ charge: async () => {{ {act} }} }}")
