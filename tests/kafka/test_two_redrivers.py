"""Two re-drivers: of two clusters with one state table, so that letters have the same ids; of two groups of a topic."""

import re
from collections import Counter

import pytest

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.model.circuit import State
from smart_redriver.kafka.engine.letters import dead_of
from smart_redriver.kafka.engine.records import NewRecord
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
    records = bench.log.in_topic(bench.place.dead_letters)
    return [dead_of(one, bench.place).letter.message_id for one in records]


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


def told_of_another_state(bench: Bench) -> bool:
    codes = [fields.get("code") for event, fields in bench.events if event == "call.failed"]
    bench.events.clear()
    return "AnotherState" in codes


@pytest.mark.parametrize("lag", [0, 2])
def test_two_states_of_one_redriver_are_told(lag):
    """Each sends what only the other one knows to be sent, whoever is the first to commit."""
    one, other = Bench(), Bench()
    other.clock, other.log = one.clock, one.log
    one.state, other.state = "one", "other"
    one.die(*LETTERS)

    for turn in range(6):
        one.run_pass()
        if turn >= lag:
            other.run_pass()
        one.work()
        one.die(f"more {turn}")
        one.clock.advance(60)

    assert len(one.done) > len(set(one.done))
    assert told_of_another_state(one) or told_of_another_state(other)


def test_processes_of_one_state_tell_of_no_other():
    bench = Bench()
    bench.state = "one"
    bench.die(*LETTERS)

    for _ in range(2):
        bench.process()
        bench.live()
        bench.die("more")
    bench.live()

    assert not told_of_another_state(bench)


@pytest.fixture
def groups():
    """Two groups of one topic, each with a DLQ topic and a re-driver of its own."""
    shop = Bench(name="shop")
    billing = Bench(name="billing", consumer_group="billing", dead_letters="billing.DLT")
    billing.clock, billing.dynamodb, billing.log = shop.clock, shop.dynamodb, shop.log
    for topic in (billing.place.dead_letters, billing.place.held, billing.place.parked):
        shop.log.create(topic, shop.partitions)
    return shop, billing


def down(_):
    return "Down"


def poison(value):
    return "Boom" if value == b"poison" else None


def let_pass(groups, times, fails=lambda _: None):
    for _ in range(times):
        for one in groups:
            one.run_pass(max_attempts=1, last_chance_seconds=0)
        for one in groups:
            one.work(fails)
        groups[0].clock.advance(60)


def test_what_both_groups_fail_with_is_parked_by_both_and_goes_round_no_longer(groups):
    values = ["poison", *(f"m{n}" for n in range(12))]
    groups[0].produce(*values)
    for one in groups:
        one.work(down)

    let_pass(groups, 60, poison)

    for one in groups:
        assert one.parked == [b"poison"]
        assert set(one.done) == {value.encode() for value in values[1:]}
    assert groups[0].values("orders").count(b"poison") == 1 + len(groups)


def test_a_copy_that_was_sent_for_another_group_is_dropped_if_the_message_is_known(groups):
    shop, _ = groups
    shop.produce("a", "b")
    for one in groups:
        one.work(down)
        one.run_pass()
    for one in groups:
        one.work(down)  # with its own copies, and the other's
    written = len(shop.values("orders"))

    reports = [shop.run_pass() for _ in range(3)]

    assert written == 6
    assert sum(one.returned for one in reports) == 2
    assert sum(one.discarded for one in reports) >= 2


def test_a_copy_whose_message_a_group_was_done_with_goes_back_if_it_fails_with_it(groups):
    shop, billing = groups
    shop.produce("a", "b")
    shop.work()
    billing.work(down)
    billing.run_pass()
    billing.work()
    shop.work(down)

    let_pass(groups, 20)

    for one in groups:
        assert set(one.done) == {b"a", b"b"}
        assert not one.waiting
        assert not one.parked
    assert len(shop.values("orders")) == 6


def test_headers_that_a_consumer_copied_on_to_a_message_of_its_own_drop_no_letter(groups):
    shop, billing = groups
    shop.produce("a")
    for one in groups:
        one.work(down)
        one.run_pass()
    copied = [one.headers for one in shop.log.in_topic("orders") if len(one.headers) > 1]
    for headers in copied:
        shop.log.write([NewRecord(topic="orders", key=b"a", value=b"own", headers=headers)])
    for one in groups:
        one.work(down)

    let_pass(groups, 20)

    assert len(copied) == 2
    for one in (shop, billing):
        assert {b"a", b"own"} == set(one.done)
        assert not one.waiting
