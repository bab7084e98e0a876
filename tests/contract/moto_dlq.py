"""Teaches moto the one thing it lacks that the re-driver reads: DeadLetterQueueSourceArn.

AWS sets this system attribute on every message it moves to a DLQ; moto 5.2.5 does not know it.
The patch notes the source queue of each message that a receive moves, and adds the attribute to
ReceiveMessage answers that ask for it. It leans on moto's internals, so it checks the version.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any
from unittest.mock import patch

from moto.sqs.models import Message, Queue, SQSBackend
from moto.sqs.responses import SQSResponse

KNOWN_VERSION = "5.2.5"
ATTRIBUTE = "DeadLetterQueueSourceArn"


@contextmanager
def dead_letter_source_arns() -> Iterator[None]:
    """Let moto tell, inside this context, which queue a dead letter came from."""
    assert version("moto") == KNOWN_VERSION, "check that this patch still fits moto, or drop it"
    source_arns: dict[str, str] = {}
    receive: Any = SQSBackend.receive_message
    answer: Any = SQSResponse.receive_message

    def receive_and_note(backend: SQSBackend, queue_name: str, *args: Any, **kwargs: Any) -> Any:
        queue = backend.get_queue(queue_name)
        before = {message.id for message in _dead_letters(queue)}
        received = receive(backend, queue_name, *args, **kwargs)
        for message in _dead_letters(queue):
            if message.id not in before:
                source_arns[message.id] = queue.queue_arn
        return received

    def answer_with_source(response: SQSResponse) -> Any:
        answered = answer(response)
        asked = set(response._get_param("MessageSystemAttributeNames") or ())
        if asked & {"All", ATTRIBUTE}:
            for message in answered.result.get("Messages") or ():
                if message["MessageId"] in source_arns:
                    attributes = message.setdefault("Attributes", {})
                    attributes[ATTRIBUTE] = source_arns[message["MessageId"]]
        return answered

    with (
        patch.object(SQSBackend, "receive_message", receive_and_note),
        patch.object(SQSResponse, "receive_message", answer_with_source),
    ):
        yield


def _dead_letters(queue: Queue) -> list[Message]:
    target = queue.dead_letter_queue
    return list(target._messages) if target else []
