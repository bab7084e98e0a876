"""The SQL texts of what people do with letters: look at them whole, count why they died, keep and restore their rows.

As in `texts`, each is one transaction, and what stands in braces is put in by `statements`.
"""

from __future__ import annotations

from typing import LiteralString

from redrive.postgres.texts import DEATH, READ_DEAD, READ_PARKED, as_read, of_table

#: As far as anybody reads.
_SHOWN = """case when pg_column_size(d.{d_payload}) <= 1048576 then left(d.{d_payload}::text, 1048576)
            else '(a payload of more than 1 MiB)' end, <stack>"""
#: Whole, as it may be what a check of the team's is given.
_WHOLE_PAYLOAD = "d.{d_payload}::text, <stack>"
#: Those of some rows alone.
_PAGED = "order by d.{d_id}"
_AMONG = "  and d.{d_id} = any(%(rows)s)\n" + _PAGED

#: `jobs` -> the rows that name them.
_ROWS_OF_JOBS = "select d.{d_id}::bigint from {dead} d where d.{d_original_id} = any(%(jobs)s)"

#: `rows` -> each with all its columns, as JSON: what `restore` takes.
_WHOLE = "select d.{d_id}::bigint, to_jsonb(d)::text from <table> d where d.{d_id} = any(%(rows)s)"

#: `contents` (see `whole`), `trails`, `now` -> the rows that are parked by this, now or before. Who is in the DLQ stays there.
_RESTORE = """
with asked as (
  select (c ->> {d_id_text})::bigint as our_row, c as our_content, our_trail
  from unnest(%(contents)s::text[], %(trails)s::text[]) as a(our_text, our_trail), cast(our_text as jsonb) c
), placed as (
  insert into {parked}
  select (jsonb_populate_record(null::{parked}, a.our_content
            || jsonb_build_object('redrive_trail', a.our_trail, 'parked_at', %(now)s::timestamptz))).*
  from asked a where not exists (select 1 from {dead} d where d.{d_id} = a.our_row)
  on conflict ({d_id}) do nothing
  returning {d_id} as our_row
)
select our_row from placed
union
select d.{d_id} from {parked} d join asked a on a.our_row = d.{d_id} and a.our_trail = d.redrive_trail
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
    "whole_dead": of_table("dead", _WHOLE),
    "whole_parked": of_table("parked", _WHOLE),
    "restore": _RESTORE,
    "group_dead": as_read(of_table("dead", _GROUPS).replace("<since>", DEATH)),
    "group_parked": as_read(of_table("parked", _GROUPS).replace("<since>", "d.parked_at")),
    "oldest": _OLDEST,
}
