"""Reads the list of existing queues that a deployment adopts, and names every fault with its place."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redrive.errors import Fault, SettingsError
from redrive.settings import Settings
from redrive.spelling import misspelt
from smart_redriver.cdk.queue_clashes import KEY_ARN, QUEUE_ARN, clashes

#: The context key, and the name of the array of tables in a TOML file.
QUEUES = "queues"
#: The context key, and a queue's own, that puts its re-driver into a stack beside the first one.
STACK = "stack"

#: As many as a DLQ can name in its redrive allow policy. Their URLs share the function's environment of 4 KB.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
MAX_SOURCES = 10

#: What only a source queue that the stack makes can be told.
_FOR_MADE_QUEUES = (
    "source_visibility_timeout_seconds",
    "max_receive_count",
    "with_sample_consumer",
)
_PLACES = (
    "name",
    STACK,
    "source_arn",
    "dead_letter_arn",
    "source_key_arn",
    "dead_letter_key_arn",
    "parking_lot_key_arn",
)
_SETTINGS = tuple(name for name in Settings.names() if name not in _FOR_MADE_QUEUES)

_NAME = re.compile(r"[A-Za-z](?:-?[A-Za-z0-9]){0,39}")
STACK_NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,39}")
ANY_STACK = (
    "letters and digits, with single hyphens between, which follow SmartRedriver- in its name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedQueue:
    """One DLQ with the source queues that share it, and the settings of its re-driver.

    ``stack`` is empty for the one that the command looks for first.
    """

    name: str
    stack: str = ""
    source_arns: tuple[str, ...]
    dead_letter_arn: str
    source_key_arns: tuple[str, ...] = ()
    dead_letter_key_arn: str | None = None
    parking_lot_key_arn: str | None = None
    settings: Settings = field(default_factory=Settings)

    @property
    def id(self) -> str:
        """The name as the id of its construct, and what the names of its outputs begin with."""
        return "".join(word[0].upper() + word[1:] for word in self.name.split("-"))

    @property
    def account(self) -> str:
        """The AWS account of the queues, and so of the re-driver."""
        return self.dead_letter_arn.split(":")[4]

    @property
    def region(self) -> str:
        """The Region of the queues, and so of the re-driver."""
        return self.dead_letter_arn.split(":")[3]


def read_adopted_queues(
    given: object, global_values: Mapping[str, Any]
) -> tuple[AdoptedQueue, ...]:
    """The adopted queues in ``given``: a list of tables, or the path of a TOML file with one.

    A queue's settings go over the global ones. Raises SettingsError listing every fault.
    """
    entries = _load(given)
    faults: list[Fault] = []
    queues = []
    for index, entry in enumerate(entries):
        reader = _Entry(f"{QUEUES}[{index}]", entry)
        queue = reader.read(global_values)
        faults += reader.faults
        queues.append(queue)
    faults += clashes(QUEUES, entries, str(global_values.get(STACK, "")))
    if faults:
        raise SettingsError(faults)
    return tuple(queue for queue in queues if queue)


def above_the_queues(given: object) -> Mapping[str, Any]:
    """What a TOML file says beside its queues: of their home. Nothing of a file that can't be read, which is told with its queues."""
    try:
        document = _document(given) if isinstance(given, str) else {}
    except SettingsError:
        return {}
    return {key: value for key, value in document.items() if key != QUEUES}


def _load(given: object) -> Sequence[Mapping[str, Any]]:
    listed = _document(given).get(QUEUES) if isinstance(given, str) else given
    if not isinstance(listed, list) or not listed or not all(isinstance(e, dict) for e in listed):
        raise _fault(QUEUES, given, f"a list of tables, or the path of a TOML file of [[{QUEUES}]]")
    return listed


def _document(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise _fault(QUEUES, path, f"the path of a TOML file ({error})") from error


def _fault(place: str, seen: object, accepted: str) -> SettingsError:
    return SettingsError([Fault(setting=place, seen=seen, accepted=accepted)])


class _Entry:
    """One entry while it is read; ``faults`` fills meanwhile."""

    def __init__(self, place: str, entry: Mapping[str, Any]) -> None:
        self.faults: list[Fault] = []
        self._place = place
        self._entry = entry

    def read(self, global_values: Mapping[str, Any]) -> AdoptedQueue | None:
        self._refuse_unknown_keys()
        name = self._one("name", _NAME, "a name of letters and digits, with single hyphens between")
        stack = self._one(STACK, STACK_NAME, ANY_STACK, is_needed=False)
        queue_arn = "the ARN of an SQS queue"
        key_arn = "the ARN of a KMS key (not of an alias)"
        sources = self._several("source_arn", QUEUE_ARN, queue_arn, is_needed=True)
        dead_letters = self._one("dead_letter_arn", QUEUE_ARN, queue_arn)
        source_keys = self._several("source_key_arn", KEY_ARN, key_arn)
        dlq_key = self._one("dead_letter_key_arn", KEY_ARN, key_arn, is_needed=False)
        lot_key = self._one("parking_lot_key_arn", KEY_ARN, key_arn, is_needed=False)
        settings = self._settings(global_values)
        if self.faults or not (name and dead_letters and settings):
            return None
        return AdoptedQueue(
            name=name,
            stack=stack or str(global_values.get(STACK, "")),
            source_arns=tuple(sources),
            dead_letter_arn=dead_letters,
            source_key_arns=tuple(source_keys),
            dead_letter_key_arn=dlq_key,
            parking_lot_key_arn=lot_key,
            settings=settings,
        )

    def _refuse_unknown_keys(self) -> None:
        known = (*_PLACES, *_SETTINGS)
        near = misspelt(self._entry, known)
        for key, value in self._entry.items():
            if key in _FOR_MADE_QUEUES:
                self._add(key, value, "nothing: it is only for a source queue that the stack makes")
            elif key in near:
                self._add(key, value, f"the name {near[key]} (nothing is called {key})")
            elif key not in known:
                self._add(key, value, f"one of {', '.join(_PLACES)}, or the name of a setting")

    def _one(
        self, key: str, pattern: re.Pattern[str], accepted: str, *, is_needed: bool = True
    ) -> str | None:
        value = self._entry.get(key)
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        if is_needed or value is not None:
            self._add(key, value, accepted)
        return None

    def _several(
        self, key: str, pattern: re.Pattern[str], accepted: str, *, is_needed: bool = False
    ) -> list[str]:
        value = self._entry.get(key)
        if not isinstance(value, list):
            one = self._one(key, pattern, f"{accepted}, or a list of them", is_needed=is_needed)
            return [one] if one else []
        if is_needed and not value:
            self._add(key, value, f"at least {accepted}")
        if len(value) > MAX_SOURCES:
            self._add(key, f"{len(value)} of them", f"at most {MAX_SOURCES}")
        for index, each in enumerate(value):
            if not isinstance(each, str) or not pattern.fullmatch(each):
                self._add(f"{key}[{index}]", each, accepted)
        return value

    def _settings(self, global_values: Mapping[str, Any]) -> Settings | None:
        own = {name: self._entry[name] for name in _SETTINGS if name in self._entry}
        try:
            return Settings.parse({**global_values, **own})
        except SettingsError as error:
            # What is wrong with a global value is told once, and not by each queue.
            for fault in error.faults:
                if fault.setting in own:
                    self._add(fault.setting, fault.seen, fault.accepted)
            return None

    def _add(self, key: str, seen: object, accepted: str) -> None:
        self.faults.append(Fault(setting=f"{self._place}.{key}", seen=seen, accepted=accepted))
