"""Checks the queues: types, policies, retention, and that nothing else consumes the DLQ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from smart_redriver.engine.config.targets import is_fifo, queue_name
from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong

Attributes = Mapping[str, Any]

#: The default number of messages that an event source mapping hands out together.
_DEFAULT_BATCH_SIZE = 10

#: The shortest retention of a DLQ, in seconds. A letter is saved in the last eighth of it, by a pass that comes each
#: minute and may take four.
_LEAST_KEPT = 3_600

#: Seconds for which any consumer may be down.
_SHORT_OUTAGE = 3_600


def check_queues(session: Session) -> Iterator[Finding]:
    """Look at source queues, DLQ, parking lot and outcome queue. Raises CallFailed."""
    deployment = session.place.deployment
    dlq = attributes_of(session, deployment.dlq_url)
    lot = attributes_of(session, deployment.parking_lot_url)
    for url in deployment.source_urls:
        source = attributes_of(session, url)
        yield from judge_source(source, dlq)
        yield from _check_consumer(session, source)
    yield from judge_dead_letters(dlq, lot)
    if url := deployment.outcome_queue_url:
        yield from judge_reports(attributes_of(session, url))
    yield from _check_strangers(session, dlq)


def judge_source(source: Attributes, dlq: Attributes) -> Iterator[Finding]:
    """Whether a source queue and its DLQ fit each other."""
    name, dlq_name = _name(source), _name(dlq)
    policy = json.loads(source.get("RedrivePolicy") or "{}")
    yield from _of_one_kind(source, dlq)
    if _is_fifo(source):
        yield _throughput(source)
    yield check(
        policy.get("deadLetterTargetArn") == dlq["QueueArn"],
        f"The failed messages of {name} go to {dlq_name}.",
        f"The failed messages of {name} do not go to {dlq_name}: its RedrivePolicy names "
        f"{queue_name(policy.get('deadLetterTargetArn') or 'no queue')}.",
        f"Set RedrivePolicy of {name} to deadLetterTargetArn {dlq['QueueArn']}.",
    )
    allow = json.loads(dlq.get("RedriveAllowPolicy") or "{}")
    permission = allow.get("redrivePermission", "allowAll")
    allowed = source["QueueArn"] in allow.get("sourceQueueArns", ())
    yield check(
        permission == "allowAll" or (permission == "byQueue" and allowed),
        f"{dlq_name} takes the letters of {name}.",
        f"{dlq_name} does not take the letters of {name}: its RedriveAllowPolicy says {permission}.",
        f"Add {source['QueueArn']} to sourceQueueArns of the RedriveAllowPolicy of {dlq_name}.",
    )
    kept, kept_dead = int(source["MessageRetentionPeriod"]), int(dlq["MessageRetentionPeriod"])
    yield check(
        kept_dead >= kept,
        f"{dlq_name} keeps letters as long as {name}, or longer.",
        f"{dlq_name} keeps letters {kept_dead} s, {name} {kept} s: a letter keeps its first clock, "
        "and can expire as it arrives.",
        f"Set MessageRetentionPeriod of {dlq_name} to 1209600, the most there is.",
    )
    fails_in = int(source["VisibilityTimeout"]) * int(policy.get("maxReceiveCount", 0))
    yield check(
        kept > fails_in,
        f"{name} keeps a message until it has failed.",
        f"{name} keeps a message for {kept} s, and one that fails takes {fails_in} s to go to {dlq_name}: it is gone "
        "before.",
        f"Set MessageRetentionPeriod of {name} well above that.",
    )
    yield check(
        kept >= _SHORT_OUTAGE,
        f"{name} keeps messages through an outage of an hour.",
        f"{name} keeps messages for {kept} s: letters that wait there for longer, because its consumer is away, are "
        "gone, and look like processed ones.",
        f"Set MessageRetentionPeriod of {name} to more than its consumer may be down.",
    )


def judge_dead_letters(dlq: Attributes, lot: Attributes) -> Iterator[Finding]:
    """Check the DLQ and the parking lot."""
    name, lot_name = _name(dlq), _name(lot)
    yield from _of_one_kind(lot, dlq)
    if _is_fifo(dlq):
        yield _throughput(dlq)
    yield check(
        not dlq.get("RedrivePolicy"),
        f"{name} has no DLQ of its own.",
        f"{name} has a DLQ of its own: each receive of the re-driver counts, and takes letters away.",
        f"Remove RedrivePolicy from {name}.",
    )
    kept = int(dlq["MessageRetentionPeriod"])
    yield check(
        kept >= _LEAST_KEPT,
        f"{name} keeps letters long enough for passes to save them.",
        f"{name} keeps letters {kept} s: a letter can expire between two passes.",
        f"Set MessageRetentionPeriod of {name} to 1209600, the most there is.",
    )
    yield check(
        int(lot["MessageRetentionPeriod"]) >= kept,
        f"{lot_name} keeps letters as long as {name}, or longer.",
        f"{lot_name} keeps letters for a shorter time than {name}.",
        f"Set MessageRetentionPeriod of {lot_name} to 1209600, the most there is.",
    )


def judge_reports(outcomes: Attributes) -> Iterator[Finding]:
    """Faults of the outcome queue. The check of the reports says what is good."""
    if _is_fifo(outcomes):
        yield wrong(
            f"{_name(outcomes)} is a FIFO queue, which refuses reports: they have no message group.",
            "Let a standard queue take its place.",
        )


def _of_one_kind(queue: Attributes, dlq: Attributes) -> Iterator[Finding]:
    """Whether both queues are FIFO, or both standard.

    Order is kept from end to end or not at all, and SQS moves messages only between queues of one kind.
    """
    name, kind, needed = _name(queue), _kind(queue), _kind(dlq)
    yield check(
        kind == needed,
        f"{name} is a {kind} queue, as {_name(dlq)} is.",
        f"{name} is a {kind} queue, {_name(dlq)} a {needed} one: no letter can go from one to the other in order.",
        f"Let a {needed} queue take the place of {name}; what a queue is can't be changed.",
    )


def _throughput(queue: Attributes) -> Finding:
    """Report the throughput mode. Low throughput is no fault: it is enough for most queues.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
    """
    name = _name(queue)
    if queue.get("FifoThroughputLimit") == "perMessageGroupId":
        return good(f"{name} has high throughput.")
    return good(
        f"{name} takes 300 calls a second of a kind, ten messages each. If that is too few, set DeduplicationScope "
        "messageGroup and FifoThroughputLimit perMessageGroupId for high throughput."
    )


def judge_consumer(name: str, visibility_seconds: int, timeout_seconds: int) -> Finding:
    """Whether a message stays hidden for as long as its consumer may work on it.

    AWS recommends six times the function's timeout.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    timeouts = f"the visibility timeout of {name} is {visibility_seconds} s, its consumer's timeout {timeout_seconds} s"
    return check(
        visibility_seconds >= timeout_seconds,
        f"A message stays hidden while its consumer works: {timeouts}.",
        f"A message can be delivered again while its consumer still works on it: {timeouts}.",
        f"Set VisibilityTimeout of {name} to {6 * timeout_seconds} (AWS recommends six times).",
    )


