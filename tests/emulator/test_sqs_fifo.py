"""FIFO queues on the emulator: what an end-to-end test may lean on, and what it may not, which has to fail here.

The overlay adds nothing to MiniStack's FIFO queues. What AWS does, and whence that is known, stands in tests/contract.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.process import LocalAws

Make = Callable[..., str]


def _differs(how: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"MiniStack {how}")


@pytest.fixture
def make_fifo(make_queue: Make) -> Make:
    """Make a FIFO queue with these attributes; its URL. Removed after the test."""
    return partial(make_queue, FifoQueue="true")


@pytest.fixture
def pair(make_fifo: Make, arn_of: Callable[[str], str]) -> tuple[str, str]:
    """A FIFO queue and its DLQ, to which messages go after one receive; their URLs."""
    dlq = make_fifo()
    return make_fifo(RedrivePolicy=_policy(arn_of(dlq))), dlq


def _policy(dead_letter_arn: str) -> str:
    return json.dumps({"deadLetterTargetArn": dead_letter_arn, "maxReceiveCount": "1"})


def _put(sqs: Any, url: str, *bodies: str, group: str = "a", **fields: Any) -> list[Any]:
    return [
        sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            **({"MessageGroupId": group, "MessageDeduplicationId": body} | fields),
        )
        for body in bodies
    ]


def _receive(sqs: Any, url: str, count: int = 10, **options: Any) -> list[Any]:
    messages: list[Any] = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=count,
        MessageSystemAttributeNames=["All"],
        **options,
    ).get("Messages", [])
    return messages


def _bodies(messages: list[Any]) -> list[str]:
    return [message["Body"] for message in messages]


def _delete(sqs: Any, url: str, message: Any) -> None:
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def _refused(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value)


def test_a_group_comes_in_order_and_waits_for_what_is_in_flight(sqs: Any, make_fifo: Make) -> None:
    url = make_fifo()
    _put(sqs, url, "a1", "a2", "a3")
    _put(sqs, url, "b1", group="b")

    assert _bodies(_receive(sqs, url, 2)) == ["a1", "a2"]
    assert _bodies(_receive(sqs, url)) == ["b1"]


def test_order_outlives_the_visibility_timeout(aws: LocalAws, sqs: Any, make_fifo: Make) -> None:
    url = make_fifo(VisibilityTimeout="30")
    _put(sqs, url, *"1234")
    _receive(sqs, url, 3)

    aws.pass_time(31)

    assert _bodies(_receive(sqs, url)) == list("1234")


@_differs("gives messages in the order of sending, whatever their group")
def test_a_receive_takes_as_many_as_it_can_of_one_group(sqs: Any, make_fifo: Make) -> None:
    url = make_fifo()
    for number in "123":
        _put(sqs, url, f"a{number}")
        _put(sqs, url, f"b{number}", group="b")

    assert _bodies(_receive(sqs, url, 4)) == ["a1", "a2", "a3", "b1"]


@_differs("locks the whole group while one of its messages is in flight")
def test_a_message_waits_only_for_those_before_it(aws: LocalAws, sqs: Any, make_fifo: Make) -> None:
    url = make_fifo(VisibilityTimeout="30")
    _put(sqs, url, *"123")
    _, second = _receive(sqs, url, 2)
    sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=300
    )

    aws.pass_time(31)

    assert _bodies(_receive(sqs, url)) == ["1"]


def test_a_second_copy_is_answered_like_the_first_and_adds_nothing(
    aws: LocalAws, sqs: Any, make_fifo: Make
) -> None:
    url = make_fifo()
    first, second = _put(sqs, url, "same", "same")
    (message,) = _receive(sqs, url)
    _delete(sqs, url, message)
    _put(sqs, url, "same")

    assert second["MessageId"] == first["MessageId"]
    assert second["SequenceNumber"] == first["SequenceNumber"]
    assert _receive(sqs, url) == [], "the window outlives the message"
    aws.pass_time(301)
    _put(sqs, url, "same")
    assert _bodies(_receive(sqs, url)) == ["same"]


def test_the_id_can_be_made_of_the_body(sqs: Any, make_fifo: Make) -> None:
    url = make_fifo(ContentBasedDeduplication="true")
    for body in ("same", "same", "other"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="a")
    assert _bodies(_receive(sqs, url)) == ["same", "other"]


def test_the_window_can_be_each_group_s_own(sqs: Any, make_fifo: Make) -> None:
    url = make_fifo(DeduplicationScope="messageGroup")
    _put(sqs, url, "same", group="a")
    _put(sqs, url, "same", group="b")
    assert len(_receive(sqs, url)) == 2


def test_a_message_without_group_or_id_or_with_a_delay_is_refused(
    sqs: Any, make_fifo: Make
) -> None:
    url, send = make_fifo(), sqs.send_message
    group, number = {"MessageGroupId": "a"}, {"MessageDeduplicationId": "1"}
    assert "MissingParameter" in _refused(send, QueueUrl=url, MessageBody="x", **number)
    assert "InvalidParameterValue" in _refused(send, QueueUrl=url, MessageBody="x", **group)
    assert "InvalidParameterValue" in _refused(
        send, QueueUrl=url, MessageBody="x", **group, **number, DelaySeconds=2
    )


@_differs("fails the entry alone")
@pytest.mark.parametrize("missing", ["MessageGroupId", "MessageDeduplicationId"])
def test_one_entry_without_group_or_id_fails_the_whole_batch(
    sqs: Any, make_fifo: Make, missing: str
) -> None:
    url = make_fifo()
    entries = [
        {"Id": one, "MessageBody": one, "MessageGroupId": "a", "MessageDeduplicationId": one}
        for one in "12"
    ]
    del entries[1][missing]

    refusal = _refused(sqs.send_message_batch, QueueUrl=url, Entries=entries)

    assert "InvalidParameterValue" in refusal


@_differs("deletes")
def test_a_handle_ends_with_its_visibility_timeout(
    aws: LocalAws, sqs: Any, make_fifo: Make
) -> None:
    url = make_fifo(VisibilityTimeout="30")
    _put(sqs, url, "1")
    (message,) = _receive(sqs, url)
    aws.pass_time(31)

    refusal = _refused(sqs.delete_message, QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    assert "The receipt handle has expired" in refusal


def _die(sqs: Any, source: str) -> None:
    _receive(sqs, source, VisibilityTimeout=0)
    assert _receive(sqs, source) == []


def test_letters_keep_id_and_group_and_stand_in_order(
    sqs: Any, pair: tuple[str, str], arn_of: Callable[[str], str]
) -> None:
    source, dlq = pair
    sent = [answer["MessageId"] for answer in _put(sqs, source, *"123")]
    _die(sqs, source)

    letters = _receive(sqs, dlq)

    assert [letter["MessageId"] for letter in letters] == sent
    told = letters[0]["Attributes"]
    assert (told["MessageGroupId"], told["ApproximateReceiveCount"]) == ("a", "2")
    assert told["DeadLetterQueueSourceArn"] == arn_of(source)


@_differs("keeps the producer's id")
def test_a_letter_s_deduplication_id_is_its_message_id(sqs: Any, pair: tuple[str, str]) -> None:
    source, dlq = pair
    _put(sqs, source, "1")
    _die(sqs, source)

    (letter,) = _receive(sqs, dlq)

    assert letter["Attributes"]["MessageDeduplicationId"] == letter["MessageId"]


def test_a_letter_expires_by_the_time_of_its_move(
    aws: LocalAws, sqs: Any, pair: tuple[str, str]
) -> None:
    source, dlq = pair
    sqs.set_queue_attributes(QueueUrl=dlq, Attributes={"MessageRetentionPeriod": "3600"})
    _put(sqs, source, "1")
    aws.pass_time(3000)
    _die(sqs, source)

    aws.pass_time(3500)
    assert len(_receive(sqs, dlq, VisibilityTimeout=0)) == 1
    aws.pass_time(200)
    assert _receive(sqs, dlq) == []


@_differs("takes any queue for a DLQ")
def test_a_mixed_pair_is_refused(
    sqs: Any, make_fifo: Make, make_queue: Make, arn_of: Callable[[str], str]
) -> None:
    source, dlq = make_fifo(), make_queue()

    refusal = _refused(
        sqs.set_queue_attributes,
        QueueUrl=source,
        Attributes={"RedrivePolicy": _policy(arn_of(dlq))},
    )

    assert "InvalidParameterValue" in refusal
