"""The state table, as a pass uses it: lease, circuit and ledger over the boto3 DynamoDB client.

Every write of the circuit and the lease is conditional; a lost race is False, not an exception. The ledger is written
in batches without conditions: only the holder of the lease writes it. If DynamoDB leaves part of a batch undone, it is
asked again after a pause.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, TypeVar

from smart_redriver.engine.aws import items
from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.aws.items import Item
from smart_redriver.engine.config.targets import within
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.model.circuit import Circuit, Lease
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.ledger import Entry

#: After a queue's name, the start of its process is kept under this: no queue's name has a "#".
_STARTED = "#started"

#: Exceptions from reading an item that no version wrote; a number may be too large to be a time.
_DAMAGES = (KeyError, ValueError, TypeError, OverflowError)

#: The reason that a pass gives in its log if it stops at such an item.
_UNREADABLE = (
    "Damaged, or of a version that this one does not know: deploy that, or delete this item of the state table; "
    "the next pass begins a circuit. Until then letters stay in the DLQ"
)
_UNREADABLE_ENTRY = (
    "Damaged, or of a version that this one does not know: deploy that, or delete this item of the state table; "
    "its letter is then known by its metadata alone. Until then no letter of the queue goes, nor is parked before it "
    "expires"
)


class BatchClient(Protocol):
    """The batch calls of a boto3 DynamoDB client."""

    @property
    def batch_get_item(self) -> Callable[..., Any]: ...
    @property
    def batch_write_item(self) -> Callable[..., Any]: ...


class DynamoDbClient(BatchClient, Protocol):
    """The calls of a boto3 DynamoDB client that a pass makes."""

    @property
    def get_item(self) -> Callable[..., Any]: ...
    @property
    def put_item(self) -> Callable[..., Any]: ...
    @property
    def delete_item(self) -> Callable[..., Any]: ...


@dataclass(slots=True)
class Known:
    """Items of the ledger: entries by original id, and metadata kept for copies by the copy's MessageId."""

    entries: dict[str, Entry] = field(default_factory=dict)
    metadata: dict[str, RedriveMetadata] = field(default_factory=dict)


def _hint_in(item: Item | None) -> Hint | None:
    """The hint in an item; None for one that no version wrote: the next canary then goes at its own time."""
    try:
        return items.hint_from_item(item) if item else None
    except _DAMAGES:
        return None


