"""The place of a worker queue in Postgres, and the names of its tables and columns. Standard library only.

One JSON text in the environment has everything. It is checked at synth and at cold start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self

from smart_redriver.engine.config.targets import PLAIN, Origin, is_plain
from smart_redriver.engine.errors import Fault, SettingsError
from smart_redriver.postgres.engine.profiles import OWN, PROFILES, Profile

#: The longest name in Postgres. https://www.postgresql.org/docs/current/limits.html
LONGEST = 63

_IDENTIFIER = rf"[A-Za-z_][A-Za-z0-9_$]{{0,{LONGEST - 1}}}"
_TABLE = re.compile(rf"({_IDENTIFIER}\.)?{_IDENTIFIER}")
_COLUMN = re.compile(_IDENTIFIER)

#: The schema of tables whose names have none, unless somebody changed that.
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
#: Each column by its default name. The part before the dot is the table.
COLUMNS = (
    *(f"jobs.{one}" for one in JOBS_COLUMNS),
    *(f"jobs_dlq.{one}" for one in DEAD_COLUMNS),
)
#: Types of ids that are not numbers, and the columns that may have one.
ID_TYPES = ("uuid", "text")
_IDS = ("jobs.id", "jobs_dlq.id")
#: Columns of the parking lot in addition to those of the DLQ.
OF_PARKED = ("redrive_trail", "parked_at")
#: The beginning of names that statements give to values of their own, beside the columns that go along.
_OF_STATEMENTS = "our_"


class Clash(NamedTuple):
    """A name that is valid by itself, but clashes with another."""

    entry: str
    seen: object
    accepted: str


def is_table(value: object) -> bool:
    """Whether it can be a table's name, with or without a schema."""
    return isinstance(value, str) and _TABLE.fullmatch(value) is not None


def is_column(value: object) -> bool:
    """Whether it can be a column's name."""
    return isinstance(value, str) and _COLUMN.fullmatch(value) is not None


def unfit_columns(value: object) -> str | None:
    """The accepted values of `columns`, if `value` is something else."""
    if not isinstance(value, Mapping):
        return "names by name"
    if not value.keys() <= set(COLUMNS):
        return f"names for {', '.join(COLUMNS)}"
    return None if all(map(is_column, value.values())) else "columns' names"


def _unfit_ids(value: object) -> str | None:
    """The accepted values of `ids`, if `value` is something else."""
    if not isinstance(value, Mapping) or not value.keys() <= set(_IDS):
        return f"types for {', '.join(_IDS)}"
    return None if all(one in ID_TYPES for one in value.values()) else " or ".join(ID_TYPES)


def same_table(name: str) -> str:
    """A common form for all spellings of a table's name."""
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
    """A column of a table that two of `COLUMNS` are: `called` says what each is called,
    by itself or as `columns` has it.
    """
    known: dict[tuple[str, str], str] = {("jobs_dlq", one): "the parking lot" for one in OF_PARKED}
    for one in COLUMNS:
        table, name = one.partition(".")[0], called(one)
        if (other := known.setdefault((table, name), one)) != one:
            told, beside = (one, other) if one in columns else (other, one)
            yield Clash(f"columns {told}", name, f"another column than that of {beside}")


def carried_clashes(
    carried: Sequence[str], called: Callable[[str], str], *, sets_max_attempts: bool
) -> Iterator[Clash]:
    """Yield columns that would be written twice. `max_attempts` may be carried if the configuration does not set it."""
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


_HOST = re.compile(r"[A-Za-z0-9_./-]{1,255}")
_NAME = re.compile(r"[^\x00-\x1f]{1,128}")
_SECRET = re.compile(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}", re.ASCII
)

#: Tables by their roles, as `JobsDatabase` calls them.
_TABLES = ("jobs", "dead_letters", "parked", "held", "redriven")
_NEEDED = ("host", "dbname")
#: Keys for two tables, and never for a library's one.
_OF_TWO_TABLES = ("dead_letters", "sequence", "columns", "ids", "carried", "in_hand_until")
#: The end of the name for a library's dead letters, after its table's name.
_DEAD_PART = "_dead"
#: Objects, by what says what each takes.
_UNFIT = {"columns": unfit_columns, "ids": _unfit_ids}
_LISTS = ("carried", "permanent")
#: Numbers with their limits.
_NUMBERS = {"port": (1, 65_535), "max_attempts": (1, 1000), "time_to_fail_seconds": (1, 604_800)}
_TEXTS = {
    "host": (_HOST, "a host's name, or a socket's directory"),
    "dbname": (_NAME, "a database's name"),
    "user": (_NAME, "a role's name"),
    "secret": (_SECRET, "the ARN of a secret"),
    "sslrootcert": (_NAME, "a file's name, or system"),
}

