"""Outcomes as the bodies of SQS messages: as few as hold them, each within what a queue and a reader take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from smart_redriver.consumer.delivery import Delivery
from smart_redriver.consumer.failure import Failure

#: One outcome as `outcomes.schema.json` has it.
Outcome = dict[str, Any]

_VERSION = 1
MAX_OUTCOMES = 1000
#: Also the limit of queues whose own was not raised since SQS takes 1 MiB; a reader can hold ten of them.
MAX_BYTES = 262_144

SUCCEEDED = "succeeded"
FAILED = "failed"
PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """Who reports, and where it logged."""

    name: str | None = None
    version: str | None = None
    log_group: str | None = None
    log_stream: str | None = None
    request_id: str | None = None


def outcome_of(
    delivery: Delivery,
    result: str,
    *,
    failure: Failure | None = None,
    permanent: bool = False,
    parked_id: str | None = None,
    interrupted: bool = False,
    retry_after: int | None = None,
) -> Outcome:
    """What became of one delivery: the fields that say something, in the order of the schema."""
    trail = delivery.trail
    return _telling(
        {
            "queue": delivery.queue,
            "message_id": delivery.message_id,
            "original_id": delivery.original_id if trail else None,
            "result": result,
            "batch": trail.batch if trail else None,
            "generation": trail.generation if trail else None,
            "receive_count": delivery.receive_count,
            "permanent": permanent or None,
            "parked_id": parked_id,
            "interrupted": interrupted or None,
            "retry_after": retry_after,
            "error_class": failure.error_class if failure else None,
            "first_line": (failure.first_line or None) if failure else None,
            "cause": (failure.cause or None) if failure else None,
            "traceback": (failure.traceback or None) if failure else None,
        }
    )


def reports(consumer: Consumer, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """The bodies that hold all `outcomes`, in their order; none for none. They are ASCII, so characters are bytes."""
    head = f'{{"version":{_VERSION},"consumer":{_json(_telling(asdict(consumer)))},"outcomes":['
    few: list[str] = []
    size = len(head)
    for one in outcomes:
        text = _json(one)
        if few and (len(few) == MAX_OUTCOMES or size + len(text) > MAX_BYTES - len("]}")):
            yield _body(head, few)
            few, size = [], len(head)
        few.append(text)
        size += len(text) + len(",")
    if few:
        yield _body(head, few)


def _telling(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _body(head: str, outcomes: list[str]) -> str:
    return f"{head}{','.join(outcomes)}]}}"


def _json(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"))
