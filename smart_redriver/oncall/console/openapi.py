"""The API, described for programs: made of the same addresses that are served."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from smart_redriver.oncall.console.api import Address

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
