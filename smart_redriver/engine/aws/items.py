"""The form of circuits and ledger entries in the state table. People can read it: times are ISO 8601, UTC.

A dataclass says what its item holds, by the types of its fields:

    str -> S    int, float -> N    bool -> BOOL    datetime -> S, ISO 8601, UTC    str Enum -> S
    tuple[X, ...] -> L    dataclass -> M    X | None -> X, or nothing at all

A field that is added to a dataclass is written and read without a change here. If an item lacks a field, the field
takes its default; unknown attributes are ignored. So items of older and newer versions can be read. This module also
has the keys, and the names that differ from the fields'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.model.batch import JUDGED_KEPT, Judged, Verdict
from smart_redriver.engine.model.breaker import SMALLEST_WINDOW
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import HINT_LASTS, Hint
from smart_redriver.engine.reports.outcomes import DeliveryOutcome
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.ledger import Entry, Status

R = TypeVar("R")

#: One attribute's value as DynamoDB has it: {"S": "text"}.
Value = dict[str, Any]
Item = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Codec:
    """Encoder and decoder of one type. `decode` raises KeyError or ValueError for other values."""

    encode: Callable[[Any], Value]
    decode: Callable[[Value], Any]


class Record(Generic[R]):
    """Encoder and decoder of one dataclass.

    Args:
        names: attributes whose names are not their fields' in CamelCase, by field.
        needed: fields that every version wrote although they have a default.
        left_out: fields that are stored elsewhere, as in the key.
        unsaid: fields that are not written if they have their default.
        codecs: types with their own form.

    """

    def __init__(
        self,
        kind: type[R],
        *,
        names: Mapping[str, str] | None = None,
        needed: Collection[str] = (),
        left_out: Collection[str] = (),
        unsaid: Collection[str] = (),
        codecs: Mapping[Any, Codec] | None = None,
    ) -> None:
        hints, names = get_type_hints(kind), names or {}
        known = _SCALARS | dict(codecs or {})
        self._kind = kind
        # Plain tuples: an entry is written and read for every letter.
        self._written: list[tuple[str, str, Callable[[Any], Value], Any]] = []
        self._read: list[tuple[str, str, Callable[[Value], Any], bool]] = []
        for one in fields(kind):  # type: ignore[arg-type]
            if one.name in left_out:
                continue
            attribute = names.get(one.name) or _camel(one.name)
            codec = codec_of(hints[one.name], known)
            default = one.default if one.name in unsaid else None
            is_needed = one.name in needed or _has_no_default(one)
            self._written.append((one.name, attribute, codec.encode, default))
            self._read.append((one.name, attribute, codec.decode, is_needed))

    def encode(self, record: R) -> Item:
        """The attributes of `record`; fields that are None have none."""
        item: Item = {}
        for field, attribute, encode, default in self._written:
            value = getattr(record, field)
            if value is not None and value != default:
                item[attribute] = encode(value)
        return item

    def decode(self, item: Item, **elsewhere: Any) -> R:
        """The record in `item`, plus fields left out. Raises KeyError or ValueError if no version wrote it."""
        values = elsewhere
        for field, attribute, decode, is_needed in self._read:
            value = item.get(attribute)
            if value is not None and "NULL" not in value:
                values[field] = decode(value)
            elif is_needed:
                raise KeyError(attribute)
        return self._kind(**values)


def codec_of(hint: Any, known: Mapping[Any, Codec]) -> Codec:
    """The codec of a type. Raises TypeError for one that no item can hold yet."""
    if hint in known:
        return known[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Codec(lambda member: {"S": member.value}, lambda value: hint(value["S"]))
    if is_dataclass(hint):
        record = Record(hint, codecs=known)  # type: ignore[arg-type]  # mypy takes it for an instance
        return Codec(lambda one: {"M": record.encode(one)}, lambda value: record.decode(value["M"]))
    some = get_args(hint)
    if get_origin(hint) is tuple and some[1:] == (...,):
        return _listed(codec_of(some[0], known))
    if len(some) == 2 and some[1] is NoneType:
        return codec_of(some[0], known)
    raise TypeError(f"no codec for {hint}")


def _listed(of_each: Codec) -> Codec:
    encode, decode = of_each.encode, of_each.decode
    return Codec(
        lambda values: {"L": [encode(one) for one in values]},
        lambda value: tuple([decode(one) for one in value["L"]]),
    )


def _fraction(value: float) -> str:
    """Six decimals at most: DynamoDB takes nothing below 1e-130, and people read it."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


