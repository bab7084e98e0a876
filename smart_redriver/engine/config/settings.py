"""Owns the re-driver's settings.

``Settings`` is the one table of names, defaults, ranges and units. The CDK app reads context keys
through it at synth, and the function reads environment variables through it at cold start, so
a configuration that deploys also starts. Standard library only: synth, Lambda and simulator all import this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Self

from smart_redriver.engine.config.kinds import (
    YES_OR_NO,
    Value,
    choice,
    number,
    read_fields,
    setting,
    slips,
    whole,
)
from smart_redriver.engine.config.recovery import alarm_arns, downstream_name
from smart_redriver.engine.errors import Fault, SettingsError

#: SQS hides one message for at most 12 h, which also bounds how long a letter can be held.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
_MAX_VISIBILITY_SECONDS = 43_200
#: SQS's own delay (``DelaySeconds``) ends here; the first backoff must fit in it.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
_MAX_SQS_DELAY_SECONDS = 900


class Mode(str, Enum):
    """The use of a pass's decisions: it applies them, only reports them, or makes none."""

    AUTOMATIC = "automatic"
    DRY_RUN = "dry_run"
    PAUSED = "paused"


class FifoPoison(str, Enum):
    """The fate of a poison pill at the head of its group in a FIFO queue: parked, or left for a person."""

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
    recovery_alarms: tuple[str, ...] = setting(
        (), alarm_arns(), "of the consumer's: back to OK, each sends a canary at once"
    )
    downstream: str = setting(
        "", downstream_name(), "what the consumer needs; queues that share it tell each other"
    )
    failure_threshold: int = setting(
        3, whole(1, 100), "failed batches in a row that open the circuit"
    )
    success_threshold: int = setting(2, whole(1, 100), "canaries in a row that close the circuit")
    failure_rate: float = setting(
        0.5, number(0.01, 1), "share of a batch that returns to make it a failure"
    )
    canary_size: int = setting(1, whole(1, 100_000), "letters in a canary, at least")
    cool_down_seconds: int = setting(60, whole(1, 86_400), "seconds, first cool-down")
    max_cool_down_seconds: int = setting(1800, whole(1, 86_400), "seconds, longest cool-down")
    verdict_grace_seconds: int = setting(
        65, whole(0, 3600), "seconds that a verdict waits beyond the last possible return"
    )
    failure_details_days: int = setting(
        45, whole(0, 45), "days that a letter's traceback is kept, 0 for none"
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
        """Read ``values`` by setting name; a missing one takes its default.

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
        """Read the settings' upper-case variables; ``env`` also holds other variables.

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
        """Every setting of the function as an environment variable: the inverse of ``from_env``."""
        others = (*FOR_MADE_QUEUES, *FOR_SYNTH)
        own = (name for name in self.names() if name not in others)
        return {name.upper(): _text(getattr(self, name)) for name in own}


#: Settings for a source queue that the stack makes; no function reads them.
FOR_MADE_QUEUES = (
    "source_visibility_timeout_seconds",
    "max_receive_count",
    "with_sample_consumer",
)

#: Settings that only synth uses, and no function reads.
FOR_SYNTH = ("recovery_alarms",)

#: Pairs whose first setting must not exceed the second.
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


#: Variables of Lambda and of software that runs in it; one of them may be spelt like a setting.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
_OTHERS_VARIABLES = ("AWS_", "LAMBDA_", "POWERTOOLS_", "OTEL_", "_")


def _slips(env: Mapping[str, str], names: tuple[str, ...]) -> list[Fault]:
    """A fault for each variable that is almost a setting's. One-word names are too short to count as such."""
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
