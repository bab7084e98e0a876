"""What is left out of a record, as by an older version, or of a call, is none and no.

What differs is listed: who has a field or an argument begin with something else says so here.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from inspect import isclass, isfunction, signature
from types import ModuleType
from typing import Any

import pytest

from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL

ROOMS = (
    "smart_redriver.engine.messages",
    "smart_redriver.engine.model",
    "smart_redriver.engine.reports",
    "smart_redriver.engine.triage",
)

#: Not 0, and not false.
OTHERWISE = {
    # A message of SQS may come back, and there is room for its metadata, unless its target says otherwise.
    "outgoing.Outgoing.may_carry_metadata": True,
    "outgoing.Outgoing.may_return": True,
    "outgoing.in_calls.entries": ENTRIES_PER_CALL,
    # Items of before were written when all of a batch was sent.
    "batch.Batch.is_complete": True,
    "queue_metrics.QueueMetrics.has_gauges": True,
    "evidence.gather_evidence.believes_successes": True,
    # A source of SQS delays letters.
    "admission.Admission.can_delay": True,
    # A verdict that does not say so lets no window grow.
    "verdict.Judgement.growth": 1,
}


def callables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions, the classes and their methods that a module defines."""
    for name, one in vars(module).items():
        if getattr(one, "__module__", None) != module.__name__ or isinstance(one, EnumMeta):
            continue
        if isclass(one) or isfunction(one):
            yield name, one
        for method, function in vars(one).items() if isclass(one) else ():
            if isfunction(function) and not method.startswith("__"):
                yield f"{name}.{method}", function


def beginnings(room: str) -> dict[str, int]:
    """What whole numbers and booleans begin with that can be left out."""
    package = import_module(room)
    modules = [
        (one.name, import_module(f"{room}.{one.name}"))
        for one in pkgutil.iter_modules(package.__path__)
    ]
    return {
        f"{name}.{called}.{argument.name}": argument.default
        for name, module in modules
        for called, one in callables(module)
        for argument in signature(one).parameters.values()
        if isinstance(argument.default, int)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_what_is_left_out_is_none_and_no(room: str) -> None:
    known = beginnings(room)

    assert len(known) > 1
    assert {name: value for name, value in known.items() if value} == {
        name: value for name, value in OTHERWISE.items() if name in known
    }


def test_what_differs_is_there() -> None:
    assert OTHERWISE.keys() <= set().union(*map(beginnings, ROOMS))
