"""Outcomes as the bodies of SQS messages: as few as hold them, each within what a queue and a reader take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from redrive.core.outcomes import MAX_OUTCOMES, VERSION, Consumer, DeliveryOutcome, report_fields

#: Also the limit of queues whose own was not raised since SQS takes 1 MiB; a reader can hold ten of them.
MAX_BYTES = 262_144


def reports(consumer: Consumer, outcomes: Iterable[DeliveryOutcome]) -> Iterator[str]:
    """The bodies that hold all `outcomes`, in their order; none for none. They are ASCII, so characters are bytes."""
    head = f'{{"version":{VERSION},"consumer":{_json(report_fields(consumer))},"outcomes":['
    few: list[str] = []
    size = len(head)
    for one in outcomes:
        text = _json(report_fields(one))
        if few and (len(few) == MAX_OUTCOMES or size + len(text) > MAX_BYTES - len("]}")):
            yield _body(head, few)
            few, size = [], len(head)
        few.append(text)
        size += len(text) + len(",")
    if few:
        yield _body(head, few)


def _body(head: str, outcomes: list[str]) -> str:
    return f"{head}{','.join(outcomes)}]}}"


def _json(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"))
