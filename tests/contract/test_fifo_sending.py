"""FIFO queues: what must be said of a message, what is refused, and the window in which it is taken in once."""

import hashlib
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of
from tests.contract.fifo import RECORDED, bodies, delete, fifo, put

MODEL = "[botocore sqs SendMessage, CreateQueue]"


@pytest.mark.moto_differs(f"moto answers with an id of its own; not recorded on AWS {MODEL}")
def test_a_second_copy_is_answered_with_the_first_one_s_id_and_number(aws: Aws) -> None:
    url = fifo(aws)
    first, second = put(aws, url, "same", "same")
    assert second["MessageId"] == first["MessageId"]
    assert second["SequenceNumber"] == first["SequenceNumber"]


def test_a_second_copy_adds_nothing(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "first", MessageDeduplicationId="same")
    put(aws, url, "second", MessageDeduplicationId="same")
    assert bodies(aws.receive(url)) == ["first"]


@pytest.mark.moto_differs(f"moto forgets what is deleted; AWS keeps the window {RECORDED}")
def test_the_window_outlives_the_message(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "same")
    delete(aws, url, *aws.receive(url))

    put(aws, url, "same")

    assert aws.receive(url) == []


def test_the_window_ends_five_minutes_after_the_first_copy(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "same")
    aws.advance(299)
    put(aws, url, "same")
    assert aws.counts(url) == (1, 0, 0)

    aws.advance(2)
    put(aws, url, "same")

    assert aws.counts(url) == (2, 0, 0)


def test_by_default_the_window_is_the_queue_s_whatever_the_group(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "same", group="a")
    put(aws, url, "same", group="b")
    assert aws.counts(url) == (1, 0, 0)


@pytest.mark.moto_differs(f"moto knows the queue's window alone; AWS has the scope {MODEL}")
def test_the_window_can_be_each_group_s_own(aws: Aws) -> None:
    url = fifo(aws, DeduplicationScope="messageGroup")
    put(aws, url, "same", "same", group="a")
    put(aws, url, "same", group="b")
    assert len(aws.receive(url)) == 2


def test_the_id_can_be_made_of_the_body(aws: Aws) -> None:
    url = fifo(aws, ContentBasedDeduplication="true")
    text = {"n": {"DataType": "String", "StringValue": "1"}}
    aws.send(url, "same", MessageGroupId="a")
    aws.send(url, "same", MessageGroupId="a", MessageAttributes=text)
    aws.send(url, "other", MessageGroupId="a")

    messages = aws.receive(url)

    assert bodies(messages) == ["same", "other"]
    digest = hashlib.sha256(b"same").hexdigest()
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == digest


def test_an_id_that_is_given_counts_before_the_body(aws: Aws) -> None:
    url = fifo(aws, ContentBasedDeduplication="true")
    put(aws, url, "same", MessageDeduplicationId="1")
    put(aws, url, "same", MessageDeduplicationId="2")
    assert aws.counts(url) == (2, 0, 0)


