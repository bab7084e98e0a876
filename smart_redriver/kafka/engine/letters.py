"""Records of the DLQ topic as letters, and their ids. Pure.

A letter's id is the position of its message when it failed, just as SQS keeps the id of a message that it moves: the
copy that a redrive wrote at offset 17 comes back as the message from offset 17. If the position is unknown, the id is
the letter's position in the DLQ topic.

A topic that is created again begins its offsets again, so an id also has a digest of topic, key and value, and a mark
of the new topic: the same messages may come to the same offsets.

    orders-0-17-8e5f1b2c3d4e5f60              the first topic of this name that the state knows
    orders-0-17-x1f2e3d4-8e5f1b2c3d4e5f60     a later one
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Set
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
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Header, Partition, Position, Record
from smart_redriver.kafka.engine.shapes import Death, Message, message_of

#: The header of a letter that waits in the retry topic: its id, and where it was first.
HELD_HEADER = "RedriveHeld"

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_POSITION = re.compile(r".*-([0-9]+)-([0-9]+)(-x[0-9a-f]{7})?-[0-9a-f]{16}")
_UNFIT_FOR_IDS = re.compile(r"[^A-Za-z0-9_-]")
#: How much of a topic's name is in an id, which has at most a hundred characters.
_NAME_IN_ID = 40
#: Writers set the times of records. These are the bounds of a letter's times, so that no pass fails to add to them.
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
#: Hexadecimal digits of a message's digest at the end of its id.
_DIGEST = 16

#: What stands before the digest in the ids of a topic that was created again, by the topic: see `mark_of`.
Marks = Mapping[str, str]
NO_MARKS: Marks = {}


def id_at(
    position: Position, key: bytes | None, value: bytes | None, marks: Marks = NO_MARKS
) -> str:
    """The id of a message with this content at this place."""
    topic, number = position.partition
    place = f"{name_in_id(topic)}-{number}-{position.offset}{marks.get(topic, '')}"
    return f"{place}-{_digest(topic, key, value)}"


def mark_of(topic_id: str) -> str:
    """The mark of a topic that was created again, from the id that Kafka gave it."""
    return f"-x{sha256(topic_id.encode()).hexdigest()[:7]}"


def name_in_id(topic: str) -> str:
    """A topic's name as ids begin with it: shortened, with `_` instead of dots."""
    return _UNFIT_FOR_IDS.sub("_", topic)[:_NAME_IN_ID]


def _digest(topic: str, key: bytes | None, value: bytes | None) -> str:
    digest = sha256()
    for part in (topic.encode(), key, value):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return digest.hexdigest()[:_DIGEST]


def place_in(message_id: str, mark: str = "") -> tuple[int, int] | None:
    """Partition and offset in one of our ids with this mark; None for any other."""
    told = _POSITION.fullmatch(message_id)
    return (int(told[1]), int(told[2])) if told and (told[3] or "") == mark else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A record of the DLQ topic or the retry topic, understood.

    Attributes:
        place: its first partition and offset, which order the letters of one key.
        is_traceable: it would be recognised if it came back, by its message's position or by redrive metadata.

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
        """Raises ValueError for a value that `encode` did not write."""
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


def dead_of(record: Record, place: KafkaTopics, marks: Marks = NO_MARKS) -> Dead:
    """Read a record as a letter. Raises nothing, whatever the record contains."""
    topics = frozenset(place.topics)
    note, headers = _taken_off(record.headers, HELD_HEADER)
    record = replace(record, headers=headers)
    message, text = _without_metadata(record)
    metadata, metadata_fault = _metadata(text, topics)
    metadata, is_anothers = _as_known_to(place.consumer_group, metadata, message)
    death = message.death
    topic = death.topic or place.home
    failed_there, lies = _failed_at(death), record.position
    held = _held(note) or Held(
        message_id=id_at(failed_there or lies, message.key, message.value, marks),
        place=(lies.partition.number, lies.offset),
        died_at=record.at,
    )
    came_at = _in_bounds(held.died_at)
    letter = Letter(
        message_id=held.message_id,
        receipt_handle=held.message_id,
        body=text_of(message.value),
        attributes=_attributes(message),
        sent_at=came_at,
        failed_at=min(_in_bounds(death.failed_at or came_at), came_at),
        group_id=group_of(message.key, topic) if place.keeps_order else None,
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


def _in_bounds(moment: datetime) -> datetime:
    return min(max(moment, _EARLIEST), _LATEST)


def keeps_its_id(dead: Dead, marks: Marks) -> bool:
    """Whether its record in the DLQ topic would still give it an id with the mark that it has."""
    where = _failed_at(dead.message.death) or dead.record.position
    return place_in(dead.letter.message_id, marks.get(where.partition.topic, "")) is not None


def _failed_at(death: Death) -> Position | None:
    """The position of the message when its consumer failed; None if its headers do not tell."""
    if not death.topic or death.partition is None or death.offset is None:
        return None
    return Position(Partition(death.topic, death.partition), death.offset)


def group_of(key: bytes | None, topic: str) -> str | None:
    """The group of messages whose order is kept; None for a message without a key."""
    return None if key is None else sha256(topic.encode() + b"\0" + key).hexdigest()


def text_of(value: bytes | None) -> str:
    """A value for people: text as it is, anything else in Base64."""
    if value is None:
        return ""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()


def with_header(headers: tuple[Header, ...], name: str, value: bytes) -> tuple[Header, ...]:
    """Headers with one of ours instead of those with its name."""
    return (*(one for one in headers if one[0] != name), (name, value))


def _taken_off(headers: tuple[Header, ...], name: str) -> tuple[bytes | None, tuple[Header, ...]]:
    """The last header with a name, and the headers without those with that name."""
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
    # An envelope may have metadata among the message's own headers. The header beside the envelope is the later one.
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
    """A message's metadata as it applies to `group`, and whether it is another group's.

    Another group's metadata identifies the copied message, but that group's tries do not count. It is dropped if the
    content differs, as when a consumer copied headers to a message of its own.
    """
    if metadata is None or metadata.sent_for in ("", group):
        return metadata, False
    if _digest(metadata.queue, message.key, message.value) != metadata.original_id[-_DIGEST:]:
        return None, False
    return replace(metadata, redrive_count=0, batch=0, generation=0), True


def _content_marks(
    message: Message, metadata: RedriveMetadata | None, message_id: str
) -> tuple[str, ...]:
    """The ends of ids for this content, as it was sent and as it is here: the topic is part of the digest."""
    here = message_id.rpartition("-")[2]
    sent = here if metadata is None else _digest(metadata.queue, message.key, message.value)
    return f"-{sent}", f"-{here}"


def _unfit(message: Message, topic: str, topics: Set[str]) -> Unfit | None:
    if not message.is_whole:
        return Unfit.INCOMPLETE
    return None if topic in topics else Unfit.UNKNOWN_ORIGIN


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
