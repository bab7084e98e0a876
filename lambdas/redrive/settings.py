"""Owns what the re-driver can be told: the settings, and where its queues and table are.

``Settings`` is the one table of names, defaults, ranges and units. The CDK app reads context keys
through it at synth, and the function reads environment variables through it at cold start, so
what deploys also starts. Standard library only: synth, Lambda and simulator all import this.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Generic, Self, TypeVar

from redrive.errors import Fault, SettingsError

Value = str | int | float | bool
T = TypeVar("T")
N = TypeVar("N", int, float)

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


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How a value is read. ``parse`` raises ValueError for anything but what is ``accepted``."""

    parse: Callable[[Value], T]
    accepted: str


def whole(low: int, high: int) -> Kind[int]:
    """A whole number of this range."""

    def parse(value: Value) -> int:
        # The CDK hands a number of cdk.json over as 5 or as 5.0, a `-c` option as "5".
        text = str(value).strip()
        if not re.fullmatch(r"[+-]?[0-9]+(\.0)?", text):
            raise ValueError
        return _within(low, int(text.removesuffix(".0")), high)

    return Kind(parse, f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Kind[float]:
    """A number of this range."""

    def parse(value: Value) -> float:
        text = str(value)
        if "_" in text:  # Python's own notation, 1_000, is nobody else's
            raise ValueError
        return _within(low, float(text), high)

    return Kind(parse, f"a number from {low:g} to {high:g}")


def _within(low: N, value: N, high: N) -> N:
    if not low <= value <= high:  # said this way round, NaN is refused too
        raise ValueError
    return value


def _yes_or_no() -> Kind[bool]:
    def parse(value: Value) -> bool:
        word = str(value).strip().lower()
        if word not in ("true", "false"):
            raise ValueError
        return word == "true"

    return Kind(parse, "true or false")


def _mode() -> Kind[Mode]:
    def parse(value: Value) -> Mode:
        return Mode(value.strip() if isinstance(value, str) else value)

    return Kind(parse, ", ".join(mode.value for mode in Mode))


#: A yes or no of the CDK app that is no setting of the function (see stacks/settings.py).
YES_OR_NO = _yes_or_no()


def setting(default: T, kind: Kind[T], meaning: str) -> T:
    """A dataclass field that is a setting; `read_fields` reads it."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def read_fields(
    table: type[Any], values: Mapping[str, Value]
) -> tuple[dict[str, Any], list[Fault]]:
    """Read the settings of a dataclass made of `setting` fields; faulty ones stay at their defaults."""
    read: dict[str, Any] = {}
    faults: list[Fault] = []
    for one in fields(table):
        read[one.name] = one.default
        if one.name in values:
            kind: Kind[Any] = one.metadata["kind"]
            try:
                read[one.name] = kind.parse(values[one.name])
            except ValueError:
                seen = values[one.name]
                accepted = f"{kind.accepted} ({one.metadata['meaning']})"
                faults.append(Fault(setting=one.name, seen=seen, accepted=accepted))
    return read, faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting with its default, range and unit. Get checked ones by ``parse``."""

    mode: Mode = setting(Mode.AUTOMATIC, _mode(), "what a pass does with its decisions")
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

        Raises SettingsError listing every fault.
        """
        return cls.parse({name: env[name.upper()] for name in cls.names() if name.upper() in env})

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


def _text(value: Value) -> str:
    """Write a value so that its kind reads it back to the same value."""
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where the function's queues and table are.

    ``queue_name`` is the source queue's name. ``further_source_urls`` are other source queues that
    share its DLQ; in the environment they are one text, separated by spaces.
    """

    queue_name: str = field(metadata={"variable": "QUEUE_NAME"})
    table_name: str = field(metadata={"variable": "DYNAMODB_TABLE_NAME"})
    dlq_url: str = field(metadata={"variable": "DLQ_URL"})
    source_queue_url: str = field(metadata={"variable": "SOURCE_QUEUE_URL"})
    parking_lot_url: str = field(metadata={"variable": "PARKING_LOT_URL"})
    further_source_urls: tuple[str, ...] = ()

    @property
    def source_urls(self) -> tuple[str, ...]:
        """Every source queue that shares the DLQ, the first one first."""
        return (self.source_queue_url, *self.further_source_urls)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the variables. Raises SettingsError listing all that are missing or empty.

        Only ``SOURCE_QUEUE_URLS`` may be: most DLQs have one source.
        """
        variables = _variables(cls)
        faults = [
            Fault(setting=variable, seen=env.get(variable), accepted="a name or URL, not empty")
            for variable in variables.values()
            if not env.get(variable)
        ]
        if faults:
            raise SettingsError(faults)
        places = {name: env[variable] for name, variable in variables.items()}
        return cls(**places, further_source_urls=tuple(env.get(_FURTHER_SOURCES, "").split()))

    def to_env(self) -> dict[str, str]:
        """The variables: the inverse of ``from_env``."""
        env = {variable: str(getattr(self, name)) for name, variable in _variables(self).items()}
        if self.further_source_urls:
            env[_FURTHER_SOURCES] = " ".join(self.further_source_urls)
        return env


_FURTHER_SOURCES = "SOURCE_QUEUE_URLS"


def _variables(deployment: Deployment | type[Deployment]) -> dict[str, str]:
    """The environment variables that each deployment needs, by the field that each is read into."""
    return {
        place.name: str(place.metadata["variable"])
        for place in fields(deployment)
        if "variable" in place.metadata
    }
