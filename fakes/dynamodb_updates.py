"""Update expressions: SET, REMOVE, ADD and DELETE, all reading the item as it was before.

Source: DynamoDB Developer Guide, "Update expressions".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakes.dynamodb_expressions import Parser
from fakes.dynamodb_tokens import DocumentPath, Placeholders, find
from fakes.dynamodb_values import Item, Value, copied, stored, sum_of, validation

NewValue = Callable[[Item], Value | None]  # None removes

_CLAUSES = ("SET", "REMOVE", "ADD", "DELETE")
_INVALID_PATH = "The document path provided in the update expression is invalid for update"


@dataclass(frozen=True, slots=True)
class Change:
    """One path of an item and what it becomes."""

    path: DocumentPath
    new_value: NewValue


def parse_update(expression: str, placeholders: Placeholders) -> list[Change]:
    """The changes an expression asks for; paths that overlap are refused."""
    parser = Parser(expression, placeholders)
    changes: list[Change] = []
    seen: set[str] = set()
    while parser.next:
        clause = parser.take().upper()
        if clause not in _CLAUSES or clause in seen:
            raise validation(f'Invalid UpdateExpression: Syntax error; in: "{expression}"')
        seen.add(clause)
        changes.append(_change(parser, clause))
        while parser.takes(","):
            changes.append(_change(parser, clause))
    for position, change in enumerate(changes):
        for other in changes[:position]:
            if all(one == two for one, two in zip(change.path, other.path, strict=False)):
                raise validation("Two document paths overlap with each other")
    return changes


def apply_update(item: Item, changes: list[Change]) -> Item:
    """The item after the changes; the one given is left as it is."""
    updated = copied(item)
    decided = [(change.path, change.new_value(item)) for change in changes]
    decided.sort(key=lambda one: [(isinstance(part, int), part) for part in one[0]])
    for path, value in decided:
        if value is not None:
            _put(updated, path, value)
    # Last, and from the back: removing a list element shifts those behind it.
    for path, value in reversed(decided):
        if value is None:
            _remove(updated, path)
    return updated


def _change(parser: Parser, clause: str) -> Change:
    path = parser.path()
    if clause == "REMOVE":
        return Change(path, lambda _: None)
    if clause == "SET":
        parser.expect("=")
        return Change(path, _right_side(parser))
    addend = parser.placeholders.value(parser.take())
    combine = _added if clause == "ADD" else _subtracted
    return Change(path, lambda item: combine(find(item, path), addend))


def _right_side(parser: Parser) -> NewValue:
    left = _set_operand(parser)
    while parser.next in {"+", "-"}:
        left = _sum(left, 1 if parser.take() == "+" else -1, _set_operand(parser))
    return left


def _sum(left: NewValue, sign: int, right: NewValue) -> NewValue:
    return lambda item: sum_of(_present(left(item)), _present(right(item)), sign)


def _set_operand(parser: Parser) -> NewValue:
    if parser.calls("if_not_exists"):
        path = parser.path()
        parser.expect(",")
        default = _set_operand(parser)
        parser.expect(")")
        return lambda item: find(item, path) or default(item)
    if parser.calls("list_append"):
        first = _set_operand(parser)
        parser.expect(",")
        second = _set_operand(parser)
        parser.expect(")")
        return lambda item: {"L": [*_list(first(item)), *_list(second(item))]}
    operand = parser.operand()
    return lambda item: _present(operand(item))


def _present(value: Value | None) -> Value:
    if value is None:
        message = "The provided expression refers to an attribute that does not exist in the item"
        raise validation(message)
    return value


def _list(value: Value | None) -> list[Any]:
    if value is None or "L" not in value:
        raise validation("An operand in the update expression has an incorrect data type")
    members: list[Any] = value["L"]
    return members


def _added(value: Value | None, addend: Value) -> Value:
    ((kind, members),) = addend.items()
    if kind == "N":
        return sum_of(value or {"N": "0"}, addend, 1)
    _check_sets(value, kind)
    old = value[kind] if value else []
    return {kind: [*old, *(member for member in members if member not in old)]}


def _subtracted(value: Value | None, taken: Value) -> Value | None:
    ((kind, members),) = taken.items()
    _check_sets(value, kind)
    left = [member for member in (value[kind] if value else []) if member not in members]
    return {kind: left} if left else None


def _check_sets(value: Value | None, kind: str) -> None:
    if kind not in {"SS", "NS", "BS"} or (value is not None and kind not in value):
        raise validation("An operand in the update expression has an incorrect data type")


def _put(item: Item, path: DocumentPath, value: Value) -> None:
    owner, last = _owner(item, path)
    if isinstance(last, str):
        owner[last] = stored(value)
    else:
        owner[last : last + 1] = [stored(value)]  # past the end, it is appended


def _remove(item: Item, path: DocumentPath) -> None:
    owner, last = _owner(item, path)
    if isinstance(last, str):
        owner.pop(last, None)
    elif last < len(owner):
        del owner[last]


def _owner(item: Item, path: DocumentPath) -> tuple[Any, str | int]:
    *parents, last = path
    owner: Value | None = find(item, tuple(parents)) if parents else {"M": item}
    kind = "M" if isinstance(last, str) else "L"
    if owner is None or kind not in owner:
        raise validation(_INVALID_PATH)
    return owner[kind], last
