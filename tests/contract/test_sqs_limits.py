"""What SQS refuses, of single messages, of batch entries and of whole batches."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of

MIB = 1_048_576
TEXT = {"DataType": "String", "StringValue": "x"}
METADATA = "[sqs-message-metadata]"

REFUSED_EVERYWHERE = [
    pytest.param({"DelaySeconds": 901}, "InvalidParameterValue", id="delay above 900"),
    pytest.param({"MessageBody": "x" * (MIB + 1)}, "InvalidParameterValue", id="body too large"),
    pytest.param(
        {"MessageAttributes": {"a": {"DataType": "Text", "StringValue": "x"}}},
        "InvalidParameterValue",
        id="unknown data type",
    ),
]
MISSED_BY_MOTO = [
    pytest.param({"DelaySeconds": -1}, "InvalidParameterValue", id="negative delay"),
    pytest.param({"MessageBody": ""}, "MissingParameter", id="empty body"),
    pytest.param({"MessageBody": "a\x00b"}, "InvalidMessageContents", id="NUL in the body"),
    pytest.param({"MessageBody": "a\ufffeb"}, "InvalidMessageContents", id="U+FFFE in the body"),
    pytest.param(
        {"MessageAttributes": {f"a{number}": TEXT for number in range(11)}},
        "InvalidParameterValue",
        id="eleven attributes",
    ),
    pytest.param(
        {"MessageAttributes": {"AWS.trace": TEXT}}, "InvalidParameterValue", id="reserved name"
    ),
    pytest.param(
        {"MessageBody": "x" * MIB, "MessageAttributes": {"a": TEXT}},
        "InvalidParameterValue",
        id="too large with its attributes",
    ),
    pytest.param(
        {"MessageSystemAttributes": {"Other": TEXT}},
        "InvalidParameterValue",
        id="unknown system attribute",
    ),
]


@pytest.mark.parametrize(("fields", "code"), REFUSED_EVERYWHERE)
def test_a_bad_message_is_refused(aws: Aws, fields: dict[str, Any], code: str) -> None:
    url = aws.queue("orders")
    with pytest.raises(ClientError) as error:
        aws.sqs.send_message(QueueUrl=url, **({"MessageBody": "x"} | fields))
    assert code_of(error) == code
    assert aws.counts(url) == (0, 0, 0)


@pytest.mark.moto_differs(f"moto accepts it; AWS does not {METADATA} [botocore SendMessage]")
@pytest.mark.parametrize(("fields", "code"), MISSED_BY_MOTO)
def test_a_bad_message_that_moto_lets_pass_is_refused(
    aws: Aws, fields: dict[str, Any], code: str
) -> None:
    test_a_bad_message_is_refused(aws, fields, code)


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "String", "StringValue": ""},
        {"DataType": "Binary", "BinaryValue": b""},
        {"DataType": "Number", "StringValue": "many"},
        {"DataType": "Binary", "StringValue": "not binary"},
    ],
)
def test_an_attribute_needs_a_value_of_its_type(fake: Aws, attribute: dict[str, Any]) -> None:
    # moto refuses some of these and not others; AWS all of them [sqs-message-metadata].
    url = fake.queue("orders")
    with pytest.raises(ClientError) as error:
        fake.send(url, MessageAttributes={"a": attribute})
    assert code_of(error) == "InvalidParameterValue"


def test_a_message_of_exactly_one_mebibyte_passes(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url, "x" * MIB)
    assert aws.counts(url) == (1, 0, 0)


def test_a_queue_can_have_a_smaller_limit(aws: Aws) -> None:
    url = aws.queue("orders", MaximumMessageSize="1024")
    with pytest.raises(ClientError) as error:
        aws.send(url, "x" * 1025)
    assert code_of(error) == "InvalidParameterValue"


@pytest.mark.moto_differs("moto counts characters; AWS counts bytes [botocore SendMessage]")
def test_the_size_of_a_message_is_counted_in_bytes(aws: Aws) -> None:
    url = aws.queue("orders", MaximumMessageSize="1024")
    with pytest.raises(ClientError) as error:
        aws.send(url, "ü" * 513)
    assert code_of(error) == "InvalidParameterValue"


def test_the_trace_header_does_not_count_towards_the_size(aws: Aws) -> None:
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}}
    aws.send(aws.queue("orders"), "x" * MIB, MessageSystemAttributes=trace)


def test_a_batch_answers_for_each_entry(aws: Aws) -> None:
    url = aws.queue("orders")
    entries = [
        {"Id": "good", "MessageBody": "x"},
        {"Id": "bad", "MessageBody": "x", "DelaySeconds": 901},
    ]
    answer = aws.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["SenderFault"]) == ("bad", True)
    assert failed["Code"] == "InvalidParameterValue"
    assert "DelaySeconds" in failed["Message"]
    assert aws.counts(url) == (1, 0, 0)


@pytest.mark.moto_differs(f"moto accepts such entries; AWS fails them one by one {METADATA}")
@pytest.mark.parametrize(
    "fields",
    [
        {"MessageBody": "a\x0bb"},
        {"MessageAttributes": {f"a{number}": TEXT for number in range(11)}},
    ],
)
def test_a_bad_entry_that_moto_lets_pass_fails_alone(aws: Aws, fields: dict[str, Any]) -> None:
    url = aws.queue("orders")
    bad = {"Id": "bad", "MessageBody": "x"} | fields
    answer = aws.sqs.send_message_batch(
        QueueUrl=url, Entries=[bad, {"Id": "good", "MessageBody": "x"}]
    )
    assert [entry["Id"] for entry in answer["Failed"]] == ["bad"]
    assert aws.counts(url) == (1, 0, 0)


def test_lists_with_nothing_in_them_are_left_out_of_a_batch_answer(fake: Aws) -> None:
    # moto sends empty lists. Adapters must cope with both, so the fake shows the harder one.
    url = fake.queue("orders")
    entries = [{"Id": "0", "MessageBody": "x"}]
    assert "Failed" not in fake.sqs.send_message_batch(QueueUrl=url, Entries=entries)


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        (
            [{"Id": str(number), "MessageBody": "x"} for number in range(11)],
            "TooManyEntriesInBatchRequest",
        ),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        (
            [{"Id": str(number), "MessageBody": "x" * 600_000} for number in range(2)],
            "BatchRequestTooLong",
        ),
    ],
)
def test_a_bad_batch_is_refused_as_a_whole(
    aws: Aws, entries: list[dict[str, Any]], code: str
) -> None:
    url = aws.queue("orders")
    with pytest.raises(ClientError) as error:
        aws.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert code_of(error) == f"AWS.SimpleQueueService.{code}"
    assert error.value.operation_name == "SendMessageBatch"
    assert aws.counts(url) == (0, 0, 0)


@pytest.mark.parametrize(
    "fields",
    [{"MaxNumberOfMessages": 11}, {"WaitTimeSeconds": 21}, {"VisibilityTimeout": 43_201}],
)
def test_a_receive_out_of_range_is_refused(aws: Aws, fields: dict[str, int]) -> None:
    url = aws.queue("orders")
    with pytest.raises(ClientError) as error:
        aws.sqs.receive_message(QueueUrl=url, **fields)
    assert code_of(error) == "InvalidParameterValue"


def test_a_queue_has_only_so_many_messages_in_flight(
    fake: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    # moto has no such limit; on AWS it is about 120,000 [botocore ReceiveMessage: OverLimit].
    monkeypatch.setattr("fakes.sqs.queue.MAX_IN_FLIGHT", 10)
    url = fake.queue("orders")
    for _ in range(11):
        fake.send(url)
    assert len(fake.receive(url)) == 10
    with pytest.raises(fake.sqs.exceptions.OverLimit):
        fake.receive(url)
    # A long poll ends empty, without an error. [SQS Developer Guide, quotas-queues]
    assert fake.receive(url, WaitTimeSeconds=1) == []
    fake.advance(31)
    assert len(fake.receive(url)) == 10
