"""Letters that somebody names by their ids: the rows that they may be in, and whether anything of them is about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from redrive.postgres.database import Database
from redrive.postgres.letters import job_id

#: What a bigint can be. https://www.postgresql.org/docs/current/datatype-numeric.html
_NUMBERS = range(-(1 << 63), 1 << 63)
_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What ids name: rows of the DLQ, rows of the parking lot, jobs."""

    dead: frozenset[int]
    parked: frozenset[int]
    jobs: frozenset[int]

    @classmethod
    def of(cls, ids: Iterable[str]) -> Self:
        numbers = {"dlq": set[int](), "parked": set[int](), "job": set[int]()}
        for one in ids:
            table, _, number = one.partition("-")
            digits = number.removeprefix("-")
            is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
            if table in numbers and is_number and int(number) in _NUMBERS:
                numbers[table].add(int(number))
        return cls(*map(frozenset, numbers.values()))

    @property
    def rows(self) -> frozenset[int]:
        """A row keeps its number where it is parked, so that `dlq-17` is 17 there, too."""
        return self.dead | self.parked


def rows_named(database: Database, ids: Iterable[str], *, is_parked: bool) -> list[int]:
    """The numbers of rows that letters of these ids may be in. Raises CallFailed."""
    numbers = _Numbers.of(ids)
    if is_parked:
        return sorted(numbers.rows)
    rows = set(numbers.dead)
    if numbers.jobs:
        parameters = {"jobs": sorted(numbers.jobs)}
        statement = database.statements.rows_of_jobs
        rows |= {row for (row,) in database.run("FindLetters", statement, parameters)}
    return sorted(rows)


def about(database: Database, ids: Iterable[str]) -> set[str]:
    """Those ids of which something is left: a row in the DLQ or the parking lot, a job, or a note that it was sent.

    Ids of another kind are about: nobody can know. Raises CallFailed.
    """
    ids = set(ids)
    numbers = _Numbers.of(ids)
    parameters = {"rows": sorted(numbers.rows), "jobs": sorted(numbers.jobs)}
    found = database.run("FindLetters", database.statements.about, parameters)
    rows = {number for is_job, number in found if not is_job}
    there = {f"{table}-{row}" for row in rows for table in ("dlq", "parked")}
    there |= {job_id(number) for is_job, number in found if is_job}
    known = {f"dlq-{row}" for row in numbers.dead} | {f"parked-{row}" for row in numbers.parked}
    known |= {job_id(job) for job in numbers.jobs}
    return ids - (known - there)
