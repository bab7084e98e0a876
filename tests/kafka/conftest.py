"""The log in two ways: in memory, and librdkafka's own mock cluster, which speaks Kafka's protocol over TCP."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from confluent_kafka import Producer

from fakes.clock import VirtualClock
from fakes.kafka import FakeLog
from smart_redriver.kafka.engine.client import KafkaLog
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log

_NUMBERS = count()
#: A mock cluster makes a topic when it is first written to, with so many partitions.
PARTITIONS = 4


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """Three brokers, for as long as the producer that has them lives."""
    owner = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{one.host}:{one.port}" for one in brokers)
    owner.flush()


def place_at(servers: str, **differs: object) -> KafkaTopics:
    table = {
        "name": "orders",
        "servers": servers,
        "consumer_group": "shop",
        "topics": ["orders"],
        "dead_letters": "orders.DLT",
    }
    return KafkaTopics.read(table | differs)


@pytest.fixture(params=["fake", "mock cluster"])
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    if request.param == "fake":
        yield FakeLog(VirtualClock().now)
        return
    place = place_at(request.getfixturevalue("servers"), name=f"orders-{next(_NUMBERS)}")
    real = KafkaLog(place)
    yield real
    real.close()


@pytest.fixture
def new_topic(log: Log) -> Callable[[], str]:
    """Makes a topic that nobody has used."""

    def make() -> str:
        name = f"topic-{next(_NUMBERS)}"
        if isinstance(log, FakeLog):
            log.create(name, PARTITIONS)
        elif isinstance(log, KafkaLog):
            # The mock makes a topic of whatever is written to: one record of each, of no interest to any test.
            log._producer.produce(name, b"first")
            log._producer.flush(10)
        return name

    return make
