"""What a construct is given, looked at before anything is made of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs

from redrive.errors import Fault, SettingsError
from redrive.settings import Settings
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import QUEUE_ARN
from smart_redriver.cdk.safeguards import Safeguards

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


def check_resources(
    queues: Mapping[str, sqs.IQueue],
    tables: Mapping[str, dynamodb.ITableV2 | None],
    keys: Mapping[str, kms.IKey | None],
) -> None:
    """Raise SettingsError for what is no queue, table or key of the CDK's, such as an ARN, and for a queue imported by what is no ARN of one."""
    faults = [
        *_without("queue_arn", queues, "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"),
        *_without(
            "table_arn", _given(tables), "a table: `dynamodb.TableV2.from_table_arn` makes one"
        ),
        *_without("key_arn", _given(keys), "a key: `kms.Key.from_key_arn` makes one of an ARN"),
    ]
    for role, queue in queues.items():
        arn = getattr(queue, "queue_arn", None)
        if arn and not cdk.Token.is_unresolved(arn) and not QUEUE_ARN.fullmatch(arn):
            faults.append(Fault(setting=role, seen=arn, accepted="the ARN of one SQS queue"))
    if faults:
        raise SettingsError(faults)


def _given(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


def _without(arn: str, given: Mapping[str, object], accepted: str) -> Iterator[Fault]:
    """What has no such ARN. The CDK's interfaces can't be asked by `isinstance`."""
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
    """What is given, as it will be read; its defaults where it is nothing of the kind."""
    if not isinstance(given, kind):
        return kind()
    try:
        return kind.parse({name: getattr(given, name) for name in kind.names()})
    except SettingsError as error:
        faults += error.faults
        return given


def _of_another_kind(given: Mapping[str, tuple[object, type]]) -> Iterator[Fault]:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            yield Fault(setting=name, seen=value, accepted=f"a {kind.__name__}")
