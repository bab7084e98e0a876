"""DynamoDB's typed values, `{"S": "text"}`: which are legal, how they compare, what they weigh.

Source: DynamoDB Developer Guide, "Supported data types", "Item sizes" and "Comparison operators".
"""

from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from fakes.boto_client import Fault

Value = dict[str, Any]
Item = dict[str, Value]

MAX_ITEM_BYTES = 400 * 1024
NUMBER_DIGITS = 38

_SCALARS = ("S", "N", "B", "BOOL", "NULL")
_SETS = ("SS", "NS", "BS")
_ORDERED = ("S", "N", "B")
_ARITHMETIC = Context(prec=NUMBER_DIGITS)


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


def number_value(value: Decimal) -> Value:
    """A number as DynamoDB writes it: no zeros that say nothing."""
    plain = format(value.normalize(_ARITHMETIC), "f")
    return {"N": "0" if plain == "-0" else plain}


def sum_of(left: Value, right: Value, sign: int) -> Value:
    """`left + right`, or `left - right` for a sign of -1."""
    if "N" not in left or "N" not in right:
        message = "An operand in the update expression has an incorrect data type"
        raise validation(message)
    return number_value(_ARITHMETIC.add(number(left["N"]), sign * number(right["N"])))


def stored(value: Mapping[str, Any]) -> Value:
    """A checked copy of a value, as DynamoDB keeps it. Nothing of it is shared with the caller."""
    if len(value) != 1:
        raise validation("Supplied AttributeValue must contain exactly one of the data types")
    ((kind, content),) = value.items()
    if kind == "N":
        return number_value(number(content))
    if kind == "M":
        return {"M": {name: stored(part) for name, part in content.items()}}
    if kind == "L":
        return {"L": [stored(part) for part in content]}
    if kind in _SETS:
        return {kind: _stored_set(kind, list(content))}
    if kind not in _SCALARS:
        raise validation(f"Supplied AttributeValue has an unknown type: {kind}")
    return {kind: content}


def copied(item: Mapping[str, Mapping[str, Any]]) -> Item:
    """A copy of an item; nothing of it is shared."""
    return {name: stored(value) for name, value in item.items()}


def equal(left: Value, right: Value) -> bool:
    """Whether two values are of one type and the same; sets have no order."""
    ((kind, content),) = left.items()
    if kind not in right:
        return False
    if kind == "N":
        return number(content) == number(right["N"])
    if kind in _SETS:
        return set(content) == set(right[kind])
    return bool(content == right[kind])


def order(left: Value, right: Value) -> int | None:
    """-1, 0 or 1, or None for values that have no order: different types, or a type without."""
    for kind in _ORDERED:
        if kind in left and kind in right:
            first, second = (_sort_key(kind, value[kind]) for value in (left, right))
            return int(first > second) - int(first < second)
    return None


def value_bytes(value: Mapping[str, Any]) -> int:
    """What a value adds to the size of its item, near enough for the 400 KB limit."""
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
    if kind in _SETS:
        return sum(value_bytes({kind[0]: part}) for part in content)
    return 1


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """The size of an item: the names of its attributes count too."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def _stored_set(kind: str, members: list[Any]) -> list[Any]:
    if kind == "NS":
        members = [number_value(number(member))["N"] for member in members]
    if not members:
        raise validation("One or more parameter values were invalid: An set may not be empty")
    if len(set(members)) != len(members):
        raise validation("One or more parameter values were invalid: Input collection has dupes")
    return members


def _sort_key(kind: str, content: Any) -> Any:
    if kind == "N":
        return number(content)
    return content.encode() if kind == "S" else bytes(content)
