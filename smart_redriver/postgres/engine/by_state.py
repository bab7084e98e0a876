"""The statements for a library's one table: reads treat parts of it as tables, and moves of letters update it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import LiteralString

from psycopg import sql

from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.profiles import Profile

#: Rows of the library as rows of `jobs`: dead jobs are not included, and jobs that are done count as gone.
_JOBS: LiteralString = """(select {id}::bigint as id, {payload} as payload, {attempts} as attempts,
  {run_after} as run_after, {has_hands} as is_in_hand from {all} where not ({is_dead}) and not ({done}))"""

#: The same rows as rows of `jobs_dlq`, and of the parking lot. A letter has its job's number.
_DEAD: LiteralString = """(select {id}::bigint as id, {origin}::bigint as original_id, {payload} as payload,
  {attempts} as attempts, {error_class} as error_class, {error} as error_msg, {stack} as stacktrace,
  {worker} as failed_by, {died_at} as failed_at
  from {all} where ({is_dead}) and not exists (select from {lot} p where p.id = {id}))"""
_PARKED: LiteralString = """(select {id}::bigint as id, {origin}::bigint as original_id, {payload} as payload,
  {attempts} as attempts, {error_class} as error_class, {error} as error_msg, {stack} as stacktrace,
  {worker} as failed_by, {died_at} as failed_at, p.redrive_trail, p.parked_at
  from {all} join {lot} p on p.id = {id} where ({is_dead}))"""

#: As in `texts`, but the row stays, and its number is the job's. The note of its last redrive is replaced.
_REDRIVE: LiteralString = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(run_after)s::timestamptz[], %(trails)b::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_run_after, our_trail, our_left_job)
), locked as materialized (
  select {id}::bigint as our_row, {error_class}::text as our_class, left({error}::text, 2000) as our_message
  from {all}
  where {id} = any(%(rows)s) and ({is_dead}) and <lot> (select from {lot} p where p.id = {id})
  order by {id} for update of t skip locked
{first}), sent as (
  update {table} t set {redrive}
  from asked a join locked l using (our_row){and_first}{and_key} where {id} = a.our_row{of_key}
  returning {id}::bigint as our_job, a.our_trail, l.our_class, l.our_message{also}
), noted as (
  insert into {redriven} (job_id, is_parked, row_id, trail, redriven_at, died_of, died_saying, original_id)
  select our_job, <is_parked>, our_job, our_trail, %(now)s, our_class, our_message, null from sent
  on conflict (job_id) do update
  set is_parked = excluded.is_parked, trail = excluded.trail, redriven_at = excluded.redriven_at,
      died_of = excluded.died_of, died_saying = excluded.died_saying,
      tries_told = 0, settled_at = null, returned_as = null
), forgotten as (
  delete from {redriven} r using sent s join asked a on a.our_row = s.our_job
  where r.job_id = a.our_left_job and a.our_left_job <> a.our_row
), taken as (
  delete from {lot} p using sent s where p.id = s.our_job
), freed as (
  delete from {held} h using sent s where h.is_parked = <is_parked> and h.row_id = s.our_job
)
select s.our_job, s.our_job from sent s
union all
select r.row_id, r.job_id from {redriven} r join asked a on r.row_id = a.our_row and r.trail = a.our_trail
where not exists (select from <table> d where d.id = r.row_id)
"""

_PARK: LiteralString = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(trails)b::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_trail, our_left_job)
), locked as materialized (
  select {id}::bigint as our_row from {all}
  where {id} = any(%(rows)s) and ({is_dead}) and not exists (select from {lot} p where p.id = {id})
  order by {id} for update of t skip locked
), moved as (
  insert into {lot} (id, redrive_trail, parked_at)
  select our_row, our_trail, %(now)s from locked join asked using (our_row)
  returning id
), forgotten as (
  delete from {redriven} r using moved m where r.job_id = m.id
), freed as (
  delete from {held} h using moved m where not h.is_parked and h.row_id = m.id
)
select id from moved
union all
select p.id from {lot} p join asked a on p.id = a.our_row and p.redrive_trail = a.our_trail
"""

#: A letter that was sent and has failed again meanwhile is no longer the same letter.
_ARE_DEAD: LiteralString = """
select d.id from {dead} d where d.id = any(%(rows)s)
  and not exists (select from {redriven} r where r.job_id = d.id and r.settled_at is null)