#: The default number of a job's tries.
TRIES = 3

#: Errors that workers with the kit raise for jobs that can never succeed.
PERMANENT = ("smart_redriver.consumer.errors.PermanentError",)

#: libpq's modes that prevent interception. The others are for a socket or loopback on one's own machine.
#: https://www.postgresql.org/docs/current/libpq-ssl.html
VERIFIED = "verify-full"
SSL_MODES = (VERIFIED, "verify-ca", "require", "disable")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsDatabase:
    """A database with a worker queue. Get checked ones by `parse`.

    Attributes:
        host: a name, or the directory of a socket. `port`: the server's port.
        dbname, user: `user` may come from the secret.
        secret: ARN of the secret with `username` and `password`. Without one, IAM authentication is used, or none if
            `sslmode` is "disable".
        sslmode: libpq's mode. `sslrootcert`: a file of authorities, or libpq's "system" for the machine's own.
        profile: the owner of the tables: the team, or a job library, for which `jobs` is the one table.
        jobs, dead_letters: the user's two tables. `parked`, `held`, `redriven`: ours. Each may have a schema.
        sequence: what gives jobs their ids if `jobs` is a view; empty for the column's own.
        columns: the names of columns of `COLUMNS` that differ from the default.
        ids: the types of ids that are not numbers, `jobs.id` and `jobs_dlq.id`.
        carried: further columns of both the user's tables that are copied along.
        permanent: classes of errors that no retry can fix. Their letters are parked at once.
        max_attempts: for a job that goes back; None for the table's own default.
        in_hand_until: column of `jobs` with the time until which a tried job is in a worker's hands, if workers set a
            visibility timeout and no `locked_at`.
        time_to_fail_seconds: the longest time from a job's first try to its move to `dead_letters`.

    """

    #: The function's variable that `encode` is for, and what faults name.
    variable: ClassVar[str] = "DATABASE"
    names: ClassVar[str] = PLAIN
    origin: ClassVar[Origin] = Origin.POSTGRES

    host: str
    dbname: str
    port: int = 5432
    user: str = ""
    secret: str = ""
    sslmode: str = VERIFIED
    sslrootcert: str = "system"
    profile: str = OWN
    jobs: str = "jobs"
    dead_letters: str = "jobs_dlq"
    parked: str = "jobs_parked"
    held: str = "jobs_held"
    redriven: str = "jobs_redriven"
    sequence: str = ""
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ids: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    carried: tuple[str, ...] = ()
    permanent: tuple[str, ...] = PERMANENT
    max_attempts: int | None = None
    in_hand_until: str = ""
    time_to_fail_seconds: int = 3600

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `encode` writes. Raises SettingsError listing every fault."""
        return cls.parse_as(text, None)

    @classmethod
    def parse_as(cls, text: str, profile: str | None) -> Self:
        """The same, with another profile if one is named. Raises SettingsError listing every fault."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise SettingsError([_fault("", text, "an object of JSON")])
        return cls.of(given if profile is None else {**given, "profile": profile})

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Read a person's table. Raises SettingsError listing every fault."""
        known = [one.name for one in fields(cls)]
        values = {name: given[name] for name in known if given.get(name) is not None}
        if faults := list(_faults(given, known, values)):
            raise SettingsError(faults)
        if profile := PROFILES.get(values.get("profile", OWN)):
            values.setdefault("jobs", profile.table)
            # Not a table, but the name of a part of one.
            values["dead_letters"] = f"{values['jobs']}{_DEAD_PART}"
        lists = {name: tuple(value) for name, value in values.items() if name in _LISTS}
        database = cls(**{**values, **lists})
        if clashes := database._clashes():
            raise SettingsError(clashes)
        return database

    def encode(self) -> str:
        """The text that `parse` reads: all values that differ from the defaults."""
        told = {
            one.name: value
            for one in fields(self)
            if (value := self._told(one.name, one.default)) is not None
            and not (self.library and one.name == "dead_letters")
        }
        return json.dumps(told, separators=(",", ":"), sort_keys=True)

    def _told(self, name: str, usual: object) -> Any:
        value = getattr(self, name)
        if name in _UNFIT:
            return dict(value) or None
        return None if value == usual else value

    def column(self, name: str) -> str:
        """The name of a column such as `jobs.payload` in its table."""
        return self.columns.get(name, name.partition(".")[2])

    @property
    def library(self) -> Profile | None:
        """The library that owns the one table; None if there are two tables."""
        return PROFILES.get(self.profile)

    @property
    def in_hand_column(self) -> str:
        """The column that shows whether a worker has a job in hand."""
        return self.in_hand_until or self.column("jobs.locked_at")

    @property
    def urls(self) -> tuple[str, str, str]:
        """The addresses of the dead letters, the jobs and the parking lot, for people."""
        return self.url(self.dead_letters), self.url(self.jobs), self.url(self.parked)

    @staticmethod
    def may_be_called(name: str) -> bool:
        """Whether the queue can have this name."""
        return is_plain(name)

    @property
    def further_sources(self) -> tuple[str, ...]:
        """Return none, because a table of dead jobs belongs to one queue."""
        return ()

    @property
    def names_within(self) -> str:
        """Return nothing, because the queue's name is its own."""
        return ""

    @property
    def services(self) -> tuple[str, ...]:
        """The service that has the password, if there is one."""
        return ("secretsmanager",) if self.secret else ()

    def url(self, table: str) -> str:
        """The address of one of the tables, for people."""
        return f"postgresql://{self.host}:{self.port}/{self.dbname}/{table}"

    @property
    def tries(self) -> int:
        """Tries of one job before it becomes a letter, as far as is known.

        Never one, because a job that was tried and is still there has a try left.
        """
        return max(2, self.max_attempts or TRIES)

    @property
    def time_to_fail(self) -> timedelta:
        """`time_to_fail_seconds`."""
        return timedelta(seconds=self.time_to_fail_seconds)

    @property
    def tables(self) -> tuple[str, ...]:
        """The five tables."""
        return (self.jobs, self.dead_letters, self.parked, self.held, self.redriven)

    @property
    def looks(self) -> str:
        """The table with the latest look. It is beside `redriven`, and named after it."""
        return f"{self.redriven}_looks"

    @property
    def keys(self) -> str:
        """The table with the numbers of dead jobs, if a library's ids are not numbers."""
        return f"{self.redriven}_keys"

    @property
    def places(self) -> tuple[str, ...]:
        """The six tables with their server. Equal for two queues that share a table, in any spelling."""
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


