"""Owns what the re-driver can be told: the settings, and where its queues and table are.

``Settings`` is the one table of names, defaults, ranges and units. The CDK app reads context keys
through it at synth, and the function reads environment variables through it at cold start, so
what deploys also starts. Standard library only: synth, Lambda and simulator all import this.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Self

from redrive.databases import VARIABLE, JobsDatabase
from redrive.errors import Fault, SettingsError
from redrive.kinds import YES_OR_NO, Value, choice, number, read_fields, setting, whole
from redrive.queue_names import PLAIN, is_fifo, is_plain
from redrive.spelling import slips
from redrive.targets import Origin, Target, read_targets

#: SQS hides one message for at most 12 h, which also bounds how long a letter can be held.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
_MAX_VISIBILITY_SECONDS = 43_200
#: SQS's own delay (``DelaySeconds``) ends here; the first backoff must fit in it.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
_MAX_SQS_DELAY_SECONDS = 900


class Mode(str, Enum):
    """What a pass does with its decisions: applies them, only reports them, or makes none."""

    AUTOMATIC = "automatic"
    DRY_RUN = "dry_run"
    PAUSED = "paused"


class FifoPoison(str, Enum):
    """What becomes of a poison pill at the head of its group in a FIFO queue: parked, or left for a person to see to."""

    PARK = "park"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting with its default, range and unit. Get checked ones by ``parse``."""

    mode: Mode = setting(Mode.AUTOMATIC, choice(Mode), "what a pass does with its decisions")
    schedule_minutes: int = setting(
        5, whole(1, 1440), "minutes between looks at an idle queue; about one while letters are out"
    )
    max_attempts: int = setting(5, whole(1, 100), "strikes before a letter is parked")
    last_chance_seconds: int = setting(
        21_600, whole(0, 604_800), "seconds from a letter's first strike to its last chance"
    )
    give_up_seconds: int = setting(
        259_200, whole(3600, 1_209_600), "seconds without a working consumer before parking"
    )
    fifo_poison: FifoPoison = setting(
        FifoPoison.PARK, choice(FifoPoison), "what becomes of poison that its group waits for"
    )
    base_delay_seconds: int = setting(
        60, whole(0, _MAX_SQS_DELAY_SECONDS), "seconds, first backoff"
    )
    max_delay_seconds: int = setting(
        900, whole(0, _MAX_VISIBILITY_SECONDS), "seconds, longest backoff"
    )
    initial_window: int = setting(5, whole(1, 100_000), "letters awaiting a verdict at first")
    max_window: int = setting(50_000, whole(1, 100_000), "letters awaiting a verdict at most")
    max_rate: float = setting(100.0, number(0, 100_000), "letters a second, 0 for no limit")
    failure_threshold: int = setting(
        3, whole(1, 100), "failed batches in a row that open the circuit"
    )
    success_threshold: int = setting(2, whole(1, 100), "canaries in a row that close the circuit")
    failure_rate: float = setting(
        0.5, number(0.01, 1), "share of a batch that returns to make it a failure"
    )
    canary_size: int = setting(1, whole(1, 100_000), "letters in a canary")
    cool_down_seconds: int = setting(60, whole(1, 86_400), "seconds, first cool-down")
    max_cool_down_seconds: int = setting(1800, whole(1, 86_400), "seconds, longest cool-down")
    verdict_grace_seconds: int = setting(
        65, whole(0, 3600), "seconds that a verdict waits beyond the last possible return"
    )
    memory_mib: int = setting(512, whole(128, 10_240), "MiB of the function's memory")
    source_visibility_timeout_seconds: int = setting(
        30, whole(1, _MAX_VISIBILITY_SECONDS), "seconds, for a source queue made by the stack"
    )
    max_receive_count: int = setting(
        3, whole(1, 1000), "receives before SQS moves a message to the dead-letter queue"
    )
    with_sample_consumer: bool = setting(False, YES_OR_NO, "deploys the example consumer")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The settings' names, in the order of the table."""
        return tuple(setting.name for setting in fields(cls))

    @classmethod
    def parse(cls, values: Mapping[str, Value]) -> Self:
        """Read ``values`` by setting name; what is left out takes its default.

        Names that are no settings are ignored. Raises SettingsError listing every fault.
        """
        read, faults = read_fields(cls, values)
        unread = {fault.setting for fault in faults}
        faults += _disorder(read, given=values, unread=unread)
        if faults:
            raise SettingsError(faults)
        return cls(**read)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the upper-case variables of the settings; ``env`` holds others' too.

        Raises SettingsError listing every fault, variables that are a slip away from a setting included.
        """
        faults = _slips(env, cls.names())
        try:
            settings = cls.parse(
                {name: env[name.upper()] for name in cls.names() if name.upper() in env}
            )
        except SettingsError as error:
            faults += error.faults
        if faults:
            raise SettingsError(faults)
        return settings

    def to_env(self) -> dict[str, str]:
        """Every setting as an environment variable: the inverse of ``from_env``."""
        return {name.upper(): _text(getattr(self, name)) for name in self.names()}


#: Pairs of which the first must not exceed the second.
_ORDERED = (
    ("base_delay_seconds", "max_delay_seconds"),
    ("initial_window", "max_window"),
    ("canary_size", "max_window"),
    ("cool_down_seconds", "max_cool_down_seconds"),
)


def _disorder(
    read: Mapping[str, Any], *, given: Mapping[str, Value], unread: set[str]
) -> Iterator[Fault]:
    """Name a setting that somebody gave, not a default they have never seen."""
    for low, high in _ORDERED:
        if read[low] <= read[high] or unread & {low, high}:
            continue
        if low in given:
            accepted = f"at most {high}, which is {read[high]}"
            yield Fault(setting=low, seen=given[low], accepted=accepted)
        else:
            accepted = f"at least {low}, which is {read[low]}"
            yield Fault(setting=high, seen=given[high], accepted=accepted)


#: Variables that Lambda and what runs in it have; one of theirs may be spelt like a setting.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OTHERS_VARIABLES = ("AWS_", "LAMBDA_", "POWERTOOLS_", "OTEL_", "_")


def _slips(env: Mapping[str, str], names: tuple[str, ...]) -> list[Fault]:
    """A fault for each variable that is almost a setting's. A name of one word is too short to be taken for one."""
    ours = {name.upper() for name in names}
    others = [
        one
        for one in env
        if "_" in one and one not in ours and not one.startswith(_OTHERS_VARIABLES)
    ]
    in_lower_case = {one: one for one in others if one in names}
    return [
        Fault(
            setting=one,
            seen=env[one],
            accepted=f"the name {name.upper()} (no setting is called {one})",
        )
        for one, name in (slips(others, names) | in_lower_case).items()
    ]


