"""Batches, scans, and late reads of a table."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from tests.contract.conftest import Aws, code_of

TABLE = "state"


def key(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"MESSAGE#{number:04}"}}


def create(dynamodb: Any) -> Any:
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return dynamodb


@pytest.fixture
def table(aws: Aws) -> Any:
    return create(aws.dynamodb)


def fill(table: Any, count: int) -> None:
    for number in range(count):
        table.put_item(TableName=TABLE, Item=key(number) | {"Number": {"N": str(number)}})


def test_a_batch_reads_what_there_is(table: Any) -> None:
    fill(table, 3)
    answer = table.batch_get_item(
        RequestItems={TABLE: {"Keys": [key(0), key(2), key(9)], "ConsistentRead": True}}
    )
    found = sorted(item["Number"]["N"] for item in answer["Responses"][TABLE])
    assert found == ["0", "2"]
    assert answer["UnprocessedKeys"] == {}


def test_a_batch_writes_and_deletes(table: Any) -> None:
    fill(table, 2)
    answer = table.batch_write_item(
        RequestItems={
            TABLE: [
                {"PutRequest": {"Item": key(7) | {"Number": {"N": "7"}}}},
                {"DeleteRequest": {"Key": key(0)}},
            ]
        }
    )
    assert answer["UnprocessedItems"] == {}
    numbers = [item["Number"]["N"] for item in table.scan(TableName=TABLE)["Items"]]
    assert sorted(numbers) == ["1", "7"]


def test_a_batch_names_no_key_twice(table: Any) -> None:
    put = {"PutRequest": {"Item": key(0)}}
    with pytest.raises(ClientError) as error:
        table.batch_write_item(RequestItems={TABLE: [put, put]})
    assert code_of(error) == "ValidationException"
    with pytest.raises(ClientError) as error:
        table.batch_get_item(RequestItems={TABLE: {"Keys": [key(0), key(0)]}})
    assert code_of(error) == "ValidationException"


def test_a_batch_reads_at_most_a_hundred(table: Any) -> None:
    keys = [key(number) for number in range(101)]
    table.batch_get_item(RequestItems={TABLE: {"Keys": keys[:100]}})
    with pytest.raises(ClientError) as error:
        table.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    assert code_of(error) == "ValidationException"


@pytest.mark.moto_differs("moto writes any number; AWS at most 25 [botocore BatchWriteItem]")
def test_a_batch_writes_at_most_twenty_five(table: Any) -> None:
    puts = [{"PutRequest": {"Item": key(number)}} for number in range(26)]
    table.batch_write_item(RequestItems={TABLE: puts[:25]})
    with pytest.raises(ClientError) as error:
        table.batch_write_item(RequestItems={TABLE: puts})
    assert code_of(error) == "ValidationException"


def test_a_scan_filters_what_it_looked_at(table: Any) -> None:
    fill(table, 5)
    page = table.scan(
        TableName=TABLE,
        FilterExpression="#n >= :three OR contains(Absent, :three)",
        ExpressionAttributeNames={"#n": "Number"},
        ExpressionAttributeValues={":three": {"N": "3"}},
        ConsistentRead=True,
    )
    assert (page["Count"], page["ScannedCount"]) == (2, 5)
    assert "LastEvaluatedKey" not in page


def test_a_scan_sees_what_was_written_since_the_last_one(table: Any) -> None:
    fill(table, 2)
    assert table.scan(TableName=TABLE)["Count"] == 2
    fill(table, 4)
    table.delete_item(TableName=TABLE, Key=key(0))
    assert table.scan(TableName=TABLE, ConsistentRead=True)["Count"] == 3


def test_a_scan_comes_in_pages_of_a_megabyte_that_add_up_to_the_table(table: Any) -> None:
    for number in range(7):
        body = {"Number": {"N": str(number)}, "Body": {"S": "x" * 390_000}}
        table.put_item(TableName=TABLE, Item=key(number) | body)
    pages = list(table.get_paginator("scan").paginate(TableName=TABLE))
    numbers = [item["Number"]["N"] for page in pages for item in page["Items"]]
    assert sorted(numbers) == [str(number) for number in range(7)]
    assert len(pages) > 2


class TestTheFakeAlone:
    """What moto never does, and AWS does now and then."""

    def test_an_eventually_consistent_read_can_miss_the_last_write(self) -> None:
        clock = VirtualClock()
        table = create(FakeDynamoDb(clock, eventual_read_lag_seconds=1))
        table.put_item(TableName=TABLE, Item=key(0))
        assert "Item" not in table.get_item(TableName=TABLE, Key=key(0))
        assert "Item" in table.get_item(TableName=TABLE, Key=key(0), ConsistentRead=True)
        clock.advance(1)
        table.delete_item(TableName=TABLE, Key=key(0))
        assert "Item" in table.get_item(TableName=TABLE, Key=key(0))
        assert "Item" not in table.get_item(TableName=TABLE, Key=key(0), ConsistentRead=True)

    def test_what_a_caller_holds_is_not_what_the_table_holds(self) -> None:
        table = create(FakeDynamoDb(VirtualClock()))
        item = key(0) | {"History": {"L": [{"S": "a"}]}}
        table.put_item(TableName=TABLE, Item=item)
        item["History"]["L"].clear()
        read = table.get_item(TableName=TABLE, Key=key(0))["Item"]
        read["History"]["L"].clear()
        stored = table.get_item(TableName=TABLE, Key=key(0))["Item"]
        assert stored["History"] == {"L": [{"S": "a"}]}
