"""How circuits and ledger entries are written in the state table: names and times."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.aws.items import (
    ENTRY_KEPT,
    circuit_from_item,
    circuit_key,
    circuit_to_item,
    entry_from_item,
    entry_to_item,
    kept_metadata_from_item,
    kept_metadata_to_item,
    lease_key,
    message_key,
)
from smart_redriver.engine.model.batch import JUDGED_KEPT, CauseCount, Heard, Judged, Verdict
from smart_redriver.engine.model.breaker import SMALLEST_WINDOW
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.permit import MOST_PENDING
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ago, an_entry, some_metadata

INSTANTS = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(0, 10**12),
    bool: st.booleans(),
    float: st.integers(0, 10**12).map(lambda thousandths: thousandths / 1000),
    datetime: INSTANTS,
    State: st.sampled_from(State),
    Verdict: st.sampled_from(Verdict),
    Status: st.sampled_from(Status),
    tuple[str, ...]: st.lists(st.text(), max_size=3).map(tuple),
}
#: A judged batch is one short text, to the second.
WHOLE_SECONDS = INSTANTS.map(lambda instant: instant.replace(microsecond=0))


def strategy_for(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    some = getattr(annotation, "__args__", ())
    if type(None) in some:
        (kind,) = (one for one in some if one is not type(None))
        return st.none() | strategy_for(kind)
    if getattr(annotation, "__origin__", None) is tuple:
        return st.lists(strategy_for(some[0]), max_size=3).map(tuple)  # type: ignore[misc]
    return records(annotation)


def records(kind: Any) -> st.SearchStrategy[Any]:
    """Any record of a dataclass, every one of its fields drawn: a field that is added is tested, too."""
    hints = get_type_hints(kind)
    drawn = {one.name: strategy_for(hints[one.name]) for one in fields(kind)}
    return st.builds(kind, **drawn | ({"sent_at": WHOLE_SECONDS} if kind is Judged else {}))


@given(records(Circuit))
def test_a_circuit_is_read_as_it_was_written(drawn: Circuit) -> None:
    """Its window is never smaller than the smallest one, as none is read: see `test_item_versions`."""
    circuit = replace(drawn, window=max(SMALLEST_WINDOW, drawn.window))

    assert circuit_from_item(circuit.queue, circuit_to_item(circuit)) == circuit


@given(records(Entry))
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert entry_from_item(entry_to_item(entry, NOW)) == entry


@given(records(Entry))
def test_an_entry_of_a_queue_that_numbers_its_letters_is_read_as_it_was_written(
    entry: Entry,
) -> None:
    assert entry_from_item(entry_to_item(entry, NOW, "shop/orders")) == entry


def test_redrive_metadata_kept_for_a_copy_is_read_as_it_was_written() -> None:
    metadata = some_metadata(first_seen=ago(hours=1))

    item = kept_metadata_to_item("copy", metadata, NOW)

    assert kept_metadata_from_item(item) == metadata
    assert item["PK"] == {"S": "MESSAGE#copy"}
    assert item["TTL"] == {"N": str(int((NOW + ENTRY_KEPT).timestamp()))}


def test_a_ledger_entry_is_no_kept_metadata() -> None:
    assert kept_metadata_from_item(entry_to_item(an_entry(), NOW)) is None


def test_the_keys_are_those_that_people_look_for() -> None:
    assert circuit_key("orders") == {"PK": {"S": "CIRCUIT_BREAKER#orders"}}
    assert lease_key("orders") == {"PK": {"S": "LEASE#orders"}}
    assert message_key("an-id") == {"PK": {"S": "MESSAGE#an-id"}}


def test_a_circuits_item_has_the_documented_attributes() -> None:
    circuit = a_circuit(
        state=State.OPEN,
        failure_count=3,
        success_count=1,
        changed_at=NOW,
        last_attempt_at=NOW - timedelta(milliseconds=500),
    )

    item = circuit_to_item(circuit)

    documented = {
        "PK": {"S": "CIRCUIT_BREAKER#orders"},
        "State": {"S": "OPEN"},
        "FailureCount": {"N": "3"},
        "SuccessCount": {"N": "1"},
        "LastStateChangeTimestamp": {"S": "2026-01-10T12:00:00Z"},
        "LastAttemptTimestamp": {"S": "2026-01-10T11:59:59.500000Z"},
    }
    assert {name: item[name] for name in documented} == documented
    assert "TTL" not in item


def test_an_entrys_item_has_the_documented_attributes() -> None:
    entry = an_entry(redrive_count=4, last_redrive=NOW, status=Status.PARKED)

    item = entry_to_item(entry, NOW)

    documented = {
        "PK": {"S": "MESSAGE#first"},
        "RedriveCount": {"N": "4"},
        "LastRedriveTimestamp": {"S": "2026-01-10T12:00:00Z"},
        "Status": {"S": "PARKED"},
        "TTL": {"N": str(int((NOW + ENTRY_KEPT).timestamp()))},
    }
    assert {name: item[name] for name in documented} == documented


def test_a_first_redrives_item_leaves_out_what_its_absence_says() -> None:
    entry = an_entry()

    item = entry_to_item(entry, NOW)

    said_later = {"Salt", "IsPermanent", "IsSettled", "IsDoubtful", "FailedTries", "TriesCounted"}
    assert not said_later & item.keys()
    assert {"RedriveCount", "Strikes"} <= item.keys(), "documented"
    assert entry_from_item(item) == entry


def test_an_entry_outlives_every_copy_of_its_letter() -> None:
    longest_retention = timedelta(days=14)

    assert 2 * longest_retention < ENTRY_KEPT


def test_a_circuit_with_all_that_it_may_remember_stays_far_below_dynamodbs_item_limit() -> None:
    circuit = a_circuit(pending=tuple(a_batch(id=10**6 + n) for n in range(20)))
    for number in range(300):
        batch = a_batch(id=10**6 + number, generation=10**4, returned=10**4)
        circuit = circuit.with_verdict(batch, Verdict.SUCCESS, is_strike=True, overturned_at=10**4)

    assert len(str(circuit_to_item(circuit))) < 40_000


def test_an_entry_is_kept_under_the_attributes_that_tables_in_use_have() -> None:
    item = entry_to_item(an_entry(counted_batch=6), NOW)

    assert item["SettledBatch"] == {"N": "6"}


def test_a_circuit_with_all_that_it_may_hold_fits_into_an_item() -> None:
    heard = Heard(failed=1, tries=3, causes=(CauseCount(cause="f" * 16, letters=1),))
    circuit = a_circuit(
        pending=tuple(a_batch(id=i, last_try_at=NOW, heard=heard) for i in range(MOST_PENDING)),
        judged=(a_judged(),) * JUDGED_KEPT,
    )

    # In JSON it is longer than by DynamoDB's count.
    assert len(json.dumps(circuit_to_item(circuit))) < 400_000
