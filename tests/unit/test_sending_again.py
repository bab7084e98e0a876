"""What passes by itself, what is too long together, and what neither speaks against a letter nor its consumer."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.errors import CONTENT_FAULTS, TRANSIENT_FAULTS, EntryFault
from smart_redriver.engine.messages.outgoing import Sent
from tests.unit.sqs_client import Entry, RecordingSqs, denial, numbered


@pytest.fixture
def sqs() -> RecordingSqs:
    return RecordingSqs()


@pytest.fixture
def queue(sqs: RecordingSqs) -> SqsQueue:
    return SqsQueue(sqs, "https://sqs/orders")


def once(code: str, *bodies: str) -> Callable[[Entry], str | None]:
    """Refuse these entries the first time."""
    left = set(bodies)

    def refuse(entry: Entry) -> str | None:
        if entry["MessageBody"] not in left:
            return None
        left.discard(entry["MessageBody"])
        return code

    return refuse


def bodies(request: dict[str, Any]) -> list[str]:
    return [entry["MessageBody"] for entry in request["Entries"]]


@pytest.mark.parametrize(
    "code", ["InternalError", "ServiceUnavailable", "RequestThrottled", "KMS.ThrottlingException"]
)
def test_entries_that_failed_for_a_moment_are_sent_once_more_together_after_the_others(
    sqs: RecordingSqs, queue: SqsQueue, code: str
) -> None:
    sqs.refuse = once(code, "b3", "b11")

    sent = queue.send(numbered(12))

    assert [bodies(request) for _, request in sqs.calls[2:]] == [["b3", "b11"]]
    assert set(sent.new_ids) == {f"m{n}" for n in range(12)}
    assert sent.faults == []
    assert sent.refused is None
    assert [(one.key, one.code) for one in sent.healed] == [
        (key, code.rpartition(".")[2]) for key in ("m3", "m11")
    ]


def test_an_entry_that_fails_again_is_left_with_the_fault_of_the_second_try_and_blames_nobody(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    codes = iter(["InternalError", "ServiceUnavailable"])
    sqs.refuse = lambda entry: next(codes) if entry["MessageBody"] == "b1" else None

    sent = queue.send(numbered(3))

    assert sqs.batch_sizes == [3, 1]
    assert [(one.key, one.code) for one in sent.faults] == [("m1", "ServiceUnavailable")]
    assert (sent.refused, sent.healed) == (None, [])


@pytest.mark.parametrize(
    "code", ["AccessDenied", "KMS.AccessDeniedException", "InvalidParameterValue"]
)
def test_an_entry_that_is_refused_for_good_is_not_sent_again(
    sqs: RecordingSqs, queue: SqsQueue, code: str
) -> None:
    sqs.refuse = lambda entry: code if entry["MessageBody"] == "b1" else None

    queue.send(numbered(3))

    assert sqs.batch_sizes == [3]


def test_a_call_that_timed_out_is_not_made_again(sqs: RecordingSqs, queue: SqsQueue) -> None:
    """It may have been accepted, so that another would repeat its letters; and botocore has tried it three times."""
    sqs.fail = lambda entries: ReadTimeoutError(endpoint_url="https://sqs")

    sent = queue.send(numbered(3))

    assert sqs.batch_sizes == [3]
    assert sent.refused is None


def test_a_call_that_kms_throttled_is_made_again_since_botocore_did_not(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    errors: list[Exception | None] = [denial("KMS.ThrottlingException"), None]
    sqs.fail = lambda entries: errors.pop(0)

    sent = queue.send(numbered(3))

    assert sqs.batch_sizes == [3, 3]
    assert set(sent.new_ids) == {"m0", "m1", "m2"}


def too_long_from(count: int) -> Callable[[list[Entry]], Exception | None]:
    too_long = denial("AWS.SimpleQueueService.BatchRequestTooLong")
    return lambda entries: too_long if len(entries) >= count else None


def test_a_call_that_is_too_long_is_split_until_it_is_not(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    sqs.fail = too_long_from(4)

    sent = queue.send(numbered(10))

    assert sqs.batch_sizes == [10, 5, 2, 3, 5, 2, 3]
    assert set(sent.new_ids) == {f"m{n}" for n in range(10)}
    assert sent.faults == []
    assert [one.code for one in sent.healed] == ["BatchRequestTooLong"] * 3


def test_a_letter_that_is_too_long_by_itself_is_at_fault_itself(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    sqs.fail = lambda entries: too_long_from(1)(entries) if "b2" in str(entries) else None

    sent = queue.send(numbered(4))

    assert [(one.key, one.is_of_content) for one in sent.faults] == [("m2", True)]
    assert set(sent.new_ids) == {"m0", "m1", "m3"}
    assert sent.refused is None


# What a fault is.


def fault(code: str) -> EntryFault:
    return EntryFault(call="SendMessageBatch", key="m", code=code)


@pytest.mark.parametrize(
    "code",
    [
        "AccessDenied",
        "AccessDeniedException",
        "NonExistentQueue",
        "QueueDoesNotExist",
        "DisabledException",
        "InvalidStateException",
        "NotFoundException",
        "ExpiredToken",
        "SomethingNew",
    ],
)
def test_what_is_neither_of_the_content_nor_transient_is_a_refusal(code: str) -> None:
    """Unknown codes, too: where it is in doubt, the re-driver stops."""
    assert fault(code).is_refusal


@pytest.mark.parametrize("code", sorted(CONTENT_FAULTS | TRANSIENT_FAULTS))
def test_a_fault_is_one_thing_only(code: str) -> None:
    one = fault(code)

    assert [one.is_of_content, one.is_transient, one.is_refusal].count(True) == 1


def test_a_send_was_refused_by_the_first_fault_that_lies_with_its_destination() -> None:
    faults = [fault("InternalError"), fault("InvalidMessageContents"), fault("AccessDenied")]

    assert Sent(faults=faults).refused == fault("AccessDenied")
    assert Sent(faults=faults[:2]).refused is None