def judge_batches(name: str, mapping: Mapping[str, Any]) -> Finding:
    """Whether a message that fails does not affect those that were received with it.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
    """
    size = mapping.get("BatchSize", _DEFAULT_BATCH_SIZE)
    reports = "ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", ())
    return check(
        reports or size == 1,
        f"A message of {name} that fails leaves the others of its batch alone.",
        f"A message of {name} that fails takes up to {size - 1} others with it, which are done again or die beside it.",
        f"Set FunctionResponseTypes of event source mapping {mapping['UUID']} to ReportBatchItemFailures, and let its"
        " function say which failed (Powertools' BatchProcessor does).",
    )


def _check_consumer(session: Session, source: Attributes) -> Iterator[Finding]:
    name = _name(source)
    mappings = _mappings(session, source["QueueArn"])
    if not mappings:
        yield good(
            f"No Lambda consumes {name}; its consumer must delete within its visibility timeout."
        )
    for mapping in mappings:
        if mapping.get("State") in ("Disabled", "Disabling"):
            yield wrong(
                f"The consumer of {name} is switched off.",
                f"Enable event source mapping {mapping['UUID']}, or `redrive pause` until it is on.",
            )
        yield judge_batches(name, mapping)
        function = mapping["FunctionArn"]
        try:
            configuration = session.aws.client("lambda").get_function_configuration(
                FunctionName=function
            )
        except CallFailed as failed:
            yield unknown(
                f"The timeout of {name}'s consumer could not be read: {failed.code}.",
                f"Compare it with the queue's visibility timeout of {source['VisibilityTimeout']} s.",
            )
            continue
        yield judge_consumer(name, int(source["VisibilityTimeout"]), int(configuration["Timeout"]))


def _check_strangers(session: Session, dlq: Attributes) -> Iterator[Finding]:
    """Check whether a Lambda function takes letters out of the DLQ."""
    name = _name(dlq)
    yield check(
        not _mappings(session, dlq["QueueArn"]),
        f"No Lambda consumes {name}.",
        f"A Lambda consumes {name}, and races the re-driver for its letters.",
        "Remove that function's event source mapping.",
    )


def _mappings(session: Session, queue_arn: str) -> list[dict[str, Any]]:
    answer = session.aws.client("lambda").list_event_source_mappings(EventSourceArn=queue_arn)
    mappings: list[dict[str, Any]] = answer["EventSourceMappings"]
    return mappings


def _name(attributes: Attributes) -> str:
    return queue_name(attributes["QueueArn"])


def _is_fifo(attributes: Attributes) -> bool:
    return is_fifo(attributes["QueueArn"])


def _kind(attributes: Attributes) -> str:
    return "FIFO" if _is_fifo(attributes) else "standard"


def attributes_of(session: Session, queue_url: str) -> dict[str, Any]:
    """All attributes of a queue. Raises CallFailed."""
    answer = session.aws.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    attributes: dict[str, Any] = answer["Attributes"]
    return attributes
