"""DynamoDB's typed values, `{"S": "text"}`: which are legal, how they compare, and how large they are."""

import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from fakes.boto_client import Fault

Value = dict[str, Any]
Item = dict[str, Value]

MAX_ITEM_BYTES = 400 * 1024
NUMBER_DIGITS = 38

_SCALARS = ("S", "N", "B", "BOOL", "NULL")
_ORDERED = ("S", "N", "B")
_ARITHMETIC = Context(prec=NUMBER_DIGITS)

COMPARATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def validation(message: str) -> Fault:
    """The fault for a request that makes no sense."""
    return Fault("ValidationException", message)


def number(text: str) -> Decimal:
    """A DynamoDB number, up to 38 digits."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise validation(f"The parameter cannot be converted to a numeric value: {text}")
    if len(value.normalize().as_tuple().digits) > NUMBER_DIGITS:
        raise validation("Attempting to store more than 38 significant digits in a Number")
    return value


@lru_cache(10_000)
def _written(text: str) -> str:
    """A number as DynamoDB writes it: without insignificant zeros."""
    plain = format(number(text).normalize(_ARITHMETIC), "f")
    return "0" if plain == "-0" else plain


def stored(value: Mapping[str, Any]) -> Value:
    """A checked copy of a value, as DynamoDB keeps it. It shares nothing with the caller's value."""
    if len(value) != 1:
        raise validation("Supplied AttributeValue must contain exactly one of the data types")
    ((kind, content),) = value.items()
    if kind == "N":
        return {"N": _written(content)}
    if kind == "M":
        return {"M": {name: stored(part) for name, part in content.items()}}
    if kind == "L":
        return {"L": [stored(part) for part in content]}
    if kind not in _SCALARS:
        raise validation(f"Supplied AttributeValue has an unknown type: {kind}")
    return {kind: content}


def copied(item: Mapping[str, Mapping[str, Any]]) -> Item:
    """A copy of an item that shares nothing with it."""
    return {name: stored(value) for name, value in item.items()}


def compare(left: Value | None, comparator: str, right: Value | None) -> bool:
    """Whether `left comparator right`. A missing value equals nothing, and differs from everything."""
    if left is None or right is None:
        return comparator == "<>" and left is not right
    holds = COMPARATORS[comparator]
    if comparator in {"=", "<>"}:
        return holds(left, right)  # numbers are stored in one form
    ((kind, first),), ((other_kind, second),) = left.items(), right.items()
    has_order = kind == other_kind and kind in _ORDERED
    return has_order and holds(_sort_key(kind, first), _sort_key(kind, second))


def contains(value: Value | None, part: Value) -> bool:
    """Whether a list has a member, or a text a part."""
    if value is None:
        return False
    if "L" in value:
        return part in value["L"]
    return "S" in value and "S" in part and part["S"] in value["S"]


def size(value: Value | None) -> Value | None:
    """The length of a text, in bytes, or of a list or map."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    return {"N": str(value_bytes(value) if kind in ("S", "B") else len(content))}


def joined(first: Value, second: Value) -> Value:
    """The members of two lists."""
    if "L" not in first or "L" not in second:
        raise validation("An operand in the update expression has an incorrect data type")
    return {"L": [*first["L"], *second["L"]]}


def value_bytes(value: Mapping[str, Any]) -> int:
    """Bytes that a value adds to the size of its item, near enough for the 400 KB limit."""
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "B":
        return len(content)
    if kind == "N":
        return len(content) // 2 + 2
    if kind == "M":
        return 3 + item_bytes(content) + len(content)
    if kind == "L":
        return 3 + sum(1 + value_bytes(part) for part in content)
    return 1


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """The size of an item: the names of its attributes count too."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def _sort_key(kind: str, content: Any) -> Any:
    if kind == "N":
        return number(content)
    return content.encode() if kind == "S" else bytes(content)
