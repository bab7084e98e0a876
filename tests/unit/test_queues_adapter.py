"""The SQS adapter and the clients: what is asked for, what is sent, and what is made of the answers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, ReadTimeoutError

from redrive.aws import clients
from redrive.aws.sqs import BYTES_PER_CALL, CONTENT_FAULTS, Outgoing, Queues
from redrive.aws.traffic import LiveTraffic
from redrive.core.letter import TRAIL_ATTRIBUTE, Letter, Trail
from redrive.core.queue_facts import Sources
from redrive.core.verdict import Traffic
from redrive.errors import CallFailed, EntryFault
from redrive.settings import Deployment
from tests.unit.examples import NOW, QUEUE, a_letter, a_trail, ago

DEPLOYMENT = Deployment(
    queue_name=QUEUE,
    table_name="table",
    dlq_url="https://sqs/orders-dlq",
    source_queue_url="https://sqs/orders",
    parking_lot_url="https://sqs/parking-lot",
)

Entry = dict[str, Any]
MIB = 1_048_576
ORDERS_ARN, INVOICES_ARN = (f"arn:aws:sqs:eu-west-1:1:{name}" for name in ("orders", "invoices"))


def denial(code: str = "AccessDenied") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "an operation")


class RecordingSqs:
    """An SQS client that records every call and answers as it is told.

    `refuse` says for one entry of a batch the code that it is refused with, or "silence" to leave it out of the
    answer; `fail` says for the entries of a whole call the exception that it raises. `answers` are what other
    operations answer.
    """

    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuse: Callable[[Entry], str | None] = lambda entry: None
        self.fail: Callable[[list[Entry]], Exception | None] = lambda entries: None
        self._answers = answers

    def send_message_batch(self, **request: Any) -> Any:
        return self._batch("send_message_batch", request)

    def delete_message_batch(self, **request: Any) -> Any:
        return self._batch("delete_message_batch", request)

    def change_message_visibility_batch(self, **request: Any) -> Any:
        return self._batch("change_message_visibility_batch", request)

    def receive_message(self, **request: Any) -> Any:
        return self._answer("receive_message", request)

    def get_queue_attributes(self, **request: Any) -> Any:
        return self._answer("get_queue_attributes", request)

    def list_message_move_tasks(self, **request: Any) -> Any:
        return self._answer("list_message_move_tasks", request)

    @property
    def entries(self) -> list[Entry]:
        return [entry for _, request in self.calls for entry in request["Entries"]]

    @property
    def batch_sizes(self) -> list[int]:
        return [len(request["Entries"]) for _, request in self.calls]

    def _answer(self, operation: str, request: dict[str, Any]) -> Any:
        self.calls.append((operation, request))
        answer = self._answers.get(operation, {})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _batch(self, operation: str, request: dict[str, Any]) -> Any:
        entries = request["Entries"]
        self.calls.append((operation, request))
        if error := self.fail(entries):
            raise error
        codes = {entry["Id"]: self.refuse(entry) for entry in entries}
        return {
            "Successful": [
                {"Id": entry["Id"], "MessageId": f"new {entry.get('MessageBody')}"}
                for entry in entries
                if codes[entry["Id"]] is None
            ],
            "Failed": [
                {"Id": name, "Code": code, "Message": "refused", "SenderFault": True}
                for name, code in codes.items()
                if code not in (None, "silence")
            ],
        }


@pytest.fixture
def sqs() -> RecordingSqs:
    return RecordingSqs()


@pytest.fixture
def queues(sqs: RecordingSqs) -> Queues:
    return Queues(sqs, DEPLOYMENT)


def outgoing(letter: Letter | None = None, **changes: Any) -> Outgoing:
    usual: dict[str, Any] = {"letter": letter or a_letter(), "trail": a_trail(), "size_limit": MIB}
    return Outgoing(**usual | changes)


def numbered(count: int, **letter: Any) -> list[Outgoing]:
    return [
        outgoing(a_letter(message_id=f"m{n}", receipt_handle=f"h{n}", **{"body": f"b{n}"} | letter))
        for n in range(count)
    ]


def letters(count: int) -> list[Letter]:
    return [one.letter for one in numbered(count)]


# What is sent.


def test_a_letter_goes_to_its_source_queue_with_its_delay_and_its_trail(
    sqs: RecordingSqs, queues: Queues
) -> None:
    queues.redrive([outgoing(a_letter(body="hello"), delay=timedelta(seconds=59.6))])

    ((operation, request),) = sqs.calls
    assert (operation, request["QueueUrl"]) == ("send_message_batch", "https://sqs/orders")
    assert request["Entries"] == [
        {
            "Id": "0",
            "MessageBody": "hello",
            "DelaySeconds": 60,
            "MessageAttributes": {
                TRAIL_ATTRIBUTE: {"DataType": "String", "StringValue": a_trail().encode()}
            },
        }
    ]


def test_a_parked_letter_goes_to_the_parking_lot_without_a_delay(
    sqs: RecordingSqs, queues: Queues
) -> None:
    queues.park([outgoing()])

    ((_, request),) = sqs.calls
    assert request["QueueUrl"] == "https://sqs/parking-lot"
    assert "DelaySeconds" not in request["Entries"][0]


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "payload": {"DataType": "String.json", "StringValue": "{}"},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00"},
    "count": {"DataType": "Number", "StringValue": "12.50"},
    "price": {"DataType": "Number.eur", "StringValue": "1E+2"},
    "plain": {"DataType": "String", "StringValue": "grün"},
}


def test_every_attribute_keeps_its_exact_type_and_value(sqs: RecordingSqs, queues: Queues) -> None:
    queues.redrive([outgoing(a_letter(attributes=ATTRIBUTES))])

    sent = dict(sqs.entries[0]["MessageAttributes"])
    del sent[TRAIL_ATTRIBUTE]
    assert sent == ATTRIBUTES


def test_the_list_values_that_receive_answers_hold_are_not_sent_back(
    sqs: RecordingSqs, queues: Queues
) -> None:
    """SQS answers with empty StringListValues and refuses them in a request."""
    received = {"DataType": "String", "StringValue": "x", "StringListValues": []}

    queues.redrive([outgoing(a_letter(attributes={"a": received}))])

    assert sqs.entries[0]["MessageAttributes"]["a"] == {"DataType": "String", "StringValue": "x"}


def test_the_message_group_is_passed_on_where_there_is_one(
    sqs: RecordingSqs, queues: Queues
) -> None:
    queues.redrive([outgoing(a_letter(group_id="tenant-7")), outgoing(a_letter())])

    assert sqs.entries[0]["MessageGroupId"] == "tenant-7"
    assert "MessageGroupId" not in sqs.entries[1]


def test_each_entry_carries_its_own_trace_without_its_lineage(
    sqs: RecordingSqs, queues: Queues
) -> None:
    headers = ["Root=1-a;Parent=b;Sampled=1;Lineage=c:15", "Lineage=c:15", None]

    queues.redrive([outgoing(a_letter(trace_header=header)) for header in headers])

    assert [entry.get("MessageSystemAttributes") for entry in sqs.entries] == [
        {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-a;Parent=b;Sampled=1"}},
        None,
        None,
    ]


def test_a_message_with_ten_attributes_is_sent_untouched(sqs: RecordingSqs, queues: Queues) -> None:
    full = {f"a{n}": {"DataType": "String", "StringValue": "1"} for n in range(10)}
    one = outgoing(a_letter(attributes=full))

    queues.redrive([one])

    assert sqs.entries[0]["MessageAttributes"] == full
    assert not one.carries_trail


def test_a_message_that_its_trail_would_make_too_large_is_sent_untouched(
    sqs: RecordingSqs, queues: Queues
) -> None:
    one = outgoing(a_letter(body="x" * 1_000), size_limit=1_024)

    queues.redrive([one])

    assert "MessageAttributes" not in sqs.entries[0]
    assert not one.carries_trail


# How it is cut into calls.


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])], ids=str
)
def test_no_call_has_more_than_ten_entries(
    sqs: RecordingSqs, queues: Queues, count: int, sizes: list[int]
) -> None:
    sent = queues.redrive(numbered(count))
    assert sqs.batch_sizes == sizes
    assert len(sent.new_ids) == count

    sqs.calls.clear()
    queues.delete(letters(count))
    assert sqs.batch_sizes == sizes

    sqs.calls.clear()
    queues.hide((letter, timedelta()) for letter in letters(count))
    assert sqs.batch_sizes == sizes


def test_no_call_is_larger_than_a_mebibyte_attributes_and_trails_included(
    sqs: RecordingSqs, queues: Queues
) -> None:
    blob = {"blob": {"DataType": "Binary", "BinaryValue": b"x" * 150_000}}

    queues.redrive(numbered(10, body="y" * 100_000, attributes=blob))

    for _, request in sqs.calls:
        total = sum(
            len(entry["MessageBody"])
            + sum(
                len(name)
                + len(one["DataType"])
                + len(one.get("StringValue", one.get("BinaryValue")))
                for name, one in entry["MessageAttributes"].items()
            )
            for entry in request["Entries"]
        )
        assert total <= BYTES_PER_CALL
    assert sqs.batch_sizes == [4, 4, 2]


def test_a_letter_of_a_whole_mebibyte_goes_alone(sqs: RecordingSqs, queues: Queues) -> None:
    small = outgoing(a_letter(message_id="s"))

    queues.redrive([small, outgoing(a_letter(message_id="big", body="x" * MIB)), small])

    assert sqs.batch_sizes == [1, 1, 1]


def test_entry_ids_are_unique_within_a_call(sqs: RecordingSqs, queues: Queues) -> None:
    queues.redrive(numbered(10))

    assert len({entry["Id"] for entry in sqs.entries}) == 10


# What is made of the answers.


def test_accepted_letters_are_known_by_their_new_ids(queues: Queues) -> None:
    sent = queues.redrive(numbered(12))

    assert sent.new_ids == {f"m{n}": f"new b{n}" for n in range(12)}
    assert sent.faults == []


def test_every_entry_that_was_not_accepted_is_a_fault_and_the_others_are_sent(
    sqs: RecordingSqs, queues: Queues
) -> None:
    codes = {"b3": "InternalError", "b7": "AWS.SimpleQueueService.Throttled", "b11": "silence"}
    sqs.refuse = lambda entry: codes.get(entry["MessageBody"])

    sent = queues.redrive(numbered(12))

    assert sent.faults == [
        EntryFault(call="SendMessageBatch", key="m3", code="InternalError", detail="refused"),
        EntryFault(call="SendMessageBatch", key="m7", code="Throttled", detail="refused"),
        EntryFault(call="SendMessageBatch", key="m11", code="NoAnswer"),
    ]
    assert set(sent.new_ids) == {f"m{n}" for n in range(12)} - {"m3", "m7", "m11"}


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("delete_message_batch", lambda queues: queues.delete(letters(12))),
        (
            "change_message_visibility_batch",
            lambda queues: queues.hide([(one, timedelta()) for one in letters(12)]),
        ),
    ],
)
def test_letters_that_were_not_deleted_or_hidden_come_back_as_faults(
    sqs: RecordingSqs,
    queues: Queues,
    operation: str,
    call: Callable[[Queues], list[EntryFault]],
) -> None:
    codes = {"h2": "ReceiptHandleIsInvalid", "h11": "silence"}
    sqs.refuse = lambda entry: codes.get(entry["ReceiptHandle"])

    faults = call(queues)

    assert {name for name, _ in sqs.calls} == {operation}
    assert [(fault.key, fault.code) for fault in faults] == [
        ("m2", "ReceiptHandleIsInvalid"),
        ("m11", "NoAnswer"),
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (denial("AccessDenied"), "AccessDenied"),
        (denial("AWS.SimpleQueueService.NonExistentQueue"), "NonExistentQueue"),
        (ReadTimeoutError(endpoint_url="https://sqs"), "ReadTimeoutError"),
    ],
    ids=["denied", "gone", "timed out"],
)
def test_a_call_that_fails_as_a_whole_is_a_fault_of_each_of_its_letters_and_of_no_other(
    sqs: RecordingSqs, queues: Queues, error: Exception, code: str
) -> None:
    sqs.fail = lambda entries: error if entries[0]["MessageBody"] == "b0" else None

    sent = queues.redrive(numbered(12))

    assert [fault.code for fault in sent.faults] == [code] * 10
    assert set(sent.new_ids) == {"m10", "m11"}
    assert sqs.batch_sizes == [10, 2]


@pytest.mark.parametrize("code", sorted(CONTENT_FAULTS))
def test_one_bad_message_that_fails_its_whole_call_is_found_and_the_others_go_through(
    sqs: RecordingSqs, queues: Queues, code: str
) -> None:
    sqs.fail = lambda entries: (
        denial(code) if any(one["MessageBody"] == "b4" for one in entries) else None
    )

    sent = queues.redrive(numbered(10))

    assert [(fault.key, fault.code) for fault in sent.faults] == [("m4", code)]
    assert set(sent.new_ids) == {f"m{n}" for n in range(10)} - {"m4"}


def test_a_letter_is_hidden_for_whole_seconds_and_released_with_zero(
    sqs: RecordingSqs, queues: Queues
) -> None:
    one, other = letters(2)

    queues.hide([(one, timedelta(minutes=3)), (other, timedelta(seconds=-5))])

    assert [entry["VisibilityTimeout"] for entry in sqs.entries] == [180, 0]
    assert [entry["ReceiptHandle"] for entry in sqs.entries] == ["h0", "h1"]
    assert sqs.calls[0][1]["QueueUrl"] == "https://sqs/orders-dlq"


# What is received.


def a_message(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "MessageId": "m1",
        "ReceiptHandle": "h1",
        "Body": "hello",
        "Attributes": {"SentTimestamp": "1767225600500"},
    }
    return usual | changes


def received(message: dict[str, Any]) -> Letter:
    sqs = RecordingSqs(receive_message={"Messages": [message]})
    (letter,) = Queues(sqs, DEPLOYMENT).receive(10, hidden_for=timedelta(minutes=5))
    return letter


def test_receive_asks_for_everything_that_has_to_be_sent_on(
    sqs: RecordingSqs, queues: Queues
) -> None:
    queues.receive(3, hidden_for=timedelta(minutes=5))

    ((_, request),) = sqs.calls
    assert request["QueueUrl"] == "https://sqs/orders-dlq"
    assert request["MaxNumberOfMessages"] == 3
    assert request["VisibilityTimeout"] == 300
    assert request["MessageAttributeNames"] == ["All"]
    assert request["MessageSystemAttributeNames"] == ["All"]
    assert request["WaitTimeSeconds"] > 0


def test_receive_asks_for_no_more_than_ten(sqs: RecordingSqs, queues: Queues) -> None:
    queues.receive(100, hidden_for=timedelta(minutes=5))

    assert sqs.calls[0][1]["MaxNumberOfMessages"] == 10


def test_an_answer_without_messages_is_no_letters(queues: Queues) -> None:
    assert queues.receive(10, hidden_for=timedelta()) == []


def test_a_letter_is_made_of_all_that_sqs_tells() -> None:
    system = {
        "SentTimestamp": "1767225600500",
        "MessageGroupId": "tenant-7",
        "AWSTraceHeader": "Root=1-a",
        "DeadLetterQueueSourceArn": "arn:orders",
    }

    letter = received(a_message(Attributes=system, MessageAttributes=ATTRIBUTES))

    assert letter == Letter(
        message_id="m1",
        receipt_handle="h1",
        body="hello",
        attributes=ATTRIBUTES,
        sent_at=datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
        group_id="tenant-7",
        trace_header="Root=1-a",
        source_arn="arn:orders",
    )


def test_a_trail_is_taken_out_of_the_attributes() -> None:
    trail = a_trail(first_seen=ago(hours=1))
    carried = {TRAIL_ATTRIBUTE: {"DataType": "String", "StringValue": trail.encode()}}

    letter = received(a_message(MessageAttributes=carried | ATTRIBUTES))

    assert letter.trail == trail
    assert letter.attributes == ATTRIBUTES


@pytest.mark.parametrize("text", ["garbage", a_trail(queue="invoices").encode()])
def test_a_trail_that_cannot_be_trusted_stays_among_the_attributes_and_is_told(text: str) -> None:
    carried = {TRAIL_ATTRIBUTE: {"DataType": "String", "StringValue": text}}

    letter = received(a_message(MessageAttributes=carried))

    assert letter.trail is None
    assert letter.trail_fault
    assert letter.attributes == carried


def test_a_redrive_replaces_a_foreign_trail_by_its_own(sqs: RecordingSqs, queues: Queues) -> None:
    foreign = {
        TRAIL_ATTRIBUTE: {
            "DataType": "String",
            "StringValue": a_trail(queue="invoices").encode(),
        }
    }

    queues.redrive([outgoing(a_letter(attributes=foreign))])

    sent = sqs.entries[0]["MessageAttributes"][TRAIL_ATTRIBUTE]["StringValue"]
    assert Trail.decode(sent).queue == QUEUE


# Several source queues that share the DLQ.

SHARED = replace(DEPLOYMENT, further_source_urls=("https://sqs/invoices",))


def test_each_letter_goes_back_to_the_source_queue_that_its_trail_names(sqs: RecordingSqs) -> None:
    letters = [
        outgoing(a_letter(message_id="o", body="order"), trail=a_trail(queue="orders")),
        outgoing(a_letter(message_id="i", body="invoice"), trail=a_trail(queue="invoices")),
        outgoing(a_letter(message_id="p", body="order 2"), trail=a_trail(queue="orders")),
    ]

    sent = Queues(sqs, SHARED).redrive(letters)

    went = {
        request["QueueUrl"]: [entry["MessageBody"] for entry in request["Entries"]]
        for _, request in sqs.calls
    }
    assert went == {
        "https://sqs/orders": ["order", "order 2"],
        "https://sqs/invoices": ["invoice"],
    }
    assert sent.new_ids == {"o": "new order", "i": "new invoice", "p": "new order 2"}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        (INVOICES_ARN, "invoices"),
        (ORDERS_ARN, "orders"),
        ("arn:aws:sqs:eu-west-1:1:unknown", "orders"),
        (None, "orders"),
    ],
)
def test_a_letter_of_no_served_source_goes_by_the_name_of_the_first(
    sqs: RecordingSqs, arn: str | None, name: str
) -> None:
    assert Queues(sqs, SHARED).name_of(arn) == name


@pytest.mark.parametrize(
    ("moved_from", "is_trusted"), [("invoices", True), ("orders", False), (None, True)]
)
def test_a_trail_is_trusted_where_it_names_the_queue_that_the_letter_was_moved_from(
    moved_from: str | None, is_trusted: bool
) -> None:
    attribute = {"DataType": "String", "StringValue": a_trail(queue="invoices").encode()}
    system = {"SentTimestamp": "0"}
    if moved_from:
        system["DeadLetterQueueSourceArn"] = f"arn:aws:sqs:eu-west-1:1:{moved_from}"
    message = a_message(Attributes=system, MessageAttributes={TRAIL_ATTRIBUTE: attribute})
    sqs = RecordingSqs(receive_message={"Messages": [message]})

    (letter,) = Queues(sqs, SHARED).receive(1, hidden_for=timedelta())

    assert (letter.trail is not None) is is_trusted


def test_of_several_sources_the_most_careful_figure_counts() -> None:
    facts = facts_of()
    slow = replace(
        facts,
        arn="arn:slow",
        visible=5,
        max_receive_count=None,
        visibility_timeout=timedelta(minutes=5),
        retention=timedelta(days=2),
        max_message_size=1_024,
    )

    sources = Sources((facts, slow))

    assert (sources.arns, sources.default_arn) == (["arn:orders", "arn:slow"], "arn:orders")
    assert sources.size_limits == {"arn:orders": 262_144, "arn:slow": 1_024}
    assert sources.backlog == 8
    assert sources.retention == timedelta(days=14)
    assert sources.max_receive_count(otherwise=9) == 9
    assert sources.time_to_fail(otherwise=3) == timedelta(minutes=15)


# Facts about queues.


FACTS = {
    "QueueArn": "arn:orders",
    "ApproximateNumberOfMessages": "3",
    "ApproximateNumberOfMessagesNotVisible": "2",
    "ApproximateNumberOfMessagesDelayed": "1",
    "VisibilityTimeout": "30",
    "MessageRetentionPeriod": "1209600",
    "MaximumMessageSize": "262144",
    "RedrivePolicy": '{"deadLetterTargetArn":"arn:orders-dlq","maxReceiveCount":"5"}',
}


def facts_of(**changes: str | None) -> Any:
    attributes = {name: value for name, value in (FACTS | changes).items() if value is not None}
    sqs = RecordingSqs(get_queue_attributes={"Attributes": attributes})
    return Queues(sqs, DEPLOYMENT).dead_letter_queue()


def test_a_queues_facts_are_read_from_its_attributes() -> None:
    facts = facts_of()

    assert (facts.arn, facts.depth, facts.visible) == ("arn:orders", 6, 3)
    assert facts.visibility_timeout == timedelta(seconds=30)
    assert facts.retention == timedelta(days=14)
    assert facts.max_message_size == 262_144
    assert (facts.max_receive_count, facts.dead_letter_arn) == (5, "arn:orders-dlq")


def test_a_queue_without_a_dlq_has_no_receive_count() -> None:
    facts = facts_of(RedrivePolicy=None)

    assert (facts.max_receive_count, facts.dead_letter_arn) == (None, None)


@pytest.mark.parametrize(
    ("call", "url"),
    [
        (Queues.dead_letter_queue, "https://sqs/orders-dlq"),
        (Queues.source_queues, "https://sqs/orders"),
        (Queues.parking_lot, "https://sqs/parking-lot"),
    ],
)
def test_each_queue_is_asked_by_its_own_url(call: Callable[[Queues], Any], url: str) -> None:
    sqs = RecordingSqs(get_queue_attributes={"Attributes": FACTS})

    call(Queues(sqs, DEPLOYMENT))

    assert sqs.calls[0][1]["QueueUrl"] == url


@pytest.mark.parametrize(
    ("status", "is_running"),
    [("RUNNING", True), ("CANCELLING", True), ("COMPLETED", False), ("FAILED", False)],
)
def test_a_native_move_is_noticed_while_it_runs(status: str, is_running: bool) -> None:
    sqs = RecordingSqs(list_message_move_tasks={"Results": [{"Status": status}]})

    assert Queues(sqs, DEPLOYMENT).is_move_running("arn:orders-dlq") is is_running


def test_a_dlq_that_was_never_moved_has_no_move_running(queues: Queues) -> None:
    assert not queues.is_move_running("arn:orders-dlq")


@pytest.mark.parametrize(
    ("operation", "name", "call"),
    [
        ("get_queue_attributes", "GetQueueAttributes", Queues.dead_letter_queue),
        (
            "list_message_move_tasks",
            "ListMessageMoveTasks",
            lambda queues: queues.is_move_running("arn"),
        ),
        (
            "receive_message",
            "ReceiveMessage",
            lambda queues: queues.receive(1, hidden_for=timedelta()),
        ),
    ],
)
def test_a_call_whose_answer_is_needed_fails_by_name(
    operation: str, name: str, call: Callable[[Queues], Any]
) -> None:
    sqs = RecordingSqs(**{operation: denial()})

    with pytest.raises(CallFailed) as failed:
        call(Queues(sqs, DEPLOYMENT))

    assert (failed.value.call, failed.value.code) == (name, "AccessDenied")


# Live traffic.


RECEIVED, DELETED = "NumberOfMessagesReceived", "NumberOfMessagesDeleted"
OLDEST = "ApproximateAgeOfOldestMessage"

Figures = dict[tuple[str, str], list[float]]


class RecordingCloudWatch:
    """A CloudWatch client that knows figures by queue and metric, newest first."""

    def __init__(self, figures: Figures | Exception) -> None:
        self.requests: list[dict[str, Any]] = []
        self._figures = figures

    def get_metric_data(self, **request: Any) -> Any:
        self.requests.append(request)
        if isinstance(self._figures, Exception):
            raise self._figures
        results = []
        for query in request["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            (dimension,) = metric["Dimensions"]
            assert (metric["Namespace"], dimension["Name"]) == ("AWS/SQS", "QueueName")
            figures = self._figures.get((dimension["Value"], metric["MetricName"]), [])
            results.append({"Id": query["Id"], "Values": figures})
        return {"MetricDataResults": results}


def traffic_of(figures: Figures, *arns: str) -> Traffic:
    return LiveTraffic(RecordingCloudWatch(figures)).since(ago(minutes=10), NOW, arns)


def test_live_traffic_sums_what_was_counted_and_takes_the_newest_age() -> None:
    figures: Figures = {
        ("orders", RECEIVED): [3, 4],
        ("orders", DELETED): [1, 2],
        ("orders", OLDEST): [9, 60],
    }

    assert traffic_of(figures, ORDERS_ARN) == Traffic(received=7, deleted=3, oldest_age_seconds=9)


def test_live_traffic_is_asked_for_from_the_whole_minute_of_the_start_to_now() -> None:
    cloudwatch = RecordingCloudWatch({})

    LiveTraffic(cloudwatch).since(ago(minutes=10, seconds=5), NOW, [ORDERS_ARN])

    (request,) = cloudwatch.requests
    assert request["StartTime"] == ago(minutes=11)
    assert request["EndTime"] >= NOW
    assert request["ScanBy"] == "TimestampDescending"


def test_no_figures_are_no_traffic_and_no_age() -> None:
    assert traffic_of({}, ORDERS_ARN) == Traffic(received=0, deleted=0, oldest_age_seconds=None)


def test_of_two_source_queues_the_one_whose_consumer_does_worse_testifies() -> None:
    """Added up, a healthy consumer would testify that the letters of a broken one are poison."""
    figures: Figures = {
        ("orders", RECEIVED): [100],
        ("orders", DELETED): [100],
        ("invoices", RECEIVED): [9],
        ("orders", OLDEST): [5],
        ("invoices", OLDEST): [70],
    }

    traffic = traffic_of(figures, ORDERS_ARN, INVOICES_ARN)

    assert traffic == Traffic(received=9, deleted=0, oldest_age_seconds=70)


def test_a_source_queue_that_is_not_in_use_testifies_nothing() -> None:
    figures: Figures = {("orders", RECEIVED): [100], ("orders", DELETED): [100]}

    assert traffic_of(figures, ORDERS_ARN, INVOICES_ARN) == Traffic(received=100, deleted=100)


def test_figures_that_are_denied_fail_by_name() -> None:
    with pytest.raises(CallFailed, match="GetMetricData: AccessDenied"):
        LiveTraffic(RecordingCloudWatch(denial())).since(NOW, NOW, [ORDERS_ARN])


# The clients.


@pytest.fixture
def in_lambda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment in which botocore adds the function's own trace to every call."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "redrive")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-own;Parent=p;Sampled=1;Lineage=1:own:7")
    return


class Answer:
    """What urllib3 hands to botocore, as far as it looks."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield b"{}"


