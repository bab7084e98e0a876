"""Removes secrets, card numbers and parts of bodies from texts before they leave the consumer.

All kits share `rules.json`, so that they can't drift apart. Its patterns use only the dialect that Python, JavaScript
and Java have in common.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import islice
from typing import Any


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret. The first group of `pattern` stays; the second is the secret.

    `is_prose` marks a rule for messages and literals: in code, it would take `token = read()` for a secret.
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
#: A text in a line of code.
LITERAL = re.compile(_GIVEN["literal"], re.ASCII)
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
#: At so many places of a body, the longest part that it shares with a text is looked for.
_MAX_PLACES = 8
#: Characters of a text to look at once the whole body is out of it. A message can be as long as its body.
_LOOKED_AT = 8_000
#: A larger body is not parsed: that would take longer than the failure is worth.
_MAX_PARSED = 65_536
_MAX_VALUES = 500
#: The longest quoted part.
_MAX_QUOTED = 400
_WORD = re.compile(r"[^\W_]+")


def without_secrets(text: str, *, is_code: bool = False) -> str:
    """`text` with marks instead of secrets and card numbers. In a line of code, only literals are secrets."""
    if is_code:
        text = LITERAL.sub(lambda found: _literal_without_secrets(found[0]), text)
    for rule in SECRETS:
        if not (is_code and rule.is_prose):
            text = rule.pattern.sub(partial(_hidden, rule), text)
    return CARD.sub(_card_hidden, text)


def _literal_without_secrets(literal: str) -> str:
    return f"{literal[0]}{without_secrets(literal[1:-1])}{literal[-1]}"


def without_body(text: str, body: str, attributes: Collection[str] = ()) -> str:
    """The first characters of `text` with marks instead of the body, quoted parts of it, and values of `attributes`.

    The time that it takes grows with the length of the body, and not with how often the two are alike.
    """
    if not text or not (body or attributes):
        return text
    whole = _without_whole(text, body)
    values = _values_of(body)
    text = _without_quoted(whole[:_LOOKED_AT], body, values, attributes)
    for value in sorted({*(values or {body}), *attributes}, key=len, reverse=True):
        if _LONG_VALUE <= len(value) <= len(text) and TELLING.search(value):
            text = _replaced_as_word(text, value)
    text = _without_long_parts(text, body)
    return text if len(whole) <= _LOOKED_AT else _without_cut_part(text)


def _hidden(rule: SecretRule, found: re.Match[str]) -> str:
    kept, secret = found[1], found[2]
    is_none = rule.unless and rule.unless.search(secret)
    if is_none or (rule.only_if and not rule.only_if.search(secret)):
        return found[0]
    return f"{kept}{IN_PLACE_OF_SECRET}"


def _card_hidden(found: re.Match[str]) -> str:
    digits = re.sub(r"[^0-9]", "", found[0])
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


def _without_quoted(
    text: str, body: str, values: set[str] | None, attributes: Collection[str]
) -> str:
    if values is None:
        values = _quoted_in({_quote(found) for found in QUOTED.finditer(text)}, body)
    told = values.union(attributes)

    def hidden(found: re.Match[str]) -> str:
        mark = found[0][0]
        return f"{mark}{IN_PLACE_OF_BODY}{mark}" if _quote(found) in told else found[0]

    return QUOTED.sub(hidden, text)


def _quote(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[3]


def _quoted_in(quotes: set[str], body: str) -> set[str]:
    """The quotes whose words all stand in the body, among the same text. One walk through the body finds them all."""
    sought = {quote: set(_pieces(quote)) for quote in quotes}
    if not (wanted := set().union(*sought.values())):
        return set()
    held = wanted.intersection(_pieces(body, wanted))
    return {quote for quote, pieces in sought.items() if pieces and pieces <= held}


def _pieces(text: str, wanted: Container[str] | None = None) -> Iterator[str]:
    """Each word, or each that is wanted: alone, with the character on either side, and from the word before it on."""
    before = None
    for word in _WORD.finditer(text):
        start, end = word.span()
        if wanted is None or word[0] in wanted:
            yield from (word[0], text[max(0, start - 1) : end], text[start : end + 1])
            if before is not None and end - before <= _MAX_QUOTED:
                yield text[before:end]
        before = start


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
    places = _places(text, body)
    kept = []
    at = done = 0
    while at + _WINDOW <= len(text):
        shared = (
            _grown(text, body, at, place, at - done)
            for place in places.get(text[at : at + _WINDOW], ())
        )
        start, end = max(shared, key=lambda part: part[1] - part[0], default=(at, at))
        if end - start >= 2 * _WINDOW:
            kept += [text[done:start], IN_PLACE_OF_BODY]
            at = done = end
        else:
            at += 1
    return "".join([*kept, text[done:]])


def _places(text: str, body: str) -> dict[str, list[int]]:
    """Where the body has parts of the text.

    The body is cut into windows, because any part that is as long as two of them has a whole one.
    """
    if len(text) < 2 * _WINDOW:
        return {}
    wanted = {text[at : at + _WINDOW] for at in range(len(text) - _WINDOW + 1)}
    places: dict[str, list[int]] = {}
    for at in range(0, len(body) - _WINDOW + 1, _WINDOW):
        part = body[at : at + _WINDOW]
        if part in wanted and len(found := places.setdefault(part, [])) < _MAX_PLACES:
            found.append(at)
    return places


def _grown(text: str, body: str, at: int, place: int, room: int) -> tuple[int, int]:
    """Return start and end, in `text`, of the part that `text` around `at` and `body` around `place` share.

    It begins at most `room` characters before `at`.
    """
    before, after = 0, _WINDOW
    first = min(room, place)
    while before < first and text[at - before - 1] == body[place - before - 1]:
        before += 1
    longest = min(len(text) - at, len(body) - place)
    while after < longest and text[at + after] == body[place + after]:
        after += 1
    return at - before, at + after


def _without_cut_part(text: str) -> str:
    """Without the end, which may be a part of the body that is too short to be found because it was cut in two."""
    marked = text.rfind(IN_PLACE_OF_BODY) + len(IN_PLACE_OF_BODY)
    return text[: max(marked, len(text) - 2 * _WINDOW)]
