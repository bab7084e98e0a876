"""The Python kit by the vectors that every kit has to pass, and the kit for Node by the same."""

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from smart_redriver.consumer import Consumer, PermanentError, RetryableError, idempotency_key
from smart_redriver.consumer.delivery import METADATA_ATTRIBUTE, delivery_of
from smart_redriver.consumer.errors import seconds_of
from smart_redriver.consumer.failure import Failure, Frame, cause_of, first_line_of
from smart_redriver.consumer.report import parking_request, reports
from smart_redriver.consumer.scrub import without_body, without_secrets
from tests.consumer.scene import Unhurried

ROOT = Path(__file__).parents[2]
VECTORS = json.loads(
    (ROOT / "packages" / "conformance" / "vectors.json").read_text(encoding="utf-8")
)
#: What a kit tells of an outcome in every language; names of classes and functions are the language's own.
COMMON = (
    "queue", "message_id", "original_id", "result", "batch", "generation", "receive_count", "permanent", "parked_id",
    "retry_after", "first_line",
)  # fmt: skip
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")


def parked(given: dict[str, Any]) -> dict[str, Any]:
    failure = Failure(**given["failure"], cause="", traceback="")
    delivery = delivery_of(given["message"], given["queue"])
    return parking_request(given["url"], delivery, failure, datetime.fromtimestamp(0, UTC))


#: By section of the file: what a kit makes of an input.
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "without_secrets": lambda given: without_secrets(given["text"], is_code=given["is_code"]),
    "without_body": lambda given: without_body(**given),
    "first_line": lambda given: first_line_of(given["message"], given["body"]),
    "cause": lambda given: cause_of(
        given["error_class"],
        given["first_line"],
        [Frame(**one) for one in given["frames"]],
        given["language"],
    ),
    "idempotency_key": lambda given: idempotency_key(given["message"], given["queue"]),
    "retry_after": lambda given: seconds_of(
        given["header"], datetime.fromisoformat(given["now"])
    ),
    "reports": lambda given: list(reports(Consumer(**given["consumer"]), given["outcomes"])),
    "report_sizes": lambda given: [
        len(body) for body in reports(Consumer(), [given["outcome"]] * given["times"])
    ],
    "parking": parked,
}  # fmt: skip


@pytest.mark.parametrize("section", ANSWERS)
def test_the_kit_answers_as_the_vectors_say(section: str) -> None:
    answers = [ANSWERS[section](one["given"]) for one in VECTORS[section]]

    assert answers == [one["answer"] for one in VECTORS[section]]


class Sqs:
    """Answers as it is told, then with ids."""

    def __init__(self, refused: list[int]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._refused = refused

    def send_message(self, **request: Any) -> dict[str, str]:
        self.requests.append(request)
        number = len(self.requests) - 1
        if number in self._refused:
            raise DENIED
        return {"MessageId": f"sent-{number}"}


class Stepping(Unhurried):
    """On a clock that is told the time."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds


def error_of(given: dict[str, Any]) -> Exception:
    match given["kind"]:
        case "permanent":
            return PermanentError(given["message"])
        case "retryable":
            return RetryableError(given["message"], after=given["after"])
        case "group":
            return ExceptionGroup(given["message"], [error_of(one) for one in given["errors"]])
    return RuntimeError(given["message"])


def calls_of(given: dict[str, Any]) -> list[dict[str, Any]]:
    """What a kit sends in the course of some batches."""
    sqs = Sqs(given["refused"])
    reporter = Stepping(client=sqs, **given["settings"])
    for step in given["batches"]:
        reporter.seconds += step["seconds"]
        with reporter.batch() as batch:
            for one in step["messages"]:
                if one["error"] is None:
                    batch.succeeded(one["message"], one["queue"])
                else:
                    batch.failed(one["message"], error_of(one["error"]), one["queue"])
    return [common(request) for request in sqs.requests]


def common(request: dict[str, Any]) -> dict[str, Any]:
    attributes = request.get("MessageAttributes", {})
    if METADATA_ATTRIBUTE in attributes:
        metadata = json.loads(attributes[METADATA_ATTRIBUTE]["StringValue"])
        del metadata["why"]
        return {"to": request["QueueUrl"], "body": request["MessageBody"], "trail": metadata}
    outcomes = json.loads(request["MessageBody"])["outcomes"]
    told = [{name: one[name] for name in COMMON if name in one} for one in outcomes]
    return {"to": request["QueueUrl"], "outcomes": told}


@pytest.mark.parametrize("vector", VECTORS["decisions"], ids=lambda one: one["name"])
def test_the_kit_decides_as_the_vectors_say(vector: dict[str, Any]) -> None:
    assert calls_of(vector["given"]) == vector["answer"]


def test_the_kit_for_node_passes_its_tests_and_the_same_vectors() -> None:
    kit = ROOT / "packages" / "consumer-node"
    done = subprocess.run(
        [
            ROOT / "node_modules" / ".bin" / "node",
            "--test",
            "--test-reporter=tap",
            *sorted((kit / "test").glob("*.test.mjs")),
        ],
        cwd=kit,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:]
    assert "# fail 0" in done.stdout
