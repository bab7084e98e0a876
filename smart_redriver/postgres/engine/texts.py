"""Every SQL text of the adapters, as constants; what stands in braces is put in by `statements`.

Each is one transaction of its own. `now` always comes from outside: nothing here reads the database's clock. Where two
passes meet, `skip locked` gives each row to one of them, and the other goes on without it. Trails are sent in binary
form (`b`): as text, each quote of their JSON would have to be escaped. A row's number (`{d_row}` of `d`, `{j_job}` of
the job `j`) is its id, or a hash of an id that is a UUID or text: see `statements`.
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
#: Autovacuum analyzes partitions, and never the whole; `analyze` by hand counts all of them there, too.
_COUNT_LETTERS = """
with few as (
  select 1 from <table> d
  where not exists (select 1 from {held} h
                    where h.is_parked = <is_parked> and h.row_id = {d_row} and h.until > %(now)s)
  limit %(most)s
), counted as (select count(*) as letters from few)
select case when letters < %(most)s then letters
            else greatest(letters, (select sum(reltuples)::bigint from pg_class
                                    where (oid = <text>::regclass
                                           or oid in (select relid from pg_partition_tree(<text>::regclass)))
                                      and relkind <> 'p' and reltuples > 0 and {counts_tell})) end,
       (select count(*) from (select 1 from {held} h where h.is_parked = <is_parked> and h.until > %(now)s
                              limit %(most)s) few_held)
from counted
"""

#: `most` -> jobs, up to so many.
_COUNT_JOBS = """
select (select count(*) from (select 1 from {jobs} limit %(most)s) few)
"""

#: `since`, `batch` (as a trail has it) -> how many letters were redriven in a batch.
_COUNT_SENT = """
select count(*) from {redriven} r where r.redriven_at >= %(since)s and position(%(batch)s in r.trail) > 0
"""

#: `since`, `latest` -> how many of so many latest letters died since then.
_COUNT_NEW = """
select count(*) from (select d.{d_failed_at} as failed_at from {dead} d order by {d_latest} limit %(latest)s) latest
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
    "<tries>": "case when d.{d_attempts} is not null "
    "then least(greatest(d.{d_attempts}::numeric, 0), 2147483647)::int end",
    "<tries of the job>": "case when j.{j_attempts} is not null "
    "then least(greatest(j.{j_attempts}::numeric, 0), 2147483647)::int end",
}


def as_read(text: LiteralString) -> LiteralString:
    """A text with columns in the form in which they are read."""
    for name, column in _READ.items():
        text = text.replace(name, column)
    return text


#: `after`, `limit`, `now` -> a page of letters by id, those left out that are held: see `letters.letter_of`. The return
#: of a job of ours is the first row that names it; whatever else names it is a letter of its own.
READ_DEAD = """
select {d_row}::bigint, r.job_id, r.trail, <death>, <class>, <message>, d.{d_attempts}::text, <worker>,
       <content>
from {dead} d
left join {redriven} r
  on r.job_id = {d_original}
 and (r.returned_as = {d_row}
      or r.returned_as is null and not exists (select 1 from {dead} e where {e_original} = {d_original}
                                                                        and {e_row} < {d_row}))
where {d_row} > %(after)s
  and not exists (select 1 from {held} h where not h.is_parked and h.row_id = {d_row} and h.until > %(now)s)
order by {d_row}
limit %(limit)s
"""

