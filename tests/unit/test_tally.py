"""What numbers tell of letters that nobody can see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Heard
from smart_redriver.engine.model.books import Books, Minute
from smart_redriver.engine.model.judging import charge, count_unseen, note_reports
from smart_redriver.engine.model.tally import (
    BOOKS_MISSED,
    BOOKS_PATIENCE,
    TALLIES_KEPT,
    Tally,
    allowance,
    counted,
    latest,
)
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Status
from tests.unit.examples import NOW, a_circuit, a_judged, a_letter, an_entry

SENT = NOW - timedelta(minutes=10)


def a_tally(**changes: Any) -> Tally:
    """Three letters, sent ten minutes ago."""
    usual = {"batch": 7, "sent_at": SENT, "sent_by": SENT, "size": 3, "unseen": 3}
    return Tally(**{**usual, "due_at": SENT + timedelta(minutes=3), **changes})


def books(*minutes: dict[str, Any]) -> Books:
    """Minute after minute, from the one before the batch on; what is not told is nothing."""
    start = SENT - timedelta(minutes=1)
    gauges = {"visible": 0, "in_flight": 0, "delayed": 0}
    return Books(
        tuple(
            Minute(at=start + timedelta(minutes=number), **gauges | told)
            for number, told in enumerate(minutes)
        )
    )


QUIET: dict[str, Any] = {}
HELD = {"in_flight": 3, "oldest_age_seconds": 600.0}
UNTOLD = {"visible": None, "in_flight": None, "delayed": None}


def test_all_that_were_deleted_on_a_quiet_queue_are_done() -> None:
    tally = counted(a_tally(), (), books(QUIET, {"sent": 3, "deleted": 3}))

    assert (tally.succeeded, tally.is_accounted) == (3, True)


def test_of_three_two_were_deleted_and_one_of_them_is_not_explained() -> None:
    one_moved = books(QUIET, {"sent": 3, "deleted": 2, "in_flight": 1}, QUIET, QUIET, QUIET)

    tally = counted(a_tally(), (), one_moved)

    assert (tally.succeeded, tally.is_unexplained) == (2, True)


def test_one_that_was_met_again_explains_what_was_not_deleted() -> None:
    tally = counted(a_tally(came_back=1), (), books(QUIET, {"sent": 3, "deleted": 2}))

    assert tally.is_accounted


def test_what_others_may_have_been_is_not_counted_for_the_batch() -> None:
    live_died = books(QUIET, {"sent": 5, "deleted": 4, "in_flight": 1}, QUIET, QUIET, QUIET)

    tally = counted(a_tally(), (), live_died)

    assert (tally.succeeded, tally.is_unexplained) == (2, True)


def test_a_moment_at_which_all_that_had_come_was_done_shows_it_whatever_follows() -> None:
    later_they_fail = books(
        QUIET, {"sent": 4, "deleted": 4}, {"sent": 9, "in_flight": 9}, {"in_flight": 9}
    )

    assert counted(a_tally(), (), later_they_fail).is_accounted


def test_what_came_back_of_another_batch_is_not_what_was_deleted() -> None:
    another = a_judged(3, 2, id=8, sent_at=SENT)
    told = books(QUIET, {"sent": 6, "deleted": 4}, QUIET, QUIET)

    assert counted(a_tally(), [another], told).succeeded == 3
    assert counted(a_tally(), [replace(another, returned=0)], told).succeeded == 1


def test_of_a_batch_sent_later_nothing_is_taken_off_a_span_that_ended_before() -> None:
    later = a_judged(3, 3, id=8, sent_at=SENT + timedelta(minutes=2))
    told = books(QUIET, {"sent": 5, "deleted": 2, "in_flight": 3}, {"in_flight": 3})

    assert counted(a_tally(), [later], told).succeeded == 0


def test_of_a_batch_of_the_last_minute_that_is_told_nothing_is_taken_off_either() -> None:
    """It takes seconds to send, and some of it may have come after the minute."""
    last = a_judged(2, 2, id=8, sent_at=SENT + timedelta(minutes=1))
    told = books(QUIET, {"sent": 3, "in_flight": 3}, {"sent": 2, "deleted": 2, "in_flight": 3})

    assert counted(a_tally(), [last], told).succeeded == 0


def test_what_came_back_of_a_batch_before_was_not_sent_since() -> None:
    before = a_judged(2, 2, id=6, sent_at=SENT - timedelta(minutes=5))
    told = books(QUIET, {"sent": 5, "deleted": 4, "in_flight": 1})

    assert counted(a_tally(), [before], told).succeeded == 2


def test_nothing_is_shown_by_a_span_that_ends_before_all_of_the_batch_were_sent() -> None:
    """Two that others sent would pass for the two of ours that follow, and fail."""
    told = books(QUIET, {"sent": 3, "deleted": 3}, {"sent": 2, "in_flight": 2}, QUIET)

    tally = counted(a_tally(sent_by=SENT + timedelta(minutes=1)), (), told)

    assert tally.succeeded == 1


def test_where_nothing_was_deleted_none_has_succeeded() -> None:
    told = books(QUIET, {"sent": 3, "in_flight": 3}, {"in_flight": 3})

    assert counted(a_tally(), (), told).succeeded == 0


def test_a_batch_has_left_its_queue_in_its_very_minute_where_nothing_is_there() -> None:
    assert counted(a_tally(), (), books(QUIET, QUIET, QUIET, QUIET)).is_gone
    assert not counted(a_tally(), (), books(QUIET, QUIET, QUIET)).is_gone


@pytest.mark.parametrize(
    ("minutes", "is_gone"),
    [
        ((HELD, QUIET, QUIET, HELD), False),
        ((HELD, QUIET, HELD, QUIET, QUIET), False),
        ((HELD, QUIET, UNTOLD, QUIET, QUIET), True),
        ((HELD, QUIET, QUIET, QUIET, HELD), True),
    ],
    ids=["two minutes", "not in a row", "a minute is not told", "and others come later"],
)
def test_no_gauge_that_reads_nothing_for_a_minute_or_two_is_believed(
    minutes: tuple[dict[str, Any], ...], is_gone: bool
) -> None:
    """One did: the next letter of a group went while the one before it was in flight."""
    assert counted(a_tally(), (), books(QUIET, *minutes)).is_gone is is_gone


@pytest.mark.parametrize(("seconds", "is_read"), [(-1, True), (0, False), (1, False)])
def test_books_of_which_nothing_was_read_for_two_hours_are_not_read(
    seconds: int, is_read: bool
) -> None:
    then = NOW - BOOKS_MISSED - timedelta(seconds=seconds)

    assert a_tally(known_until=then).is_read(NOW) == is_read


def test_without_the_minute_before_nothing_is_counted() -> None:
    told = books(QUIET, {"sent": 3, "deleted": 3})

    tally = counted(a_tally(), (), Books(told.minutes[1:]))

    assert (tally.succeeded, tally.known_until) == (0, None)


@pytest.mark.parametrize(
    ("minute", "is_gone"),
    [
        (QUIET, True),
        ({"visible": None, "in_flight": None}, False),
        ({"visible": 1, "oldest_age_seconds": 60.0}, True),
        ({"visible": 1, "oldest_age_seconds": 200.0}, False),
        ({"in_flight": 1, "oldest_age_seconds": None}, False),
    ],
    ids=[
        "nothing is there",
        "nothing is known",
        "the oldest came later",
        "the oldest may be ours",
        "its age is not told",
    ],
)
def test_a_batch_has_left_its_queue_when_nothing_there_is_as_old(
    minute: dict[str, Any], is_gone: bool
) -> None:
    sending = {"sent": 3, "in_flight": 3, "oldest_age_seconds": 60.0}

    tally = counted(a_tally(), (), books(QUIET, sending, sending, minute, minute, minute))

    assert tally.is_gone is is_gone


def test_nothing_is_unexplained_while_it_may_be_in_its_queue_still() -> None:
    waits = {"visible": 3, "oldest_age_seconds": 600.0}
    sent = {"sent": 3, "visible": 3, "oldest_age_seconds": 60.0}

    tally = counted(a_tally(), (), books(QUIET, sent, waits, waits, waits))

    assert not tally.is_unexplained
    assert tally.is_open(tally.due_at)
    assert not tally.is_open(tally.due_at + BOOKS_PATIENCE)


def test_a_circuit_counts_returns_and_reports_of_its_batches() -> None:
    circuit = a_circuit(tallies=(a_tally(),), judged=(a_judged(id=7),))

    circuit = charge(circuit, {(7, False): 1, (7, True): 1})
    circuit = note_reports(circuit, {7: Heard(succeeded=1, failed=1)}, Settings(), NOW, 0.5)
    circuit = count_unseen(circuit, books(QUIET, {"sent": 3, "deleted": 1}))

    (tally,) = circuit.tallies
    assert (tally.came_back, tally.reported, tally.succeeded) == (2, 2, 1)


def test_as_many_may_be_out_of_sight_as_could_be_accounted_for_four_times_over() -> None:
    good = a_tally(succeeded=3)
    bad = a_tally(succeeded=2, is_gone=True, known_until=NOW)

    assert allowance([]) == 1
    assert allowance([a_tally(size=1, unseen=1, succeeded=1)]) == 4
    assert allowance([good, bad]) == 1
    assert allowance([bad, good]) == 6, "one could not be told lately"
    assert allowance([good, replace(bad, unseen=0)]) == 12


def test_what_is_accounted_for_is_forgotten_first() -> None:
    tallies = [a_tally(batch=number) for number in range(TALLIES_KEPT)]
    tallies[5] = replace(tallies[5], succeeded=3)

    kept = latest((*tallies, a_tally(batch=100)))

    assert [one.batch for one in kept] == [*range(5), *range(6, TALLIES_KEPT), 100]


def test_where_none_is_the_oldest_is_forgotten() -> None:
    tallies = tuple(a_tally(batch=number) for number in range(TALLIES_KEPT + 2))

    assert [one.batch for one in latest(tallies)] == [*range(2, TALLIES_KEPT + 2)]


def test_nobody_is_convicted_whom_nobody_has_seen_fail() -> None:
    """It goes again since numbers could not tell: where live messages make them vague, good letters do, too."""
    kept = Case(
        letter=a_letter(),
        entry=an_entry(
            original_id="first", current_id="copy", kept_id="first", status=Status.REDRIVEN
        ),
    )
    striking = a_circuit(judged=(a_judged(id=7, is_strike=True),))
    counted_again = striking.with_tally(
        a_tally(batch=7, size=1, unseen=1, is_gone=True, known_until=NOW)
    )

    assert kept.is_presumed
    assert kept.strikes(striking) == 1
    assert kept.strikes(counted_again) == 0
