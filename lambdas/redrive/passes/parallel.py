"""The engine of a pass: several rounds under way at once, decided one after the other.

A round is a generator. What it yields waits for AWS and is done by a worker; what it does between is done by the
thread of the pass, one round at a time:

    examined = yield gather          worker 1  ▒▒gather▒▒ ▒▒send, record, delete▒▒
    ...decide...                     worker 2     ▒▒gather▒▒    ▒▒send, record, delete▒▒
    yield send_record_and_delete     the pass            decide    decide    count   count

So the permit, the pacer, the circuit and the report have one writer and need no lock, and a letter's send, ledger
write and delete stay in order, as its round does them one after the other. A worker takes the next round only when
it is done with the last one: that is the backpressure, and the bound on memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any

from redrive.errors import RedriverError

#: What a worker does, and the round that asks for it and gets its result.
Errand = Callable[[], Any]
Round = Generator[Errand, Any, None]


class Engine:
    """Runs rounds, at most `width` at once. With one, nothing runs beside anything, and no thread is made."""

    def __init__(self, width: int) -> None:
        self.width = width
        #: The first failure: no round is begun any more, and those under way end as soon as they can.
        self.failure: RedriverError | None = None
        self._under_way: dict[Future[Any], Round] = {}
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()

    def run(self, next_round: Callable[[], Round | None]) -> None:
        """Run rounds until there is no next one, or one has failed. Raises its RedriverError once all have ended."""
        with _Here() if self.width == 1 else ThreadPoolExecutor(self.width) as workers:
            while True:
                while self._has_room and (fresh := next_round()):
                    self._go_on(workers, fresh, partial(next, fresh))
                if not self._under_way:
                    break
                errand = self._ended.get()
                waiting = self._under_way.pop(errand)
                error = errand.exception()
                resume = (
                    partial(waiting.throw, error)
                    if error
                    else partial(waiting.send, errand.result())
                )
                self._go_on(workers, waiting, resume)
        if self.failure:
            raise self.failure

    @property
    def _has_room(self) -> bool:
        return self.failure is None and len(self._under_way) < self.width

    def _go_on(self, workers: Executor, round_: Round, resume: Callable[[], Errand]) -> None:
        """Let a round go on to its next errand, and hand that to a worker."""
        try:
            errand = workers.submit(resume())
        except StopIteration:
            return
        except RedriverError as failure:
            self.failure = self.failure or failure
            return
        self._under_way[errand] = round_
        errand.add_done_callback(self._ended.put)


class _Here(Executor):
    """Does each errand at once, in the thread that asks for it."""

    def submit(self, errand: Errand, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(errand(*args, **kwargs))
        except Exception as error:  # it is raised where the round goes on
            done.set_exception(error)
        return done
