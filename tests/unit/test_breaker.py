"""What verdicts do to the window and to what is counted in a row."""

from dataclasses import replace

import pytest

from smart_redriver.engine.model.batch import Judged, Verdict
from smart_redriver.engine.model.breaker import SMALLEST_WINDOW, VOUCHED_MINUTES, at_rate
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.evidence import FAILURES_PER_LIVE_SUCCESS, Evidence
from smart_redriver.engine.model.judging import FEWEST_TO_COMPARE, Ruling, charge, judge
from smart_redriver.engine.model.permit import allow, cool_down
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.model.verdict import (
    GROWTH_WHERE_SHOWN,
    GROWTH_WHERE_VOUCHED,
)
from tests.unit.circuits import (
    ROLL,
    SETTINGS,
    all_failed,
    all_failed_beside_live_successes,
    all_succeeded,
    all_succeeded_beside_live_successes,
    failing,
    judging,
    nothing_known,
    sending,
    succeeding,
    three_in_four_failed,
)
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ahead
from tests.unit.judging import WELL, beside

GENERATION = 2
A_RATE = Rate(per_second=1.0, looked_at=NOW)


def rulings_on(
    circuit: Circuit, evidence: dict[int, Evidence]
) -> tuple[Circuit, tuple[Ruling, ...]]:
    return judge(circuit, evidence, SETTINGS, NOW, roll=ROLL)


@pytest.mark.parametrize(
    ("state", "success_count", "after", "verdict"),
    [
        (State.HALF_OPEN, 0, State.OPEN, Verdict.FAILURE),
        (State.HALF_OPEN, 1, State.HALF_OPEN, Verdict.NO_EVIDENCE),
        (State.CLOSED, 0, State.CLOSED, Verdict.NO_EVIDENCE),
    ],
)
def test_a_suspect_that_returns_fails_the_first_canary_and_says_nothing_of_a_consumer_that_was_up(
    state: State, success_count: int, after: State, verdict: Verdict
) -> None:
    """The first canary is to show that the consumer is well again. After a success, suspects are expected to fail."""
    suspect = judging(
        lambda batch: Evidence(suspects_failed=1, met=1, were_tried=True, has_metrics=True),
        size=1,
        suspects=1,
    )

    circuit = suspect(a_circuit(state=state, success_count=success_count, consecutive_opens=1))

    (one,) = circuit.judged
    assert (circuit.state, one.verdict) == (after, verdict)
    assert circuit.flaps == 0


@pytest.mark.parametrize(("unknown", "returned", "unaccounted"), [(0, 0, 0), (1, 0, 1), (2, 1, 1)])
def test_of_a_success_so_many_letters_are_unaccounted_for_as_nothing_is_known_of(
    unknown: int, returned: int, unaccounted: int
) -> None:
    witnessed = Evidence(
        succeeded=8 - unknown, failed=returned, met=8, were_tried=True, has_metrics=True
    )

    (one,) = judging(lambda _: witnessed, size=8, returned=returned)(a_circuit()).judged

    assert (one.verdict, one.unaccounted) == (Verdict.SUCCESS, unaccounted)


@pytest.mark.parametrize("success_count", [0, 1])
def test_a_circuit_that_closes_counts_anew(success_count: int) -> None:
    half_open = a_circuit(state=State.HALF_OPEN, success_count=success_count, failure_count=2)

    closed = judging(all_failed_beside_live_successes, size=1)(half_open)

    assert closed.state is State.CLOSED
    assert (closed.failure_count, closed.success_count, closed.consecutive_opens) == (0, 0, 0)


# The window.


def test_a_shown_success_multiplies_the_window_up_to_the_maximum() -> None:
    circuit, windows = a_circuit(window=1), []
    for _ in range(5):
        circuit = succeeding(circuit)
        windows.append(circuit.window)

    powers = [GROWTH_WHERE_SHOWN**n for n in range(1, 6)]
    assert windows == [min(power, SETTINGS.max_window) for power in powers]


def test_a_shown_success_at_a_rate_opens_the_window_to_its_maximum() -> None:
    assert succeeding(a_circuit(window=1, rate=A_RATE)).window == SETTINGS.max_window


@pytest.mark.parametrize("rate", [None, A_RATE])
def test_what_live_messages_vouch_for_grows_it_by_less(rate: Rate | None) -> None:
    vouched = judging(all_failed_beside_live_successes)(a_circuit(window=20, rate=rate))

    assert vouched.window == 20 * GROWTH_WHERE_VOUCHED


