# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 DynamoDB client: tables with a partition key only, in virtual time.

Faithful where a state store could be caught out: conditions are checked and applied in one step,
a failed one can return the item, reserved words and unused placeholders are refused, batches have
their limits, expired items stay readable until a sweep, and an eventually consistent read may
miss the write just before it. Sources: botocore dynamodb and the Developer Guide, named below.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from fakes.boto_client import Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.dynamodb_expressions import parse_condition
from fakes.dynamodb_table import Key
from fakes.dynamodb_tables import DynamoDbTables, Typed
from fakes.dynamodb_tokens import Placeholders
from fakes.dynamodb_updates import apply_update, parse_update
from fakes.dynamodb_values import Item, copied, validation

MAX_BATCH_GET = 100  # [botocore BatchGetItem]
MAX_BATCH_WRITE = 25  # [botocore BatchWriteItem]
TWO_DAYS = 172_800.0  # "typically within two days" [botocore UpdateTimeToLive]


class FakeDynamoDb(DynamoDbTables):
    """One account's DynamoDB.

    ttl_lag_seconds: an expired item is readable for so long after its time.
    eventual_read_lag_seconds: reads without ConsistentRead don't see writes younger than this.
    unprocessed_probability: chance that an entry of a batch comes back unprocessed.
    """

    def __init__(
        self,
        clock: VirtualClock,
        rng: Random | None = None,
        *,
        ttl_lag_seconds: float = TWO_DAYS,
        eventual_read_lag_seconds: float = 0.0,
        unprocessed_probability: float = 0.0,
    ) -> None:
        super().__init__(
            clock,
            ttl_lag_seconds=ttl_lag_seconds,
            eventual_read_lag_seconds=eventual_read_lag_seconds,
        )
        self._rng = rng or Random(0)
        self._unprocessed_probability = unprocessed_probability

    @operation
    def get_item(
        self,
        *,
        TableName: str,
        Key: Typed,
        ConsistentRead: bool = False,
        ProjectionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
    ) -> Response:
        """Read one item; the answer has no `Item` when there is none."""
        placeholders = Placeholders(ExpressionAttributeNames, None)
        table = self._table(TableName)
        project = table.projection(ProjectionExpression, placeholders)
        placeholders.check_all_used()
        item = self._read(table, table.key(Key), consistent=ConsistentRead)
        return {} if item is None else {"Item": project(item)}

    @operation
    def put_item(
        self,
        *,
        TableName: str,
        Item: Typed,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ReturnValues: str = "NONE",
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> Response:
        """Replace an item if the condition holds."""
        placeholders = Placeholders(ExpressionAttributeNames, ExpressionAttributeValues)
        condition = parse_condition(ConditionExpression, placeholders)
        placeholders.check_all_used()
        table = self._table(TableName)
        new = copied(Item)
        old = self._latest(table, table.key_of(new))
        _require(condition(old or {}), old, ReturnValuesOnConditionCheckFailure)
        table.write(new, self._clock.time())
        return _returned(ReturnValues, ("NONE", "ALL_OLD"), old, new)

    @operation
    def delete_item(
        self,
        *,
        TableName: str,
        Key: Typed,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ReturnValues: str = "NONE",
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> Response:
        """Delete an item, if there is one, if the condition holds."""
        placeholders = Placeholders(ExpressionAttributeNames, ExpressionAttributeValues)
        condition = parse_condition(ConditionExpression, placeholders)
        placeholders.check_all_used()
        table = self._table(TableName)
        key = table.key(Key)
        old = self._latest(table, key)
        _require(condition(old or {}), old, ReturnValuesOnConditionCheckFailure)
        table.remove(key, self._clock.time())
        return _returned(ReturnValues, ("NONE", "ALL_OLD"), old, {})

    @operation
    def update_item(
        self,
        *,
        TableName: str,
        Key: Typed,
        UpdateExpression: str | None = None,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ReturnValues: str = "NONE",
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> Response:
        """Change parts of an item, or make it, if the condition holds."""
        placeholders = Placeholders(ExpressionAttributeNames, ExpressionAttributeValues)
        changes = parse_update(UpdateExpression or "", placeholders)
        condition = parse_condition(ConditionExpression, placeholders)
        placeholders.check_all_used()
        table = self._table(TableName)
        key = table.key(Key)
        if any(change.path[0] == table.key_name for change in changes):
            message = f"Cannot update attribute {table.key_name}. This attribute is part of the key"
            raise validation(message)
        old = self._latest(table, key)
        _require(condition(old or {}), old, ReturnValuesOnConditionCheckFailure)
        new = apply_update(old or copied(Key), changes)
        table.write(new, self._clock.time())
        touched = {str(change.path[0]) for change in changes}
        kinds = ("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
        return _returned(ReturnValues, kinds, old, new, touched)

    @operation
    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> Response:
        """Read up to 100 items in no particular order; those not reached are in UnprocessedKeys."""
        wanted = [
            (name, key, asked.get("ConsistentRead", False))
            for name, asked in RequestItems.items()
            for key in asked["Keys"]
        ]
        _check_batch(len(wanted), MAX_BATCH_GET)
        _check_distinct((name, self._table(name).key(key)) for name, key, _ in wanted)
        found: dict[str, list[Item]] = {name: [] for name in RequestItems}
        unprocessed: dict[str, dict[str, Any]] = {}
        for name, key, consistent in wanted:
            if self._is_left_out():
                unprocessed.setdefault(name, {**RequestItems[name], "Keys": []})["Keys"].append(key)
                continue
            table = self._table(name)
            item = self._read(table, table.key(key), consistent=consistent)
            if item is not None:
                found[name].append(item)
        return {"Responses": found, "UnprocessedKeys": unprocessed}

    @operation
    def batch_write_item(
        self, *, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> Response:
        """Put or delete up to 25 items, each by itself; the rest is in UnprocessedItems."""
        wanted = [
            (name, request) for name, requests in RequestItems.items() for request in requests
        ]
        _check_batch(len(wanted), MAX_BATCH_WRITE)
        _check_distinct((name, self._table(name).key_of_write(write)) for name, write in wanted)
        unprocessed: dict[str, list[Mapping[str, Any]]] = {}
        for name, request in wanted:
            if self._is_left_out():
                unprocessed.setdefault(name, []).append(request)
                continue
            table, now = self._table(name), self._clock.time()
            if "PutRequest" in request:
                table.write(copied(request["PutRequest"]["Item"]), now)
            else:
                table.remove(table.key(request["DeleteRequest"]["Key"]), now)
        return {"UnprocessedItems": unprocessed}

    def _is_left_out(self) -> bool:
        chance = self._unprocessed_probability
        return bool(chance) and self._rng.random() < chance


def _require(holds: bool, old: Item | None, on_failure: str) -> None:
    if holds:
        return
    failed = "The conditional request failed"
    if old is not None and on_failure == "ALL_OLD":
        raise Fault("ConditionalCheckFailedException", failed, Item=old)
    raise Fault("ConditionalCheckFailedException", failed)


def _returned(
    asked: str, allowed: Sequence[str], old: Item | None, new: Item, touched: Iterable[str] = ()
) -> Response:
    if asked not in allowed:
        raise validation("Return values set to invalid value")
    if asked == "NONE":
        return {}
    item = copied(new if asked.endswith("NEW") else old or {})
    if asked.startswith("UPDATED"):
        item = {name: value for name, value in item.items() if name in set(touched)}
    return {"Attributes": item} if item else {}


def _check_batch(size: int, limit: int) -> None:
    if not 1 <= size <= limit:
        raise validation(f"Member must have length between 1 and {limit}: {size}")


def _check_distinct(keys: Iterable[tuple[str, Key]]) -> None:
    listed = list(keys)
    if len(set(listed)) != len(listed):
        raise validation("Provided list of item keys contains duplicates")
