"""Clients that are not as they should be."""

from typing import Any

from botocore.exceptions import ClientError


class Client:
    """The real SQS client, but for what a subclass says of one of its operations."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._sqs, operation)


class DeliversTwice(Client):
    """SQS delivers at least once: each message of an answer comes twice."""

    def receive_message(self, **request: Any) -> Any:
        messages = self._sqs.receive_message(**request).get("Messages", [])
        return {"Messages": [*messages, *messages]}


class Refuses(Client):
    """A queue that may not be sent to any more."""

    def __init__(self, sqs: Any, code: str) -> None:
        super().__init__(sqs)
        self._code = code

    def send_message_batch(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "SendMessageBatch")