def test_the_metrics_count_a_message_once(fake: Aws) -> None:
    # NumberOfDeduplicatedSentMessages has the rest [sqs-available-cloudwatch-metrics].
    put(fake, fifo(fake), "same", "same")
    metrics = fake.sqs.inspect.metrics("orders.fifo")
    assert sum(metrics.sent_in.values()) == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"MessageGroupId": "a"}, "InvalidParameterValue"),
        ({"MessageDeduplicationId": "1"}, "MissingParameter"),
        (
            {"MessageGroupId": "a", "MessageDeduplicationId": "1", "DelaySeconds": 2},
            "InvalidParameterValue",
        ),
    ],
    ids=["no id", "no group", "a delay"],
)
def test_a_message_without_group_or_id_or_with_a_delay_is_refused(
    aws: Aws, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(ClientError) as error:
        aws.send(fifo(aws), **fields)
    assert code_of(error) == code


@pytest.mark.parametrize(
    "fields",
    [
        {"MessageGroupId": "a group", "MessageDeduplicationId": "1"},
        {"MessageGroupId": "a", "MessageDeduplicationId": "1" * 129},
    ],
)
def test_group_and_id_have_128_characters_at_most_and_no_spaces(
    fake: Aws, fields: dict[str, str]
) -> None:
    # [botocore SendMessage]; moto checks the length of one and the characters of neither.
    with pytest.raises(ClientError) as error:
        fake.send(fifo(fake), **fields)
    assert code_of(error) == "InvalidParameterValue"


def test_a_delay_of_zero_is_the_queue_s_delay(fake: Aws) -> None:
    # [localstack test_fifo_message_delay_seconds, recorded on AWS]
    url = fifo(fake, DelaySeconds="60")
    put(fake, url, "1", DelaySeconds=0)
    assert fake.counts(url) == (0, 0, 1)


def test_the_queue_s_delay_holds_back_each_message(aws: Aws) -> None:
    url = fifo(aws, DelaySeconds="60")
    put(aws, url, "1")
    aws.advance(30)
    put(aws, url, "2")

    assert aws.receive(url) == []
    aws.advance(31)
    assert bodies(aws.receive(url)) == ["1"]


def with_a_bad_entry(missing: str) -> list[dict[str, str]]:
    good = {"Id": "1", "MessageBody": "1", "MessageGroupId": "a", "MessageDeduplicationId": "1"}
    bad = {"Id": "2", "MessageBody": "2", "MessageGroupId": "a", "MessageDeduplicationId": "2"}
    del bad[missing]
    return [good, bad]


def test_one_entry_without_an_id_fails_the_whole_batch(aws: Aws) -> None:
    url = fifo(aws)
    entries = with_a_bad_entry("MessageDeduplicationId")

    with pytest.raises(ClientError) as error:
        aws.sqs.send_message_batch(QueueUrl=url, Entries=entries)

    assert code_of(error) == "InvalidParameterValue"
    assert aws.receive(url) == []


@pytest.mark.moto_differs(f"moto: MissingParameter; AWS: InvalidParameterValue {RECORDED}")
def test_one_entry_without_a_group_fails_the_whole_batch(aws: Aws) -> None:
    url = fifo(aws)
    entries = with_a_bad_entry("MessageGroupId")

    with pytest.raises(ClientError) as error:
        aws.sqs.send_message_batch(QueueUrl=url, Entries=entries)

    assert aws.receive(url) == []
    assert code_of(error) == "InvalidParameterValue"


def test_a_batch_keeps_its_order(aws: Aws) -> None:
    url = fifo(aws)
    entries = [
        {"Id": one, "MessageBody": one, "MessageGroupId": "a", "MessageDeduplicationId": one}
        for one in "123"
    ]
    aws.sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert bodies(aws.receive(url)) == ["1", "2", "3"]


def test_a_fifo_queue_without_the_suffix_is_refused(aws: Aws) -> None:
    with pytest.raises(ClientError) as error:
        aws.queue("orders", FifoQueue="true")
    assert code_of(error) == "InvalidParameterValue"


@pytest.mark.moto_differs(f"moto takes it for the name of a standard queue; AWS does not {MODEL}")
def test_the_suffix_without_fifo_queue_is_refused(aws: Aws) -> None:
    with pytest.raises(ClientError) as error:
        aws.queue("orders.fifo")
    assert code_of(error) == "InvalidParameterValue"


def test_a_fifo_queue_tells_its_attributes(aws: Aws) -> None:
    told = aws.attributes(fifo(aws))
    assert {name: told[name] for name in ("FifoQueue", "ContentBasedDeduplication")} == {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
    }
    assert (told["DeduplicationScope"], told["FifoThroughputLimit"]) == ("queue", "perQueue")


def test_deduplication_can_be_changed_later(aws: Aws) -> None:
    url = fifo(aws)
    aws.sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"ContentBasedDeduplication": "true", "VisibilityTimeout": "5"}
    )
    aws.send(url, MessageGroupId="a")
    assert aws.attributes(url)["VisibilityTimeout"] == "5"
    assert aws.counts(url) == (1, 0, 0)


@pytest.mark.parametrize(
    "attributes",
    [
        {"FifoThroughputLimit": "perMessageGroupId"},
        {"DeduplicationScope": "everywhere"},
        {"ContentBasedDeduplication": "yes"},
    ],
)
def test_attributes_that_can_t_be_are_refused(fake: Aws, attributes: dict[str, str]) -> None:
    # [botocore CreateQueue]: high throughput needs the group's scope.
    with pytest.raises(ClientError):
        fifo(fake, **attributes)


@pytest.mark.parametrize("name", ["ContentBasedDeduplication", "DeduplicationScope"])
def test_a_standard_queue_has_none_of_them(fake: Aws, name: str) -> None:
    with pytest.raises(ClientError):
        fake.queue("orders", **{name: "true"})
