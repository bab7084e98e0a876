"""What the circuit remembers of its batches, and what people ordered."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from smart_redriver.engine.model.batch import JUDGED_KEPT, Heard, Judged, Verdict
from smart_redriver.engine.model.circuit import SUSPECTS_SHOW_IN, HeldSuspects, Orders, Waiting
from smart_redriver.engine.triage.decision import Hold, HoldReason
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ago, ahead


def test_returns_with_and_without_strikes_are_letters_that_were_seen_again() -> None:
    assert a_batch(size=10, suspects=3, returned=2, suspects_returned=1).seen_again == 3


def test_a_copy_that_is_seen_twice_never_makes_more_of_a_batch_than_was_sent() -> None:
    judged = Judged(
        id=1,
        generation=1,
        verdict=Verdict.SUCCESS,
        is_strike=True,
        sent_at=NOW,
        size=1,
        returned=2,
    )

    assert a_batch(size=1, returned=2).seen_again == 1
    assert judged.seen_again == 1


def test_a_batch_is_tried_when_its_last_letter_is_and_else_when_its_first() -> None:
    """The first edition did not write when the last letter is tried."""
    assert a_batch(last_try_at=ago(minutes=8)).tried_by == ago(minutes=8)
    assert a_batch(first_try_at=ago(minutes=9), last_try_at=None).tried_by == ago(minutes=9)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, 0),
        ({"returned": 2, "suspects_returned": 1}, 3),
        ({"heard": Heard(failed=2, suspects_failed=1)}, 3),
        ({"returned": 2, "heard": Heard(failed=2, suspects_failed=1)}, 3),  # the same letters
        ({"returned": 1, "heard": Heard(succeeded=2, parked=1)}, 4),
        ({"heard": Heard(failed=1, succeeded=2, parked=3)}, 6),
        ({"returned": 4, "heard": Heard(succeeded=7)}, 10),  # no more than were sent
    ],
)
def test_of_a_batch_is_known_what_came_back_and_what_was_reported(
    changes: dict[str, Any], known: int
) -> None:
    batch = a_batch(size=10, **changes)

    assert (batch.known, batch.unknown) == (known, 10 - known)


def test_letters_whose_failure_speaks_against_the_consumer_are_all_but_the_suspects() -> None:
    assert a_batch(size=10, suspects=3).unblemished == 7


@pytest.mark.parametrize(
    ("minutes", "returned", "may_hide"), [(9, 1, True), (8, 1, True), (11, 1, False), (9, 2, False)]
)
def test_suspects_may_hide_among_letters_sent_since_of_which_nothing_was_known(
    minutes: int, returned: int, may_hide: bool
) -> None:
    judged = a_judged(minutes=minutes, unaccounted=2, returned=returned)

    assert a_circuit(judged=(judged,)).may_hide_suspects(ago(minutes=9)) == may_hide


@pytest.mark.parametrize("order", [1, -1])
def test_one_batch_is_enough_among_which_suspects_may_hide(order: int) -> None:
    told = a_judged(unaccounted=0)
    judged = (a_judged(id=6, unaccounted=1), told)[::order]

    assert a_circuit(judged=judged).may_hide_suspects(ago(hours=1))
    assert not a_circuit(judged=(told, told)).may_hide_suspects(ago(hours=1))


@pytest.mark.parametrize("order", [1, -1])
def test_the_last_batch_that_was_judged_is_the_one_that_was_sent_last(order: int) -> None:
    """They may be judged in another order."""
    judged = (a_judged(id=6, minutes=30), a_judged(minutes=9))[::order]

    assert a_circuit(judged=judged).last_tried_at == ago(minutes=9)
    assert a_circuit(judged=()).last_tried_at == a_circuit().changed_at


@pytest.mark.parametrize(
    ("orders", "window"),
    [
        (Orders(), 0),
        (Orders(drain_until=ahead(minutes=1)), 0),
        (Orders(drain_until=ahead(minutes=1), drain_window=50), 50),
        (Orders(drain_until=NOW, drain_window=50), 0),
    ],
)
def test_a_drain_asks_for_a_window_while_it_lasts(orders: Orders, window: int) -> None:
    assert orders.window(NOW) == window


def test_a_circuit_finds_its_batches_by_id_and_counts_their_letters() -> None:
    first, second = a_batch(id=1, size=3), a_batch(id=2, size=4)
    circuit = a_circuit(pending=(first, second))

    assert circuit.outstanding == 7
    assert circuit.pending_batch(2) == second
    assert circuit.pending_batch(3) is None
    assert circuit.pending_batch(None) is None
    assert circuit.without_batch(1).pending == (second,)
    assert circuit.with_batch(a_batch(id=1, size=9)).outstanding == 13


def test_a_judged_batch_is_remembered_with_what_it_showed() -> None:
    batch = a_batch(id=1, size=5, returned=1)

    circuit = a_circuit(pending=(batch,)).with_verdict(
        batch, Verdict.SUCCESS, is_strike=True, was_alone=True, overturned_at=2
    )

    assert circuit.pending == ()
    assert circuit.judged_batch(None) is None
    assert circuit.judged_batch(1) == Judged(
        id=1,
        generation=batch.generation,
        verdict=Verdict.SUCCESS,
        is_strike=True,
        was_alone=True,
        sent_at=batch.sent_at,
        size=5,
        returned=1,
        overturned_at=2,
    )


def test_only_the_newest_judged_batches_are_remembered() -> None:
    circuit = a_circuit()
    for number in range(JUDGED_KEPT + 5):
        circuit = circuit.with_verdict(a_batch(id=number), Verdict.SUCCESS, is_strike=True)

    assert len(circuit.judged) == JUDGED_KEPT
    assert circuit.judged_batch(4) is None
    assert circuit.judged_batch(5) is not None


@pytest.mark.parametrize(
    ("orders", "pauses"),
    [
        (Orders(), False),
        (Orders(is_paused=True), True),
        (Orders(is_paused=True, paused_until=ahead(seconds=1)), True),
        (Orders(is_paused=True, paused_until=NOW), False),
    ],
)
def test_a_pause_lasts_until_its_time_or_until_resumed(orders: Orders, pauses: bool) -> None:
    assert orders.pauses(NOW) is pauses


@pytest.mark.parametrize(
    ("orders", "drains"),
    [
        (Orders(), False),
        (Orders(drain_until=ahead(seconds=1)), True),
        (Orders(drain_until=NOW), False),
    ],
)
def test_a_drain_lasts_until_its_time(orders: Orders, drains: bool) -> None:
    assert orders.drains(NOW) is drains


def test_suspects_are_about_while_one_of_the_last_batches_had_a_return_beside_successes() -> None:
    striking, clean = a_judged(returned=1), a_judged(returned=0)

    assert a_circuit(judged=(striking, *[clean] * (SUSPECTS_SHOW_IN - 1))).has_suspects
    assert not a_circuit(judged=(striking, *[clean] * SUSPECTS_SHOW_IN)).has_suspects
    assert a_circuit(judged=(a_judged(returned=1, is_strike=False),)).has_suspects
    failed = a_judged(returned=1, verdict=Verdict.FAILURE, is_strike=False)
    assert not a_circuit(judged=(failed,)).has_suspects
    assert not a_circuit().has_suspects
    assert a_circuit(pending=(a_batch(suspects=1),)).has_suspects
    assert not a_circuit(pending=(a_batch(),)).has_suspects
    alone = a_judged(verdict=Verdict.NO_EVIDENCE, is_strike=False, was_alone=True)
    assert a_circuit(judged=(alone,)).has_suspects


@pytest.mark.parametrize(
    ("known", "seen", "since"),
    [
        (None, Waiting(letters=0), None),
        (ago(hours=1), Waiting(letters=0), None),
        (None, Waiting(letters=1), NOW),
        (None, Waiting(letters=1, since=ago(hours=9)), NOW),
        (ago(hours=1), Waiting(letters=1), ago(hours=1)),
        (ago(hours=1), Waiting(letters=1, since=ago(hours=9)), ago(hours=1)),
        (ago(hours=1), Waiting(letters=1, since=ago(minutes=9)), ago(minutes=9)),
    ],
)
def test_letters_wait_since_one_of_them_was_first_seen_to(
    known: datetime | None, seen: Waiting, since: datetime | None
) -> None:
    """Nothing is known of the time before; and what waits since later has taken its place."""
    circuit = a_circuit(waiting_since=known).with_waiting(seen, NOW)

    assert circuit.waiting_since == since
    assert circuit.waiting_seconds(NOW) == (NOW - (since or NOW)).total_seconds()


def test_a_hidden_suspect_is_forgotten_in_the_second_in_which_it_is_visible_again() -> None:
    until = (HeldSuspects(until=NOW, letters=2), HeldSuspects(until=ahead(minutes=1), letters=3))
    circuit = a_circuit(held_suspects=until)

    assert circuit.suspects_waiting(NOW) == 3
    assert circuit.with_held_suspects((), NOW).held_suspects == until[1:]


def test_groups_of_hidden_suspects_begin_with_the_minute() -> None:
    hold = Hold(reason=HoldReason.LAST_CHANCE, until=ahead(minutes=5, seconds=59), strikes=4)

    circuit = a_circuit().with_held_suspects((hold,), NOW)

    assert circuit.held_suspects == (HeldSuspects(until=ahead(minutes=5), letters=1),)


def test_suspects_that_a_pass_hides_are_counted_by_the_minute_until_which_they_are() -> None:
    gone, there = (
        HeldSuspects(until=NOW, letters=9),
        HeldSuspects(until=ahead(minutes=5), letters=1),
    )
    holds = [
        Hold(reason=HoldReason.BACKOFF, until=ahead(minutes=5, seconds=seconds), strikes=1)
        for seconds in (0, 59)
    ]

    circuit = a_circuit(held_suspects=(gone, there)).with_held_suspects(holds, NOW)

    assert circuit.held_suspects == (replace(there, letters=3),)
