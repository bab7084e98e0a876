"""Removes secrets, card numbers and parts of bodies from texts before they leave the consumer.

All kits share `rules.json`, so that they can't drift apart. Its patterns use only the dialect that Python, JavaScript
and Java have in common.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import islice
from typing import Any


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret. The first group of `pattern` stays; the second is the secret.

    `is_prose` marks a rule for messages only: it would find a secret in a line of code such as `token = read()`.
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
#: A value of a body that contains one of these is more than ordinary words.
TELLING = re.compile(_GIVEN["telling"], re.ASCII)
#: Parts of a message that differ from letter to letter, with their replacements, in the order of use.
VARIABLE = tuple((re.compile(one, re.ASCII), other) for one, other in _GIVEN["variable"])
#: Places of frames outside the consumer's own code, by language.
NOT_OWN = {name: re.compile(one, re.ASCII) for name, one in _GIVEN["not_own"].items()}


IN_PLACE_OF_SECRET = "[secret]"  # noqa: S105 - that is the point
IN_PLACE_OF_CARD = "[card]"
IN_PLACE_OF_BODY = "[body]"

#: Characters. A shorter body or value is removed only where it is quoted, because it may be an ordinary word. The same
#: goes for one without a digit, space or @.
_LONG_BODY = 8
_LONGEST_WORD = 16
_LONG_VALUE = 6
#: Any part of a body with at least twice as many characters is found, wherever it begins.
_WINDOW = 12
#: A larger body is not parsed: that would take longer than the failure is worth.
_MAX_PARSED = 65_536
_MAX_VALUES = 500


def without_secrets(text: str, *, is_code: bool = False) -> str:
    """`text` with marks instead of secrets and card numbers. In a line of code, only literals are secrets."""
    for rule in SECRETS:
        if not (is_code and rule.is_prose):
            text = rule.pattern.sub(partial(_hidden, rule), text)
    return CARD.sub(_card_hidden, text)


def without_body(text: str, body: str) -> str:
    """`text` with marks instead of the body and quoted parts of it."""
    if not text or not body:
        return text
    text = _without_whole(text, body)
    values = _values_of(body)
    text = QUOTED.sub(lambda found: _quote_hidden(found, body, values), text)
    for value in sorted(values or {body}, key=len, reverse=True):
        if _LONG_VALUE <= len(value) <= len(text) and TELLING.search(value):
            text = _replaced_as_word(text, value)
    return _without_long_parts(text, body)


def _hidden(rule: SecretRule, found: re.Match[str]) -> str:
    kept, secret = found[1], found[2]
    is_none = rule.unless and rule.unless.search(secret)
    if is_none or (rule.only_if and not rule.only_if.search(secret)):
        return found[0]
    return f"{kept}{IN_PLACE_OF_SECRET}"


def _card_hidden(found: re.Match[str]) -> str:
    digits = re.sub(r"[ -]", "", found[0])
    return IN_PLACE_OF_CARD if CARD_ISSUER.match(digits) and _is_luhn(digits) else found[0]


def _is_luhn(digits: str) -> bool:
    """Whether the check digit is right. https://www.iso.org/standard/70484.html, annex B."""
    doubled = (2 * int(one) for one in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled)) % 10 == 0


def _without_whole(text: str, body: str) -> str:
    # A body longer than the text can't be in it, and a megabyte is costly to spell in three ways.
    is_word = len(body) < _LONGEST_WORD and body.isalpha()
    if _LONG_BODY <= len(body) <= len(text) and not is_word:
        for quoted in (body, repr(body)[1:-1], json.dumps(body)[1:-1]):
            text = text.replace(quoted, IN_PLACE_OF_BODY)
    return text


def _values_of(body: str) -> set[str] | None:
    """The values in a JSON body, as texts; None for a body that is not JSON or is too large to parse."""
    if len(body) > _MAX_PARSED or body.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return set(islice(_leaves(json.loads(body, parse_int=str, parse_float=str)), _MAX_VALUES))
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)


def _quote_hidden(found: re.Match[str], body: str, values: set[str] | None) -> str:
    quoted = found[1] or found[2] or found[3]
    is_of_body = _holds_word(body, quoted) if values is None else quoted in values
    if not is_of_body:
        return found[0]
    mark = found[0][0]
    return f"{mark}{IN_PLACE_OF_BODY}{mark}"


def _holds_word(body: str, part: str) -> bool:
    at = body.find(part)
    return at >= 0 and _stands_alone(body, at, at + len(part))


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())


def _replaced_as_word(text: str, value: str) -> str:
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if _stands_alone(text, at, end):
            text = f"{text[:at]}{IN_PLACE_OF_BODY}{text[end:]}"
            end = at + len(IN_PLACE_OF_BODY)
        at = text.find(value, end)
    return text


def _without_long_parts(text: str, body: str) -> str:
    """Remove parts of the body that are too long to be a coincidence, wherever they begin in it."""
    at = 0
    while at + _WINDOW <= len(text):
        found = body.find(text[at : at + _WINDOW])
        if found < 0:
            at += _WINDOW
            continue
        start, end = _grown(text, body, at, found)
        if end - start >= 2 * _WINDOW:
            text = f"{text[:start]}{IN_PLACE_OF_BODY}{text[end:]}"
            at = start + len(IN_PLACE_OF_BODY)
        else:
            at += _WINDOW
    return text


def _grown(text: str, body: str, at: int, found: int) -> tuple[int, int]:
    """Return start and end, in `text`, of the part that `text` around `at` and `body` around `found` share."""
    before = after = 0
    while before < min(at, found) and text[at - before - 1] == body[found - before - 1]:
        before += 1
    longest = min(len(text) - at, len(body) - found)
    while after < longest and text[at + after] == body[found + after]:
        after += 1
    return at - before, at + after
