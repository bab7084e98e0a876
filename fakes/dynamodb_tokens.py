"""What DynamoDB expressions are made of: tokens, placeholders for names and values, paths."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fakes.dynamodb_values import Item, Value, stored, validation

DocumentPath = tuple[str | int, ...]

_TOKEN = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>(),.\[\]+-])")


class Placeholders:
    """ExpressionAttributeNames and -Values of one request, and which of them were used."""

    def __init__(
        self, names: Mapping[str, str] | None, values: Mapping[str, Mapping[str, Any]] | None
    ) -> None:
        self._names = dict(names or {})
        self._values = {key: stored(value) for key, value in (values or {}).items()}
        self._unused = {*self._names, *self._values}

    def name(self, token: str) -> str:
        """The attribute name that a token stands for: `#name`, or a word that is not reserved."""
        if token.startswith("#"):
            if token not in self._names:
                raise validation(f"An expression attribute name is not defined: {token}")
            self._unused.discard(token)
            return self._names[token]
        if token.upper() in reserved_words():
            raise validation(f"Attribute name is a reserved keyword; reserved keyword: {token}")
        return token

    def value(self, token: str) -> Value:
        """The value that `:value` stands for."""
        if token not in self._values:
            raise validation(f"An expression attribute value is not defined: {token}")
        self._unused.discard(token)
        return self._values[token]

    def check_all_used(self) -> None:
        """Refuse a request with placeholders that no expression mentions."""
        if self._unused:
            unused = ", ".join(sorted(self._unused))
            raise validation(f"Value provided unused in expressions: keys: {{{unused}}}")


class Tokens:
    """A cursor over the tokens of one expression."""

    def __init__(self, expression: str, placeholders: Placeholders) -> None:
        self.expression = expression
        self.placeholders = placeholders
        self._tokens = _tokens(expression)
        self._position = 0

    @property
    def next(self) -> str:
        """The token under the cursor; empty at the end."""
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def take(self) -> str:
        """Step over the next token."""
        token = self.next
        if not token:
            raise self.error()
        self._position += 1
        return token

    def takes(self, expected: str) -> bool:
        """Step over the next token if it is `expected`, in whatever case."""
        if self.next.upper() != expected:
            return False
        self._position += 1
        return True

    def expect(self, expected: str) -> None:
        """Step over a token that has to be there."""
        if not self.takes(expected):
            raise self.error()

    def calls(self, function: str) -> bool:
        """Step over `function(` if that is what comes next."""
        following = self._tokens[self._position + 1 : self._position + 2]
        if self.next != function or following != ["("]:
            return False
        self._position += 2
        return True

    def error(self) -> Exception:
        """The fault for a token that does not fit."""
        near = f'token: "{self.next or "<EOF>"}", in: "{self.expression}"'
        return validation(f"Invalid expression: Syntax error; {near}")

    def path(self) -> DocumentPath:
        """`name`, `name.name` or `name[0]`, with or without placeholders."""
        parts: list[str | int] = [self._name()]
        while True:
            if self.takes("."):
                parts.append(self._name())
            elif self.takes("["):
                parts.append(int(self.take()))
                self.expect("]")
            else:
                return tuple(parts)

    def _name(self) -> str:
        token = self.take()
        if not re.fullmatch(r"#\w+|[A-Za-z_]\w*", token):
            self._position -= 1
            raise self.error()
        return self.placeholders.name(token)


def find(item: Item, path: DocumentPath) -> Value | None:
    """The value at a path, or None."""
    here: Any = {"M": item}
    for part in path:
        inside = here.get("M" if isinstance(part, str) else "L")
        if inside is None:
            return None
        if isinstance(part, str):
            here = inside.get(part)
        else:
            here = inside[part] if part < len(inside) else None
        if here is None:
            return None
    found: Value = here
    return found


@lru_cache
def reserved_words() -> frozenset[str]:
    """The words that must be written as `#name`. Source: "Reserved words in DynamoDB"."""
    file = Path(__file__).with_name("dynamodb_reserved_words.txt")
    return frozenset(file.read_text().split())


def _tokens(expression: str) -> list[str]:
    tokens, position = [], 0
    text = expression.rstrip()
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if not matched:
            raise validation(f'Invalid expression: Syntax error; in: "{expression}"')
        tokens.append(matched[1])
        position = matched.end()
    return tokens
