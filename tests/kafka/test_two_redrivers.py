"""Two re-drivers with one state table: their topics have the same names, and their letters the same ids."""

import re
from collections import Counter
from typing import Any

import pytest

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.model.circuit import State
from smart_redriver.kafka.engine.letters import dead_of
from tests.kafka.bench import Bench

LETTERS = [f"m{n}" for n in range(6)]


@pytest.fixture
def here():
    return Bench(name="here")


@pytest.fixture
def there(here):
    """Another cluster, which has the same messages at the same places, as a mirror has."""
    there = Bench(name="there")
    there.clock, there.dynamodb = here.clock, here.dynamodb
    there.log._clock = here.clock.now
    return there


def ids(bench: Bench) -> list[str]:
    place: Any = bench.place
    records = bench.log.in_topic(place.dead_letters)
    topics = frozenset(place.topics)
    return [dead_of(one, topics, place.home, keeps_order=True).letter.message_id for one in records]


def test_what_one_cluster_has_dealt_with_is_still_to_be_done_in_the_other(here, there):
    for bench in (here, there):
        bench.die(*LETTERS)
    assert ids(here) == ids(there)

    here.live()
    there.live()

    for bench in (here, there):
        assert Counter(bench.done) == Counter(one.encode() for one in LETTERS)
        assert not bench.waiting


def test_both_are_at_work_at_a_time_and_an_outage_of_one_opens_its_own_circuit_alone(here, there):
    for bench in (here, there):
        bench.die(*LETTERS)

    for _ in range(40):
        here.run_pass(failure_threshold=1)
        there.run_pass(failure_threshold=1)
        here.work(lambda _: "Down")
        there.work()
        here.clock.advance(30)

    assert here.memory().load_circuit().state is not State.CLOSED
    assert there.memory().load_circuit().state is State.CLOSED
    assert Counter(there.done) == Counter(one.encode() for one in LETTERS)
    assert set(here.waiting) == {one.encode() for one in LETTERS}
    assert not here.done


def test_no_item_of_the_table_is_of_both(here, there):
    table: FakeDynamoDb = here.dynamodb
    for bench in (here, there):
        bench.die(*LETTERS)
        bench.live()

    keys = [item["PK"]["S"] for item in table.scan(TableName="state")["Items"]]

    # LEASE#here/orders, MESSAGE/here/orders#ID
    names = Counter(re.split("[#/]", key)[1] for key in keys)
    assert set(names) == {"here", "there"}
    assert names["here"] == names["there"]
