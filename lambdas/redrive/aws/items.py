"""How circuits and ledger entries are written in the state table. Readable by people: times are ISO 8601, UTC.

A reader meets items of older versions: whatever an item lacks takes the field's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from redrive.core.batch import Batch, Judged, Verdict
from redrive.core.circuit import Circuit, Orders, State
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Trail

Item = dict[str, Any]

#: A copy of a letter can live 14 days in its source queue, 14 more in the DLQ or the parking lot; a parked
#: letter is renewed after that, and its entry with it.
ENTRY_KEPT = timedelta(days=45)

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def circuit_key(queue: str) -> Item:
    """The key of a queue's circuit."""
    return {"PK": {"S": f"CIRCUIT_BREAKER#{queue}"}}


def lease_key(queue: str) -> Item:
    """The key of a queue's lease."""
    return {"PK": {"S": f"LEASE#{queue}"}}


def message_key(message_id: str) -> Item:
    """The key of a letter's ledger entry, or of the trail kept for one copy of it."""
    return {"PK": {"S": f"MESSAGE#{message_id}"}}


def circuit_to_item(circuit: Circuit) -> Item:
    """The state table's item of `circuit`."""
    return _typed(
        {
            "State": circuit.state.value,
            "FailureCount": circuit.failure_count,
            "SuccessCount": circuit.success_count,
            "LastStateChangeTimestamp": _iso(circuit.changed_at),
            "LastAttemptTimestamp": _iso(circuit.last_attempt_at),
            "DlqSweepTimestamp": _iso(circuit.dlq_sweep_at),
            "LotSweepTimestamp": _iso(circuit.lot_sweep_at),
            "Version": circuit.version,
            "Generation": circuit.generation,
            "ConsecutiveOpens": circuit.consecutive_opens,
            "Window": circuit.window,
            "IsShaken": circuit.is_shaken,
            "ProbedTimestamp": _iso(circuit.probed_at),
            "GoodWindow": circuit.good_window,
            "PacedUntilTimestamp": _iso(circuit.paced_until),
            "CoolsUntilTimestamp": _iso(circuit.cools_until),
            "UrgentSweepTimestamp": _iso(circuit.urgent_sweep_at),
            "Reason": circuit.reason,
            "Orders": _plain(circuit.orders),
            "Pending": [_plain(batch) for batch in circuit.pending],
            # One short text each: there may be two hundred, and every KB written is a write unit.
            "Judged": [_judged_to_text(judged) for judged in circuit.judged],
        }
    ) | circuit_key(circuit.queue)


def circuit_from_item(queue: str, item: Item) -> Circuit:
    """The circuit in `item`. Raises KeyError or ValueError for an item that no version wrote."""
    values = _untyped(item)
    return Circuit(
        queue=queue,
        state=State(values["State"]),
        failure_count=int(values.get("FailureCount", 0)),
        success_count=int(values.get("SuccessCount", 0)),
        changed_at=_time(values["LastStateChangeTimestamp"]),
        last_attempt_at=_maybe_time(values.get("LastAttemptTimestamp")),
        dlq_sweep_at=_maybe_time(values.get("DlqSweepTimestamp")),
        lot_sweep_at=_maybe_time(values.get("LotSweepTimestamp")),
        version=int(values.get("Version", 0)),
        generation=int(values.get("Generation", 0)),
        consecutive_opens=int(values.get("ConsecutiveOpens", 0)),
        window=int(values["Window"]),
        is_shaken=bool(values.get("IsShaken", False)),
        probed_at=_maybe_time(values.get("ProbedTimestamp")),
        good_window=int(values.get("GoodWindow", 0)),
        paced_until=_maybe_time(values.get("PacedUntilTimestamp")),
        cools_until=_maybe_time(values.get("CoolsUntilTimestamp")),
        urgent_sweep_at=_maybe_time(values.get("UrgentSweepTimestamp")),
        reason=str(values.get("Reason", "new")),
        orders=Orders(**_fields(Orders, values.get("Orders", {}))),
        pending=tuple(Batch(**_fields(Batch, batch)) for batch in values.get("Pending", ())),
        judged=tuple(_judged_from_text(text) for text in values.get("Judged", ())),
    )


def entry_to_item(entry: Entry, now: datetime) -> Item:
    """The state table's item of `entry`, to be forgotten some time after the letter can have expired."""
    return _typed(
        {
            "Queue": entry.queue,
            "Status": entry.status.value,
            "RedriveCount": entry.redrive_count,
            "Strikes": entry.strikes,
            "FirstSeenTimestamp": _iso(entry.first_seen),
            "LastRedriveTimestamp": _iso(entry.last_redrive),
            "CurrentMessageId": entry.current_id,
            "ReplacedMessageIds": list(entry.replaced_ids),
            "Batch": entry.batch,
            "SettledBatch": entry.settled_batch,
            "Generation": entry.generation,
            "NotBeforeTimestamp": _iso(entry.not_before),
            "SeenInVersion": entry.seen_in_version,
            "SourceQueueArn": entry.source_arn,
            "ParkReason": entry.park_reason,
            "ParkedTimestamp": _iso(entry.parked_at),
            "Error": entry.error,
            "FirstRedriveTimestamp": _iso(entry.first_redrive),
            "FirstStrikeTimestamp": _iso(entry.first_strike),
            "History": list(entry.history),
            "TTL": int((now + ENTRY_KEPT).timestamp()),
        }
    ) | message_key(entry.original_id)


