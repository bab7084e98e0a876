"""What a construct is given, looked at before anything is made of it."""

from collections.abc import Iterable, Mapping

from aws_cdk import aws_sqs as sqs

from redrive.errors import Fault, SettingsError
from redrive.settings import Settings
from smart_redriver.cdk.safeguards import Safeguards


def check_kinds(**given: tuple[object, type]) -> None:
    """Raise SettingsError for values that are of another type than the one beside them; None is of each."""
    faults = [
        Fault(setting=name, seen=value, accepted=f"a {kind.__name__}")
        for name, (value, kind) in given.items()
        if value is not None and not isinstance(value, kind)
    ]
    if faults:
        raise SettingsError(faults)


def check_queues(queues: Mapping[str, sqs.IQueue]) -> None:
    """Raise SettingsError for what is no queue of the CDK's, such as an ARN."""
    accepted = "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"
    faults = [
        Fault(setting=role, seen=queue, accepted=accepted)
        for role, queue in queues.items()
        if not hasattr(queue, "queue_arn")
    ]
    if faults:
        raise SettingsError(faults)


def checked(
    settings: Settings, safeguards: Safeguards, others: Iterable[Fault]
) -> tuple[Settings, Safeguards]:
    """The settings as they will be read. Raises SettingsError listing every fault of theirs and the `others`."""
    faults: list[Fault] = []
    try:
        settings = Settings.parse({name: getattr(settings, name) for name in Settings.names()})
    except SettingsError as error:
        faults += error.faults
    try:
        safeguards = Safeguards.parse(
            {name: getattr(safeguards, name) for name in Safeguards.names()}
        )
    except SettingsError as error:
        faults += error.faults
    faults += others
    if faults:
        raise SettingsError(faults)
    return settings, safeguards
