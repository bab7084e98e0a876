"""Where a worker queue in Postgres is, and what its tables and columns are called. Standard library only.

One text of JSON in the environment says it all, checked at synth and at cold start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Self

from redrive.database_names import (
    carried_clashes,
    column_clashes,
    is_column,
    is_table,
    same_table,
    table_clashes,
    unfit_columns,
)
from redrive.errors import Fault, SettingsError

#: What holds the variable, and what faults name.
VARIABLE = "DATABASE"

_HOST = re.compile(r"[A-Za-z0-9_./-]{1,255}")
_NAME = re.compile(r"[^\x00-\x1f]{1,128}")
_SECRET = re.compile(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}", re.ASCII
)

#: Tables by their roles, as `JobsDatabase` calls them.
_TABLES = ("jobs", "dead_letters", "parked", "held", "redriven")
#: Numbers with the least and the most that they may be.
_NUMBERS = {"port": (1, 65_535), "max_attempts": (1, 1000), "time_to_fail_seconds": (1, 604_800)}
_TEXTS = {
    "host": (_HOST, "a host's name, or a socket's directory"),
    "dbname": (_NAME, "a database's name"),
    "user": (_NAME, "a role's name"),
    "secret": (_SECRET, "the ARN of a secret"),
    "sslrootcert": (_NAME, "a file's name, or system"),
}

#: Tries of a job where nobody says how many.
TRIES = 3

#: What workers with the kit raise for it.
PERMANENT = ("smart_redriver.consumer.errors.PermanentError",)

#: libpq's modes that let nobody between; the others are for a socket or a loopback of one's own machine.
#: https://www.postgresql.org/docs/current/libpq-ssl.html
VERIFIED = "verify-full"
SSL_MODES = (VERIFIED, "verify-ca", "require", "disable")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsDatabase:
    """A database with a worker queue. Get checked ones by `parse`.

    Attributes:
        host: a name, or the directory of a socket. `port`: of the server.
        dbname, user: `user` may be left to the secret.
        secret: ARN of the secret with `username` and `password`; without one IAM authentication is used, or none
            where `sslmode` is "disable".
        sslmode: libpq's; `sslrootcert`: file of the authorities, libpq's "system" for the machine's own.
        jobs, dead_letters: the user's two tables; `parked`, `held`, `redriven`: ours. A schema may stand before each.
        columns: what a column of `COLUMNS` is called, where it is called otherwise.
        carried: further columns that both tables of the user have, and that go along.
        permanent: classes of errors that no retry can heal; their letters are parked at once.
        max_attempts: of a job that goes back; None for the table's own default.
        time_to_fail_seconds: from a job's first try to its move to `dead_letters`, at the longest.

    """

    host: str
    dbname: str
    port: int = 5432
    user: str = ""
    secret: str = ""
    sslmode: str = VERIFIED
    sslrootcert: str = "system"
    jobs: str = "jobs"
    dead_letters: str = "jobs_dlq"
    parked: str = "jobs_parked"
    held: str = "jobs_held"
    redriven: str = "jobs_redriven"
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    carried: tuple[str, ...] = ()
    permanent: tuple[str, ...] = PERMANENT
    max_attempts: int | None = None
    time_to_fail_seconds: int = 3600

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `encode` writes. Raises SettingsError listing every fault."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise SettingsError([_fault("", text, "an object of JSON")])
        return cls.of(given)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """What a person's table says. Raises SettingsError listing every fault."""
        known = {one.name: one for one in fields(cls)}
        faults = [_fault(name, given[name], "no such name") for name in given if name not in known]
        faults += [
            _fault(name, None, "a text, not empty")
            for name in ("host", "dbname")
            if given.get(name) is None
        ]
        values = {name: given[name] for name in known if given.get(name) is not None}
        faults += [
            _fault(name, value, accepted)
            for name, value in values.items()
            if (accepted := _unfit(name, value)) is not None
        ]
        if faults:
            raise SettingsError(faults)
        for name in ("carried", "permanent"):
            if name in values:
                values[name] = tuple(values[name])
        database = cls(**values)
        if clashes := database._clashes():
            raise SettingsError(clashes)
        return database

    def encode(self) -> str:
        """What `parse` reads: all that differs from the defaults."""
        told = {
            one.name: value
            for one in fields(self)
            if (value := self._told(one.name, one.default)) is not None
        }
        return json.dumps(told, separators=(",", ":"), sort_keys=True)

    def _told(self, name: str, usual: object) -> Any:
        value = getattr(self, name)
        if name == "columns":
            return dict(value) or None
        return None if value == usual else value

    def column(self, name: str) -> str:
        """What the column `jobs.payload`, say, is called in its table."""
        return self.columns.get(name, name.partition(".")[2])

    def url(self, table: str) -> str:
        """What people are shown for one of the tables."""
        return f"postgresql://{self.host}:{self.port}/{self.dbname}/{table}"

    @property
    def tries(self) -> int:
        """Tries of one job before it is a letter, as far as is known. Never one: what was tried and is there has one left."""
        return max(2, self.max_attempts or TRIES)

    @property
    def time_to_fail(self) -> timedelta:
        """`time_to_fail_seconds`."""
        return timedelta(seconds=self.time_to_fail_seconds)

    @property
    def tables(self) -> tuple[str, ...]:
        """All five."""
        return (self.jobs, self.dead_letters, self.parked, self.held, self.redriven)

    @property
    def looks(self) -> str:
        """The table that has the latest look; it is beside `redriven`, and named after it."""
        return f"{self.redriven}_looks"

    @property
    def places(self) -> tuple[str, ...]:
        """All six, with where they are; alike for two queues that share one, however it is spelt."""
        server = f"{self.host.lower().rstrip('.')}:{self.port}/{self.dbname}"
        return tuple(f"{server}/{same_table(one)}" for one in (*self.tables, self.looks))

    def _clashes(self) -> list[Fault]:
        roles = {name: getattr(self, name) for name in _TABLES}
        faults = [
            _fault(*one)
            for one in (
                *table_clashes(roles, self.looks),
                *column_clashes(self.columns, self.column),
                *carried_clashes(
                    self.carried,
                    self.column,
                    sets_max_attempts=self.max_attempts is not None,
                ),
            )
        ]
        if self.secret and self.sslmode == "disable":
            faults.append(_fault("sslmode", self.sslmode, "TLS, where a password is sent"))
        if self.sslmode != "disable" and not (self.secret or self.user):
            faults.append(_fault("user", None, "a user for IAM authentication, or a secret"))
        return faults


def _unfit(name: str, value: object) -> str | None:
    """What is accepted where `value` is not; None where it is."""
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return None if is_number and low <= value <= high else f"{low} to {high}"  # type: ignore[operator]
    if name in _TABLES:
        accepted = "a table's name, with a schema before it where it needs one"
        return None if is_table(value) else accepted
    if name == "columns":
        return unfit_columns(value)
    if name == "carried":
        return None if _are(is_column, value) else "a list of columns' names"
    if name == "permanent":
        fits = _are(lambda one: _matches(_NAME, one), value)
        return None if fits else "a list of errors' classes, as the table names them"
    if name == "sslmode":
        return None if value in SSL_MODES else ", ".join(SSL_MODES)
    if value == "" and name in ("user", "secret"):
        return None
    pattern, accepted = _TEXTS[name]
    return None if _matches(pattern, value) else accepted


def _are(fits: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(fits, value))


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _fault(name: str, seen: object, accepted: str) -> Fault:
    return Fault(setting=f"{VARIABLE} {name}".strip(), seen=seen, accepted=accepted)
