"""Every address of the API, once: its purpose, its options and its handler. Also describes them for programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.console import views
from smart_redriver.oncall.console.tasks import Asked, Console
from smart_redriver.oncall.console.timeline import OPTIONS as TIMELINE_OPTIONS
from smart_redriver.oncall.console.timeline import depth_courses, timeline
from smart_redriver.oncall.verbs.declarations import ORDERS, Verb
from smart_redriver.oncall.verbs.options import Kind, Option, Side, read_body, read_query

#: A page that waits for news of an order asks again after this time. Its wait may delay the console's end by as much.
_LONGEST_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One address. `options` are in the query of a GET, or in the JSON body of a POST."""

    method: str
    path: str
    about: str
    answer: Callable[[Asked], Any]
    options: tuple[Option, ...] = ()
    status: int = 200
    is_change: bool = False

    def read(self, query: Mapping[str, str], body: Any) -> dict[str, Any]:
        """Read a request. Raises Misused."""
        if self.method == "GET":
            return read_query(self.options, query)
        return read_body(self.options, body)


def addresses(console: Console) -> tuple[Address, ...]:
    """Return all addresses."""
    return (
        *_of_stack(console),
        *_of_queue(console),
        *_of_letters(console),
        *_tasks(console),
        *_ordering(console),
    )


def _about(console: Console) -> dict[str, Any]:
    sessions = console.sessions.all(console.notepad())
    session = sessions[0]
    return {
        "stack": console.sessions.stack,
        "who": session.who,
        "region": session.aws.region,
        "read_only": console.is_read_only,
        "names": {one.place.queue: views.name_of(one) for one in sessions},
        "verbs": [
            {
                "name": verb.name,
                "about": verb.about,
                "fields": [
                    {"name": one.name, "is_needed": one.is_needed, **one.schema()}
                    for one in verb.options_on(Side.PAGE)
                ],
            }
            for verb in ORDERS
        ],
    }


def _get(
    path: str, about: str, answer: Callable[[Asked], Any], options: tuple[Option, ...] = ()
) -> Address:
    return Address(method="GET", path=path, about=about, answer=answer, options=options)


def _of_stack(console: Console) -> tuple[Address, ...]:
    return (
        _get(
            "/api/about",
            "The stack, who asks, the queues' names for people, and what may be ordered.",
            lambda _: _about(console),
        ),
        _get(
            "/api/status",
            "All queues at a glance.",
            lambda _: {"queues": views.each(console.sessions.all(console.notepad()))},
        ),
        _get("/api/files", "Files of letters in the console's folder.", lambda _: views.files()),
    )


def _of_queue(console: Console) -> tuple[Address, ...]:
    session = console.session
    return (
        _get(
            "/api/queues/{queue}/status",
            "One queue at a glance.",
            lambda asked: views.status(session(asked)),
        ),
        _get(
            "/api/queues/{queue}/headline",
            "The headline of one queue: what its letters wait for, and what to do.",
            lambda asked: views.headline(session(asked)),
        ),
        _get(
            "/api/queues/{queue}/depths",
            "The depths of DLQ and parking lot over time.",
            lambda asked: depth_courses(session(asked)),
        ),
        _get(
            "/api/queues/{queue}/timeline",
            "Circuit, window, verdicts, deliveries and changes of the last hours.",
            lambda asked: timeline(session(asked), **asked.said),
            TIMELINE_OPTIONS,
        ),
        _get(
            "/api/queues/{queue}/history",
            "Changes by command or by console, and who made them.",
            lambda asked: views.changes(session(asked), asked.said),
            views.DAYS_OPTIONS,
        ),
        _get(
            "/api/queues/{queue}/doctor",
            "Whether the deployment is well.",
            lambda asked: views.findings(session(asked)),
        ),
    )


