"""A stand-in for AWS below botocore: each call sleeps as long as the network would take, then is answered in memory.

Botocore builds, signs and sends requests and parses answers, so its work is measured, too; only sockets and TLS are
left out. The stand-in keeps one byte for each letter, so that any memory that grows is ours. It also checks the order
of effects: a letter that is recorded before it was sent, or deleted before it was recorded, counts as a violation.
"""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from smart_redriver.engine.config.deployment import Deployment

REGION = "eu-west-1"
ARN = f"arn:aws:sqs:{REGION}:123456789012:"
URL = f"https://sqs.{REGION}.amazonaws.com/123456789012/"
SOURCE, DLQ, PARKING_LOT, TABLE = "orders", "orders-dlq", "orders-parking-lot", "redriver-state"
DEPLOYMENT = Deployment(
    queue_name=SOURCE,
    table_name=TABLE,
    source_queue_url=URL + SOURCE,
    dlq_url=URL + DLQ,
    parking_lot_url=URL + PARKING_LOT,
)

#: The size of one letter: an order of 300 bytes, one message attribute, and a receipt handle as long as SQS's.
BODY = json.dumps({"order": 4711, "lines": [{"sku": f"sku-{n}", "count": n} for n in range(9)]})
_HANDLE = "AQEB" + "x" * 340
_MD5 = "0" * 32

#: A letter's stages, as the stand-in sees them.
IN_QUEUE, IN_FLIGHT, SENT, RECORDED, DELETED = range(5)

Asked = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """One run's requests to AWS: calls by operation, entries in their batches, and how many were out of order."""

    calls: Counter[str] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)
    violations: int = 0

    def forget(self) -> None:
        """Count from here on. What came before was preparation."""
        self.calls.clear()
        self.entries.clear()