"""

#: Only the library makes jobs and deletes rows.
_NONE: LiteralString = "select null::bigint where false and %(now)s::timestamptz is null"
_DELETE: LiteralString = "select d.id from {dead} d where d.id = any(%(rows)s)"

#: Gives numbers to dead jobs whose ids are not numbers.
_NUMBER: LiteralString = """
insert into {keys} (key)
select t.id from {table} t where ({is_dead}) and not exists (select from {keys} n where n.key = t.id)
order by {died_at} limit 10000
on conflict do nothing
"""

#: Jobs that have succeeded for good no longer need their numbers.
_FORGET_NUMBERED: LiteralString = """
with gone as (delete from {redriven} where settled_at < %(before)s and returned_as is null returning job_id)
delete from {keys} n using gone g where n.number = g.job_id
"""


def _moves(text: LiteralString, table: LiteralString, *, is_parked: bool) -> LiteralString:
    lot: LiteralString = "exists" if is_parked else "not exists"
    flag: LiteralString = "true" if is_parked else "false"
    return text.replace("<lot>", lot).replace("<table>", table).replace("<is_parked>", flag)


_TEXTS_BY_STATE: Mapping[str, LiteralString] = {
    "redrive_dead": _moves(_REDRIVE, "{dead}", is_parked=False),
    "redrive_parked": _moves(_REDRIVE, "{parked}", is_parked=True),
    "park": _PARK,
    "are_dead": _ARE_DEAD,
    "try_job": _NONE,
    "delete_dead": _DELETE,
    "delete_parked": _DELETE,
}


def texts_by_state(profile: Profile) -> Mapping[str, LiteralString]:
    """The statements that replace those of the same names."""
    numbered = {"number": _NUMBER, "forget_settled": _FORGET_NUMBERED} if profile.key else {}
    return {**_TEXTS_BY_STATE, **numbered}


def names_by_state(
    database: JobsDatabase, profile: Profile, names: dict[str, sql.Composable]
) -> dict[str, sql.Composable]:
    """The names of one deployment, with parts of the library's table instead of the tables in `texts`."""
    schema, _, _ = database.jobs.rpartition(".")
    known = {
        **names,
        "table": names["jobs"],
        "lot": names["parked"],
        "dead_text": names["jobs_text"],
        "tries": sql.Literal(database.tries),
        "keys": sql.Identifier(*database.keys.split(".")),
        "schema": sql.Composed([sql.Identifier(schema), sql.SQL(".")]) if schema else sql.SQL(""),
    }
    told: dict[str, LiteralString] = {
        "id": profile.id,
        "origin": f"coalesce({profile.origin}, {profile.id})" if profile.origin else profile.id,
        "all": "{table} t join {keys} n on n.key = t.id" if profile.key else "{table} t",
        "and_key": " join {keys} n on n.number = a.our_row" if profile.key else "",
        "of_key": " and n.key = t.id" if profile.key else "",
        "first": f"), first as ({profile.first}\n" if profile.first else "",
        "and_first": " join first using (our_row)" if profile.first else "",
        "also": profile.also,
        "payload": profile.payload,
        "attempts": profile.tries,
        "run_after": profile.run_after,
        "error_class": profile.error_class,
        "error": profile.error,
        "worker": profile.worker,
        "stack": profile.stack,
        "died_at": profile.died_at,
        "is_dead": profile.dead,
        "done": profile.done,
        "has_hands": profile.in_hand,
        "redrive": profile.redrive,
    }
    known |= {name: sql.SQL(text).format(**known) for name, text in told.items()}
    dead, parked = sql.SQL(_DEAD).format(**known), sql.SQL(_PARKED).format(**known)
    read = {
        "jobs": sql.SQL(_JOBS).format(**known),
        "parked": parked,
        "in_hand": sql.SQL("j.is_in_hand"),
        "counts_tell": sql.SQL("false"),
    }
    return {**known, **read, "dead": dead}
