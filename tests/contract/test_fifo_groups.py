"""FIFO queues: each message group in its order, whatever is in flight, fails or goes."""

from random import Random

import pytest
from botocore.exceptions import ClientError

from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from fakes.sqs import queue as queues
from tests.contract.conftest import Aws, code_of
from tests.contract.fifo import RECORDED, bodies, delete, fifo, hide, put

MOTO_ORDER = (
    f"moto puts what is visible again behind later messages of its group, unlike AWS {RECORDED}"
)


def test_a_group_comes_in_its_order(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, *"123456789")

    assert bodies(aws.receive(url, MaxNumberOfMessages=4)) == list("1234")


def test_a_message_tells_its_group_its_deduplication_id_and_when_it_is_asked(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "1")

    (message,) = aws.receive(url, MessageSystemAttributeNames=["MessageGroupId"])
    assert message["Attributes"] == {"MessageGroupId": "a"}

    aws.advance(31)
    (message,) = aws.receive(url)
    assert message["Attributes"]["MessageDeduplicationId"] == "1"


def test_sequence_numbers_are_told_to_both_ends(aws: Aws) -> None:
    url = fifo(aws)

    sent = [answer["SequenceNumber"] for answer in put(aws, url, *"123")]

    assert [one["Attributes"]["SequenceNumber"] for one in aws.receive(url)] == sent
    assert {len(number) for number in sent} == {20}


def test_sequence_numbers_grow_in_a_group(fake: Aws) -> None:
    # [botocore SendMessage]; moto rolls dice for them.
    sent = [answer["SequenceNumber"] for answer in put(fake, fifo(fake), *"123456789")]
    assert sent == sorted(set(sent))


def test_a_group_waits_while_its_first_message_is_in_flight_and_others_do_not(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, "a1", "a2")
    put(aws, url, "b1", group="b")
    aws.receive(url, MaxNumberOfMessages=1)

    assert bodies(aws.receive(url)) == ["b1"]
    assert aws.receive(url) == []


@pytest.mark.moto_differs(f"moto: in the order of sending; AWS fills up from one group {RECORDED}")
def test_a_receive_takes_as_many_as_it_can_of_one_group(aws: Aws) -> None:
    url = fifo(aws)
    for number in "123":
        put(aws, url, f"a{number}")
        put(aws, url, f"b{number}", group="b")

    assert bodies(aws.receive(url, MaxNumberOfMessages=4)) == ["a1", "a2", "a3", "b1"]


def test_messages_that_wait_for_their_group_count_as_visible(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, *"123")
    aws.receive(url, MaxNumberOfMessages=1)

    assert aws.receive(url) == []
    assert aws.counts(url) == (2, 1, 0)


def test_a_group_goes_on_as_soon_as_all_in_flight_are_deleted(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, *"1234")
    first, second = aws.receive(url, MaxNumberOfMessages=2)

    delete(aws, url, first)
    assert aws.receive(url) == []
    delete(aws, url, second)
    assert bodies(aws.receive(url)) == ["3", "4"]


@pytest.mark.moto_differs(MOTO_ORDER)
def test_order_outlives_the_visibility_timeout(aws: Aws) -> None:
    url = fifo(aws, VisibilityTimeout="30")
    put(aws, url, *"1234")
    aws.receive(url, MaxNumberOfMessages=3)

    aws.advance(31)

    assert bodies(aws.receive(url)) == list("1234")


def test_a_message_that_is_released_comes_before_those_after_it(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, *"123")
    (first,) = aws.receive(url, MaxNumberOfMessages=1)

    hide(aws, url, first, 0)
    aws.advance(1)

    assert bodies(aws.receive(url, MaxNumberOfMessages=2)) == ["1", "2"]


@pytest.mark.moto_differs(f"moto locks the whole group; AWS only what comes after {RECORDED}")
def test_a_message_waits_only_for_those_before_it(aws: Aws) -> None:
    url = fifo(aws, VisibilityTimeout="30")
    put(aws, url, *"123")
    _, second = aws.receive(url, MaxNumberOfMessages=2)
    hide(aws, url, second, 300)

    aws.advance(31)

    assert bodies(aws.receive(url)) == ["1"], "the second is in flight, the third waits for it"


def test_what_left_the_middle_of_a_group_is_passed_over(fake: Aws) -> None:
    # On moto, what was received together comes back in another order.
    url = fifo(fake, VisibilityTimeout="30")
    put(fake, url, *"123")
    _, second, _ = fake.receive(url)
    delete(fake, url, second)

    fake.advance(31)

    assert bodies(fake.receive(url)) == ["1", "3"]


