"""The context managers for pollers: what is reported of a message, and that nothing of it disturbs the poller."""

import asyncio
import copy
import json
import logging
import pickle
import re
import sys
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from math import inf, nan
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from fakes.faults import Wire, nth, on, refuse
from smart_redriver.consumer import PermanentError, Reporter, RetryableError
from smart_redriver.consumer import reporter as reporter_module
from smart_redriver.consumer.quick_sqs import SilentError
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, metadata_attribute
from smart_redriver.engine.reports.outcomes import Consumer, DeliveryOutcome, Result
from tests.consumer.scene import (
    CONSUMER,
    LOT,
    OUTCOMES,
    QUEUE,
    Message,
    Scene,
    results,
    some_metadata,
)

DOCS = (Path(__file__).parents[2] / "docs" / "consumer.md").read_text()
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")
GONE = ConnectionClosedError(endpoint_url="https://sqs")
SLOW = ReadTimeoutError(endpoint_url="https://sqs")


def work(reporter: Reporter, message: Message, error: Exception | None = None) -> None:
    with reporter.message(message, QUEUE):
        if error:
            raise error


def test_a_message_that_was_never_redriven_and_succeeds_costs_no_call(scene: Scene) -> None:
    work(scene.reporter(), scene.message())

    assert scene.calls == []


def test_a_redriven_message_that_succeeds_is_reported_with_its_batch(scene: Scene) -> None:
    message = scene.message(metadata=some_metadata())

    work(scene.reporter(), message)

    assert scene.calls == [OUTCOMES]
    assert scene.outcomes() == [
        DeliveryOutcome(
            queue=QUEUE,
            message_id=message["MessageId"],
            original_id="first",
            result=Result.SUCCEEDED,
            batch=7,
            generation=3,
            receive_count=1,
            consumer=Consumer(**asdict(CONSUMER)),
        )
    ]


def test_a_failure_is_reported_with_its_cause_and_goes_on_to_the_poller(scene: Scene) -> None:
    message = scene.message()

    with pytest.raises(KeyError, match="customer"):
        work(scene.reporter(), message, KeyError("customer"))

    [outcome] = scene.outcomes()
    assert (outcome.result, outcome.original_id) == (Result.FAILED, message["MessageId"])
    assert (outcome.batch, outcome.generation, outcome.permanent) == (None, None, False)
    assert (outcome.error_class, outcome.first_line) == ("KeyError", "'customer'")
    assert outcome.traceback is not None
    assert "raise error" in outcome.traceback
    assert outcome.traceback.endswith("KeyError: 'customer'")


def test_a_batch_of_messages_goes_in_one_report(scene: Scene) -> None:
    redriven, fresh, failing = (
        scene.message(metadata=some_metadata()),
        scene.message(),
        scene.message(),
    )

    with scene.reporter().batch() as batch:
        for message in (redriven, fresh):
            with batch.message(message, QUEUE):
                pass
        with pytest.raises(OSError, match="down"), batch.message(failing, QUEUE):
            raise OSError("down")

    assert scene.calls == [OUTCOMES]
    assert results(scene.outcomes()) == [
        ("first", "succeeded"),
        (failing["MessageId"], "failed"),
    ]


def test_a_batch_is_reported_although_an_error_ends_it(scene: Scene) -> None:
    message = scene.message()

    with (
        pytest.raises(OSError, match="down"),
        scene.reporter().batch() as batch,
        batch.message(message, QUEUE),
    ):
        raise OSError("down")

    assert results(scene.outcomes()) == [(message["MessageId"], "failed")]


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, CancelledError])
def test_work_that_is_ended_from_outside_is_reported_as_interrupted(
    scene: Scene, end: type[BaseException]
) -> None:
    with (
        pytest.raises(end),
        scene.reporter().message(scene.message(metadata=some_metadata()), QUEUE),
    ):
        raise end("a secret")

    [outcome] = scene.outcomes()
    assert (outcome.result, outcome.interrupted) == (Result.FAILED, True)
    assert outcome.error_class == end.__qualname__ or "CancelledError" in str(outcome.error_class)
    assert (outcome.first_line, outcome.traceback, outcome.cause) == (None, None, None)