def _text(value: Value) -> str:
    """Write a value so that its kind reads it back to the same value."""
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where the function's queues and table are.

    ``queue_name`` is the source queue's name. ``further_source_urls`` are other source queues that
    share its DLQ; in the environment they are one text, separated by spaces. ``outcome_queue_url``
    is where consumers report, empty where there is no such queue.

    A DLQ that another ``origin`` than SQS fills has ``targets`` instead of source queues, and ``queue_name`` is
    the first target's name. ``private_hosts`` are those that web targets may have at addresses that are not public.

    A worker queue in Postgres has a ``database`` and no SQS queue at all: what stands for their URLs names its tables.
    """

    queue_name: str = field(metadata={"variable": "QUEUE_NAME"})
    table_name: str = field(metadata={"variable": "DYNAMODB_TABLE_NAME"})
    dlq_url: str = field(metadata={"variable": "DLQ_URL"})
    source_queue_url: str = field(metadata={"variable": "SOURCE_QUEUE_URL"})
    parking_lot_url: str = field(metadata={"variable": "PARKING_LOT_URL"})
    further_source_urls: tuple[str, ...] = ()
    outcome_queue_url: str = ""
    origin: Origin = Origin.SQS
    targets: tuple[Target, ...] = ()
    private_hosts: tuple[str, ...] = ()
    database: JobsDatabase | None = None

    @classmethod
    def of_database(cls, database: JobsDatabase, *, queue_name: str, table_name: str) -> Self:
        """Where a worker queue is, and its state table."""
        return cls(
            queue_name=queue_name,
            table_name=table_name,
            dlq_url=database.url(database.dead_letters),
            source_queue_url=database.url(database.jobs),
            parking_lot_url=database.url(database.parked),
            origin=Origin.POSTGRES,
            database=database,
        )

    @property
    def source_urls(self) -> tuple[str, ...]:
        """Every source queue that shares the DLQ, the first one first; none where targets take their place."""
        if self.origin is not Origin.SQS:
            return ()
        return (self.source_queue_url, *self.further_source_urls)

    @property
    def source_names(self) -> tuple[str, ...]:
        """What circuits, trails and ledger call them, in the same order.

        All source queues of a DLQ are of its account and Region, so a name tells them apart.
        """
        if self.origin is not Origin.SQS:
            return (self.queue_name, *(one.name for one in self.targets[1:]))
        further = (url.rpartition("/")[2] for url in self.further_source_urls)
        return (self.queue_name, *further)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the variables. Raises SettingsError listing all that are missing or empty, and queues that don't fit.

        Only ``SOURCE_QUEUE_URLS`` may be missing, as most DLQs have one source, and ``OUTCOME_QUEUE_URL``; and with
        another ``ORIGIN`` than SQS, which has ``TARGETS``, all of a source queue's.
        """
        origin = _origin(env)
        if origin is Origin.POSTGRES:
            return cls._of_postgres(env)
        variables = _variables(cls)
        if origin is not Origin.SQS:
            del variables["source_queue_url"]
        faults = [
            Fault(setting=variable, seen=env.get(variable), accepted="a name or URL, not empty")
            for variable in variables.values()
            if not env.get(variable)
        ]
        targets, unfit_targets = read_targets(origin, tuple(env.get(_TARGETS, "").split()))
        if faults := [*faults, *unfit_targets]:
            raise SettingsError(faults)
        places = {name: env[variable] for name, variable in variables.items()}
        further = tuple(env.get(_FURTHER_SOURCES, "").split())
        if unfit := [
            *_in_two_roles(env, further),
            *_of_two_kinds(env, further),
            *_in_order(env, origin),
        ]:
            raise SettingsError(unfit)
        return cls(
            **{"source_queue_url": "", **places},  # type: ignore[arg-type]  # the fields with a variable are texts
            further_source_urls=further,
            outcome_queue_url=env.get(_OUTCOMES, ""),
            origin=origin,
            targets=targets,
            private_hosts=tuple(env.get(_PRIVATE_HOSTS, "").split()),
        )

    @classmethod
    def _of_postgres(cls, env: Mapping[str, str]) -> Self:
        faults = [
            Fault(setting=one, seen=env.get(one), accepted="a name, not empty")
            for one in _OF_POSTGRES
            if not env.get(one)
        ]
        queue_name = env.get("QUEUE_NAME", "")
        if queue_name and not is_plain(queue_name):
            faults.append(Fault(setting="QUEUE_NAME", seen=queue_name, accepted=PLAIN))
        database = None
        try:
            database = JobsDatabase.parse(env.get(VARIABLE, ""))
        except SettingsError as error:
            faults += error.faults
        if database is None or faults:
            raise SettingsError(faults)
        return cls.of_database(
            database, queue_name=queue_name, table_name=env["DYNAMODB_TABLE_NAME"]
        )

    def to_env(self) -> dict[str, str]:
        """The variables: the inverse of ``from_env``."""
        if self.database is not None:
            return {
                "QUEUE_NAME": self.queue_name,
                "DYNAMODB_TABLE_NAME": self.table_name,
                _ORIGIN: self.origin.value,
                VARIABLE: self.database.encode(),
            }
        env = {variable: str(getattr(self, name)) for name, variable in _variables(self).items()}
        if self.further_source_urls:
            env[_FURTHER_SOURCES] = " ".join(self.further_source_urls)
        if self.outcome_queue_url:
            env[_OUTCOMES] = self.outcome_queue_url
        if self.origin is not Origin.SQS:
            del env["SOURCE_QUEUE_URL"]
            env |= {_ORIGIN: self.origin.value, _TARGETS: " ".join(map(str, self.targets))}
        if self.private_hosts:
            env[_PRIVATE_HOSTS] = " ".join(self.private_hosts)
        return env