def test_live_traffic_vouches_for_a_window_of_its_own_rate_at_least() -> None:
    at_its_rate = round(WELL.per_minute * VOUCHED_MINUTES)

    assert judging(all_failed_beside_live_successes)(a_circuit(window=1)).window == at_its_rate


def test_live_messages_vouch_for_no_window_that_they_could_not_outweigh_in_time() -> None:
    """A window larger than that could fail as a whole before enough of them have spoken."""
    wide = replace(SETTINGS, max_window=10_000)
    most = round(WELL.per_minute * VOUCHED_MINUTES) * FAILURES_PER_LIVE_SUCCESS
    vouched = judging(all_failed_beside_live_successes, wide, size=most)

    assert vouched(a_circuit(window=most - 1)).window == most
    assert vouched(a_circuit(window=most + 1)).window == most + 1


@pytest.mark.parametrize(("size", "grows"), [(4, True), (3, False)])
def test_only_a_window_that_was_used_at_least_by_half_has_been_shown_to_be_safe(
    size: int, grows: bool
) -> None:
    circuit = judging(all_succeeded, size=size)(a_circuit(window=8))

    assert (circuit.window > 8) is grows
    assert circuit.good_window == (size if grows else 0)


def test_a_window_is_used_by_all_batches_in_it_and_grows_by_what_succeeded() -> None:
    beside = a_batch(id=6, size=2)

    circuit = judging(all_succeeded, size=2)(a_circuit(window=8, pending=(beside,)))

    assert circuit.window == 8 + (GROWTH_WHERE_SHOWN - 1) * 2
    assert circuit.good_window == 4


@pytest.mark.parametrize(("window", "size", "after"), [(40, 40, 40), (40, 60, 60), (40, 12, 12)])
def test_after_a_mixture_the_window_is_four_times_what_succeeded(
    window: int, size: int, after: int
) -> None:
    circuit = judging(three_in_four_failed, size=size)(a_circuit(window=window, failure_count=2))

    assert circuit.window == after
    assert circuit.failure_count == 0


def test_after_a_mixture_the_initial_window_is_the_least() -> None:
    circuit = judging(three_in_four_failed, size=4)(a_circuit(window=5))

    assert circuit.window == SETTINGS.initial_window


def test_a_mixture_of_a_few_letters_narrows_no_window_and_still_widens_the_smallest() -> None:
    few = judging(three_in_four_failed, size=4)

    assert few(a_circuit(window=40)).window == 40
    assert few(a_circuit(window=1)).window == SETTINGS.initial_window
    assert few(a_circuit(window=40, rate=A_RATE)).window == SETTINGS.initial_window


def test_suspects_of_a_mixture_narrow_no_window() -> None:
    """They were expected to fail, and five others say little."""
    few_others = judging(
        lambda batch: replace(three_in_four_failed(batch), succeeded=1, failed=4),
        size=40,
        suspects=35,
    )

    assert few_others(a_circuit(window=40)).window == 40


def test_suspects_of_a_success_widen_no_window() -> None:
    two_others = judging(
        lambda batch: replace(all_succeeded(batch), succeeded=2), size=40, suspects=38
    )

    assert two_others(a_circuit(window=40)).window == 40 + (GROWTH_WHERE_SHOWN - 1) * 2


def test_failure_halves_the_window_down_to_one_letter() -> None:
    patient = replace(SETTINGS, failure_threshold=100)
    circuit, windows = a_circuit(window=9), []
    for number in range(5):
        circuit = judging(all_failed, patient, id=number)(circuit)
        windows.append(circuit.window)

    assert windows == [4, 2, SMALLEST_WINDOW, SMALLEST_WINDOW, SMALLEST_WINDOW]


def test_a_circuit_that_closes_starts_with_half_of_the_last_window_that_was_good() -> None:
    half_open = a_circuit(state=State.HALF_OPEN, success_count=1, good_window=40)

    assert succeeding(replace(half_open, window=1)).window == 20


def test_a_probe_that_failed_leaves_the_window_as_it_was() -> None:
    """It says that now is not the time, and nothing about the window's size."""
    failed = judging(all_failed, size=1, is_probe=True)(a_circuit(window=8, is_shaken=True))

    assert (failed.window, failed.failure_count) == (8, 1)


def test_a_full_batch_follows_a_probe_that_succeeded() -> None:
    shaken = a_circuit(window=8, is_shaken=True)

    probed = judging(all_succeeded, size=1, is_probe=True, sent_at=NOW)(shaken)

    assert allow(probed, SETTINGS, NOW).limit == 8
    assert probed.is_shaken


