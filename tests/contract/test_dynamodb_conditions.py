"""Conditional writes and updates: the promises that state table and audit log rest on."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import Aws, code_of

TABLE = "state"
KEY = {"PK": {"S": "CIRCUIT_BREAKER#orders"}}


@pytest.fixture
def table(aws: Aws) -> Any:
    aws.dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return aws.dynamodb


def put(table: Any, **attributes: dict[str, Any]) -> None:
    table.put_item(TableName=TABLE, Item=KEY | attributes)


def read(table: Any) -> dict[str, Any] | None:
    item: dict[str, Any] | None = table.get_item(TableName=TABLE, Key=KEY, ConsistentRead=True).get(
        "Item"
    )
    return item


def update(table: Any, expression: str, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = table.update_item(
        TableName=TABLE, Key=KEY, UpdateExpression=expression, **fields
    )
    return answer


def test_an_item_comes_back_as_it_was_written(table: Any) -> None:
    attributes: dict[str, dict[str, Any]] = {
        "State": {"S": "OPEN"},
        "Window": {"N": "5"},
        "Flag": {"BOOL": True},
        "Nothing": {"NULL": True},
        "Raw": {"B": b"\x00\xff"},
        "History": {"L": [{"M": {"At": {"N": "1.5"}}}, {"S": ""}]},
    }
    put(table, **attributes)
    assert read(table) == KEY | attributes


def test_an_item_that_is_not_there_is_left_out_of_the_answer(table: Any) -> None:
    assert "Item" not in table.get_item(TableName=TABLE, Key=KEY)


def test_only_one_of_two_can_take_a_lease(table: Any) -> None:
    lease = {
        "ConditionExpression": "attribute_not_exists(PK) OR ExpiresAt <= :now OR #h = :first",
        "ExpressionAttributeNames": {"#h": "Holder"},
        "ExpressionAttributeValues": {":now": {"N": "100"}, ":first": {"S": "nobody"}},
    }
    held = KEY | {"Holder": {"S": "first"}, "ExpiresAt": {"N": "130"}}
    table.put_item(TableName=TABLE, Item=held, **lease)

    with pytest.raises(table.exceptions.ConditionalCheckFailedException) as error:
        table.put_item(TableName=TABLE, Item=KEY | {"Holder": {"S": "second"}}, **lease)

    assert code_of(error) == "ConditionalCheckFailedException"
    assert error.value.operation_name == "PutItem"
    later = lease | {"ExpressionAttributeValues": {":now": {"N": "130"}, ":first": {"S": "nobody"}}}
    table.put_item(TableName=TABLE, Item=KEY | {"Holder": {"S": "second"}}, **later)
    assert read(table) == KEY | {"Holder": {"S": "second"}}


def test_a_version_guards_a_write(table: Any) -> None:
    put(table, Version={"N": "1"})
    guarded = {
        "TableName": TABLE,
        "Item": KEY | {"Version": {"N": "2"}},
        "ConditionExpression": "Version = :seen OR attribute_not_exists(Version)",
        "ExpressionAttributeValues": {":seen": {"N": "1"}},
    }
    table.put_item(**guarded)
    with pytest.raises(table.exceptions.ConditionalCheckFailedException):
        table.put_item(**guarded)
    assert read(table) == KEY | {"Version": {"N": "2"}}


def test_a_delete_can_be_conditional(table: Any) -> None:
    put(table, Holder={"S": "me"})
    mine = {
        "ConditionExpression": "Holder = :me",
        "ExpressionAttributeValues": {":me": {"S": "me"}},
    }
    other = mine | {"ExpressionAttributeValues": {":me": {"S": "other"}}}
    with pytest.raises(table.exceptions.ConditionalCheckFailedException):
        table.delete_item(TableName=TABLE, Key=KEY, **other)
    table.delete_item(TableName=TABLE, Key=KEY, **mine)
    assert read(table) is None
    table.delete_item(TableName=TABLE, Key=KEY)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("A = :five", True),
        ("A <> :five", False),
        ("A < :nine AND A > :three", True),
        ("A <= :five AND A >= :five", True),
        ("A = :three OR A = :five AND A = :nine", False),
        ("A = :five OR A = :three AND A = :nine", True),
        ("attribute_exists(A) AND attribute_not_exists(B)", True),
        ("B = :five", False),
        ("B <> :five", True),
        ("B < :five", False),
        ("Greeting = :five", False),
        ("Greeting <> :five", True),
        ("contains(Things, :he)", True),
        ("contains(Things, :nine)", False),
        ("contains(Greeting, :he)", True),
        ("contains(A, :he)", False),
        ("size(Greeting) = :five", True),
        ("size(Things) < :three", True),
    ],
)
def test_conditions_mean_the_same_to_both(table: Any, condition: str, holds: bool) -> None:
    put(
        table,
        A={"N": "5"},
        Greeting={"S": "hello"},
        Things={"L": [{"N": "1"}, {"S": "he"}]},
    )
    all_values = {
        ":three": {"N": "3"},
        ":five": {"N": "5"},
        ":nine": {"N": "9"},
        ":he": {"S": "he"},
    }
    values = {name: value for name, value in all_values.items() if name in condition}
    fields = {"ExpressionAttributeValues": values} if values else {}

    def write() -> None:
        table.delete_item(TableName=TABLE, Key=KEY, ConditionExpression=condition, **fields)

    if holds:
        write()
    else:
        with pytest.raises(table.exceptions.ConditionalCheckFailedException):
            write()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("SET A = :one, B = :one", {"A": "1", "B": "1"}),
        ("SET A = if_not_exists(A, :one)", {"A": "5"}),
        ("SET B = if_not_exists(A, :one), A = :one", {"A": "1", "B": "5"}),
        ("SET B = if_not_exists(B, :one)", {"A": "5", "B": "1"}),
    ],
)
def test_updates_mean_the_same_to_both(
    table: Any, expression: str, expected: dict[str, str]
) -> None:
    put(table, A={"N": "5"})
    values = {":one": {"N": "1"}}
    if ":one" in expression:
        update(table, expression, ExpressionAttributeValues=values)
    assert read(table) == KEY | {name: {"N": number} for name, number in expected.items()}


def test_a_list_grows_from_nothing_until_it_is_full(table: Any) -> None:
    def append(line: str) -> None:
        update(
            table,
            "SET #l = list_append(if_not_exists(#l, :none), :line)",
            ConditionExpression="attribute_not_exists(#l) OR size(#l) < :full",
            ExpressionAttributeNames={"#l": "Lines"},
            ExpressionAttributeValues={
                ":none": {"L": []},
                ":line": {"L": [{"M": {"What": {"S": line}}}]},
                ":full": {"N": "2"},
            },
        )

    append("paused")
    append("resumed")
    with pytest.raises(table.exceptions.ConditionalCheckFailedException):
        append("one too many")

    lines = [{"M": {"What": {"S": line}}} for line in ("paused", "resumed")]
    assert read(table) == KEY | {"Lines": {"L": lines}}


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        ("SET A = :absent", {}),
        ("SET A = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}, ":unused": {"N": "1"}}}),
        ("SET PK = :v", {"ExpressionAttributeValues": {":v": {"S": "other"}}}),
        ("SET A = :v, A = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
        ("SET A", {}),
        (
            "SET Greeting = list_append(Greeting, :v)",
            {"ExpressionAttributeValues": {":v": {"L": []}}},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_update_that_makes_no_sense_is_refused(
    table: Any, expression: str, fields: dict[str, Any]
) -> None:
    put(table, A={"N": "5"}, Greeting={"S": "x"})
    with pytest.raises(ClientError) as error:
        update(table, expression, **fields)
    assert code_of(error) == "ValidationException"


@pytest.mark.moto_differs("moto breaks with a KeyError; AWS: ValidationException")
def test_a_name_that_is_not_defined_is_refused(table: Any) -> None:
    with pytest.raises(ClientError) as error:
        update(table, "SET #x = :v", ExpressionAttributeValues={":v": {"S": "OPEN"}})
    assert code_of(error) == "ValidationException"


def test_an_item_of_more_than_400_kilobytes_is_refused(table: Any) -> None:
    put(table, Body={"S": "x" * 400_000})
    with pytest.raises(ClientError) as error:
        put(table, Body={"S": "x" * 410_000})
    assert code_of(error) == "ValidationException"


def test_a_table_that_is_not_there_is_reported(table: Any) -> None:
    with pytest.raises(table.exceptions.ResourceNotFoundException):
        table.get_item(TableName="absent", Key=KEY)


def test_a_key_of_the_wrong_name_is_refused(table: Any) -> None:
    with pytest.raises(ClientError) as error:
        table.get_item(TableName=TABLE, Key={"SK": {"S": "x"}})
    assert code_of(error) == "ValidationException"
