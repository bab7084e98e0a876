"""Groups letters by their cause: what was reported, an error attribute where there is one, else the shape of the body."""

from __future__ import annotations

import json
from typing import Any

from redrive.core.case import Case
from redrive.core.cause import error_of
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from smart_redriver.oncall.terminal.table import printable

_KEYS_SHOWN = 6
_TYPES = {
    dict: "object",
    list: "array",
    str: "text",
    bool: "yes/no",
    int: "number",
    float: "number",
}


def cause_in_hand(case: Case) -> str:
    """Why a letter in hand failed: as its consumer reported, or said on the message, else the shape of its body."""
    return (reported_cause(case.entry) if case.entry else "") or cause_of(case.letter)


def reported_cause(entry: Entry) -> str:
    """Why a letter failed, as far as the ledger knows; empty where it does not."""
    known = entry.cause or (entry.error if entry.status is Status.PARKED else None)
    return printable(known) if known else ""


def cause_of(letter: Letter) -> str:
    """What letters of one kind have in common, on one line."""
    error = error_of(letter.attributes)
    return printable(error) if error else shape_of(letter.body)


def shape_of(body: str) -> str:
    """The outline of a body: the keys of a JSON object, else what it is."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "text, no JSON"
    if not isinstance(value, dict):
        return f"JSON {_TYPES.get(type(value), 'null')}"
    keys = sorted(value)
    more = ", ..." if len(keys) > _KEYS_SHOWN else ""
    return printable(f"JSON {{{', '.join(keys[:_KEYS_SHOWN])}{more}}}")