def test_probes_end_after_as_many_full_successes_as_failures_would_open() -> None:
    circuit, shaken = a_circuit(is_shaken=True), []
    for number in range(SETTINGS.failure_threshold):
        circuit = judging(all_succeeded, id=number)(circuit)
        shaken.append(circuit.is_shaken)

    assert shaken == [True] * (SETTINGS.failure_threshold - 1) + [False]


# In a row.


def test_failures_need_to_be_in_a_row_to_open_the_circuit() -> None:
    interrupted = failing(failing(succeeding(failing(failing(a_circuit())))))

    assert interrupted.state is State.CLOSED
    assert failing(interrupted).state is State.OPEN


def test_canaries_need_to_succeed_in_a_row_to_close_the_circuit() -> None:
    once = succeeding(a_circuit(state=State.HALF_OPEN, consecutive_opens=1))

    again = replace(sending(ahead(days=1))(failing(once)), pending=())

    assert once.state is State.HALF_OPEN
    assert succeeding(once).state is State.CLOSED
    assert again.state is State.HALF_OPEN
    assert succeeding(again).state is State.HALF_OPEN


@pytest.mark.parametrize(("flaps", "state"), [(0, State.CLOSED), (1, State.HALF_OPEN)])
def test_beside_many_live_successes_one_canary_closes_the_circuit_of_a_steady_consumer(
    flaps: int, state: State
) -> None:
    half_open = a_circuit(state=State.HALF_OPEN, flaps=flaps)

    once = judging(all_succeeded_beside_live_successes, size=1)(half_open)

    assert once.state is state
    if state is State.CLOSED:
        assert once.reason == "1 canary succeeded: 1 of 1 succeeded"


VOUCHED = WELL.per_minute * VOUCHED_MINUTES


@pytest.mark.parametrize(
    ("rate", "flaps", "window"),
    [(None, 0, VOUCHED), (A_RATE, 0, 10_000), (A_RATE, 1, VOUCHED)],
    ids=["without a rate", "at a rate", "at a rate, after a flap"],
)
def test_a_circuit_closes_with_the_window_that_live_messages_vouch_for(
    rate: Rate | None, flaps: int, window: int
) -> None:
    """At a rate, a look stops letters that fail within seconds, if live messages vouch for the consumer."""
    wide = replace(SETTINGS, max_window=10_000)
    half_open = a_circuit(state=State.HALF_OPEN, success_count=1, rate=rate, flaps=flaps)

    closed = judging(all_succeeded_beside_live_successes, wide, size=1)(half_open)

    assert closed.window == window


@pytest.mark.parametrize("rate", [None, A_RATE], ids=["without a rate", "at a rate"])
def test_on_a_quiet_queue_it_closes_with_the_initial_window(rate: Rate | None) -> None:
    half_open = a_circuit(state=State.HALF_OPEN, success_count=1, rate=rate)

    assert succeeding(half_open).window == SETTINGS.initial_window


@pytest.mark.parametrize(
    ("good_window", "after", "window"),
    [(0, None, SETTINGS.initial_window), (7, None, 28), (7, A_RATE, SETTINGS.max_window)],
    ids=["nothing shown", "a good window", "the rate goes on"],
)
def test_a_window_that_only_the_rate_made_safe_ends_with_it(
    good_window: int, after: Rate | None, window: int
) -> None:
    wide = a_circuit(window=SETTINGS.max_window, good_window=good_window, rate=A_RATE)

    assert at_rate(wide, after, SETTINGS, NOW).window == window


def test_a_window_without_a_rate_stays_and_so_does_that_of_a_drain() -> None:
    drains = Orders(drain_until=ahead(hours=1), drain_window=40)

    assert at_rate(a_circuit(window=9), None, SETTINGS, NOW).window == 9
    assert (
        at_rate(a_circuit(window=99, rate=A_RATE, orders=drains), None, SETTINGS, NOW).window == 40
    )


def test_a_failed_canary_reopens_the_circuit_with_a_longer_cool_down() -> None:
    circuit, cool_downs = a_circuit(state=State.OPEN, consecutive_opens=1), []
    for _ in range(7):
        half_open = replace(sending(ahead(days=1))(circuit), pending=())
        circuit = judging(all_failed, size=1)(half_open)
        assert circuit.cools_until is not None
        cool_downs.append(circuit.cools_until - circuit.changed_at)

    assert cool_downs == [cool_down(opens, SETTINGS, ROLL) for opens in range(2, 9)]
    assert cool_downs == sorted(cool_downs)


