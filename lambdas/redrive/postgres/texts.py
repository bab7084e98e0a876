"""Every SQL text of the adapters, as constants; what stands in braces is put in by `statements`.

Each is one transaction of its own. `now` always comes from outside: nothing here reads the database's clock. Where two
passes meet, `skip locked` gives each row to one of them, and the other goes on without it.
"""

from __future__ import annotations

from typing import LiteralString


def of_table(table: LiteralString, text: LiteralString) -> LiteralString:
    """A text that is the same for the DLQ and the parking lot, for one of them."""
    is_parked: LiteralString = "true" if table == "parked" else "false"
    return (
        text.replace("<table>", "{" + table + "}")
        .replace("<text>", "{" + table + "_text}")
        .replace("<is_parked>", is_parked)
    )


#: `now`, `most` -> rows that are not held, rows that are: counted up to `most`, beyond it the planner's estimate.
_COUNT_LETTERS = """
with few as (
  select 1 from <table> d
  where not exists (select 1 from {held} h
                    where h.is_parked = <is_parked> and h.row_id = d.{d_id} and h.until > %(now)s)
  limit %(most)s
), counted as (select count(*) as letters from few)
select case when letters < %(most)s then letters
            else greatest(letters, (select reltuples::bigint from pg_class where oid = <text>::regclass)) end,
       (select count(*) from (select 1 from {held} h where h.is_parked = <is_parked> and h.until > %(now)s
                              limit %(most)s) few_held)
from counted
"""

#: `most` -> jobs, up to so many.
_COUNT_JOBS = """
select (select count(*) from (select 1 from {jobs} limit %(most)s) few)
"""

#: `since`, `latest` -> how many of so many latest letters died since then.
_COUNT_NEW = """
select count(*) from (select d.{d_failed_at} as failed_at from {dead} d order by d.{d_id} desc limit %(latest)s) latest
where failed_at > %(since)s
"""

#: When a letter died; null where that is no time that Python has, such as infinity.
DEATH: LiteralString = (
    "case when d.{d_failed_at} between '1970-01-02' and '9000-01-01' then d.{d_failed_at} end"
)

#: Columns as they are read, whatever their types are: a number of tries may be a `numeric`, a message `jsonb`.
_READ: dict[LiteralString, LiteralString] = {
    "<death>": DEATH,
    "<class>": "d.{d_error_class}::text",
    "<message>": "left(d.{d_error_msg}::text, 2000)",
    "<worker>": "left(d.{d_failed_by}::text, 200)",
    "<stack>": "left(d.{d_stacktrace}::text, 65536)",
    "<tries>": "case when d.{d_attempts} is not null then least(greatest(d.{d_attempts}::numeric, 0), 2147483647)::int end",
    "<tries of the job>": "case when j.{j_attempts} is not null then least(greatest(j.{j_attempts}::numeric, 0), 2147483647)::int end",
}


def as_read(text: LiteralString) -> LiteralString:
    """A text with columns in the form in which they are read."""
    for name, column in _READ.items():
        text = text.replace(name, column)
    return text


#: `after`, `limit`, `now` -> a page of letters by id, those left out that are held: see `letters.letter_of`. The return of a
#: job of ours is the first row that names it; whatever else names it is a letter of its own.
READ_DEAD = """
select d.{d_id}::bigint, r.job_id, r.trail, <death>, <class>, <message>, d.{d_attempts}::text, <worker>,
       <content>
from {dead} d
left join {redriven} r
  on r.job_id = d.{d_original_id}
 and (r.returned_as = d.{d_id}
      or r.returned_as is null and not exists (select 1 from {dead} e where e.{d_original_id} = d.{d_original_id}
                                                                        and e.{d_id} < d.{d_id}))
where d.{d_id} > %(after)s
  and not exists (select 1 from {held} h where not h.is_parked and h.row_id = d.{d_id} and h.until > %(now)s)
order by d.{d_id}
limit %(limit)s
"""

