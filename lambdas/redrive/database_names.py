"""What tables and columns of a worker queue may be called, and which names exclude each other. Standard library only.

Names go into statements, so only what is plainly an identifier is accepted, and the adapters quote them all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

#: As long as Postgres lets one be. https://www.postgresql.org/docs/current/limits.html
LONGEST = 63

_IDENTIFIER = rf"[A-Za-z_][A-Za-z0-9_$]{{0,{LONGEST - 1}}}"
_TABLE = re.compile(rf"({_IDENTIFIER}\.)?{_IDENTIFIER}")
_COLUMN = re.compile(_IDENTIFIER)

#: Where tables are whose name says no schema, unless somebody changed that.
_PUBLIC = "public."

JOBS_COLUMNS = (
    "id",
    "payload",
    "attempts",
    "max_attempts",
    "run_after",
    "locked_at",
    "created_at",
)
DEAD_COLUMNS = (
    "id",
    "original_id",
    "payload",
    "attempts",
    "error_class",
    "error_msg",
    "stacktrace",
    "failed_by",
    "failed_at",
)
#: Each column by the name that it has by default; the part before the dot says of which table.
COLUMNS = (
    *(f"jobs.{one}" for one in JOBS_COLUMNS),
    *(f"jobs_dlq.{one}" for one in DEAD_COLUMNS),
)
#: What the parking lot has beside the columns of the DLQ.
OF_PARKED = ("redrive_trail", "parked_at")
#: What begins so is a name that statements give to values of their own, beside the columns that go along.
_OF_STATEMENTS = "our_"


class Clash(NamedTuple):
    """A name that is well by itself, and is not beside another."""

    entry: str
    seen: object
    accepted: str


def is_table(value: object) -> bool:
    """Whether a table may be called so, with a schema before it or without."""
    return isinstance(value, str) and _TABLE.fullmatch(value) is not None


def is_column(value: object) -> bool:
    """Whether a column may be called so."""
    return isinstance(value, str) and _COLUMN.fullmatch(value) is not None


def unfit_columns(value: object) -> str | None:
    """What `columns` takes, where `value` is something else."""
    if not isinstance(value, Mapping):
        return "names by name"
    if not value.keys() <= set(COLUMNS):
        return f"names for {', '.join(COLUMNS)}"
    return None if all(map(is_column, value.values())) else "columns' names"


def same_table(name: str) -> str:
    """What is alike for two spellings of one table."""
    return name.removeprefix(_PUBLIC)


def table_clashes(tables: Mapping[str, str], looks: str) -> Iterator[Clash]:
    """A table in two roles, in whatever spelling; a name with no room for that of `looks`, which is made of it."""
    roles: dict[str, str] = {}
    for role, table in tables.items():
        if (other := roles.setdefault(same_table(table), role)) != role:
            yield Clash(role, table, f"another table than {other}: each has one role")
    if len(looks.rpartition(".")[2]) > LONGEST:
        room = LONGEST - len(looks) + len(tables["redriven"])
        accepted = f"a name of at most {room} letters, since one more table is called after it"
        yield Clash("redriven", tables["redriven"], accepted)
    elif taken := roles.get(same_table(looks)):
        yield Clash(taken, looks, "another table than the one that is called after redriven")


def column_clashes(columns: Mapping[str, Any], called: Callable[[str], str]) -> Iterator[Clash]:
    """A column of a table that two of `COLUMNS` are: `called` says what each is called, by itself or as `columns` has it."""
    known: dict[tuple[str, str], str] = {("jobs_dlq", one): "the parking lot" for one in OF_PARKED}
    for one in COLUMNS:
        table, name = one.partition(".")[0], called(one)
        if (other := known.setdefault((table, name), one)) != one:
            told, beside = (one, other) if one in columns else (other, one)
            yield Clash(f"columns {told}", name, f"another column than that of {beside}")


def carried_clashes(
    carried: Sequence[str], called: Callable[[str], str], *, sets_max_attempts: bool
) -> Iterator[Clash]:
    """A column that would be written twice. `max_attempts` may go along where the configuration does not set it."""
    free = () if sets_max_attempts else ("jobs.max_attempts",)
    known = {called(one): one for one in COLUMNS if one not in free}
    known |= dict.fromkeys(OF_PARKED, "the parking lot")
    for place, one in enumerate(carried):
        if one in carried[:place]:
            yield Clash("carried", one, "each column once")
        elif one.startswith(_OF_STATEMENTS):
            yield Clash("carried", one, f"names that do not begin with {_OF_STATEMENTS}")
        elif other := known.get(one):
            yield Clash("carried", one, f"further columns, and not that of {other}")
