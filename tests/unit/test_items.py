"""How circuits and ledger entries are written in the state table: names, times, and older versions."""

from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.items import (
    ENTRY_KEPT,
    circuit_from_item,
    circuit_key,
    circuit_to_item,
    entry_from_item,
    entry_to_item,
    kept_trail_from_item,
    kept_trail_to_item,
    lease_key,
    message_key,
)
from redrive.core.circuit import Batch, Circuit, Depth, Judged, State, Verdict
from redrive.core.ledger import Entry, Status
from tests.unit.examples import NOW, QUEUE, a_batch, a_circuit, a_trail, ago, ahead, an_entry

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


def strategy_for(annotation: Any) -> st.SearchStrategy[Any]:
    if annotation in BY_TYPE:
        return BY_TYPE[annotation]
    some = getattr(annotation, "__args__", ())
    if type(None) in some:
        (kind,) = (one for one in some if one is not type(None))
        return st.none() | strategy_for(kind)
    if getattr(annotation, "__origin__", None) is tuple:
        return st.lists(strategy_for(some[0]), max_size=3).map(tuple)
    return records(annotation)


def records(kind: Any) -> st.SearchStrategy[Any]:
    """Any record of a dataclass, every one of its fields drawn: a field that is added is tested, too."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{one.name: strategy_for(hints[one.name]) for one in fields(kind)})


@given(records(Circuit))
def test_a_circuit_is_read_as_it_was_written(circuit: Circuit) -> None:
    assert circuit_from_item(circuit.queue, circuit_to_item(circuit)) == circuit


@given(records(Entry))
def test_an_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert entry_from_item(entry_to_item(entry, NOW)) == entry


def test_a_trail_kept_for_a_copy_is_read_as_it_was_written() -> None:
    trail = a_trail(first_seen=ago(hours=1))

    item = kept_trail_to_item("copy", trail, NOW)

    assert kept_trail_from_item(item) == trail
    assert item["PK"] == {"S": "MESSAGE#copy"}
    assert item["TTL"] == {"N": str(int((NOW + ENTRY_KEPT).timestamp()))}


def test_a_ledger_entry_is_no_kept_trail() -> None:
    assert kept_trail_from_item(entry_to_item(an_entry(), NOW)) is None


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


def test_an_entry_outlives_every_copy_of_its_letter() -> None:
    longest_retention = timedelta(days=14)

    assert 2 * longest_retention < ENTRY_KEPT


FULL_CIRCUIT = a_circuit(
    state=State.HALF_OPEN,
    failure_count=1,
    success_count=2,
    consecutive_opens=3,
    reason="a reason",
    last_attempt_at=NOW,
    depth=Depth(letters=1, at=NOW, removed=2, removed_at=NOW, usual_inflow=0.5, unexplained=1.5),
    pending=(a_batch(),),
    judged=(Judged(id=1, generation=1, verdict=Verdict.FAILURE, is_strike=False),),
    **{
        one.name: True if one.default is False else NOW
        for one in fields(Circuit)
        if one.default is False or one.name.endswith("sweep_at")
    },
)
FULL_ENTRY = an_entry(
    strikes=1,
    settled_batch=6,
    last_redrive=NOW,
    not_before=ahead(hours=1),
    seen_in_version=3,
    source_arn="arn",
    park_reason="EXPIRING",
    parked_at=NOW,
    forgiven_redrives=2,
    history=("it began",),
)
#: What every version wrote.
NEEDED_OF_CIRCUIT = {"PK", "State", "LastStateChangeTimestamp", "Window"}
NEEDED_OF_ENTRY = {"PK", "Queue", "Status", "FirstSeenTimestamp", "CurrentMessageId"}


def optional_names(item: dict[str, Any], needed: set[str]) -> list[Any]:
    names = sorted(item.keys() - needed - {"TTL"})
    return list(names)


def default_of(one: Field[Any]) -> Any:
    return one.default if one.default is not MISSING else ()


def differing(one: Any, other: Any) -> list[Field[Any]]:
    return [f for f in fields(one) if getattr(one, f.name) != getattr(other, f.name)]


@pytest.mark.parametrize("name", optional_names(circuit_to_item(FULL_CIRCUIT), NEEDED_OF_CIRCUIT))
def test_a_circuit_of_a_version_without_an_attribute_reads_as_its_default(name: str) -> None:
    item = circuit_to_item(FULL_CIRCUIT)
    del item[name]

    circuit = circuit_from_item(QUEUE, item)

    lost = differing(circuit, FULL_CIRCUIT)
    assert len(lost) <= 1
    assert all(getattr(circuit, one.name) == default_of(one) for one in lost)


@pytest.mark.parametrize("name", optional_names(entry_to_item(FULL_ENTRY, NOW), NEEDED_OF_ENTRY))
def test_an_entry_of_a_version_without_an_attribute_reads_as_its_default(name: str) -> None:
    item = entry_to_item(FULL_ENTRY, NOW)
    del item[name]

    entry = entry_from_item(item)

    (lost,) = differing(entry, FULL_ENTRY)
    assert getattr(entry, lost.name) == default_of(lost)


@pytest.mark.parametrize(
    "name", sorted(circuit_to_item(FULL_CIRCUIT)["Pending"]["L"][0]["M"].keys())
)
def test_a_batch_of_a_version_without_a_field_reads_as_its_default(name: str) -> None:
    item = circuit_to_item(FULL_CIRCUIT)
    needed = {"Id", "Generation", "SentAt", "FirstTryAt", "DueAt", "Size"}
    if name not in needed:
        del item["Pending"]["L"][0]["M"][name]

    (batch,) = circuit_from_item(QUEUE, item).pending

    assert batch == Batch(**{f.name: getattr(a_batch(), f.name) for f in fields(Batch)})


def test_an_item_of_a_newer_version_is_read_without_what_is_not_known_yet() -> None:
    circuit = circuit_to_item(FULL_CIRCUIT)
    circuit["Weather"] = {"S": "fine"}
    circuit["Depth"]["M"]["Temperature"] = {"N": "4"}
    circuit["Pending"]["L"][0]["M"]["Colour"] = {"S": "red"}
    entry = entry_to_item(FULL_ENTRY, NOW) | {"Weather": {"S": "fine"}}

    assert circuit_from_item(QUEUE, circuit) == FULL_CIRCUIT
    assert entry_from_item(entry) == FULL_ENTRY


@pytest.mark.parametrize("name", sorted(NEEDED_OF_CIRCUIT - {"PK"}))
def test_an_item_that_no_version_wrote_is_refused(name: str) -> None:
    item = circuit_to_item(FULL_CIRCUIT)
    del item[name]

    with pytest.raises(KeyError):
        circuit_from_item(QUEUE, item)


def test_a_circuit_with_all_that_it_may_remember_stays_far_below_dynamodbs_item_limit() -> None:
    circuit = a_circuit(pending=tuple(a_batch(id=10**6 + n) for n in range(20)))
    for number in range(300):
        batch = a_batch(id=10**6 + number, generation=10**4, returned=10**4)
        circuit = circuit.settled(batch, Verdict.SUCCESS, is_strike=True, overturned_at=10**4)

    assert len(str(circuit_to_item(circuit))) < 40_000


def test_a_queue_that_stays_quiet_for_days_can_still_be_written() -> None:
    """DynamoDB takes no number below 1e-130, and boto3's serializer raises decimal.Underflow for it.

    A letter that stays in the DLQ while nothing is out (held by a long backoff, or one that the parking lot refuses)
    halves the inflow at every pass: after some 430 passes, 36 hours of the default schedule, none can be written
    any more, and none recovers by itself.
    """
    depth, now = Depth(letters=1, at=NOW, usual_inflow=1.0), NOW

    for _ in range(1_000):
        now += timedelta(minutes=5)
        depth = depth.measured(1, now, letters_are_out=False)

    assert depth.usual_inflow == 0 or depth.usual_inflow > 1e-130
    circuit_to_item(a_circuit(depth=depth))
