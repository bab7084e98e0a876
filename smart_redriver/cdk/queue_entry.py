"""Existing queues: the list that a deployment adopts, the fields of an entry, and their import by ARN.

Each fault has its place in the list.
"""

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.backend import AdoptedElsewhere
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.origin_config import OriginConfig, misplaced, read_origin_config, unfit_keys
from smart_redriver.cdk.queue_clashes import (
    KEY_ARN,
    MAX_SOURCES,
    QUEUE_ARN,
    clashes,
    reader_of,
)
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.kinds import misspelt
from smart_redriver.engine.config.recovery import elsewhere
from smart_redriver.engine.config.settings import FOR_MADE_QUEUES, Settings
from smart_redriver.engine.config.targets import Origin, is_fifo
from smart_redriver.engine.errors import Fault, SettingsError

S = TypeVar("S", Settings, MonitoringSettings)

#: The context key, also a queue's own key, that puts its re-driver into a stack beside the first one.
STACK = "stack"

_PLACES = (
    "name",
    STACK,
    "source_arn",
    "dead_letter_arn",
    "source_key_arn",
    "dead_letter_key_arn",
    "parking_lot_key_arn",
    "origin",
    "targets",
    "private_hosts",
    "target_key_arn",
    "team",
)
#: Keys only for a DLQ that SQS fills, and keys only for any other DLQ.
_OF_SOURCES = ("source_arn", "source_key_arn")
_OF_TARGETS = ("targets", "private_hosts", "target_key_arn")
OWN_SETTINGS = tuple(name for name in Settings.names() if name not in FOR_MADE_QUEUES)
#: Thresholds of its alarms, and who is notified. The widget belongs to the dashboard, and therefore to the stack.
_MONITORING = tuple(name for name in MonitoringSettings.names() if name != "dashboard_widget")

NAME = re.compile(r"[A-Za-z](?:-?[A-Za-z0-9]){0,39}")
ANY_NAME = "up to 40 letters and digits, a letter first, with single hyphens between"
STACK_NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,39}")
ANY_STACK = "up to 40 letters and digits, with single hyphens between, which follow SmartRedriver- in its name"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedQueue:
    """One DLQ with the source queues that share it, and the settings of its re-driver.

    ``stack`` is empty for the stack that the command looks for first. With an origin other than SQS, ``origin`` has
    targets instead of source queues.
    """

    name: str
    stack: str = ""
    source_arns: tuple[str, ...]
    dead_letter_arn: str
    source_key_arns: tuple[str, ...] = ()
    dead_letter_key_arn: str | None = None
    parking_lot_key_arn: str | None = None
    origin_config: OriginConfig = OriginConfig()
    target_key_arns: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    team: str = ""

    @property
    def id(self) -> str:
        """The name as the id of its construct, and the beginning of its outputs' names."""
        return as_id(self.name)

    @property
    def places(self) -> tuple[str, ...]:
        """ARNs and names that must be unique in an account and Region: circuits, metrics and alarms use them."""
        targets = (one.name for one in self.origin_config.targets)
        return (self.dead_letter_arn, *self.source_arns, *targets)

    @property
    def account(self) -> str:
        """The AWS account of the queues, and therefore of the re-driver."""
        return self.dead_letter_arn.split(":")[4]

    @property
    def region(self) -> str:
        """The Region of the queues, and therefore of the re-driver."""
        return self.dead_letter_arn.split(":")[3]


def as_id(name: str) -> str:
    """A name as the id of a construct: my-orders becomes MyOrders."""
    return "".join(word[0].upper() + word[1:] for word in name.split("-") if word)


