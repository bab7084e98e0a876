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
from redrive.core.batch import Judged, Verdict
from redrive.core.circuit import Circuit, Orders, State
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
        return st.lists(strategy_for(some[0]), max_size=3).map(tuple)
    return records(annotation)


def records(kind: Any) -> st.SearchStrategy[Any]:
    """Any record of a dataclass, every one of its fields drawn: a field that is added is tested, too."""
    hints = get_type_hints(kind)
    drawn = {one.name: strategy_for(hints[one.name]) for one in fields(kind)}
    return st.builds(kind, **drawn | ({"sent_at": WHOLE_SECONDS} if kind is Judged else {}))


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


JUDGED = Judged(
    id=1,
    generation=1,
    verdict=Verdict.FAILURE,
    is_strike=False,
    was_alone=True,
    sent_at=NOW,
    size=4,
    returned=3,
    overturned_at=2,
)
FULL_BATCH = a_batch(
    last_try_at=ago(minutes=8), suspects=2, returned=1, suspects_returned=1, is_probe=True
)
FULL_CIRCUIT = a_circuit(
    state=State.HALF_OPEN,
    failure_count=1,
    success_count=2,
    consecutive_opens=3,
    reason="a reason",
    good_window=64,
    is_shaken=True,
    orders=Orders(is_paused=True, by="a person"),
    pending=(FULL_BATCH,),
    judged=(JUDGED,),
    **{one.name: NOW for one in fields(Circuit) if one.default is None},
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
    first_redrive=NOW,
    first_strike=NOW,
    error="TimeoutError",
    history=("it began",),
)
#: What every version wrote.
NEEDED_OF_CIRCUIT = {"PK", "State", "LastStateChangeTimestamp", "Window"}
NEEDED_OF_BATCH = {"Id", "Generation", "SentAt", "FirstTryAt", "DueAt", "Size"}
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
    "name", optional_names(circuit_to_item(FULL_CIRCUIT)["Pending"]["L"][0]["M"], NEEDED_OF_BATCH)
)
def test_a_batch_of_a_version_without_a_field_reads_as_its_default(name: str) -> None:
    item = circuit_to_item(FULL_CIRCUIT)
    del item["Pending"]["L"][0]["M"][name]

    (batch,) = circuit_from_item(QUEUE, item).pending

    lost = differing(batch, FULL_BATCH)
    assert len(lost) <= 1
    assert all(getattr(batch, one.name) == default_of(one) for one in lost)


def test_an_item_of_a_newer_version_is_read_without_what_is_not_known_yet() -> None:
    circuit = circuit_to_item(FULL_CIRCUIT)
    circuit["Weather"] = {"S": "fine"}
    circuit["Orders"]["M"]["Temperature"] = {"N": "4"}
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


# What the first edition wrote.


def test_a_circuit_of_the_first_edition_is_read_without_its_account_of_the_depth() -> None:
    item = circuit_to_item(a_circuit(pending=(a_batch(last_try_at=None),)))
    item["Depth"] = {"M": {"Letters": {"N": "7"}, "At": {"S": "2026-01-10T11:55:00Z"}}}
    item["Judged"] = {"L": [{"S": "4:2:S!:1:3"}]}

    circuit = circuit_from_item(QUEUE, item)

    (judged,) = circuit.judged
    assert (judged.id, judged.verdict, judged.is_strike) == (4, Verdict.SUCCESS, True)
    assert (judged.returned, judged.overturned_at) == (1, 3)
    assert (judged.size, judged.seen_again, judged.was_alone) == (0, 0, False)
    assert circuit.pending[0].tried_by == circuit.pending[0].first_try_at


def test_a_batch_of_the_first_edition_is_older_than_any_that_counts_as_evidence_today() -> None:
    """Its size is not known, so none of its letters may be taken out of the books of another batch's time."""
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": "4:2:F:1:3"}]}}

    (judged,) = circuit_from_item(QUEUE, item).judged

    assert judged.sent_at < ago(days=365)


def test_an_entry_of_the_first_edition_is_read_and_its_clocks_start_with_its_next_redrive() -> None:
    item = entry_to_item(an_entry(strikes=2), NOW) | {"ForgivenRedrives": {"N": "3"}}

    entry = entry_from_item(item)

    assert (entry.strikes, entry.first_redrive, entry.first_strike) == (2, None, None)


@pytest.mark.parametrize("text", ["", "7", "4:2:X:1:3", "4:2::1:3", "4:2:S:one:3", "4:2:S:1:3:5"])
def test_a_judged_batch_that_no_version_wrote_is_refused(text: str) -> None:
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": text}]}}

    with pytest.raises((ValueError, KeyError)):
        circuit_from_item(QUEUE, item)
