"""The batch processors: Powertools' own behaviour, with outcomes reported and permanent failures parked beside it."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from aws_lambda_powertools.utilities.batch import (
    async_process_partial_response,
    process_partial_response,
)
from aws_lambda_powertools.utilities.batch.exceptions import BatchProcessingError
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.parser.models import SqsRecordModel
from botocore.exceptions import ClientError

from fakes.faults import Script, nothing, on, refuse
from smart_redriver.consumer import PermanentError, Reporter, idempotency_key
from smart_redriver.consumer.powertools import ReportingFifoProcessor, ReportingProcessor
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.reports.outcomes import Result
from tests.consumer.scene import LOT, OUTCOMES, QUEUE, Message, Scene, results, some_metadata

DOCS = Path(__file__).parents[2] / "docs" / "consumer.md"
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")


@dataclass(frozen=True)
class Context:
    aws_request_id: str = "request-1"


def work(record: SQSRecord) -> None:
    """As the body says: "down", "never", "stop", or JSON."""
    match record.body:
        case "down":
            raise OSError("connection refused")
        case "never":
            raise PermanentError("no such product")
        case "stop":
            raise KeyboardInterrupt
        case _:
            json.loads(record.body)


def invoke(scene: Scene, *records: Message, script: Script = nothing, **options: Any) -> list[str]:
    """One invocation; the ids that it hands back to Lambda."""
    processor = ReportingProcessor(
        scene.reporter(script), raise_on_entire_batch_failure=False, **options
    )
    return run(processor, *records)


def run(processor: Any, *records: Message, context: Any = Context()) -> list[str]:
    answer = process_partial_response(
        event={"Records": list(records)},
        record_handler=work,
        processor=processor,
        context=context,
    )
    return [str(one["itemIdentifier"]) for one in answer["batchItemFailures"]]


def test_an_invocation_that_has_nothing_to_report_makes_no_call(scene: Scene) -> None:
    assert invoke(scene, *(scene.record("{}") for _ in range(10))) == []
    assert scene.calls == []


def test_an_invocation_reports_all_its_outcomes_in_one_call(scene: Scene) -> None:
    redriven = scene.record("{}", metadata=some_metadata())
    again = scene.record("down", metadata=some_metadata(original_id="other"))
    fresh, failing = scene.record("{}"), scene.record("down")

    failures = invoke(scene, redriven, again, fresh, failing)

    assert failures == [again["messageId"], failing["messageId"]]
    assert scene.calls == [OUTCOMES]
    assert results(scene.outcomes()) == [
        ("first", "succeeded"),
        ("other", "failed"),
        (failing["messageId"], "failed"),
    ]
    assert {one.consumer.request_id for one in scene.outcomes()} == {"request-1"}
    assert scene.outcomes()[1].first_line == "connection refused"


def test_each_invocation_reports_its_own(scene: Scene) -> None:
    processor = ReportingProcessor(scene.reporter())

    for original in ("one", "two"):
        run(processor, scene.record("{}", metadata=some_metadata(original_id=original)))

    assert [one.original_id for one in scene.outcomes()] == ["one", "two"]


@pytest.mark.parametrize(
    ("left", "calls"), [(300, []), (1_199, []), (1_200, [LOT, OUTCOMES]), (60_000, [LOT, OUTCOMES])]
)
def test_no_call_is_begun_that_could_outlast_the_invocation(
    scene: Scene, left: int, calls: list[str]
) -> None:
    """Lambda would bring back all of its messages, those that succeeded among them."""
    context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: left)
    good, poison = scene.record("{}", metadata=some_metadata()), scene.record("never")

    failures = run(ReportingProcessor(scene.reporter()), good, poison, context=context)

    assert scene.calls == calls
    assert failures == ([] if calls else [poison["messageId"]])


@pytest.mark.parametrize("context", [None, MagicMock()], ids=["none", "stand-in"])
def test_a_context_that_does_not_tell_the_time_is_no_error(scene: Scene, context: Any) -> None:
    run(
        ReportingProcessor(scene.reporter()),
        scene.record("{}"),
        scene.record("never"),
        context=context,
    )

    assert scene.calls[0] == LOT


@pytest.mark.parametrize("body", ["never", "not JSON"])
def test_a_permanent_failure_is_parked_and_does_not_fail_its_batch(scene: Scene, body: str) -> None:
    binary = {"image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00"}}
    poison, failing = scene.record(body, attributes=binary), scene.record("down")

    failures = invoke(scene, scene.record("{}"), poison, failing)

    assert failures == [failing["messageId"]]
    [parked] = scene.receive(LOT)
    assert parked["Body"] == body
    assert parked["MessageAttributes"].pop(METADATA_ATTRIBUTE)
    assert parked["MessageAttributes"] == binary
    assert scene.outcomes()[0].parked_id == parked["MessageId"]


def test_a_batch_of_nothing_but_permanent_failures_has_no_failure(scene: Scene) -> None:
    processor = ReportingProcessor(scene.reporter())  # raises when all have failed

    assert run(processor, scene.record("never"), scene.record("never")) == []
    assert len(scene.receive(LOT)) == 2


def test_what_can_not_be_parked_is_handed_back(scene: Scene) -> None:
    poison = scene.record("never")

    failures = invoke(scene, poison, script=on("SendMessage", refuse(DENIED)))

    assert failures == [poison["messageId"]]
    assert scene.receive(LOT) == []


def test_outcomes_are_reported_before_powertools_raises_for_a_batch_that_failed_as_a_whole(
    scene: Scene,
) -> None:
    failing = scene.record("down")

    with pytest.raises(BatchProcessingError):
        run(ReportingProcessor(scene.reporter()), failing)

    assert results(scene.outcomes()) == [(failing["messageId"], "failed")]


def test_an_invocation_that_dies_claims_no_success(scene: Scene) -> None:
    with pytest.raises(KeyboardInterrupt):
        invoke(scene, scene.record("{}", metadata=some_metadata()), scene.record("stop"))

    assert [(one.result.value, one.interrupted) for one in scene.outcomes()] == [("failed", True)]


def test_a_report_that_can_not_be_sent_changes_no_answer(scene: Scene) -> None:
    redriven, failing = scene.record("{}", metadata=some_metadata()), scene.record("down")

    failures = invoke(scene, redriven, failing, script=on("SendMessage", refuse(DENIED)))

    assert failures == [failing["messageId"]]


def test_a_message_is_parked_as_it_came_and_not_as_a_model_made_it(scene: Scene) -> None:
    poison, good = scene.record("never"), scene.record("{}", metadata=some_metadata())

    assert invoke(scene, poison, good, model=SqsRecordModel) == []

    assert [one["Body"] for one in scene.receive(LOT)] == ["never"]
    assert results(scene.outcomes()) == [(poison["messageId"], "permanent"), ("first", "succeeded")]


def test_what_does_not_fit_a_model_is_permanent(scene: Scene) -> None:
    class Numbered(SqsRecordModel):
        body: int  # type: ignore[assignment]

    poison = scene.record("no number")

    assert invoke(scene, poison, model=Numbered) == []

    [outcome] = scene.outcomes()
    assert outcome.result is Result.PERMANENT
    assert outcome.error_class == "pydantic_core._pydantic_core.ValidationError"


def test_records_are_worked_on_side_by_side_and_each_is_reported_as_itself(scene: Scene) -> None:
    """What fails is parked while the event loop goes on: the others let the first one end."""
    others = Counter({"done": 0})

    async def work_async(record: SQSRecord) -> None:
        if record.body == "first":
            while others["done"] < 2:
                await asyncio.sleep(0)
        others["done"] += 1
        if record.body == "never":
            raise PermanentError("no such product")
        if record.body == "down":
            raise OSError("connection refused")

    bodies = ("first", "never", "down", "last")
    records = [scene.record(body, metadata=some_metadata(original_id=body)) for body in bodies]

    answer = async_process_partial_response(
        event={"Records": records},
        record_handler=work_async,
        processor=ReportingProcessor(scene.reporter()),  # type: ignore[arg-type]
        context=Context(),  # type: ignore[arg-type]
    )

    assert answer == {"batchItemFailures": [{"itemIdentifier": records[2]["messageId"]}]}
    assert dict(results(scene.outcomes())) == {
        "first": "succeeded", "never": "permanent", "down": "failed", "last": "succeeded"
    }  # fmt: skip
    assert [one["Body"] for one in scene.receive(LOT)] == ["never"]


def test_of_a_fifo_batch_what_was_not_tried_is_not_reported(scene: Scene) -> None:
    records = [scene.record(body, metadata=some_metadata()) for body in ("{}", "down", "{}")]
    processor = ReportingFifoProcessor(scene.reporter())

    failures = run(processor, *records)

    assert failures == [record["messageId"] for record in records[1:]]
    assert [one.result.value for one in scene.outcomes()] == ["succeeded", "failed"]


def test_of_a_fifo_batch_the_rest_goes_on_behind_what_was_parked(scene: Scene) -> None:
    records = [scene.record(body) for body in ("never", "{}", "down")]

    failures = run(ReportingFifoProcessor(scene.reporter()), *records)

    assert failures == [records[2]["messageId"]]
    assert len(scene.receive(LOT)) == 1


def test_without_its_variables_the_processor_is_powertools_own(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OUTCOME_QUEUE_URL", "PARKING_LOT_URL"):
        monkeypatch.delenv(name, raising=False)
    failing = scene.record("never")

    failures = run(
        ReportingProcessor(raise_on_entire_batch_failure=False), failing, scene.record("{}")
    )

    assert failures == [failing["messageId"]]


def test_the_documented_function_works(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporter, "from_env", lambda: scene.reporter())
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert code
    documented: dict[str, Any] = {}
    exec(code[1], documented)
    good, poison = scene.record('{"items": [1]}'), scene.record('{"items": []}')
    failing = scene.record("{}")

    answer = documented["lambda_handler"]({"Records": [good, poison, failing]}, Context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": failing["messageId"]}]}
    assert scene.calls == [LOT, OUTCOMES]


def test_the_idempotency_key_is_the_id_before_any_redrive(scene: Scene) -> None:
    message = scene.message(metadata=some_metadata())
    fresh, copied = scene.message(), scene.message(metadata=some_metadata(queue="another"))

    assert idempotency_key(message, QUEUE) == "first"
    assert idempotency_key(SQSRecord(scene.record(metadata=some_metadata()))) == "first"
    assert idempotency_key(fresh, QUEUE) == fresh["MessageId"]
    assert idempotency_key(copied, QUEUE) == copied["MessageId"]


@pytest.mark.parametrize("metadata", [None, some_metadata()], ids=["never redriven", "redriven"])
def test_a_message_that_may_be_redriven_needs_the_name_of_its_queue(
    scene: Scene, metadata: RedriveMetadata | None
) -> None:
    """A consumer that forgets it fails at its first message, and not when letters come back to it."""
    with pytest.raises(ValueError, match="give it"):
        idempotency_key(scene.message(metadata=metadata))
