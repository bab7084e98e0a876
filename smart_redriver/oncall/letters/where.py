"""`--where`: a JMESPath expression over a body, kept from meaning what nobody means by it.

In JMESPath 'DE' is text and "DE" is the name of a field. Whoever writes `country == "DE"` compares two fields, and
letters that have neither match: null is null.
https://jmespath.org/specification.html#identifiers
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from smart_redriver.oncall.terminal.exits import Misused

_FIELDS = ("field", "subexpression", "index_expression")
#: Their second argument is text to look for.
_TEXT_SEARCHES = ("contains", "starts_with", "ends_with")

#: A body that is no JSON or nested deeper than Python reads, or an expression that does not fit what it found: JMESPath
#: says so, or compares a text with a number, or rounds 1e999.
_UNFIT = (ValueError, RecursionError, TypeError, ArithmeticError)

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A compiled expression, and what a person has to know of it before they say yes."""

    search: Callable[[Any], Any]
    warning: str = ""

    def lets_through(self, body: str) -> bool:
        """Whether it is true of a body; no JSON is no match."""
        try:
            return bool(self.search(json.loads(body)))
        except _UNFIT:
            return False


def read_where(expression: str) -> Where:
    """Compile an expression. Raises Misused for one that is none, or that has a text where a field's name belongs."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        compiled = jmespath.compile(expression)
        quoted = _quoted_names(expression)
    except (JMESPathError, RecursionError) as fault:
        reason = str(fault).splitlines()[0]
        raise Misused(
            f"--where {expression!r} is no JMESPath expression: {reason}. Try for example "
            "--where \"customer.country == 'DE'\"."
        ) from fault
    for name in _texts_meant(compiled.parsed, quoted):
        raise Misused(
            f'--where {expression!r}: in JMESPath "{name}" is the name of a field, so that two fields would be '
            f"compared, and letters that have neither would match. For text write '{name}', for a number `{name}`; "
            f'if you mean the field, write @."{name}".'
        )
    compared = list(_fields_compared(compiled.parsed))
    warning = (
        "two fields of the body are compared; letters that have neither match" if compared else ""
    )
    return Where(search=compiled.search, warning=warning)


def _quoted_names(expression: str) -> Set[str]:
    from jmespath.lexer import Lexer

    return {
        token["value"]
        for token in Lexer().tokenize(expression)
        if token["type"] == "quoted_identifier"
    }


def _texts_meant(node: Node, quoted: Set[str]) -> Iterator[str]:
    """Names in quotes that stand where people write text: against another field, or as what is looked for."""
    for one in _nodes(node):
        children = one["children"]
        if one["type"] == "comparator":
            literal = any(child["type"] == "literal" for child in children)
            suspects = [] if literal else children
        elif one["type"] == "function_expression" and one["value"] in _TEXT_SEARCHES:
            suspects = children[1:]
        else:
            continue
        for child in suspects:
            if child["type"] == "field" and child["value"] in quoted:
                yield child["value"]


def _fields_compared(node: Node) -> Iterator[Node]:
    for one in _nodes(node):
        if one["type"] == "comparator" and all(
            child["type"] in _FIELDS for child in one["children"]
        ):
            yield one


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, Mapping):
        yield node
        for child in node.get("children", ()):
            yield from _nodes(child)