#: The same of the parking lot; what counts as the time of death is when it was parked.
READ_PARKED = """
select {d_row}::bigint, null, d.redrive_trail, d.parked_at, <class>, <message>, d.{d_attempts}::text, <worker>,
       <content>
from {parked} d
where {d_row} > %(after)s
  and not exists (select 1 from {held} h where h.is_parked and h.row_id = {d_row} and h.until > %(now)s)
order by {d_row}
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
#: each that is sent, now, or before by the same asking: whoever lost the answer asks again. A row that is there was not
#: sent, whatever was noted of its number; and a job's number that comes again, as after `restart identity`, is another
#: job. A trigger may keep a row out of a table, or give it another id, and the delete would stand: so each row is
#: divided by how often it was inserted, see `refusals.SWALLOWED`.
_REDRIVE = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(run_after)s::timestamptz[], %(trails)b::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_run_after, our_trail, our_left_job)
), locked as materialized (
  select {d_row} as our_row from <table> d where {d_row} = any(%(rows)s)<as read> order by {d_row}
  for update skip locked
), gone as (
  delete from <table> d using locked l where {d_row} = l.our_row<as read>
  returning {d_row} as our_row, {d_original} as our_original, d.{d_payload} as our_payload,
            <class> as our_class, <message> as our_message{dcarried}
), numbered as materialized (
  select {k_job} as our_job, k.*
  from (select {new_id} as our_id, g.*
        from (select g.*, a.our_run_after, a.our_trail, a.our_left_job from gone g join asked a using (our_row)
              order by a.our_run_after, our_row) g) k
), sent as (
  insert into {jobs} as j
    ({j_id}, {j_payload}, {j_attempts}, {j_run_after}, {j_created_at}{and_max_attempts}{carried})
  overriding system value
  select g.our_id, <payload>, 0, g.our_run_after, %(now)s{and_most}{gcarried} from numbered g
  returning {j_job} as our_job
), noted as (
  insert into {redriven} (job_id, is_parked, row_id, trail, redriven_at, died_of, died_saying, original_id)
  select our_job, <is_parked>, our_row, our_trail, %(now)s, our_class, our_message, our_original from numbered
  on conflict (job_id) do update
  set is_parked = excluded.is_parked, row_id = excluded.row_id, trail = excluded.trail,
    redriven_at = excluded.redriven_at,
      died_of = excluded.died_of, died_saying = excluded.died_saying, original_id = excluded.original_id,
      tries_told = 0, settled_at = null, returned_as = null
), forgotten as (
  delete from {redriven} r using numbered n where r.job_id = n.our_left_job
), freed as (
  delete from {held} h using numbered n where h.is_parked = <is_parked> and h.row_id = n.our_row
)
select n.our_row::bigint, n.our_job / coalesce(s.times, 0) from numbered n
left join (select our_job, count(*) as times from sent group by our_job) s using (our_job)
union all
select r.row_id, max(r.job_id) from {redriven} r join asked a on r.row_id = a.our_row and r.trail = a.our_trail
where r.is_parked = <is_parked> and not exists (select 1 from <table> d where {d_row} = r.row_id)
group by r.row_id
"""

_AS_IT_IS: dict[LiteralString, LiteralString] = {"<as read>": "", "<payload>": "g.our_payload"}
#: Parts for letters that a person has edited: `befores` are their payloads as they were read, `payloads` what they are
#: to be. A letter that somebody has changed meanwhile is left.
_EDITED: dict[LiteralString, LiteralString] = {
    "<as read>": """
    and coalesce(d.{d_payload}::text, '') = (%(befores)s::text[])[array_position(%(rows)s::bigint[], {d_row}::bigint)]
   """,
    "<payload>": """
    cast((%(payloads)s::text[])[array_position(%(rows)s::bigint[], g.our_row::bigint)] as {payload_type})""",
}


def _redrive(table: LiteralString, parts: dict[LiteralString, LiteralString]) -> LiteralString:
    text: LiteralString = _REDRIVE
    for name, part in parts.items():
        text = text.replace(name, part)
    return of_table(table, as_read(text))