def test_redrive_metadata_that_was_copied_from_another_queue_is_no_redrive(scene: Scene) -> None:
    message = scene.message(metadata=some_metadata(queue="another"))
    reporter = scene.reporter()

    work(reporter, message)
    assert scene.calls == []
    with pytest.raises(OSError, match="down"):
        work(reporter, message, OSError("down"))

    [outcome] = scene.outcomes()
    assert (outcome.original_id, outcome.batch) == (message["MessageId"], None)


def test_a_queue_may_be_named_by_its_url_or_arn(scene: Scene) -> None:
    for name in (QUEUE, scene.urls[QUEUE], f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}"):
        with scene.reporter().message(scene.message(metadata=some_metadata()), name):
            pass

    assert {one.queue for one in scene.outcomes()} == {QUEUE}


def test_a_message_without_its_system_attributes_is_reported_without_its_count(
    scene: Scene,
) -> None:
    message = scene.message(metadata=some_metadata())
    del message["Attributes"]

    work(scene.reporter(), message)

    [outcome] = scene.outcomes()
    assert outcome.receive_count is None


@pytest.mark.parametrize(
    "fault", [DENIED, SLOW, OSError("odd")], ids=lambda one: type(one).__name__
)
def test_a_report_that_can_not_be_sent_is_logged_and_nothing_else(
    scene: Scene, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    reporter = scene.reporter(on("SendMessage", refuse(fault)))

    work(reporter, scene.message("a secret", metadata=some_metadata()))
    with pytest.raises(OSError, match="down"):
        work(reporter, scene.message("a secret"), OSError("down"))

    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in lines] == [reporter_module.NOT_REPORTED] * 2
    assert "secret" not in caplog.text
    assert scene.outcomes() == []


def test_a_connection_that_was_lost_while_lambda_froze_is_made_anew_once(scene: Scene) -> None:
    reporter = scene.reporter(nth("SendMessage", 0, refuse(GONE)))

    work(reporter, scene.message(metadata=some_metadata()))

    assert scene.calls == [OUTCOMES, OUTCOMES]
    assert results(scene.outcomes()) == [("first", "succeeded")]