def test_a_canary_that_succeeds_makes_the_next_cool_down_short_again() -> None:
    """Whatever opens the circuit after it is another outage."""
    half_open = a_circuit(state=State.HALF_OPEN, consecutive_opens=5)

    reopened = failing(succeeding(half_open))

    assert failing(half_open).consecutive_opens == 6
    assert (reopened.state, reopened.consecutive_opens) == (State.OPEN, 1)


def test_the_circuit_says_why_it_opened() -> None:
    opened = failing(a_circuit(failure_count=2))

    assert opened.reason.startswith("3 failed batches in a row")
    assert opened.changed_at == NOW


# Several batches.


def test_batches_are_judged_oldest_first_until_one_changes_the_state() -> None:
    pending = tuple(a_batch(id=number) for number in (1, 2))
    evidence = {batch.id: all_failed(batch) for batch in pending}

    after, (ruling,) = rulings_on(a_circuit(failure_count=2, pending=pending), evidence)

    assert (ruling.batch.id, ruling.before, ruling.after) == (1, State.CLOSED, State.OPEN)
    assert (after.consecutive_opens, after.pending) == (1, ())


def test_each_batch_is_judged_by_what_is_known_of_it() -> None:
    first, second = a_batch(id=1), a_batch(id=2)
    evidence = {1: all_failed(first), 2: all_succeeded(second)}

    _, rulings = rulings_on(a_circuit(pending=(first, second)), evidence)

    verdicts = [ruling.judgement.verdict for ruling in rulings]
    assert verdicts == [Verdict.FAILURE, Verdict.SUCCESS]


def test_a_verdict_that_waits_is_told_and_changes_nothing() -> None:
    batch = a_batch(due_at=ahead(minutes=1))
    circuit = a_circuit(pending=(batch,))

    after, (ruling,) = rulings_on(circuit, {batch.id: nothing_known(batch)})

    assert after == circuit
    assert ruling.judgement.verdict is None


def test_returns_are_charged_to_the_batch_that_they_come_from() -> None:
    circuit = a_circuit(pending=(a_batch(id=1), a_batch(id=2)))

    first, second = charge(circuit, {(1, False): 2, (2, True): 1, (3, False): 5}).pending

    assert (first.returned, first.suspects_returned) == (2, 0)
    assert (second.returned, second.suspects_returned) == (0, 1)


# Letters that were too many at once.


def overload_after(succeeded: int, *, smaller: Judged, size: int = 40) -> bool:
    """Whether a batch, of which so many succeeded and all others failed, is taken for one too large."""
    batch = a_batch(size=size)
    circuit = a_circuit(window=size, judged=(smaller,), pending=(batch,))
    evidence = Evidence(succeeded=succeeded, failed=size - succeeded, has_metrics=True)
    (ruling,) = rulings_on(circuit, {batch.id: evidence})[1]
    return ruling.judgement.is_overload


@pytest.mark.parametrize(
    ("smaller", "most"),
    [
        # Of ten all succeeded: of forty less than 14 would have to.
        (a_judged(size=10), 13),
        # Of ten four were poison: of forty less than 8.4 would have to.
        (a_judged(size=10, returned=4), 8),
        (a_judged(size=10, unaccounted=4), 8),
        (a_judged(size=FEWEST_TO_COMPARE), 13),
    ],
)
def test_letters_were_too_many_where_a_far_smaller_share_succeeded_than_of_a_quarter(
    smaller: Judged, most: int
) -> None:
    assert overload_after(most, smaller=smaller)
    assert not overload_after(most + 1, smaller=smaller)


@pytest.mark.parametrize(("failed", "is_overload"), [(4, False), (5, False), (6, True)])
def test_letters_were_too_many_only_where_more_failed_than_succeeded(
    failed: int, is_overload: bool
) -> None:
    """Of the others nothing is known: they may all have succeeded."""
    batch = a_batch(size=40)
    circuit = a_circuit(window=40, judged=(a_judged(size=10),), pending=(batch,))
    vouched = replace(beside(WELL, failed=failed, ours=40), succeeded=5)

    (ruling,) = rulings_on(circuit, {batch.id: vouched})[1]

    assert ruling.judgement.verdict is Verdict.SUCCESS
    assert ruling.judgement.is_overload == is_overload


@pytest.mark.parametrize("size", [FEWEST_TO_COMPARE - 1, 11])
def test_a_batch_that_is_hardly_smaller_or_tiny_shows_nothing_of_that(size: int) -> None:
    assert not overload_after(10, smaller=a_judged(size=size))


def test_letters_were_not_too_many_where_all_or_none_succeeded() -> None:
    assert not overload_after(40, smaller=a_judged(size=10))
    assert not overload_after(0, smaller=a_judged(size=10, returned=10))
