"""Checks the arguments of a construct before anything is made of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import QUEUE_ARN
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault, SettingsError

_REMOVALS = (
    cdk.RemovalPolicy.RETAIN,
    cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    cdk.RemovalPolicy.DESTROY,
)
S = TypeVar("S", Settings, Safeguards, MonitoringSettings)


def check_lists(**given: object) -> None:
    """Raise SettingsError for what is no list, such as one queue."""
    faults = [
        Fault(setting=name, seen=value, accepted="a list")
        for name, value in given.items()
        if isinstance(value, str) or not isinstance(value, Sequence)
    ]
    if faults:
        raise SettingsError(faults)


def check_kinds(**given: tuple[object, type]) -> None:
    """Raise SettingsError for arguments, by name, that are neither None nor of the type beside them."""
    if faults := list(_of_another_kind(given)):
        raise SettingsError(faults)


def check_resources(
    queues: Mapping[str, sqs.IQueue],
    tables: Mapping[str, dynamodb.ITableV2 | None],
    keys: Mapping[str, kms.IKey | None],
) -> None:
    """Raise SettingsError for an argument that is not a CDK queue, table or key,
    and for a queue imported by an invalid ARN.
    """
    faults = [
        *_without("queue_arn", queues, "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"),
        # A `dynamodb.Table` of the first kind has no id.
        *_without(
            "table_id",
            _given(tables),
            "a table: a `dynamodb.TableV2`, or `TableV2.from_table_arn` makes one",
        ),
        *_without("key_arn", _given(keys), "a key: `kms.Key.from_key_arn` makes one of an ARN"),
    ]
    for role, queue in queues.items():
        arn = getattr(queue, "queue_arn", None)
        if arn and not cdk.Token.is_unresolved(arn) and not QUEUE_ARN.fullmatch(arn):
            faults.append(Fault(setting=role, seen=arn, accepted="the ARN of one SQS queue"))
    if faults:
        raise SettingsError(faults)


def unfit_table(scope: Construct, table: dynamodb.ITableV2 | None) -> Iterator[Fault]:
    """A table that the app makes, and in which no item could be kept or none would expire."""
    if table is None or not cdk.Resource.is_owned_resource(table):
        return
    resource = cast("dynamodb.CfnGlobalTable", table.node.default_child)
    stack = cdk.Stack.of(scope)
    keys = [
        (one.get("attributeName"), one.get("keyType")) for one in stack.resolve(resource.key_schema)
    ]
    if keys != [("PK", "HASH")]:
        seen = ", ".join(str(name) for name, _ in keys)
        yield Fault(setting="table", seen=seen, accepted="a table whose one key is the string PK")
    expiry = stack.resolve(resource.time_to_live_specification) or {}
    if expiry.get("attributeName") != "TTL":
        accepted = "a table whose `time_to_live_attribute` is TTL"
        yield Fault(setting="table", seen=expiry.get("attributeName"), accepted=accepted)


def unfit_removal(removal_policy: object) -> Iterator[Fault]:
    """Yield a fault for a removal policy that queues, logs and table don't have: only databases have snapshots."""
    if removal_policy not in _REMOVALS:
        accepted = " or ".join(f"RemovalPolicy.{one.name}" for one in _REMOVALS)
        yield Fault(setting="removal_policy", seen=removal_policy, accepted=accepted)


def unread_settings(settings: Settings | None) -> Iterator[Fault]:
    """Yield a fault for a setting that only the stack of this repository uses."""
    if isinstance(settings, Settings) and settings.with_sample_consumer:
        accepted = "false: the example consumer is none of the construct's"
        yield Fault(setting="with_sample_consumer", seen=True, accepted=accepted)


def _given(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


def _without(arn: str, given: Mapping[str, object], accepted: str) -> Iterator[Fault]:
    """Yield a fault for a resource without this ARN. `isinstance` doesn't work on the CDK's interfaces."""
    for name, value in given.items():
        if not hasattr(value, arn):
            yield Fault(setting=name, seen=value, accepted=accepted)


def checked(
    settings: Settings | None,
    safeguards: Safeguards | None,
    monitoring: MonitoringSettings | None,
    others: Iterable[Fault],
    **further: tuple[object, type],
) -> tuple[Settings, Safeguards, MonitoringSettings]:
    """The settings as they will be read. Raises SettingsError listing every fault of theirs, and the `others`.

    `further` arguments, by name, have to be of the type beside them, or None.
    """
    kinds = {
        "settings": (settings, Settings),
        "safeguards": (safeguards, Safeguards),
        "monitoring": (monitoring, MonitoringSettings),
        **further,
    }
    faults = [*_of_another_kind(kinds), *others]
    read = (
        _read(Settings, settings, faults),
        _read(Safeguards, safeguards, faults),
        _read(MonitoringSettings, monitoring, faults),
    )
    if faults:
        raise SettingsError(faults)
    return read


def checked_monitoring(monitoring: MonitoringSettings) -> MonitoringSettings:
    """The settings as they will be read. Raises SettingsError listing every fault."""
    faults = list(_of_another_kind({"monitoring": (monitoring, MonitoringSettings)}))
    read = _read(MonitoringSettings, monitoring, faults)
    if faults:
        raise SettingsError(faults)
    return read


def _read(kind: type[S], given: S | None, faults: list[Fault]) -> S:
    """Parse `given`; the defaults if it is nothing of the kind."""
    if not isinstance(given, kind):
        return kind()
    try:
        read = kind.parse({name: getattr(given, name) for name in kind.names()})
        return replace(given, **{name: getattr(read, name) for name in kind.names()})
    except SettingsError as error:
        faults += error.faults
        return given


def _of_another_kind(given: Mapping[str, tuple[object, type]]) -> Iterator[Fault]:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            yield Fault(setting=name, seen=value, accepted=f"a {kind.__name__}")
