"""Records of the DLQ topic as letters, and how each is known. Pure.

A letter goes by where its message was when it failed, as SQS keeps the id of a message that it moves: the copy that a
redrive wrote at offset 17 comes back as what was at offset 17. Offsets begin anew with a topic of the same name, so a
digest of topic, key and value is part of the id. Where nothing tells, a letter goes by where it is in the DLQ topic.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    Attribute,
    Letter,
    RedriveMetadata,
    Unfit,
    read_metadata,
)
from smart_redriver.engine.reports.outcomes import MAX_FIRST_LINE, on_one_line
from smart_redriver.kafka.engine.records import Header, Partition, Position, Record
from smart_redriver.kafka.engine.shapes import Death, Message, message_of

#: The header of a letter that waits in the retry topic: how it is known, and where it was first.
HELD_HEADER = "RedriveHeld"

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_POSITION = re.compile(r".*-([0-9]+)-([0-9]+)-[0-9a-f]{16}")
_UNFIT_FOR_IDS = re.compile(r"[^A-Za-z0-9_-]")
#: So much of a topic's name is in an id, which has a hundred characters at most.
_NAME_IN_ID = 40
#: Hexadecimal digits of a message's digest at the end of its id.
_DIGEST = 16


def id_at(position: Position, key: bytes | None, value: bytes | None) -> str:
    """The id of a message with this content at this place."""
    topic, number = position.partition
    name = _UNFIT_FOR_IDS.sub("_", topic)[:_NAME_IN_ID]
    return f"{name}-{number}-{position.offset}-{_digest(topic, key, value)}"


def _digest(topic: str, key: bytes | None, value: bytes | None) -> str:
    digest = sha256()
    for part in (topic.encode(), key, value):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.hexdigest()[:_DIGEST]


def place_in(message_id: str) -> tuple[int, int] | None:
    """Partition and offset that an id of ours tells; None for another."""
    told = _POSITION.fullmatch(message_id)
    return (int(told[1]), int(told[2])) if told else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A record of the DLQ topic or the retry topic, understood.

    Attributes:
        place: partition and offset that it had first, by which letters of one key are in order.
        is_traceable: it would be known if it came back: where its message was, or redrive metadata, is told.

    """

    letter: Letter
    message: Message
    record: Record
    place: tuple[int, int]
    is_traceable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The facts that the retry topic keeps beside a letter."""

    message_id: str
    place: tuple[int, int]
    died_at: datetime

    def encode(self) -> bytes:
        """The header's value."""
        fields = {
            "id": self.message_id,
            "place": list(self.place),
            "died": self.died_at.isoformat(),
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> Held:
        """Raises ValueError for what `encode` did not write."""
        try:
            fields = json.loads(value)
            partition, offset = fields["place"]
            held = cls(
                message_id=str(fields["id"]),
                place=(int(partition), int(offset)),
                died_at=datetime.fromisoformat(fields["died"]).astimezone(UTC),
            )
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as fault:
            raise ValueError(f"no note on a held letter: {type(fault).__name__}") from fault
        if not _ID.fullmatch(held.message_id):
            raise ValueError("no note on a held letter: an id out of bounds")
        return held


def dead_of(record: Record, topics: Set[str], home: str, *, keeps_order: bool, group: str) -> Dead:
    """The letter that a record is. Whatever the record holds, nothing is raised.

    Args:
        topics: those that letters may go back to; `home` is the one of letters that do not say where they came from,
            empty where that can't be told.
        keeps_order: letters of one key are a group.
        group: the consumers whose dead letters these are.

    """
    note, headers = _taken_off(record.headers, HELD_HEADER)
    record = replace(record, headers=headers)
    message, text = _without_metadata(record)
    metadata, metadata_fault = _metadata(text, topics)
    metadata, is_anothers = _as_known_to(group, metadata, message)
    death = message.death
    topic = death.topic or home
    failed_there, lies = _failed_at(death), record.position
    held = _held(note) or Held(
        message_id=id_at(failed_there or lies, message.key, message.value),
        place=(lies.partition.number, lies.offset),
        died_at=record.at,
    )
    letter = Letter(
        message_id=held.message_id,
        receipt_handle=held.message_id,
        body=text_of(message.value),
        attributes=_attributes(message),
        sent_at=held.died_at,
        failed_at=min(death.failed_at or held.died_at, held.died_at),
        group_id=group_of(message.key, topic) if keeps_order else None,
        source_arn=topic if topic in topics else None,
        metadata=metadata,
        metadata_fault=metadata_fault,
        unfit=_unfit(message, topic, topics),
        is_anothers=is_anothers,
        content_marks=_content_marks(message, metadata, held.message_id),
    )
    return Dead(
        letter=replace(letter, extra_bytes=message.size - letter.size),
        message=message,
        record=record,
        place=held.place,
        is_traceable=failed_there is not None or metadata is not None,
    )


def _failed_at(death: Death) -> Position | None:
    """The position of the message when its consumer failed; None if its headers do not tell."""
    if not death.topic or death.partition is None or death.offset is None:
        return None
    return Position(Partition(death.topic, death.partition), death.offset)


def group_of(key: bytes | None, topic: str) -> str | None:
    """The group of messages whose order is kept; None for a message without a key."""
    return None if key is None else sha256(topic.encode() + b"\0" + key).hexdigest()


def text_of(value: bytes | None) -> str:
    """A value as people read it: what is no text is in Base64."""
    if value is None:
        return ""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()


def with_header(headers: tuple[Header, ...], name: str, value: bytes) -> tuple[Header, ...]:
    """Headers with one of ours in the place of those of its name."""
    return (*(one for one in headers if one[0] != name), (name, value))


def _taken_off(headers: tuple[Header, ...], name: str) -> tuple[bytes | None, tuple[Header, ...]]:
    """The last header of a name, and the headers without those of that name."""
    values = [value for header, value in headers if header == name]
    if not values:
        return None, headers
    return values[-1] or b"", tuple(one for one in headers if one[0] != name)


def _held(note: bytes | None) -> Held | None:
    try:
        return Held.decode(note) if note is not None else None
    except ValueError:
        return None


def _without_metadata(record: Record) -> tuple[Message, bytes | None]:
    """The message in a record without its metadata, and the text of that metadata."""
    message = message_of(record)
    beside, _ = _taken_off(record.headers, METADATA_ATTRIBUTE)
    # An envelope may have one among the message's own headers; that beside it is the later one.
    within, headers = _taken_off(message.headers, METADATA_ATTRIBUTE)
    return replace(message, headers=headers), within if beside is None else beside


def _metadata(text: bytes | None, topics: Set[str]) -> tuple[RedriveMetadata | None, str | None]:
    if text is None:
        return None, None
    value: Attribute = {"DataType": "String", "StringValue": text.decode("utf-8", "replace")}
    return read_metadata({METADATA_ATTRIBUTE: value}, topics)


def _as_known_to(
    group: str, metadata: RedriveMetadata | None, message: Message
) -> tuple[RedriveMetadata | None, bool]:
    """A message's metadata as `group` knows it, and whether it is another group's.

    Another group's metadata names the message that was copied, but none of that group's tries. It is dropped where the
    message has other content than that, as when a consumer copied its headers on to a message of its own.
    """
    if metadata is None or metadata.sent_for in ("", group):
        return metadata, False
    if _digest(metadata.queue, message.key, message.value) != metadata.original_id[-_DIGEST:]:
        return None, False
    return replace(metadata, redrive_count=0, batch=0, generation=0), True


def _content_marks(
    message: Message, metadata: RedriveMetadata | None, message_id: str
) -> tuple[str, ...]:
    """The ends of ids that this content has: as it was sent, and as it lies here. The topic is part of a digest."""
    here = message_id.rpartition("-")[2]
    sent = here if metadata is None else _digest(metadata.queue, message.key, message.value)
    return f"-{sent}", f"-{here}"


def _unfit(message: Message, topic: str, topics: Set[str]) -> Unfit | None:
    if topic not in topics:
        return Unfit.UNKNOWN_ORIGIN
    return None if message.is_whole else Unfit.INCOMPLETE


def _attributes(message: Message) -> dict[str, Attribute]:
    death = message.death
    texts = {"ErrorType": death.error_class, "ErrorMessage": death.error_message}
    told: dict[str, Attribute] = {
        name: {"DataType": "String", "StringValue": on_one_line(text, MAX_FIRST_LINE)}
        for name, text in texts.items()
        if text
    }
    if death.attempts is not None:
        told["Attempts"] = {"DataType": "Number", "StringValue": str(death.attempts)}
    return told
