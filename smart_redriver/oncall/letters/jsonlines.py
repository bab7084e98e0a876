"""One letter as one JSON object, binary attributes included: what export writes and import reads."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from smart_redriver.engine.config.queue_names import queue_name
from smart_redriver.engine.messages.letter import Attribute, Letter, Trail, Unfit
from smart_redriver.engine.triage.case import Case

VERSION = 1

#: Of why a letter was parked, in characters: the ledger keeps it, and the re-driver's own words are shorter.
_LONGEST_REASON = 500


def letter_to_json(case: Case, queue: str) -> dict[str, Any]:
    """Everything that the message is, and what the ledger knows of it."""
    letter, entry = case.letter, case.known(queue)
    return {
        "version": VERSION,
        "queue": queue,
        "message_id": letter.message_id,
        "original_id": letter.original_id,
        "sent_at": letter.sent_at.isoformat(),
        "body": letter.body,
        "attributes": attributes_to_json(letter.attributes),
        "group_id": letter.group_id,
        "trace_header": letter.trace_header,
        "source_arn": entry.source_arn,
        "trail": letter.trail.encode() if letter.trail else None,
        "first_seen": entry.first_seen.isoformat(),
        "redrive_count": entry.redrive_count,
        "strikes": entry.strikes,
        "reason": entry.park_reason,
        "error": entry.error,
        **({"unfit": letter.unfit.value} if letter.unfit else {}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A letter of a file: `queue` names the source queue that it was of, `reason` says why it had been parked."""

    letter: Letter
    queue: str | None
    reason: str | None


def letter_from_json(fields: Any) -> Kept:
    """The letter of one line. Raises ValueError saying what is wrong."""
    if not isinstance(fields, dict):
        raise ValueError("each line must be one JSON object")  # noqa: TRY004 - one kind of fault for all
    if fields.get("version") != VERSION:
        raise ValueError(f"version {fields.get('version')!r} is not known, {VERSION} is")
    try:
        trail = _text_or_none(fields, "trail")
        letter = Letter(
            message_id=_text(fields, "message_id"),
            receipt_handle="",
            body=_text(fields, "body", least=0),  # a row may have an empty payload, or none
            attributes=attributes_from_json(fields.get("attributes") or {}),
            sent_at=_moment(_text(fields, "sent_at")),
            group_id=_text_or_none(fields, "group_id"),
            trace_header=_text_or_none(fields, "trace_header"),
            source_arn=_text_or_none(fields, "source_arn"),
            trail=Trail.decode(trail) if trail else None,
            unfit=Unfit(fields["unfit"]) if fields.get("unfit") else None,
        )
    except KeyError as fault:
        raise ValueError(f"{fault.args[0]} is missing") from fault
    reason = _text_or_none(fields, "reason")
    if len(reason or "") > _LONGEST_REASON:
        raise ValueError(f"reason is longer than {_LONGEST_REASON} characters")
    queue = _source_queue(letter, _text_or_none(fields, "queue"))
    return Kept(letter=letter, queue=queue, reason=reason)


def _source_queue(letter: Letter, told: str | None) -> str | None:
    """The name of its queue, as SQS says it; of a target the name that the file tells, which says its kind."""
    if letter.source_arn is None or (told is not None and ":" in told):
        return told
    return queue_name(letter.source_arn)


def attributes_to_json(attributes: Mapping[str, Attribute]) -> dict[str, dict[str, str]]:
    """Message attributes with their exact DataType; binary values in base64."""
    return {name: _attribute_to_json(value) for name, value in attributes.items()}


def attributes_from_json(plain: Any) -> dict[str, Attribute]:
    """The inverse. Raises ValueError naming the attribute that is wrong."""
    if not isinstance(plain, dict):
        raise ValueError("attributes are an object of objects")  # noqa: TRY004 - one kind of fault for all
    return {
        _encodable(name, "the name of an attribute"): _attribute_from_json(name, value)
        for name, value in plain.items()
    }


def _attribute_to_json(attribute: Attribute) -> dict[str, str]:
    plain = {"DataType": str(attribute["DataType"])}
    if "BinaryValue" in attribute:
        plain["BinaryBase64"] = base64.b64encode(attribute["BinaryValue"]).decode()
    else:
        plain["StringValue"] = str(attribute.get("StringValue", ""))
    return plain


def _attribute_from_json(name: str, value: Any) -> Attribute:
    if not isinstance(value, dict) or not isinstance(value.get("DataType"), str):
        raise ValueError(f"attribute {name} has no DataType")  # noqa: TRY004 - one kind of fault for all
    data_type = _encodable(value["DataType"], f"DataType of attribute {name}")
    if isinstance(encoded := value.get("BinaryBase64"), str):
        try:
            binary = base64.b64decode(encoded, validate=True)
        except ValueError as fault:
            raise ValueError(f"attribute {name}: BinaryBase64 is not base64") from fault
        return {"DataType": data_type, "BinaryValue": binary}
    if isinstance(text := value.get("StringValue"), str):
        return {"DataType": data_type, "StringValue": _encodable(text, f"attribute {name}")}
    raise ValueError(f"attribute {name} has neither StringValue nor BinaryBase64")


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError as fault:
        raise ValueError(f"{text!r} is not a point in time") from fault


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name, least=0)


def _text(fields: Mapping[str, Any], name: str, *, least: int = 1) -> str:
    value = fields[name]
    if not isinstance(value, str) or len(value) < least:
        raise ValueError(f"{name} is not text")
    return _encodable(value, name)


def _encodable(text: str, what: str) -> str:
    """The text, which AWS can be sent. JSON can name halves of characters, and a half alone is no text."""
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise ValueError(f"{what} has half a character in it, {text[fault.start]!r}") from fault
    return text
