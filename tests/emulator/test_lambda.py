"""Functions: their environments, their events, and time while they run."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws

_COUNTS_ITS_RUNS = """
    runs = 0

    def handler(event, context):
        global runs
        runs += 1
        if event.get("raise"):
            raise ValueError("as asked")
        return runs
"""


def _invoke(functions: Any, function: str, event: dict[str, Any]) -> Any:
    answer = functions.invoke(FunctionName=function, Payload=json.dumps(event).encode())
    return json.loads(answer["Payload"].read())


def _invocations(aws: LocalAws, metric: str, function: str) -> float:
    now = aws.clock.now()
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=metric,
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=datetime.fromtimestamp(now - 3600, UTC),
        EndTime=datetime.fromtimestamp(now + 1, UTC),
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    return float(sum(point["Sum"] for point in points))


def test_an_environment_survives_an_exception(
    functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(_COUNTS_ITS_RUNS)

    failure = _invoke(functions, function, {"raise": True})

    assert failure["errorMessage"] == "as asked"
    assert _invoke(functions, function, {}) == 2


def test_functions_of_the_same_source_run_as_their_own_copies_of_it(
    functions: Any, make_function: Callable[..., str]
) -> None:
    """The second one runs code that the first one's environment compiled, which still has to name its own file."""
    source = """
        def handler(event, context):
            return [__file__, handler.__code__.co_filename]
        """

    first, second = (_invoke(functions, make_function(source), {}) for _ in range(2))

    assert first[0] == first[1]
    assert second[0] == second[1]
    assert first[0] != second[0]


def test_a_function_knows_its_log_group(functions: Any, make_function: Callable[..., str]) -> None:
    function = make_function(
        """
        import os

        def handler(event, context):
            return [os.environ["AWS_LAMBDA_LOG_GROUP_NAME"], context.log_group_name]
        """
    )

    assert _invoke(functions, function, {}) == [f"/aws/lambda/{function}"] * 2


def test_a_variable_that_names_a_file_at_the_task_root_leads_to_it(
    functions: Any, make_function: Callable[..., str]
) -> None:
    source = """
        import os, pathlib

        def handler(event, context):
            return pathlib.Path(os.environ["WHERE"]).is_file()
        """
    function = make_function(source, Environment={"Variables": {"WHERE": "/var/task/index.py"}})

    assert _invoke(functions, function, {}) is True