#: `rows`, `trails`, `left_jobs`, `now` -> the rows that are parked, now, or before by the same asking. Beside: see
#: `parking_lot`.
PARK = """
with asked as (
  select * from unnest(%(rows)s::bigint[], %(trails)b::text[], %(left_jobs)s::bigint[])
    as a(our_row, our_trail, our_left_job)
), locked as materialized (
  select {d_row} as our_row from {dead} d where {d_row} = any(%(rows)s) order by {d_row} for update skip locked
), gone as (
  delete from {dead} d using locked l where {d_row} = l.our_row
  returning {d_row} as our_row, d.{d_id} as our_id, d.{d_original_id} as our_original,
            d.{d_payload} as our_payload, d.{d_attempts} as our_attempts, d.{d_error_class} as our_class,
            d.{d_error_msg} as our_message,
            d.{d_stacktrace} as our_stack, d.{d_failed_by} as our_worker,
              d.{d_failed_at} as our_death{dcarried}{dbeside}
), moved as (
  insert into {parked} as d ({d_id}, {d_original_id}, {d_payload}, {d_attempts}, {d_error_class}, {d_error_msg},
                        {d_stacktrace}, {d_failed_by}, {d_failed_at}{carried}{beside}, redrive_trail, parked_at)
  select g.our_id, g.our_original, g.our_payload, g.our_attempts, g.our_class, g.our_message,
         g.our_stack, g.our_worker, g.our_death{gcarried}{gbeside}, a.our_trail, %(now)s
  from gone g join asked a using (our_row)
  returning {d_row} as our_row
), forgotten as (
  delete from {redriven} r using gone g join asked a using (our_row) where r.job_id = a.our_left_job
), freed as (
  delete from {held} h using gone g where not h.is_parked and h.row_id = g.our_row
)
select (g.our_row / coalesce(m.times, 0))::bigint from gone g
left join (select our_row, count(*) as times from moved group by our_row) m using (our_row)
union all
select {d_row}::bigint from {parked} d join asked a on {d_row} = a.our_row and d.redrive_trail = a.our_trail
where not exists (select 1 from {dead} e where {e_row} = {d_row})
"""

#: `known` -> further columns that both tables have, of the same type, and that take any value of it.
_BESIDE = """
select d.attname
from pg_attribute d join pg_attribute p on p.attname = d.attname and p.atttypid = d.atttypid
  and p.atttypmod = d.atttypmod
where d.attrelid = to_regclass({dead_text}) and p.attrelid = to_regclass({parked_text}) and d.attnum > 0
  and not d.attisdropped and not p.attisdropped and not p.attnotnull and p.attgenerated = ''
    and d.attname <> all(%(known)s)
  and left(d.attname, 4) <> 'our_'
  and not exists (select from pg_constraint c where c.conrelid = p.attrelid and p.attnum = any(c.conkey))
  and not exists (select from pg_index i where i.indrelid = p.attrelid and i.indisunique and p.attnum = any(i.indkey))
order by d.attnum
"""

#: `rows` -> those that are deleted.
_DELETE = """
delete from <table> d
where {d_row} in (select {e_row} from <table> e where {e_row} = any(%(rows)s) for update skip locked)
returning {d_row}::bigint
"""

#: `now` -> the id of a job with nothing in it; it is for a rehearsal alone.
_TRY_JOB = """
with numbered as materialized (
  select {new_id} as our_id
), sent as (
  insert into {jobs} as j ({j_id}, {j_payload}, {j_attempts}, {j_run_after}, {j_created_at}{and_max_attempts})
  overriding system value
  select n.our_id, '{{}}', 0, %(now)s, %(now)s{and_most} from numbered n
  returning {j_id} as our_id
)
select n.our_id from numbered n join sent s using (our_id)
"""

#: `turn` (from 0 to 1), `most` -> the letter at this part of the line; of more than so many, about there. Null where
#: there is none.
_SOMEWHERE = """
with few as (select {d_row} as our_row from {dead} d order by {d_row} limit %(most)s),
     counted as (select count(*) as letters from few)
select case when letters < %(most)s
            then (select our_row from few order by our_row offset floor(letters * %(turn)s)::bigint limit 1)
            else (select min({d_row}) + (max({d_row})::numeric - min({d_row})) * %(turn)s::numeric from {dead} d)
       end::bigint
from counted
"""

