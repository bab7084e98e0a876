"""Conditional writes and updates: the promises the state store rests on."""

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


def test_a_projection_reads_some_attributes(table: Any) -> None:
    put(table, State={"S": "OPEN"}, Window={"N": "5"})
    answer = table.get_item(
        TableName=TABLE,
        Key=KEY,
        ProjectionExpression="#s, PK",
        ExpressionAttributeNames={"#s": "State"},
    )
    assert answer["Item"] == KEY | {"State": {"S": "OPEN"}}


def test_only_one_of_two_can_take_a_lease(table: Any) -> None:
    lease = {
        "ConditionExpression": "attribute_not_exists(PK) OR ExpiresAt < :now",
        "ExpressionAttributeValues": {":now": {"N": "100"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    held = KEY | {"Holder": {"S": "first"}, "ExpiresAt": {"N": "130"}}
    table.put_item(TableName=TABLE, Item=held, **lease)

    with pytest.raises(table.exceptions.ConditionalCheckFailedException) as error:
        table.put_item(TableName=TABLE, Item=KEY | {"Holder": {"S": "second"}}, **lease)

    assert code_of(error) == "ConditionalCheckFailedException"
    assert error.value.operation_name == "PutItem"
    assert error.value.response["Item"] == held
    later = lease | {"ExpressionAttributeValues": {":now": {"N": "131"}}}
    table.put_item(TableName=TABLE, Item=KEY | {"Holder": {"S": "second"}}, **later)
    assert read(table) == KEY | {"Holder": {"S": "second"}}


def test_the_losing_item_comes_only_when_asked_for(table: Any) -> None:
    put(table)
    with pytest.raises(ClientError) as error:
        table.put_item(TableName=TABLE, Item=KEY, ConditionExpression="attribute_not_exists(PK)")
    assert "Item" not in error.value.response


def test_a_version_guards_an_update(table: Any) -> None:
    put(table, Version={"N": "1"})
    guarded = {
        "ConditionExpression": "Version = :seen",
        "ExpressionAttributeValues": {":seen": {"N": "1"}, ":one": {"N": "1"}},
    }
    update(table, "SET Version = Version + :one", **guarded)
    with pytest.raises(table.exceptions.ConditionalCheckFailedException):
        update(table, "SET Version = Version + :one", **guarded)
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
        ("A < :nine AND NOT A = :five", False),
        ("NOT (A = :three OR A = :nine)", True),
        ("A = :three OR A = :five AND A = :nine", False),
        ("(A = :five OR A = :three) AND A <> :nine", True),
        ("A BETWEEN :three AND :nine", True),
        ("A IN (:three, :nine)", False),
        ("attribute_exists(A) AND attribute_not_exists(B)", True),
        ("B = :five", False),
        ("B <> :five", True),
        ("B < :five", False),
        ("Greeting = :five", False),
        ("Greeting <> :five", True),
        ("begins_with(Greeting, :he)", True),
        ("begins_with(Greeting, :five)", False),
        ("contains(People, :he)", True),
        ("contains(Greeting, :he)", True),
        ("size(Greeting) = :five", True),
        ("Nested.Inside = :five AND Things[1] = :he", True),
        ("attribute_exists(Things[2])", False),
    ],
)
def test_conditions_mean_the_same_to_both(table: Any, condition: str, holds: bool) -> None:
    put(
        table,
        A={"N": "5"},
        Greeting={"S": "hello"},
        People={"SS": ["he", "she"]},
        Nested={"M": {"Inside": {"N": "5.0"}}},
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
        update(table, "REMOVE Absent", ConditionExpression=condition, **fields)

    if holds:
        write()
    else:
        with pytest.raises(table.exceptions.ConditionalCheckFailedException):
            write()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("SET A = :one, B = :one", {"A": "1", "B": "1"}),
        ("SET A = A - :one", {"A": "4"}),
        ("SET B = if_not_exists(B, :one) + :one", {"A": "5", "B": "2"}),
        ("SET A = if_not_exists(A, :one)", {"A": "5"}),
        ("SET B = A, A = :one", {"A": "1", "B": "5"}),
        ("ADD A :one, B :one", {"A": "6", "B": "1"}),
        ("ADD B :one REMOVE A", {"B": "1"}),
        ("SET B = :one REMOVE A, Absent", {"B": "1"}),
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


def test_lists_and_maps_can_be_changed_in_place(table: Any) -> None:
    put(table, History={"L": [{"S": "a"}, {"S": "b"}]}, Nested={"M": {"Inside": {"S": "x"}}})
    update(
        table,
        "SET History = list_append(History, :c), Nested.#n = :n REMOVE Nested.Inside",
        ExpressionAttributeNames={"#n": "New"},
        ExpressionAttributeValues={":c": {"L": [{"S": "c"}]}, ":n": {"S": "y"}},
    )
    update(table, "REMOVE History[0]")
    assert read(table) == KEY | {
        "History": {"L": [{"S": "b"}, {"S": "c"}]},
        "Nested": {"M": {"New": {"S": "y"}}},
    }


def test_sets_grow_and_shrink(table: Any) -> None:
    def changed(expression: str, *members: str) -> set[str]:
        update(table, expression, ExpressionAttributeValues={":m": {"SS": list(members)}})
        item = read(table)
        assert item is not None
        return set(item["People"]["SS"]) if "People" in item else set()

    assert changed("ADD People :m", "a", "b") == {"a", "b"}
    assert changed("ADD People :m", "b", "c") == {"a", "b", "c"}
    assert changed("DELETE People :m", "a", "b") == {"c"}
    assert changed("DELETE People :m", "c") == set()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("ALL_OLD", KEY | {"A": {"N": "5"}, "B": {"N": "7"}}),
        ("ALL_NEW", KEY | {"A": {"N": "6"}, "B": {"N": "7"}}),
        ("UPDATED_OLD", {"A": {"N": "5"}}),
        ("UPDATED_NEW", {"A": {"N": "6"}}),
    ],
)
def test_an_update_returns_what_it_is_asked_for(
    table: Any, asked: str, expected: dict[str, Any]
) -> None:
    put(table, A={"N": "5"}, B={"N": "7"})
    values = {":one": {"N": "1"}}
    answer = update(table, "ADD A :one", ExpressionAttributeValues=values, ReturnValues=asked)
    assert answer["Attributes"] == expected


def test_an_update_makes_the_item_if_there_is_none(table: Any) -> None:
    update(table, "ADD A :one", ExpressionAttributeValues={":one": {"N": "1"}})
    assert read(table) == KEY | {"A": {"N": "1"}}


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        ("SET State = :v", {"ExpressionAttributeValues": {":v": {"S": "OPEN"}}}),
        ("SET A = :absent", {}),
        ("SET A = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}, ":unused": {"N": "1"}}}),
        ("SET PK = :v", {"ExpressionAttributeValues": {":v": {"S": "other"}}}),
        ("SET A = Absent + :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
        ("SET A = :v, A = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
        ("SET Absent.Inside = :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
        ("SET A", {}),
        ("ADD Greeting :v", {"ExpressionAttributeValues": {":v": {"N": "1"}}}),
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
