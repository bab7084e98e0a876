"""How messages die: the native move to the DLQ, its lists and its policies."""

import json

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of

ATTRIBUTES = {"tenant": {"DataType": "String.label", "StringValue": "blue"}}


def test_a_message_moves_on_the_receive_after_its_last_allowed_one(aws: Aws) -> None:
    source, dlq = aws.source_and_dlq(max_receive_count=2)
    aws.send(source)
    for _ in range(2):
        assert len(aws.receive(source)) == 1
        aws.advance(31)

    assert aws.counts(dlq) == (0, 0, 0), "nothing moves before somebody polls"
    assert aws.receive(source) == []
    assert aws.counts(source) == (0, 0, 0)
    assert aws.counts(dlq) == (1, 0, 0)


def test_a_dead_letter_keeps_what_it_was(aws: Aws) -> None:
    source, dlq = aws.source_and_dlq(max_receive_count=2)
    sent_at = int(aws.attributes(source)["CreatedTimestamp"].split(".")[0])
    received_at = sent_at + 5
    message_id = aws.send(
        source,
        "grüße",
        MessageAttributes=ATTRIBUTES,
        MessageGroupId="tenant-1",
        MessageSystemAttributes={
            "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-2-3"}
        },
    )
    aws.advance(5)
    aws.fail_until_dead(source)

    (letter,) = aws.receive(dlq)

    assert letter["MessageId"] == message_id
    assert letter["Body"] == "grüße"
    assert letter["MessageAttributes"] == ATTRIBUTES
    system = letter["Attributes"]
    assert system["SentTimestamp"] == str(sent_at * 1000)
    assert system["ApproximateFirstReceiveTimestamp"] == str(received_at * 1000)
    assert system["ApproximateReceiveCount"] == "3", "counting goes on in the DLQ"
    assert system["MessageGroupId"] == "tenant-1"
    assert system["AWSTraceHeader"] == "Root=1-2-3"
    assert system["DeadLetterQueueSourceArn"] == aws.arn(source)


def test_a_message_sent_to_a_dlq_has_no_source(aws: Aws) -> None:
    _, dlq = aws.source_and_dlq()
    aws.send(dlq)
    (letter,) = aws.receive(dlq)
    assert "DeadLetterQueueSourceArn" not in letter["Attributes"]


def test_a_receive_passes_over_dead_letters_to_the_living(aws: Aws) -> None:
    source, dlq = aws.source_and_dlq(max_receive_count=1)
    aws.send(source, "dead")
    aws.receive(source)
    aws.advance(31)
    aws.send(source, "alive")
    assert [message["Body"] for message in aws.receive(source)] == ["alive"]
    assert aws.counts(dlq) == (1, 0, 0)


def test_a_handle_from_before_the_move_deletes_nothing(fake: Aws) -> None:
    # moto refuses such a handle; AWS answers any well-formed one with success [DeleteMessage].
    source, dlq = fake.source_and_dlq(max_receive_count=1)
    fake.send(source)
    (message,) = fake.receive(source)
    fake.fail_until_dead(source, 1)
    fake.sqs.delete_message(QueueUrl=source, ReceiptHandle=message["ReceiptHandle"])
    assert fake.counts(dlq) == (1, 0, 0)


def test_a_letter_expires_by_the_time_it_was_first_sent(aws: Aws) -> None:
    source, dlq = aws.source_and_dlq(max_receive_count=1)
    aws.sqs.set_queue_attributes(QueueUrl=dlq, Attributes={"MessageRetentionPeriod": "3600"})
    aws.send(source)
    aws.advance(3000)
    aws.fail_until_dead(source, 1)
    assert aws.counts(dlq) == (1, 0, 0)

    aws.advance(600)

    assert aws.receive(dlq) == []


def test_a_dlq_lists_its_source_queues(aws: Aws) -> None:
    source, dlq = aws.source_and_dlq()
    policy = {"deadLetterTargetArn": aws.arn(dlq), "maxReceiveCount": "5"}
    other = aws.queue("payments", RedrivePolicy=json.dumps(policy))
    listed = aws.sqs.list_dead_letter_source_queues(QueueUrl=dlq)["queueUrls"]
    assert sorted(listed) == sorted([source, other])
    assert aws.sqs.list_dead_letter_source_queues(QueueUrl=source)["queueUrls"] == []


def test_a_long_list_of_source_queues_comes_in_pages(fake: Aws) -> None:
    # [botocore ListDeadLetterSourceQueues: MaxResults, NextToken]; moto always answers in one.
    dlq = fake.queue("dlq")
    policy = json.dumps({"deadLetterTargetArn": fake.arn(dlq), "maxReceiveCount": 5})
    made = [fake.queue(f"source-{number}", RedrivePolicy=policy) for number in range(5)]
    pages = fake.sqs.get_paginator("list_dead_letter_source_queues").paginate(
        QueueUrl=dlq, PaginationConfig={"PageSize": 2}
    )
    assert [page["queueUrls"] for page in pages] == [made[:2], made[2:4], made[4:]]


