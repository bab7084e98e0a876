"""Orders that the page has started, each a verb on its own thread, and the sessions for looks.

    planning ─► asking ─► working ─► ended
       └───────────┴─────────┴────────▲

The verb shows its plan, asks its question and reports progress as on a terminal. The page reads this and answers.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

from smart_redriver.engine.errors import RedriverError
from smart_redriver.oncall.console import views
from smart_redriver.oncall.console.cache import LedgerCache, Notepad, Sessions
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import UNCHANGED, Exit, Refused, explain
from smart_redriver.oncall.terminal.terminal import Advance, Interrupts, Terminal, is_other
from smart_redriver.oncall.terminal.words import stamp
from smart_redriver.oncall.verbs.declarations import Verb

#: After this time, a plan without an answer is out of date.
PATIENCE_SECONDS = 900.0
#: How soon work that only waits notices a stop.
_PART_SECONDS = 0.5

Sleep = Callable[[float], None]


class State(str, Enum):
    """The stage of an order."""

    PLANNING = "planning"
    ASKING = "asking"
    WORKING = "working"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Line:
    """One output of the verb: `plan`, `say` or `warn`."""

    kind: str
    text: str


class StopButton(Interrupts):
    """A button instead of Ctrl-C: work ends after the letters in hand."""

    def __init__(self) -> None:
        super().__init__()
        self.is_heard = False

    def __enter__(self) -> StopButton:
        self.is_heard = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_heard = False

    def press(self) -> None:
        """Stop."""
        self.came = True

    def between(self, sleep: Sleep) -> Sleep:
        """Sleep in short parts, so that pressing the button also ends work that does not check it.

        The sleep then raises KeyboardInterrupt, as after Ctrl-C.
        """

        def sleep_in_parts(seconds: float) -> None:
            while seconds > 0:
                if self.came and not self.is_heard:
                    raise KeyboardInterrupt
                sleep(min(seconds, _PART_SECONDS))
                seconds -= _PART_SECONDS

        return sleep_in_parts


@dataclass(kw_only=True)
class Task(Terminal):
    """One order: its output so far, and its question.

    `version` rises with each change. `file` is where it keeps letters as they were.
    """

    queue: str
    verb: str
    given: dict[str, Any]
    began_at: datetime
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    out: Any = field(default_factory=io.StringIO)
    err: Any = field(default_factory=io.StringIO)
    state: State = State.PLANNING
    lines: list[Line] = field(default_factory=list)
    question: str | None = None
    expected: str | None = None
    other: str | None = None
    progressing: str | None = None
    total: int | None = None
    done: int = 0
    value: Any = None
    file: str | None = None
    fault: str | None = None
    code: Exit | None = None
    version: int = 0
    stop_button: StopButton = field(default_factory=StopButton)
    _answer: str | None = None
    _changed: Condition = field(default_factory=Condition)

    def keep(self, file: Path) -> None:
        """Show the page where letters are kept as they were."""
        self.file = file.name

    def begin(
        self, act: Callable[[], Exit], finally_do: Callable[[Exception | None], None]
    ) -> None:
        """Run the verb. `finally_do` gets the fault that ended it, if any."""
        Thread(target=self._run, args=(act, finally_do), name=self.id, daemon=True).start()

    def _run(self, act: Callable[[], Exit], finally_do: Callable[[Exception | None], None]) -> None:
        fault: Exception | None = None
        try:
            code, sentence = act(), None
        except KeyboardInterrupt:
            code, sentence = Exit.REFUSED, "Stopped. What was done stays done: the history tells."
        except Exception as raised:
            fault = raised
            sentence, code = explain(raised, is_unchanged=not self.has_begun)
        finally_do(fault)
        with self._changing():
            self.state, self.code, self.fault = State.ENDED, code, sentence and self.spare(sentence)
            self.question = self.expected = self.other = None

    # Output of the verb, from its own thread.

    def say(self, text: str = "") -> None:
        """Show the page this text."""
        self._tell("say", text)

    def plan(self, text: str) -> None:
        """Show the page what is about to happen."""
        self._tell("plan", text)

    def warn(self, text: str) -> None:
        """Show the page what went wrong or was skipped."""
        self._tell("warn", text)

    def result(self, value: Any) -> None:
        """Keep the result."""
        with self._changing():
            self.value = value

    def confirm(self, question: str, *, expected: str = "yes", other: str | None = None) -> bool:
        """Ask the page, wait for its answer, and return whether it is `other`. Raises Refused if it is neither."""
        with self._changing():
            self.state, self.question, self.expected = State.ASKING, self.spare(question), expected
            self.other = other
            self._answer = None
        with self._changed:
            self._changed.wait_for(
                lambda: self._answer is not None or self.stop_button.came, PATIENCE_SECONDS
            )
            answer = self._answer
            if answer is None and self.stop_button.came:
                answer = ""  # no
        with self._changing():
            self.question = self.expected = self.other = None
            self.state = State.WORKING
        if answer is None:
            raise Refused(f"No answer within a quarter of an hour. {UNCHANGED}")
        return is_other(answer, expected, other)

    def interrupts(self) -> Interrupts:
        """The page's stop button."""
        return self.stop_button

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """Let the page show the progress."""
        with self._changing():
            self.progressing, self.total, self.done = what, total, 0
        try:
            yield self._advance
        finally:
            with self._changing():
                self.progressing = None

    def _advance(self, more: int) -> None:
        with self._changing():
            self.done += more

    def _tell(self, kind: str, text: str) -> None:
        with self._changing():
            self.lines.append(Line(kind, self.spare(text)))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._changed:
            yield
            self.version += 1
            self._changed.notify_all()

    # Requests and answers of the page, from threads of the server.

    def answer(self, text: str, *, to: str) -> None:
        """Answer this question. Raises Refused if it is not asked now: a second click must not answer the next one."""
        with self._changed:
            if self.state is not State.ASKING or self._answer is not None or self.question != to:
                raise Refused("That is not asked, or it was answered already.")
            self._answer = text
            self._changed.notify_all()

    def stop(self) -> None:
        """End the order: a question is answered with no, and work ends after the letters in hand."""
        self.stop_button.press()
        with self._changed:
            self._changed.notify_all()

    def wait(self, beyond: int, seconds: float) -> None:
        """Wait until there is something new, for at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.version > beyond, seconds)

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until it has ended, for at most `seconds`. Returns whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self.state is State.ENDED, seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the order as the page reads it."""
        with self._changed:
            return {
                "id": self.id,
                "queue": self.queue,
                "verb": self.verb,
                "given": self.given,
                "began_at": stamp(self.began_at),
                "version": self.version,
                "state": self.state.value,
                "lines": [{"kind": one.kind, "text": one.text} for one in self.lines],
                "question": self.question,
                "expected": self.expected,
                "other": self.other,
                "progress": {"what": self.progressing, "total": self.total, "done": self.done}
                if self.progressing
                else None,
                "result": self.value,
                "file": self.file,
                "fault": self.fault,
                "exit_code": None if self.code is None else int(self.code),
            }