#: The same of the parking lot; what counts as the time of death is when it was parked.
READ_PARKED = """
select d.{d_id}::bigint, null, d.redrive_trail, d.parked_at, <class>, <message>, d.{d_attempts}::text, <worker>,
       <content>
from {parked} d
where d.{d_id} > %(after)s
  and not exists (select 1 from {held} h where h.is_parked and h.row_id = d.{d_id} and h.until > %(now)s)
order by d.{d_id}
limit %(limit)s
"""

#: A pass moves payloads without reading them.
_UNREAD = "null, null"

#: `rows`, `until`, `is_parked`.
_HOLD = """
insert into {held} (is_parked, row_id, until)
select %(is_parked)s, row_id, until from unnest(%(rows)s::bigint[], %(until)s::timestamptz[]) as a(row_id, until)
order by row_id
on conflict (is_parked, row_id) do update set until = excluded.until
"""

#: `before`.
_FORGET_HOLDS = "delete from {held} where until < %(before)s"

#: `rows`, `run_after`, `trails`, `left_jobs` (the job that a row is the return of, or null), `now` -> row and job of
#: each that is sent, now, or before by the same asking: whoever lost the answer asks again. A row that is there was not sent,
#: whatever was noted of its number; and a job's number that comes again, as after `restart identity`, is another job. A trigger may keep a row out of a table, or give
#: it another id, and the delete would stand: so each row is divided by how often it was inserted, see `refusals.SWALLOWED`.
_REDRIVE = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(run_after)s::timestamptz[], %(trails)s::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_run_after, our_trail, our_left_job)
), locked as materialized (
  select d.{d_id} as our_row from <table> d where d.{d_id} = any(%(rows)s) order by d.{d_id} for update skip locked
), gone as (
  delete from <table> d using locked l where d.{d_id} = l.our_row
  returning d.{d_id} as our_row, d.{d_original_id} as our_original, d.{d_payload} as our_payload,
            <class> as our_class, <message> as our_message{dcarried}
), numbered as materialized (
  select nextval(pg_get_serial_sequence({jobs_text}, {j_id_text})) as our_job, g.*
  from (select g.*, a.our_run_after, a.our_trail, a.our_left_job from gone g join asked a using (our_row)
        order by a.our_run_after, our_row) g
), sent as (
  insert into {jobs} ({j_id}, {j_payload}, {j_attempts}, {j_run_after}, {j_created_at}{and_max_attempts}{carried})
  overriding system value
  select g.our_job, g.our_payload, 0, g.our_run_after, %(now)s{and_most}{gcarried} from numbered g
  returning {j_id} as our_job
), noted as (
  insert into {redriven} (job_id, is_parked, row_id, trail, redriven_at, died_of, died_saying, original_id)
  select our_job, <is_parked>, our_row, our_trail, %(now)s, our_class, our_message, our_original from numbered
  on conflict (job_id) do update
  set is_parked = excluded.is_parked, row_id = excluded.row_id, trail = excluded.trail, redriven_at = excluded.redriven_at,
      died_of = excluded.died_of, died_saying = excluded.died_saying, original_id = excluded.original_id,
      tries_told = 0, settled_at = null, returned_as = null
), forgotten as (
  delete from {redriven} r using numbered n where r.job_id = n.our_left_job
), freed as (
  delete from {held} h using numbered n where h.is_parked = <is_parked> and h.row_id = n.our_row
)
select n.our_row::bigint, n.our_job / (select count(*) from sent s where s.our_job = n.our_job) from numbered n
union all
select r.row_id, max(r.job_id) from {redriven} r join asked a on r.row_id = a.our_row and r.trail = a.our_trail
where r.is_parked = <is_parked> and not exists (select 1 from <table> d where d.{d_id} = r.row_id)
group by r.row_id
"""

#: `rows`, `trails`, `left_jobs`, `now` -> the rows that are parked, now, or before by the same asking. Beside: see `parking_lot`.
PARK = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(trails)s::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_trail, our_left_job)
), locked as materialized (
  select d.{d_id} as our_row from {dead} d where d.{d_id} = any(%(rows)s) order by d.{d_id} for update skip locked
), gone as (
  delete from {dead} d using locked l where d.{d_id} = l.our_row
  returning d.{d_id} as our_row, d.{d_original_id} as our_original, d.{d_payload} as our_payload,
            d.{d_attempts} as our_attempts, d.{d_error_class} as our_class, d.{d_error_msg} as our_message,
            d.{d_stacktrace} as our_stack, d.{d_failed_by} as our_worker, d.{d_failed_at} as our_death{dcarried}{dbeside}
), moved as (
  insert into {parked} ({d_id}, {d_original_id}, {d_payload}, {d_attempts}, {d_error_class}, {d_error_msg},
                        {d_stacktrace}, {d_failed_by}, {d_failed_at}{carried}{beside}, redrive_trail, parked_at)
  select g.our_row, g.our_original, g.our_payload, g.our_attempts, g.our_class, g.our_message,
         g.our_stack, g.our_worker, g.our_death{gcarried}{gbeside}, a.our_trail, %(now)s
  from gone g join asked a using (our_row)
  returning {d_id} as our_row
), forgotten as (
  delete from {redriven} r using gone g join asked a using (our_row) where r.job_id = a.our_left_job
), freed as (
  delete from {held} h using gone g where not h.is_parked and h.row_id = g.our_row
)
select (g.our_row / (select count(*) from moved m where m.our_row = g.our_row))::bigint from gone g
union all
select d.{d_id}::bigint from {parked} d join asked a on d.{d_id} = a.our_row and d.redrive_trail = a.our_trail
where not exists (select 1 from {dead} e where e.{d_id} = d.{d_id})
"""

