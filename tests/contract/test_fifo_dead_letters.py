"""FIFO queues: how messages die, and what a letter keeps of its message."""

import json
from functools import partial

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of
from tests.contract.fifo import bodies, delete, fifo, fifo_pair, put

GUIDE = "[SQS Developer Guide, sqs-configure-dead-letter-queue-redrive]"
RETENTION = "[SQS Developer Guide, setting-up-dead-letter-queue-retention]"
ATTRIBUTES = {"tenant": {"DataType": "String.label", "StringValue": "blue"}}


def test_a_letter_keeps_id_group_body_and_attributes(aws: Aws) -> None:
    source, dlq = fifo_pair(aws, max_receive_count=2)
    (sent,) = put(aws, source, "1", MessageAttributes=ATTRIBUTES)
    aws.fail_until_dead(source)

    (letter,) = aws.receive(dlq)

    assert (letter["MessageId"], letter["Body"]) == (sent["MessageId"], "1")
    assert letter["MessageAttributes"] == ATTRIBUTES
    assert letter["Attributes"]["MessageGroupId"] == "a"
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == aws.arn(source)
    assert letter["Attributes"]["ApproximateReceiveCount"] == "3", "counting goes on in the DLQ"


@pytest.mark.moto_differs(f"moto keeps the producer's id; AWS does not {GUIDE}")
def test_a_letter_s_deduplication_id_is_its_message_id(aws: Aws) -> None:
    source, dlq = fifo_pair(aws, max_receive_count=1)
    put(aws, source, "1", MessageDeduplicationId="the-producer-s")
    aws.fail_until_dead(source, 1)

    (letter,) = aws.receive(dlq)

    assert letter["Attributes"]["MessageDeduplicationId"] == letter["MessageId"]


@pytest.mark.moto_differs(f"moto keeps the time of sending; on AWS the move resets it {RETENTION}")
def test_a_letter_expires_by_the_time_of_its_move(aws: Aws) -> None:
    source, dlq = fifo_pair(aws, max_receive_count=1)
    aws.sqs.set_queue_attributes(QueueUrl=dlq, Attributes={"MessageRetentionPeriod": "3600"})
    put(aws, source, "1")
    aws.advance(3000)
    aws.fail_until_dead(source, 1)

    aws.advance(3500)
    assert len(aws.receive(dlq, VisibilityTimeout=0)) == 1
    aws.advance(100)
    assert aws.receive(dlq) == []


def test_a_letter_s_sent_timestamp_and_sequence_number_are_those_of_the_move(fake: Aws) -> None:
    # Assumptions: AWS says of the time that it is reset, and of the number nothing.
    source, dlq = fifo_pair(fake, max_receive_count=1)
    put(fake, dlq, "an older letter", MessageDeduplicationId="0")
    (sent,) = put(fake, source, "1")
    fake.receive(source)
    fake.advance(31)
    fake.receive(source)
    older, letter = fake.receive(dlq)

    waited = int(letter["Attributes"]["SentTimestamp"]) - int(older["Attributes"]["SentTimestamp"])
    assert waited == 31_000
    assert letter["Attributes"]["SequenceNumber"] > sent["SequenceNumber"]
    assert letter["Attributes"]["SequenceNumber"] > older["Attributes"]["SequenceNumber"]


def test_letters_stand_in_the_order_of_their_moves_at_the_end_of_their_group(fake: Aws) -> None:
    # On moto what was received together comes back in another order (test_fifo_groups).
    source, dlq = fifo_pair(fake, max_receive_count=1)
    put(fake, dlq, "0")
    put(fake, source, *"123")
    fake.fail_until_dead(source, 1)
    assert bodies(fake.receive(dlq)) == ["0", "1", "2", "3"]


def test_a_move_lets_the_group_go_on(aws: Aws) -> None:
    source, dlq = fifo_pair(aws, max_receive_count=1)
    put(aws, source, *"12")
    aws.receive(source, MaxNumberOfMessages=1)
    aws.advance(31)

    assert bodies(aws.receive(source)) == ["2"]
    assert aws.counts(dlq) == (1, 0, 0)


def test_a_letter_that_is_sent_back_and_dies_again_comes_last_in_its_group(fake: Aws) -> None:
    source, dlq = fifo_pair(fake, max_receive_count=1)
    put(fake, source, *"123")
    fake.fail_until_dead(source, 1)
    (first,) = fake.receive(dlq, MaxNumberOfMessages=1)
    put(fake, source, "1", MessageDeduplicationId="1-again")
    delete(fake, dlq, first)

    fake.fail_until_dead(source, 1)

    assert bodies(fake.receive(dlq)) == ["2", "3", "1"]


@pytest.mark.parametrize("is_dlq_fifo", [True, False])
@pytest.mark.moto_differs(f"moto takes any queue; on AWS both are of one kind {GUIDE}")
def test_a_mixed_pair_is_refused(aws: Aws, is_dlq_fifo: bool) -> None:
    dlq = fifo(aws, "dlq") if is_dlq_fifo else aws.queue("dlq")
    policy = json.dumps({"deadLetterTargetArn": aws.arn(dlq), "maxReceiveCount": 3})
    make = aws.queue if is_dlq_fifo else partial(fifo, aws)
    with pytest.raises(ClientError) as error:
        make("orders", RedrivePolicy=policy)
    assert code_of(error) == "InvalidParameterValue"


def test_a_native_redrive_sends_letters_back_in_order(fake: Aws) -> None:
    # Recorded of standard queues only; the deduplication ids of the new messages are an assumption.
    source, dlq = fifo_pair(fake, max_receive_count=1)
    put(fake, source, "a1", "a2", "a3")
    put(fake, source, "b1", "b2", group="b")
    fake.fail_until_dead(source, 1)

    fake.sqs.start_message_move_task(SourceArn=fake.arn(dlq))
    fake.advance(60)

    assert fake.counts(dlq) == (0, 0, 0)
    back = bodies(fake.receive(source))
    assert [body for body in back if body[0] == "a"] == ["a1", "a2", "a3"]
    assert [body for body in back if body[0] == "b"] == ["b1", "b2"]


def test_a_native_redrive_goes_to_a_queue_of_the_same_kind(fake: Aws) -> None:
    _, dlq = fifo_pair(fake)
    standard = fake.queue("anywhere")
    with pytest.raises(ClientError):
        fake.sqs.start_message_move_task(SourceArn=fake.arn(dlq), DestinationArn=fake.arn(standard))


@pytest.mark.moto_differs("moto brings only one of them back; AWS all, in their order")
def test_letters_that_were_never_tried_die_with_the_one_before_them(aws: Aws) -> None:
    """Each receive of a batch counts for all of it: a message at the head takes those behind it along."""
    source, dlq = fifo_pair(aws, max_receive_count=2)
    put(aws, source, *"123")
    aws.fail_until_dead(source)
    assert aws.counts(dlq)[0] == 3
