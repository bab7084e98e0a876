"""A client of a target's service that records what it is asked, and answers as it is told."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing
from tests.unit.examples import some_metadata

ANSWERS: dict[str, dict[str, Any]] = {
    "invoke": {"StatusCode": 202},
    "put_record": {"RecordId": "a" * 200},
    "start_execution": {"executionArn": "arn"},
    "publish": {"MessageId": "published"},
    "get_queue_url": {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"},
}


class Recording:
    """`fail` says for the number of a call, from 0 on, the code that it is refused with."""

    def __init__(self, fail: Callable[[int], str | None] = lambda number: None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._fail = fail

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**request: Any) -> dict[str, Any]:
            number = len(self.calls)
            self.calls.append((operation, request))
            if code := self._fail(number):
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, operation)
            metadata = {"RequestId": f"request-{number}", "HTTPStatusCode": 200}
            return ANSWERS[operation] | {"ResponseMetadata": metadata}

        return call


def going(*letters: Letter) -> list[Outgoing]:
    return [Outgoing(letter=one, metadata=some_metadata(), size_limit=1_048_576) for one in letters]
