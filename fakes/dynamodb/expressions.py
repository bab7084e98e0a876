"""The expressions that the re-driver and its command write, and no more of DynamoDB's language.

    condition  = term { OR term }          term = test { AND test }
    test       = operand (= | <> | < | <= | > | >=) operand
               | attribute_exists(name) | attribute_not_exists(name) | contains(name, :value)
    operand    = name | :value | size(name)
    update     = SET name = new { , name = new }
    new        = :value | if_not_exists(name, :value) | list_append(new, new)
    name       = an attribute's own name, or #placeholder

Source: DynamoDB Developer Guide, "Expressions". An expression is parsed into a function of the item. Anything outside
the grammar is refused, so that a call that goes beyond it fails here first. So are placeholders that are not defined or
not used, as in DynamoDB. Reserved words pass here, but fail on moto, where tests/integration and tests/oncall make the
same calls.
"""

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from fakes.dynamodb.values import (
    COMPARATORS,
    Item,
    Value,
    compare,
    contains,
    joined,
    size,
    stored,
    validation,
)

Condition = Callable[[Item], bool]
Operand = Callable[[Item], Value | None]
NewValue = Callable[[Item], Value]

_TOKEN = re.compile(r"\s*([#:]?\w+|<>|<=|>=|[=<>(),])\s*")


class Expressions:
    """The expressions of one request, with the placeholders that they share."""

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._names = dict(names or {})
        self._values = {key: stored(value) for key, value in (values or {}).items()}
        self._unused = {*self._names, *self._values}
        self._tokens: list[str] = []

    def condition(self, expression: str | None) -> Condition:
        """A ConditionExpression or FilterExpression; without one, everything passes."""
        if expression is None:
            return lambda _: True
        self._read(expression)
        condition = self._any_of()
        self._expect_end()
        return condition

    def update(self, expression: str) -> Callable[[Item], Item]:
        """An UpdateExpression: the attributes that it sets, from the item as it was before."""
        self._read(expression)
        self._expect("SET")
        changes = [self._change()]
        while self._takes(","):
            changes.append(self._change())
        self._expect_end()
        if len({name for name, _ in changes}) != len(changes):
            raise validation("Two document paths overlap with each other")
        return lambda item: {name: new(item) for name, new in changes}

    def check_all_used(self) -> None:
        """Refuse a request with placeholders that no expression mentions."""
        if self._unused:
            unused = ", ".join(sorted(self._unused))
            raise validation(f"Value provided unused in expressions: keys: {{{unused}}}")

    # -- grammar --------------------------------------------------------------------------------

    def _any_of(self) -> Condition:
        terms = [self._all_of()]
        while self._takes("OR"):
            terms.append(self._all_of())
        return lambda item: any(term(item) for term in terms)

    def _all_of(self) -> Condition:
        tests = [self._test()]
        while self._takes("AND"):
            tests.append(self._test())
        return lambda item: all(test(item) for test in tests)

    def _test(self) -> Condition:
        if self._calls("attribute_exists"):
            there = self._name_alone()
            return lambda item: there in item
        if self._calls("attribute_not_exists"):
            absent = self._name_alone()
            return lambda item: absent not in item
        if self._calls("contains"):
            name, wanted = self._name(), self._second()
            return lambda item: contains(item.get(name), wanted)
        left, comparator, right = self._operand(), self._take(), self._operand()
        if comparator not in COMPARATORS:
            raise _syntax_error(comparator)
        return lambda item: compare(left(item), comparator, right(item))

    def _operand(self) -> Operand:
        if self._next.startswith(":"):
            value = self._value()
            return lambda _: value
        if self._calls("size"):
            measured = self._name_alone()
            return lambda item: size(item.get(measured))
        name = self._name()
        return lambda item: item.get(name)

    def _change(self) -> tuple[str, NewValue]:
        name = self._name()
        self._expect("=")
        return name, self._new_value()

    def _new_value(self) -> NewValue:
        if self._calls("list_append"):
            first = self._new_value()
            self._expect(",")
            second = self._new_value()
            self._expect(")")
            return lambda item: joined(first(item), second(item))
        if self._calls("if_not_exists"):
            name, default = self._name(), self._second()
            return lambda item: item.get(name, default)
        value = self._value()
        return lambda _: value

    # -- tokens ---------------------------------------------------------------------------------

    def _read(self, expression: str) -> None:
        tokens = _TOKEN.findall(expression)
        if "".join(tokens) != re.sub(r"\s", "", expression):
            raise _syntax_error(expression)
        self._tokens = tokens[::-1]

    @property
    def _next(self) -> str:
        """The token under the cursor; empty at the end."""
        return self._tokens[-1] if self._tokens else ""

    def _take(self) -> str:
        if not self._tokens:
            raise _syntax_error("<EOF>")
        return self._tokens.pop()

    def _takes(self, expected: str) -> bool:
        """Step over the next token if it is `expected`."""
        if self._next != expected:
            return False
        self._tokens.pop()
        return True

    def _expect(self, expected: str) -> None:
        if not self._takes(expected):
            raise _syntax_error(self._next or "<EOF>")

    def _expect_end(self) -> None:
        if self._tokens:
            raise _syntax_error(self._next)

    def _calls(self, function: str) -> bool:
        """Step over `function(` if that comes next."""
        if self._tokens[-2:] != ["(", function]:
            return False
        del self._tokens[-2:]
        return True

    def _name_alone(self) -> str:
        """The only argument of a function, and the end of the call."""
        name = self._name()
        self._expect(")")
        return name

    def _second(self) -> Value:
        """The second argument of a function, a value, and the end of the call."""
        self._expect(",")
        value = self._value()
        self._expect(")")
        return value

    def _name(self) -> str:
        token = self._take()
        if token.startswith("#"):
            self._use(token, self._names)
            return self._names[token]
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            raise _syntax_error(token)
        return token

    def _value(self) -> Value:
        token = self._take()
        self._use(token, self._values)
        return self._values[token]

    def _use(self, placeholder: str, defined: Container[str]) -> None:
        if placeholder not in defined:
            raise validation(f"An expression attribute is not defined: {placeholder}")
        self._unused.discard(placeholder)


def _syntax_error(token: str) -> Exception:
    return validation(f'Invalid expression: Syntax error; token: "{token}"')
