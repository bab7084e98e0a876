"""What a stack's outputs say of one queue's deployment: in SQS, filled by whatever, or in a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from redrive.databases import JobsDatabase
from redrive.deployment import Deployment
from redrive.errors import SettingsError
from redrive.targets import Origin, Target, read_targets
from smart_redriver.oncall.stack.outputs import DATABASE, TARGETS
from smart_redriver.oncall.terminal.exits import Refused

SOURCE = "SourceQueueUrl"
#: Other sources of the same DLQ, separated by spaces; most DLQs have none.
_FURTHER_SOURCES = "FurtherSourceQueueUrls"
#: What fills a DLQ where SQS does not, and hosts of targets at addresses that are not public.
_ORIGIN, _PRIVATE_HOSTS = "RedriveOrigin", "RedrivePrivateHosts"
#: Where consumers report; a stack of the first edition has none.
_OUTCOMES = "OutcomeQueueUrl"
#: What a worker queue is called.
_QUEUE = "RedriveQueue"


def deployment_of(
    stack: str, outputs: Mapping[str, str], prefix: str, needed: Callable[[str], str]
) -> Deployment:
    """The deployment that the outputs beginning with `prefix` describe. `needed` raises Refused for one that is missing."""
    database = _told_database(stack, prefix, outputs)
    if database is None:
        return _of_queues(stack, outputs, prefix, needed)
    return Deployment.of_database(
        database, queue_name=needed(_QUEUE), table_name=needed("StateTableName")
    )


def _of_queues(
    stack: str, outputs: Mapping[str, str], prefix: str, needed: Callable[[str], str]
) -> Deployment:
    origin, targets = _told_targets(stack, prefix, outputs)
    source = "" if targets else needed(SOURCE)
    return Deployment(
        queue_name=targets[0].name if targets else source.rpartition("/")[2],
        table_name=needed("StateTableName"),
        dlq_url=needed("DeadLetterQueueUrl"),
        source_queue_url=source,
        parking_lot_url=needed("ParkingLotQueueUrl"),
        further_source_urls=tuple(outputs.get(prefix + _FURTHER_SOURCES, "").split()),
        outcome_queue_url=outputs.get(prefix + _OUTCOMES, ""),
        origin=origin,
        targets=targets,
        private_hosts=tuple(outputs.get(prefix + _PRIVATE_HOSTS, "").split()),
    )


def _told_database(stack: str, prefix: str, outputs: Mapping[str, str]) -> JobsDatabase | None:
    """Where a worker queue's database is; None of a DLQ in SQS. Raises Refused for what this version does not know."""
    told = outputs.get(prefix + DATABASE)
    if told is None:
        return None
    try:
        return JobsDatabase.parse(told)
    except SettingsError as refused:
        raise Refused(f"Stack {stack!r}, output {prefix}{DATABASE}: {refused}") from refused


def _told_targets(
    stack: str, prefix: str, outputs: Mapping[str, str]
) -> tuple[Origin, tuple[Target, ...]]:
    """What fills a DLQ, and its targets; none where that is SQS. Raises Refused for what this version does not know."""
    told = outputs.get(prefix + TARGETS)
    if told is None:
        return Origin.SQS, ()
    given = outputs.get(prefix + _ORIGIN, "")
    try:
        origin = Origin(given)
    except ValueError:
        known = ", ".join(one.value for one in Origin)
        raise Refused(
            f"Stack {stack!r} says that {given or 'nothing'} fills a DLQ; this version knows {known}."
        ) from None
    targets, faults = read_targets(origin, tuple(told.split()))
    if faults or not targets:
        raise Refused(f"Stack {stack!r}, output {prefix}{TARGETS}: {'; '.join(map(str, faults))}")
    return origin, targets