_FURTHER_SOURCES = "SOURCE_QUEUE_URLS"
_OUTCOMES = "OUTCOME_QUEUE_URL"
_ORIGIN = "ORIGIN"
_TARGETS = "TARGETS"
_PRIVATE_HOSTS = "PRIVATE_HOSTS"
_OF_POSTGRES = ("QUEUE_NAME", "DYNAMODB_TABLE_NAME")


def _origin(env: Mapping[str, str]) -> Origin:
    """What fills the DLQ. Raises SettingsError for what nobody knows."""
    try:
        return Origin(env.get(_ORIGIN) or Origin.SQS)
    except ValueError:
        accepted = ", ".join(one.value for one in Origin)
        raise SettingsError(
            [Fault(setting=_ORIGIN, seen=env[_ORIGIN], accepted=accepted)]
        ) from None


def _in_two_roles(env: Mapping[str, str], further: Sequence[str]) -> Iterator[Fault]:
    """A fault for each queue that is given again: a DLQ that is its own source would have live messages redriven."""
    urls = _urls(env, further)
    if reports := env.get(_OUTCOMES):
        urls.append((_OUTCOMES, reports))
    for place, (role, url) in enumerate(urls):
        if other := next((one for one, earlier in urls[:place] if earlier == url), None):
            yield Fault(setting=role, seen=url, accepted=f"another queue than {other}")


