"""What only the fake queues imitate: rough order, late counts, duplicates, and a record of it all.

moto is exact, in order and without doubles, so nothing here can be compared with it. Sources:
SQS Developer Guide, "Standard queues" and "Available CloudWatch metrics"; botocore's model.
"""

from random import Random
from typing import Any

import pytest

from fakes.clock import START, VirtualClock
from fakes.sqs import Counts, Event, FakeSqs, Rest
from tests.contract.conftest import Aws


def aws_with(seed: int = 7, **options: float) -> Aws:
    clock = VirtualClock()
    exact: dict[str, Any] = {"count_lag_seconds": 0.0}
    return Aws(FakeSqs(clock, Random(seed), **(exact | options)), None, clock.advance)


def bodies_received(seed: int, **options: float) -> list[int]:
    aws = aws_with(seed, **options)
    url = aws.queue("orders")
    for number in range(200):
        aws.send(url, str(number))
        aws.advance(1)
    return [
        int(message["Body"])
        for _ in range(20)
        for message in aws.receive(url, VisibilityTimeout=3600)
    ]


def test_messages_come_only_roughly_in_order() -> None:
    received = bodies_received(seed=7)
    assert sorted(received) == list(range(200))
    assert received != sorted(received)
    assert max(received[:10]) < 40, "the tail of a backlog is not seen before the rest"


def test_the_order_can_be_made_exact() -> None:
    assert bodies_received(seed=7, order_width=1) == list(range(200))


def test_the_same_seed_gives_the_same_history() -> None:
    assert bodies_received(seed=7) == bodies_received(seed=7)
    assert bodies_received(seed=7) != bodies_received(seed=8)


def test_a_released_message_comes_before_younger_ones() -> None:
    aws = aws_with(order_width=1)
    url = aws.queue("orders")
    aws.send(url, "old")
    aws.receive(url)
    aws.advance(10)
    aws.send(url, "young")
    aws.advance(30)
    assert [message["Body"] for message in aws.receive(url)] == ["old", "young"]


def test_a_message_received_three_times_goes_to_the_back() -> None:
    aws = aws_with(order_width=1)
    url = aws.queue("orders")
    aws.send(url, "stubborn")
    for _ in range(3):
        aws.receive(url)
        aws.advance(31)
    aws.send(url, "young")
    aws.receive(url)
    aws.advance(31)
    assert [message["Body"] for message in aws.receive(url)] == ["young", "stubborn"]


def test_receives_in_the_source_queue_do_not_send_a_letter_to_the_back_of_its_dlq() -> None:
    # An assumption: AWS does not say which receives count towards the three.
    aws = aws_with(order_width=1)
    source, dlq = aws.source_and_dlq(max_receive_count=3)
    aws.send(source, "letter")
    aws.fail_until_dead(source, 3)
    aws.send(dlq, "young")
    aws.receive(dlq)
    aws.advance(31)
    assert [message["Body"] for message in aws.receive(dlq)] == ["letter", "young"]


def test_counts_are_late_but_not_for_ever() -> None:
    aws = aws_with(count_lag_seconds=60)
    url = aws.queue("orders")
    aws.advance(120)
    aws.send(url)
    assert aws.counts(url) == (0, 0, 0)
    assert aws.sqs.inspect.counts("orders") == Counts(visible=1)
    aws.advance(61)
    assert aws.counts(url) == (1, 0, 0)


def test_late_counts_never_go_back_in_time() -> None:
    aws = aws_with(count_lag_seconds=60)
    url = aws.queue("orders")
    told = []
    for _ in range(200):
        aws.send(url)
        aws.advance(1)
        told.append(aws.counts(url)[0])
    assert told == sorted(told)
    assert all(number - 61 <= count <= number for number, count in enumerate(told, start=1))


def test_counts_are_off_by_a_noise_of_their_own_at_each_reading() -> None:
    aws = aws_with(count_noise=5)
    url = aws.queue("orders")
    for _ in range(50):
        aws.send(url)

    told = [aws.counts(url) for _ in range(500)]

    assert {visible for visible, _, _ in told} == set(range(45, 56))
    assert {in_flight for _, in_flight, _ in told} == set(range(6)), "never below zero"
    assert len({(visible - 50, in_flight) for visible, in_flight, _ in told}) > 50
    assert aws.sqs.inspect.counts("orders") == Counts(visible=50)


def test_the_same_seed_gives_the_same_noise() -> None:
    def told(seed: int) -> list[tuple[int, int, int]]:
        aws = aws_with(seed, count_noise=5)
        url = aws.queue("orders")
        return [aws.counts(url) for _ in range(20)]

    assert told(7) == told(7)
    assert told(7) != told(8)


def test_a_duplicate_is_delivered_again_at_once() -> None:
    aws = aws_with(duplicate_probability=1.0)
    url = aws.queue("orders")
    aws.send(url)
    (first,) = aws.receive(url)
    (second,) = aws.receive(url)
    assert first["MessageId"] == second["MessageId"]
    assert first["ReceiptHandle"] != second["ReceiptHandle"]


def test_the_first_receiver_can_delete_a_duplicate_that_nobody_received_yet() -> None:
    aws = aws_with(duplicate_probability=1.0)
    url = aws.queue("orders")
    aws.send(url)
    (message,) = aws.receive(url)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert aws.receive(url) == []


def test_what_expired_is_remembered_with_the_time_it_was_due() -> None:
    aws = aws_with()
    url = aws.queue("orders", MessageRetentionPeriod="60")
    events: list[Event] = []
    aws.sqs.inspect.subscribe(events.append)
    message_id = aws.send(url)
    aws.receive(url)

    aws.advance(3600)
    assert aws.counts(url) == (0, 0, 0)

    (lost,) = aws.sqs.inspect.expired("orders")
    assert (lost.message_id, lost.rest) == (message_id, Rest.EXPIRED)
    assert [event.kind for event in events] == ["sent", "received", "expired"]
    assert (events[-1].at - START).total_seconds() == 60


def test_listeners_hear_of_every_step_of_a_message() -> None:
    aws = aws_with()
    events: list[Event] = []
    aws.sqs.inspect.subscribe(events.append)
    source, dlq = aws.source_and_dlq(max_receive_count=1)
    aws.send(source)
    aws.fail_until_dead(source, 1)
    (letter,) = aws.receive(dlq)
    aws.sqs.delete_message(QueueUrl=dlq, ReceiptHandle=letter["ReceiptHandle"])
    assert [(event.kind, event.queue_name) for event in events] == [
        ("sent", "orders"),
        ("received", "orders"),
        ("dead", "orders-dlq"),
        ("moved", "orders-dlq"),
        ("received", "orders-dlq"),
        ("deleted", "orders-dlq"),
    ]


def test_messages_can_be_looked_at_without_receiving_them() -> None:
    aws = aws_with()
    url = aws.queue("orders")
    aws.send(url, "later", DelaySeconds=60)
    aws.send(url, "now")
    inspect = aws.sqs.inspect
    assert [message.body for message in inspect.messages("orders")] == ["later", "now"]
    assert [message.body for message in inspect.messages("orders", Rest.DELAYED)] == ["later"]
    assert inspect.messages("orders")[0].receive_count == 0


def test_the_clock_never_goes_back() -> None:
    clock = VirtualClock()
    clock.advance(5)
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance_to(START)
    clock.advance_to(clock.now())
    assert (clock.now() - START).total_seconds() == 5
