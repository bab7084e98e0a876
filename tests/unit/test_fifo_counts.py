"""What numbers tell of letters that nobody can see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Heard
from smart_redriver.engine.model.fifo_counts import (
    COUNTED_BATCHES_KEPT,
    METRICS_MISSED,
    METRICS_PATIENCE,
    BatchCounts,
    allowance,
    counted,
    latest,
)
from smart_redriver.engine.model.judging import charge, count_unseen, note_reports
from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Status
from tests.unit.examples import NOW, a_circuit, a_judged, a_letter, an_entry

SENT = NOW - timedelta(minutes=10)


def some_counts(**changes: Any) -> BatchCounts:
    """Three letters, sent ten minutes ago."""
    usual = {"batch": 7, "sent_at": SENT, "sent_by": SENT, "size": 3, "unseen": 3}
    return BatchCounts(**{**usual, "due_at": SENT + timedelta(minutes=3), **changes})


def metrics(*minutes: dict[str, Any]) -> QueueMetrics:
    """Minute after minute, from the one before the batch on; what is not told is nothing."""
    start = SENT - timedelta(minutes=1)
    gauges = {"visible": 0, "in_flight": 0, "delayed": 0}
    return QueueMetrics(
        tuple(
            Minute(at=start + timedelta(minutes=number), **gauges | told)
            for number, told in enumerate(minutes)
        )
    )


QUIET: dict[str, Any] = {}
HELD = {"in_flight": 3, "oldest_age_seconds": 600.0}
UNTOLD = {"visible": None, "in_flight": None, "delayed": None}


def test_all_that_were_deleted_on_a_quiet_queue_are_done() -> None:
    batch_counts = counted(some_counts(), (), metrics(QUIET, {"sent": 3, "deleted": 3}))

    assert (batch_counts.succeeded, batch_counts.is_accounted) == (3, True)


def test_of_three_two_were_deleted_and_one_of_them_is_not_explained() -> None:
    one_moved = metrics(QUIET, {"sent": 3, "deleted": 2, "in_flight": 1}, QUIET, QUIET, QUIET)

    batch_counts = counted(some_counts(), (), one_moved)

    assert (batch_counts.succeeded, batch_counts.is_unexplained) == (2, True)


def test_one_that_was_met_again_explains_what_was_not_deleted() -> None:
    batch_counts = counted(some_counts(came_back=1), (), metrics(QUIET, {"sent": 3, "deleted": 2}))

    assert batch_counts.is_accounted


def test_what_others_may_have_been_is_not_counted_for_the_batch() -> None:
    live_died = metrics(QUIET, {"sent": 5, "deleted": 4, "in_flight": 1}, QUIET, QUIET, QUIET)

    batch_counts = counted(some_counts(), (), live_died)

    assert (batch_counts.succeeded, batch_counts.is_unexplained) == (2, True)


def test_a_moment_at_which_all_that_had_come_was_done_shows_it_whatever_follows() -> None:
    later_they_fail = metrics(
        QUIET, {"sent": 4, "deleted": 4}, {"sent": 9, "in_flight": 9}, {"in_flight": 9}
    )

    assert counted(some_counts(), (), later_they_fail).is_accounted


def test_what_came_back_of_another_batch_is_not_what_was_deleted() -> None:
    another = a_judged(3, 2, id=8, sent_at=SENT)
    told = metrics(QUIET, {"sent": 6, "deleted": 4}, QUIET, QUIET)

    assert counted(some_counts(), [another], told).succeeded == 3
    assert counted(some_counts(), [replace(another, returned=0)], told).succeeded == 1


def test_of_a_batch_sent_later_nothing_is_taken_off_a_span_that_ended_before() -> None:
    later = a_judged(3, 3, id=8, sent_at=SENT + timedelta(minutes=2))
    told = metrics(QUIET, {"sent": 5, "deleted": 2, "in_flight": 3}, {"in_flight": 3})

    assert counted(some_counts(), [later], told).succeeded == 0


def test_of_a_batch_of_the_last_minute_that_is_told_nothing_is_taken_off_either() -> None:
    """It takes seconds to send, and some of it may have come after the minute."""
    last = a_judged(2, 2, id=8, sent_at=SENT + timedelta(minutes=1))
    told = metrics(QUIET, {"sent": 3, "in_flight": 3}, {"sent": 2, "deleted": 2, "in_flight": 3})

    assert counted(some_counts(), [last], told).succeeded == 0


def test_what_came_back_of_a_batch_before_was_not_sent_since() -> None:
    before = a_judged(2, 2, id=6, sent_at=SENT - timedelta(minutes=5))
    told = metrics(QUIET, {"sent": 5, "deleted": 4, "in_flight": 1})

    assert counted(some_counts(), [before], told).succeeded == 2


def test_nothing_is_shown_by_a_span_that_ends_before_all_of_the_batch_were_sent() -> None:
    """Two that others sent would pass for the two of ours that follow, and fail."""
    told = metrics(QUIET, {"sent": 3, "deleted": 3}, {"sent": 2, "in_flight": 2}, QUIET)

    batch_counts = counted(some_counts(sent_by=SENT + timedelta(minutes=1)), (), told)

    assert batch_counts.succeeded == 1


def test_where_nothing_was_deleted_none_has_succeeded() -> None:
    told = metrics(QUIET, {"sent": 3, "in_flight": 3}, {"in_flight": 3})

    assert counted(some_counts(), (), told).succeeded == 0


def test_a_batch_has_left_its_queue_in_its_very_minute_where_nothing_is_there() -> None:
    assert counted(some_counts(), (), metrics(QUIET, QUIET, QUIET, QUIET)).is_gone
    assert not counted(some_counts(), (), metrics(QUIET, QUIET, QUIET)).is_gone


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
    assert counted(some_counts(), (), metrics(QUIET, *minutes)).is_gone is is_gone


@pytest.mark.parametrize(("seconds", "is_read"), [(-1, True), (0, False), (1, False)])
def test_metrics_of_which_nothing_was_read_for_two_hours_are_not_read(
    seconds: int, is_read: bool
) -> None:
    then = NOW - METRICS_MISSED - timedelta(seconds=seconds)

    assert some_counts(known_until=then).is_read(NOW) == is_read


def test_without_the_minute_before_nothing_is_counted() -> None:
    told = metrics(QUIET, {"sent": 3, "deleted": 3})

    batch_counts = counted(some_counts(), (), QueueMetrics(told.minutes[1:]))

    assert (batch_counts.succeeded, batch_counts.known_until) == (0, None)


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

    batch_counts = counted(
        some_counts(), (), metrics(QUIET, sending, sending, minute, minute, minute)
    )

    assert batch_counts.is_gone is is_gone


def test_nothing_is_unexplained_while_it_may_be_in_its_queue_still() -> None:
    waits = {"visible": 3, "oldest_age_seconds": 600.0}
    sent = {"sent": 3, "visible": 3, "oldest_age_seconds": 60.0}

    batch_counts = counted(some_counts(), (), metrics(QUIET, sent, waits, waits, waits))

    assert not batch_counts.is_unexplained
    assert batch_counts.is_open(batch_counts.due_at)
    assert not batch_counts.is_open(batch_counts.due_at + METRICS_PATIENCE)


def test_a_circuit_counts_returns_and_reports_of_its_batches() -> None:
    circuit = a_circuit(counted_batches=(some_counts(),), judged=(a_judged(id=7),))

    circuit = charge(circuit, {(7, False): 1, (7, True): 1})
    circuit = note_reports(circuit, {7: Heard(succeeded=1, failed=1)}, Settings(), NOW, 0.5)
    circuit = count_unseen(circuit, metrics(QUIET, {"sent": 3, "deleted": 1}))

    (batch_counts,) = circuit.counted_batches
    assert (batch_counts.came_back, batch_counts.reported, batch_counts.succeeded) == (2, 2, 1)


def test_as_many_may_be_out_of_sight_as_could_be_accounted_for_four_times_over() -> None:
    good = some_counts(succeeded=3)
    bad = some_counts(succeeded=2, is_gone=True, known_until=NOW)

    assert allowance([]) == 1
    assert allowance([some_counts(size=1, unseen=1, succeeded=1)]) == 4
    assert allowance([good, bad]) == 1
    assert allowance([bad, good]) == 6, "one could not be told lately"
    assert allowance([good, replace(bad, unseen=0)]) == 12


@pytest.mark.parametrize(("apart", "allowed"), [(9, 16), (29, 16), (30, 12), (60, 12)])
def test_small_batches_of_one_minute_are_accounted_for_together(apart: int, allowed: int) -> None:
    sent_at = SENT.replace(second=30)
    first = some_counts(sent_at=sent_at, succeeded=3)
    second = some_counts(sent_at=sent_at + timedelta(seconds=apart), size=1, unseen=1, succeeded=1)

    assert allowance([first, second]) == allowed


def test_what_was_accounted_for_before_a_doubt_does_not_count_after_it() -> None:
    good = some_counts(succeeded=3)
    bad = some_counts(succeeded=2, is_gone=True, known_until=NOW)
    small = some_counts(size=1, unseen=1, succeeded=1)

    assert allowance([good, bad, small]) == allowance([bad, small]) == 2


def test_what_is_accounted_for_is_forgotten_first() -> None:
    counted_batches = [some_counts(batch=number) for number in range(COUNTED_BATCHES_KEPT)]
    counted_batches[5] = replace(counted_batches[5], succeeded=3)

    kept = latest((*counted_batches, some_counts(batch=100)))

    assert [one.batch for one in kept] == [*range(5), *range(6, COUNTED_BATCHES_KEPT), 100]


def test_where_none_is_the_oldest_is_forgotten() -> None:
    counted_batches = tuple(some_counts(batch=number) for number in range(COUNTED_BATCHES_KEPT + 2))

    assert [one.batch for one in latest(counted_batches)] == [*range(2, COUNTED_BATCHES_KEPT + 2)]


def test_nobody_is_convicted_whom_nobody_has_seen_fail() -> None:
    """It goes again since numbers could not tell: where live messages make them vague, good letters do, too."""
    kept = Case(
        letter=a_letter(),
        entry=an_entry(
            original_id="first", current_id="copy", kept_id="first", status=Status.REDRIVEN
        ),
    )
    striking = a_circuit(judged=(a_judged(id=7, is_strike=True),))
    counted_again = striking.with_counts(
        some_counts(batch=7, size=1, unseen=1, is_gone=True, known_until=NOW)
    )

    assert kept.is_presumed
    assert kept.strikes(striking) == 1
    assert kept.strikes(counted_again) == 0