#: `known` -> further columns that both tables have, of the same type, and that take any value of it.
_BESIDE = """
select d.attname
from pg_attribute d join pg_attribute p on p.attname = d.attname and p.atttypid = d.atttypid and p.atttypmod = d.atttypmod
where d.attrelid = to_regclass({dead_text}) and p.attrelid = to_regclass({parked_text}) and d.attnum > 0
  and not d.attisdropped and not p.attisdropped and not p.attnotnull and p.attgenerated = '' and d.attname <> all(%(known)s)
  and left(d.attname, 4) <> 'our_'
  and not exists (select from pg_constraint c where c.conrelid = p.attrelid and p.attnum = any(c.conkey))
  and not exists (select from pg_index i where i.indrelid = p.attrelid and i.indisunique and p.attnum = any(i.indkey))
order by d.attnum
"""

#: `rows` -> those that are deleted.
_DELETE = """
delete from <table> d
where d.{d_id} in (select e.{d_id} from <table> e where e.{d_id} = any(%(rows)s) for update skip locked)
returning d.{d_id}::bigint
"""

#: `now` -> the id of a job with nothing in it; it is for a rehearsal alone.
_TRY_JOB = """
with numbered as materialized (
  select nextval(pg_get_serial_sequence({jobs_text}, {j_id_text})) as our_job
), sent as (
  insert into {jobs} ({j_id}, {j_payload}, {j_attempts}, {j_run_after}, {j_created_at}{and_max_attempts})
  overriding system value
  select n.our_job, '{{}}', 0, %(now)s, %(now)s{and_most} from numbered n
  returning {j_id} as our_job
)
select n.our_job from numbered n join sent s using (our_job)
"""

#: `turn` (from 0 to 1), `most` -> the letter at this part of the line; of more than so many, about there. Null where there is none.
_SOMEWHERE = """
with few as (select d.{d_id} as our_row from {dead} d order by d.{d_id} limit %(most)s),
     counted as (select count(*) as letters from few)
select case when letters < %(most)s
            then (select our_row from few order by our_row offset floor(letters * %(turn)s)::bigint limit 1)
            else (select min(d.{d_id}) + (max(d.{d_id})::numeric - min(d.{d_id})) * %(turn)s::numeric from {dead} d)
       end::bigint
from counted
"""

