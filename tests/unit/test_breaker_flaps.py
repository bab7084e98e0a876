"""A consumer that is up and down: how the circuit notices it, and what it does to use the time when it is up."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from smart_redriver.engine.model.batch import CauseCount, Heard, Verdict
from smart_redriver.engine.model.breaker import force
from smart_redriver.engine.model.circuit import MOST_FLAPS, State
from smart_redriver.engine.model.evidence import Evidence
from smart_redriver.engine.model.permit import (
    FAILED_TOGETHER,
    FLAPS_THAT_SHOW,
    FRESH,
    TRUSTED_SHARE,
    allow,
    cool_down,
    is_likely_up,
    restart_window,
)
from smart_redriver.engine.model.verdict import GROWTH_WHERE_SHOWN
from tests.unit.circuits import (
    ROLL,
    SETTINGS,
    all_failed,
    all_succeeded,
    failing,
    judging,
    nearly_half_failed,
    succeeding,
    three_in_four_failed,
)
from tests.unit.examples import NOW, a_circuit, a_judged, ago

CANARY = SETTINGS.canary_size
FEWER = FLAPS_THAT_SHOW - 1

# How it shows.


def test_a_full_batch_that_fails_right_after_a_success_is_a_flap() -> None:
    assert failing(a_circuit(probed_at=NOW)).flaps == 1


def test_one_that_fails_after_a_failure_is_none() -> None:
    """The consumer was down before, and is down still."""
    assert failing(failing(a_circuit(probed_at=NOW))).flaps == 1
    assert failing(a_circuit(probed_at=None)).flaps == 0


def test_a_probe_that_fails_is_none() -> None:
    """It met a bad phase with one letter, as it is to."""
    probed = judging(all_failed, size=1, is_probe=True)(a_circuit(probed_at=NOW, is_shaken=True))

    assert probed.flaps == 0


def test_flaps_add_up_over_openings_and_closings() -> None:
    circuit, counts = a_circuit(state=State.HALF_OPEN), []
    for _ in range(3):
        circuit = failing(judging(all_succeeded, size=CANARY)(circuit))
        counts.append(circuit.flaps)
        circuit = a_circuit(state=State.HALF_OPEN, flaps=circuit.flaps)

    assert counts == [1, 2, 3]


def test_no_more_than_a_few_are_counted() -> None:
    """Or it would take a consumer that flapped for a day as long to be believed again."""
    assert failing(a_circuit(probed_at=NOW, flaps=MOST_FLAPS)).flaps == MOST_FLAPS


def test_flaps_are_forgotten_when_more_full_batches_have_succeeded_in_a_row() -> None:
    circuit, flaps = a_circuit(flaps=3, is_shaken=True), []
    for _ in range(SETTINGS.failure_threshold + 3):
        circuit = succeeding(circuit)
        flaps.append(circuit.flaps)

    assert flaps == [3] * (SETTINGS.failure_threshold + 2) + [0]


def test_a_success_in_which_nearly_half_came_back_begins_the_count_anew() -> None:
    """The consumer may have been up and down within that batch."""
    nearly_calm = a_circuit(flaps=2, is_shaken=True, success_count=SETTINGS.failure_threshold + 1)

    assert succeeding(nearly_calm).flaps == 0
    assert judging(nearly_half_failed, size=20)(nearly_calm).flaps == 2
    assert judging(nearly_half_failed, size=20)(nearly_calm).success_count == 0


@pytest.mark.parametrize(
    ("flaps", "verdict", "is_strike", "held"),
    [
        (0, Verdict.SUCCESS, True, 1),
        (1, Verdict.SUCCESS, False, 1),
        (FLAPS_THAT_SHOW, Verdict.FAILURE, False, 0),
    ],
)
def test_a_mixture_of_a_consumer_that_flaps_is_a_failure_and_of_nobodys_cause(
    flaps: int, verdict: Verdict, is_strike: bool, held: int
) -> None:
    """It has met the consumer up and down. After one flap, that is likely enough to spare the letters."""
    heard = Heard(causes=(CauseCount(cause="Declined", letters=3),))
    mixed = judging(three_in_four_failed, size=20, heard=heard)

    circuit = mixed(a_circuit(window=20, flaps=flaps))

    one = circuit.judged_batch(7)
    assert one is not None
    assert one.verdict is verdict
    assert one.is_strike is is_strike
    assert [cause.is_held for cause in circuit.causes] == [True] * held


@pytest.mark.parametrize(("minutes_up", "known"), [(5, 150), (0, 90), (-5, 90)])
def test_for_how_long_a_consumer_was_up_is_known_of_batches_that_were_sent_since(
    minutes_up: float, known: int
) -> None:
    sent = ago(minutes=10)
    since = sent - timedelta(minutes=minutes_up)

    assert failing(a_circuit(up_since=since, up_seconds=90)).up_seconds == known


@pytest.mark.parametrize(("seconds_over", "is_trusted"), [(-1, True), (0, True), (1, False)])
def test_a_consumer_that_flaps_is_trusted_to_the_last_second_of_a_share_of_its_time(
    seconds_over: int, is_trusted: bool
) -> None:
    up_for = TRUSTED_SHARE * timedelta(seconds=600) + timedelta(seconds=seconds_over)
    circuit = a_circuit(flaps=FLAPS_THAT_SHOW, up_since=NOW - up_for, up_seconds=600)

    assert is_likely_up(circuit, NOW) == is_trusted


# What is done about it.


@pytest.mark.parametrize(
    ("flaps", "good_window", "window"),
    [
        (0, 0, SETTINGS.initial_window),
        (0, 40, 20),
        (FEWER, 40, 20),
        (FLAPS_THAT_SHOW, 40, 40 * GROWTH_WHERE_SHOWN),
        (FLAPS_THAT_SHOW, 0, SETTINGS.initial_window),
    ],
)
def test_after_an_outage_half_of_the_good_window_and_after_a_flap_more_than_it(
    flaps: int, good_window: int, window: int
) -> None:
    """Where the consumer flaps, it is the time that is wrong, and not the window."""
    assert restart_window(a_circuit(flaps=flaps, good_window=good_window), SETTINGS) == window


@pytest.mark.parametrize(
    ("size", "verdict", "generation", "is_whole"),
    [
        (40, Verdict.NO_EVIDENCE, 2, False),
        (40, Verdict.NO_EVIDENCE, 1, True),
        (40, Verdict.SUCCESS, 2, True),
        (CANARY, Verdict.NO_EVIDENCE, 2, True),
    ],
)
def test_a_large_canary_that_showed_nothing_is_followed_by_a_small_one(
    size: int, verdict: Verdict, generation: int, is_whole: bool
) -> None:
    """One of 149 suspects and three others was repeated for hours beside live messages that succeeded."""
    last = a_judged(size, returned=size, verdict=verdict, generation=generation)
    flapping = a_circuit(
        state=State.HALF_OPEN,
        flaps=FLAPS_THAT_SHOW,
        success_count=1,
        good_window=10,
        judged=(last,),
    )

    limit = allow(flapping, SETTINGS, NOW).limit

    assert limit == (restart_window(flapping, SETTINGS) if is_whole else CANARY)


@pytest.mark.parametrize(
    ("flaps", "success_count", "limit"),
    [
        (FLAPS_THAT_SHOW, 1, 10 * GROWTH_WHERE_SHOWN),
        (FLAPS_THAT_SHOW, 0, CANARY),
        (FEWER, 1, CANARY),
    ],
)
def test_the_second_canary_is_a_batch_where_the_consumer_flaps(
    flaps: int, success_count: int, limit: int
) -> None:
    """When two small ones have been judged, it is down again."""
    half_open = a_circuit(
        state=State.HALF_OPEN, flaps=flaps, success_count=success_count, good_window=10
    )

    permit = allow(half_open, SETTINGS, NOW)

    assert (permit.limit, permit.is_canary) == (limit, True)


@pytest.mark.parametrize(
    ("consecutive_opens", "good_window", "is_apart"),
    [
        (FAILED_TOGETHER, 0, False),
        (FAILED_TOGETHER + 1, 0, True),
        (FAILED_TOGETHER + 1, 10, False),
    ],
)
def test_the_letters_of_a_small_batch_that_fails_again_and_again_go_one_by_one(
    consecutive_opens: int, good_window: int, is_apart: bool
) -> None:
    """A consumer failed all that it took at once: 67 of 80 good letters beside 120 pills were given up."""
    half_open = a_circuit(
        state=State.HALF_OPEN,
        flaps=FLAPS_THAT_SHOW,
        success_count=1,
        good_window=good_window,
        consecutive_opens=consecutive_opens,
    )

    assert allow(half_open, SETTINGS, NOW).is_apart is is_apart
    assert not allow(replace(half_open, success_count=0), SETTINGS, NOW).is_apart


BRIEFLY = (FRESH / TRUSTED_SHARE).total_seconds()


@pytest.mark.parametrize(
    ("up_seconds", "success_count", "minutes_up", "heard_at", "is_whole"),
    [
        (BRIEFLY, 0, None, None, True),
        (BRIEFLY, 1, 3, None, False),
        (BRIEFLY, 1, 8, None, True),
        (BRIEFLY + 1, 0, None, None, False),
        (BRIEFLY + 1, 1, 3, None, True),
        (0, 0, None, None, False),
        (BRIEFLY, 0, None, ago(minutes=1), False),
        (BRIEFLY, 1, 3, ago(minutes=1), False),
        (BRIEFLY, 1, 8, ago(minutes=1), False),
    ],
    ids=[
        "a success is known too late, so the first canary is the batch",
        "and what follows it is small",
        "unless the consumer is up for longer this time",
        "it is known in time",
        "so the batch follows it",
        "nobody knows yet for how long it is up",
        "it reports, so that a success is known within seconds",
        "the second canary is small, too",
        "also if it is up for longer this time",
    ],
)
def test_one_canary_is_a_batch_where_the_consumer_flaps(
    up_seconds: float,
    success_count: int,
    minutes_up: int | None,
    heard_at: datetime | None,
    is_whole: bool,
) -> None:
    """None where it reports: a whole batch may be what it falls over."""
    flapping = a_circuit(
        state=State.HALF_OPEN if success_count else State.OPEN,
        changed_at=ago(hours=1),
        flaps=FLAPS_THAT_SHOW,
        up_seconds=int(up_seconds),
        up_since=None if minutes_up is None else ago(minutes=minutes_up),
        success_count=success_count,
        good_window=10,
        heard_at=heard_at,
    )

    limit = allow(flapping, SETTINGS, NOW).limit

    assert limit == (restart_window(flapping, SETTINGS) if is_whole else CANARY)


@pytest.mark.parametrize(
    ("up_seconds", "probed_at", "heard_at", "limit"),
    [
        (BRIEFLY, None, None, 40),
        (BRIEFLY, NOW, None, CANARY),
        (BRIEFLY + 1, None, None, CANARY),
        (BRIEFLY + 1, NOW, None, 40),
        (BRIEFLY, None, ago(minutes=1), CANARY),
        (BRIEFLY, NOW, ago(minutes=1), 40),
    ],
)
def test_a_probe_follows_the_batch_where_the_consumer_is_up_briefly(
    up_seconds: float, probed_at: datetime | None, heard_at: datetime | None, limit: int
) -> None:
    """Else, and where it reports, it goes before it. What follows a success would meet the next bad phase."""
    circuit = a_circuit(
        window=40,
        is_shaken=True,
        flaps=FLAPS_THAT_SHOW,
        up_seconds=int(up_seconds),
        up_since=None if probed_at is None else ago(minutes=2),
        success_count=int(probed_at is not None),
        probed_at=probed_at,
        heard_at=heard_at,
    )

    assert allow(circuit, SETTINGS, NOW).limit == limit


@pytest.mark.parametrize(
    ("flaps", "came_back", "is_strike"),
    [(FLAPS_THAT_SHOW, 2, True), (FLAPS_THAT_SHOW, 3, False), (FEWER, 3, True)],
)
def test_a_return_is_no_strike_where_the_consumer_is_up_briefly_unless_few_came_back(
    flaps: int, came_back: int, is_strike: bool
) -> None:
    """The others may have met a good phase."""
    known = Evidence(succeeded=20 - came_back, failed=came_back, has_metrics=True)

    flapping = a_circuit(flaps=flaps, up_seconds=int(BRIEFLY))

    one = judging(lambda _: known, size=20)(flapping).judged_batch(7)

    assert one is not None
    assert (one.verdict, one.is_strike) == (Verdict.SUCCESS, is_strike)


def test_no_canary_is_larger_than_the_largest_window() -> None:
    flapping = a_circuit(
        state=State.HALF_OPEN,
        flaps=FLAPS_THAT_SHOW,
        success_count=1,
        good_window=SETTINGS.max_window,
    )

    assert allow(flapping, SETTINGS, NOW).limit == SETTINGS.max_window


def test_a_large_canary_that_succeeds_is_a_window_that_was_shown_to_be_good() -> None:
    half_open = a_circuit(
        state=State.HALF_OPEN, flaps=FLAPS_THAT_SHOW, success_count=1, good_window=10
    )

    closed = judging(all_succeeded, size=12)(half_open)

    assert (closed.state, closed.good_window) == (State.CLOSED, 12)
    assert closed.window == 12 * GROWTH_WHERE_SHOWN


def test_a_large_canary_that_fails_makes_the_next_one_half_as_large() -> None:
    half_open = a_circuit(
        state=State.HALF_OPEN, flaps=FLAPS_THAT_SHOW, success_count=1, good_window=20
    )
    before = restart_window(half_open, SETTINGS)

    opened = judging(all_failed, size=before)(half_open)

    assert opened.state is State.OPEN
    assert restart_window(opened, SETTINGS) == before // 2


def test_one_that_fails_is_followed_by_one_as_large_while_the_consumer_was_down_for_as_long_before() -> (
    None
):
    """At 4 minutes up and 16 down, only the third one, a quarter as large, met the consumer up, each time."""
    verdicts = [Verdict.FAILURE] * 3 + [Verdict.NO_EVIDENCE, Verdict.SUCCESS]
    half_open = a_circuit(
        state=State.HALF_OPEN,
        flaps=FLAPS_THAT_SHOW,
        good_window=20,
        judged=tuple(a_judged(id=n, verdict=verdict) for n, verdict in enumerate(verdicts)),
    )
    sizes = []
    for number in range(4):
        failed = judging(all_failed, id=10 + number, size=80)(half_open)
        sizes.append(restart_window(failed, SETTINGS))
        half_open = replace(failed, state=State.HALF_OPEN)

    assert sizes == [80, 80, 80, 40]


@pytest.mark.parametrize(
    ("up_seconds", "counted"), [(BRIEFLY, [2, 3, 3, 4, 5]), (2 * BRIEFLY, [2, 3, 4, 5, 6])]
)
def test_where_the_consumer_is_up_briefly_the_cool_down_stays_until_it_is_down_for_longer(
    up_seconds: float, counted: list[int]
) -> None:
    """At 3 minutes up and 27 down, canaries half an hour apart missed most times up."""
    verdicts = [Verdict.FAILURE] * 3 + [Verdict.NO_EVIDENCE, Verdict.SUCCESS]
    half_open = a_circuit(
        state=State.HALF_OPEN,
        consecutive_opens=1,
        flaps=FLAPS_THAT_SHOW,
        up_seconds=int(up_seconds),
        judged=tuple(a_judged(id=n, verdict=verdict) for n, verdict in enumerate(verdicts)),
    )
    cool_downs = []
    for number in range(5):
        opened = judging(all_failed, id=10 + number, size=CANARY)(half_open)
        assert opened.cools_until is not None
        cool_downs.append(opened.cools_until - opened.changed_at)
        half_open = replace(opened, state=State.HALF_OPEN)

    assert cool_downs == [cool_down(opens, SETTINGS, ROLL, may_flap=True) for opens in counted]


def test_a_small_canary_that_fails_says_nothing_about_the_window() -> None:
    half_open = a_circuit(state=State.HALF_OPEN, good_window=20)

    assert judging(all_failed, size=CANARY)(half_open).good_window == 20


# While a success is fresh.


def test_where_the_consumer_flaps_it_is_trusted_for_a_part_of_the_time_for_which_it_was_up() -> (
    None
):
    """Its next bad phase is near then: a probe goes first."""
    began = a_circuit(flaps=FLAPS_THAT_SHOW, is_shaken=True, window=40, probed_at=ago(minutes=1))
    flapping = replace(began, up_since=ago(minutes=1), up_seconds=600)
    early = succeeding(flapping)
    late = succeeding(replace(flapping, up_since=ago(minutes=8)))
    probed = judging(all_succeeded, size=CANARY, is_probe=True)(replace(late, window=40))

    assert allow(early, SETTINGS, NOW).limit == early.window
    assert allow(late, SETTINGS, NOW).is_probe
    assert allow(probed, SETTINGS, NOW).limit == 40


def test_the_first_batch_since_a_failure_is_a_full_one_however_short_it_was_up() -> None:
    failed = failing(a_circuit(flaps=FLAPS_THAT_SHOW, window=40, up_since=ago(minutes=3)))
    probed = judging(all_succeeded, size=CANARY, is_probe=True)(replace(failed, window=40))

    assert allow(probed, SETTINGS, NOW).limit == 40


def test_a_failure_tells_for_how_long_the_consumer_was_up() -> None:
    """It went down between the last success and the failure: half-way, as far as is known."""
    succeeded = [a_judged(id=n, sent_at=ago(minutes=at)) for n, at in enumerate((13, 6, 8, 3))]
    up = a_circuit(up_since=ago(minutes=12), probed_at=ago(minutes=2), judged=tuple(succeeded))

    down = judging(all_failed, sent_at=ago(minutes=4))(up)
    again = judging(all_failed, sent_at=ago(minutes=1))(down)

    assert (down.up_since, down.up_seconds) == (None, 420)
    assert again.up_seconds == 420
    assert succeeding(again).up_since is not None


def test_a_flapping_consumers_large_canary_is_followed_by_a_probe_too() -> None:
    half_open = a_circuit(
        state=State.HALF_OPEN, flaps=FLAPS_THAT_SHOW, success_count=1, good_window=10
    )

    closed = judging(all_succeeded, size=20)(half_open)

    assert allow(closed, SETTINGS, NOW).is_probe


def test_a_success_is_fresh_from_its_verdict_on_however_long_ago_its_batch_was_sent() -> None:
    shaken = a_circuit(is_shaken=True, window=4)
    probed = judging(all_succeeded, size=1, is_probe=True, sent_at=ago(hours=1))(shaken)

    assert probed.probed_at == NOW
    assert allow(probed, SETTINGS, NOW + FRESH).limit == 4
    assert allow(probed, SETTINGS, NOW + FRESH + timedelta(seconds=1)).is_probe


def test_no_success_is_fresh_after_a_failure_or_a_persons_word() -> None:
    fresh = a_circuit(probed_at=NOW)

    assert failing(fresh).probed_at is None
    assert force(fresh, State.CLOSED, "by hand", NOW).probed_at is None


@pytest.mark.parametrize(("state", "opens", "window"), [(State.CLOSED, 0, 1), (State.OPEN, 1, 8)])
def test_a_persons_word_forgets_what_was_counted(state: State, opens: int, window: int) -> None:
    counted = a_circuit(
        window=8,
        failure_count=2,
        success_count=1,
        consecutive_opens=4,
        is_shaken=True,
        probed_at=NOW,
        up_since=ago(hours=1),
        flaps=3,
    )

    told = force(counted, state, "by hand", NOW)

    assert (told.state, told.window, told.consecutive_opens) == (state, window, opens)
    assert (told.failure_count, told.success_count, told.flaps) == (0, 0, 0)
    assert (told.is_shaken, told.probed_at, told.up_since) == (False, None, None)
