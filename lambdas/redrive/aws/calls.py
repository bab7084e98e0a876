"""What can go wrong in a call to AWS, named once for the report and the log.

Two shapes: a whole call that failed (`CallFailed`, raised where a pass can't go on without its answer) and one
entry of a batch that was not accepted (`EntryFault`, returned, since the others were).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from redrive.errors import CallFailed, EntryFault


@contextmanager
def naming(call: str) -> Iterator[None]:
    """Turn whatever botocore raises for `call` into CallFailed."""
    try:
        yield
    except ClientError as error:
        failure = error.response.get("Error", {})
        code = error.response.get("Error", {}).get("Code", "Unknown")
        # SQS's query-compatible errors read "AWS.SimpleQueueService.NonExistentQueue".
        raise CallFailed(call, code.rpartition(".")[2], failure.get("Message", "")) from error
    except BotoCoreError as error:
        raise CallFailed(call, type(error).__name__, str(error)) from error


def answer_or_fault(
    call: str, keys: list[str], request: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], list[EntryFault]]:
    """The answer of a batch call; when the whole call fails, no answer and a fault for each of `keys`."""
    try:
        with naming(call):
            return request(), []
    except CallFailed as failed:
        return {}, [
            EntryFault(call=call, key=key, code=failed.code, detail=failed.detail) for key in keys
        ]
