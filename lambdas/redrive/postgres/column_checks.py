"""What the doctor says of columns: which are missing, of a type that no statement works with, or stand in a letter's way. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from redrive.database_names import DEAD_COLUMNS, JOBS_COLUMNS, OF_PARKED
from redrive.databases import JobsDatabase
from redrive.postgres.columns import Column, quoted
from redrive.postgres.findings import Finding

_WHOLE = ("smallint", "integer", "bigint")
_NUMBERS = (*_WHOLE, "numeric")
#: A time without a zone is written and read in the session's, which may not be the workers'.
_TIMES = ("timestamp with time zone", "timestamp without time zone")
#: What columns have to be, by their default names: statements compare them with such values, and write them.
_NEEDED = {
    "id": _NUMBERS,
    "original_id": _NUMBERS,
    "attempts": (*_NUMBERS, "text", "character varying"),
    "run_after": _TIMES,
    "created_at": _TIMES,
    "failed_at": (*_TIMES, "date"),
}
#: What they are meant to be; of other types they are read as well as can be.
_MEANT = {
    "id": _WHOLE,
    "original_id": _WHOLE,
    "attempts": _WHOLE,
    "max_attempts": _WHOLE,
    "run_after": _TIMES[:1],
    "created_at": _TIMES[:1],
    "failed_at": _TIMES[:1],
}
_TEXTS = ("error_class", "error_msg", "stacktrace", "failed_by")
#: What is read and not written: a job that goes back is in nobody's hands.
_ONLY_READ = "locked_at"


class Table:
    """One of the tables that letters are in, with the columns that it has and those that statements name."""

    def __init__(self, place: JobsDatabase, role: str, columns: Sequence[Column]) -> None:
        self.name: str = getattr(place, role)
        self.columns = {one.name: one for one in columns}
        prefix, known = ("jobs", JOBS_COLUMNS) if role == "jobs" else ("jobs_dlq", DEAD_COLUMNS)
        self.carried = place.carried
        #: What each is called, by its default name.
        self.called = {
            one: place.column(f"{prefix}.{one}")
            for one in known
            if one != "max_attempts" or place.max_attempts is not None
        }
        self.further = OF_PARKED if role == "parked" else ()

    @property
    def wanted(self) -> set[str]:
        """All that statements name."""
        return {*self.called.values(), *self.carried, *self.further}

    @property
    def missing(self) -> list[str]:
        """What statements name, and is not there."""
        return sorted(self.wanted - self.columns.keys())

    @property
    def unwritten(self) -> list[Column]:
        """What a letter that comes here has no value for."""
        read = self.called.get(_ONLY_READ)
        return [*self.beside, *(one for name, one in self.columns.items() if name == read)]

    @property
    def beside(self) -> list[Column]:
        """What is there, and no statement names."""
        return [one for name, one in self.columns.items() if name not in self.wanted]


def check_columns(
    jobs: Table, dead: Table, parked: Table, casts: Set[tuple[str, str]]
) -> Iterator[Finding]:
    """All there is to say of columns; where some are missing, only that. `casts`: see `columns.casts_of`."""
    tables = (jobs, dead, parked)
    yield from map(_missing, tables)
    if any(one.missing for one in tables):
        return
    for one in tables:
        yield _needed_types(one)
        yield _meant_types(one)
    for source, target in ((dead, jobs), (dead, parked), (parked, jobs)):
        yield _values_fit(source, target, casts)
    yield _nothing_else_needed(
        jobs,
        "a redrive",
        "name them in `carried`, or give them a default (`max_attempts` can be set)",
    )
    drop = "`alter table ... alter column ... drop not null`"
    yield _nothing_else_needed(parked, "parking a letter", drop)
    yield _nothing_generated(jobs, jobs.wanted - {jobs.called[_ONLY_READ]})
    yield _nothing_generated(parked, parked.wanted)
    yield from _beside(jobs, dead)
    yield _parked_has_all(dead, parked)


def _missing(table: Table) -> Finding:
    return Finding(
        what=f"columns of {table.name}",
        is_well=not table.missing,
        advice=f"missing: {', '.join(table.missing)}; name them in `columns`, or add them",
    )


def _needed_types(table: Table) -> Finding:
    unfit = _others(table, _NEEDED)
    return Finding(what=f"types of {table.name}", is_well=not unfit, advice="; ".join(unfit))


def _meant_types(table: Table) -> Finding:
    unfit = _others(table, _MEANT)
    unfit += [
        f"{name} is {table.columns[name].kind}, and not text"
        for one, name in table.called.items()
        if one in _TEXTS and not table.columns[name].is_text
    ]
    return Finding(
        what=f"usual types of {table.name}",
        is_well=not unfit,
        advice=f"{'; '.join(unfit)}: read as well as can be; a time without a zone is taken for the session's own, most likely UTC",
        is_needed=False,
    )


def _others(table: Table, kinds: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"{name} is {table.columns[name].kind}, and not {' or '.join(kinds[one])}"
        for one, name in table.called.items()
        if one in kinds and table.columns[name].kind not in kinds[one]
    ]


def _values_fit(source: Table, target: Table, casts: Set[tuple[str, str]]) -> Finding:
    moved = [
        (source.called[one], target.called[one])
        for one in source.called
        if target.further or one == "payload"
    ]
    moved += [(one, one) for one in source.carried]
    unfit = [
        f"{one} is {source.columns[one].kind}, and {other} of {target.name} {target.columns[other].kind}"
        for one, other in moved
        if not target.columns[other].takes(source.columns[one], casts)
    ]
    return Finding(
        what=f"{target.name} takes what {source.name} has",
        is_well=not unfit,
        advice=f"{'; '.join(unfit)}: each letter would be refused",
    )


def _nothing_else_needed(table: Table, what: str, advice: str) -> Finding:
    needed = [one.name for one in table.unwritten if one.has_to_be_given]
    return Finding(
        what=f"no further values needed in {table.name}",
        is_well=not needed,
        advice=f"{', '.join(needed)}: not null without a default, so that {what} would be refused; {advice}",
    )


def _nothing_generated(table: Table, written: Set[str]) -> Finding:
    generated = sorted(one for one in written if table.columns[one].is_generated)
    return Finding(
        what=f"no generated columns to be written in {table.name}",
        is_well=not generated,
        advice=f"{', '.join(generated)}: generated, so that each letter would be refused; "
        "`alter table ... alter column ... drop expression`, or name another in `columns`",
    )


def _beside(jobs: Table, dead: Table) -> Iterator[Finding]:
    if names := sorted(one.name for one in dead.beside):
        yield Finding(
            what=f"no further columns of {dead.name}",
            is_well=False,
            advice=f"not kept of a letter that becomes a job: {', '.join(names)}; name in `carried` what {jobs.name} has too",
            is_needed=False,
        )


def _parked_has_all(dead: Table, parked: Table) -> Finding:
    lacks = [one for name, one in dead.columns.items() if name not in parked.columns]
    added = ", ".join(f'add column "{one.name}" {one.declared}' for one in lacks)
    return Finding(
        what=f"{parked.name} has the columns of {dead.name}",
        is_well=not lacks,
        advice=f"`alter table {quoted(parked.name)} {added}`: without, it is lost of a row that is parked, and undo refuses rows that have a value there",
        is_needed=False,
    )
