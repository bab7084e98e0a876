"""The death that a record of a DLQ topic describes, in each of the shapes that libraries write. Pure.

    Spring Kafka            kafka_dlt-original-topic, ..., or kafka_original-topic, ... with retry topics
    Kafka Connect           __connect.errors.topic, ...
    Confluent and others    x-original-topic, ..., x-exception-...
    a plain envelope        {"original_topic": ..., "payload": ..., "attempt_count": ..., "error_class": ...}

A library adds headers anew each time, so that the last of a name counts. What it added is taken off again; the
producer's own headers stay in their order.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from smart_redriver.kafka.engine.records import Header, NewRecord

#: https://kafka.apache.org/documentation/ : a topic's legal characters, and how long its name may be.
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")

_LARGEST = 2**63 - 1
_DIGITS = re.compile(rb"[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The last moment that a datetime holds, in milliseconds.
_LATEST = 253_402_300_799_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The last failure of a message; None where the record says nothing.

    `topic`, `partition` and `offset` are where the message was when it failed.
    """

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    failed_at: datetime | None = None
    error_class: str | None = None
    error_message: str | None = None
    stack_trace: str | None = None
    attempts: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as its producer sent it, and how it died. `is_whole`: nothing of it is missing."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    death: Death
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The names that one library gives, by the field of `Death`; of several names the first that is there counts.

    `added`: what else it adds, as whole names or, with a hyphen or dot at the end, as beginnings.
    """

    names: Mapping[str, tuple[str, ...]]
    added: tuple[str, ...] = ()

    def adds(self, name: str) -> bool:
        whole = {one for some in self.names.values() for one in some}
        return name in whole or any(
            name.startswith(one) if one[-1] in "-." else name == one for one in self.added
        )


def _spring(original: str, exception: str, added: tuple[str, ...]) -> _Shape:
    return _Shape(
        names={
            "topic": (f"{original}topic",),
            "partition": (f"{original}partition",),
            "offset": (f"{original}offset",),
            "error_class": (f"{exception}cause-fqcn", f"{exception}fqcn"),
            "error_message": (f"{exception}message",),
            "stack_trace": (f"{exception}stacktrace",),
            "group": (f"{original}consumer-group",),
            "attempts": ("retry_topic-attempts",),
        },
        added=added,
    )


_SHAPES = (
    # https://docs.spring.io/spring-kafka/api/org/springframework/kafka/support/KafkaHeaders.html
    _spring("kafka_dlt-original-", "kafka_dlt-exception-", ("kafka_dlt-",)),
    _spring(
        "kafka_original-",
        "kafka_exception-",
        ("kafka_original-", "kafka_exception-", "retry_topic-"),
    ),
    # https://github.com/apache/kafka, DeadLetterQueueReporter
    _Shape(
        names={
            "topic": ("__connect.errors.topic",),
            "partition": ("__connect.errors.partition",),
            "offset": ("__connect.errors.offset",),
            "error_class": ("__connect.errors.exception.class.name",),
            "error_message": ("__connect.errors.exception.message",),
            "stack_trace": ("__connect.errors.exception.stacktrace",),
            "group": ("__connect.errors.connector.name",),
        },
        added=("__connect.errors.",),
    ),
    # Whole names alone: x-original-... is a usual beginning of other people's headers, too.
    _Shape(
        names={
            "topic": ("x-original-topic",),
            "partition": ("x-original-partition",),
            "offset": ("x-original-offset",),
            "error_class": ("x-exception-fqcn", "x-exception-class", "x-error-class"),
            "error_message": ("x-exception-message", "x-error-message"),
            "stack_trace": ("x-exception-stacktrace", "x-error-stacktrace"),
            "attempts": ("x-attempt-count", "x-retry-count", "x-attempts"),
            "group": ("x-original-group", "x-consumer-group"),
        },
        added=("x-original-timestamp", "x-original-timestamp-type"),
    ),
)


def message_of(record: NewRecord) -> Message:
    """The message that a record of a DLQ topic is left of. Whatever the record holds, nothing is raised."""
    last = dict(record.headers)
    for shape in _SHAPES:
        topics = shape.names["topic"]
        if any(_topic(last.get(one)) for one in topics):
            return Message(
                key=record.key,
                value=record.value,
                headers=tuple(one for one in record.headers if not shape.adds(one[0])),
                death=_death(shape, last),
            )
    return _unwrapped(record) or Message(
        key=record.key, value=record.value, headers=record.headers, death=Death()
    )


def _death(shape: _Shape, last: Mapping[str, bytes | None]) -> Death:
    def first(field: str) -> bytes | None:
        there = (last[one] for one in shape.names.get(field, ()) if last.get(one) is not None)
        return next(there, None)

    return Death(
        topic=_topic(first("topic")),
        partition=_number(first("partition")),
        offset=_number(first("offset")),
        error_class=_text(first("error_class")),
        error_message=_text(first("error_message")),
        stack_trace=_text(first("stack_trace")),
        attempts=_number(first("attempts")),
        group=_text(first("group")),
    )


def _topic(value: bytes | None) -> str | None:
    text = _text(value)
    return text if text is not None and TOPIC.fullmatch(text) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _number(value: bytes | None) -> int | None:
    """Digits, or a number of four or eight bytes as Java has it. Nothing real has digits for both."""
    if value is None:
        return None
    if _DIGITS.fullmatch(value):
        number = int(value)
    elif len(value) in (4, 8):
        number = int.from_bytes(value, "big", signed=True)
    else:
        return None
    return number if 0 <= number <= _LARGEST else None


def _unwrapped(record: NewRecord) -> Message | None:
    """The message in a plain envelope; None where the value is none."""
    envelope = _envelope(record.value)
    if envelope is None:
        return None
    payload, has_payload = _payload(envelope)
    key = envelope.get("original_key")
    return Message(
        key=key.encode() if isinstance(key, str) else record.key,
        value=payload if has_payload else record.value,
        headers=(*record.headers, *_headers_in(envelope)),
        death=Death(
            topic=envelope["original_topic"],
            partition=_whole(envelope.get("original_partition")),
            offset=_whole(envelope.get("original_offset")),
            failed_at=_moment(envelope.get("failed_at")),
            error_class=_said(envelope.get("error_class")),
            error_message=_said(envelope.get("error_message")),
            stack_trace=_said(envelope.get("stack_trace")),
            attempts=_whole(envelope.get("attempt_count")),
            group=_said(envelope.get("consumer_group")),
        ),
        is_whole=has_payload,
    )


def _envelope(value: bytes | None) -> dict[str, Any] | None:
    if not value or value.lstrip()[:1] != b"{":
        return None
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return None
    topic = read.get("original_topic")
    tells_of_death = "attempt_count" in read or "error_class" in read
    is_one = isinstance(topic, str) and TOPIC.fullmatch(topic) is not None and tells_of_death
    return read if is_one else None


def _payload(envelope: Mapping[str, Any]) -> tuple[bytes | None, bool]:
    """The message's value, and whether the envelope has it. Text as it is, any other JSON in its shortest form."""
    encoded = envelope.get("payload_base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True), True
        except (binascii.Error, ValueError):
            return None, False
    if "payload" not in envelope:
        return None, False
    payload = envelope["payload"]
    if payload is None:
        return None, True
    if not isinstance(payload, str):
        payload = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    try:
        return payload.encode(), True
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON lets one write
        return None, False


def _headers_in(envelope: Mapping[str, Any]) -> Iterable[Header]:
    headers = envelope.get("original_headers")
    if isinstance(headers, dict):
        for name, value in headers.items():
            if isinstance(value, str):
                yield name, value.encode("utf-8", "replace")


def _whole(value: object) -> int | None:
    is_one = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return value if is_one else None  # type: ignore[return-value]


def _said(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _moment(value: object) -> datetime | None:
    """ISO 8601, or milliseconds since 1970."""
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
        except ValueError:
            return None
        return told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC)
    milliseconds = _whole(value)
    if milliseconds is None or milliseconds > _LATEST:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)