class StandIn:
    """One DLQ of `letters` letters that SQS moved there an hour ago, its source queue, parking lot and state table.

    If `checks_order` is false, the ledger is ignored, for re-drivers that write another one.
    """

    def __init__(self, letters: int, *, latency: float = 0.0, body: str = BODY) -> None:
        self.seen = Seen()
        self.latency = latency
        self._body = json.dumps(body, ensure_ascii=False)
        self._states = bytearray(letters)
        self._received = 0
        self._items: dict[str, Asked] = {}
        self._lock = Lock()
        self._desk = Lock()
        self.checks_order = True
        sent_at = int(time.time() * 1000) - 3_600_000
        self._system = json.dumps(
            {
                "SenderId": "AROAEXAMPLE:producer",
                "ApproximateFirstReceiveTimestamp": str(sent_at + 1000),
                "ApproximateReceiveCount": "4",
                "SentTimestamp": str(sent_at),
                "DeadLetterQueueSourceArn": ARN + SOURCE,
            }
        )
        self._answers: dict[str, Callable[[Asked], str]] = {
            "GetQueueAttributes": self._get_queue_attributes,
            "ListMessageMoveTasks": lambda _: '{"Results":[]}',
            "ReceiveMessage": self._receive,
            "SendMessage": self._send,
            "SendMessageBatch": self._send_batch,
            "DeleteMessage": self._delete,
            "DeleteMessageBatch": self._delete_batch,
            "ChangeMessageVisibilityBatch": _all_successful,
            "CreateTable": lambda _: "{}",
            "GetItem": self._get_item,
            "PutItem": self._put_item,
            "DeleteItem": lambda _: "{}",
            "BatchGetItem": self._batch_get,
            "BatchWriteItem": self._batch_write,
        }

    def serve(self, *clients: Any) -> None:
        """Answer every call of these boto3 clients from now on."""
        for client in clients:
            service = client.meta.service_model.service_name
            client.meta.events.register(f"before-send.{service}", self._carry)

    @property
    def done(self) -> int:
        """Letters that have gone all the way."""
        return self._states.count(DELETED)

    def _carry(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        if self.latency:
            time.sleep(self.latency)
        target = request.headers["X-Amz-Target"]
        operation = (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]
        # One at a time, so that the stand-in's memory for large messages is not taken for ours.
        with self._desk:
            content = self._answers[operation](json.loads(cast("bytes", request.body))).encode()
        with self._lock:
            self.seen.calls[operation] += 1
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "Content-Length": str(len(content)),
            "x-amz-crc32": str(zlib.crc32(content)),
            "x-amzn-RequestId": "5c2b7b1e-4f6a-5a57-a3b1-2d6d4e1f0c11",
        }
        return AWSResponse(request.url, 200, cast("Any", headers), _Raw(content))

    # SQS.

    def _get_queue_attributes(self, asked: Asked) -> str:
        name = asked["QueueUrl"].rpartition("/")[2]
        waiting = self._states.count(IN_QUEUE) if name == DLQ else 0
        policy = {"deadLetterTargetArn": ARN + DLQ, "maxReceiveCount": 3}
        told = {
            "QueueArn": ARN + name,
            "ApproximateNumberOfMessages": str(waiting),
            "ApproximateNumberOfMessagesNotVisible": "0",
            "ApproximateNumberOfMessagesDelayed": "0",
            "VisibilityTimeout": "30",
            "MessageRetentionPeriod": "1209600",
            "MaximumMessageSize": "1048576",
        }
        return json.dumps(
            {"Attributes": told | ({"RedrivePolicy": json.dumps(policy)} if name == SOURCE else {})}
        )

    def _receive(self, asked: Asked) -> str:
        with self._lock:
            first = self._received
            last = min(first + asked.get("MaxNumberOfMessages", 1), len(self._states))
            self._received = last
        if first == last:
            return "{}"
        self._states[first:last] = bytes([IN_FLIGHT]) * (last - first)
        body, system = self._body, self._system
        messages = ",".join(
            f'{{"MessageId":"{_message_id(n)}","ReceiptHandle":"{n:08}{_HANDLE}","MD5OfBody":"{_MD5}",'
            f'"Body":{body},"Attributes":{system},"MD5OfMessageAttributes":"{_MD5}",'
            '"MessageAttributes":{"Tenant":{"StringValue":"blue","DataType":"String"}}}'
            for n in range(first, last)
        )
        return f'{{"Messages":[{messages}]}}'

    def _send(self, _asked: Asked) -> str:
        return f'{{"MessageId":"{_message_id(0)}","MD5OfMessageBody":"{_MD5}"}}'

    def _send_batch(self, asked: Asked) -> str:
        told = []
        for entry in asked["Entries"]:
            metadata = json.loads(entry["MessageAttributes"]["RedriveTrail"]["StringValue"])
            self._moves(_number(metadata["id"]), IN_FLIGHT, SENT)
            told.append(
                f'{{"Id":"{entry["Id"]}","MessageId":"{_message_id(_number(metadata["id"]))}",'
                f'"MD5OfMessageBody":"{_MD5}","MD5OfMessageAttributes":"{_MD5}"}}'
            )
        self._count("SendMessageBatch", len(told))
        return f'{{"Successful":[{",".join(told)}]}}'

    def _delete(self, asked: Asked) -> str:
        self._moves(int(asked["ReceiptHandle"][:8]), RECORDED, DELETED)
        return "{}"

    def _delete_batch(self, asked: Asked) -> str:
        for entry in asked["Entries"]:
            self._moves(int(entry["ReceiptHandle"][:8]), RECORDED, DELETED)
        self._count("DeleteMessageBatch", len(asked["Entries"]))
        return _all_successful(asked)

    # DynamoDB: keeps the circuit and the lease; of the ledger, only the fact that it was written.

    def _get_item(self, asked: Asked) -> str:
        item = self._items.get(asked["Key"]["PK"]["S"])
        return json.dumps({"Item": item} if item else {})

    def _put_item(self, asked: Asked) -> str:
        key = asked["Item"]["PK"]["S"]
        if not key.startswith("MESSAGE#"):
            self._items[key] = asked["Item"]
        return "{}"

    def _batch_get(self, asked: Asked) -> str:
        ((table, keys),) = asked["RequestItems"].items()
        self._count("BatchGetItem", len(keys["Keys"]))
        return f'{{"Responses":{{"{table}":[]}},"UnprocessedKeys":{{}}}}'

    def _batch_write(self, asked: Asked) -> str:
        ((_, requests),) = asked["RequestItems"].items()
        for request in requests:
            key = request["PutRequest"]["Item"]["PK"]["S"]
            self._moves(_number(key.removeprefix("MESSAGE#")), SENT, RECORDED)
        self._count("BatchWriteItem", len(requests))
        return '{"UnprocessedItems":{}}'

    def _moves(self, number: int, before: int, after: int) -> None:
        if self.checks_order and self._states[number] != before:
            self.seen.violations += 1
        self._states[number] = after

    def _count(self, operation: str, entries: int) -> None:
        with self._lock:
            self.seen.entries[operation] += entries


class _Raw:
    """The body of an answer, as urllib3 returns it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


def _message_id(number: int) -> str:
    return f"{number:08}-4f6a-4a57-a3b1-2d6d4e1f0c11"


def _number(message_id: str) -> int:
    return int(message_id[:8])


def _all_successful(asked: Asked) -> str:
    told = ",".join(f'{{"Id":"{entry["Id"]}"}}' for entry in asked["Entries"])
    return f'{{"Successful":[{told}]}}'
