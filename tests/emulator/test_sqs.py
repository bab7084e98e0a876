"""SQS behaves as the real service where MiniStack does not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.process import LocalAws

_TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def _string(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def _refusal(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value)


def _receive_one(sqs: Any, url: str, **options: Any) -> Any:
    (message,) = sqs.receive_message(
        QueueUrl=url, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"], **options
    )["Messages"]
    return message


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_beyond_15_minutes_or_below_zero_is_refused(
    sqs: Any, make_queue: Callable[..., str], delay: int
) -> None:
    url = make_queue()

    refusal = _refusal(sqs.send_message, QueueUrl=url, MessageBody="x", DelaySeconds=delay)

    assert "InvalidParameterValue" in refusal


def test_an_eleventh_message_attribute_is_refused(sqs: Any, make_queue: Callable[..., str]) -> None:
    url = make_queue()
    eleven = {f"a{number}": _string("x") for number in range(11)}

    refusal = _refusal(sqs.send_message, QueueUrl=url, MessageBody="x", MessageAttributes=eleven)
    batch = sqs.send_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "bad", "MessageBody": "x", "MessageAttributes": eleven},
            {"Id": "good", "MessageBody": "x"},
        ],
    )

    assert "exceeds the allowed maximum [10]" in refusal
    assert [entry["Id"] for entry in batch["Failed"]] == ["bad"]
    assert [entry["Id"] for entry in batch["Successful"]] == ["good"]


def test_the_size_limit_counts_attributes(sqs: Any, make_queue: Callable[..., str]) -> None:
    url = make_queue(MaximumMessageSize="1024")

    refusal = _refusal(
        sqs.send_message,
        QueueUrl=url,
        MessageBody="x" * 1000,
        MessageAttributes={"a": _string("x" * 100)},
    )

    assert "Message must be shorter than 1024 bytes" in refusal


def test_a_batch_may_not_exceed_one_mebibyte_in_all(
    sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    half = "x" * (1_048_576 // 2)
    entries = [
        {"Id": "a", "MessageBody": half},
        {"Id": "b", "MessageBody": half, "MessageAttributes": {"a": _string("x")}},
    ]

    assert "BatchRequestTooLong" in _refusal(sqs.send_message_batch, QueueUrl=url, Entries=entries)


def test_each_entry_of_a_batch_keeps_its_trace_header(
    sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()

    sqs.send_message_batch(
        QueueUrl=url,
        Entries=[
            {
                "Id": "a",
                "MessageBody": "x",
                "MessageSystemAttributes": {"AWSTraceHeader": _string(_TRACE)},
            }
        ],
    )

    assert _receive_one(sqs, url)["Attributes"]["AWSTraceHeader"] == _TRACE


def test_a_receive_may_wait_20_seconds_at_most(sqs: Any, make_queue: Callable[..., str]) -> None:
    url = make_queue()

    refusal = _refusal(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=21)

    assert "InvalidParameterValue" in refusal


def test_deleting_with_an_outdated_handle_succeeds_and_deletes_nothing(
    sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    sqs.send_message(QueueUrl=url, MessageBody="x")
    outdated = _receive_one(sqs, url, VisibilityTimeout=0)["ReceiptHandle"]
    current = _receive_one(sqs, url, VisibilityTimeout=0)["ReceiptHandle"]

    sqs.delete_message(QueueUrl=url, ReceiptHandle=outdated)
    batch = sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "a", "ReceiptHandle": outdated}])
    kept = _receive_one(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=kept["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=kept["ReceiptHandle"])

    assert current != outdated
    assert [entry["Id"] for entry in batch["Successful"]] == ["a"]


def test_the_visibility_of_a_message_that_is_visible_again_cannot_change(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    sqs.send_message(QueueUrl=url, MessageBody="x")
    handle = _receive_one(sqs, url, VisibilityTimeout=30)["ReceiptHandle"]
    change = {"QueueUrl": url, "ReceiptHandle": handle}

    too_long = _refusal(sqs.change_message_visibility, **change, VisibilityTimeout=43_201)
    aws.pass_time(31)
    too_late = _refusal(sqs.change_message_visibility, **change, VisibilityTimeout=60)
    batch = sqs.change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": "a", "ReceiptHandle": handle, "VisibilityTimeout": 60}]
    )

    assert "InvalidParameterValue" in too_long
    assert "MessageNotInflight" in too_late
    assert batch["Failed"][0]["Code"].endswith("MessageNotInflight")


def test_a_dead_letter_queue_knows_its_source_queues(
    sqs: Any, make_queue: Callable[..., str], arn_of: Callable[[str], str]
) -> None:
    dead_letters = make_queue()
    source = make_queue(RedrivePolicy=_policy(arn_of(dead_letters)))

    listed = sqs.list_dead_letter_source_queues(QueueUrl=dead_letters)

    assert [url.rsplit("/")[-1] for url in listed["queueUrls"]] == [source.rsplit("/")[-1]]


def test_a_move_task_runs_is_listed_and_returns_letters_as_new_messages(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str], arn_of: Callable[[str], str]
) -> None:
    dead_letters = make_queue()
    dead_letter_arn = arn_of(dead_letters)
    source = make_queue(RedrivePolicy=_policy(dead_letter_arn))
    original = sqs.send_message(QueueUrl=source, MessageBody="x")["MessageId"]
    _receive_one(sqs, source, VisibilityTimeout=0)
    assert "Messages" not in sqs.receive_message(QueueUrl=source)  # moved to the DLQ instead

    sqs.start_message_move_task(SourceArn=dead_letter_arn, MaxNumberOfMessagesPerSecond=1)
    (running,) = sqs.list_message_move_tasks(SourceArn=dead_letter_arn)["Results"]
    aws.pass_time(5)
    (completed,) = sqs.list_message_move_tasks(SourceArn=dead_letter_arn)["Results"]

    assert (running["Status"], completed["Status"]) == ("RUNNING", "COMPLETED")
    assert completed["ApproximateNumberOfMessagesMoved"] == 1
    moved = _receive_one(sqs, source)
    assert moved["MessageId"] != original
    assert moved["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_queue_that_is_no_dead_letter_queue_cannot_be_moved(
    sqs: Any, make_queue: Callable[..., str], arn_of: Callable[[str], str]
) -> None:
    url = make_queue()

    refusal = _refusal(sqs.start_message_move_task, SourceArn=arn_of(url))

    assert "must be configured as a Dead Letter Queue" in refusal


def _policy(dead_letter_arn: str) -> str:
    return json.dumps({"deadLetterTargetArn": dead_letter_arn, "maxReceiveCount": "1"})
