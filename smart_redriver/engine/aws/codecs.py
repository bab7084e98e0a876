"""How values are written in DynamoDB, by their types: a dataclass says what its item holds.

    str -> S    int, float -> N    bool -> BOOL    datetime -> S, ISO 8601, UTC    str Enum -> S
    tuple[X, ...] -> L    dataclass -> M    X | None -> X, or nothing at all

A field that is added to a dataclass is written and read without a word here. What an item lacks takes the field's
default, what it has too much is passed over: items of older and newer versions can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

R = TypeVar("R")

#: One attribute's value as DynamoDB has it: {"S": "text"}.
Value = dict[str, Any]
Item = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type are written and read. `decode` raises KeyError or ValueError for what it is not."""

    encode: Callable[[Any], Value]
    decode: Callable[[Value], Any]


class Record(Generic[R]):
    """How the records of one dataclass are written.

    Args:
        names: attributes whose names are not their fields' in CamelCase, by field.
        needed: fields that every version wrote, although they have a default.
        left_out: fields that stand elsewhere, as in the key.
        codecs: types that are not written as their kind usually is.

    """

    def __init__(
        self,
        kind: type[R],
        *,
        names: Mapping[str, str] | None = None,
        needed: Collection[str] = (),
        left_out: Collection[str] = (),
        codecs: Mapping[Any, Codec] | None = None,
    ) -> None:
        hints, names = get_type_hints(kind), names or {}
        known = _SCALARS | dict(codecs or {})
        self._kind = kind
        kept = [one for one in fields(kind) if one.name not in left_out]  # type: ignore[arg-type]
        attributes = [names.get(one.name) or _camel(one.name) for one in kept]
        how = [codec_of(hints[one.name], known) for one in kept]
        is_needed = [one.name in needed or _has_no_default(one) for one in kept]
        # Plain tuples: an entry is written and read for every letter.
        self._written = [
            (one.name, attribute, codec.encode)
            for one, attribute, codec in zip(kept, attributes, how, strict=True)
        ]
        self._read = [
            (one.name, attribute, codec.decode, needs)
            for one, attribute, codec, needs in zip(kept, attributes, how, is_needed, strict=True)
        ]

    def encode(self, record: R) -> Item:
        """The attributes of `record`; fields that are None have none."""
        item: Item = {}
        for field, attribute, encode in self._written:
            value = getattr(record, field)
            if value is not None:
                item[attribute] = encode(value)
        return item

    def decode(self, item: Item, **elsewhere: Any) -> R:
        """The record in `item`, with what was left out. Raises KeyError or ValueError where no version wrote it."""
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


def to_iso(instant: datetime) -> str:
    """A moment as items have it: ISO 8601, UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """The moment that an item has; UTC where a person wrote it without a zone. Raises ValueError for any other text."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


_SCALARS: dict[Any, Codec] = {
    str: Codec(lambda value: {"S": value}, lambda value: value["S"]),
    int: Codec(lambda value: {"N": str(value)}, lambda value: int(value["N"])),
    float: Codec(lambda value: {"N": _fraction(value)}, lambda value: float(value["N"])),
    bool: Codec(lambda value: {"BOOL": value}, lambda value: value["BOOL"]),
    datetime: Codec(lambda value: {"S": to_iso(value)}, lambda value: from_iso(value["S"])),
}


def _has_no_default(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