#: `rows`, `turn` -> ten others at the most: the first, the last, and eight from between, others at each turn from 0 to
#: 1.
_OTHERS = """
select row_id::bigint
from (select min({e_row})::numeric as first, max({e_row})::numeric as last from <table> e) ends,
     (select case one when 0 then 0 when 9 then 1 else (one - 1 + %(turn)s::numeric) / 8 end as place
      from generate_series(0, 9) one) places,
     lateral (select {d_row} as row_id from <table> d
              where {d_row} >= (ends.first + (ends.last - ends.first) * places.place)::bigint
                and {d_row} <> all(%(rows)s)
              order by {d_row} limit 1) other
group by row_id
order by row_id
"""

#: `rows` -> those that are there.
_ARE_THERE = "select {d_row}::bigint from <table> d where {d_row} = any(%(rows)s)"

#: `after`, `limit`, `now` -> news of jobs that were redriven: job, trail, of the first letter that names it (null where
#: there is none) id, class, message, and the tries that have failed of one that waits for the next (null where it is
#: gone). A table of jobs does not say why a try has failed: as the job did before, as far as anybody knows.
#: One snapshot, so that a worker's move from one table to the other is seen as a whole.
_READ_OUTCOMES = """
select r.job_id, r.trail, d.letter,
       case when d.letter is null then r.died_of else d.error_class end,
       case when d.letter is null then r.died_saying else d.error_msg end, <tries of the job>
from {redriven} r
left join {jobs} j on {j_job} = r.job_id
left join lateral (
  select {d_row}::bigint as letter, <class> as error_class, <message> as error_msg
  from {dead} d where {j_job} is null and {d_original} = r.job_id order by {d_row} limit 1
) d on true
where r.settled_at is null and r.job_id > %(after)s
  and ({j_job} is null or not ({in_hand}) and <tries of the job> > r.tries_told)
order by r.job_id
limit %(limit)s
"""

#: `jobs`, `letters` (null where it has succeeded), `tries` (null where it has ended), `trails` (a job of one table by
#: state may have been redriven again since), `now`.
_SETTLE = """
update {redriven} r
set settled_at = case when a.tries is null then %(now)s::timestamptz end, returned_as = a.letter,
    tries_told = coalesce(a.tries, r.tries_told)
from unnest(%(jobs)s::bigint[], %(letters)s::bigint[], %(tries)s::int[], %(trails)b::text[])
  as a(job, letter, tries, trail)
where r.job_id = a.job and r.trail = a.trail and r.settled_at is null
"""

#: `before`: what has succeeded for good.
_FORGET_SETTLED = "delete from {redriven} where settled_at < %(before)s and returned_as is null"

