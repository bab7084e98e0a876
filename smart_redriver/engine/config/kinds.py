"""Readers for values of settings: kind, range, and faults. Finds misspelt names, too.

A table is a dataclass whose fields are made by ``setting``. Standard library only: synth and the function import this.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Generic, TypeVar

from smart_redriver.engine.errors import Fault

Value = str | int | float | bool
T = TypeVar("T")
E = TypeVar("E", bound=Enum)
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A reader of values. ``parse`` raises ValueError for anything that is not ``accepted``."""

    parse: Callable[[Value], T]
    accepted: str


def choice(of: type[E]) -> Kind[E]:
    """One of an enumeration's values."""

    def parse(value: Value) -> E:
        return of(value.strip() if isinstance(value, str) else value)

    return Kind(parse, ", ".join(str(one.value) for one in of))


def whole(low: int, high: int) -> Kind[int]:
    """A whole number in this range."""

    def parse(value: Value) -> int:
        # The CDK passes a number from cdk.json as 5 or 5.0, and a `-c` option as "5".
        text = str(value).strip()
        if not re.fullmatch(r"[+-]?[0-9]+(\.0)?", text):
            raise ValueError
        return _within(low, int(text.removesuffix(".0")), high)

    return Kind(parse, f"a whole number from {low} to {high}")


def number(low: float, high: float) -> Kind[float]:
    """A number in this range."""

    def parse(value: Value) -> float:
        text = str(value)
        # Python alone reads 1_000, and digits of other scripts.
        if "_" in text or not text.isascii():
            raise ValueError
        return _within(low, float(text), high)

    return Kind(parse, f"a number from {low:g} to {high:g}")


def _within(low: N, value: N, high: N) -> N:
    if not low <= value <= high:  # in this form, NaN is refused too
        raise ValueError
    return value


def _yes_or_no() -> Kind[bool]:
    def parse(value: Value) -> bool:
        word = str(value).strip().lower()
        if word not in ("true", "false"):
            raise ValueError
        return word == "true"

    return Kind(parse, "true or false")


#: A yes or no for the CDK app that is no setting of the function (see stacks/settings.py).
YES_OR_NO = _yes_or_no()


def setting(default: T, kind: Kind[T], meaning: str) -> T:
    """A dataclass field that is a setting; `read_fields` reads it."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def read_fields(
    table: type[Any], values: Mapping[str, Value]
) -> tuple[dict[str, Any], list[Fault]]:
    """Read the settings of a dataclass made of `setting` fields; faulty ones stay at their defaults."""
    read: dict[str, Any] = {}
    faults: list[Fault] = []
    for one in fields(table):
        if not one.metadata:
            continue
        read[one.name] = one.default
        if one.name in values:
            kind: Kind[Any] = one.metadata["kind"]
            try:
                read[one.name] = kind.parse(values[one.name])
            except ValueError:
                seen = values[one.name]
                accepted = f"{kind.accepted} ({one.metadata['meaning']})"
                faults.append(Fault(setting=one.name, seen=seen, accepted=accepted))
    return read, faults


#: Below this similarity (0 to 1) two names are unrelated: ``max_delay`` scores 0.69 against ``max_delay_seconds``,
#: while names that mean something else stay near 0.6 and below.
_TYPO_LIKENESS = 0.65

#: If anyone may choose names, one counts as ours only if it is spelt almost the same.
_SLIP_LIKENESS = 0.9
_UNITS = ("_seconds", "_minutes", "_mib")


def misspelt(keys: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return the ``keys`` that are not in ``names`` but look like one of them, each with the nearest.

    ``maxAttempts``, ``MAX_ATTEMPTS`` and ``max-attempts`` count as misspelt, too.
    """
    known = tuple(names)
    found = {}
    for key in keys:
        if key in known:
            continue
        if near := difflib.get_close_matches(_snake(key), known, n=1, cutoff=_TYPO_LIKENESS):
            found[key] = near[0]
    return found


def slips(keys: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return the `misspelt` keys that are almost certainly slips: they differ by a letter, the order, the case,
    or the unit at the end.
    """
    return {key: name for key, name in misspelt(keys, names).items() if _is_slip(key, name)}


def _is_slip(key: str, name: str) -> bool:
    if "_" in key and any(_snake(key) + unit == name for unit in _UNITS):
        return True
    typed, meant = (re.sub(r"[^a-z0-9]", "", one.lower()) for one in (key, name))
    likeness = difflib.SequenceMatcher(None, typed, meant).ratio()
    return likeness >= _SLIP_LIKENESS or sorted(typed) == sorted(meant)


def _snake(key: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()
