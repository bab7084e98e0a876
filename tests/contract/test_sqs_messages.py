"""Sending, receiving and deleting: what arrives, when, and as what."""

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of

ATTRIBUTES = {
    "tenant": {"DataType": "String", "StringValue": "blue"},
    "payload": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "amount": {"DataType": "Number.cents", "StringValue": "1250"},
    "picture": {"DataType": "Binary.gif", "BinaryValue": b"\x00GIF\xff"},
}


def test_a_message_arrives_with_its_body_and_exact_attributes(aws: Aws) -> None:
    url = aws.queue("orders")
    sent = aws.sqs.send_message(QueueUrl=url, MessageBody="grüße 🦊", MessageAttributes=ATTRIBUTES)

    (message,) = aws.receive(url)

    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "grüße 🦊"
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


def test_both_compute_the_same_digest_of_attributes(aws: Aws) -> None:
    url = aws.queue("orders")
    sent = aws.sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageAttributes"] == "401cdec178e5367b991febb60d537319"


def test_attributes_come_only_when_asked_for(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url, MessageAttributes=ATTRIBUTES)

    (message,) = aws.sqs.receive_message(QueueUrl=url)["Messages"]

    assert set(message) == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["tenant", "absent"], {"tenant"}),
        (["pay.*"], set()),
        (["trace.*"], {"trace.id", "trace.span"}),
        ([".*"], {"tenant", "trace.id", "trace.span"}),
    ],
)
def test_attributes_can_be_asked_for_by_name_and_prefix(
    aws: Aws, asked: list[str], expected: set[str]
) -> None:
    url = aws.queue("orders")
    text = {"DataType": "String", "StringValue": "x"}
    aws.send(url, MessageAttributes=dict.fromkeys(["tenant", "trace.id", "trace.span"], text))

    (message,) = aws.receive(url, MessageAttributeNames=asked)

    assert set(message.get("MessageAttributes", {})) == expected


@pytest.mark.moto_differs("moto keeps the text; SQS strips zeros [sqs-message-metadata]")
def test_a_number_loses_the_zeros_that_say_nothing(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url, MessageAttributes={"n": {"DataType": "Number", "StringValue": "0012.50"}})
    (message,) = aws.receive(url)
    assert message["MessageAttributes"]["n"] == {"DataType": "Number", "StringValue": "12.5"}


def test_system_attributes_tell_the_message_s_history(aws: Aws) -> None:
    url = aws.queue("orders", VisibilityTimeout="30")
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}
    sent_at = int(aws.attributes(url)["CreatedTimestamp"].split(".")[0])
    aws.send(url, MessageGroupId="tenant-1", MessageSystemAttributes=trace)
    aws.advance(5)
    aws.receive(url)
    aws.advance(31)

    (message,) = aws.receive(url)

    attributes = message["Attributes"]
    assert attributes.pop("SenderId")
    assert attributes == {
        "SentTimestamp": str(sent_at * 1000),
        "ApproximateFirstReceiveTimestamp": str((sent_at + 5) * 1000),
        "ApproximateReceiveCount": "2",
        "MessageGroupId": "tenant-1",
        "AWSTraceHeader": "Root=1-2-3",
    }


@pytest.mark.moto_differs("moto drops it in a batch; AWS keeps it per entry [xray-services-sqs]")
def test_a_batch_entry_keeps_its_own_trace_header(aws: Aws) -> None:
    url = aws.queue("orders")
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}
    entry = {"Id": "0", "MessageBody": "x", "MessageSystemAttributes": trace}
    aws.sqs.send_message_batch(QueueUrl=url, Entries=[entry])
    (message,) = aws.receive(url)
    assert message["Attributes"]["AWSTraceHeader"] == "Root=1-2-3"


def test_a_batch_entry_keeps_attributes_and_group(aws: Aws) -> None:
    url = aws.queue("orders")
    entry = {
        "Id": "0",
        "MessageBody": "x",
        "MessageAttributes": ATTRIBUTES,
        "MessageGroupId": "tenant-1",
    }
    aws.sqs.send_message_batch(QueueUrl=url, Entries=[entry])
    (message,) = aws.receive(url)
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["Attributes"]["MessageGroupId"] == "tenant-1"


def test_an_empty_queue_answers_without_messages(aws: Aws) -> None:
    assert "Messages" not in aws.sqs.receive_message(QueueUrl=aws.queue("orders"))