@lru_cache(maxsize=16)  # all letters of a round share one moment
def to_iso(instant: datetime) -> str:
    """A moment in items' form: ISO 8601, UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """The moment in an item's text; UTC if a person wrote it without a zone. Raises ValueError for any other text."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


_SCALARS: dict[Any, Codec] = {
    str: Codec(lambda value: {"S": value}, lambda value: value["S"]),
    int: Codec(lambda value: {"N": str(value)}, lambda value: int(value["N"])),
    float: Codec(lambda value: {"N": _fraction(value)}, lambda value: float(value["N"])),
    bool: Codec(lambda value: {"BOOL": value}, lambda value: value["BOOL"]),
    datetime: Codec(lambda value: {"S": to_iso(value)}, lambda value: from_iso(value["S"])),
}


#: Near the ends of Python's calendar a pass could add no time to a moment, or take none away.
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
#: More than a version or a number of letters reaches, and few enough seconds to add to a moment.
_LARGEST = 10**12


def _sane_moment(text: str) -> datetime:
    instant = from_iso(text)
    if not _EARLIEST <= instant <= _LATEST:
        raise ValueError(f"{text!r} is too early or too late")
    return instant


def _sane_number(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError(f"{text!r} is too large")
    return number


#: The scalars of an item that only passes and the command write: other moments and numbers are damage.
_BOUNDED: dict[Any, Codec] = {
    int: Codec(_SCALARS[int].encode, lambda value: _sane_number(value["N"])),
    datetime: Codec(_SCALARS[datetime].encode, lambda value: _sane_moment(value["S"])),
}

#: A letter may bring its times along, as from a table of jobs. One odd time must not keep the whole queue back.
_NEAREST = Codec(
    _SCALARS[datetime].encode,
    lambda value: min(max(from_iso(value["S"]), _EARLIEST), _LATEST),
)


def _has_no_default(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


#: A copy of a letter can live 14 days in its source queue, 14 more in the DLQ or the parking lot; a parked
#: letter is renewed after that, and its entry with it.
ENTRY_KEPT = timedelta(days=45)


def circuit_key(queue: str) -> Item:
    """The key of a queue's circuit."""
    return {"PK": {"S": f"CIRCUIT_BREAKER#{queue}"}}


def lease_key(queue: str) -> Item:
    """The key of a queue's lease."""
    return {"PK": {"S": f"LEASE#{queue}"}}


def message_key(message_id: str, within: str = "") -> Item:
    """The key of a letter's ledger entry, or of the metadata kept for one copy of it.

    `within`: the queue, if another queue of the table may have a letter with the same id; empty for SQS's ids.
    """
    return _letter_key("MESSAGE", message_id, within)


def failure_key(message_id: str, within: str = "") -> Item:
    """The key of a consumer's report on a letter's last failure. `within`: see `message_key`."""
    return _letter_key("FAILURE", message_id, within)


def message_id_of(item: Item) -> str:
    """The id in a key that `message_key` or `failure_key` made."""
    key: str = item["PK"]["S"]
    return key.partition("#")[2]


def _letter_key(kind: str, message_id: str, within: str) -> Item:
    # No queue's name has a "#"; an id may have anything.
    return {"PK": {"S": f"{kind}/{within}#{message_id}" if within else f"{kind}#{message_id}"}}


def pass_key(queue: str) -> Item:
    """The key of the report of a process's last pass, which is in no log group."""
    return {"PK": {"S": f"LAST_PASS#{queue}"}}


def hint_key(queue: str) -> Item:
    """The key of the last hint about a queue's consumer."""
    return {"PK": {"S": f"HINT#{queue}"}}


def hint_to_item(queue: str, hint: Hint) -> Item:
    """The state table's item for `hint`, which expires once the hint says nothing any more."""
    return _HINT.encode(hint) | _ends(hint.at + 2 * HINT_LASTS) | hint_key(queue)


def hint_from_item(item: Item) -> Hint:
    """The hint in `item`. Raises KeyError or ValueError for an item that no version wrote."""
    return _HINT.decode(item)


def circuit_to_item(circuit: Circuit) -> Item:
    """The state table's item of `circuit`."""
    return _CIRCUIT.encode(circuit) | circuit_key(circuit.queue)


def circuit_from_item(queue: str, item: Item) -> Circuit:
    """The circuit in `item`. Raises KeyError or ValueError for an item that no version wrote."""
    # A person or a tool that writes an item of the documented attributes knows of no window: it begins small.
    circuit = _CIRCUIT.decode(_SMALLEST_WINDOW | item, queue=queue)
    # A window of none would never grow: no letter would go, and no verdict would come.
    return replace(circuit, window=max(SMALLEST_WINDOW, circuit.window))


#: Statuses that the first edition does not know, with its words for them: an unreadable status would end its pass.
_FIRST_CALLED: dict[Status, Item] = {
    Status.FAILED: {"Status": {"S": Status.RETURNED.value}},
    Status.SUCCEEDED: {"Status": {"S": Status.REDRIVEN.value}},
}
#: The attribute that holds the real status beside such a word.
_REPORTED = "ReportedStatus"


def entry_to_item(entry: Entry, now: datetime, within: str = "") -> Item:
    """The state table's item for `entry`, which expires some time after the letter must have expired."""
    item = _ENTRY.encode(entry) | _forgotten(now) | message_key(entry.original_id, within)
    if entry.status in _FIRST_CALLED:
        item |= {_REPORTED: item["Status"]} | _FIRST_CALLED[entry.status]
    return item


def entry_from_item(item: Item) -> Entry:
    """The ledger entry in `item`. Raises KeyError or ValueError for an item that no version wrote."""
    if _REPORTED in item:
        item = item | {"Status": item[_REPORTED]}
    return _ENTRY.decode(item, original_id=message_id_of(item))


def kept_metadata_to_item(
    message_id: str, metadata: RedriveMetadata, now: datetime, within: str = ""
) -> Item:
    """The item that keeps the metadata for a copy that has no room to carry it."""
    return {"Trail": {"S": metadata.encode()}} | _forgotten(now) | message_key(message_id, within)


def kept_metadata_from_item(item: Item) -> RedriveMetadata | None:
    """The metadata kept in `item`; None if it is a ledger entry."""
    text = item.get("Trail", {}).get("S")
    return RedriveMetadata.decode(text) if text else None


def failure_to_item(failure: ReceivedOutcome, until: datetime, within: str = "") -> Item:
    """The item for a letter's failure, kept until `until`; its entry is separate, being used far more often."""
    described = _FAILURE.encode(failure.outcome) | {"ReportedTimestamp": {"S": to_iso(failure.at)}}
    return described | _ends(until) | failure_key(failure.outcome.original_id, within)


def failure_from_item(item: Item) -> ReceivedOutcome:
    """Read a letter's failure. Raises KeyError or ValueError for an item that no version wrote."""
    at = from_iso(item["ReportedTimestamp"]["S"])
    return ReceivedOutcome(outcome=_FAILURE.decode(item, original_id=message_id_of(item)), at=at)


def _forgotten(now: datetime) -> Item:
    return _ends(now + ENTRY_KEPT)


def _ends(at: datetime) -> Item:
    return {"TTL": {"N": str(int(at.timestamp()))}}


_VERDICTS = {one.value[0]: one for one in Verdict}


#: The separator of what later versions keep about a judged batch, within its verdict.
_MORE = "~"
#: The mark of a batch whose letters went one by one. It stands where the editions before do not look.
_APART = "-"


def _judged_to_text(judged: Judged) -> str:
    """`id:generation:verdict:returned:overturned_at`, in the first edition's form.

    That edition looks only at the verdict's first letter and at a final `!`. Everything added since stands between the
    two, so that it can read a table of this version.
    """
    more: list[object] = [judged.size, int(judged.sent_at.timestamp()), judged.unaccounted]
    initial = judged.verdict.value[0] + (_APART if judged.is_apart else "")
    kept = _MORE.join(map(str, (initial, *more)))
    marks = ("+" if judged.is_whole else "") + ("?" if judged.was_alone else "")
    verdict = kept + marks + ("!" if judged.is_strike else "")
    fields = (judged.id, judged.generation, verdict, judged.returned, judged.overturned_at)
    return ":".join(map(str, fields))


# Every circuit has two hundred of these, and most are read again and again.
@lru_cache(maxsize=4 * JUDGED_KEPT)
def _judged_from_text(text: str) -> Judged:
    batch, generation, verdict, returned, overturned_at, *behind = text.split(":")
    within = verdict.rstrip("+?!").split(_MORE)[1:]
    # The first edition kept none of these; a later one wrote them after the rest.
    size, sent_at, *rest = within or behind or ("0", "0")
    (unaccounted,) = rest or ("0",)
    return Judged(
        id=_sane_number(batch),
        generation=_sane_number(generation),
        verdict=_VERDICTS[verdict[:1]],
        is_strike="!" in verdict,
        was_alone="?" in verdict,
        is_whole="+" in verdict,
        is_apart=verdict[1:2] == _APART,
        returned=_sane_number(returned),
        overturned_at=_sane_number(overturned_at),
        size=_sane_number(size),
        sent_at=datetime.fromtimestamp(_sane_number(sent_at), UTC),
        unaccounted=_sane_number(unaccounted),
    )


#: One short text for each: there may be two hundred, and every KB written is a write unit.
_JUDGED = Codec(
    lambda judged: {"S": _judged_to_text(judged)}, lambda value: _judged_from_text(value["S"])
)

_CIRCUIT = Record(
    Circuit,
    names={
        "changed_at": "LastStateChangeTimestamp",
        "last_attempt_at": "LastAttemptTimestamp",
        "dlq_sweep_at": "DlqSweepTimestamp",
        "lot_sweep_at": "LotSweepTimestamp",
        "urgent_sweep_at": "UrgentSweepTimestamp",
        "probed_at": "ProbedTimestamp",
        "up_since": "UpSinceTimestamp",
        "heard_at": "HeardTimestamp",
        "counted_batches": "Tallies",
        "contradicted_at": "ContradictedTimestamp",
        "suspect_succeeded_at": "SuspectSucceededTimestamp",
        "mixed_at": "MixedTimestamp",
        "failed_at": "FailedTimestamp",
        "cools_until": "CoolsUntilTimestamp",
        "paced_until": "PacedUntilTimestamp",
        "suspects_until": "SuspectsUntilTimestamp",
    },
    needed={"state"},
    left_out={"queue"},
    codecs=_BOUNDED | {Judged: _JUDGED},
)

_SMALLEST_WINDOW: Item = {"Window": {"N": str(SMALLEST_WINDOW)}}

_HINT = Record(Hint, names={"at": "HintedTimestamp"}, codecs=_BOUNDED)

_FAILURE = Record(DeliveryOutcome, left_out={"original_id"})

_ENTRY = Record(
    Entry,
    names={
        "first_seen": "FirstSeenTimestamp",
        "first_redrive": "FirstRedriveTimestamp",
        "last_redrive": "LastRedriveTimestamp",
        "first_strike": "FirstStrikeTimestamp",
        "current_id": "CurrentMessageId",
        "replaced_ids": "ReplacedMessageIds",
        "counted_batch": "SettledBatch",
        "not_before": "NotBeforeTimestamp",
        "source_arn": "SourceQueueArn",
        "parked_at": "ParkedTimestamp",
    },
    left_out={"original_id"},
    # Without these, the entry of a letter that goes for the first time is a third smaller, and reads the same.
    unsaid={"salt", "is_permanent", "is_settled", "is_doubtful", "failed_tries", "tries_counted"},
    codecs={datetime: _NEAREST},
)
