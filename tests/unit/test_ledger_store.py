"""The ledger in the state table: entries, kept metadata, and items that nobody can read."""

from datetime import timedelta
from typing import Any

import pytest

from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.aws.items import entry_to_item, message_key
from smart_redriver.engine.aws.state_table import Known, StateStore
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.reports.processing import ReceivedOutcome
from tests.unit.examples import NOW, QUEUE, ahead, an_entry, some_metadata
from tests.unit.outcomes import an_outcome
from tests.unit.stores import TABLE, Unwilling, item


def test_the_ledger_gives_back_entries_and_kept_metadata_by_their_own_ids(
    store: StateStore, other: StateStore
) -> None:
    entry, metadata = an_entry(original_id="a"), some_metadata(original_id="b")

    store.write_ledger([entry], [("copy of b", metadata)], NOW)
    known = other.read_ledger(["a", "copy of b", "unknown"])

    assert known.entries == {"a": entry}
    assert known.metadata == {"copy of b": metadata}


def test_queues_that_number_their_letters_themselves_share_a_table_and_no_entry(
    dynamodb: FakeDynamoDb,
) -> None:
    """Row 1 of one table of jobs is another letter than row 1 of another."""
    orders, charges = (
        StateStore(dynamodb, TABLE, one, letters_within=one) for one in ("orders", "charges")
    )
    entry, outcome = an_entry(original_id="dlq-1"), an_outcome(original_id="dlq-1")
    told = ReceivedOutcome(outcome=outcome, at=NOW)

    orders.write_ledger([entry], [("job-7", some_metadata(original_id="dlq-1"))], NOW)
    orders.write_failures([told], ahead(minutes=60))
    known = orders.read_ledger(["dlq-1", "job-7"])

    assert known.entries == {"dlq-1": entry}
    assert known.metadata == {"job-7": some_metadata(original_id="dlq-1")}
    assert item(dynamodb, "FAILURE/orders#dlq-1") is not None
    assert charges.read_ledger(["dlq-1", "job-7"]) == Known()
    assert item(dynamodb, "FAILURE#dlq-1") is item(dynamodb, "FAILURE/charges#dlq-1") is None
    assert orders.of("returns").read_ledger(["dlq-1"]).entries == {"dlq-1": entry}


def test_nothing_to_read_or_write_makes_no_call(store: StateStore) -> None:
    silent = StateStore(Unwilling("nothing"), TABLE, QUEUE)  # type: ignore[arg-type]

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


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_that_a_pass_cannot_count_with_is_read_as_the_nearest_one_that_it_can(
    dynamodb: FakeDynamoDb, store: StateStore, text: str
) -> None:
    """A letter may bring it along from a table of jobs: it must not keep the whole queue back."""
    names = ("FirstSeenTimestamp", "FirstRedriveTimestamp", "FirstStrikeTimestamp")
    written = entry_to_item(an_entry(original_id="a"), NOW) | {name: {"S": text} for name in names}
    dynamodb.put_item(TableName=TABLE, Item=written)

    entry = store.read_ledger(["a"]).entries["a"]

    for one in (entry.first_seen, entry.first_redrive, entry.first_strike):
        assert one is not None
        assert one - timedelta(days=365) < one < one + timedelta(days=365)


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"Trail": {"S": "not redrive metadata"}},
        {"Queue": {"S": QUEUE}, "Status": {"S": "LOST"}},
    ],
    ids=["an empty entry", "kept metadata that does not parse", "an unknown status"],
)
def test_an_entry_that_cannot_be_read_stops_the_pass_by_name(
    dynamodb: FakeDynamoDb, store: StateStore, damage: dict[str, Any]
) -> None:
    """As the circuit does: run_pass catches CallFailed only, so anything else ends the Lambda without a report."""
    dynamodb.put_item(TableName=TABLE, Item=message_key("a") | damage)

    with pytest.raises(CallFailed, match="BatchGetItem: UnreadableEntry") as caught:
        store.read_ledger(["a"])

    assert caught.value.detail.startswith(f"{message_key('a')['PK']['S']}: ")
    assert "delete this item of the state table" in caught.value.detail
