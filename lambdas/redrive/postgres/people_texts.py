"""The SQL texts of what people do with letters: look at them whole, count why they died.

As in `texts`, each is one transaction, and what stands in braces is put in by `statements`.
"""

from __future__ import annotations

from typing import LiteralString

from redrive.postgres.texts import DEATH, READ_DEAD, READ_PARKED, as_read, of_table

#: As far as anybody reads. What is null has no size, and no text.
_SHOWN = """case when pg_column_size(d.{d_payload}) > 1048576 then '(a payload of more than 1 MiB)'
            else left(d.{d_payload}::text, 1048576) end, <stack>"""
#: Whole, as it may be what a check of the team's is given.
_WHOLE_PAYLOAD = "d.{d_payload}::text, <stack>"
#: Those of some rows alone.
_PAGED = "order by d.{d_id}"
_AMONG = "  and d.{d_id} = any(%(rows)s)\n" + _PAGED

#: `jobs` -> the rows that name them.
_ROWS_OF_JOBS = "select d.{d_id}::bigint from {dead} d where d.{d_original_id} = any(%(jobs)s)"

#: `rows`, `jobs` -> whether it is a job, and its number: of those of which something is left, the note of ours that a row
#: was sent, or the return of a job, or that a job was and nobody knows yet what became of it, included.
_ABOUT = """
select false, d.{d_id}::bigint from {dead} d where d.{d_id} = any(%(rows)s)
union select false, d.{d_id}::bigint from {parked} d where d.{d_id} = any(%(rows)s)
union select false, r.row_id from {redriven} r where r.row_id = any(%(rows)s)
union select true, d.{d_original_id}::bigint from {dead} d where d.{d_original_id} = any(%(jobs)s)
union select true, d.{d_original_id}::bigint from {parked} d where d.{d_original_id} = any(%(jobs)s)
union select true, j.{j_id}::bigint from {jobs} j where j.{j_id} = any(%(jobs)s)
union select true, r.job_id from {redriven} r where r.job_id = any(%(jobs)s) and r.settled_at is null
union select true, r.original_id from {redriven} r where r.original_id = any(%(jobs)s)
"""

#: `latest`, `generic` (classes that name no trouble) -> letters by class, and by message where the class says nothing:
#: class, message, how many of so many latest, when the first died, the last row.
_GROUPS = """
select error_class, message, count(*), min(since), max(row)
from (select <class> as error_class, <since> as since, d.{d_id}::bigint as row,
             case when lower(regexp_replace(coalesce(<class>, ''), '^.*[.]', '')) = any(%(generic)s)
                  then left(<message>, 200) end as message
      from <table> d order by d.{d_id} desc limit %(latest)s) latest
group by 1, 2
"""

#: When the letter died that is first in line.
_OLDEST = "select <death> from {dead} d order by d.{d_id} limit 1".replace("<death>", DEATH)

PEOPLES_TEXTS: dict[str, LiteralString] = {
    "look_dead": as_read(READ_DEAD.replace("<content>", _SHOWN)),
    "look_parked": as_read(READ_PARKED.replace("<content>", _SHOWN)),
    "find_dead": as_read(READ_DEAD.replace("<content>", _SHOWN).replace(_PAGED, _AMONG)),
    "find_parked": as_read(READ_PARKED.replace("<content>", _SHOWN).replace(_PAGED, _AMONG)),
    "take_dead": as_read(READ_DEAD.replace("<content>", _WHOLE_PAYLOAD)),
    "take_parked": as_read(READ_PARKED.replace("<content>", _WHOLE_PAYLOAD)),
    "pick_dead": as_read(READ_DEAD.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _AMONG)),
    "pick_parked": as_read(
        READ_PARKED.replace("<content>", _WHOLE_PAYLOAD).replace(_PAGED, _AMONG)
    ),
    "rows_of_jobs": _ROWS_OF_JOBS,
    "about": _ABOUT,
    "group_dead": as_read(of_table("dead", _GROUPS).replace("<since>", DEATH)),
    "group_parked": as_read(of_table("parked", _GROUPS).replace("<since>", "d.parked_at")),
    "oldest": _OLDEST,
}
