"""The console at work: sessions to look with, orders under way, what was looked up lately."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from redrive.errors import RedriverError
from smart_redriver.oncall.console import looks
from smart_redriver.oncall.console.notepad import Notepad
from smart_redriver.oncall.console.orders import Verb
from smart_redriver.oncall.console.sessions import Sessions
from smart_redriver.oncall.console.shelf import Shelf
from smart_redriver.oncall.console.task import Task
from smart_redriver.oncall.console.tasks import Tasks
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: what its path names, and what it says."""

    path: Mapping[str, str]
    said: Mapping[str, Any]


@dataclass(kw_only=True)
class Console:
    """What the addresses work with."""

    sessions: Sessions
    is_read_only: bool = False
    shelf: Shelf = field(default_factory=Shelf)
    tasks: Tasks = field(default_factory=Tasks)

    def notepad(self) -> Notepad:
        """A terminal for a look."""
        return Notepad(spared_stack=self.sessions.stack)

    def session(self, asked: Asked) -> Session:
        """For a look at the queue that the path names. Raises CallFailed and Refused."""
        return self.sessions.of(asked.path["queue"], self.notepad())

    def get_ready(self) -> None:
        """Open the clients, which botocore builds slowly, before the page asks. What goes wrong the page will be told."""
        with suppress(RedriverError, Refused):
            looks.each(self.sessions.all(self.notepad()))

    def order(self, verb: Verb, asked: Asked) -> dict[str, Any]:
        """Let a verb begin; its plan follows."""
        if self.is_read_only:
            raise Refused("This console is for looking only: it was started with --read-only.")
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
            self.shelf.forget(task.queue)
            if fault is not None:
                self.sessions.forget(fault)

        task.begin(lambda: verb.act(session, asked.said), after)
        return task.to_json()
