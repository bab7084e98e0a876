"""The SQL texts of a look at the table of jobs: what became of those seen before, and which are there now.

Nothing is locked. Each part is bounded by a limit and finds its rows by an index, however many jobs and letters there are.
"""

from __future__ import annotations

from typing import LiteralString

from redrive.postgres.texts import as_read

#: -> what was kept of the look before (null, null where there was none), the highest number of a job of ours, and
#: Postgres's counters of both tables, see `counters.Counters`. Nothing is to be read from them where a race of two inserts for one unique key that is
#: not the id counts as a delete, nor where rows may go into partitions, which have counters of their own: deaths would be missing, and look like successes.
#: A table that is truncated gets another file, and its rows were not deleted one by one.
_READ_LOOK = """
select l.at, l.state, (select max(r.job_id) from {redriven} r),
       concat_ws(' ', pg_postmaster_start_time(), (select stats_reset from pg_stat_bgwriter),
                 (select stats_reset from pg_stat_database where datname = current_database()), o.jobs, o.dead, pg_relation_filenode(o.jobs)),
       pg_stat_get_mod_since_analyze(o.jobs), pg_stat_get_tuples_inserted(o.jobs), pg_stat_get_tuples_updated(o.jobs),
       pg_stat_get_live_tuples(o.jobs), pg_stat_get_analyze_count(o.jobs) + pg_stat_get_autoanalyze_count(o.jobs),
       pg_stat_get_vacuum_count(o.jobs) + pg_stat_get_autovacuum_count(o.jobs), pg_stat_get_tuples_inserted(o.dead),
       not exists (select 1 from pg_inherits h where h.inhparent in (o.jobs, o.dead))
       and not exists (select 1 from pg_index i where i.indrelid = o.jobs and (i.indisunique or i.indisexclusion)
                   and (i.indnkeyatts > 1 or i.indkey[0] <> (select a.attnum from pg_attribute a where a.attrelid = o.jobs
                                                                                               and a.attname = {j_id_text})))
from (select {jobs_text}::regclass::oid as jobs, {dead_text}::regclass::oid as dead) o left join {looks} l on true
"""

#: `seen` (jobs of the look before), `after` (ours above this number are new), `most`, `few`, `now` -> jobs: id, tries
#: (null where it is gone), whether it is locked, whether its time has come, whether it is ours, whether it has died, and
#: after how many tries. What died may have been moved on since: then its letter's own move has left its number.
#: One snapshot, so that a worker's move from one table to the other is seen as a whole.
_SEE_JOBS = """
with latest as (select j.{j_id}::bigint as job from {jobs} j order by j.{j_id} desc limit %(few)s),
     next as (select j.{j_id}::bigint as job from {jobs} j where j.{j_locked_at} is null order by j.{j_run_after} limit %(few)s),
     news as (select r.job_id as job from {redriven} r where r.job_id > %(after)s order by r.job_id limit %(most)s),
     open as (select r.job_id as job from {redriven} r where r.settled_at is null order by r.job_id desc limit %(most)s),
     known as (select unnest(%(seen)s::bigint[]) as job union select job from latest union select job from next
               union select job from news union select job from open)
select k.job, case when j.{j_id} is not null then coalesce(<tries of the job>, 0) end, j.{j_locked_at} is not null, j.{j_run_after} <= %(now)s,
       exists (select 1 from {redriven} r where r.job_id = k.job), d.has_died, d.tries
from known k
left join {jobs} j on j.{j_id} = k.job
left join lateral (
  select true as has_died, max(m.tries) as tries from (
    (select <tries> as tries from {dead} d where d.{d_original_id} = k.job limit 1)
    union all (select null from {redriven} r where r.original_id = k.job limit 1)
    union all (select <tries> from {parked} d where d.{d_original_id} = k.job limit 1)
  ) m where j.{j_id} is null having count(*) > 0
) d on true
"""

#: `before` (when the look was that this one goes on from), `now`, `state`. Of two that go on from the same, one is kept.
_KEEP_LOOK = """
insert into {looks} as l (is_latest, at, state) values (true, %(now)s, %(state)s)
on conflict (is_latest) do update set at = excluded.at, state = excluded.state where l.at = %(before)s
"""

LOOK_TEXTS: dict[str, LiteralString] = {
    "read_look": _READ_LOOK,
    "see_jobs": as_read(_SEE_JOBS),
    "keep_look": _KEEP_LOOK,
}