def _of_letters(console: Console) -> tuple[Address, ...]:
    session, cache = console.session, console.cache
    return (
        _get(
            "/api/queues/{queue}/causes",
            "Why letters are stuck, with counts and trend.",
            lambda asked: views.causes(session(asked), cache),
        ),
        _get(
            "/api/queues/{queue}/letters",
            "A page of letters that the ledger knows, the newest first.",
            lambda asked: views.letters(session(asked), cache, asked.said),
            views.LETTERS_OPTIONS,
        ),
        _get(
            "/api/queues/{queue}/peek",
            "Letters of the DLQ, received and released: their receive counts rise.",
            lambda asked: views.peeked(session(asked), asked.said),
            views.PEEK_OPTIONS,
        ),
        _get(
            "/api/queues/{queue}/letters/{id}",
            "One letter, by any id it ever had: journey, last failure, content.",
            lambda asked: views.letter(session(asked), asked.path["id"], asked.said),
            views.LOOK_OPTIONS,
        ),
        _get(
            "/api/queues/{queue}/letters/{id}/log",
            "The consumer's log about a letter: the last 50 lines that hold one of its ids.",
            lambda asked: views.consumer_log(session(asked), asked.path["id"], asked.said),
            views.LOG_OPTIONS,
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

    version = Option(
        name="after", about="Wait for a later `version` than this.", kind=Kind.WHOLE, least=0
    )
    typed = Option(
        name="answer", about="What `expected` says is yes; all else is no.", is_needed=True
    )
    question = Option(
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
            options=(version,),
        ),
        Address(
            method="POST",
            path="/api/tasks/{id}/answer",
            about="Answer its question.",
            answer=answer,
            options=(question, typed),
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
            options=verb.options_on(Side.PAGE),
            status=202,
            is_change=True,
        )

    return tuple(ordering(verb) for verb in ORDERS)


_FAULT = {
    "type": "object",
    "required": ["error", "kind"],
    "properties": {
        "error": {"type": "string", "description": "One sentence for a person."},
        "kind": {"enum": ["usage", "refused", "credentials", "aws", "bug", "token"]},
    },
}
_TASK = {
    "type": "object",
    "description": "An order at work.",
    "required": ["id", "version", "state", "lines", "question", "expected", "exit_code"],
    "properties": {
        "id": {"type": "string"},
        "queue": {"type": "string"},
        "verb": {"type": "string"},
        "given": {"type": "object"},
        "began_at": {"type": "string", "format": "date-time"},
        "version": {"type": "integer"},
        "state": {"enum": ["planning", "asking", "working", "ended"]},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"enum": ["plan", "say", "warn"]},
                    "text": {"type": "string"},
                },
            },
        },
        "question": {"type": ["string", "null"]},
        "expected": {"type": ["string", "null"], "description": "The answer that means yes."},
        "progress": {"type": ["object", "null"]},
        "result": {"description": "As the command's --json has it."},
        "file": {"type": ["string", "null"], "description": "Keeps letters as they were."},
        "fault": {"type": ["string", "null"], "description": "Why it ended early."},
        "exit_code": {"type": ["integer", "null"], "description": "As the command's."},
    },
}


def describe(addresses: Iterable[Address]) -> dict[str, Any]:
    """The OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in addresses:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Smart re-driver console",
            "version": "1",
            "description": "What `redrive console` serves to its page, and to programs that have its token.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Fault": _FAULT, "Task": _TASK},
        },
    }


def _operation(one: Address) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", one.path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    operation: dict[str, Any] = {"summary": one.about}
    if one.method == "GET":
        parameters += [
            {
                "name": field.name,
                "in": "query",
                "description": field.about,
                "schema": field.schema(),
            }
            for field in one.options
        ]
    else:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _body(one)}},
        }
    if parameters:
        operation["parameters"] = parameters
    is_task = one.path.startswith("/api/tasks/") or one.status == 202
    schema = {"$ref": "#/components/schemas/Task"} if is_task else {}
    operation["responses"] = {
        str(one.status): {
            "description": "The answer.",
            "content": {"application/json": {"schema": schema}},
        },
        "default": {
            "description": "Why not.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Fault"}}},
        },
    }
    return operation


def _body(one: Address) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: field.schema() for field in one.options},
        "required": [field.name for field in one.options if field.is_needed],
    }
