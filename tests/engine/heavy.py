"""An SQS of heavy letters: bodies are made as they are received and weighed as they are sent, and not kept."""

from __future__ import annotations

import threading
from typing import Any

#: The largest message that SQS takes, less room for attributes and the metadata.
BODY_BYTES = 1_048_576 - 4_096


class HeavySqs:
    """The fake's client, but for bodies: each is as large as SQS allows, and a string of its own.

    `in_hand` are the bytes of letters that were received and neither deleted nor released; `most_in_hand` the most
    that these ever were.
    """

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self.most_in_hand = 0
        self.received = 0

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._sqs, operation)

    @property
    def in_hand(self) -> int:
        return sum(self._held.values())

    def receive_message(self, **request: Any) -> Any:
        answer = self._sqs.receive_message(**request)
        for message in answer.get("Messages", ()):
            body = message["Body"] + "." * (BODY_BYTES - len(message["Body"]))
            message["Body"] = body
            with self._lock:
                self.received += 1
                self._held[message["ReceiptHandle"]] = len(body)
                self.most_in_hand = max(self.most_in_hand, self.in_hand)
        return answer

    def send_message_batch(self, **request: Any) -> Any:
        light = [one | {"MessageBody": _light(one["MessageBody"])} for one in request["Entries"]]
        return self._sqs.send_message_batch(**request | {"Entries": light})

    def delete_message_batch(self, **request: Any) -> Any:
        self._let_go(request["Entries"])
        return self._sqs.delete_message_batch(**request)

    def change_message_visibility_batch(self, **request: Any) -> Any:
        self._let_go(request["Entries"])
        return self._sqs.change_message_visibility_batch(**request)

    def _let_go(self, entries: list[dict[str, Any]]) -> None:
        with self._lock:
            for one in entries:
                self._held.pop(one["ReceiptHandle"], None)


def _light(body: str) -> str:
    """The body without what made it heavy. From the front: `rstrip` of a megabyte takes as long as a small pass."""
    end = body.index(".")
    assert body.count(".", end) == BODY_BYTES - end, "not the body that was received"
    return body[:end]
