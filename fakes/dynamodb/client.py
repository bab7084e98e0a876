# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 DynamoDB client: tables with a partition key only, in virtual time.

It knows the calls that the re-driver, its command and the simulated rivals make, and is faithful where a state store
could go wrong: conditions are checked and applied in one step, unused placeholders are refused, batches have their
limits, and an eventually consistent read may miss the write just before it. `fakes.faults` decides what DynamoDB leaves
undone of a batch. Sources: botocore dynamodb and the Developer Guide, named below.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.dynamodb.expressions import Condition, Expressions
from fakes.dynamodb.table import Key, Table
from fakes.dynamodb.values import Item, copied, validation

MAX_BATCH_GET = 100  # [botocore BatchGetItem]
MAX_BATCH_WRITE = 25  # [botocore BatchWriteItem]

Typed = Mapping[str, Mapping[str, Any]]


class FakeDynamoDb(FakeClient):
    """One account's DynamoDB.

    eventual_read_lag_seconds: reads without ConsistentRead don't see writes younger than this.
    """

    def __init__(self, clock: VirtualClock, *, eventual_read_lag_seconds: float = 0.0) -> None:
        super().__init__("dynamodb")
        self._clock = clock
        self._eventual_read_lag_seconds = eventual_read_lag_seconds
        self._tables: dict[str, Table] = {}

    @operation
    def create_table(
        self,
        *,
        TableName: str,
        KeySchema: Sequence[Mapping[str, str]],
        AttributeDefinitions: Sequence[Mapping[str, str]],
        BillingMode: str = "PAY_PER_REQUEST",
    ) -> Response:
        """Create a table, ready at once."""
        if TableName in self._tables:
            raise Fault("ResourceInUseException", f"Table already exists: {TableName}")
        if len(KeySchema) != 1:
            unsupported = "this fake knows tables with a partition key only"
            raise NotImplementedError(unsupported)
        key_name = KeySchema[0]["AttributeName"]
        types = {each["AttributeName"]: each["AttributeType"] for each in AttributeDefinitions}
        self._tables[TableName] = Table(key_name, types[key_name])
        description = {"TableName": TableName, "TableStatus": "ACTIVE"}
        return {
            "TableDescription": {**description, "BillingModeSummary": {"BillingMode": BillingMode}}
        }

    @operation
    def get_item(self, *, TableName: str, Key: Typed, ConsistentRead: bool = False) -> Response:
        """Read one item; the answer has no `Item` when there is none."""
        table = self._table(TableName)
        item = self._read(table, table.key(Key), consistent=ConsistentRead)
        return {} if item is None else {"Item": item}

    @operation
    def put_item(
        self,
        *,
        TableName: str,
        Item: Typed,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ReturnValues: Literal["NONE", "ALL_OLD"] = "NONE",
    ) -> Response:
        """Replace an item if the condition holds."""
        condition = _condition(
            ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues
        )
        table, new = self._table(TableName), copied(Item)
        old = self._require(condition, table, table.key_of(new))
        table.write(new, self._clock.time())
        return {"Attributes": old} if old and ReturnValues == "ALL_OLD" else {}

    @operation
    def delete_item(
        self,
        *,
        TableName: str,
        Key: Typed,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
    ) -> Response:
        """Delete an item, if there is one, if the condition holds."""
        condition = _condition(
            ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues
        )
        table = self._table(TableName)
        key = table.key(Key)
        self._require(condition, table, key)
        table.remove(key, self._clock.time())
        return {}

    @operation
    def update_item(
        self,
        *,
        TableName: str,
        Key: Typed,
        UpdateExpression: str,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
    ) -> Response:
        """Set attributes of an item, or create it, if the condition holds."""
        expressions = Expressions(ExpressionAttributeNames, ExpressionAttributeValues)
        changes = expressions.update(UpdateExpression)
        condition = expressions.condition(ConditionExpression)
        expressions.check_all_used()
        table = self._table(TableName)
        old = self._require(condition, table, table.key(Key)) or copied(Key)
        changed = changes(old)
        if table.key_name in changed:
            message = f"Cannot update attribute {table.key_name}. This attribute is part of the key"
            raise validation(message)
        table.write(old | changed, self._clock.time())
        return {}

    @operation
    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> Response:
        """Read up to 100 items in no particular order."""
        wanted = [
            (name, key, asked.get("ConsistentRead", False))
            for name, asked in RequestItems.items()
            for key in asked["Keys"]
        ]
        _check_batch(len(wanted), MAX_BATCH_GET)
        _check_distinct((name, self._table(name).key(key)) for name, key, _ in wanted)
        found: dict[str, list[Item]] = {name: [] for name in RequestItems}
        for name, key, consistent in wanted:
            table = self._table(name)
            item = self._read(table, table.key(key), consistent=consistent)
            if item is not None:
                found[name].append(item)
        return {"Responses": found, "UnprocessedKeys": {}}

    @operation
    def batch_write_item(
        self, *, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> Response:
        """Put or delete up to 25 items, each by itself."""
        wanted = [
            (name, request) for name, requests in RequestItems.items() for request in requests
        ]
        _check_batch(len(wanted), MAX_BATCH_WRITE)
        _check_distinct((name, self._table(name).key_of_write(write)) for name, write in wanted)
        for name, request in wanted:
            table, now = self._table(name), self._clock.time()
            if "PutRequest" in request:
                table.write(copied(request["PutRequest"]["Item"]), now)
            else:
                table.remove(table.key(request["DeleteRequest"]["Key"]), now)
        return {"UnprocessedItems": {}}

    @operation
    def scan(
        self,
        *,
        TableName: str,
        FilterExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ExclusiveStartKey: Typed | None = None,
        ConsistentRead: bool = False,
    ) -> Response:
        """Read a page of the table: 1 MB of it, before the filter."""
        passes = _condition(FilterExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        table = self._table(TableName)
        after = table.key(ExclusiveStartKey) if ExclusiveStartKey else None
        lag = 0.0 if ConsistentRead else self._eventual_read_lag_seconds
        looked_at, last_key = table.page(after, self._clock.time(), lag)
        items = [item for item in looked_at if passes(item)]
        answer: Response = {"Items": items, "Count": len(items), "ScannedCount": len(looked_at)}
        return answer | ({"LastEvaluatedKey": last_key} if last_key else {})

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            raise Fault("ResourceNotFoundException", "Requested resource not found")
        return self._tables[name]

    def _read(self, table: Table, key: Key, *, consistent: bool) -> Item | None:
        lag = 0.0 if consistent else self._eventual_read_lag_seconds
        return table.read(key, self._clock.time(), lag)

    def _require(self, condition: Condition, table: Table, key: Key) -> Item | None:
        """The item as it is, if it meets the condition."""
        old = table.read(key, self._clock.time(), lag=0.0)
        if not condition(old or {}):
            raise Fault("ConditionalCheckFailedException", "The conditional request failed")
        return old


def _condition(
    expression: str | None, names: Mapping[str, str] | None, values: Typed | None
) -> Condition:
    """A request's only expression, which has to use all of its placeholders."""
    expressions = Expressions(names, values)
    condition = expressions.condition(expression)
    expressions.check_all_used()
    return condition


def _check_batch(size: int, limit: int) -> None:
    if not 1 <= size <= limit:
        raise validation(f"Member must have length between 1 and {limit}: {size}")


def _check_distinct(keys: Iterable[tuple[str, Key]]) -> None:
    listed = list(keys)
    if len(set(listed)) != len(listed):
        raise validation("Provided list of item keys contains duplicates")
