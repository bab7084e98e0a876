"""The death that a record of a DLQ topic describes, in each shape that libraries write. Pure.

    Spring Kafka            kafka_dlt-original-topic, ..., or kafka_original-topic, ... with retry topics
    Kafka Connect           __connect.errors.topic, ...
    Confluent and others    x-original-topic, ..., x-exception-...
    a plain envelope        {"original_topic": ..., "payload": ..., "attempt_count": ..., "error_class": ...}

A library adds its headers each time, so the last one with a name counts. These are removed again; the producer's own
headers stay in their order.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from smart_redriver.kafka.engine.records import UNREADABLE, Header, NewRecord, bytes_of

#: https://kafka.apache.org/documentation/ : a topic's legal characters, and how long its name may be.
TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")

_LARGEST = 2**63 - 1
_DIGITS = re.compile(rb"[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The last moment that a datetime holds, in milliseconds.
_LATEST = 253_402_300_799_999


def _number_in(text: str) -> int:
    """A whole number in JSON; -1 for one that is too long to mean anything here."""
    return int(text) if len(text) < 20 else -1


_JSON = json.JSONDecoder(parse_int=_number_in)
_MARK = re.compile(r"[ \t\n\r]*([{}:,])[ \t\n\r]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """The last failure of a message. A value that the record does not give is None.

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
    """A message as its producer sent it, and how it died. `is_whole`: no part of it is missing."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    death: Death
    is_whole: bool = True

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        return bytes_of(self.key, self.value, self.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The names that one library uses, by the field of `Death`. The first existing one of several names counts.

    `added`: other headers that it adds, as whole names or, with a hyphen or dot at the end, as beginnings.
    `shared`: those of `names` that producers use, too. A consumer appends to the headers that it read, so they are
    added if they stand behind one that is the library's alone.
    """

    names: Mapping[str, tuple[str, ...]]
    added: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    def removed_from(self, headers: Sequence[Header]) -> tuple[Header, ...]:
        """The headers without those that the library added."""
        own = [self._is_its_own(name) for name, _ in headers]
        first = own.index(True)  # there is one: the topic's
        return tuple(
            one
            for number, one in enumerate(headers)
            if not own[number] and not (number > first and one[0] in self.shared)
        )

    def _is_its_own(self, name: str) -> bool:
        whole = {one for some in self.names.values() for one in some if one not in self.shared}
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
    # Only whole names, because other people's headers often begin with x-original-, too.
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
        shared=(
            "x-error-class",
            "x-error-message",
            "x-error-stacktrace",
            "x-attempt-count",
            "x-retry-count",
            "x-attempts",
            "x-consumer-group",
        ),
    ),
)


def message_of(record: NewRecord) -> Message:
    """Read the original message from a record of a DLQ topic. Raises nothing, whatever the record contains."""
    if UNREADABLE in record.headers:
        return replace(_as_it_is(record), is_whole=False)
    last = dict(record.headers)
    for shape in _SHAPES:
        topics = shape.names["topic"]
        if any(_topic(last.get(one)) for one in topics):
            return Message(
                key=record.key,
                value=record.value,
                headers=shape.removed_from(record.headers),
                death=_death(shape, last),
            )
    return _unwrapped(record) or _as_it_is(record)


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
    return _legal(_text(value))


def _legal(topic: object) -> str | None:
    """The name if a topic can have it; else None."""
    return topic if isinstance(topic, str) and TOPIC.fullmatch(topic) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _number(value: bytes | None) -> int | None:
    """Read digits, or Java's number of four or eight bytes. No real number is ambiguous."""
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
    """The message in a plain envelope; None if the value is not an envelope."""
    bare = _as_it_is(record)
    try:
        envelope = _envelope(record.value or b"")
    except RecursionError:
        return replace(bare, is_whole=False)
    if envelope is None:
        return None
    told = envelope.fields
    topic = _legal(told["original_topic"])
    message = replace(bare, is_whole=False)
    if topic is not None:
        with suppress(ValueError):
            message = replace(
                bare,
                key=_key(envelope, record.key),
                value=_payload(envelope),
                headers=(*record.headers, *_headers_in(envelope)),
            )
    death = Death(
        topic=topic,
        partition=_whole(told.get("original_partition")),
        offset=_whole(told.get("original_offset")),
        failed_at=_moment(told.get("failed_at")),
        error_class=_said(told.get("error_class")),
        error_message=_said(told.get("error_message")),
        stack_trace=_said(told.get("stack_trace")),
        attempts=_whole(told.get("attempt_count")),
        group=_said(told.get("consumer_group")),
    )
    return replace(message, death=death)


