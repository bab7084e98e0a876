"""Runs the rounds of a pass, several at once: workers call AWS, and one thread decides.

    worker 1  ▒▒read▒▒ ▒▒send, record, delete▒▒ ▒▒read▒▒ ...
    worker 2     ▒▒read▒▒    ▒▒send, record, delete▒▒ ...
    the pass        decide      decide   add up  ...

So the permit, the pacer, the circuit and the report have one writer and need no lock, and a letter's send, ledger
write and delete stay in order, as one worker does them one after the other. No more rounds are under way than there
are workers: that is the backpressure, and the bound on memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, ParamSpec, Protocol, TypeVar

from smart_redriver.engine.passes.hands import Effects
from smart_redriver.engine.passes.read import Read

P = ParamSpec("P")
T = TypeVar("T")

#: What a worker does: read letters, or carry out what was decided about some.
Reading = Callable[[], Read]
Doing = Callable[[], Effects]


class Rounds(Protocol):
    """What the pass does between the calls, always in its own thread."""

    def next_reading(self) -> Reading | None:
        """The next round's reading; None while there is none to begin, and for ever once nothing is under way."""

    def decide(self, read: Read) -> Doing | None:
        """Decide about letters in hand; what is to be done about them."""

    def add_up(self, effects: Effects) -> None:
        """Take in what was done."""

    def width(self) -> int:
        """How many rounds may be under way at once."""


def run_rounds(rounds: Rounds, workers: int, first: Read | None = None) -> None:
    """Run rounds until there is no next one, beginning with letters in hand. Raises what a reading raised.

    After a failure no round is begun, and those under way are finished.
    """
    with _Here() if workers == 1 else ThreadPoolExecutor(workers) as pool:
        _Runner(rounds, pool).run(first)


class _Runner:
    def __init__(self, rounds: Rounds, pool: Executor) -> None:
        self._rounds = rounds
        self._pool = pool
        self._readings: dict[Future[Read], None] = {}
        self._doings: dict[Future[Effects], None] = {}
        self._error: Exception | None = None

    def run(self, first: Read | None) -> None:
        if first is not None:
            self._go_on(lambda: self._decide(first))
        while True:
            self._begin()
            under_way: list[Future[Any]] = [*self._readings, *self._doings]
            if not under_way:
                break
            wait(under_way, return_when=FIRST_COMPLETED)
            for done in under_way:  # in the order in which they were begun
                if done.done():
                    self._go_on(lambda done=done: self._finish(done))  # type: ignore[misc]
        if self._error is not None:
            raise self._error

    def _begin(self) -> None:
        while self._error is None and (
            len(self._readings) + len(self._doings) < self._rounds.width()
        ):
            reading = self._rounds.next_reading()
            if reading is None:
                return
            self._readings[self._pool.submit(reading)] = None

    def _finish(self, done: Future[Read] | Future[Effects]) -> None:
        if done in self._doings:
            del self._doings[done]  # type: ignore[arg-type]
            self._rounds.add_up(done.result())  # type: ignore[arg-type]
        else:
            del self._readings[done]  # type: ignore[arg-type]
            self._decide(done.result())  # type: ignore[arg-type]

    def _decide(self, read: Read) -> None:
        doing = self._rounds.decide(read)
        if doing is not None:
            self._doings[self._pool.submit(doing)] = None

    def _go_on(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._error = self._error or error


class _Here(Executor):
    """Does each task at once, in the thread that asks for it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # it is raised where the result is asked for
            done.set_exception(error)
        return done
