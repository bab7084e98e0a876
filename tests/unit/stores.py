"""One state table for several stores, and a client that leaves a part of each batch undone."""

from datetime import datetime
from typing import Any

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.model.circuit import Lease
from tests.unit.examples import a_circuit, ahead, an_entry

TABLE = "redriver-state"

#: What a store that never wrote has in hand.
NEW = a_circuit(version=0, generation=0)


def lease(owner: str, *, until: datetime = ahead(minutes=4)) -> Lease:  # noqa: B008 - a constant
    return Lease(owner=owner, expires_at=until)


def item(dynamodb: FakeDynamoDb, key: str) -> dict[str, Any] | None:
    answer = dynamodb.get_item(TableName=TABLE, Key={"PK": {"S": key}}, ConsistentRead=True)
    found: dict[str, Any] | None = answer.get("Item")
    return found


def entries_of(*ids: str) -> list[Any]:
    return [an_entry(original_id=one) for one in ids]


class Unwilling:
    """A client that leaves the last entry of each batch undone for the first `rounds` calls of an operation."""

    def __init__(self, dynamodb: Any, rounds: int = 0) -> None:
        self._dynamodb = dynamodb
        self._rounds = rounds
        self.asked: list[list[str]] = []

    def batch_get_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        keys = RequestItems[TABLE]["Keys"]
        self.asked.append([key["PK"]["S"] for key in keys])
        done, left = self._cut(keys)
        answer = self._dynamodb.batch_get_item(
            RequestItems={TABLE: {**RequestItems[TABLE], "Keys": done}}
        )
        return answer | ({"UnprocessedKeys": {TABLE: {"Keys": left}}} if left else {})

    def batch_write_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        requests = RequestItems[TABLE]
        self.asked.append([one["PutRequest"]["Item"]["PK"]["S"] for one in requests])
        done, left = self._cut(requests)
        if done:
            self._dynamodb.batch_write_item(RequestItems={TABLE: done})
        return {"UnprocessedItems": {TABLE: left} if left else {}}

    def _cut(self, entries: list[Any]) -> tuple[list[Any], list[Any]]:
        if len(self.asked) > self._rounds:
            return entries, []
        return entries[:-1] or entries, entries[-1:]