class QueueEntry:
    """One entry while it is read. ``faults`` fills meanwhile."""

    #: Keys that it may have apart from settings.
    places: tuple[str, ...] = _PLACES
    #: Settings of the alarms that it may have.
    of_alarms: tuple[str, ...] = _MONITORING
    resources_key, resources_called = "dead_letter_arn", "queues"

    def __init__(
        self, place: str, entry: Mapping[str, Any], of_the_stack: Container[str] = ()
    ) -> None:
        self.faults: list[Fault] = []
        self._place = place
        self._entry = entry
        self._of_the_stack = of_the_stack

    def read(self, global_values: Mapping[str, Any]) -> AdoptedQueue | None:
        """The queue; None if something is wrong with it. Its settings take precedence over the global ones."""
        self._refuse_unknown_keys()
        name = self._one("name", NAME, ANY_NAME)
        stack = self._one(STACK, STACK_NAME, ANY_STACK, is_needed=False)
        queue_arn = "the ARN of an SQS queue"
        key_arn = "the ARN of a KMS key (not of an alias)"
        origin = self._origin()
        of_sqs = origin is Origin.SQS
        sources = self._several("source_arn", QUEUE_ARN, queue_arn, is_needed=of_sqs)
        team = self._one("team", NAME, ANY_NAME, is_needed=False)
        dead_letters = self._one("dead_letter_arn", QUEUE_ARN, queue_arn)
        source_keys = self._several("source_key_arn", KEY_ARN, key_arn)
        dlq_key = self._one("dead_letter_key_arn", KEY_ARN, key_arn, is_needed=False)
        lot_key = self._one("parking_lot_key_arn", KEY_ARN, key_arn, is_needed=False)
        target_keys = self._several("target_key_arn", KEY_ARN, key_arn)
        origin_config = self._origin_config(origin, dead_letters) if origin else OriginConfig()
        settings = self._settings(Settings, OWN_SETTINGS, global_values)
        monitoring = self._settings(MonitoringSettings, self.of_alarms, global_values)
        if settings and dead_letters:
            self._refuse_alarms_elsewhere(settings, dead_letters)
        if self.faults or not (name and dead_letters and settings and monitoring):
            return None
        return AdoptedQueue(
            name=name,
            stack=stack or str(global_values.get(STACK, "")),
            source_arns=tuple(sources),
            dead_letter_arn=dead_letters,
            source_key_arns=tuple(source_keys),
            dead_letter_key_arn=dlq_key,
            parking_lot_key_arn=lot_key,
            origin_config=origin_config,
            target_key_arns=tuple(target_keys),
            settings=settings,
            monitoring=replace(monitoring, dashboard_widget=monitoring.has_widget),
            team=team or "",
        )

    def _refuse_alarms_elsewhere(self, settings: Settings, dead_letters: str) -> None:
        if home := QUEUE_ARN.fullmatch(dead_letters):
            for fault in elsewhere(settings.recovery_alarms, home["region"], home["account"]):
                self._add(fault.setting, fault.seen, fault.accepted)

    @staticmethod
    def home(entry: Mapping[str, Any]) -> tuple[str, str]:
        """Region and account of its DLQ; empty if they can't be read."""
        match = QUEUE_ARN.fullmatch(str(entry.get("dead_letter_arn")))
        return (match["region"], match["account"]) if match else ("", "")

    @staticmethod
    def resources(entry: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG004
        """Return none: queues that are listed twice are found by their ARNs."""
        return ()

    def _origin(self) -> Origin | None:
        """Read the origin of the DLQ. None if it is unknown: that is a fault, and other keys stay unchecked."""
        given = self._entry.get("origin", Origin.SQS.value)
        try:
            origin = Origin(given)
        except ValueError:
            listed = (one.value for one in Origin)
            self._add("origin", given, " or ".join(f'"{one}"' for one in listed))
            return None
        if origin is Origin.SQS:
            for key in _OF_TARGETS:
                self._refuse(key, "nothing with origin sqs, whose letters go back to source_arn")
        else:
            for key in _OF_SOURCES:
                accepted = f"nothing with origin {origin.value}, whose letters go back to targets"
                self._refuse(key, accepted)
        return origin

    def _origin_config(self, origin: Origin, dead_letters: str | None) -> OriginConfig:
        if origin is Origin.SQS:
            return OriginConfig()
        origin_config, faults = read_origin_config(
            origin, self._texts("targets"), self._texts("private_hosts")
        )
        if dead_letters:
            queues = {"dead_letter_arn": dead_letters}
            faults += misplaced(origin_config, queues, in_order=is_fifo(dead_letters))
        for fault in faults:
            if fault.seen is not None or not self._entry.get(fault.setting):
                self._add(fault.setting, fault.seen, fault.accepted)
        for fault in unfit_keys(origin_config, self._texts("target_key_arn")):
            self._add("target_key_arn", fault.seen, fault.accepted)
        return origin_config

    def _texts(self, key: str) -> list[str]:
        """Read a text or a list of texts. Anything else is a fault, and left out."""
        value = self._entry.get(key, [])
        listed = value if isinstance(value, list) else [value]
        for one in listed:
            if not isinstance(one, str):
                self._add(key, one, "a text, or a list of texts")
        return [one for one in listed if isinstance(one, str)]

    def _refuse(self, key: str, accepted: str) -> None:
        if key in self._entry:
            self._add(key, self._entry[key], accepted)

    def _refuse_unknown_keys(self) -> None:
        known = (*self.places, *OWN_SETTINGS, *self.of_alarms)
        near = misspelt(self._entry, known)
        for key, value in self._entry.items():
            if key in FOR_MADE_QUEUES:
                self._add(key, value, "nothing: it is only for a source queue that the stack makes")
            elif key not in known and key in self._of_the_stack:
                accepted = f"nothing: it is for the whole stack, above the queues or by `-c {key}=`"
                self._add(key, value, accepted)
            elif key in near:
                self._add(key, value, f"the name {near[key]} (nothing is called {key})")
            elif key not in known:
                self._add(key, value, f"one of {', '.join(self.places)}, or the name of a setting")

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

    def _settings(
        self, kind: type[S], names: Sequence[str], global_values: Mapping[str, Any]
    ) -> S | None:
        own = {name: self._entry[name] for name in names if name in self._entry}
        try:
            return kind.parse({**global_values, **own})
        except SettingsError as error:
            # A fault of a global value is reported once, and not for each queue.
            for fault in error.faults:
                if fault.setting in own:
                    self._add(fault.setting, fault.seen, fault.accepted)
            return None

    def _add(self, key: str, seen: object, accepted: str) -> None:
        self.faults.append(Fault(setting=f"{self._place}.{key}", seen=seen, accepted=accepted))


class EntryInNetwork(QueueEntry):
    """One entry for a queue outside SQS that the function reaches in a network."""

    of_alarms = ()
    #: An entry's own safeguards, which take precedence over the deployment's.
    network = ("vpc_id", "vpc_subnet_ids", "vpc_security_group_ids")

    def _safeguards(self, global_values: Mapping[str, Any]) -> Safeguards | None:
        own = {name: self._entry[name] for name in self.network if name in self._entry}
        try:
            return Safeguards.parse({**global_values, **own})
        except SettingsError as error:
            for fault in error.faults:
                if fault.setting in own:  # a global value's fault is reported once
                    self._add(fault.setting, fault.seen, fault.accepted)
            return None


def table_in(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table under this key; an empty one if there is something else or nothing."""
    given = entry.get(key)
    return given if isinstance(given, Mapping) else {}


#: The context key, and the name of the array of tables in a TOML file.
QUEUES = "queues"

#: A DLQ in SQS, or a queue elsewhere.
Adopted = AdoptedQueue | AdoptedElsewhere


def read_adopted_queues(
    given: object, global_values: Mapping[str, Any], of_the_stack: Container[str] = ()
) -> tuple[Adopted, ...]:
    """The adopted queues in ``given``: a list of tables, or the path of a TOML file with such a list.

    A queue's settings take precedence over the global ones. ``of_the_stack`` has the names of all settings that may be
    above the queues. Raises SettingsError listing every fault.
    """
    entries = _load(given)
    faults: list[Fault] = []
    queues: list[Adopted | None] = []
    for index, entry in enumerate(entries):
        reader = reader_of(entry)(f"{QUEUES}[{index}]", entry, of_the_stack)
        queue = reader.read(global_values)
        faults += reader.faults
        queues.append(queue)
    faults += clashes(QUEUES, entries, str(global_values.get(STACK, "")))
    if faults:
        raise SettingsError(faults)
    return tuple(queue for queue in queues if queue)


def above_the_queues(given: object) -> Mapping[str, Any]:
    """The settings above the queues in a TOML file, for their account and Region.

    Empty for a file that can't be read, which is reported with its queues.
    """
    try:
        document = _document(given) if isinstance(given, str) else {}
    except SettingsError:
        return {}
    return {key: value for key, value in document.items() if key != QUEUES}


def _load(given: object) -> Sequence[Mapping[str, Any]]:
    listed = _document(given).get(QUEUES) if isinstance(given, str) and given else given
    if not isinstance(listed, list) or not listed or not all(isinstance(e, dict) for e in listed):
        raise _fault(QUEUES, given, f"a list of tables, or the path of a TOML file of [[{QUEUES}]]")
    return listed


def _document(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _fault(QUEUES, path, f"the path of a TOML file ({error})") from error


def _fault(place: str, seen: object, accepted: str) -> SettingsError:
    return SettingsError([Fault(setting=place, seen=seen, accepted=accepted)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedQueues:
    """A dead-letter queue, and the source queues that share it or its targets' keys. The stack owns none of them."""

    source_queues: tuple[sqs.IQueue, ...]
    dead_letter_queue: sqs.IQueue
    parking_lot_key: kms.IKey | None
    target_keys: tuple[kms.IKey, ...]


def import_queues(scope: Construct, adopted: AdoptedQueue) -> ImportedQueues:
    """Import the resources that ``adopted`` names by ARN into ``scope``.

    Source keys belong to the sources in order, and the last one to all sources that are left: usually all have one key.
    """
    keys = adopted.source_key_arns
    sources = tuple(
        _import(scope, f"Source{index}", arn, keys[min(index, len(keys) - 1)] if keys else None)
        for index, arn in enumerate(adopted.source_arns)
    )
    dead_letters = _import(
        scope, "DeadLetter", adopted.dead_letter_arn, adopted.dead_letter_key_arn
    )
    lot_key = adopted.parking_lot_key_arn
    return ImportedQueues(
        source_queues=sources,
        dead_letter_queue=dead_letters,
        parking_lot_key=kms.Key.from_key_arn(scope, "ParkingLotKey", lot_key) if lot_key else None,
        target_keys=tuple(
            kms.Key.from_key_arn(scope, f"TargetKey{index}", arn)
            for index, arn in enumerate(adopted.target_key_arns)
        ),
    )


def _import(scope: Construct, construct_id: str, arn: str, key_arn: str | None) -> sqs.IQueue:
    return sqs.Queue.from_queue_attributes(scope, construct_id, queue_arn=arn, key_arn=key_arn)