def headers_of(client: Any, call: Callable[[Any], object]) -> dict[str, str]:
    """The headers of the request that `call` would put on the wire."""
    seen: list[dict[str, str]] = []

    def capture(request: Any, **_: Any) -> AWSResponse:
        # Prepared headers are bytes or text, by where they came from.
        seen.append({name.lower(): str(value) for name, value in request.headers.items()})
        return AWSResponse(request.url, 200, {}, Answer())

    client.meta.events.register("before-send", capture)
    call(client)
    (headers,) = seen
    return headers


def send_batch(client: Any) -> object:
    return client.send_message_batch(
        QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
        Entries=[{"Id": "0", "MessageBody": "hello"}],
    )


@pytest.mark.usefixtures("in_lambda")
def test_a_batch_leaves_lambda_without_the_functions_own_trace() -> None:
    assert "x-amzn-trace-id" not in headers_of(clients.sqs_client(), send_batch)


@pytest.mark.usefixtures("in_lambda")
def test_a_plain_client_would_have_stamped_it() -> None:
    """Proves that the test above tests something: a botocore that stops stamping makes it void."""
    assert "Lineage=1:own:7" in headers_of(boto3.client("sqs"), send_batch)["x-amzn-trace-id"]


@pytest.mark.usefixtures("in_lambda")
@pytest.mark.parametrize(
    "make", [clients.sqs_client, clients.dynamodb_client, clients.cloudwatch_client]
)
def test_no_client_lets_a_hanging_call_eat_the_pass(make: Callable[[], Any]) -> None:
    config = make().meta.config

    longest = config.connect_timeout + config.read_timeout
    assert longest * config.retries["total_max_attempts"] <= 30