@pytest.mark.moto_differs("moto keeps the group locked for the first of them")
def test_what_was_received_with_no_timeout_comes_again_at_once(aws: Aws) -> None:
    url = fifo(aws)
    put(aws, url, *"12")

    assert bodies(aws.receive(url, VisibilityTimeout=0)) == ["1", "2"]
    assert bodies(aws.receive(url, VisibilityTimeout=0)) == ["1", "2"]


@pytest.mark.moto_differs("moto keeps the group locked for a message that is gone")
def test_a_message_that_expires_lets_its_group_go_on(aws: Aws) -> None:
    url = fifo(aws, MessageRetentionPeriod="60")
    put(aws, url, "1")
    aws.advance(30)
    put(aws, url, "2")
    aws.receive(url, MaxNumberOfMessages=1, VisibilityTimeout=3600)

    aws.advance(31)

    assert bodies(aws.receive(url)) == ["2"]


@pytest.mark.moto_differs(f"moto deletes; AWS refuses {RECORDED}")
def test_a_handle_ends_with_its_visibility_timeout(aws: Aws) -> None:
    url = fifo(aws, VisibilityTimeout="30")
    put(aws, url, "1")
    (message,) = aws.receive(url)
    aws.advance(31)

    with pytest.raises(ClientError) as error:
        delete(aws, url, message)

    assert code_of(error) == "InvalidParameterValue"
    assert "The receipt handle has expired" in str(error.value)
    assert aws.counts(url) == (1, 0, 0)


@pytest.mark.moto_differs("moto deletes; AWS fails the entry, as users report [sqsmover#54]")
def test_in_a_batch_a_handle_that_has_ended_fails_alone(aws: Aws) -> None:
    url = fifo(aws, VisibilityTimeout="30")
    put(aws, url, "1")
    (late,) = aws.receive(url)
    aws.advance(31)
    put(aws, url, "2", group="b")
    current = next(one for one in aws.receive(url) if one["Body"] == "2")
    entries = [
        {"Id": name, "ReceiptHandle": one["ReceiptHandle"]}
        for name, one in (("late", late), ("current", current))
    ]

    answer = aws.sqs.delete_message_batch(QueueUrl=url, Entries=entries)

    assert answer["Successful"] == [{"Id": "current"}]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"]) == ("late", "ReceiptHandleIsInvalid")


def test_a_handle_lives_as_long_as_its_message_is_kept_in_flight(aws: Aws) -> None:
    url = fifo(aws, VisibilityTimeout="30")
    put(aws, url, "1")
    (message,) = aws.receive(url)
    hide(aws, url, message, 300)
    aws.advance(299)

    delete(aws, url, message)

    assert aws.counts(url) == (0, 0, 0)


def test_visibility_can_t_be_changed_by_a_handle_that_has_ended(fake: Aws) -> None:
    # An assumption: of a FIFO queue only the delete is recorded.
    url = fifo(fake, VisibilityTimeout="30")
    put(fake, url, "1")
    (message,) = fake.receive(url)
    fake.advance(31)
    with pytest.raises(ClientError) as error:
        hide(fake, url, message, 60)
    assert code_of(error) == "InvalidParameterValue"


def test_with_too_many_in_flight_a_receive_is_empty_and_no_error(
    fake: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    # [SQS Developer Guide, quotas-fifo]; a hundred and twenty thousand messages say no more than three.
    monkeypatch.setattr("fakes.sqs.fifo_queue.MAX_IN_FLIGHT", 3)
    assert queues.MAX_IN_FLIGHT == 120_000
    url = fifo(fake)
    for number in range(5):
        put(fake, url, str(number), group=str(number))

    assert len(fake.receive(url)) == 3
    assert fake.receive(url) == []


def test_messages_of_a_fifo_queue_are_never_delivered_twice_at_once() -> None:
    clock = VirtualClock()
    aws = Aws(FakeSqs(clock, Random(7), duplicate_probability=1.0), None, clock.advance)
    url = fifo(aws)
    put(aws, url, "1")
    assert bodies(aws.receive(url)) == ["1"]
    assert aws.receive(url) == []


def test_groups_take_turns(fake: Aws) -> None:
    """Not documented: that none starves is what a simulation needs."""
    url = fifo(fake)
    for group in "abc":
        put(fake, url, *(f"{group}{number}" for number in range(2)), group=group)

    seen = [bodies(fake.receive(url, MaxNumberOfMessages=2, VisibilityTimeout=0)) for _ in "abca"]

    assert seen == [["a0", "a1"], ["b0", "b1"], ["c0", "c1"], ["a0", "a1"]]
