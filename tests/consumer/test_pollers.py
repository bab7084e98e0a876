"""The context managers for pollers: what is reported of a message, and that nothing of it disturbs the poller."""

import json
import logging
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from fakes.faults import nth, on, refuse
from redrive.core.outcomes import DeliveryOutcome, Result
from smart_redriver.consumer import PermanentError, Reporter
from smart_redriver.consumer import reporter as reporter_module
from tests.consumer.scene import CONSUMER, LOT, OUTCOMES, QUEUE, Message, Scene, a_trail, results

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
    message = scene.message(trail=a_trail())

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
            consumer=CONSUMER,
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
    redriven, fresh, failing = scene.message(trail=a_trail()), scene.message(), scene.message()

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


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_poller_that_is_stopped_says_nothing_of_the_message_in_hand(
    scene: Scene, end: type[BaseException]
) -> None:
    with pytest.raises(end), scene.reporter().message(scene.message(trail=a_trail()), QUEUE):
        raise end

    assert scene.calls == []


def test_a_trail_that_was_copied_from_another_queue_is_no_redrive(scene: Scene) -> None:
    message = scene.message(trail=a_trail(queue="another"))
    reporter = scene.reporter()

    work(reporter, message)
    assert scene.calls == []
    with pytest.raises(OSError, match="down"):
        work(reporter, message, OSError("down"))

    [outcome] = scene.outcomes()
    assert (outcome.original_id, outcome.batch) == (message["MessageId"], None)


def test_a_queue_may_be_named_by_its_url_or_arn(scene: Scene) -> None:
    for name in (QUEUE, scene.urls[QUEUE], f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}"):
        with scene.reporter().message(scene.message(trail=a_trail()), name):
            pass

    assert {one.queue for one in scene.outcomes()} == {QUEUE}


def test_a_message_without_its_system_attributes_is_reported_without_its_count(
    scene: Scene,
) -> None:
    message = scene.message(trail=a_trail())
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

    work(reporter, scene.message("a secret", trail=a_trail()))
    with pytest.raises(OSError, match="down"):
        work(reporter, scene.message("a secret"), OSError("down"))

    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0] for line in lines] == [reporter_module.NOT_REPORTED] * 2
    assert "secret" not in caplog.text
    assert scene.outcomes() == []


def test_a_connection_that_was_lost_while_lambda_froze_is_made_anew_once(scene: Scene) -> None:
    reporter = scene.reporter(nth("SendMessage", 0, refuse(GONE)))

    work(reporter, scene.message(trail=a_trail()))

    assert scene.calls == [OUTCOMES, OUTCOMES]
    assert results(scene.outcomes()) == [("first", "succeeded")]


def test_no_second_try_begins_when_the_first_took_its_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = iter([0.0, 0.0, 0.5, 0.5])
    monkeypatch.setattr(reporter_module, "monotonic", lambda: next(at))
    monkeypatch.setattr("smart_redriver.consumer.quick_sqs.monotonic", lambda: next(at))
    reporter = scene.reporter(on("SendMessage", refuse(SLOW)))

    work(reporter, scene.message(trail=a_trail()))

    assert scene.calls == [OUTCOMES]


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

    work(reporter, scene.message(trail=a_trail()))
    work(reporter, scene.message("x"), PermanentError("odd"))

    assert scene.calls == [LOT]


def test_with_neither_queue_the_kit_is_not_there(scene: Scene) -> None:
    reporter = Reporter()

    assert not reporter.is_on
    work(reporter, scene.message(trail=a_trail()))
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

    work(reporter, scene.message(trail=a_trail()))

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
    work(reporter, scene.message(trail=a_trail()))
