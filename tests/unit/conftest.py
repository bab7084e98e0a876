"""For all unit tests: properties that try the same examples every day, and one state table with two stores on it."""

import pytest
from hypothesis import settings

from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.aws.state_table import StateStore
from tests.unit.examples import NOW, QUEUE
from tests.unit.stores import TABLE

# A red test is red again tomorrow.
settings.register_profile("same_examples", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("same_examples")


@pytest.fixture
def dynamodb() -> FakeDynamoDb:
    """A table whose eventually consistent reads miss the last minute's writes."""
    fake = FakeDynamoDb(VirtualClock(NOW), eventual_read_lag_seconds=60)
    fake.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
    )
    return fake


@pytest.fixture
def store(dynamodb: FakeDynamoDb) -> StateStore:
    return StateStore(dynamodb, TABLE, QUEUE)


@pytest.fixture
def other(dynamodb: FakeDynamoDb) -> StateStore:
    """Another pass's store on the same table."""
    return StateStore(dynamodb, TABLE, QUEUE)
