"""The part of CloudWatch metric math that alarms on a re-driver use.

Numbers, metric ids, + - * / comparisons, `AND`, `OR` (also as && and ||), and FILL, IF, MIN, MAX, SUM, ABS, DIFF.
Anything else gives no data point, and so does a missing operand.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Value = float | None

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SPELLINGS = ((r"&&|\bAND\b", " and "), (r"\|\||\bOR\b", " or "))


class NoDataError(Exception):
    """An operand has no data point in this period."""


def evaluate(
    expression: str, values: Mapping[str, Value], before: Mapping[str, Value] | None = None
) -> Value:
    """The value of `expression` in one period, given each metric's value in that period.

    `before` has the values of the period before it, which DIFF needs.
    """
    try:
        return float(_Period(values, before).visit(_parsed(expression)))
    except (NoDataError, ZeroDivisionError):
        return None


@lru_cache(1_000)
def _parsed(expression: str) -> ast.expr:
    """The expression as a tree. It is the same every minute."""
    for pattern, spelling in _SPELLINGS:
        expression = re.sub(pattern, spelling, expression)
    return ast.parse(expression.strip(), mode="eval").body


class _Period(ast.NodeVisitor):
    """Evaluates one expression for one period."""

    def __init__(
        self, values: Mapping[str, Value], before: Mapping[str, Value] | None = None
    ) -> None:
        self._values = values
        self._before = before

    def generic_visit(self, node: ast.AST) -> Any:
        raise ValueError(f"not in the supported part of metric math: {ast.unparse(node)}")

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> float:
        if node.id not in self._values:
            raise ValueError(f"no metric has the id {node.id}")
        value = self._values[node.id]
        if value is None:
            raise NoDataError
        return value

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.USub):
            return -self.visit(node.operand)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if type(node.op) not in _OPERATORS:
            return self.generic_visit(node)
        return _OPERATORS[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
            return self.generic_visit(node)
        compare = _OPERATORS[type(node.ops[0])]
        return compare(self.visit(node.left), self.visit(node.comparators[0]))

    def visit_BoolOp(self, node: ast.BoolOp) -> bool:
        truths = [bool(self.visit(value)) for value in node.values]
        return all(truths) if isinstance(node.op, ast.And) else any(truths)

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "FILL":
            return self._fill(*node.args)
        if name == "DIFF":
            return self._diff(*node.args)
        if name == "IF":
            condition, then, otherwise = node.args
            return self.visit(then if self.visit(condition) else otherwise)
        functions: dict[str, Callable[..., Any]] = {"MIN": min, "MAX": max, "ABS": abs}
        arguments = [self.visit(argument) for argument in node.args]
        if name == "SUM":
            first = arguments[0]
            return sum(first if isinstance(first, list) else arguments)
        if name in functions:
            return functions[name](*arguments)
        return self.generic_visit(node)

    def visit_List(self, node: ast.List) -> list[Any]:
        return [self.visit(element) for element in node.elts]

    def _diff(self, metric: ast.AST) -> Any:
        if self._before is None:
            raise NoDataError
        return self.visit(metric) - _Period(self._before).visit(metric)

    def _fill(self, metric: ast.AST, default: ast.AST) -> Any:
        try:
            return self.visit(metric)
        except NoDataError:
            return self.visit(default)
