"""The options of a verb: names, kinds and meanings, declared once for the command, the console's page and its API.

This module reads and describes them for the API. `cli` makes Typer's options from them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from pathlib import Path
from typing import Any

from smart_redriver.oncall.terminal.exits import Misused


class Kind(str, Enum):
    """The kind of a value, by JSON Schema's name if it has one."""

    TEXT = "string"
    NUMBER = "number"
    WHOLE = "integer"
    FLAG = "boolean"
    TEXTS = "array"
    OBJECT = "object"
    FILE = "file"  # a path for the command, a text that names one for the API


class Side(Flag):
    """The side that offers an option: the command or the page."""

    COMMAND = auto()
    PAGE = auto()
    BOTH = COMMAND | PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One value that may be given.

    Attributes:
        name: the name in the API; for `from_dlq`, the command has `--from-dlq`.
        least, most: bounds of a number. `longest`: the most characters of a text that the API accepts.
        default: the value if none is given.
        sides: where it can be given.
        flags: the command's own spelling, if that differs.
        metavar: what stands for the value in the command's help. `choices`: the values that the command accepts.
        is_argument: the command takes it without an option's name.
        read: turns the typed text into the value. Raises Misused.

    """

    name: str
    about: str
    kind: Kind = Kind.TEXT
    is_needed: bool = False
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    default: Any = None
    sides: Side = Side.BOTH
    flags: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    is_argument: bool = False
    read: Callable[[str], str] | None = None

    def schema(self) -> dict[str, Any]:
        """Return the option as JSON Schema."""
        usual = self.default if self.kind is not Kind.FLAG else None
        limits = {"minimum": self.least, "maximum": self.most, "maxLength": self.longest}
        return {
            "type": "string" if self.kind is Kind.FILE else self.kind.value,
            "description": self.about + (f" Default: {usual}." if usual is not None else ""),
            **({"items": {"type": "string"}} if self.kind is Kind.TEXTS else {}),
            **{name: limit for name, limit in limits.items() if limit is not None},
        }

    def check(self, value: Any) -> Any:
        """Return the value if it is of the option's kind. Raises Misused."""
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
    """Whether it is a finite number: 1e999 is read as infinity, which no answer can contain.

    A whole number of 999 digits stays one, but can't be used as a fraction.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


_IS: dict[Kind, Callable[[Any], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.NUMBER: _is_number,
    Kind.WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    Kind.FLAG: lambda value: isinstance(value, bool),
    Kind.TEXTS: lambda value: (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ),
    Kind.OBJECT: lambda value: isinstance(value, dict),
    Kind.FILE: lambda value: isinstance(value, str),
}

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}\.jsonl")


def kept_file(name: str) -> Path:
    """A file of letters in this folder. Raises Misused for any other: a request can't choose where to read."""
    if not _FILE_NAME.fullmatch(name) or not Path(name).is_file():
        raise Misused(f"There is no file {name!r} of letters in the console's folder.")
    return Path(name)


def read_body(options: Sequence[Option], given: Any) -> dict[str, Any]:
    """Read a JSON body. Raises Misused for a wrong, missing or unknown field.

    An unknown field may be misspelt, and would be lost without notice.
    """
    if not isinstance(given, dict):
        raise Misused("The body is to be one JSON object.")
    _refuse_unknown(options, given)
    missing = [one.name for one in options if one.is_needed and given.get(one.name) is None]
    if missing:
        raise Misused(f"{missing[0]} is missing.")
    return {
        one.name: one.check(given[one.name]) for one in options if given.get(one.name) is not None
    }


def read_query(options: Sequence[Option], given: Mapping[str, str]) -> dict[str, Any]:
    """Read an address's query. Raises Misused as `read_body` does."""
    _refuse_unknown(options, given)
    return {
        one.name: one.check(_parsed(one, given[one.name])) for one in options if one.name in given
    }


def _parsed(option: Option, text: str) -> Any:
    try:
        if option.kind is Kind.WHOLE:
            return int(text)
        if option.kind is Kind.NUMBER:
            return float(text)
    except ValueError:
        raise Misused(f"{option.name} {text!r} is no {option.kind.value}.") from None
    return text


def _refuse_unknown(options: Sequence[Option], given: Mapping[str, Any]) -> None:
    known = [one.name for one in options]
    if unknown := sorted(set(given) - set(known)):
        raise Misused(f"{unknown[0]!r} is not known here; known: {', '.join(known) or 'nothing'}.")
