"""The rules that every kit shares: what is a secret, and what differs between two errors of one cause.

`rules.json` is data in the dialect that Python, JavaScript and Java have in common, so that the kits can't drift apart.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret: `pattern` has what stays as its first group, and the secret as its second.

    `is_prose` marks a rule for messages, which would take a line of code such as `token = read()` for a secret.
    """

    pattern: re.Pattern[str]
    only_if: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    is_prose: bool


def _compiled(text: str | None, *, ignores_case: bool = False) -> re.Pattern[str] | None:
    flags = re.ASCII | (re.IGNORECASE if ignores_case else re.NOFLAG)
    return re.compile(text, flags) if text else None


def _secret_rule(given: dict[str, Any]) -> SecretRule:
    ignores_case = given.get("ignore_case", False)
    pattern = _compiled(given["pattern"], ignores_case=ignores_case)
    assert pattern is not None  # noqa: S101 - every rule has one
    return SecretRule(
        pattern=pattern,
        only_if=_compiled(given.get("only_if")),
        unless=_compiled(given.get("unless"), ignores_case=True),
        is_prose=given.get("is_prose", False),
    )


_GIVEN: dict[str, Any] = json.loads(
    files(__package__).joinpath("rules.json").read_text(encoding="utf-8")
)

SECRETS = tuple(_secret_rule(one) for one in _GIVEN["secrets"])
CARD = re.compile(_GIVEN["card"], re.ASCII)
CARD_ISSUER = re.compile(_GIVEN["card_issuer"], re.ASCII)
#: A quoted part of a message, in one of three groups.
QUOTED = re.compile(_GIVEN["quoted"], re.ASCII)
#: A value of a body that has one of these says more than its words do.
TELLING = re.compile(_GIVEN["telling"], re.ASCII)
#: What to put in the place of parts of a message that differ from letter to letter, in this order.
VARIABLE = tuple((re.compile(one, re.ASCII), other) for one, other in _GIVEN["variable"])
#: Places of frames that are not the consumer's own code, by language.
NOT_OWN = {name: re.compile(one, re.ASCII) for name, one in _GIVEN["not_own"].items()}
