"""Threads that take turns: one runs at a time, until it calls AWS or is done, and who is next is drawn by a seed.

So a pass with several workers is the same whenever it is repeated with the same seed, and its calls have numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from random import Random
from threading import Semaphore, Thread
from typing import Any

from fakes.faults import Act, Response, Script, Wire, nothing
from smart_redriver.engine.passes import outflow

Ready = Callable[[], bool]


class Turns(Executor):
    """Runs each task in a thread of its own. Stands in for the pool of `passes.outflow` and its `wait`."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._waiting: list[tuple[Semaphore, Ready]] = []
        self._futures: list[Future[Any]] = []
        self._is_stuck = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let `fn` run when its turn comes."""
        done: Future[Any] = Future()
        turn = Semaphore(0)

        def run() -> None:
            self._take(turn)
            try:
                done.set_result(fn(*args, **kwargs))
            except (
                BaseException
            ) as error:  # a crash, too: it is raised where the result is asked for
                done.set_exception(error)
            self._hand_over()

        self._futures.append(done)
        self._waiting.append((turn, lambda: True))
        Thread(target=run, daemon=True).start()
        return done

    def give_way(self, is_ready: Ready = lambda: True) -> None:
        """Let whoever is drawn go on, and wait for a turn."""
        turn = Semaphore(0)
        self._waiting.append((turn, is_ready))
        self._hand_over()
        self._take(turn)

    def wait(self, futures: Collection[Future[Any]], return_when: str) -> None:
        """Wait until one of them is done."""
        self.give_way(lambda: any(one.done() for one in futures))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait until all are done."""
        self.give_way(lambda: all(one.done() for one in self._futures))

    def _hand_over(self) -> None:
        """Where nobody can go on all are let go to say so: a limit in time would hang on how busy the machine is."""
        ready = [one for one in self._waiting if one[1]()]
        self._is_stuck |= not ready
        for one in self._waiting.copy() if self._is_stuck else [self._rng.choice(ready)]:
            self._waiting.remove(one)
            one[0].release()

    def _take(self, turn: Semaphore) -> None:
        turn.acquire()
        if self._is_stuck:
            raise RuntimeError("everybody waits for somebody else")


class WireInTurns(Wire):
    """A wire before each call of which another thread may have its turn."""

    def __init__(self, turns: Turns, script: Script = nothing) -> None:
        super().__init__(script)
        self._turns = turns

    def carry(self, operation: str, request: Mapping[str, Any], act: Act) -> Response:
        self._turns.give_way()
        return super().carry(operation, request, act)


def wire_in_turns(monkeypatch: Any, seed: int, script: Script = nothing) -> Wire:
    """A wire for the next pass, whose workers take turns from now on."""
    turns = Turns(seed)
    monkeypatch.setattr(outflow, "ThreadPoolExecutor", lambda _workers: turns)
    monkeypatch.setattr(outflow, "wait", turns.wait)
    return WireInTurns(turns, script)
