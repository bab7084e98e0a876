"""Receipt handles: what an old one can and can't do."""

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of

MODEL = "[botocore sqs DeleteMessage, ChangeMessageVisibility]"


def received_twice(aws: Aws) -> tuple[str, str, str]:
    """A queue with one message, its stale handle, and its current one."""
    url = aws.queue("orders", VisibilityTimeout="30")
    aws.send(url)
    (first,) = aws.receive(url)
    aws.advance(31)
    (second,) = aws.receive(url)
    return url, first["ReceiptHandle"], second["ReceiptHandle"]


def test_deleting_twice_succeeds(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
    assert aws.counts(url) == (0, 0, 0)


@pytest.mark.moto_differs(f"moto deletes; AWS says it may succeed without deleting {MODEL}")
def test_a_stale_handle_deletes_nothing_and_says_nothing(aws: Aws) -> None:
    url, stale, _ = received_twice(aws)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=stale)
    assert aws.counts(url) == (0, 1, 0)


def test_the_last_handle_deletes_even_after_its_timeout(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.advance(31)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
    assert aws.counts(url) == (0, 0, 0)


def test_a_handle_that_is_none_is_refused(aws: Aws) -> None:
    url = aws.queue("orders")
    with pytest.raises(ClientError) as error:
        aws.sqs.delete_message(QueueUrl=url, ReceiptHandle="nonsense")
    assert code_of(error) == "ReceiptHandleIsInvalid"
    with pytest.raises(ClientError) as error:
        aws.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle="nonsense", VisibilityTimeout=5
        )
    assert code_of(error) == "ReceiptHandleIsInvalid"


def test_visibility_can_be_extended_and_ended(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=100)
    aws.advance(99)
    assert aws.receive(url) == []
    aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    aws.advance(1)
    assert len(aws.receive(url)) == 1


def test_a_changed_visibility_is_forgotten_at_the_next_receive(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=100)
    aws.advance(101)
    aws.receive(url)
    aws.advance(31)
    assert len(aws.receive(url)) == 1


def test_a_visibility_that_is_changed_after_the_timeout_hides_the_message_again(aws: Aws) -> None:
    """AWS answers with success, as recorded; botocore's model has MessageNotInflight for it."""
    url, _, handle = received_twice(aws)
    aws.advance(31)
    aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=60)
    aws.advance(59)
    assert aws.counts(url) == (0, 1, 0)
    aws.advance(2)
    assert len(aws.receive(url)) == 1


@pytest.mark.moto_differs("moto lets it hide the message longer; what AWS recorded is the success")
def test_changing_visibility_with_a_stale_handle_succeeds_and_changes_nothing(aws: Aws) -> None:
    url, stale, _ = received_twice(aws)
    aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=stale, VisibilityTimeout=600)
    aws.advance(31)
    assert aws.counts(url) == (1, 0, 0)


@pytest.mark.moto_differs("moto: ReceiptHandleIsInvalid; AWS, as recorded: InvalidParameterValue")
def test_the_visibility_of_a_deleted_message_can_t_be_changed(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
    with pytest.raises(ClientError) as error:
        aws.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=5)
    assert code_of(error) == "InvalidParameterValue"


def test_a_message_whose_visibility_is_extended_stays_in_flight(aws: Aws) -> None:
    """However often a consumer that backs off asks for more time, it is neither visible nor received anew."""
    url = aws.queue("orders", VisibilityTimeout="30")
    aws.send(url)
    (message,) = aws.receive(url)
    for _ in range(5):
        aws.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=900
        )
        aws.advance(890)
        assert aws.counts(url) == (0, 1, 0)
    aws.advance(11)
    (again,) = aws.receive(url)
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"


def test_visibility_is_at_most_twelve_hours(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    with pytest.raises(ClientError) as error:
        aws.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=43_201
        )
    assert code_of(error) == "InvalidParameterValue"


def test_visibility_is_at_most_twelve_hours_since_the_receive(aws: Aws) -> None:
    url, _, handle = received_twice(aws)
    aws.advance(10)
    with pytest.raises(ClientError) as error:
        aws.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=43_195
        )
    assert code_of(error) == "InvalidParameterValue"


def test_batches_of_deletes_and_changes_answer_for_each_entry(aws: Aws) -> None:
    url = aws.queue("orders")
    aws.send(url)
    aws.send(url)
    first, second = (message["ReceiptHandle"] for message in aws.receive(url))

    changed = aws.sqs.change_message_visibility_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "good", "ReceiptHandle": first, "VisibilityTimeout": 0},
            {"Id": "bad", "ReceiptHandle": "nonsense", "VisibilityTimeout": 0},
        ],
    )
    deleted = aws.sqs.delete_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "good", "ReceiptHandle": second},
            {"Id": "bad", "ReceiptHandle": "nonsense"},
        ],
    )

    for answer in (changed, deleted):
        assert answer["Successful"] == [{"Id": "good"}]
        (failed,) = answer["Failed"]
        assert (failed["Id"], failed["SenderFault"]) == ("bad", True)
        assert failed["Code"] == "ReceiptHandleIsInvalid"
    aws.advance(1)
    assert aws.counts(url) == (1, 0, 0)
