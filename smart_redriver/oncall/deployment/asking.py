"""Asks AWS several things at once, and lets an answer be missing: status is for when things are wrong."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from smart_redriver.engine.errors import CallFailed, RedriverError
from smart_redriver.oncall.terminal.exits import Refused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer, or why there is none."""

    value: T | None = None
    fault: str | None = None


def ask(question: Callable[[], T]) -> Answer[T]:
    """The answer to one question; a refusal is an answer, too."""
    try:
        return Answer(value=question())
    except CallFailed as failed:
        return Answer(fault=f"{failed.call}: {failed.code}")
    except (Refused, RedriverError) as refused:
        return Answer(fault=str(refused))


class Asking:
    """Questions under way at the same time. Enter it, ask, then read the futures."""

    def __init__(self, width: int = 12) -> None:
        self._pool = ThreadPoolExecutor(width)

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def __call__(self, question: Callable[[], T]) -> Callable[[], Answer[T]]:
        """Begin to ask; calling what comes back waits for the answer."""
        return self._pool.submit(ask, question).result
