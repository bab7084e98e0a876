"""Lease and circuit: races between two stores on one table."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.aws.items import circuit_to_item, lease_key
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.circuit import Circuit, State
from tests.unit.examples import NOW, QUEUE, ahead
from tests.unit.stores import NEW, TABLE, entries_of, item, lease

# The lease.


def test_of_two_passes_one_gets_the_lease(store: StateStore, other: StateStore) -> None:
    won = [store.acquire_lease(lease("a"), NOW), other.acquire_lease(lease("b"), NOW)]

    assert won == [True, False]


def test_a_lease_is_free_again_once_it_is_released(store: StateStore, other: StateStore) -> None:
    store.acquire_lease(lease("a"), NOW)

    assert store.release_lease(lease("a"))
    assert other.acquire_lease(lease("b"), NOW)


@pytest.mark.parametrize(("seconds_early", "taken"), [(1, False), (0, True)])
def test_a_dead_passs_lease_is_taken_over_when_it_expires_and_not_before(
    store: StateStore, other: StateStore, seconds_early: int, taken: bool
) -> None:
    store.acquire_lease(lease("a", until=ahead(minutes=4)), NOW)

    now = ahead(minutes=4) - timedelta(seconds=seconds_early)

    assert other.acquire_lease(lease("b", until=ahead(minutes=8)), now) is taken


def test_a_lease_without_an_end_holds_nobody_up(dynamodb: FakeDynamoDb, store: StateStore) -> None:
    """Written by hand, or by another tool: no pass would ever get past it."""
    dynamodb.put_item(TableName=TABLE, Item=lease_key(QUEUE) | {"Owner": {"S": "a person"}})

    assert store.acquire_lease(lease("a"), NOW)


def test_a_pass_that_overstayed_does_not_release_its_successors_lease(
    store: StateStore, other: StateStore
) -> None:
    store.acquire_lease(lease("a"), NOW)
    other.acquire_lease(lease("b", until=ahead(minutes=9)), ahead(minutes=5))

    assert not store.release_lease(lease("a"))
    assert not store.acquire_lease(lease("c"), ahead(minutes=5))


def test_releasing_a_lease_that_nobody_holds_is_a_lost_race_and_no_error(
    store: StateStore,
) -> None:
    assert not store.release_lease(lease("a"))


def test_leases_of_different_queues_do_not_meet(dynamodb: FakeDynamoDb, store: StateStore) -> None:
    invoices = StateStore(dynamodb, TABLE, "invoices")

    assert store.acquire_lease(lease("a"), NOW)
    assert invoices.acquire_lease(lease("b"), NOW)


def test_a_forgotten_lease_is_swept_by_its_ttl_long_after_it_expired(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    store.acquire_lease(lease("a"), NOW)

    kept = item(dynamodb, "LEASE#orders")

    assert kept is not None
    assert float(kept["TTL"]["N"]) > float(kept["ExpiresAt"]["N"]) == ahead(minutes=4).timestamp()


# The circuit.


def test_there_is_no_circuit_before_the_first_write(store: StateStore) -> None:
    assert store.load_circuit() is None


def test_a_circuit_is_read_as_it_was_written_one_version_on(
    store: StateStore, other: StateStore
) -> None:
    written = store.save_circuit(NEW)

    assert written == replace(NEW, version=1)
    assert other.load_circuit() == written


def test_of_two_first_writes_one_wins(store: StateStore, other: StateStore) -> None:
    won = store.save_circuit(replace(NEW, window=3))
    lost = other.save_circuit(replace(NEW, window=4))

    assert won is not None
    assert lost is None
    assert other.load_circuit() == won


def test_of_two_writes_over_one_version_one_wins(store: StateStore, other: StateStore) -> None:
    store.save_circuit(NEW)
    mine, theirs = store.load_circuit(), other.load_circuit()
    assert mine is not None
    assert theirs is not None

    won = other.save_circuit(replace(theirs, state=State.OPEN))
    lost = store.save_circuit(replace(mine, window=16))

    assert won is not None
    assert lost is None
    assert store.load_circuit() == won
    assert won.version == 2


def test_after_a_lost_race_the_circuit_can_be_read_and_written_again(
    store: StateStore, other: StateStore
) -> None:
    store.save_circuit(NEW)
    other.save_circuit(replace(NEW, version=1, window=16))

    reread = store.load_circuit()
    assert reread is not None

    assert store.save_circuit(replace(reread, window=32)) == replace(NEW, version=3, window=32)


def test_a_circuit_that_was_deleted_meanwhile_is_a_lost_race(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    written = store.save_circuit(NEW)
    assert written is not None
    dynamodb.delete_item(TableName=TABLE, Key={"PK": {"S": "CIRCUIT_BREAKER#orders"}})

    assert store.save_circuit(written) is None


def test_a_circuit_without_a_version_can_be_written_over(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    """Written by hand, or by another tool: it is read with defaults, so it must not block every pass."""
    by_hand = circuit_to_item(NEW)
    del by_hand["Version"]
    dynamodb.put_item(TableName=TABLE, Item=by_hand)
    read = store.load_circuit()
    assert read is not None

    assert store.save_circuit(read) is not None


@pytest.mark.parametrize(
    "damage",
    [
        {"State": {"S": "AJAR"}},
        {"LastStateChangeTimestamp": {"S": "yesterday"}},
        {"Window": {"S": "wide"}},
        {"Judged": {"L": [{"S": "not five parts"}]}},
        {"Judged": {"L": [{"S": "1:1:X:0:0"}]}},
        {"Judged": {"L": [{"S": f"1:1:S~4~{10**30}~0:0:0"}]}},
        {"Pending": {"L": [{"M": {}}]}},
        # What a pass can't count with: its sums would leave Python's calendar.
        {"LastStateChangeTimestamp": {"S": "0001-01-01T00:00:00Z"}},
        {"MixedTimestamp": {"S": "9999-12-31T23:59:59Z"}},
        {"UpSeconds": {"N": f"{10**37}"}},
        {"Judged": {"L": [{"S": f"1:1:S~4~{10**17}~0:0:0"}]}},
    ],
    ids=lambda damage: next(iter(damage)),
)
def test_a_circuit_that_cannot_be_read_stops_the_pass_by_name(
    dynamodb: FakeDynamoDb, store: StateStore, damage: dict[str, Any]
) -> None:
    dynamodb.put_item(TableName=TABLE, Item=circuit_to_item(NEW) | damage)

    with pytest.raises(CallFailed, match="GetItem: UnreadableCircuit") as caught:
        store.load_circuit()

    item = circuit_to_item(NEW)["PK"]["S"]
    assert caught.value.detail.startswith(f"{item}: ")
    assert "delete this item of the state table" in caught.value.detail


# A table that is not there.


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (lambda store: store.acquire_lease(lease("a"), NOW), "PutItem"),
        (lambda store: store.release_lease(lease("a")), "DeleteItem"),
        (lambda store: store.load_circuit(), "GetItem"),
        (lambda store: store.save_circuit(NEW), "PutItem"),
        (lambda store: store.read_ledger(["a"]), "BatchGetItem"),
        (lambda store: store.write_ledger(entries_of("a"), [], NOW), "BatchWriteItem"),
    ],
    ids=["acquire", "release", "load", "save", "read", "write"],
)
def test_every_call_names_itself_when_the_table_is_missing(
    dynamodb: FakeDynamoDb, call: Callable[[StateStore], object], operation: str
) -> None:
    with pytest.raises(CallFailed) as failed:
        call(StateStore(dynamodb, "another-table", QUEUE))

    assert (failed.value.call, failed.value.code) == (operation, "ResourceNotFoundException")


def test_a_version_is_never_reused_by_two_circuits(store: StateStore, other: StateStore) -> None:
    versions: list[int] = []
    circuit: Circuit = NEW
    for one in (store, other, store, other):
        written = one.save_circuit(circuit)
        assert written is not None
        versions.append(written.version)
        circuit = written

    assert versions == [1, 2, 3, 4]
