"""Scans the ledger: finds parked letters without receiving them, and one letter by any id that it ever had.

The table's only key is the original id, so both are scans. A million entries take seconds to read and cost cents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from smart_redriver.engine.aws import items
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.session import Session

_STUCK = (Status.PARKED, Status.RETURNED, Status.FAILED)
_OUT = (Status.REDRIVEN, Status.REPLAYED)


def parked_entries(session: Session) -> Iterator[Entry]:
    """The ledger's parked letters of this DLQ's sources, in no order. Raises CallFailed."""
    return _with_status(session, Status.PARKED)


def _to_the_end() -> bool:
    return True


def stuck_entries(
    session: Session, *, may_go_on: Callable[[], bool] = _to_the_end
) -> Iterator[Entry]:
    """The letters that are parked, in the DLQ, or on their way there for good, in no order. Raises CallFailed.

    A letter in the DLQ that no consumer reported is in no ledger before its first redrive. `may_go_on` is asked before
    each further page of the scan.
    """
    queues = {f":queue{n}": {"S": name} for n, name in enumerate(session.place.sources)}
    stuck = {f":status{n}": {"S": one.value} for n, one in enumerate(_STUCK)}
    # A letter that its consumer gave up on is still REDRIVEN, or REPLAYED, until a pass finds it in the DLQ.
    out = {f":out{n}": {"S": one.value} for n, one in enumerate(_OUT)}
    is_stuck = [f"#status = {status}" for status in stuck]
    is_stuck += [f"#status = {status} AND IsSettled = :yes" for status in out]
    found = _scan(
        session,
        " OR ".join(f"#queue = {queue} AND {one}" for queue in queues for one in is_stuck),
        {**queues, **stuck, **out, ":yes": {"BOOL": True}},
        {"#queue": "Queue", "#status": "Status"},
        may_go_on,
    )
    # The report is in an attribute of its own, and a letter with a reported success looks like one that is out.
    yield from (entry for entry in found if entry.status in (*_STUCK, *_OUT))


def all_entries(session: Session) -> Iterator[Entry]:
    """Yield the entries of this DLQ's sources, in no order. Raises CallFailed."""
    queues = {f":queue{n}": {"S": name} for n, name in enumerate(session.place.sources)}
    known = {f":status{n}": {"S": one.value} for n, one in enumerate(Status)}
    yield from _scan(
        session,
        " OR ".join(f"#queue = {q} AND #status = {one}" for q in queues for one in known),
        {**queues, **known},
        {"#queue": "Queue", "#status": "Status"},
    )


def find_entry(session: Session, message_id: str) -> Entry | None:
    """Find the letter that has or had this id: by one item for an original id, else by a scan. Raises CallFailed."""
    known = session.store.read_ledger([message_id])
    if message_id in known.entries:
        return known.entries[message_id]
    if message_id in known.metadata:
        original = known.metadata[message_id].original_id
        return session.store.read_ledger([original]).entries.get(original)
    found = _scan(
        session,
        "CurrentMessageId = :id OR contains(ReplacedMessageIds, :id)",
        {":id": {"S": message_id}},
        {},
    )
    names = session.place.sources
    return next((entry for entry in found if entry.queue in names), None)


def _with_status(session: Session, status: Status) -> Iterator[Entry]:
    queues = {f":queue{n}": {"S": name} for n, name in enumerate(session.place.sources)}
    found = _scan(
        session,
        " OR ".join(f"#status = :status AND #queue = {queue}" for queue in queues),
        {**queues, ":status": {"S": status.value}},
        {"#queue": "Queue", "#status": "Status"},
    )
    yield from (entry for entry in found if entry.status is status)


def _scan(
    session: Session,
    passes: str,
    values: Mapping[str, Any],
    names: Mapping[str, str],
    may_go_on: Callable[[], bool] = _to_the_end,
) -> Iterator[Entry]:
    request: dict[str, Any] = {
        "TableName": session.place.deployment.table_name,
        "FilterExpression": passes,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
    }
    if names:
        request["ExpressionAttributeNames"] = names
    while True:
        page = session.aws.dynamodb.scan(**request)
        yield from map(items.entry_from_item, page["Items"])
        if "LastEvaluatedKey" not in page or not may_go_on():
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
