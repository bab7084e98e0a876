"""How many letters the circuit lets through, and for how long it lets none."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.breaker import new_circuit, order, register_batch
from smart_redriver.engine.model.circuit import Orders, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.permit import (
    DOUBT,
    FLAPS_THAT_SHOW,
    FRESH,
    MOST_PENDING,
    allow,
    cool_down,
    cools_until,
    has_cooled_down,
)
from smart_redriver.engine.model.rate import Rate
from tests.unit.circuits import SETTINGS, failing, succeeding
from tests.unit.examples import NOW, QUEUE, a_batch, a_circuit, a_judged, ago, ahead

SECOND = timedelta(seconds=1)
ROLLS = st.floats(0, 1, exclude_max=True)
CANARY = SETTINGS.canary_size
LATER = ahead(hours=2)

# CLOSED.


def test_a_new_circuit_is_closed_and_permits_the_initial_window() -> None:
    settings = Settings(initial_window=7)

    circuit = new_circuit(QUEUE, settings, NOW)

    assert (circuit.state, circuit.version) == (State.CLOSED, 0)
    assert allow(circuit, settings, NOW).limit == 7


@pytest.mark.parametrize(
    ("window", "out", "limit"), [(8, 0, 8), (8, 3, 5), (8, 8, 0), (8, 11, 0), (100, 0, 64)]
)
def test_a_closed_circuit_permits_what_is_free_of_its_window(
    window: int, out: int, limit: int
) -> None:
    pending = (a_batch(size=out, last_try_at=NOW),) if out else ()

    permit = allow(a_circuit(window=window, pending=pending), SETTINGS, NOW)

    assert (permit.limit, permit.is_trial) == (limit, False)


def test_more_batches_than_the_circuits_item_has_room_for_are_never_out() -> None:
    settings = replace(SETTINGS, max_window=50_000)
    trickle = tuple(a_batch(id=i, size=1) for i in range(MOST_PENDING))
    circuit = a_circuit(window=50_000, pending=trickle)
    one_less = replace(circuit, pending=trickle[1:])

    assert allow(circuit, settings, NOW).limit == 0
    assert allow(one_less, settings, NOW).limit > 0


def test_several_batches_share_one_window() -> None:
    pending = (a_batch(id=1, size=2), a_batch(id=2, size=3))

    assert allow(a_circuit(window=8, pending=pending), SETTINGS, NOW).limit == 3


@pytest.mark.parametrize("live", list(LiveOutcome))
def test_live_traffic_moves_no_closed_circuits_permit(live: LiveOutcome) -> None:
    assert allow(a_circuit(), SETTINGS, NOW, live) == allow(a_circuit(), SETTINGS, NOW)


def test_after_a_failure_a_probe_goes_before_a_full_batch() -> None:
    failed = failing(a_circuit(window=16))

    permit = allow(failed, SETTINGS, NOW)

    assert (permit.limit, permit.is_probe, permit.is_trial) == (CANARY, True, True)


def test_after_a_failure_only_one_batch_is_out_at_a_time() -> None:
    failed = failing(a_circuit(window=16))

    registered = register_batch(failed, allow(failed, SETTINGS, NOW), NOW, due_at=NOW)[0]

    assert allow(registered, SETTINGS, NOW).limit == 0


def test_what_the_rate_held_back_follows_its_batch_after_a_failure() -> None:
    out = a_batch(size=4, last_try_at=NOW)
    shaken = a_circuit(is_shaken=True, pending=(out,))
    at_a_rate = replace(shaken, rate=Rate(per_second=1.0, looked_at=NOW))

    assert allow(shaken, SETTINGS, NOW).limit == 0
    assert (allow(at_a_rate, SETTINGS, NOW).limit, allow(at_a_rate, SETTINGS, NOW).is_trial) == (
        4,
        False,
    )
    assert allow(replace(at_a_rate, window=4), SETTINGS, NOW).limit == 0
    assert (
        allow(replace(at_a_rate, pending=(replace(out, is_probe=True),)), SETTINGS, NOW).limit == 0
    )


def test_probes_that_are_out_keep_no_batch_from_following_a_success() -> None:
    """Where a verdict takes longer than a probe is waited for, one or two are always out: a backlog went one by one."""
    probes = tuple(a_batch(id=number, size=1, is_probe=True) for number in (1, 2))
    shaken = a_circuit(window=2, is_shaken=True, probed_at=NOW, pending=probes)

    permit = allow(shaken, SETTINGS, NOW)

    assert (permit.limit, permit.is_trial) == (2, False)


@pytest.mark.parametrize(
    ("since_success", "is_probe"), [(timedelta(), False), (FRESH, False), (FRESH + SECOND, True)]
)
def test_a_full_batch_follows_a_success_while_it_is_fresh(
    since_success: timedelta, is_probe: bool
) -> None:
    shaken = a_circuit(window=8, is_shaken=True, probed_at=NOW - since_success)

    permit = allow(shaken, SETTINGS, NOW)

    assert (permit.is_probe, permit.limit) == (is_probe, CANARY if is_probe else 8)


def test_a_window_as_small_as_a_probe_needs_none() -> None:
    permit = allow(a_circuit(window=CANARY, is_shaken=True), SETTINGS, NOW)

    assert (permit.limit, permit.is_trial) == (CANARY, False)


# Beside batches of which nothing is known.


def doubtful(number: int, since: timedelta = DOUBT, size: int = 8) -> Batch:
    return a_batch(id=number, size=size, last_try_at=NOW - since)


@pytest.mark.parametrize(("since", "limit"), [(DOUBT, CANARY), (DOUBT - SECOND, 0)])
def test_a_probe_goes_beside_a_full_window_of_which_nothing_is_known_in_time(
    since: timedelta, limit: int
) -> None:
    circuit = a_circuit(window=8, pending=(doubtful(1, since),))

    permit = allow(circuit, SETTINGS, NOW)

    assert (permit.limit, permit.is_probe) == (limit, limit > 0)


def test_no_probe_goes_beside_a_batch_of_which_letters_came_back() -> None:
    """Of that one something is known: a further letter would meet the same."""
    back = replace(doubtful(1), returned=1)

    assert allow(a_circuit(window=8, pending=(back,)), SETTINGS, NOW).limit == 0
    assert allow(a_circuit(window=8, pending=(doubtful(2), back)), SETTINGS, NOW).limit == 0


def test_a_shaken_circuit_probes_beside_any_batch_of_which_nothing_is_known() -> None:
    circuit = a_circuit(window=8, is_shaken=True, pending=(doubtful(1, size=1),))

    permit = allow(circuit, SETTINGS, NOW)

    assert (permit.limit, permit.is_probe) == (CANARY, True)


def test_a_full_batch_follows_a_fresh_success_although_younger_probes_are_out() -> None:
    """Or a slow consumer, of which a probe is always out, would get nothing but probes."""
    probe = a_batch(
        id=8, size=CANARY, is_probe=True, first_try_at=ago(minutes=6), due_at=ahead(hours=1)
    )
    shaken = a_circuit(window=8, is_shaken=True, probed_at=NOW, pending=(probe,))

    assert allow(shaken, SETTINGS, NOW).limit == 8 - CANARY
    assert allow(replace(shaken, probed_at=None), SETTINGS, NOW).is_probe
    assert allow(replace(shaken, pending=(replace(probe, is_probe=False),)), SETTINGS, NOW).is_probe


def test_a_window_that_is_not_used_up_needs_no_probe_beside_it() -> None:
    permit = allow(a_circuit(window=8, pending=(doubtful(1, size=3),)), SETTINGS, NOW)

    assert (permit.limit, permit.is_probe) == (5, False)


def test_probes_beside_unknown_batches_come_to_an_end() -> None:
    pending = tuple(doubtful(number) for number in range(SETTINGS.failure_threshold))

    assert allow(a_circuit(window=8, pending=pending), SETTINGS, NOW).limit == 0


# OPEN.


def test_an_open_circuit_permits_nothing_until_its_cool_down_is_over() -> None:
    circuit = a_circuit(state=State.OPEN, changed_at=NOW, cools_until=ahead(minutes=1))

    early = allow(circuit, SETTINGS, ahead(minutes=1) - SECOND)
    late = allow(circuit, SETTINGS, ahead(minutes=1))

    assert early.limit == 0
    assert early.reason == "OPEN, cooling down until 2026-01-10T12:01:00Z"
    assert (late.limit, late.is_canary, late.is_trial) == (CANARY, True, True)
    assert not has_cooled_down(circuit, SETTINGS, ahead(minutes=1) - SECOND)


def test_a_circuit_that_drew_no_jitter_cools_down_for_the_whole_time() -> None:
    """One that a person opened, or one of the first edition."""
    circuit = a_circuit(state=State.OPEN, consecutive_opens=2, changed_at=NOW, cools_until=None)

    assert cools_until(circuit, SETTINGS) == ahead(seconds=2 * SETTINGS.cool_down_seconds)


def test_live_successes_bring_the_canary_forward() -> None:
    circuit = a_circuit(state=State.OPEN, changed_at=NOW, cools_until=ahead(hours=1))

    permit = allow(circuit, SETTINGS, NOW, LiveOutcome.SUCCEEDS)

    assert (permit.limit, permit.is_canary) == (CANARY, True)


def test_live_failures_spare_canaries_but_not_for_ever() -> None:
    """Live messages can fail for reasons of their own."""
    circuit = a_circuit(state=State.OPEN, changed_at=NOW, cools_until=ahead(minutes=1))
    longest = ahead(seconds=SETTINGS.max_cool_down_seconds)

    spared = allow(circuit, SETTINGS, longest - SECOND, LiveOutcome.FAILS)
    tried = allow(circuit, SETTINGS, longest, LiveOutcome.FAILS)

    assert (spared.limit, tried.limit) == (0, CANARY)


@pytest.mark.parametrize("live", list(LiveOutcome))
def test_live_messages_steer_no_canary_of_a_consumer_that_is_up_briefly(live: LiveOutcome) -> None:
    """What they show is minutes old. Each canary went when it was down again, at the same time of its period."""
    circuit = a_circuit(
        state=State.OPEN,
        changed_at=NOW,
        cools_until=ahead(minutes=1),
        flaps=FLAPS_THAT_SHOW,
        up_seconds=180,
    )

    cooling = allow(circuit, SETTINGS, NOW, live)
    cooled = allow(circuit, SETTINGS, ahead(minutes=1), live)

    assert not cooling.limit
    assert cooled.is_canary


# HALF_OPEN.


@pytest.mark.parametrize("live", list(LiveOutcome))
def test_a_half_open_circuit_permits_one_canary_at_a_time(live: LiveOutcome) -> None:
    half_open = a_circuit(state=State.HALF_OPEN)
    busy = replace(half_open, pending=(doubtful(1, timedelta(hours=1), size=1),))

    free = allow(half_open, SETTINGS, NOW, live)

    assert (free.limit, free.is_canary) == (CANARY, True)
    assert allow(busy, SETTINGS, NOW, live).limit == 0


# The size of a canary.


@pytest.mark.parametrize(
    ("opens", "letters"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (6, 5), (7, 1), (100, 1)]
)
def test_after_two_that_failed_the_next_few_canaries_grow(opens: int, letters: int) -> None:
    """Beside four pills for each good letter, most canaries of one letter fail at a healthy consumer."""
    opened = a_circuit(state=State.OPEN, consecutive_opens=opens)

    assert allow(opened, SETTINGS, LATER).limit == letters


def test_a_canary_never_grows_beyond_the_initial_window() -> None:
    opened = a_circuit(state=State.OPEN, consecutive_opens=6)
    large = replace(SETTINGS, canary_size=2, initial_window=3)

    assert allow(opened, large, LATER).limit == 3


def test_a_canary_that_live_messages_speak_for_stays_small() -> None:
    opened = a_circuit(state=State.OPEN, consecutive_opens=4)

    assert allow(opened, SETTINGS, LATER, LiveOutcome.SUCCEEDS).limit == CANARY


@pytest.mark.parametrize(("size", "letters"), [(1, 1), (3, 3)])
def test_a_canary_after_a_success_is_as_large_as_that_one(size: int, letters: int) -> None:
    judged = (a_judged(id=1, verdict=Verdict.SUCCESS, size=size),)
    half_open = a_circuit(state=State.HALF_OPEN, success_count=1, judged=judged)

    assert allow(half_open, SETTINGS, NOW).limit == letters


# The cool-down.


@pytest.mark.parametrize(
    ("opens", "seconds"),
    [(0, 60), (1, 60), (2, 120), (3, 240), (5, 960), (6, 1800), (7, 1800), (10_000, 1800)],
)
def test_the_cool_down_doubles_with_every_opening_up_to_its_maximum(
    opens: int, seconds: int
) -> None:
    assert cool_down(opens, SETTINGS, 1.0) == timedelta(seconds=seconds)


@given(st.integers(0, 100), ROLLS)
def test_a_quarter_of_the_cool_down_is_left_to_chance(opens: int, roll: float) -> None:
    full = cool_down(opens, SETTINGS, 1.0)

    assert full * 0.75 - SECOND <= cool_down(opens, SETTINGS, roll) <= full


@pytest.mark.parametrize(("roll", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_half_of_it_is_left_to_chance_if_the_consumer_flaps(roll: float, share: float) -> None:
    """Canaries half an hour apart kept in step with a consumer that was up for 5 of 30 minutes."""
    longest = timedelta(seconds=SETTINGS.max_cool_down_seconds)

    assert cool_down(100, SETTINGS, roll, may_flap=True) == share * longest


@given(st.integers(0, 100), ROLLS)
def test_a_later_opening_never_cools_down_for_less(opens: int, roll: float) -> None:
    assert cool_down(opens, SETTINGS, roll) <= cool_down(opens + 1, SETTINGS, roll)


def test_two_circuits_that_open_together_need_not_try_again_together() -> None:
    drawn = [cool_down(6, SETTINGS, roll / 10) for roll in range(10)]

    assert all(one < other for one, other in pairwise(drawn))


# What people order.


def test_a_drain_raises_a_closed_circuits_window_at_once_and_never_lowers_it() -> None:
    drain = Orders(drain_until=ahead(hours=1), drain_window=12)

    assert order(a_circuit(window=8), drain, NOW).window == 12
    assert order(a_circuit(window=16), drain, NOW).window == 16


def test_a_drain_without_a_window_asks_for_none() -> None:
    assert Orders(drain_until=ahead(hours=1), drain_rate=5).window(NOW) == 0
    assert Orders(drain_until=ahead(hours=1), drain_window=12).window(NOW) == 12


def test_a_drain_that_is_over_raises_nothing() -> None:
    assert order(a_circuit(window=8), Orders(drain_until=ago(hours=1), drain_window=12), NOW) == (
        a_circuit(window=8, orders=Orders(drain_until=ago(hours=1), drain_window=12))
    )


def test_a_drain_beyond_the_maximum_is_let_through_up_to_it() -> None:
    drain = Orders(drain_until=ahead(hours=1), drain_window=10**6)

    assert allow(order(a_circuit(), drain, NOW), SETTINGS, NOW).limit == SETTINGS.max_window


@pytest.mark.parametrize("state", [State.OPEN, State.HALF_OPEN])
def test_a_drain_does_not_overrule_the_breaker(state: State) -> None:
    """Its window is that of the close."""
    drain = Orders(drain_until=ahead(hours=1), drain_window=12)

    ordered = order(a_circuit(state=state, window=8), drain, NOW)

    assert (ordered.state, ordered.window, ordered.orders) == (state, 8, drain)


@pytest.mark.parametrize(("until", "window"), [(ahead(hours=1), 50), (ago(hours=1), 20)])
def test_a_circuit_that_closes_during_a_drain_starts_with_its_window(
    until: datetime, window: int
) -> None:
    drain = Orders(drain_until=until, drain_window=50)
    half_open = a_circuit(state=State.HALF_OPEN, success_count=1, good_window=40, orders=drain)

    assert succeeding(replace(half_open, window=1)).window == window


def test_a_success_opens_the_whole_window_again() -> None:
    circuit = succeeding(a_circuit(window=8))

    assert allow(circuit, SETTINGS, NOW).limit == circuit.window
