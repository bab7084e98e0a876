"""The check of every deployed function's log does find what is wrong."""

import json

import pytest

from tests.e2e.checked_aws import checked_aws

#: A letter that goes twice.
REPEATED: list[dict[str, object]] = [
    {"message": "letter.redriven", "message_id": "m1", "original_id": "m1"},
    {"message": "pass.finished", "outcome": "DONE", "queue": "orders", "redriven": 1},
] * 2


def test_a_log_that_the_protocol_does_not_allow_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"letter\.redriven of m1, which went before"):
        _log(REPEATED)


def _log(lines: list[dict[str, object]]) -> None:
    """Have a local AWS keep a log of these lines, and end."""
    with checked_aws() as aws:
        logs, stream = aws.client("logs"), {"logGroupName": "a", "logStreamName": "b"}
        logs.create_log_group(logGroupName="a")
        logs.create_log_stream(**stream)
        now = round(aws.clock.now() * 1000)
        told = [
            {"timestamp": now + number, "message": json.dumps(line)}
            for number, line in enumerate(lines)
        ]
        logs.put_log_events(**stream, logEvents=told)
