"""Fingerprints of letters: whoever kept or saw one can prove, or check, that it is this."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from redrive.core.letter import Letter
from smart_redriver.oncall.letters.edit_form import write_form
from smart_redriver.oncall.letters.jsonlines import attributes_from_json


def fingerprint(letter: Letter) -> str:
    """A SHA-256 over attributes and body."""
    return fingerprint_of_form(write_form(letter))


def fingerprint_of_form(form: str) -> str:
    """The fingerprint of the letter that has this form."""
    return hashlib.sha256(form.encode()).hexdigest()


def fingerprint_of_json(message: Mapping[str, Any]) -> str:
    """The fingerprint of a letter as `show --json` has it."""
    letter = Letter(
        message_id="",
        receipt_handle="",
        body=message["body"],
        sent_at=datetime.fromtimestamp(0, UTC),
        attributes=attributes_from_json(message["attributes"]),
    )
    return fingerprint(letter)