class StateStore:
    """Lease, circuit and ledger of one queue.

    `names_within`: see `Deployment`; `letters_within`: see `message_key`; `pause` and `roll`: see `TableBatches`.
    """

    def __init__(
        self,
        dynamodb: DynamoDbClient,
        table: str,
        queue: str,
        *,
        names_within: str = "",
        letters_within: str = "",
        pause: Callable[[float], None] = time.sleep,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._queue = queue
        self._names_within = names_within
        self._called = within(names_within, queue)
        self._within = letters_within
        self._batches = TableBatches(dynamodb, table, pause=pause, roll=roll)

    def of(self, queue: str) -> StateStore:
        """The store for another source queue of the DLQ."""
        other = StateStore(
            self._dynamodb,
            self._table,
            queue,
            names_within=self._names_within,
            letters_within=self._within,
        )
        other._batches = self._batches
        return other

    def acquire_lease(self, lease: Lease, now: datetime) -> bool:
        """Take the lease unless another pass holds it. Raises CallFailed.

            owner A acquires ──────────── expires_at(A) ─────►
                     │  nobody else         │  A is dead: its function ended before this
                     ▼                      ▼
                refused: lease_is_held   granted: lease_has_expired

        It lasts at least as long as the function that holds it can run, so there is nothing to renew.
        """
        # There is no item, or one that a person left without an end, which would hold for ever.
        lease_is_free = "attribute_not_exists(ExpiresAt)"
        lease_has_expired = "ExpiresAt <= :now"
        lease_is_ours = "#owner = :owner"  # botocore asks again when the first answer was lost
        return self._conditional(
            "PutItem",
            lambda: self._dynamodb.put_item(
                TableName=self._table,
                Item=items.lease_key(self._called)
                | {
                    "Owner": {"S": lease.owner},
                    "ExpiresAt": {"N": str(lease.expires_at.timestamp())},
                    "TTL": {"N": str(int(lease.expires_at.timestamp()) + 86_400)},
                },
                ConditionExpression=f"{lease_is_free} OR {lease_has_expired} OR {lease_is_ours}",
                ExpressionAttributeNames={"#owner": "Owner"},
                ExpressionAttributeValues={
                    ":now": {"N": str(now.timestamp())},
                    ":owner": {"S": lease.owner},
                },
            ),
        )

    def release_lease(self, lease: Lease) -> bool:
        """Give the lease back; False when it had expired and is another's. Raises CallFailed."""
        return self._conditional(
            "DeleteItem",
            lambda: self._dynamodb.delete_item(
                TableName=self._table,
                Key=items.lease_key(self._called),
                ConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": "Owner"},
                ExpressionAttributeValues={":owner": {"S": lease.owner}},
            ),
        )

    def load_circuit(self) -> Circuit | None:
        """The queue's circuit; None before the first write. Raises CallFailed."""
        with naming("GetItem"):
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=items.circuit_key(self._called), ConsistentRead=True
            )
        item = answer.get("Item")
        if item is None:
            return None
        try:
            return items.circuit_from_item(self._queue, item)
        except _DAMAGES as fault:
            detail = f"{item['PK']['S']}: {fault!r}. {_UNREADABLE}"
            raise CallFailed("GetItem", "UnreadableCircuit", detail) from fault

    def save_circuit(self, circuit: Circuit) -> Circuit | None:
        """Write `circuit` over the version that was read; None if another writer came first.

        Returns the circuit as it is in the table, one version on. Raises CallFailed.
        """
        written = replace(circuit, version=circuit.version + 1)
        won = self._conditional(
            "PutItem",
            lambda: self._dynamodb.put_item(
                TableName=self._table,
                Item=items.circuit_to_item(written) | items.circuit_key(self._called),
                ConditionExpression="Version = :expected OR attribute_not_exists(Version)"
                if circuit.version == 0
                else "Version = :expected",
                ExpressionAttributeValues={":expected": {"N": str(circuit.version)}},
            ),
        )
        return written if won else None

    def load_hint(self) -> Hint | None:
        """The last hint about the consumer. Raises CallFailed."""
        with naming("GetItem"):
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=items.hint_key(self._called), ConsistentRead=True
            )
        return _hint_in(answer.get("Item"))

    def save_hint(self, hint: Hint) -> Hint | None:
        """Write a hint about the consumer, and return the one before. Raises CallFailed.

        It has its own item: a pass at work writes the circuit under its version, and neither write undoes the other.
        """
        with naming("PutItem"):
            answer = self._dynamodb.put_item(
                TableName=self._table,
                Item=items.hint_to_item(self._called, hint),
                ReturnValues="ALL_OLD",
            )
        return _hint_in(answer.get("Attributes"))

    def save_start(self, at: datetime) -> None:
        """Note that a process has started, whose first pass may take minutes. Raises CallFailed."""
        self.of(self._queue + _STARTED).save_pass({}, at)

    def load_start(self) -> datetime | None:
        """Return when the last process started; None if none did. Raises CallFailed."""
        found = self.of(self._queue + _STARTED).load_pass()
        return found[0] if found else None

    def save_pass(self, report: Mapping[str, Any], at: datetime) -> None:
        """Write the report of a process's pass over the one before. Raises CallFailed."""
        with naming("PutItem"):
            self._dynamodb.put_item(
                TableName=self._table,
                Item=items.pass_key(self._called)
                | {"At": {"S": at.isoformat()}, "Report": {"S": json.dumps(report, default=str)}},
            )

    def load_pass(self) -> tuple[datetime, Mapping[str, Any]] | None:
        """Return the end and report of a process's last pass; None if there was none. Raises CallFailed."""
        with naming("GetItem"):
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=items.pass_key(self._called), ConsistentRead=True
            )
        item = answer.get("Item")
        try:
            return (
                (datetime.fromisoformat(item["At"]["S"]), json.loads(item["Report"]["S"]))
                if item
                else None
            )
        except _DAMAGES as fault:
            raise CallFailed("GetItem", "UnreadablePass", str(fault)) from fault

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """Read the ledger's items under these ids, original ids and copies' ids alike. Raises CallFailed."""
        known = Known()
        keys = (items.message_key(one, self._within) for one in dict.fromkeys(message_ids))
        for item in self._batches.get(keys):
            message_id = items.message_id_of(item)
            try:
                if metadata := items.kept_metadata_from_item(item):
                    known.metadata[message_id] = metadata
                else:
                    known.entries[message_id] = items.entry_from_item(item)
            except _DAMAGES as fault:
                detail = f"{item['PK']['S']}: {fault!r}. {_UNREADABLE_ENTRY}"
                raise CallFailed("BatchGetItem", "UnreadableEntry", detail) from fault
        return known

    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_metadata: Sequence[tuple[str, RedriveMetadata]],
        now: datetime,
    ) -> None:
        """Write entries, and the metadata of copies that can't carry it. Raises CallFailed for any left undone."""
        kept = [
            items.kept_metadata_to_item(message_id, metadata, now, self._within)
            for message_id, metadata in kept_metadata
        ]
        # Two copies of one letter in a round share an entry, and a batch must not name an item twice.
        latest = {
            entry.original_id: items.entry_to_item(entry, now, self._within) for entry in entries
        }
        self._batches.put([*kept, *latest.values()])

    def write_failures(self, failures: Sequence[ReceivedOutcome], until: datetime) -> None:
        """Write each letter's failure, to expire after `until`. Raises CallFailed for any left unwritten."""
        self._batches.put([items.failure_to_item(one, until, self._within) for one in failures])

    def load_failure(self, original_id: str) -> ReceivedOutcome | None:
        """Return a letter's last failure, if its consumer reported it. Raises CallFailed."""
        with naming("GetItem"):
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=items.failure_key(original_id, self._within)
            )
        item = answer.get("Item")
        try:
            return items.failure_from_item(item) if item else None
        except _DAMAGES as fault:
            raise CallFailed("GetItem", "UnreadableFailure", str(fault)) from fault

    def _conditional(self, call: str, request: Any) -> bool:
        try:
            with naming(call):
                request()
        except CallFailed as failed:
            if failed.code == "ConditionalCheckFailedException":
                return False
            raise
        return True