def test_a_message_that_makes_no_sense_is_left_to_its_poller(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = {"MessageAttributes": {"RedriveTrail": 5}}
    reporter = scene.reporter()

    work(reporter, broken)
    with pytest.raises(OSError, match="down"):
        work(reporter, broken, OSError("down"))

    assert scene.calls == []
    assert len(caplog.records) == 2


def test_without_an_outcome_queue_nothing_is_reported_and_messages_are_parked_all_the_same(
    scene: Scene,
) -> None:
    reporter = scene.reporter(outcome_queue_url="")

    work(reporter, scene.message(metadata=some_metadata()))
    work(reporter, scene.message("x"), PermanentError("odd"))

    assert scene.calls == [LOT]


def test_with_neither_queue_the_kit_is_not_there(scene: Scene) -> None:
    reporter = Reporter()

    assert not reporter.is_on
    work(reporter, scene.message(metadata=some_metadata()))
    with pytest.raises(json.JSONDecodeError):
        work(reporter, scene.message("{"), json.JSONDecodeError("odd", "{", 1))


def test_in_lambda_its_own_variables_say_who_reports(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter_module, "quick_client", lambda: scene.sqs)
    env = {
        "OUTCOME_QUEUE_URL": scene.urls[OUTCOMES],
        "PARKING_LOT_URL": scene.urls[LOT],
        "AWS_LAMBDA_FUNCTION_NAME": "billing",
        "AWS_LAMBDA_FUNCTION_VERSION": "12",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/billing",
        "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/10/[12]abc",
    }
    reporter = Reporter.from_env(version="v4.2", env=env)

    work(reporter, scene.message(metadata=some_metadata()))

    [outcome] = scene.outcomes()
    assert (outcome.consumer.name, outcome.consumer.version) == ("billing", "v4.2")
    assert outcome.consumer.log_group == "/aws/lambda/billing"
    assert outcome.consumer.log_stream == "2026/01/10/[12]abc"


def test_a_consumer_without_a_region_starts_and_says_that_it_does_not_report(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    caplog.set_level(logging.WARNING)

    reporter = Reporter.from_env(env={"OUTCOME_QUEUE_URL": scene.urls[OUTCOMES]})

    assert not reporter.is_on
    assert caplog.messages == [f"{reporter_module.SWITCHED_OFF}: NoRegionError"]
    work(reporter, scene.message(metadata=some_metadata()))


def test_in_an_event_loop_a_message_is_parked_and_reported_alike(scene: Scene) -> None:
    poison, good = scene.message("never"), scene.message(metadata=some_metadata())

    async def poll() -> None:
        async with scene.reporter().batch() as batch:
            async with batch.message(poison, QUEUE):
                raise PermanentError("no such product")
            async with batch.message(good, QUEUE):
                pass

    asyncio.run(poll())

    assert scene.calls == [LOT, OUTCOMES]
    assert [one.result for one in scene.outcomes()] == [Result.PERMANENT, Result.SUCCEEDED]


def test_a_task_that_is_cancelled_reports_its_message_as_interrupted(scene: Scene) -> None:
    message = scene.message()

    async def work_for_ever() -> None:
        async with scene.reporter().message(message, QUEUE):
            await asyncio.Event().wait()

    async def poll() -> None:
        task = asyncio.create_task(work_for_ever())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(poll())

    assert [one.interrupted for one in scene.outcomes()] == [True]


def test_a_poller_asks_for_all_attributes_and_deletes_what_is_done(scene: Scene) -> None:
    url = scene.urls[QUEUE]
    attributes = {"Tenant": {"DataType": "String", "StringValue": "blue"}}
    for body in ("good", "down", "never"):
        scene.sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    seen = []

    for one in scene.reporter().receive(scene.sqs, url, WaitTimeSeconds=0):
        with one as message:
            seen.append(set(message["MessageAttributes"]))
            if message["Body"] == "down":
                raise OSError("connection refused")
            if message["Body"] == "never":
                raise PermanentError("no such product")

    assert seen == [{"Tenant"}] * 3
    assert scene.calls[-1] == OUTCOMES
    assert scene.calls.count(OUTCOMES) == 1
    assert sorted(one.result.value for one in scene.outcomes()) == ["failed", "permanent"]
    assert [one.body for one in scene.sqs.inspect.messages(QUEUE)] == ["down"]


#: The documented poller that receives and deletes itself.
[OWN_RECEIVE] = [
    code
    for code in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    if "receive_message" in code
]
#: And in an event loop, as the sentence before it says.
IN_A_LOOP = "async def poll():\n" + indent(OWN_RECEIVE.replace("with ", "async with "), "    ")


@pytest.mark.parametrize(
    "code", [OWN_RECEIVE, f"{IN_A_LOOP}\nasyncio.run(poll())"], ids=["plain", "in a loop"]
)
def test_the_documented_poller_goes_on_after_a_failure_and_deletes_what_is_done(
    scene: Scene, code: str
) -> None:
    url = scene.urls[QUEUE]
    for body in ("down", "never", "good"):
        scene.sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageAttributes={"Tenant": {"DataType": "String", "StringValue": "blue"}},
        )
    seen = []

    def act(body: str) -> None:
        seen.append(body)
        if body == "down":
            raise OSError("connection refused")
        if body == "never":
            raise PermanentError("no such product")

    exec(
        code,
        {
            "asyncio": asyncio,
            "reporter": scene.reporter(),
            "sqs": scene.sqs,
            "url": url,
            "work": act,
        },
    )

    assert sorted(seen) == ["down", "good", "never"]
    assert [one.body for one in scene.sqs.inspect.messages(QUEUE)] == ["down"]
    [lot] = scene.receive(LOT)
    assert set(lot["MessageAttributes"]) == {"Tenant", METADATA_ATTRIBUTE}
    assert sorted(one.result.value for one in scene.outcomes()) == ["failed", "permanent"]


def test_a_message_that_can_not_be_deleted_is_no_success(scene: Scene) -> None:
    scene.sqs.send_message(
        QueueUrl=scene.urls[QUEUE],
        MessageBody="good",
        MessageAttributes={METADATA_ATTRIBUTE: metadata_attribute(some_metadata())},
    )
    wire = Wire(on("DeleteMessage", refuse(DENIED)))

    for one in scene.reporter().receive(wire.to(scene.sqs), scene.urls[QUEUE], WaitTimeSeconds=0):
        with one:
            pass

    assert scene.calls == []


@pytest.mark.parametrize("asked", [{}, {"MessageSystemAttributeNames": ["SentTimestamp"]}])
def test_a_poller_of_a_fifo_queue_leaves_a_group_alone_behind_its_failure(
    scene: Scene, asked: dict[str, list[str]]
) -> None:
    url = scene.sqs.create_queue(
        QueueName="orders.fifo",
        Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"},
    )["QueueUrl"]
    for body in ("a1", "a2", "b1"):
        scene.sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=body[0])
    tried = []

    for one in scene.reporter().receive(scene.sqs, url, WaitTimeSeconds=0, **asked):
        with one as message:
            tried.append(message["Body"])
            if message["Body"] == "a1":
                raise OSError("down")

    assert tried == ["a1", "b1"]