def test_a_redrive_policy_must_name_an_existing_queue(aws: Aws) -> None:
    arn = "arn:aws:sqs:us-east-1:123456789012:absent"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    with pytest.raises(ClientError) as error:
        aws.queue("orders", RedrivePolicy=policy)
    assert code_of(error) == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.moto_differs("moto does not enforce RedriveAllowPolicy [botocore CreateQueue]")
@pytest.mark.parametrize(
    "allowed",
    [
        {"redrivePermission": "denyAll"},
        {
            "redrivePermission": "byQueue",
            "sourceQueueArns": ["arn:aws:sqs:us-east-1:123456789012:another"],
        },
    ],
)
def test_a_dlq_can_refuse_to_be_one(aws: Aws, allowed: dict[str, object]) -> None:
    dlq = aws.queue("dlq", RedriveAllowPolicy=json.dumps(allowed))
    policy = {"deadLetterTargetArn": aws.arn(dlq), "maxReceiveCount": 5}
    with pytest.raises(ClientError):
        aws.queue("orders", RedrivePolicy=json.dumps(policy))


class TestNativeRedrive:
    """StartMessageMoveTask: moto raises NotImplementedError. Source: botocore's model."""

    def test_moves_letters_back_as_new_messages_at_its_rate(self, fake: Aws) -> None:
        source, dlq = fake.source_and_dlq(max_receive_count=1)
        for number in range(10):
            fake.send(source, f"letter {number}", MessageAttributes=ATTRIBUTES)
        fake.fail_until_dead(source, 1)
        ids = {message.message_id for message in fake.sqs.inspect.messages("orders-dlq")}

        fake.sqs.start_message_move_task(SourceArn=fake.arn(dlq), MaxNumberOfMessagesPerSecond=2)
        fake.advance(2.5)
        assert (fake.counts(source)[0], fake.counts(dlq)[0]) == (5, 5)
        fake.advance(60)

        messages = fake.receive(source)
        assert len(messages) == 10
        assert {message["MessageId"] for message in messages}.isdisjoint(ids)
        for message in messages:
            assert message["MessageAttributes"] == ATTRIBUTES
            assert message["Attributes"]["ApproximateReceiveCount"] == "1"
            assert "DeadLetterQueueSourceArn" not in message["Attributes"]

    def test_shows_its_handle_only_while_it_runs(self, fake: Aws) -> None:
        source, dlq = fake.source_and_dlq(max_receive_count=1)
        for _ in range(10):
            fake.send(source)
        fake.fail_until_dead(source, 1)
        arn = fake.arn(dlq)
        assert fake.sqs.list_message_move_tasks(SourceArn=arn)["Results"] == []

        handle = fake.sqs.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=1)
        fake.advance(5)
        (running,) = fake.sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        fake.advance(60)
        (ended,) = fake.sqs.list_message_move_tasks(SourceArn=arn)["Results"]

        assert running["TaskHandle"] == handle["TaskHandle"]
        assert (running["Status"], running["ApproximateNumberOfMessagesMoved"]) == ("RUNNING", 5)
        assert (ended["Status"], ended["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 10)
        assert "TaskHandle" not in ended

    def test_is_alone_on_its_queue_and_can_be_cancelled(self, fake: Aws) -> None:
        source, dlq = fake.source_and_dlq(max_receive_count=1)
        fake.send(source)
        fake.fail_until_dead(source, 1)
        arn = fake.arn(dlq)
        handle = fake.sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
        with pytest.raises(ClientError):
            fake.sqs.start_message_move_task(SourceArn=arn)

        fake.sqs.cancel_message_move_task(TaskHandle=handle)

        (task,) = fake.sqs.list_message_move_tasks(SourceArn=arn)["Results"]
        assert task["Status"] == "CANCELLED"
        assert fake.counts(dlq) == (1, 0, 0)

    def test_needs_a_dead_letter_queue(self, fake: Aws) -> None:
        source, _ = fake.source_and_dlq()
        with pytest.raises(ClientError):
            fake.sqs.start_message_move_task(SourceArn=fake.arn(source))

    def test_fails_for_a_letter_whose_source_nobody_knows(self, fake: Aws) -> None:
        _, dlq = fake.source_and_dlq()
        fake.send(dlq)
        fake.sqs.start_message_move_task(SourceArn=fake.arn(dlq))
        fake.advance(60)
        (task,) = fake.sqs.list_message_move_tasks(SourceArn=fake.arn(dlq))["Results"]
        assert task["FailureReason"] == "CouldNotDetermineMessageSource"
        assert fake.counts(dlq) == (1, 0, 0)
