"""The Lambda shell of the example consumer: an SQS batch in, the ids of its failures out.

It owns the environment, the two tables and the log. The kit reports the outcomes of messages to the
re-driver, and parks messages that can never succeed. The work of a message is done once, however
often the message comes back: success leaves a COMPLETED record in the idempotency table (key `id`,
TTL attribute `expiration`), failure leaves none. The work itself is in `work`.
"""

import os
import time
from functools import partial
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.typing import LambdaContext

from consumer.work import Message, Outage, OverloadedError, work
from smart_redriver.consumer import idempotency_key
from smart_redriver.consumer.powertools import ReportingFifoProcessor, ReportingProcessor

MESSAGE_PROCESSED = "message.processed"
MESSAGE_ALREADY_PROCESSED = "message.already_processed"
MESSAGE_FAILED = "message.failed"

# A copy of a message that has succeeded can turn up for 14 days in the dead-letter queue and, once
# redriven, for another 14 in the source queue. Its record has to outlive both.
REMEMBERED_SECONDS = 30 * 24 * 60 * 60


def _read_environment(*names: str) -> list[str]:
    values = [os.environ.get(name, "") for name in names]
    if missing := [name for name, value in zip(names, values, strict=True) if not value]:
        raise RuntimeError(f"Environment variables not set: {', '.join(missing)}")
    return values


def _report_already_processed(response: Any, idempotent_data: Any) -> Any:  # noqa: ARG001 - Powertools names it
    logger.info(MESSAGE_ALREADY_PROCESSED)
    return response


idempotency_table, control_table = _read_environment("IDEMPOTENCY_TABLE_NAME", "CONTROL_TABLE_NAME")
logger = Logger(service="consumer")
dynamodb = boto3.client("dynamodb")
# Even a batch with only failures gets a full answer: an exception would hide which messages failed.
processor = ReportingProcessor(raise_on_entire_batch_failure=False)
# A group stops at its first failure; the other groups of the batch go on.
fifo_processor = ReportingFifoProcessor(skip_group_on_error=True)
idempotency = IdempotencyConfig(
    event_key_jmespath="original_id",
    # A redrive keeps the body. If a known id has a different body, somebody copied redrive metadata to a new
    # message. That message must fail visibly, and not be skipped.
    payload_validation_jmespath="body",
    raise_on_no_idempotency_key=True,
    expires_after_seconds=REMEMBERED_SECONDS,
    response_hook=_report_already_processed,
)


@idempotent_function(  # type: ignore[untyped-decorator]  # Powertools types it as Any
    data_keyword_argument="message",
    persistence_store=DynamoDBPersistenceLayer(idempotency_table, boto3_client=dynamodb),
    config=idempotency,
    key_prefix="consumer",  # a replaced function has a new name, but still knows its messages
)
def work_once(*, message: Message, outage: Outage) -> dict[str, str]:
    result = work(message, outage)
    logger.info(MESSAGE_PROCESSED)
    return result


def handle_record(record: SQSRecord, *, outage: Outage) -> None:
    message = Message(original_id=idempotency_key(record), body=record.body)
    with logger.append_context_keys(message_id=record.message_id, original_id=message.original_id):
        try:
            if outage.capacity is not None:
                keep_within(outage.capacity)
            work_once(message=message, outage=outage)
        except Exception:
            logger.exception(MESSAGE_FAILED)
            raise


def keep_within(capacity: int) -> None:
    """Count a delivery of this minute, for all environments of the function. Raises OverloadedError."""
    minute = int(time.time() // 60)
    answer = dynamodb.update_item(
        TableName=idempotency_table,
        Key={"id": {"S": f"deliveries#{minute}"}},
        UpdateExpression="ADD Deliveries :one SET expiration = :expiration",
        ExpressionAttributeValues={
            ":one": {"N": "1"},
            ":expiration": {"N": str((minute + 10) * 60)},
        },
        ReturnValues="UPDATED_NEW",
    )
    if int(answer["Attributes"]["Deliveries"]["N"]) > capacity:
        raise OverloadedError(f"More than {capacity} messages in a minute are too many")


def read_outage() -> Outage:
    """Read the switches that cause outages in the demo and in tests. Without a switch, everything is up."""
    answer = dynamodb.get_item(
        TableName=control_table, Key={"PK": {"S": "DEPENDENCY"}}, ConsistentRead=True
    )
    item = answer.get("Item", {})
    capacity = item.get("CapacityPerMinute", {}).get("N")
    return Outage(
        everything=item.get("Down", {}).get("BOOL", False),
        payments=item.get("PaymentsDown", {}).get("BOOL", False),
        capacity=int(capacity) if capacity else None,
    )


def processor_for(event: dict[str, Any]) -> ReportingProcessor | ReportingFifoProcessor:
    is_fifo = any(one["eventSourceARN"].endswith(".fifo") for one in event["Records"])
    return fifo_processor if is_fifo else processor


@logger.inject_lambda_context
def lambda_handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    # A record in progress expires with the invocation if Lambda kills it half-way.
    idempotency.register_lambda_context(context)
    return process_partial_response(
        event=event,
        record_handler=partial(handle_record, outage=read_outage()),
        processor=processor_for(event),
        context=context,
    )