#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
KEYS_PER_READ = 100
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
ITEMS_PER_WRITE = 25

#: DynamoDB may leave part of a batch undone; it is asked this often before the rest counts as failed.
ROUNDS = 4
#: Seconds before it is asked again: a random time up to this, then up to twice as long each time, so that callers that
#: wait together don't come back together.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html#Programming.Errors.RetryAndBackoff
FIRST_PAUSE = 0.2
#: The most seconds that one batch waits in all its rounds.
LONGEST_PAUSE = FIRST_PAUSE * (2 ** (ROUNDS - 1) - 1)

T = TypeVar("T")


class TableBatches:
    """Batch calls to one table. `pause` waits for a number of seconds; `roll` gives the jitter, from 0 to 1."""

    def __init__(
        self,
        dynamodb: BatchClient,
        table: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._pause = pause
        self._roll = roll

    def get(self, keys: Iterable[Item]) -> Iterator[Item]:
        """The existing items under `keys`, which must be different. Raises CallFailed for any left unread."""
        for some in _cut(keys, KEYS_PER_READ):
            yield from self._get(some)

    def put(self, items: Sequence[Item]) -> None:
        """Write items of different keys, over what is there. Raises CallFailed for any left unwritten."""
        for some in _cut(items, ITEMS_PER_WRITE):
            self._put([{"PutRequest": {"Item": item}} for item in some])

    def _get(self, keys: list[Item]) -> list[Item]:
        found: list[Item] = []
        for _ in self._rounds():
            with naming("BatchGetItem"):
                answer = self._dynamodb.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
                )
            found += answer["Responses"].get(self._table, [])
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if not keys:
                return found
        raise CallFailed("BatchGetItem", "UnprocessedKeys", f"{len(keys)} keys were left unread")

    def _put(self, requests: list[dict[str, Any]]) -> None:
        for _ in self._rounds():
            with naming("BatchWriteItem"):
                answer = self._dynamodb.batch_write_item(RequestItems={self._table: requests})
            requests = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not requests:
                return
        raise CallFailed(
            "BatchWriteItem", "UnprocessedItems", f"{len(requests)} were left unwritten"
        )

    def _rounds(self) -> Iterator[int]:
        """The rounds that a batch has to get done, with a pause before each but the first."""
        for number in range(ROUNDS):
            if number:
                self._pause(self._roll() * FIRST_PAUSE * 2 ** (number - 1))
            yield number


def _cut(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while some := list(islice(iterator, size)):
        yield some