def _faults(
    given: Mapping[str, Any], known: Sequence[str], values: Mapping[str, Any]
) -> Iterator[Fault]:
    """The faults that names and values have by themselves."""
    for name in given:
        if name not in known:
            yield _fault(name, given[name], "no such name")
    for name in _NEEDED:
        if name not in values:
            yield _fault(name, None, "a text, not empty")
    if values.get("profile", OWN) != OWN:
        for name in _OF_TWO_TABLES:
            if name in given:
                yield _fault(name, given[name], "nothing: the profile says it")
    for name, value in values.items():
        if (accepted := _unfit(name, value)) is not None:
            yield _fault(name, value, accepted)


def _unfit(name: str, value: object) -> str | None:
    """The accepted values, if `value` is none of them; else None."""
    if unfit := _UNFIT.get(name):
        return unfit(value)
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        return None if _is_within(low, high, value) else f"{low} to {high}"
    fits, accepted = _kind_of(name)
    return None if fits(value) else accepted


def _kind_of(name: str) -> tuple[Callable[[object], bool], str]:
    """The check of a value with this name, and its words."""
    if name in (*_TABLES, "sequence"):
        return is_table, (
            "a table's name of letters, digits, _ and $, with a schema before it where it needs one; "
            "make a view of a table with another name"
        )
    if name == "profile":
        return [OWN, *PROFILES].__contains__, f"{OWN}, {', '.join(PROFILES)}"
    if name == "in_hand_until":
        return is_column, "a column's name"
    if name == "carried":
        return partial(_are, is_column), "a list of columns' names"
    if name == "permanent":
        classes = partial(_are, partial(_matches, _NAME))
        return classes, "a list of errors' classes, as the table names them"
    if name == "sslmode":
        return SSL_MODES.__contains__, ", ".join(SSL_MODES)
    pattern, accepted = _TEXTS[name]
    is_optional = name in ("user", "secret")
    return lambda value: (is_optional and value == "") or _matches(pattern, value), accepted


def _is_within(low: int, high: int, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _are(fits: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(fits, value))


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _fault(name: str, seen: object, accepted: str) -> Fault:
    return Fault(setting=f"{JobsDatabase.variable} {name}".strip(), seen=seen, accepted=accepted)