def test_a_log_is_searched_for_any_of_some_terms(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function("""
        def handler(event, context):
            for word in ("one two", "two three", "four"):
                print(word)
    """)
    _invoke(functions, function, {})

    found = aws.client("logs").filter_log_events(
        logGroupName=f"/aws/lambda/{function}", filterPattern='?"one" ?"three"'
    )

    assert [one["message"].strip() for one in found["events"]] == ["one two", "two three"]


def test_an_asynchronous_failure_is_retried_after_one_and_two_virtual_minutes(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(_COUNTS_ITS_RUNS)
    functions.invoke(FunctionName=function, InvocationType="Event", Payload=b'{"raise": true}')

    aws.settle()
    at_once = _invocations(aws, "Invocations", function)
    aws.pass_time(90)
    after_a_minute = _invocations(aws, "Invocations", function)
    aws.pass_time(600)

    assert (at_once, after_a_minute) == (1, 2)
    assert _invocations(aws, "Invocations", function) == 3
    assert _invocations(aws, "Errors", function) == 3


def _message_of(aws: LocalAws, url: str) -> dict[str, Any]:
    answer = aws.client("sqs").receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    )
    (message,) = answer["Messages"]
    return dict(message)


def _arn_of(aws: LocalAws, url: str) -> str:
    told = aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(told["Attributes"]["QueueArn"])


def test_a_dead_letter_queue_gets_the_event_and_the_id_that_invoke_answered_with(
    aws: LocalAws, functions: Any, make_function: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    function, url = make_function(_COUNTS_ITS_RUNS), make_queue()
    functions.update_function_configuration(
        FunctionName=function, DeadLetterConfig={"TargetArn": _arn_of(aws, url)}
    )

    taken = functions.invoke(
        FunctionName=function, InvocationType="Event", Payload=b'{"raise": true}'
    )
    aws.pass_time(600)

    message = _message_of(aws, url)
    told = {name: one["StringValue"] for name, one in message["MessageAttributes"].items()}
    assert json.loads(message["Body"]) == {"raise": True}
    assert told == {
        "RequestID": taken["ResponseMetadata"]["RequestId"],
        "ErrorCode": "200",
        "ErrorMessage": "as asked",
    }
    assert message["MessageAttributes"]["ErrorCode"]["DataType"] == "Number"
    assert "DeadLetterQueueSourceArn" not in message["Attributes"]


def test_a_destination_gets_a_record_of_the_invocation(
    aws: LocalAws, functions: Any, make_function: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    function, url = make_function(_COUNTS_ITS_RUNS), make_queue()
    functions.put_function_event_invoke_config(
        FunctionName=function,
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": _arn_of(aws, url)}},
    )

    taken = functions.invoke(
        FunctionName=function, InvocationType="Event", Payload=b'{"raise": true}'
    )
    aws.pass_time(600)

    record = json.loads(_message_of(aws, url)["Body"])
    assert record["requestPayload"] == {"raise": True}
    assert record["requestContext"] == {
        "requestId": taken["ResponseMetadata"]["RequestId"],
        "functionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}:$LATEST",
        "condition": "RetriesExhausted",
        "approximateInvokeCount": 2,
    }


@pytest.mark.parametrize("qualifier", [{}, {"Qualifier": "$LATEST"}], ids=["none", "latest"])
def test_a_function_without_a_qualifier_is_its_latest_version(
    functions: Any, make_function: Callable[..., str], qualifier: dict[str, str]
) -> None:
    """As in the template of CloudFormation, which must name a version, and in the calls of people, who don't."""
    function = make_function(_COUNTS_ITS_RUNS)
    other = {} if qualifier else {"Qualifier": "$LATEST"}

    functions.put_function_event_invoke_config(
        FunctionName=function, MaximumRetryAttempts=1, **qualifier
    )
    found = functions.get_function_event_invoke_config(FunctionName=function, **other)
    functions.delete_function_event_invoke_config(FunctionName=function, **other)

    assert found["MaximumRetryAttempts"] == 1
    assert found["FunctionArn"].endswith(f":function:{function}:$LATEST")
    with pytest.raises(functions.exceptions.ResourceNotFoundException):
        functions.get_function_event_invoke_config(FunctionName=function, **qualifier)


def test_events_are_counted_as_they_come_and_as_they_are_given_up(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(_COUNTS_ITS_RUNS)

    for payload in (b'{"raise": true}', b"{}"):
        functions.invoke(FunctionName=function, InvocationType="Event", Payload=payload)
    aws.pass_time(600)

    counted = [
        _invocations(aws, metric, function)
        for metric in ("AsyncEventsReceived", "AsyncEventsDropped", "Invocations", "Errors")
    ]
    assert counted == [2, 1, 4, 3]


def test_time_does_not_jump_while_a_function_runs(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(
        """
        import time

        def handler(event, context):
            before, really_before = time.time(), time.monotonic()
            left = context.get_remaining_time_in_millis()
            time.sleep(0.3)
            jumped = (time.time() - before) - (time.monotonic() - really_before)
            lost = (left - context.get_remaining_time_in_millis()) / 1000
            return [jumped, lost - (time.monotonic() - really_before)]
        """
    )
    answers: list[Any] = []
    running = threading.Thread(target=lambda: answers.append(_invoke(functions, function, {})))
    running.start()

    while not answers:
        aws.pass_time(30)
    running.join()

    ((jumped, lost),) = answers
    assert (jumped, lost) == pytest.approx((0, 0), abs=1)  # seconds, beyond those that passed


def test_a_mapping_feeds_every_waiting_message_within_one_step(
    aws: LocalAws,
    sqs: Any,
    functions: Any,
    make_queue: Callable[..., str],
    make_function: Callable[..., str],
    arn_of: Callable[[str], str],
) -> None:
    url = make_queue()
    function = make_function("def handler(event, context): pass")
    functions.create_event_source_mapping(
        FunctionName=function, EventSourceArn=arn_of(url), BatchSize=1
    )
    for _ in range(20):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=20)

    aws.pass_time(30)

    assert _invocations(aws, "Invocations", function) == 20
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "0"
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "0"