TEXTS: dict[str, LiteralString] = {
    "count_dead": of_table("dead", _COUNT_LETTERS),
    "count_parked": of_table("parked", _COUNT_LETTERS),
    "count_jobs": _COUNT_JOBS,
    "count_new": _COUNT_NEW,
    "count_sent": _COUNT_SENT,
    "read_dead": as_read(READ_DEAD.replace("<content>", _UNREAD)),
    "read_parked": as_read(READ_PARKED.replace("<content>", _UNREAD)),
    "hold": _HOLD,
    "forget_holds": _FORGET_HOLDS,
    "redrive_dead": _redrive("dead", _AS_IT_IS),
    "redrive_parked": _redrive("parked", _AS_IT_IS),
    "park": as_read(PARK),
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


#: -> what was kept of the look before (null, null where there was none), the highest number of a job of ours, and
#: Postgres's counters of both tables, see `counters.Counters`. Nothing is to be read from them where a race of two
#: inserts for one unique key that is not the id counts as a delete, nor where rows may go into partitions, which have
#: counters of their own: deaths would be missing, and look like successes; a view has none. A table that is truncated
#: gets another file, and its rows were not deleted one by one.
_READ_LOOK = """
select l.at, l.state, (select max(r.job_id) from {redriven} r),
       concat_ws(' ', pg_postmaster_start_time(), (select stats_reset from pg_stat_bgwriter),
                 (select stats_reset from pg_stat_database where datname = current_database()), o.jobs, o.dead,
                   pg_relation_filenode(o.jobs)),
       pg_stat_get_mod_since_analyze(o.jobs), pg_stat_get_tuples_inserted(o.jobs), pg_stat_get_tuples_updated(o.jobs),
       pg_stat_get_live_tuples(o.jobs), pg_stat_get_analyze_count(o.jobs) + pg_stat_get_autoanalyze_count(o.jobs),
       pg_stat_get_vacuum_count(o.jobs) + pg_stat_get_autovacuum_count(o.jobs), pg_stat_get_tuples_inserted(o.dead),
       {counts_tell} and {jobs_tell} and not exists (select 1 from pg_inherits h where h.inhparent in (o.jobs, o.dead))
       and not exists (select 1 from pg_class c where c.oid in (o.jobs, o.dead) and c.relkind = 'v')
       and not exists (select 1 from pg_index i where i.indrelid = o.jobs and (i.indisunique or i.indisexclusion)
                   and (i.indnkeyatts > 1 or i.indkey[0] <> (select a.attnum from pg_attribute a
                     where a.attrelid = o.jobs and a.attname = {j_id_text})))
from (select {jobs_text}::regclass::oid as jobs, {dead_text}::regclass::oid as dead) o left join {looks} l on true
"""

#: `seen` (jobs of the look before), `after` (ours above this number are new), `most`, `few`, `now` -> jobs: id, tries
#: (null where it is gone), whether it is locked, whether its time has come, whether it is ours, whether it has died,
#: and after how many tries. What died may have been moved on since: then its letter's own move has left its number.
#: One snapshot, so that a worker's move from one table to the other is seen as a whole.
_SEE_JOBS = """
with latest as (select {j_job}::bigint as job from {jobs} j order by {j_job} desc limit %(few)s),
     next as (select {j_job}::bigint as job from {jobs} j where not ({in_hand}) order by j.{j_run_after}
       limit %(few)s),
     news as (select r.job_id as job from {redriven} r where r.job_id > %(after)s order by r.job_id limit %(most)s),
     open as (select r.job_id as job from {redriven} r where r.settled_at is null order by r.job_id desc
       limit %(most)s),
     known as (select unnest(%(seen)s::bigint[]) as job union select job from latest union select job from next
               union select job from news union select job from open)
select k.job, case when {j_job} is not null then coalesce(<tries of the job>, 0) end, coalesce({in_hand}, false),
  j.{j_run_after} <= %(now)s,
       exists (select 1 from {redriven} r where r.job_id = k.job), d.has_died, d.tries
from known k
left join {jobs} j on {j_job} = k.job
left join lateral (
  select true as has_died, max(m.tries) as tries from (
    (select <tries> as tries from {dead} d where {d_original} = k.job limit 1)
    union all (select null from {redriven} r where r.original_id = k.job limit 1)
    union all (select <tries> from {parked} d where {d_original} = k.job limit 1)
  ) m where {j_job} is null having count(*) > 0
) d on true
where {jobs_tell}
"""

#: `before` (when the look was that this one goes on from), `now`, `state`. Of two that go on from the same, one is
#: kept.
_KEEP_LOOK = """
insert into {looks} as l (is_latest, at, state) values (true, %(now)s, %(state)s)
on conflict (is_latest) do update set at = excluded.at, state = excluded.state where l.at = %(before)s
"""

LOOK_TEXTS: dict[str, LiteralString] = {
    "read_look": _READ_LOOK,
    "see_jobs": as_read(_SEE_JOBS),
    "keep_look": _KEEP_LOOK,
}


#: As far as anybody reads. What is null has no size, and no text.
_SHOWN = """case when pg_column_size(d.{d_payload}) > 1048576 then '(a payload of more than 1 MiB)'
            else left(d.{d_payload}::text, 1048576) end, <stack>"""
#: Whole, as it may be what a check of the team's is given.
_WHOLE_PAYLOAD = "d.{d_payload}::text, <stack>"
#: Those of some rows alone.
_PAGED = "order by {d_row}"
_AMONG = "  and {d_row} = any(%(rows)s)\n" + _PAGED
#: `contains`: what their payloads have in them, or null.
_WITH = (
    """  and (%(contains)s::text is null or position(%(contains)s::text in d.{d_payload}::text) > 0)
"""
    + _PAGED
)

#: `jobs` -> the rows that name them.
_ROWS_OF_JOBS = "select {d_row}::bigint from {dead} d where {d_original} = any(%(jobs)s)"

#: `rows`, `jobs` -> whether it is a job, and its number: of those of which something is left, the note of ours that a
#: row was sent, or the return of a job, or that a job was and nobody knows yet what became of it, included.
_ABOUT = """
select false, {d_row}::bigint from {dead} d where {d_row} = any(%(rows)s)
union select false, {d_row}::bigint from {parked} d where {d_row} = any(%(rows)s)
union select false, r.row_id from {redriven} r where r.row_id = any(%(rows)s)
union select true, {d_original}::bigint from {dead} d where {d_original} = any(%(jobs)s)
union select true, {d_original}::bigint from {parked} d where {d_original} = any(%(jobs)s)
union select true, {j_job}::bigint from {jobs} j where {j_job} = any(%(jobs)s)
union select true, r.job_id from {redriven} r where r.job_id = any(%(jobs)s) and r.settled_at is null
union select true, r.original_id from {redriven} r where r.original_id = any(%(jobs)s)
"""

#: `latest`, `generic` (classes that name no trouble) -> letters by class, and by message where the class says nothing:
#: class, message, how many of so many latest, when the first died, the last row.
_GROUPS = """
select error_class, message, count(*), min(since), max(row)
from (select <class> as error_class, <since> as since, {d_row}::bigint as row,
             case when lower(regexp_replace(coalesce(<class>, ''), '^.*[.]', '')) = any(%(generic)s)
                  then left(<message>, 200) end as message
      from <table> d order by {d_latest} limit %(latest)s) latest
group by 1, 2
"""

#: `id` -> the number of a row or job with this id, if ids are not numbers.
_NUMBER_OF = "select {given_number}"

#: When the letter died that is first in line.
_OLDEST = "select <death> from {dead} d order by {d_oldest} limit 1".replace("<death>", DEATH)

PEOPLES_TEXTS: dict[str, LiteralString] = {
    "look_dead": as_read(READ_DEAD.replace("<content>", _SHOWN).replace(_PAGED, _WITH)),
    "look_parked": as_read(READ_PARKED.replace("<content>", _SHOWN).replace(_PAGED, _WITH)),
    "find_dead": as_read(READ_DEAD.replace("<content>", _SHOWN).replace(_PAGED, _AMONG)),
    "find_parked": as_read(READ_PARKED.replace("<content>", _SHOWN).replace(_PAGED, _AMONG)),
    "take_dead": as_read(READ_DEAD.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _WITH)),
    "take_parked": as_read(READ_PARKED.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _WITH)),
    "pick_dead": as_read(READ_DEAD.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _AMONG)),
    "pick_parked": as_read(
        READ_PARKED.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _AMONG)
    ),
    "rows_of_jobs": _ROWS_OF_JOBS,
    "number_of": _NUMBER_OF,
    "about": _ABOUT,
    "group_dead": as_read(of_table("dead", _GROUPS).replace("<since>", DEATH)),
    "group_parked": as_read(of_table("parked", _GROUPS).replace("<since>", "d.parked_at")),
    "oldest": _OLDEST,
}

#: As `redrive_dead` and `redrive_parked`, for edited letters; `payload_type` is what the jobs' payload is of.
EDITED_TEXTS: dict[bool, LiteralString] = {
    is_parked: _redrive("parked" if is_parked else "dead", _EDITED) for is_parked in (False, True)
}