def test_a_poller_that_is_stopped_stops(scene: Scene) -> None:
    scene.sqs.send_message(QueueUrl=scene.urls[QUEUE], MessageBody="good")

    [one] = scene.reporter().receive(scene.sqs, scene.urls[QUEUE], WaitTimeSeconds=0)

    with pytest.raises(KeyboardInterrupt), one:
        raise KeyboardInterrupt

    assert len(scene.sqs.inspect.messages(QUEUE)) == 1


def test_the_first_success_after_a_failure_is_reported_once(scene: Scene) -> None:
    reporter = scene.reporter()
    with pytest.raises(OSError, match="down"):
        work(reporter, scene.message(), OSError("down"))
    recovered = scene.message()

    for message in (recovered, scene.message(), scene.message()):
        work(reporter, message)

    assert scene.calls == [OUTCOMES, OUTCOMES]
    assert results(scene.outcomes())[1:] == [(recovered["MessageId"], "succeeded")]


def test_a_recovery_that_could_not_be_reported_is_reported_with_the_next_success(
    scene: Scene,
) -> None:
    reporter = scene.reporter(nth("SendMessage", 1, refuse(DENIED)))
    with pytest.raises(OSError, match="down"):
        work(reporter, scene.message(), OSError("down"))
    work(reporter, scene.message())
    second = scene.message()

    work(reporter, second)

    assert results(scene.outcomes())[1:] == [(second["MessageId"], "succeeded")]


def test_of_what_fails_now_and_then_a_recovery_is_reported_twice_a_minute_at_most(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    reporter = scene.reporter()
    monkeypatch.setattr(reporter, "now", lambda: now[0])

    for _ in range(60):
        now[0] += 1
        with pytest.raises(OSError, match="down"):
            work(reporter, scene.message(), OSError("down"))
        work(reporter, scene.message())

    succeeded = [one for one in scene.outcomes() if one.result is Result.SUCCEEDED]
    assert len(succeeded) == 2


def test_an_error_of_another_kind_than_a_failure_makes_no_recovery(scene: Scene) -> None:
    reporter = scene.reporter()
    work(reporter, scene.message(), PermanentError())
    with pytest.raises(KeyboardInterrupt), reporter.message(scene.message(), QUEUE):
        raise KeyboardInterrupt

    work(reporter, scene.message())

    assert Result.SUCCEEDED not in {one.result for one in scene.outcomes()}


class TooManyRequests(Exception):  # noqa: N818
    """As clients of HTTP services raise it."""

    def __init__(self, **of_answer: Any) -> None:
        super().__init__("429")
        self.response = SimpleNamespace(**of_answer)


SLOW_DOWN = ClientError(
    {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPHeaders": {"retry-after": "7"}}},  # type: ignore[typeddict-item]
    "PutObject",
)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (RetryableError("later", after=90), 90),
        (RetryableError("later", after=1e9), 43_200),
        (RetryableError("later", after=inf), 43_200),
        (RetryableError("now", after=-5), 0),
        (RetryableError("some day", after=nan), None),
        (TooManyRequests(headers={"Retry-After": "120"}), 120),
        (TooManyRequests(headers={"retry-after": "Sat, 10 Jan 2026 12:01:30 GMT"}), 90),
        (TooManyRequests(headers={"Retry-After": "soon"}), None),
        (TooManyRequests(), None),
        (SLOW_DOWN, 7),
        (OSError("down"), None),
    ],
    ids=str,
)
def test_an_error_that_names_a_time_says_when_to_try_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception, seconds: int | None
) -> None:
    monkeypatch.setattr(reporter_module, "time", lambda: scene.clock.now().timestamp())

    with pytest.raises(type(error)):
        work(scene.reporter(), scene.message(), error)

    assert [one.retry_after for one in scene.outcomes()] == [seconds]