#: How many orders are remembered, and how many may be under way.
KEPT = 50
AT_ONCE = 8
#: Time for the letters in hand, and to give back the lease.
_ENDING_SECONDS = 60.0


class Tasks:
    """The latest orders, by id."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._lock = Lock()

    def add(self, task: Task) -> None:
        """Remember an order. Raises Refused if too many are under way, such as plans that nobody answers."""
        with self._lock:
            if sum(one.state is not State.ENDED for one in self._tasks.values()) >= AT_ONCE:
                raise Refused(f"{AT_ONCE} orders are under way. Answer or stop one of them first.")
            self._tasks[task.id] = task
            ended = [one.id for one in self._tasks.values() if one.state is State.ENDED]
            for old in ended[: max(0, len(self._tasks) - KEPT)]:
                del self._tasks[old]

    def get(self, task_id: str) -> Task:
        """Return the order with this id. Raises Refused."""
        with self._lock:
            if task_id not in self._tasks:
                raise Refused("There is no such order. The history tells what was done.")
            return self._tasks[task_id]

    def all(self) -> list[Task]:
        """Return all remembered tasks, the latest first."""
        with self._lock:
            return list(reversed(self._tasks.values()))

    def close(self) -> None:
        """Stop all orders and wait for the letters in hand, as Ctrl-C does with the command."""
        for one in self.all():
            one.stop()
        for one in self.all():
            one.wait_for_end(_ENDING_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: the names in its path, and its values."""

    path: Mapping[str, str]
    said: Mapping[str, Any]


@dataclass(kw_only=True)
class Console:
    """What the handlers of addresses need."""

    sessions: Sessions
    is_read_only: bool = False
    cache: LedgerCache = field(default_factory=LedgerCache)
    tasks: Tasks = field(default_factory=Tasks)

    def notepad(self) -> Notepad:
        """A terminal for a look."""
        return Notepad(spared_stack=self.sessions.stack)

    def session(self, asked: Asked) -> Session:
        """Return a session for a look at the queue in the path. Raises CallFailed and Refused."""
        return self.sessions.of(asked.path["queue"], self.notepad())

    def get_ready(self) -> None:
        """Open the clients before the page asks, because botocore builds them slowly.

        The page will get any fault.
        """
        with suppress(RedriverError, Refused):
            views.each(self.sessions.all(self.notepad()))

    def order(self, verb: Verb, asked: Asked) -> dict[str, Any]:
        """Start a verb. Its plan follows."""
        if self.is_read_only:
            raise Refused("This console was started with --read-only.")
        looking = self.session(asked)
        task = Task(
            queue=looking.place.queue,
            verb=verb.name,
            given=dict(asked.said),
            began_at=looking.clock(),
            spared_stack=self.sessions.stack,
        )
        session = self.sessions.of(asked.path["queue"], task)
        session.sleep = task.stop_button.between(session.sleep)
        self.tasks.add(task)

        def after(fault: Exception | None) -> None:
            self.cache.forget(task.queue)
            if fault is not None:
                self.sessions.forget(fault)

        task.begin(lambda: verb.run(session, asked.said), after)
        return task.to_json()
