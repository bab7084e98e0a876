"""Whether two scenes are the same from here on: what follows from the same moment need not be played twice.

Most faults leave a world that another one has left before: a refusal does so under any code, and to die before a call
as to die after the one before it. A likeness is a digest of all that can be reached from a thing: alike things have
the same values in the same places, whatever way they came to them. What this module does not know how to read it
refuses, rather than to call two things alike that are not.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import Any

_ATOMS = (str, bytes, int, float, bool, NoneType, datetime, timedelta)

#: Fields that nothing in a world depends on, by their class: what is only told of passes, whose rhythm a watched
#: re-driver does not keep, and what is worked out anew wherever it is missing.
_LEFT_OUT: dict[str, frozenset[str]] = {
    "WatchedRedriver": frozenset({"journal", "reports", "times", "states", "events", "_rhythm"}),
    "QueueMetrics": frozenset({"_figures"}),
    "Attributes": frozenset({"kept", "weight", "given_md5", "kept_md5", "_fault"}),
}


def likeness(thing: Any) -> bytes:
    """The digest of a thing and of all that can be reached from it. Raises TypeError for what can't be read."""
    reader = _Reader()
    reader.read(thing)
    return hashlib.blake2b("\0".join(reader.words).encode("utf-8", "surrogatepass")).digest()


class _Reader:
    """Writes a thing down in words. What can change is written once, and named by its number wherever it is again."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._numbers: dict[int, int] = {}

    def read(self, thing: Any) -> None:
        kind = type(thing)
        if kind in _ATOMS:
            self.words.append(repr(thing))
            return
        self.words.append(kind.__qualname__)
        if kind is tuple or isinstance(thing, tuple):
            self._each(thing)
        elif how := _plainly(kind):
            self.words.append(how(thing))
        elif kind is FunctionType:
            self.words.append(f"{thing.__module__}.{thing.__qualname__}")
            held = [cell.cell_contents for cell in thing.__closure__ or ()]
            self._each((*held, *(thing.__defaults__ or ())))
        elif kind is MethodType:
            self.words.append(thing.__func__.__qualname__)
            self.read(thing.__self__)
        elif kind is partial:
            self._each((thing.func, thing.args, thing.keywords))
        elif not self._is_known(thing):
            self._read_inside(thing)

    def _is_known(self, thing: Any) -> bool:
        number = self._numbers.setdefault(id(thing), len(self._numbers))
        self.words.append(f"#{number}")
        return number < len(self._numbers) - 1

    def _read_inside(self, thing: Any) -> None:
        if isinstance(thing, dict):
            self._each(thing.items())
        elif isinstance(thing, list | deque):
            self._each(thing)
        elif isinstance(thing, set | frozenset):
            self.words.extend(sorted(map(_atom, thing)))
        else:
            self._each(_fields_of(thing))

    def _each(self, things: Iterable[Any]) -> None:
        self.words.append("(")
        for one in things:
            self.read(one)
        self.words.append(")")


def _plainly(kind: type) -> Callable[[Any], str] | None:
    """How things of this kind are written that have nothing inside."""
    if issubclass(kind, Enum | itertools.count):
        return repr
    if issubclass(kind, Random):
        return lambda rng: hashlib.blake2b(repr(rng.getstate()).encode()).hexdigest()
    # Names are enough for classes and built-in functions; botocore's models and locks are all alike.
    if issubclass(kind, type | BuiltinFunctionType):
        return lambda thing: str(thing.__qualname__)
    if kind.__module__.startswith("botocore.") or kind is type(threading.Lock()):
        return lambda _: ""
    return None


def _fields_of(thing: Any) -> list[tuple[str, Any]]:
    kind = type(thing)
    left_out = _LEFT_OUT.get(kind.__name__, frozenset())
    slots = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ())]
    if not slots and not hasattr(thing, "__dict__"):
        raise TypeError(f"can't tell whether two {kind} are alike")
    fields = [(name, getattr(thing, name)) for name in slots if hasattr(thing, name)]
    fields += getattr(thing, "__dict__", {}).items()
    return [(name, value) for name, value in fields if name not in left_out]


def _atom(thing: Any) -> str:
    if type(thing) not in _ATOMS:
        raise TypeError(f"can't order {type(thing)}")
    return repr(thing)
