"""The subset of metric math that alarms are evaluated with."""

import pytest

from emulator.metric_math import Value, evaluate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a + b * 2", 7),
        ("100 * a / (a + b)", 25),
        ("FILL(none, 0) + a", 1),
        ("IF(a > b, a, b)", 3),
        ("IF(a > 0 AND b > 2, 1, 0)", 1),
        ("a > 1 || b > 1", 1),
        ("MAX([a, b])", 3),
        ("SUM([a, b])", 4),
        ("-a", -1),
        ("a + none", None),
        ("a / 0", None),
    ],
)
def test_an_expression_has_the_value_that_cloudwatch_gives_it(
    expression: str, value: Value
) -> None:
    assert evaluate(expression, {"a": 1.0, "b": 3.0, "none": None}) == value


@pytest.mark.parametrize("expression", ["METRICS()", "a.b", "unknown + 1", "a ** 2"])
def test_what_lies_outside_the_subset_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError, match="metric"):
        evaluate(expression, {"a": 1.0})
