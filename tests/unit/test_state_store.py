"""Lease, circuit and ledger: races between two stores on one table, and batches that DynamoDB leaves half done."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from redrive.aws.items import circuit_to_item, message_key
from redrive.aws.state_table import Lease, StateStore
from redrive.aws.table_batches import LONGEST_PAUSE, ROUNDS
from redrive.core.circuit import Circuit, State
from redrive.errors import CallFailed
from tests.unit.examples import NOW, QUEUE, a_circuit, a_trail, ahead, an_entry

TABLE = "redriver-state"

#: What a store that never wrote has in hand.
NEW = a_circuit(version=0, generation=0)


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


def lease(owner: str, *, until: datetime = ahead(minutes=4)) -> Lease:  # noqa: B008 - a constant
    return Lease(owner=owner, expires_at=until)


def item(dynamodb: FakeDynamoDb, key: str) -> dict[str, Any] | None:
    answer = dynamodb.get_item(TableName=TABLE, Key={"PK": {"S": key}}, ConsistentRead=True)
    found: dict[str, Any] | None = answer.get("Item")
    return found


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
        {"Pending": {"L": [{"M": {}}]}},
    ],
    ids=lambda damage: next(iter(damage)),
)
def test_a_circuit_that_cannot_be_read_stops_the_pass_by_name(
    dynamodb: FakeDynamoDb, store: StateStore, damage: dict[str, Any]
) -> None:
    dynamodb.put_item(TableName=TABLE, Item=circuit_to_item(NEW) | damage)

    with pytest.raises(CallFailed, match="GetItem: UnreadableCircuit"):
        store.load_circuit()


# The ledger.


def test_the_ledger_gives_back_entries_and_kept_trails_by_their_own_ids(
    store: StateStore, other: StateStore
) -> None:
    entry, trail = an_entry(original_id="a"), a_trail(original_id="b")

    store.write_ledger([entry], [("copy of b", trail)], NOW)
    known = other.read_ledger(["a", "copy of b", "unknown"])

    assert known.entries == {"a": entry}
    assert known.trails == {"copy of b": trail}


def test_nothing_to_read_or_write_makes_no_call(store: StateStore) -> None:
    silent = StateStore(Unwilling("nothing"), TABLE, QUEUE)

    silent.write_ledger([], [], NOW)

    assert silent.read_ledger([]).entries == {}


def test_the_ledger_takes_more_than_one_call_holds(store: StateStore) -> None:
    entries = [an_entry(original_id=f"letter-{number}") for number in range(230)]

    store.write_ledger(entries, [], NOW)
    known = store.read_ledger(entry.original_id for entry in entries)

    assert known.entries == {entry.original_id: entry for entry in entries}


def test_an_id_asked_for_twice_is_read_once(store: StateStore) -> None:
    """DynamoDB refuses a batch that names a key twice; two copies of one letter can be in one round."""
    store.write_ledger([an_entry(original_id="a")], [], NOW)

    assert list(store.read_ledger(["a", "a"]).entries) == ["a"]


def test_of_two_entries_for_one_letter_the_last_is_written(store: StateStore) -> None:
    older, newer = (an_entry(original_id="a", redrive_count=count) for count in (1, 2))

    store.write_ledger([older, newer], [], NOW)

    assert store.read_ledger(["a"]).entries == {"a": newer}


def test_an_entry_expires_long_after_it_was_written(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    store.write_ledger([an_entry(original_id="a")], [], NOW)

    kept = item(dynamodb, "MESSAGE#a")

    assert kept is not None
    assert float(kept["TTL"]["N"]) > ahead(days=28).timestamp()


@pytest.mark.parametrize(
    "damage",
    [{}, {"Trail": {"S": "not a trail"}}, {"Queue": {"S": QUEUE}, "Status": {"S": "LOST"}}],
    ids=["an empty entry", "a kept trail that does not parse", "an unknown status"],
)
def test_an_entry_that_cannot_be_read_stops_the_pass_by_name(
    dynamodb: FakeDynamoDb, store: StateStore, damage: dict[str, Any]
) -> None:
    """As the circuit does: run_pass catches CallFailed only, so anything else ends the Lambda without a report."""
    dynamodb.put_item(TableName=TABLE, Item=message_key("a") | damage)

    with pytest.raises(CallFailed):
        store.read_ledger(["a"])


# What DynamoDB leaves undone.


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


def hurried(dynamodb: Any) -> StateStore:
    """A store that waits for nothing."""
    return StateStore(dynamodb, TABLE, QUEUE, pause=lambda _: None)


def entries_of(*ids: str) -> list[Any]:
    return [an_entry(original_id=one) for one in ids]


def test_items_that_were_left_unwritten_are_written_again_and_only_they(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    unwilling = Unwilling(dynamodb, rounds=1)

    hurried(unwilling).write_ledger(entries_of("a", "b", "c"), [], NOW)

    assert unwilling.asked == [["MESSAGE#a", "MESSAGE#b", "MESSAGE#c"], ["MESSAGE#c"]]
    assert set(store.read_ledger(["a", "b", "c"]).entries) == {"a", "b", "c"}


def test_keys_that_were_left_unread_are_read_again_and_only_they(
    dynamodb: FakeDynamoDb, store: StateStore
) -> None:
    store.write_ledger(entries_of("a", "b", "c"), [], NOW)
    unwilling = Unwilling(dynamodb, rounds=1)

    known = hurried(unwilling).read_ledger(["a", "b", "c"])

    assert unwilling.asked == [["MESSAGE#a", "MESSAGE#b", "MESSAGE#c"], ["MESSAGE#c"]]
    assert set(known.entries) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda store: store.read_ledger(["a", "b"]), "BatchGetItem: UnprocessedKeys"),
        (
            lambda store: store.write_ledger(entries_of("a", "b"), [], NOW),
            "BatchWriteItem: UnprocessedItems",
        ),
    ],
    ids=["read", "write"],
)
def test_what_stays_undone_fails_by_name(
    dynamodb: FakeDynamoDb, call: Callable[[StateStore], object], fault: str
) -> None:
    unwilling = Unwilling(dynamodb, rounds=100)

    with pytest.raises(CallFailed, match=fault):
        call(hurried(unwilling))

    assert len(unwilling.asked) == ROUNDS


def test_what_was_left_undone_is_asked_again_after_pauses_that_double(
    dynamodb: FakeDynamoDb,
) -> None:
    """Asked again at once, a table that throttles is asked three times in thirty milliseconds, and refuses all."""
    pauses: list[float] = []
    unwilling = Unwilling(dynamodb, rounds=3)
    store = StateStore(unwilling, TABLE, QUEUE, pause=pauses.append, roll=lambda: 0.5)

    store.write_ledger(entries_of("a", "b"), [], NOW)

    assert pauses == [0.1, 0.2, 0.4]


def test_a_batch_that_gets_done_waits_for_nothing(dynamodb: FakeDynamoDb) -> None:
    pauses: list[float] = []

    StateStore(dynamodb, TABLE, QUEUE, pause=pauses.append).write_ledger(entries_of("a"), [], NOW)

    assert pauses == []


def test_all_pauses_of_a_batch_together_are_bounded(dynamodb: FakeDynamoDb) -> None:
    pauses: list[float] = []
    store = StateStore(
        Unwilling(dynamodb, rounds=100), TABLE, QUEUE, pause=pauses.append, roll=lambda: 1.0
    )

    with pytest.raises(CallFailed):
        store.read_ledger(["a", "b"])

    assert sum(pauses) == pytest.approx(LONGEST_PAUSE)
    assert LONGEST_PAUSE < 2


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
