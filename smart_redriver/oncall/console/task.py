"""One order at work: a verb on a thread of its own, whose terminal is a page.

    planning ─► asking ─► working ─► ended
       └───────────┴─────────┴────────▲

The verb shows its plan, asks its question and tells its progress as on a terminal; the page reads it and answers.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from threading import Condition, Thread
from typing import Any

from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.failures import explain
from smart_redriver.oncall.terminal.interrupts import Interrupts
from smart_redriver.oncall.terminal.terminal import Advance, Terminal
from smart_redriver.oncall.terminal.words import stamp

#: A plan that nobody answers to is out of date.
PATIENCE_SECONDS = 900.0
_DECLINED = "Nothing was changed."
#: How soon a stop is heard by work that only waits.
_PART_SECONDS = 0.5

Sleep = Callable[[float], None]


class State(str, Enum):
    """Where an order is."""

    PLANNING = "planning"
    ASKING = "asking"
    WORKING = "working"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Line:
    """What the verb said: `plan`, `say` or `warn`."""

    kind: str
    text: str


class StopButton(Interrupts):
    """In the place of Ctrl-C: work ends after the letters in hand."""

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
        """The same sleep in short parts: work that does not look for the button ends in between, when it is pressed.

        That raises KeyboardInterrupt, as Ctrl-C does there.
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
    """One order: what was said so far, and what is asked.

    `version` rises with each change of it; `file` is where it keeps letters as they were.
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

    def begin(
        self, act: Callable[[], Exit], finally_do: Callable[[Exception | None], None]
    ) -> None:
        """Let the verb run. `finally_do` is told the fault that ended it, if one did."""
        Thread(target=self._run, args=(act, finally_do), name=self.id, daemon=True).start()

    def _run(self, act: Callable[[], Exit], finally_do: Callable[[Exception | None], None]) -> None:
        fault: Exception | None = None
        try:
            code, sentence = act(), None
        except KeyboardInterrupt:
            code, sentence = Exit.REFUSED, "Stopped. What was done stays done: the history tells."
        except Exception as raised:
            fault = raised
            sentence, code = explain(raised)
        finally_do(fault)
        with self._changing():
            self.state, self.code, self.fault = State.ENDED, code, sentence and self.spare(sentence)
            self.question = self.expected = None

    # What the verb tells, from its own thread.

    def say(self, text: str = "") -> None:
        """Tell the page."""
        self._tell("say", text)

    def plan(self, text: str) -> None:
        """Tell the page what is about to happen."""
        self._tell("plan", text)

    def warn(self, text: str) -> None:
        """Tell the page what went wrong or was skipped."""
        self._tell("warn", text)

    def result(self, value: Any) -> None:
        """Keep the result."""
        with self._changing():
            self.value = value

    def confirm(self, question: str, *, expected: str = "yes") -> None:
        """Ask the page, and wait for its answer. Raises Refused for any other than what is expected."""
        with self._changing():
            self.state, self.question, self.expected = State.ASKING, self.spare(question), expected
            self._answer = None
        with self._changed:
            self._changed.wait_for(
                lambda: self._answer is not None or self.stop_button.came, PATIENCE_SECONDS
            )
            answer = self._answer
            if answer is None and self.stop_button.came:
                answer = ""  # no
        with self._changing():
            self.question = self.expected = None
            self.state = State.WORKING
        if answer is None:
            raise Refused(f"Nobody answered within a quarter of an hour. {_DECLINED}")
        if answer.strip().lower() != expected.lower():
            raise Refused(_DECLINED)

    def interrupts(self) -> Interrupts:
        """The page's stop button."""
        return self.stop_button

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """Let the page show how far it is."""
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

    # What the page asks and answers, from threads of the server.

    def answer(self, text: str, *, to: str) -> None:
        """Answer this question. Raises Refused where it is not asked: two clicks are no answer to the next one."""
        with self._changed:
            if self.state is not State.ASKING or self._answer is not None or self.question != to:
                raise Refused("That is not asked, or it was answered already.")
            self._answer = text
            self._changed.notify_all()

    def stop(self) -> None:
        """End it: a question is answered with no, work ends after the letters in hand."""
        self.stop_button.press()
        with self._changed:
            self._changed.notify_all()

    def wait(self, beyond: int, seconds: float) -> None:
        """Wait until there is something new, for so long at most."""
        with self._changed:
            self._changed.wait_for(lambda: self.version > beyond, seconds)

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until it has ended, for so long at most; whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self.state is State.ENDED, seconds)

    def to_json(self) -> dict[str, Any]:
        """As the page reads it."""
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
                "progress": {"what": self.progressing, "total": self.total, "done": self.done}
                if self.progressing
                else None,
                "result": self.value,
                "file": self.file,
                "fault": self.fault,
                "exit_code": None if self.code is None else int(self.code),
            }
