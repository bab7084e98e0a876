"""The text that a person edits: attributes as JSON above a line, the body below it. And what they made of it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import replace

from redrive.core.letter import Letter
from smart_redriver.oncall.letters.jsonlines import attributes_from_json, attributes_to_json
from smart_redriver.oncall.terminal.exits import Refused

_LINE = "---- attributes above, body below; leave this line alone ----"


def write_form(letter: Letter) -> str:
    """The form of a letter."""
    return form_of(_attributes(letter), letter.body)


def form_of(attributes: str, body: str) -> str:
    """The form that says so: `attributes` is their JSON."""
    return f"{attributes}\n{_LINE}\n{body}"


def read_form(text: str, before: Letter) -> Letter:
    """The letter that the edited form describes. Raises Refused saying what is wrong."""
    above, line, body = text.partition(f"\n{_LINE}\n")
    if not line:
        raise Refused(
            f"The line {_LINE!r} is gone, so nobody can tell body from attributes. Nothing was changed."
        )
    try:
        attributes = attributes_from_json(json.loads(above))
    except (ValueError, RecursionError) as fault:
        raise Refused(f"The attributes can't be read: {fault}. Nothing was changed.") from fault
    if not before.body.endswith("\n"):
        body = body.removesuffix("\n")  # which editors add
    if not body:
        raise Refused("The body is empty, which SQS does not take. Nothing was changed.")
    return replace(before, body=body, attributes=attributes)


def difference(before: Letter, after: Letter) -> Iterator[str]:
    """What was changed, as `diff -u` shows it."""
    yield from difflib.unified_diff(
        write_form(before).splitlines(),
        write_form(after).splitlines(),
        "before",
        "after",
        lineterm="",
    )


def _attributes(letter: Letter) -> str:
    plain = attributes_to_json(letter.attributes)
    return json.dumps(plain, indent=2, ensure_ascii=False, sort_keys=True)