def test_a_receive_hands_out_at_most_what_was_asked_for(aws: Aws) -> None:
    url = aws.queue("orders")
    for _ in range(12):
        aws.send(url)
    batches = [aws.receive(url), aws.receive(url), aws.receive(url)]
    assert [len(batch) for batch in batches] == [10, 2, 0]
    assert len({message["MessageId"] for batch in batches for message in batch}) == 12


def test_a_received_message_hides_for_its_visibility_timeout(aws: Aws) -> None:
    url = aws.queue("orders", VisibilityTimeout="60")
    aws.send(url)
    aws.receive(url)

    aws.advance(59)
    assert aws.receive(url) == []
    assert aws.counts(url) == (0, 1, 0)
    aws.advance(2)
    assert aws.counts(url) == (1, 0, 0)
    assert len(aws.receive(url)) == 1


def test_a_receive_can_bring_its_own_visibility_timeout(aws: Aws) -> None:
    url = aws.queue("orders", VisibilityTimeout="60")
    aws.send(url)
    aws.receive(url, VisibilityTimeout=5)
    aws.advance(6)
    assert len(aws.receive(url)) == 1


def test_a_visibility_timeout_of_zero_leaves_the_message_visible(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url)
    assert len(aws.receive(url, VisibilityTimeout=0)) == 1
    assert len(aws.receive(url, VisibilityTimeout=0)) == 1


def test_a_delayed_message_comes_when_its_delay_is_over(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url, DelaySeconds=900)

    assert aws.counts(url) == (0, 0, 1)
    aws.advance(899)
    assert aws.receive(url) == []
    aws.advance(2)
    assert len(aws.receive(url)) == 1


def test_a_message_s_own_delay_overrides_the_queue_s(aws: Aws) -> None:
    url = aws.queue("orders", DelaySeconds="300")
    aws.send(url, "at once", DelaySeconds=0)
    aws.send(url, "later")
    assert [message["Body"] for message in aws.receive(url)] == ["at once"]


def test_a_deleted_message_is_gone(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url)
    (message,) = aws.receive(url)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    aws.advance(31)
    assert aws.receive(url) == []
    assert aws.counts(url) == (0, 0, 0)


def test_messages_expire_at_the_end_of_retention(aws: Aws) -> None:
    url = aws.queue("orders", MessageRetentionPeriod="3600")
    aws.send(url)
    aws.advance(3599)
    assert len(aws.receive(url, VisibilityTimeout=0)) == 1
    aws.advance(2)
    assert aws.receive(url) == []


def test_an_unknown_queue_is_reported_by_code_and_by_class(aws: Aws) -> None:
    url = aws.queue("orders") + "-unknown"
    with pytest.raises(aws.sqs.exceptions.QueueDoesNotExist) as error:
        aws.send(url)
    assert code_of(error) == "AWS.SimpleQueueService.NonExistentQueue"
    assert error.value.operation_name == "SendMessage"
    with pytest.raises(ClientError) as error:
        aws.sqs.get_queue_url(QueueName="unknown")
    assert code_of(error) == "AWS.SimpleQueueService.NonExistentQueue"


def test_making_a_queue_again_finds_it_unless_the_attributes_differ(aws: Aws) -> None:
    url = aws.queue("orders", DelaySeconds="5")
    assert aws.queue("orders", DelaySeconds="5") == url
    assert aws.sqs.get_queue_url(QueueName="orders")["QueueUrl"] == url
    with pytest.raises(ClientError) as error:
        aws.queue("orders", DelaySeconds="6")
    assert code_of(error) == "QueueAlreadyExists"


def test_a_queue_tells_its_attributes_as_strings(aws: Aws) -> None:
    url = aws.queue("orders", VisibilityTimeout="45", MaximumMessageSize="2048")
    told = aws.attributes(url)
    assert told["QueueArn"] == "arn:aws:sqs:us-east-1:123456789012:orders"
    assert (told["VisibilityTimeout"], told["MaximumMessageSize"]) == ("45", "2048")
    assert told["MessageRetentionPeriod"] == "345600"
    with pytest.raises(ClientError) as error:
        aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Nonsense"])
    assert code_of(error) == "InvalidAttributeName"


def test_changed_attributes_count_from_now_on(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "30"})
    aws.send(url)
    assert aws.counts(url) == (0, 0, 1)
