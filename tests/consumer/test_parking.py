"""Permanent errors: which they are, and that the message is in the parking lot before it is done."""

import asyncio
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from random import Random
from threading import Lock
from typing import Any

import pydantic
import pytest
from botocore.exceptions import ClientError

from fakes.faults import Crash, die_after, die_before, lose_answer, nth, on, refuse
from smart_redriver.consumer import PERMANENT, PermanentError, Reporter, quick_sqs
from smart_redriver.consumer.errors import is_permanent
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.reports.outcomes import Result
from tests.consumer.scene import LOT, OUTCOMES, QUEUE, Message, Scene, Unhurried, some_metadata

DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")
ATTRIBUTES = {
    "payload": {"DataType": "String.json", "StringValue": "{}"},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00"},
    "price": {"DataType": "Number.eur", "StringValue": "12.5"},
}
MIB = 1_048_576


class Order(pydantic.BaseModel):
    quantity: int


def error_of(act: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what is asked
        act()
    return caught.value


def give_up(reporter: Reporter, message: Message) -> None:
    with reporter.message(message, QUEUE):
        raise PermanentError("no such product")


def parked(scene: Scene) -> Message:
    [message] = scene.receive(LOT)
    return message


def test_a_permanent_failure_is_parked_and_done(scene: Scene) -> None:
    message = scene.message(
        "a body", metadata=some_metadata(), attributes=ATTRIBUTES, MessageGroupId="7"
    )

    give_up(scene.reporter(), message)

    there = parked(scene)
    metadata = there["MessageAttributes"].pop(METADATA_ATTRIBUTE)["StringValue"]
    assert (there["Body"], there["MessageAttributes"]) == ("a body", ATTRIBUTES)
    assert there["Attributes"]["MessageGroupId"] == "7"
    assert RedriveMetadata.decode(metadata) == some_metadata()
    assert json.loads(metadata)["why"].startswith("PERMANENT: smart_redriver.consumer.errors.Perm")
    assert json.loads(metadata)["why"].endswith(": no such product")
    [outcome] = scene.outcomes()
    assert (outcome.result, outcome.permanent) == (Result.PERMANENT, True)
    assert (outcome.parked_id, outcome.original_id) == (there["MessageId"], "first")
    assert outcome.first_line == "no such product"


def test_a_parked_message_is_in_the_consumers_log(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    message = scene.message()

    give_up(scene.reporter(), message)

    assert caplog.messages == [
        f"message.parked: {message['MessageId']}: "
        "smart_redriver.consumer.errors.PermanentError: no such product"
    ]


def test_a_message_that_was_never_redriven_gets_metadata_of_its_own(scene: Scene) -> None:
    message = scene.message()

    give_up(scene.reporter(), message)

    metadata = RedriveMetadata.decode(
        parked(scene)["MessageAttributes"][METADATA_ATTRIBUTE]["StringValue"]
    )
    assert (metadata.queue, metadata.original_id) == (QUEUE, message["MessageId"])
    assert (metadata.redrive_count, metadata.batch, metadata.generation) == (0, 0, 0)
    assert metadata.first_seen == scene.clock.now()


@pytest.mark.parametrize(
    ("body", "attributes"),
    [
        ("a body", {f"a{n}": {"DataType": "String", "StringValue": "x"} for n in range(10)}),
        ("x" * (MIB - 40), {}),
    ],
    ids=["ten attributes", "no bytes left"],
)
def test_a_message_without_room_for_metadata_is_parked_without(
    scene: Scene, body: str, attributes: dict[str, Any]
) -> None:
    give_up(scene.reporter(), scene.message(body, attributes=attributes))

    there = parked(scene)
    assert (there["Body"], there.get("MessageAttributes", {})) == (body, attributes)


def test_the_trace_goes_on_without_the_count_of_hops(scene: Scene) -> None:
    header = {"DataType": "String", "StringValue": "Root=1-5;Sampled=1;Lineage=a:16"}
    message = scene.message(MessageSystemAttributes={"AWSTraceHeader": header})

    give_up(scene.reporter(), message)

    assert parked(scene)["Attributes"]["AWSTraceHeader"] == "Root=1-5;Sampled=1"


@pytest.mark.parametrize("group", [None, "customer-7"])
def test_in_a_fifo_parking_lot_a_message_keeps_its_group_and_is_there_once(
    group: str | None,
) -> None:
    sent: list[dict[str, Any]] = []

    class Fifo:
        def send_message(self, **request: Any) -> dict[str, str]:
            sent.append(request)
            return {"MessageId": "parked"}

    reporter = Reporter(parking_lot_url="https://sqs/1/lot.fifo", client=Fifo())
    give_up(
        reporter,
        {
            "MessageId": "m1",
            "Body": "a body",
            "Attributes": {"MessageGroupId": group} if group else {},
        },
    )

    assert (sent[0]["MessageGroupId"], sent[0]["MessageDeduplicationId"]) == (group or QUEUE, "m1")


@pytest.mark.parametrize(
    "script",
    [nth("SendMessage", 0, refuse(DENIED)), nth("SendMessage", 0, refuse(OSError("odd")))],
    ids=["refused", "unreachable"],
)
def test_what_can_not_be_parked_fails_like_any_other_message_and_is_told_to_be_permanent(
    scene: Scene, script: Any
) -> None:
    with pytest.raises(PermanentError):
        give_up(scene.reporter(script), scene.message())

    assert scene.receive(LOT) == []
    [outcome] = scene.outcomes()
    assert (outcome.result, outcome.permanent, outcome.parked_id) == (Result.FAILED, True, None)


def test_a_parking_lot_that_refuses_is_asked_once_for_a_batch(scene: Scene) -> None:
    messages = [scene.message() for _ in range(3)]

    with scene.reporter(nth("SendMessage", 0, refuse(DENIED))).batch() as batch:
        assert [batch.failed(one, PermanentError(), QUEUE) for one in messages] == [False] * 3

    assert scene.calls == [LOT, OUTCOMES]
    assert [one.permanent for one in scene.outcomes()] == [True] * 3


def test_without_a_parking_lot_a_permanent_failure_is_one_like_others(scene: Scene) -> None:
    with pytest.raises(PermanentError):
        give_up(scene.reporter(parking_lot_url=""), scene.message())

    assert scene.calls == [OUTCOMES]


def test_a_message_whose_parking_was_not_answered_fails_and_is_there_twice_at_worst(
    scene: Scene,
) -> None:
    message = scene.message()
    lost = nth("SendMessage", 0, lose_answer(OSError("no answer")))

    with pytest.raises(PermanentError):
        give_up(scene.reporter(lost), message)
    give_up(scene.reporter(), message)

    assert len(scene.receive(LOT)) == 2


@pytest.mark.parametrize("mishap", [die_before, die_after])
@pytest.mark.parametrize("call", [0, 1])
def test_a_consumer_that_dies_at_any_of_its_calls_loses_nothing(
    scene: Scene, mishap: Any, call: int
) -> None:
    """The poller deletes after the kit is done, and so not here: the message comes back."""
    message = scene.message(metadata=some_metadata())

    with pytest.raises(Crash):
        give_up(scene.reporter(nth("SendMessage", call, mishap)), message)

    give_up(scene.reporter(), message)
    copies = scene.receive(LOT)
    assert {one["Body"] for one in copies} == {"a body"}
    assert len(copies) == (1 if (call, mishap) == (0, die_before) else 2)
    assert scene.outcomes()[-1].parked_id in {one["MessageId"] for one in copies}


def test_an_error_by_its_class_is_permanent_or_not() -> None:
    class NoSuchProductError(PermanentError):
        pass

    body = '{"quantity": "many"'
    not_json = error_of(lambda: json.loads(body))
    no_order = error_of(lambda: Order.model_validate({"quantity": "many"}))

    assert is_permanent(NoSuchProductError(), body)
    assert is_permanent(not_json, body)
    assert is_permanent(no_order, body)
    assert not is_permanent(ValueError("declined"), body)
    assert not is_permanent(OSError("down"), body)


def test_an_answer_that_is_no_json_is_not_the_messages_fault() -> None:
    """A service that is down answers with a page of HTML: good messages would be parked for it."""
    error = error_of(lambda: json.loads("<h1>502 Bad Gateway</h1>"))

    assert not is_permanent(error, '{"quantity": 1}')


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_bytes_of_the_message_that_are_no_text_are_its_fault(
    encode: Callable[[bytes], bytes],
) -> None:
    data = b"\xfb\xef\xff an order"
    error = error_of(data.decode)

    assert is_permanent(error, json.dumps({"order": encode(data).decode()}))
    assert is_permanent(error, encode(data).decode().rstrip("="))


@pytest.mark.parametrize(
    "page", ["<h1>Passerelle erronée</h1>".encode("latin-1"), b"\xe9", b"\x1f\x8b\x08"]
)
def test_an_answer_that_is_no_text_is_not_the_messages_fault(page: bytes) -> None:
    """As that of a service that is down, and answers in its own language or packed."""
    error = error_of(lambda: json.loads(page))

    assert isinstance(error, UnicodeDecodeError)
    assert not is_permanent(error, '{"quantity": 1, "code": "6Q"}')


def test_each_error_in_nested_groups_is_judged_once() -> None:
    class Kind(type):
        asked = 0

        def __instancecheck__(cls, error: object) -> bool:
            cls.asked += 1
            return type(error) is PermanentError

    class Judged(BaseException, metaclass=Kind):
        pass

    never: Exception = PermanentError()
    for _ in range(5):
        never = ExceptionGroup("many", [never] * 20)

    assert is_permanent(never, "a body", (Judged,))
    assert Judged.asked == 6
    assert not is_permanent(ExceptionGroup("both", [never, OSError("down")]), "a body")


def test_a_consumer_says_itself_what_is_permanent(scene: Scene) -> None:
    class Declined(Exception):  # noqa: N818
        pass

    reporter = scene.reporter(permanent=(*PERMANENT, Declined, "tests.NoName"))
    for error in (Declined(), PermanentError()):
        with reporter.message(scene.message(), QUEUE):
            raise error

    with pytest.raises(PermanentError):
        give_up(scene.reporter(permanent=(Declined,)), scene.message())
    assert len(scene.receive(LOT)) == 2


@pytest.mark.parametrize("given", [PermanentError, "marshmallow.ValidationError"], ids=str)
def test_one_permanent_error_without_its_tuple_is_refused_where_it_is_given(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^permanent=.*: give a tuple of errors, also for one$"):
        Reporter(permanent=given)


@pytest.mark.parametrize("given", [dict, PermanentError(), None], ids=str)
def test_a_permanent_error_that_is_none_is_refused_where_it_is_given(given: Any) -> None:
    with pytest.raises(TypeError, match="is neither an error's class nor a name"):
        Reporter(permanent=(PermanentError, given))


def test_a_client_that_gives_no_answer_parks_nothing_and_its_consumer_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A stand-in of a team's tests may return nothing."""

    class Mute:
        def send_message(self, **_: Any) -> None:
            pass

    reporter = Reporter(outcome_queue_url="https://o", parking_lot_url="https://p", client=Mute())

    with pytest.raises(PermanentError):
        give_up(reporter, {"MessageId": "m", "Body": "b", "Attributes": {}})

    assert caplog.messages == ["message.not_parked: m: TypeError"]


@pytest.mark.parametrize("has_attributes", [True, False])
def test_a_message_received_without_its_attributes_is_not_parked_without_them(
    scene: Scene, caplog: pytest.LogCaptureFixture, has_attributes: bool
) -> None:
    """Its parked copy would have no attributes and no group, and its poller would delete the original."""
    message = scene.message(attributes=ATTRIBUTES if has_attributes else {}, MessageGroupId="7")
    message.pop("MessageAttributes", None)
    del message["Attributes"]

    with pytest.raises(PermanentError):
        give_up(scene.reporter(), message)

    assert scene.calls == [OUTCOMES]
    [outcome] = scene.outcomes()
    assert (outcome.result, outcome.permanent, outcome.parked_id) == (Result.FAILED, True, None)
    assert caplog.messages == [
        f"message.not_parked: {message['MessageId']}: received without attributes; receive_message "
        'needs MessageAttributeNames=["All"] and MessageSystemAttributeNames=["All"]'
    ]


def test_a_message_without_attributes_is_no_fault_where_there_is_no_parking_lot(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    message = scene.message()
    del message["Attributes"]

    with pytest.raises(PermanentError):
        give_up(scene.reporter(parking_lot_url=""), message)

    assert caplog.messages == []


def test_a_batch_of_permanent_failures_is_parked_message_by_message(scene: Scene) -> None:
    messages = [scene.message(f"body {n}") for n in range(10)]
    Random(1).shuffle(messages)

    with scene.reporter().batch() as batch:
        assert all(batch.failed(one, PermanentError(), QUEUE) for one in messages)

    assert scene.calls == [LOT] * 10 + [OUTCOMES]
    assert {one["Body"] for one in scene.receive(LOT)} == {f"body {n}" for n in range(10)}


def test_a_parking_lot_over_a_wire_that_is_always_bad_never_takes_a_message_from_its_queue(
    scene: Scene,
) -> None:
    with pytest.raises(PermanentError):
        give_up(scene.reporter(on("SendMessage", refuse(DENIED))), scene.message())

    assert (scene.receive(LOT), scene.outcomes()) == ([], [])


class Unhasty:
    """An SQS client each of whose calls takes 3% of the time for parking, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.bodies: list[str] = []
        self._lock = Lock()

    def send_message(self, **request: Any) -> dict[str, str]:
        with self._lock:
            self.now += 0.03 * Unhurried.deadline
            self.bodies.append(request["MessageBody"])
            return {"MessageId": f"sent-{len(self.bodies)}"}


@pytest.fixture
def unhasty(monkeypatch: pytest.MonkeyPatch) -> Unhasty:
    client = Unhasty()
    monkeypatch.setattr(quick_sqs, "monotonic", lambda: client.now)
    return client


MANY: list[Message] = [
    {"MessageId": f"m{n}", "Body": f"m{n}", "Attributes": {}} for n in range(100)
]


def test_of_many_messages_at_once_just_those_are_returned_whose_parking_was_not_begun(
    unhasty: Unhasty,
) -> None:
    reporter = Unhurried(
        parking_lot_url="https://sqs/1/lot", outcome_queue_url="https://sqs/1/o", client=unhasty
    )

    async def work() -> set[str]:
        async with reporter.batch() as batch:
            failed = [batch.failed_async(one, PermanentError(), QUEUE) for one in MANY]
            done = await asyncio.gather(*failed)
        return {one["Body"] for one, is_parked in zip(MANY, done, strict=True) if is_parked}

    parked = asyncio.run(work())

    *bodies, report = unhasty.bodies
    assert len(bodies) == len(parked)
    assert set(bodies) == parked
    # Begun in the first half, but ten that were under way then.
    assert 17 <= len(bodies) <= 27
    told = {one["message_id"] for one in json.loads(report)["outcomes"] if "parked_id" in one}
    assert told == parked


def test_of_many_messages_one_by_one_no_parking_begins_in_the_second_half_of_its_time(
    unhasty: Unhasty,
) -> None:
    reporter = Unhurried(parking_lot_url="https://sqs/1/lot", client=unhasty)

    with reporter.batch() as batch:
        done = [batch.failed(one, PermanentError(), QUEUE) for one in MANY]

    assert done == [True] * 17 + [False] * 83
    assert len(unhasty.bodies) == 17


def test_time_at_work_between_messages_is_not_time_for_parking(unhasty: Unhasty) -> None:
    reporter = Unhurried(parking_lot_url="https://sqs/1/lot", client=unhasty)

    with reporter.batch() as batch:
        for one in MANY[:10]:
            unhasty.now += Unhurried.deadline
            assert batch.failed(one, PermanentError(), QUEUE)
