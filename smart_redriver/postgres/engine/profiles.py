"""Job libraries that keep dead jobs in the table of all jobs: how each shows their state, and what a redrive writes.

A redrive updates the row, which keeps its id, its history and its uniqueness. A parked letter also stays in its table,
and is noted in one of ours. Expressions are SQL over a row `t` of the library's table. Pure data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import LiteralString

#: The team's own tables of jobs and dead letters.
OWN = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One library.

    Attributes:
        table: the name of its table.
        dead: the job has failed for good. `done`: the job is finished. `in_hand`: a worker has it.
        key: the type of its ids if they are not numbers. Each dead job then gets a number of ours, `n.number`.
        origin: the job that this one repeats, where the library makes a new row for a retry.
        id, payload, tries, run_after: columns. `error_class`, `error`, `worker`, `stack`, `died_at`: what is known
            about a dead job's end.
        redrive: what an update writes. `a.our_run_after` is when the job is due. `first`: a part of its statement that
            deletes what makes jobs dead, so that only one of two redrives gets each. It returns `our_row`. `also`: what
            else a redrive does. `sent` has the jobs' ids as `our_job`.
        reads, writes: columns that the role selects and updates.
        grants: what else it needs, such as tables that the library's triggers write. `{schema}` is the table's.

    """

    table: str
    dead: LiteralString
    done: LiteralString = "false"
    in_hand: LiteralString
    id: LiteralString = "t.id"
    key: LiteralString = ""
    origin: LiteralString = ""
    payload: LiteralString
    tries: LiteralString
    run_after: LiteralString
    error_class: LiteralString = "null::text"
    error: LiteralString = "null::text"
    worker: LiteralString = "null::text"
    stack: LiteralString = "null::text"
    died_at: LiteralString = "null::timestamptz"
    redrive: LiteralString
    first: LiteralString = ""
    also: LiteralString = ""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    grants: tuple[LiteralString, ...] = ()


#: https://procrastinate.readthedocs.io: of an error only the workers' log tells.
_PROCRASTINATE = Profile(
    table="procrastinate_jobs",
    dead="t.status = 'failed'",
    done="t.status in ('succeeded', 'cancelled', 'aborted')",
    in_hand="t.status = 'doing'",
    payload="t.args",
    tries="t.attempts",
    run_after="coalesce(t.scheduled_at, '1970-01-02')",
    error_class="t.task_name",
    worker="t.worker_id::text",
    died_at="(select max(e.at) from {schema}procrastinate_events e where e.job_id = t.id and e.type = 'failed')",
    redrive="status = 'todo', attempts = 0, scheduled_at = a.our_run_after, abort_requested = false, worker_id = null",
    reads=("id", "status", "args", "attempts", "scheduled_at", "task_name", "worker_id"),
    writes=("status", "attempts", "scheduled_at", "abort_requested", "worker_id"),
    grants=(
        "grant select, insert on {schema}procrastinate_events to {role}",
        "grant usage on sequence {schema}procrastinate_events_id_seq to {role}",
    ),
)

#: https://worker.graphile.org: what is done is deleted. `updated_at` is when the last try ended.
_GRAPHILE = Profile(
    table="graphile_worker._private_jobs",
    dead="t.attempts >= t.max_attempts and t.locked_at is null",
    in_hand="t.locked_at is not null",
    payload="t.payload",
    tries="t.attempts",
    run_after="t.run_at",
    error_class="split_part(t.last_error, ':', 1)",
    error="t.last_error",
    died_at="t.updated_at",
    redrive="attempts = 0, run_at = a.our_run_after, last_error = null, updated_at = %(now)s",
    reads=(
        *("id", "payload", "attempts", "max_attempts", "run_at", "locked_at"),
        *("last_error", "updated_at"),
    ),
    writes=("attempts", "run_at", "last_error", "updated_at"),
    # It has row-level security without a policy: only the owner sees rows.
    grants=("alter role {role} bypassrls",),
)

#: https://riverqueue.com: the last error is in `errors`, where its history stays.
_RIVER = Profile(
    table="river_job",
    dead="t.state = 'discarded'",
    done="t.state in ('completed', 'cancelled')",
    in_hand="t.state = 'running'",
    payload="t.args",
    tries="t.attempt",
    run_after="t.scheduled_at",
    error_class="t.kind",
    error="t.errors[array_upper(t.errors, 1)] ->> 'error'",
    worker="t.attempted_by[array_upper(t.attempted_by, 1)]",
    stack="t.errors[array_upper(t.errors, 1)] ->> 'trace'",
    died_at="t.finalized_at",
    redrive="state = (case when a.our_run_after > %(now)s then 'scheduled' else 'available' end)::"
    "{schema}river_job_state, attempt = 0, scheduled_at = a.our_run_after, finalized_at = null",
    reads=(
        *("id", "state", "args", "attempt", "scheduled_at", "kind", "errors"),
        *("attempted_by", "finalized_at"),
    ),
    writes=("state", "attempt", "scheduled_at", "finalized_at"),
)

