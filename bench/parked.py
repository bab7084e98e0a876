"""Many parked letters at once, for measurements: in the parking lot and in the ledger as passes leave them, only quicker."""

from collections.abc import Sequence
from datetime import UTC, datetime

from demo.stack import DeployedStack
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.triage.ledger import Entry, Status

_ENTRIES_PER_CALL = 10
BODY = '{"order": %d, "item": "crème brûlée", "note": "' + "x" * 150 + '"}'


def park(stack: DeployedStack, count: int, causes: Sequence[str] = ()) -> None:
    """Park `count` letters, a multiple of ten; their consumers reported `causes` in turn, if any are given."""
    store = StateStore(stack.dynamodb, stack.outputs["StateTableName"], stack.queue_name)
    now = datetime.now(UTC)
    for start in range(0, count, _ENTRIES_PER_CALL):
        bodies = [BODY % number for number in range(start, start + _ENTRIES_PER_CALL)]
        entries = [{"Id": str(at), "MessageBody": body} for at, body in enumerate(bodies)]
        sent = stack.sqs.send_message_batch(QueueUrl=stack.parking_lot_url, Entries=entries)
        ids = [one["MessageId"] for one in sent["Successful"]]
        store.write_ledger(
            [
                _parked(stack.queue_name, one, _in_turn(causes, start + at), now)
                for at, one in enumerate(ids)
            ],
            [],
            now,
        )


def _in_turn(causes: Sequence[str], number: int) -> str | None:
    return causes[number % len(causes)] if causes else None


def _parked(queue: str, message_id: str, cause: str | None, now: datetime) -> Entry:
    return Entry(
        original_id=message_id,
        queue=queue,
        first_seen=now,
        status=Status.PARKED,
        current_id=message_id,
        strikes=5,
        cause=cause,
        error=cause and f"{cause}: something that a consumer said",
        park_reason="MAX_ATTEMPTS",
        parked_at=now,
        history=(f"{now:%Y-%m-%dT%H:%M:%SZ} parked MAX_ATTEMPTS",),
    )
