"""Every letter is accounted for once, and what does not add up is listed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.verbs.audit import Fate, Present, Unexplained, add_up
from tests.unit.examples import NOW, QUEUE

HOUR = timedelta(hours=1)


def an_entry(status: Status, **changes: Any) -> Entry:
    entry = Entry(
        original_id="m1", queue=QUEUE, first_seen=NOW - 9 * HOUR, status=status, current_id="m2"
    )
    return replace(entry, **{"last_redrive": NOW - 5 * HOUR} | changes)


def seen(*, dead: str = "", parked: str = "") -> Present:
    return Present(at=NOW, dead=set(dead.split()), parked=set(parked.split()), time_to_return=HOUR)


@pytest.mark.parametrize(
    ("entry", "present", "fate"),
    [
        (an_entry(Status.SUCCEEDED), seen(), Fate.DONE),
        (an_entry(Status.SUCCEEDED), seen(dead="m1"), Fate.STILL_THERE),
        (an_entry(Status.REDRIVEN), seen(), Fate.NOT_SEEN_AGAIN),
        (an_entry(Status.REDRIVEN, last_redrive=NOW), seen(), Fate.ON_ITS_WAY),
        (an_entry(Status.REDRIVEN, is_settled=True), seen(), Fate.UNEXPLAINED),
        (an_entry(Status.REPLAYED), seen(), Fate.NOT_SEEN_AGAIN),
        (an_entry(Status.RETURNED), seen(dead="m1"), Fate.STILL_THERE),
        (an_entry(Status.RETURNED), seen(), Fate.UNEXPLAINED),
        (an_entry(Status.FAILED), seen(), Fate.UNEXPLAINED),
        (an_entry(Status.FAILED, last_redrive=None, first_seen=NOW), seen(), Fate.ON_ITS_WAY),
        (an_entry(Status.PARKED), seen(parked="m1"), Fate.PARKED),
        (an_entry(Status.PARKED), seen(dead="m1"), Fate.STILL_THERE),
        (an_entry(Status.PARKED), seen(), Fate.UNEXPLAINED),
        (an_entry(Status.DELETED), seen(), Fate.DELETED),
        (an_entry(Status.DELETED), seen(dead="m1"), Fate.DELETED),
    ],
)
def test_a_letter_has_one_fate(entry: Entry, present: Present, fate: Fate) -> None:
    sums = add_up([entry], present)

    assert +sums.fates == {fate: 1}
    assert len(sums.unexplained) == (fate is Fate.UNEXPLAINED)


@pytest.mark.parametrize("status", [Status.RETURNED, Status.FAILED, Status.PARKED])
@pytest.mark.parametrize(("hidden", "fate"), [(2, Fate.HIDDEN), (1, Fate.UNEXPLAINED)])
def test_letters_that_are_not_seen_are_hidden_where_as_many_are(
    status: Status, hidden: int, fate: Fate
) -> None:
    """While a pass had the DLQ in its hands, each letter of it was "NOT ACCOUNTED FOR"."""
    entries = [an_entry(status), an_entry(status, original_id="m9")]
    is_parked = status is Status.PARKED
    there = replace(
        seen(),
        hidden_dead=0 if is_parked else hidden,
        hidden_parked=hidden if is_parked else 0,
    )

    sums = add_up(entries, there)

    assert +sums.fates == {fate: 2}
    assert len(sums.unexplained) == sums.fates[Fate.UNEXPLAINED]


def test_who_deleted_letters_is_told() -> None:
    entry = an_entry(Status.REDRIVEN).deleted(message_id="m2", now=NOW, note="deleted by ana")

    assert add_up([entry, replace(entry, original_id="m3")], seen()).deleted == {
        "deleted by ana": 2
    }


def test_letters_without_a_record_count_where_they_are_seen() -> None:
    sums = add_up([], seen(dead="m5 m6", parked="m7"))

    assert +sums.fates == {Fate.STILL_THERE: 2, Fate.UNEXPLAINED: 1}
    assert sums.unexplained == [
        Unexplained("m7", "in the parking lot, and the ledger has no record")
    ]


IDS = st.sampled_from([f"m{number}" for number in range(9)])


@given(
    statuses=st.dictionaries(IDS, st.sampled_from(Status)),
    dead=st.frozensets(IDS),
    parked=st.frozensets(IDS),
)
def test_all_letters_that_are_known_or_seen_add_up(
    statuses: dict[str, Status], dead: frozenset[str], parked: frozenset[str]
) -> None:
    """The sums of `audit` differed from its total."""
    entries = [an_entry(status, original_id=one) for one, status in statuses.items()]

    sums = add_up(entries, Present(at=NOW, dead=dead, parked=parked, time_to_return=HOUR))

    assert sums.letters == sums.fates.total() == len(statuses.keys() | dead | parked)
    assert len(sums.unexplained) == sums.fates[Fate.UNEXPLAINED]