#: https://hexdocs.pm/oban: as river, with times without a zone, which are UTC.
_OBAN = Profile(
    table="oban_jobs",
    dead="t.state = 'discarded'",
    done="t.state in ('completed', 'cancelled')",
    in_hand="t.state = 'executing'",
    payload="t.args",
    tries="t.attempt",
    run_after="t.scheduled_at",
    error_class="t.worker",
    # An array for Elixir, JSON for Python.
    error="to_jsonb(t.errors) -> -1 ->> 'error'",
    worker="t.attempted_by[1]",
    died_at="t.discarded_at",
    redrive="state = (case when a.our_run_after > %(now)s then 'scheduled' else 'available' end)::"
    "{schema}oban_job_state, attempt = 0, scheduled_at = a.our_run_after, discarded_at = null",
    reads=(
        *("id", "state", "args", "attempt", "scheduled_at", "worker", "errors"),
        *("attempted_by", "discarded_at"),
    ),
    writes=("state", "attempt", "scheduled_at", "discarded_at"),
)

#: https://pgmq.github.io/pgmq: a message has no state. Dead is what was read `max_attempts` times and is visible, by
#: the database's clock, which sets `vt`.
_PGMQ = Profile(
    table="pgmq.q_jobs",
    dead="t.read_ct >= {tries} and t.vt <= clock_timestamp()",
    in_hand="t.read_ct > 0 and t.vt > clock_timestamp()",
    id="t.msg_id",
    payload="t.message",
    tries="t.read_ct",
    run_after="t.vt",
    died_at="t.vt",
    redrive="read_ct = 0, vt = a.our_run_after",
    reads=("msg_id", "message", "read_ct", "vt"),
    writes=("read_ct", "vt"),
)

#: https://github.com/bensheldon/good_job since version 4: a retry is the same row. A job is in hand until its worker
#: writes how it ended.
_GOOD_JOB = Profile(
    table="good_jobs",
    dead="t.finished_at is not null and t.error is not null",
    done="t.finished_at is not null and t.error is null",
    in_hand="t.performed_at is not null and t.finished_at is null",
    key="uuid",
    id="n.number",
    payload="t.serialized_params",
    tries="coalesce(t.executions_count, 0)",
    run_after="coalesce(t.scheduled_at, t.created_at)",
    error_class="split_part(t.error, ': ', 1)",
    error="t.error",
    died_at="t.finished_at",
    redrive="finished_at = null, performed_at = null, error = null, error_event = null, executions_count = 0,"
    " scheduled_at = a.our_run_after, updated_at = %(now)s",
    reads=(
        *("id", "serialized_params", "executions_count", "scheduled_at", "created_at"),
        *("performed_at", "finished_at", "error"),
    ),
    writes=(
        *("finished_at", "performed_at", "error", "error_event", "executions_count"),
        *("scheduled_at", "updated_at"),
    ),
)

#: https://github.com/rails/solid_queue: dead is what a row of `solid_queue_failed_executions` names. A redrive is a
#: scheduled execution, which a dispatcher makes ready under the limits of concurrency. Active Job's `retry_on` finishes
#: the row and makes another with the same `active_job_id`.
_SOLID_QUEUE = Profile(
    table="solid_queue_jobs",
    dead="exists (select from {schema}solid_queue_failed_executions f where f.job_id = t.id)",
    done="t.finished_at is not null and not exists (select from {table} o where o.active_job_id = t.active_job_id"
    " and o.id > t.id and o.finished_at is null and not exists"
    " (select from {schema}solid_queue_failed_executions f where f.job_id = o.id))",
    in_hand="exists (select from {schema}solid_queue_claimed_executions c where c.job_id = t.id)",
    origin="(select max(w.job_id) from {table} o join {redriven} w on w.job_id = o.id"
    " where o.active_job_id = t.active_job_id and o.id <= t.id)",
    payload="t.arguments",
    tries="0",
    run_after="coalesce(t.scheduled_at, t.created_at)",
    error_class='(select substring(f.error from \'"exception_class" *: *"([^"]*)"\')'
    " from {schema}solid_queue_failed_executions f where f.job_id = t.id)",
    error='(select substring(f.error from \'"message" *: *"((?:[^"\\\\]|\\\\.)*)"\')'
    " from {schema}solid_queue_failed_executions f where f.job_id = t.id)",
    stack="(select f.error from {schema}solid_queue_failed_executions f where f.job_id = t.id)",
    died_at="(select f.created_at from {schema}solid_queue_failed_executions f where f.job_id = t.id)",
    redrive="scheduled_at = a.our_run_after, updated_at = %(now)s",
    first="""
  delete from {schema}solid_queue_failed_executions f using locked l where f.job_id = l.our_row
  returning f.job_id as our_row""",
    also="""
), is_due as (
  insert into {schema}solid_queue_scheduled_executions (job_id, queue_name, priority, scheduled_at, created_at)
  select q.id, q.queue_name, q.priority, a.our_run_after, %(now)s
  from sent s join asked a on a.our_row = s.our_job join {table} q on q.id = s.our_job""",
    reads=(
        *("id", "queue_name", "priority", "arguments", "active_job_id", "scheduled_at"),
        *("created_at", "finished_at"),
    ),
    writes=("scheduled_at", "updated_at"),
    grants=(
        "grant select, delete on {schema}solid_queue_failed_executions to {role}",
        "grant select (job_id) on {schema}solid_queue_claimed_executions to {role}",
        "grant insert on {schema}solid_queue_scheduled_executions to {role}",
        "grant usage on sequence {schema}solid_queue_scheduled_executions_id_seq to {role}",
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "procrastinate": _PROCRASTINATE,
        "graphile-worker": _GRAPHILE,
        "river": _RIVER,
        "oban": _OBAN,
        "solid_queue": _SOLID_QUEUE,
        "good_job": _GOOD_JOB,
        "pgmq": _PGMQ,
    }
)
