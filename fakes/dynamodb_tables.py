# ruff: noqa: N803 - the parameters have boto3's names
"""The tables of one fake account, and the API operations that deal with tables as such."""

from collections.abc import Mapping, Sequence
from typing import Any

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.dynamodb_expressions import parse_condition
from fakes.dynamodb_table import Key, Table
from fakes.dynamodb_tokens import Placeholders
from fakes.dynamodb_values import Item

Typed = Mapping[str, Mapping[str, Any]]


class DynamoDbTables(FakeClient):
    """Tables by name, and how old a reader's view of them is."""

    def __init__(
        self, clock: VirtualClock, *, ttl_lag_seconds: float, eventual_read_lag_seconds: float
    ) -> None:
        super().__init__("dynamodb")
        self._clock = clock
        self._ttl_lag_seconds = ttl_lag_seconds
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
        """Make a table, ready at once."""
        if TableName in self._tables:
            raise Fault("ResourceInUseException", f"Table already exists: {TableName}")
        if len(KeySchema) != 1:
            unsupported = "this fake knows tables with a partition key only"
            raise NotImplementedError(unsupported)
        key_name = KeySchema[0]["AttributeName"]
        types = {each["AttributeName"]: each["AttributeType"] for each in AttributeDefinitions}
        self._tables[TableName] = Table(key_name, types[key_name], self._ttl_lag_seconds)
        description = {"TableName": TableName, "TableStatus": "ACTIVE"}
        return {
            "TableDescription": {**description, "BillingModeSummary": {"BillingMode": BillingMode}}
        }

    @operation
    def update_time_to_live(
        self, *, TableName: str, TimeToLiveSpecification: Mapping[str, Any]
    ) -> Response:
        """Name the attribute that holds the epoch second at which an item expires."""
        is_enabled = TimeToLiveSpecification["Enabled"]
        name = TimeToLiveSpecification["AttributeName"]
        self._table(TableName).ttl_name = name if is_enabled else None
        return {"TimeToLiveSpecification": dict(TimeToLiveSpecification)}

    @operation
    def scan(
        self,
        *,
        TableName: str,
        FilterExpression: str | None = None,
        ProjectionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        Limit: int | None = None,
        ExclusiveStartKey: Typed | None = None,
        ConsistentRead: bool = False,
    ) -> Response:
        """Read a page of the table; Limit counts the items looked at, not those that pass."""
        placeholders = Placeholders(ExpressionAttributeNames, ExpressionAttributeValues)
        passes = parse_condition(FilterExpression, placeholders)
        table = self._table(TableName)
        project = table.projection(ProjectionExpression, placeholders)
        placeholders.check_all_used()
        after = table.key(ExclusiveStartKey) if ExclusiveStartKey else None
        lag = 0.0 if ConsistentRead else self._eventual_read_lag_seconds
        looked_at, last_key = table.page(after, Limit, self._clock.time(), lag)
        items = [project(item) for item in looked_at if passes(item)]
        answer: Response = {"Items": items, "Count": len(items), "ScannedCount": len(looked_at)}
        return answer | ({"LastEvaluatedKey": last_key} if last_key else {})

    @operation
    def query(
        self,
        *,
        TableName: str,
        KeyConditionExpression: str,
        FilterExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Typed | None = None,
        ConsistentRead: bool = False,
    ) -> Response:
        """Read the one item that a partition of these tables can hold."""
        placeholders = Placeholders(ExpressionAttributeNames, ExpressionAttributeValues)
        table = self._table(TableName)
        key = table.key_in(KeyConditionExpression, placeholders)
        passes = parse_condition(FilterExpression, placeholders)
        placeholders.check_all_used()
        item = self._read(table, key, consistent=ConsistentRead)
        items = [item] if item is not None and passes(item) else []
        return {"Items": items, "Count": len(items), "ScannedCount": int(item is not None)}

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            raise Fault("ResourceNotFoundException", "Requested resource not found")
        return self._tables[name]

    def _latest(self, table: Table, key: Key) -> Item | None:
        return table.read(key, self._clock.time(), lag=0.0)

    def _read(self, table: Table, key: Key, *, consistent: bool) -> Item | None:
        lag = 0.0 if consistent else self._eventual_read_lag_seconds
        return table.read(key, self._clock.time(), lag)
