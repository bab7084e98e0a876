"""The function's log: one JSON object a line."""

import io
import json
from datetime import timedelta

from redrive.aws.log import Log
from tests.unit.examples import NOW


def test_a_line_has_the_event_its_fields_and_what_lambda_says_of_the_invocation() -> None:
    stream = io.StringIO()

    Log(lambda: NOW, stream, function_request_id="request")("letter.held", message_id="1", delay=30)

    [line] = stream.getvalue().splitlines()
    assert json.loads(line) == {
        "level": "INFO",
        "message": "letter.held",
        "timestamp": NOW.isoformat(timespec="milliseconds"),
        "function_request_id": "request",
        "message_id": "1",
        "delay": 30,
    }


def test_a_field_that_json_does_not_know_is_told_as_text_and_a_line_break_stays_in_its_line() -> (
    None
):
    stream = io.StringIO()

    Log(lambda: NOW, stream)("call.failed", detail="one\ntwo", after=timedelta(seconds=5))

    [line] = stream.getvalue().splitlines()
    told = json.loads(line)
    assert (told["detail"], told["after"]) == ("one\ntwo", "0:00:05")