def test_the_time_may_be_named_by_the_error_behind_an_error(scene: Scene) -> None:
    error = OSError("charge failed")
    error.__cause__ = RetryableError("later", after=30)

    with pytest.raises(OSError, match="charge"):
        work(scene.reporter(), scene.message(), error)

    assert [one.retry_after for one in scene.outcomes()] == [30]


def test_a_team_may_change_or_drop_what_is_reported(scene: Scene) -> None:
    def before_send(outcome: dict[str, Any]) -> dict[str, Any] | None:
        if outcome["error_class"] == "KeyError":
            return None
        return outcome | {"cause": "the weather", "traceback": "none"}

    reporter = scene.reporter(before_send=before_send)
    with reporter.batch() as batch:
        for error in (KeyError("x"), OSError("down")):
            batch.failed(scene.message(), error, QUEUE)

    assert [(one.error_class, one.cause) for one in scene.outcomes()] == [
        ("OSError", "the weather")
    ]


def test_where_a_teams_own_change_fails_no_text_is_reported(scene: Scene) -> None:
    def before_send(_: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a secret")

    with pytest.raises(OSError, match="down"):
        work(scene.reporter(before_send=before_send), scene.message(), OSError("down"))

    [outcome] = scene.outcomes()
    assert (outcome.error_class, outcome.first_line, outcome.traceback) == ("OSError", None, None)


@pytest.mark.parametrize(
    "before_send", [lambda _: sys.exit(1), lambda outcome: [outcome]], ids=["exit", "no outcome"]
)
def test_no_change_by_a_team_ends_its_consumer_or_spoils_the_report(
    scene: Scene, caplog: pytest.LogCaptureFixture, before_send: Any
) -> None:
    with pytest.raises(OSError, match="down"):
        work(scene.reporter(before_send=before_send), scene.message(), OSError("down"))

    [outcome] = scene.outcomes()
    assert (outcome.error_class, outcome.first_line) == ("OSError", None)
    assert [line.rpartition(": ")[0] for line in caplog.messages] == [
        "outcomes.not_reported: before_send"
    ]


def test_a_change_that_would_have_to_be_awaited_is_refused_where_it_is_given() -> None:
    async def before_send(outcome: dict[str, Any]) -> dict[str, Any]:
        return outcome

    with pytest.raises(TypeError, match="before_send can't be async"):
        Reporter(before_send=before_send)  # type: ignore[arg-type]


def test_an_end_from_outside_while_the_kit_waits_for_a_call_ends_the_consumer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a handler of SIGTERM that calls `sys.exit`."""
    reporter = scene.reporter()
    monkeypatch.setattr(reporter, "call", lambda _: sys.exit(0))

    with pytest.raises(SystemExit):
        work(reporter, scene.message(), OSError("down"))


class BusyError(RetryableError):
    """As a team may write it: with arguments of its own."""

    def __init__(self, service: str) -> None:
        super().__init__(f"{service} is busy", after=5)
        self.service = service


def pickled(error: Exception) -> Exception:
    again: Exception = pickle.loads(pickle.dumps(error))
    return again


@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        PermanentError("no", 7),
        RetryableError("busy", 7, after=5),
        BusyError("billing"),
        SilentError(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_errors_of_the_kit_come_out_of_a_process_pool_as_they_were(
    error: Exception, copied: Callable[[Exception], Exception]
) -> None:
    error.add_note("order 7")

    again = copied(error)

    assert type(again) is type(error)
    assert (again.args, vars(again)) == (error.args, vars(error))


@pytest.mark.parametrize("after", [None, "soon", timedelta(seconds=5)], ids=str)
def test_a_time_that_is_no_number_is_refused_where_it_is_given(after: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        RetryableError("busy", after=after)


def test_a_team_may_report_names_of_classes_only(scene: Scene) -> None:
    with pytest.raises(OSError, match="down"):
        work(scene.reporter(class_names_only=True), scene.message(), OSError("down"))

    [outcome] = scene.outcomes()
    assert (outcome.first_line, outcome.traceback) == (None, None)
    assert (outcome.error_class, outcome.cause) == ("OSError", "OSError in test_pollers.work")
