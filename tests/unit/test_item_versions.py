"""Items that another version wrote: older ones lack something, newer ones have more."""

from dataclasses import MISSING, Field, fields, replace
from typing import Any

import pytest

from smart_redriver.engine.aws.items import (
    circuit_from_item,
    circuit_to_item,
    entry_from_item,
    entry_to_item,
)
from smart_redriver.engine.model.batch import Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.triage.ledger import Status
from tests.unit.examples import NOW, QUEUE, a_batch, a_circuit, ago, ahead, an_entry

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
    unaccounted=1,
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
    rate=Rate(per_second=1.5, looked_at=NOW, borne=2.0, borne_at=NOW),
    **{one.name: NOW for one in fields(Circuit) if one.default is None and one.name != "rate"},
)
FULL_ENTRY = an_entry(
    strikes=1,
    counted_batch=6,
    last_redrive=NOW,
    not_before=ahead(hours=1),
    seen_in_version=3,
    source_arn="arn",
    park_reason="EXPIRING",
    parked_at=NOW,
    first_redrive=NOW,
    first_strike=NOW,
    error="TimeoutError",
    cause="TimeoutError",
    kept_id="kept",
    salt=3,
    left_id="first",
    is_permanent=True,
    is_settled=True,
    is_doubtful=True,
    failed_tries=2,
    heard_in_version=3,
    tries_counted=1,
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


@pytest.mark.parametrize("name", sorted(NEEDED_OF_CIRCUIT - {"PK", "Window"}))
def test_an_item_that_no_version_wrote_is_refused(name: str) -> None:
    item = circuit_to_item(FULL_CIRCUIT)
    del item[name]

    with pytest.raises(KeyError):
        circuit_from_item(QUEUE, item)


#: The attributes that the documentation names, and no others.
DOCUMENTED = (
    *("PK", "State", "FailureCount", "SuccessCount"),
    *("LastStateChangeTimestamp", "LastAttemptTimestamp"),
)


def test_a_circuit_of_the_documented_attributes_alone_is_read_with_the_smallest_window() -> None:
    """Written by hand, or by another tool: a pass that could not read it would fail until it is deleted."""
    whole = circuit_to_item(FULL_CIRCUIT)

    circuit = circuit_from_item(QUEUE, {name: whole[name] for name in DOCUMENTED})

    assert (circuit.state, circuit.window) == (FULL_CIRCUIT.state, 1)


@pytest.mark.parametrize("window", ["0", "-3"])
def test_a_window_that_would_let_nothing_go_is_read_as_the_smallest(window: str) -> None:
    """No letter would go, so that no verdict could ever widen it."""
    item = circuit_to_item(FULL_CIRCUIT) | {"Window": {"N": window}}

    assert circuit_from_item(QUEUE, item).window == 1


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
    """Its size is not known, so none of its letters may be taken out of the metrics of another batch's time."""
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": "4:2:F:1:3"}]}}

    (judged,) = circuit_from_item(QUEUE, item).judged

    assert judged.sent_at < ago(days=365)


def test_an_entry_of_the_first_edition_is_read_and_its_clocks_start_with_its_next_redrive() -> None:
    item = entry_to_item(an_entry(strikes=2), NOW) | {"ForgivenRedrives": {"N": "3"}}

    entry = entry_from_item(item)

    assert (entry.strikes, entry.first_redrive, entry.first_strike) == (2, None, None)


def test_a_judged_batch_of_which_all_was_known_or_of_an_older_version_has_nobody_unaccounted() -> (
    None
):
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": "4:2:S:1:3:5:9"}]}}

    (judged,) = circuit_from_item(QUEUE, item).judged

    assert (judged.size, judged.unaccounted) == (5, 0)


@pytest.mark.parametrize(
    "text", ["", "7", "4:2:X:1:3", "4:2::1:3", "4:2:S:one:3", "4:2:S:1:3:5", "4:2:S:1:3:5:9:1:1"]
)
def test_a_judged_batch_that_no_version_wrote_is_refused(text: str) -> None:
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": text}]}}

    with pytest.raises((ValueError, KeyError)):
        circuit_from_item(QUEUE, item)


@pytest.mark.parametrize("text", ["4:2:S~5~9~1?!:1:3", "4:2:S?!:1:3:5:9:1"])
def test_a_judged_batch_is_read_as_this_version_writes_it_and_as_one_before_did(text: str) -> None:
    item = circuit_to_item(a_circuit()) | {"Judged": {"L": [{"S": text}]}}

    (judged,) = circuit_from_item(QUEUE, item).judged

    assert (judged.verdict, judged.is_strike, judged.was_alone) == (Verdict.SUCCESS, True, True)
    assert (judged.returned, judged.overturned_at) == (1, 3)
    assert (judged.size, judged.sent_at.timestamp(), judged.unaccounted) == (5, 9, 1)


# What the first edition reads, for whoever goes back to it.


def read_by_the_first_edition(text: str) -> tuple[int, int, str, bool, int, int]:
    """Its `_judged_from_text`, word for word but for the record (841e543, lambdas/redrive/items.py)."""
    batch, generation, verdict, returned, overturned_at = text.split(":")
    return (
        int(batch),
        int(generation),
        next(one for one in ("SUCCESS", "FAILURE", "NO_EVIDENCE") if one[0] == verdict[0]),
        verdict.endswith("!"),
        int(returned),
        int(overturned_at),
    )


#: Its words for where a letter is, and for circuits.
FIRST_STATUSES = {"REDRIVEN", "RETURNED", "PARKED", "REPLAYED", "DELETED"}
FIRST_STATES = {"CLOSED", "OPEN", "HALF_OPEN"}


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("is_strike", [False, True])
@pytest.mark.parametrize("was_alone", [False, True])
def test_the_first_edition_reads_every_judged_batch(
    verdict: Verdict, is_strike: bool, was_alone: bool
) -> None:
    judged = replace(JUDGED, verdict=verdict, is_strike=is_strike, was_alone=was_alone)
    item = circuit_to_item(a_circuit(judged=(judged,)))

    (written,) = item["Judged"]["L"]

    assert read_by_the_first_edition(written["S"]) == (1, 1, verdict.value, is_strike, 3, 2)
    assert circuit_from_item(QUEUE, item).judged == (judged,)


@pytest.mark.parametrize("status", Status)
def test_the_first_edition_knows_every_word_for_where_a_letter_is(status: Status) -> None:
    entry = an_entry(status=status)

    item = entry_to_item(entry, NOW)

    assert item["Status"]["S"] in FIRST_STATUSES
    assert entry_from_item(item) == entry
    assert (
        entry_from_item(item | {"Status": {"S": status.value}}) == entry
    )  # as one before wrote it


@pytest.mark.parametrize("state", State)
def test_the_first_edition_knows_every_state_of_a_circuit(state: State) -> None:
    assert circuit_to_item(a_circuit(state=state))["State"]["S"] in FIRST_STATES
