"""A bad wire between a pass and its AWS: a chosen call dies, is refused, loses its answer or half succeeds.

All clients of one pass use one `Wire`. It numbers their calls in the order in which they are made, so that a script can
choose a call by its number, and lets each call meet the mishap that the script chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any

Response = dict[str, Any]


class Crash(BaseException):
    """The process has died. No `except Exception` catches it, and its `finally` meets a dead wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, numbered from 0 within its pass; `operation` is AWS's name for it."""

    number: int
    operation: str
    request: Mapping[str, Any]

    def __str__(self) -> str:
        return f"call {self.number}, {self.operation}"


Act = Callable[..., Response]

#: A mishap of one call. It gets the call and a function that has AWS carry it out, as often as it likes.
Mishap = Callable[[Call, Act], Response]

#: Which mishap a call meets, if any.
Script = Callable[[Call], Mishap | None]


def nothing(_: Call) -> None:
    """The script of a good wire."""


def at(mishaps: Mapping[int, Mishap]) -> Script:
    """Chooses mishaps by the number of the call."""
    return lambda call: mishaps.get(call.number)


def from_call(number: int, mishap: Mishap) -> Script:
    """The same mishap for this call and all after it: an outage."""
    return lambda call: mishap if call.number >= number else None


def on(operation: str, mishap: Mishap) -> Script:
    """The same mishap for every call of one operation."""
    return lambda call: mishap if call.operation == operation else None


def nth(operation: str, number: int, mishap: Mishap) -> Script:
    """A mishap for one call of an operation, numbered from 0 among those of its kind. Good for one pass."""
    numbers = count()
    return lambda call: mishap if call.operation == operation and next(numbers) == number else None


class Wire:
    """The state that the clients of one pass share: the count of their calls, the script, and death."""

    def __init__(self, script: Script = nothing) -> None:
        self.calls: list[Call] = []
        self.is_dead = False
        self._script = script
        self._one_at_a_time = Lock()  # the fakes are not thread-safe, and a pass may use threads

    def to(self, client: Any) -> Any:
        """The client, reached over this wire."""
        return _Client(self, client)

    def carry(self, operation: str, request: Mapping[str, Any], act: Act) -> Response:
        """Carry out one call as the script says."""
        with self._one_at_a_time:
            if self.is_dead:
                raise Crash("a dead process calls nobody")
            call = Call(number=len(self.calls), operation=operation, request=request)
            self.calls.append(call)
            mishap = self._script(call)
            try:
                return mishap(call, act) if mishap else act(**request)
            except Crash:
                self.is_dead = True
                raise


class _Client:
    def __init__(self, wire: Wire, client: Any) -> None:
        self._wire = wire
        self._client = client

    def __getattr__(self, method: str) -> Callable[..., Response]:
        act = getattr(self._client, method)
        operation = "".join(word.capitalize() for word in method.split("_"))

        def call(**request: Any) -> Response:
            return self._wire.carry(operation, request, act)

        return call


def die_before(call: Call, _: Act) -> Response:
    """The process dies before AWS hears of the call."""
    raise Crash(f"before {call}")


def die_after(call: Call, act: Act) -> Response:
    """The process dies after the call took effect or was refused, but before it learns so."""
    with suppress(Exception):
        act(**call.request)
    raise Crash(f"after {call}")


def refuse(error: Exception) -> Mishap:
    """AWS refuses the call; nothing took effect."""

    def mishap(_: Call, __: Act) -> Response:
        raise error

    return mishap


def lose_answer(error: Exception) -> Mishap:
    """The call takes effect, but its answer never arrives."""

    def mishap(call: Call, act: Act) -> Response:
        act(**call.request)
        raise error

    return mishap


def ask_twice(call: Call, act: Act) -> Response:
    """The first answer is lost and botocore asks again by itself: the pass sees only the second answer."""
    act(**call.request)
    return act(**call.request)


def hand_out_twice(call: Call, act: Act) -> Response:
    """SQS hands messages out, and again to the next receive: it only promises delivery at least once."""
    return act(**{**call.request, "VisibilityTimeout": 0})


def meanwhile(happening: Callable[[], object]) -> Mishap:
    """Something else happens just before the call."""

    def mishap(call: Call, act: Act) -> Response:
        happening()
        return act(**call.request)

    return mishap


def fail_entries(positions: Collection[int], code: str) -> Mishap:
    """SQS accepts the batch except for the entries at these positions."""

    def mishap(call: Call, act: Act) -> Response:
        entries = call.request["Entries"]
        accepted = [entry for n, entry in enumerate(entries) if n not in positions]
        failed = [
            {"Id": entry["Id"], "SenderFault": False, "Code": code, "Message": "as scripted"}
            for n, entry in enumerate(entries)
            if n in positions
        ]
        answer = act(**{**call.request, "Entries": accepted}) if accepted else {}
        return answer | ({"Failed": [*answer.get("Failed", ()), *failed]} if failed else {})

    return mishap


def leave_undone(positions: Collection[int]) -> Mishap:
    """DynamoDB carries out the batch except for the keys or writes at these positions."""

    def mishap(call: Call, act: Act) -> Response:
        reads = call.operation == "BatchGetItem"
        ((table, asked),) = call.request["RequestItems"].items()
        wanted = asked["Keys"] if reads else asked
        taken = [one for n, one in enumerate(wanted) if n not in positions]
        left = [one for n, one in enumerate(wanted) if n in positions]

        def batch(some: list[Any]) -> Response:
            return {table: {**asked, "Keys": some} if reads else some} if some else {}

        answer = act(RequestItems=batch(taken)) if taken else {"Responses": {table: []}}
        return answer | {"UnprocessedKeys" if reads else "UnprocessedItems": batch(left)}

    return mishap