#: `rows`, `turn` -> ten others at the most: the first, the last, and eight from between, others at each turn from 0 to 1.
_OTHERS = """
select row_id::bigint
from (select min(e.{d_id})::numeric as first, max(e.{d_id})::numeric as last from <table> e) ends,
     (select case one when 0 then 0 when 9 then 1 else (one - 1 + %(turn)s::numeric) / 8 end as place
      from generate_series(0, 9) one) places,
     lateral (select d.{d_id} as row_id from <table> d
              where d.{d_id} >= (ends.first + (ends.last - ends.first) * places.place)::bigint
                and d.{d_id} <> all(%(rows)s)
              order by d.{d_id} limit 1) other
group by row_id
order by row_id
"""

#: `rows` -> those that are there.
_ARE_THERE = "select d.{d_id}::bigint from <table> d where d.{d_id} = any(%(rows)s)"

#: `after`, `limit` -> news of jobs that were redriven: job, trail, of the first letter that names it (null where there
#: is none) id, class, message, and the tries that have failed of one that waits for the next (null where it is gone). A
#: table of jobs does not say why a try has failed: as the job did before, as far as anybody knows.
#: One snapshot, so that a worker's move from one table to the other is seen as a whole.
_READ_OUTCOMES = """
select r.job_id, r.trail, d.letter,
       case when d.letter is null then r.died_of else d.error_class end,
       case when d.letter is null then r.died_saying else d.error_msg end, <tries of the job>
from {redriven} r
left join {jobs} j on j.{j_id} = r.job_id
left join lateral (
  select d.{d_id}::bigint as letter, <class> as error_class, <message> as error_msg
  from {dead} d where j.{j_id} is null and d.{d_original_id} = r.job_id order by d.{d_id} limit 1
) d on true
where r.settled_at is null and r.job_id > %(after)s
  and (j.{j_id} is null or j.{j_locked_at} is null and <tries of the job> > r.tries_told)
order by r.job_id
limit %(limit)s
"""

#: `jobs`, `letters` (null where it has succeeded), `tries` (null where it has ended), `now`.
_SETTLE = """
update {redriven} r
set settled_at = case when a.tries is null then %(now)s::timestamptz end, returned_as = a.letter,
    tries_told = coalesce(a.tries, r.tries_told)
from unnest(%(jobs)s::bigint[], %(letters)s::bigint[], %(tries)s::int[]) as a(job, letter, tries)
where r.job_id = a.job and r.settled_at is null
"""

#: `before`: what has succeeded for good.
_FORGET_SETTLED = "delete from {redriven} where settled_at < %(before)s and returned_as is null"

TEXTS: dict[str, LiteralString] = {
    "count_dead": of_table("dead", _COUNT_LETTERS),
    "count_parked": of_table("parked", _COUNT_LETTERS),
    "count_jobs": _COUNT_JOBS,
    "count_new": _COUNT_NEW,
    "read_dead": as_read(READ_DEAD.replace("<content>", _UNREAD)),
    "read_parked": as_read(READ_PARKED.replace("<content>", _UNREAD)),
    "hold": _HOLD,
    "forget_holds": _FORGET_HOLDS,
    "redrive_dead": of_table("dead", as_read(_REDRIVE)),
    "redrive_parked": of_table("parked", as_read(_REDRIVE)),
    "beside": _BESIDE,
    "delete_dead": of_table("dead", _DELETE),
    "delete_parked": of_table("parked", _DELETE),
    "somewhere": _SOMEWHERE,
    "try_job": _TRY_JOB,
    "others_dead": of_table("dead", _OTHERS),
    "others_parked": of_table("parked", _OTHERS),
    "are_dead": of_table("dead", _ARE_THERE),
    "are_parked": of_table("parked", _ARE_THERE),
    "read_outcomes": as_read(_READ_OUTCOMES),
    "settle": _SETTLE,
    "forget_settled": _FORGET_SETTLED,
}
