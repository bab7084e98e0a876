"""Names the faults of calls to AWS, once for the report and the log.

Two shapes: a whole call that failed (`CallFailed`, raised where a pass can't go on without its answer) and one
entry of a batch that was not accepted (`EntryFault`, returned, since the others were).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from smart_redriver.engine.errors import CallFailed, EntryFault


@contextmanager
def naming(call: str) -> Iterator[None]:
    """Turn whatever botocore raises for `call` into CallFailed."""
    try:
        yield
    except ClientError as error:
        failure = error.response.get("Error", {})
        raise CallFailed(
            call, _plain(failure.get("Code", "Unknown")), failure.get("Message", "")
        ) from error
    except BotoCoreError as error:
        raise CallFailed(call, type(error).__name__, str(error)) from error


@dataclass(slots=True, kw_only=True)
class BatchAnswer:
    """What became of the entries of one batch call, by their place in it.

    `failed_as_a_whole`: there was no answer about single entries, and each has the call's own fault.
    """

    message_ids: dict[int, str] = field(default_factory=dict)
    faults: dict[int, EntryFault] = field(default_factory=dict)
    failed_as_a_whole: bool = False


def batch(
    call: str, keys: Sequence[str], entries: Sequence[dict[str, Any]], request: Callable[..., Any]
) -> BatchAnswer:
    """Make one SQS batch call. Every entry, known by its key, is accepted or has a fault; nothing is raised.

    `request` takes the entries under boto3's name for them; their Ids are their places.
    """
    numbered = [{"Id": str(index), **entry} for index, entry in enumerate(entries)]
    try:
        with naming(call):
            answer = request(Entries=numbered)
    except CallFailed as failed:
        faults = {index: EntryFault.of(failed, key) for index, key in enumerate(keys)}
        return BatchAnswer(faults=faults, failed_as_a_whole=True)
    accepted = {int(one["Id"]): one.get("MessageId", "") for one in answer.get("Successful", ())}
    refused = {int(one["Id"]): one for one in answer.get("Failed", ())}
    return BatchAnswer(
        message_ids=accepted,
        faults={
            index: _fault(call, key, refused.get(index, {}))
            for index, key in enumerate(keys)
            if index not in accepted
        },
    )


def _fault(call: str, key: str, entry: dict[str, Any]) -> EntryFault:
    """The fault of an entry that was refused, or that the answer does not speak of."""
    code = _plain(str(entry.get("Code", "NoAnswer")))
    return EntryFault(call=call, key=key, code=code, detail=str(entry.get("Message", "")))


def _plain(code: str) -> str:
    """The code without its service: SQS's query-compatible errors read "AWS.SimpleQueueService.NonExistentQueue"."""
    return code.rpartition(".")[2]
