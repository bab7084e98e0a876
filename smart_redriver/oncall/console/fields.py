"""What may be said in a request: names, kinds and meanings, once for reading it and for describing it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from smart_redriver.oncall.terminal.exits import Misused


class Kind(str, Enum):
    """The kind of a value, by JSON Schema's name for it."""

    TEXT = "string"
    NUMBER = "number"
    WHOLE = "integer"
    FLAG = "boolean"
    TEXTS = "array"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One value that may be given."""

    name: str
    about: str
    kind: Kind = Kind.TEXT
    is_needed: bool = False
    least: float | None = None
    most: float | None = None
    longest: int | None = None

    def schema(self) -> dict[str, Any]:
        """As JSON Schema has it."""
        limits = {"minimum": self.least, "maximum": self.most, "maxLength": self.longest}
        return {
            "type": self.kind.value,
            "description": self.about,
            **({"items": {"type": "string"}} if self.kind is Kind.TEXTS else {}),
            **{name: limit for name, limit in limits.items() if limit is not None},
        }

    def check(self, value: Any) -> Any:
        """The value, of its kind. Raises Misused."""
        if not _IS[self.kind](value):
            raise Misused(f"{self.name} {value!r} is no {self.kind.value}.")
        if self.kind is Kind.TEXT and self.is_needed and not value.strip():
            raise Misused(f"{self.name} is empty: {self.about}")
        if self.longest is not None and len(value) > self.longest:
            raise Misused(f"{self.name} has {len(value):,} characters, at most {self.longest:,}.")
        is_less = self.least is not None and value < self.least
        if is_less or (self.most is not None and value > self.most):
            raise Misused(f"{self.name} {value} is out of range.")
        return value


def _is_number(value: Any) -> bool:
    """One that JSON has: 1e999 is read as infinity, which no answer can say."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and math.isfinite(value)


_IS: dict[Kind, Callable[[Any], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.NUMBER: _is_number,
    Kind.WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    Kind.FLAG: lambda value: isinstance(value, bool),
    Kind.TEXTS: lambda value: (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ),
    Kind.OBJECT: lambda value: isinstance(value, dict),
}


def read_body(fields: Sequence[Field], given: Any) -> dict[str, Any]:
    """What a JSON body says. Raises Misused for what is wrong, missing, or known to nobody: misspelt, it would be lost."""
    if not isinstance(given, dict):
        raise Misused("The body is to be one JSON object.")
    _refuse_unknown(fields, given)
    missing = [one.name for one in fields if one.is_needed and given.get(one.name) is None]
    if missing:
        raise Misused(f"{missing[0]} is missing.")
    return {
        one.name: one.check(given[one.name]) for one in fields if given.get(one.name) is not None
    }


def read_query(fields: Sequence[Field], given: Mapping[str, str]) -> dict[str, Any]:
    """What an address says behind its question mark. Raises Misused as `read_body` does."""
    _refuse_unknown(fields, given)
    return {
        one.name: one.check(_parsed(one, given[one.name])) for one in fields if one.name in given
    }


def _parsed(field: Field, text: str) -> Any:
    try:
        if field.kind is Kind.WHOLE:
            return int(text)
        if field.kind is Kind.NUMBER:
            return float(text)
    except ValueError:
        raise Misused(f"{field.name} {text!r} is no {field.kind.value}.") from None
    return text


def _refuse_unknown(fields: Sequence[Field], given: Mapping[str, Any]) -> None:
    known = [one.name for one in fields]
    if unknown := sorted(set(given) - set(known)):
        raise Misused(f"{unknown[0]!r} is not known here; {', '.join(known) or 'nothing'} is.")