def _as_it_is(record: NewRecord) -> Message:
    return Message(key=record.key, value=record.value, headers=record.headers, death=Death())


@dataclass(frozen=True, slots=True)
class _Envelope:
    """An envelope's fields, and the original text of each: a number that is parsed and written again may differ."""

    fields: Mapping[str, Any]
    written: Mapping[str, str]
    repeated: Set[str]

    def the(self, name: str) -> Any:
        """A field; None if it does not exist. Raises ValueError if it exists several times."""
        if name in self.repeated:
            raise ValueError(f"{name} is there twice")
        return self.fields.get(name)


def _envelope(value: bytes) -> _Envelope | None:
    """The value as an envelope, or None. Raises RecursionError if it is nested too deeply to be read."""
    if b'"original_topic"' not in value or value.lstrip()[:1] != b"{":
        return None
    try:
        members = list(_members(value.decode("utf-8", "surrogatepass")))
    except ValueError:
        return None
    fields = {name: read for name, read, _ in members}
    if not _tell_of_death(fields):
        return None
    counts = Counter(name for name, _, _ in members)
    return _Envelope(
        fields,
        {name: written for name, _, written in members},
        {name for name, count in counts.items() if count > 1},
    )


def _tell_of_death(fields: Mapping[str, Any]) -> bool:
    """Whether there are fields for the topic of a message, and for how it failed there."""
    return "original_topic" in fields and ("attempt_count" in fields or "error_class" in fields)


def _members(text: str) -> Iterator[tuple[str, Any, str]]:
    """Yield each field of a JSON object: its name, its value, and the value's original text.

    Raises ValueError if the text is not an object.
    """
    mark, at = _past(text, 0, "{")
    while mark != "}":
        if text[at : at + 1] != '"':
            raise ValueError("a name that is no text")
        name, at = _JSON.raw_decode(text, at)
        _, start = _past(text, at, ":")
        value, end = _JSON.raw_decode(text, start)
        yield name, value, text[start:end]
        mark, at = _past(text, end, ",}")
    if at != len(text):
        raise ValueError("more than one object")


def _past(text: str, at: int, marks: str) -> tuple[str, int]:
    """Return one of these marks, and where the text goes on after it. Raises ValueError if there is none."""
    found = _MARK.match(text, at)
    if found is None or found[1] not in marks:
        raise ValueError(f"none of {marks}")
    return found[1], found.end()


def _key(envelope: _Envelope, of_record: bytes | None) -> bytes | None:
    """The message's key. Raises ValueError if it can't be known."""
    key = envelope.the("original_key")
    if isinstance(key, str):
        return key.encode()
    if key is not None and envelope.written["original_key"].encode() != of_record:
        raise ValueError("a key that is no text")
    return of_record


def _payload(envelope: _Envelope) -> bytes | None:
    """The message's value: text as it is, other JSON in its original text. Raises ValueError if it can't be known."""
    encoded = envelope.the("payload_base64")
    if isinstance(encoded, str):
        return base64.b64decode(encoded, validate=True)
    if encoded is not None:
        raise ValueError("Base64 that is no text")
    payload = envelope.the("payload")
    if payload is None and "payload" not in envelope.fields:
        raise ValueError("no payload")
    if payload is None:
        return None
    # JSON allows half of a surrogate pair, but that is not text.
    return (payload if isinstance(payload, str) else envelope.written["payload"]).encode()


def _headers_in(envelope: _Envelope) -> Iterator[Header]:
    """The message's headers, including repeated names. Raises ValueError if one can't be known."""
    if envelope.the("original_headers") is None:
        return
    for name, value, _ in _members(envelope.written["original_headers"]):
        if value is not None and not isinstance(value, str):
            raise ValueError("a header that is no text")
        name.encode()  # otherwise nobody could send it
        yield name, None if value is None else value.encode()


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
            return told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            return None
    milliseconds = _whole(value)
    if milliseconds is None or milliseconds > _LATEST:
        return None
    return _EPOCH + timedelta(milliseconds=milliseconds)
