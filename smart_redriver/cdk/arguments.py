"""What a construct is given, looked at before anything is made of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs

from redrive.errors import Fault, SettingsError
from redrive.settings import Settings
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import QUEUE_ARN
from smart_redriver.cdk.safeguards import Safeguards

S = TypeVar("S", Settings, Safeguards, MonitoringSettings)


def check_queues(queues: Mapping[str, sqs.IQueue]) -> None:
    """Raise SettingsError for what is no queue of the CDK's, such as an ARN, and for one imported by what is no ARN of a queue."""
    accepted = "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"
    faults = []
    for role, queue in queues.items():
        if not hasattr(queue, "queue_arn"):
            faults.append(Fault(setting=role, seen=queue, accepted=accepted))
        elif not cdk.Token.is_unresolved(queue.queue_arn) and not QUEUE_ARN.fullmatch(
            queue.queue_arn
        ):
            named = "the ARN of one SQS queue"
            faults.append(Fault(setting=role, seen=queue.queue_arn, accepted=named))
    if faults:
        raise SettingsError(faults)


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
