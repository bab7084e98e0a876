"""An SQS client that records what it is asked, and letters to send with it."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing
from tests.unit.examples import a_letter, some_metadata

Entry = dict[str, Any]
MIB = 1_048_576

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "payload": {"DataType": "String.json", "StringValue": "{}"},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00"},
    "count": {"DataType": "Number", "StringValue": "12.50"},
    "price": {"DataType": "Number.eur", "StringValue": "1E+2"},
    "plain": {"DataType": "String", "StringValue": "grün"},
}


def denial(code: str = "AccessDenied", message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "an operation")


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


def outgoing(letter: Letter | None = None, **changes: Any) -> Outgoing:
    usual: dict[str, Any] = {
        "letter": letter or a_letter(),
        "metadata": some_metadata(),
        "size_limit": MIB,
    }
    return Outgoing(**usual | changes)


def numbered(count: int, **letter: Any) -> list[Outgoing]:
    return [
        outgoing(a_letter(message_id=f"m{n}", receipt_handle=f"h{n}", **{"body": f"b{n}"} | letter))
        for n in range(count)
    ]


def letters(count: int) -> list[Letter]:
    return [one.letter for one in numbered(count)]