def _of_two_kinds(env: Mapping[str, str], further: Sequence[str]) -> Iterator[Fault]:
    """A fault for each queue that is not FIFO where the first is, or the other way round; reports are never in order."""
    (first, first_url), *others = _urls(env, further)
    in_order = is_fifo(first_url)
    kind = "a FIFO queue" if in_order else "a standard queue"
    for role, url in others:
        if is_fifo(url) != in_order:
            yield Fault(setting=role, seen=url, accepted=f"{kind}, as {first} is")
    if is_fifo(env.get(_OUTCOMES, "")):
        yield Fault(setting=_OUTCOMES, seen=env[_OUTCOMES], accepted="a standard queue")


def _in_order(env: Mapping[str, str], origin: Origin) -> Iterator[Fault]:
    """A fault for a FIFO DLQ that SQS does not fill: nobody else keeps letters in order here."""
    if origin is not Origin.SQS and is_fifo(env["DLQ_URL"]):
        accepted = f"a standard queue, with origin {origin.value}"
        yield Fault(setting="DLQ_URL", seen=env["DLQ_URL"], accepted=accepted)


def _urls(env: Mapping[str, str], further: Sequence[str]) -> list[tuple[str, str]]:
    """The queues that letters are in, each by its variable."""
    one_each = ("SOURCE_QUEUE_URL", "DLQ_URL", "PARKING_LOT_URL")
    return [
        *((role, env[role]) for role in one_each if env.get(role)),
        *((_FURTHER_SOURCES, url) for url in further),
    ]


def _variables(deployment: Deployment | type[Deployment]) -> dict[str, str]:
    """The environment variables that each deployment needs, by the field that each is read into."""
    return {
        place.name: str(place.metadata["variable"])
        for place in fields(deployment)
        if "variable" in place.metadata
    }
