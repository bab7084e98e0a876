"""Condition expressions: the parts of DynamoDB's expression language that the project uses.

    condition  = and { OR and }            and  = not { AND not }
    not        = NOT not | ( condition ) | comparison
    comparison = operand (= | <> | < | <= | > | >=) operand
               | operand BETWEEN operand AND operand | operand IN (operand, ...)
               | attribute_exists(path) | attribute_not_exists(path)
               | begins_with(operand, operand) | contains(operand, operand)
    operand    = path | :value | size(path)

Source: DynamoDB Developer Guide, "Condition and filter expressions, operators, and functions".
An expression is parsed into a function of the item. What is not in the grammar is refused.
"""

from collections.abc import Callable

from fakes.dynamodb_tokens import Placeholders, Tokens, find
from fakes.dynamodb_values import Item, Value, equal, order, value_bytes

Condition = Callable[[Item], bool]
Operand = Callable[[Item], Value | None]

_COMPARATORS: dict[str, Callable[[int], bool]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


class Parser(Tokens):
    """Reads operands and conditions."""

    def operand(self) -> Operand:
        """`path`, `:value` or `size(path)`."""
        if self.next.startswith(":"):
            value = self.placeholders.value(self.take())
            return lambda _: value
        if self.calls("size"):
            measured = self.path()
            self.expect(")")
            return lambda item: _size(find(item, measured))
        path = self.path()
        return lambda item: find(item, path)

    def condition(self) -> Condition:
        """Alternatives joined by OR."""
        left = self._all_of()
        while self.takes("OR"):
            left = _either(left, self._all_of())
        return left

    def _all_of(self) -> Condition:
        left = self._not()
        while self.takes("AND"):
            left = _both(left, self._not())
        return left

    def _not(self) -> Condition:
        if self.takes("NOT"):
            denied = self._not()
            return lambda item: not denied(item)
        if self.takes("("):
            inner = self.condition()
            self.expect(")")
            return inner
        return self._function() or self._comparison()

    def _function(self) -> Condition | None:
        for name, expected in (("attribute_exists", True), ("attribute_not_exists", False)):
            if self.calls(name):
                path = self.path()
                self.expect(")")
                return lambda item: (find(item, path) is not None) is expected
        for name, test in (("begins_with", _begins_with), ("contains", _contains)):
            if self.calls(name):
                left = self.operand()
                self.expect(",")
                right = self.operand()
                self.expect(")")
                return lambda item: test(left(item), right(item))
        return None

    def _comparison(self) -> Condition:
        left = self.operand()
        if self.takes("BETWEEN"):
            low = self.operand()
            self.expect("AND")
            high = self.operand()
            return _both(_compared(left, ">=", low), _compared(left, "<=", high))
        if self.takes("IN"):
            self.expect("(")
            anything = _compared(left, "=", self.operand())
            while self.takes(","):
                anything = _either(anything, _compared(left, "=", self.operand()))
            self.expect(")")
            return anything
        if self.next not in {"=", "<>", *_COMPARATORS}:
            raise self.error()
        return _compared(left, self.take(), self.operand())


def parse_condition(expression: str | None, placeholders: Placeholders) -> Condition:
    """A whole expression as a function of the item; no expression lets everything pass."""
    if expression is None:
        return lambda _: True
    parser = Parser(expression, placeholders)
    condition = parser.condition()
    if parser.next:
        raise parser.error()
    return condition


def _compared(left: Operand, comparator: str, right: Operand) -> Condition:
    def holds(item: Item) -> bool:
        first, second = left(item), right(item)
        if first is None or second is None:
            # What is not there equals nothing, and differs from everything.
            return comparator == "<>" and first is not second
        if comparator in {"=", "<>"}:
            return equal(first, second) is (comparator == "=")
        sign = order(first, second)
        return sign is not None and _COMPARATORS[comparator](sign)

    return holds


def _both(left: Condition, right: Condition) -> Condition:
    return lambda item: left(item) and right(item)


def _either(left: Condition, right: Condition) -> Condition:
    return lambda item: left(item) or right(item)


def _begins_with(value: Value | None, prefix: Value | None) -> bool:
    kinds = [kind for kind in ("S", "B") if value and prefix and kind in value and kind in prefix]
    return any(value[kind].startswith(prefix[kind]) for kind in kinds)  # type: ignore[index]


def _contains(value: Value | None, part: Value | None) -> bool:
    if value is None or part is None:
        return False
    ((kind, content),) = value.items()
    if kind == "L":
        return any(equal(member, part) for member in content)
    ((part_kind, wanted),) = part.items()
    return part_kind == kind[0] and wanted in content


def _size(value: Value | None) -> Value | None:
    if value is None:
        return None
    ((kind, content),) = value.items()
    return {"N": str(value_bytes(value) if kind in ("S", "B") else len(content))}
