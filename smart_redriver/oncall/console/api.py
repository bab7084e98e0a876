"""Every address of the API, once: what it is for, what it takes, who answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.console import looks
from smart_redriver.oncall.console.at_work import Asked, Console
from smart_redriver.oncall.console.fields import Field, Kind, read_body, read_query
from smart_redriver.oncall.console.orders import VERBS, Verb
from smart_redriver.oncall.console.timeline import FIELDS as TIMELINE_FIELDS
from smart_redriver.oncall.console.timeline import depth_courses, timeline

#: A page that waits for news of an order asks again after so long; so long its wait may keep the console from ending.
_LONGEST_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One address. `fields` are in the query of a GET, in the JSON body of a POST."""

    method: str
    path: str
    about: str
    answer: Callable[[Asked], Any]
    fields: tuple[Field, ...] = ()
    status: int = 200
    is_change: bool = False

    def read(self, query: Mapping[str, str], body: Any) -> dict[str, Any]:
        """What a request says. Raises Misused."""
        if self.method == "GET":
            return read_query(self.fields, query)
        return read_body(self.fields, body)


def addresses(console: Console) -> tuple[Address, ...]:
    """All of them."""
    return (
        *_of_stack(console),
        *_of_queue(console),
        *_of_letters(console),
        *_tasks(console),
        *_ordering(console),
    )


def _about(console: Console) -> dict[str, Any]:
    session = console.sessions.all(console.notepad())[0]
    return {
        "stack": console.sessions.stack,
        "who": session.who,
        "region": session.aws.region,
        "read_only": console.is_read_only,
        "verbs": [
            {
                "name": verb.name,
                "about": verb.about,
                "fields": [
                    {"name": one.name, "is_needed": one.is_needed, **one.schema()}
                    for one in verb.fields
                ],
            }
            for verb in VERBS
        ],
    }


def _get(
    path: str, about: str, answer: Callable[[Asked], Any], fields: tuple[Field, ...] = ()
) -> Address:
    return Address(method="GET", path=path, about=about, answer=answer, fields=fields)


def _of_stack(console: Console) -> tuple[Address, ...]:
    return (
        _get(
            "/api/about", "The stack, who asks, and what may be ordered.", lambda _: _about(console)
        ),
        _get(
            "/api/status",
            "All queues at a glance.",
            lambda _: {"queues": looks.each(console.sessions.all(console.notepad()))},
        ),
        _get("/api/files", "Files of letters in the console's folder.", lambda _: looks.files()),
    )


def _of_queue(console: Console) -> tuple[Address, ...]:
    session = console.session
    return (
        _get(
            "/api/queues/{queue}/status",
            "One queue at a glance.",
            lambda asked: looks.status(session(asked)),
        ),
        _get(
            "/api/queues/{queue}/depths",
            "How the depths of DLQ and parking lot went.",
            lambda asked: depth_courses(session(asked)),
        ),
        _get(
            "/api/queues/{queue}/timeline",
            "Circuit, window, verdicts, deliveries and changes of the last hours.",
            lambda asked: timeline(session(asked), **asked.said),
            TIMELINE_FIELDS,
        ),
        _get(
            "/api/queues/{queue}/history",
            "Who changed what, by command or by console.",
            lambda asked: looks.changes(session(asked), asked.said),
            looks.DAYS_FIELDS,
        ),
        _get(
            "/api/queues/{queue}/doctor",
            "Whether the deployment is well.",
            lambda asked: looks.findings(session(asked)),
        ),
    )


def _of_letters(console: Console) -> tuple[Address, ...]:
    session, shelf = console.session, console.shelf
    return (
        _get(
            "/api/queues/{queue}/causes",
            "Why letters are stuck, with counts and trend.",
            lambda asked: looks.causes(session(asked), shelf),
        ),
        _get(
            "/api/queues/{queue}/letters",
            "A page of letters that the ledger knows, the newest first.",
            lambda asked: looks.letters(session(asked), shelf, asked.said),
            looks.LETTERS_FIELDS,
        ),
        _get(
            "/api/queues/{queue}/peek",
            "Letters of the DLQ, received and released: their receive counts rise.",
            lambda asked: looks.peeked(session(asked), asked.said),
            looks.PEEK_FIELDS,
        ),
        _get(
            "/api/queues/{queue}/letters/{id}",
            "One letter, by any id it ever had: journey, last failure, content.",
            lambda asked: looks.letter(session(asked), asked.path["id"], asked.said),
            looks.LOOK_FIELDS,
        ),
        _get(
            "/api/queues/{queue}/letters/{id}/log",
            "What a letter's consumer logged about it: the last 50 lines that hold one of its ids.",
            lambda asked: looks.consumer_log(session(asked), asked.path["id"], asked.said),
            looks.LOG_FIELDS,
        ),
    )


def _tasks(console: Console) -> tuple[Address, ...]:
    def one(asked: Asked) -> dict[str, Any]:
        task = console.tasks.get(asked.path["id"])
        if "after" in asked.said:
            task.wait(asked.said["after"], _LONGEST_WAIT_SECONDS)
        return task.to_json()

    def answer(asked: Asked) -> dict[str, Any]:
        task = console.tasks.get(asked.path["id"])
        task.answer(asked.said["answer"], to=asked.said["question"])
        return task.to_json()

    def stop(asked: Asked) -> dict[str, Any]:
        task = console.tasks.get(asked.path["id"])
        task.stop()
        return task.to_json()

    version = Field(
        name="after", about="Wait for a later `version` than this.", kind=Kind.WHOLE, least=0
    )
    typed = Field(
        name="answer", about="What `expected` says is yes; all else is no.", is_needed=True
    )
    question = Field(
        name="question", about="The `question` that is answered, as it was asked.", is_needed=True
    )
    return (
        Address(
            method="GET",
            path="/api/tasks",
            about="The orders given here, the latest first.",
            answer=lambda _: [task.to_json() for task in console.tasks.all()],
        ),
        Address(
            method="GET",
            path="/api/tasks/{id}",
            about="One order: plan, question, progress, end.",
            answer=one,
            fields=(version,),
        ),
        Address(
            method="POST",
            path="/api/tasks/{id}/answer",
            about="Answer its question.",
            answer=answer,
            fields=(question, typed),
            is_change=True,
        ),
        Address(
            method="POST",
            path="/api/tasks/{id}/stop",
            about="End it after the letters in hand.",
            answer=stop,
            is_change=True,
        ),
    )


def _ordering(console: Console) -> tuple[Address, ...]:
    def ordering(verb: Verb) -> Address:
        return Address(
            method="POST",
            path=f"/api/queues/{{queue}}/{verb.name}",
            about=f"{verb.about} Answers at once with an order, which shows its plan and asks.",
            answer=lambda asked: console.order(verb, asked),
            fields=verb.fields,
            status=202,
            is_change=True,
        )

    return tuple(ordering(verb) for verb in VERBS)