def entry_from_item(item: Item) -> Entry:
    """The ledger entry in `item`."""
    values = _untyped(item)
    return Entry(
        original_id=values["PK"].partition("#")[2],
        queue=values["Queue"],
        status=Status(values["Status"]),
        redrive_count=int(values.get("RedriveCount", 0)),
        strikes=int(values.get("Strikes", 0)),
        first_seen=_time(values["FirstSeenTimestamp"]),
        last_redrive=_maybe_time(values.get("LastRedriveTimestamp")),
        current_id=values["CurrentMessageId"],
        replaced_ids=tuple(values.get("ReplacedMessageIds", ())),
        batch=_maybe_int(values.get("Batch")),
        settled_batch=_maybe_int(values.get("SettledBatch")),
        generation=int(values.get("Generation", 0)),
        not_before=_maybe_time(values.get("NotBeforeTimestamp")),
        seen_in_version=_maybe_int(values.get("SeenInVersion")),
        source_arn=values.get("SourceQueueArn"),
        park_reason=values.get("ParkReason"),
        parked_at=_maybe_time(values.get("ParkedTimestamp")),
        error=values.get("Error"),
        first_redrive=_maybe_time(values.get("FirstRedriveTimestamp")),
        first_strike=_maybe_time(values.get("FirstStrikeTimestamp")),
        history=tuple(values.get("History", ())),
    )


def kept_trail_to_item(message_id: str, trail: Trail, now: datetime) -> Item:
    """The item that keeps the trail for a copy which has no room to carry it."""
    values = {"Trail": trail.encode(), "TTL": int((now + ENTRY_KEPT).timestamp())}
    return _typed(values) | message_key(message_id)


def kept_trail_from_item(item: Item) -> Trail | None:
    """The trail kept in `item`; None when it is a ledger entry."""
    text = item.get("Trail", {}).get("S")
    return Trail.decode(text) if text else None


def _plain(record: Batch | Orders) -> dict[str, Any]:
    """A record as a map: CamelCase names, times as text, fractions as text (DynamoDB knows no floats)."""
    plain: dict[str, Any] = {}
    for one in fields(record):
        value = getattr(record, one.name)
        if isinstance(value, datetime):
            value = _iso(value)
        plain[_camel(one.name)] = (
            Decimal(str(round(value, 6))) if isinstance(value, float) else value
        )
    return {name: value for name, value in plain.items() if value is not None}


def _fields(kind: type[Batch] | type[Orders], plain: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in fields(kind):
        value = plain.get(_camel(one.name))
        if value is None:
            continue
        if "datetime" in str(one.type):
            value = _time(value)
        elif isinstance(value, Decimal):
            value = float(value) if "float" in str(one.type) else int(value)
        values[one.name] = value
    return values


def _judged_to_text(judged: Judged) -> str:
    verdict = (
        judged.verdict.value[0]
        + ("!" if judged.is_strike else "")
        + ("?" if judged.was_alone else "")
    )
    sent_at = int(judged.sent_at.timestamp())
    return (
        f"{judged.id}:{judged.generation}:{verdict}:{judged.returned}:{judged.overturned_at}"
        f":{judged.size}:{sent_at}"
    )


def _judged_from_text(text: str) -> Judged:
    batch, generation, verdict, returned, overturned_at, *more = text.split(":")
    size, sent_at = more or ("0", "0")  # the first edition did not keep them
    return Judged(
        id=int(batch),
        generation=int(generation),
        verdict=next(one for one in Verdict if one.value[0] == verdict[0]),
        is_strike="!" in verdict,
        was_alone="?" in verdict,
        returned=int(returned),
        overturned_at=int(overturned_at),
        size=int(size),
        sent_at=datetime.fromtimestamp(int(sent_at), UTC),
    )


def _typed(values: Mapping[str, Any]) -> Item:
    return {name: _typed_value(value) for name, value in values.items() if value is not None}


def _typed_value(value: Any) -> dict[str, Any]:
    """What boto3's serializer makes of it, too, only slower: an entry is written for every letter."""
    if type(value) is str:
        return {"S": value}
    if type(value) is int:
        return {"N": str(value)}
    if type(value) is list:
        return {"L": [_typed_value(one) for one in value]}
    return dict(_serialize(value))


def _untyped(item: Item) -> dict[str, Any]:
    return {name: _deserialize(value) for name, value in item.items()}


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _iso(instant: datetime | None) -> str | None:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z") if instant else None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _maybe_time(text: str | None) -> datetime | None:
    return _time(text) if text else None


def _maybe_int(value: Decimal | None) -> int | None:
    return int(value) if value is not None else None
