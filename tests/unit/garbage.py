"""Letters that nobody should have written: shapes of other origins with some of their members replaced,
and anything.
"""

import json

from hypothesis import strategies as st

from tests.unit.origin_letters import FUNCTION_ARN, QUEUE_ARN, envelope, record

DEEP = "[" * 200_000

NAMES = (
    "RequestID", "RULE_ARN", "TARGET_ARN", "SCHEDULE_ARN", "BUS_ARN", "IS_PAYLOAD_TRUNCATED",
)  # fmt: skip
CALLS = [f"arn:aws:scheduler:::aws-sdk:{call}" for call in ("sqs:sendMessage", "lambda:invoke")]
TEXTS = st.one_of(st.text(max_size=20), st.sampled_from([FUNCTION_ARN, QUEUE_ARN, *CALLS]))
GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SHAPES = st.sampled_from([envelope(), record(), {"QueueUrl": 1}, {"FunctionName": FUNCTION_ARN}])


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """A shape with some members replaced, or anything."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.text())
    if kind == 1:
        return draw(
            st.sampled_from([DEEP, '{"a":' * 100_000, "9" * 5000, "1e999", "NaN", "\ud800"])
        )
    changes = draw(st.dictionaries(st.sampled_from([*envelope(), *record()]), GARBAGE, max_size=3))
    return json.dumps(draw(SHAPES) | changes)


SOME_ATTRIBUTES = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(TEXTS.map(lambda text: {"DataType": "String", "StringValue": text}), GARBAGE),
)
