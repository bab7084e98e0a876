"""What producers' own messages say of the consumer: beside a batch, and while the circuit is OPEN."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.model.evidence import (
    FAILURES_PER_LIVE_SUCCESS,
    FEWEST_LIVE_SUCCESSES,
    LIVE_LOOKBACK,
    VOUCHED_BEFORE_CANARY,
    Live,
    LiveOutcome,
    gather_evidence,
    live_outcome,
)
from smart_redriver.engine.model.queue_metrics import PERIOD, QueueMetrics
from tests.unit.examples import NOW, a_batch, a_judged, ago
from tests.unit.queue_minutes import BEGIN, MinuteKeeper, known

RATE = 0.5
LONG_AGO = ago(hours=1)

# Beside a batch.


def test_live_successes_are_those_that_no_letter_can_have_had() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(deleted=7, moved=3).quiet(2)

    live = known(keeper).live

    assert (live.met, live.succeeded, live.finished) == (6, 3, 6)
    assert live.per_minute == pytest.approx(3 / 4)
    assert live.is_expected


def test_letters_that_were_seen_again_leave_more_successes_to_live_messages() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(deleted=6, moved=4).quiet(2)

    assert known(keeper, batch=a_batch(returned=4)).live.succeeded == 6


def test_other_batches_letters_are_no_live_messages() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(sent=6, deleted=10).quiet(2)

    assert known(keeper, a_judged(6)).live.met == 0
    assert not known(keeper, a_judged(6)).live.is_expected


def test_a_burst_that_was_over_before_a_canary_went_vouches_for_it_where_that_is_asked() -> None:
    """Known some minutes later, it is what the canary was sent for."""
    before = BEGIN - 4 * PERIOD
    keeper = MinuteKeeper(before).minute(sent=50, deleted=50).quiet(3).minute(sent=4).quiet(2)

    asked = gather_evidence(
        a_batch(), (), keeper.metrics, max_receives=3, vouched_before=VOUCHED_BEFORE_CANARY
    )

    assert (asked.live.met, asked.live.succeeded) == (
        50,
        50 - 4,
    )  # four deletes may be of our letters
    assert asked.met == 4
    assert known(keeper).live.succeeded == 0


def test_on_a_quiet_queue_no_word_of_producers_is_expected() -> None:
    assert not known(MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4)).live.is_expected


def test_producers_that_sent_a_little_before_are_expected_to_send_again() -> None:
    keeper = MinuteKeeper(ago(minutes=20)).minute(sent=1, deleted=1).until(ago(minutes=10))

    assert known(keeper.minute(sent=4).quiet(3)).live.is_expected


@pytest.mark.parametrize("is_late", [False, True], ids=["metrics in time", "metrics that are late"])
def test_what_was_sent_before_by_ourselves_makes_no_producers(is_late: bool) -> None:
    keeper = MinuteKeeper(ago(minutes=20)).minute(sent=5, deleted=5).until(ago(minutes=10))
    if not is_late:
        keeper.minute(sent=4).quiet(3)

    assert not known(keeper, a_judged(5, minutes=19)).live.is_expected


def test_a_batch_of_the_same_minute_was_not_sent_before() -> None:
    """Its letters are in the span itself; taken out of the time before, they would hide producers."""
    keeper = MinuteKeeper(ago(minutes=20)).minute(sent=5, deleted=5).until(ago(minutes=10))

    assert known(keeper.minute(sent=9).quiet(3), a_judged(5, minutes=10)).live.is_expected


def test_producers_are_expected_even_where_the_metrics_are_late() -> None:
    keeper = MinuteKeeper(ago(minutes=20)).minute(sent=1, deleted=1).until(ago(minutes=10))

    assert known(keeper).live.is_expected


def test_what_we_sent_as_the_look_back_begins_makes_no_producers() -> None:
    begins = ago(minutes=10) - LIVE_LOOKBACK
    keeper = MinuteKeeper(begins - PERIOD).minute(sent=5, deleted=5).until(ago(minutes=10))
    keeper.minute(sent=4).quiet(3)

    assert known(keeper).live.is_expected
    assert not known(keeper, a_judged(5, sent_at=begins)).live.is_expected


def test_producers_that_fell_silent_long_before_are_not_expected() -> None:
    long_ago = ago(minutes=11) - LIVE_LOOKBACK
    keeper = MinuteKeeper(long_ago - timedelta(minutes=1)).minute(sent=1, deleted=1)

    assert not known(keeper.until(ago(minutes=10)).minute(sent=4).quiet(3)).live.is_expected


# Whom they outweigh.


def test_one_live_success_is_a_coincidence() -> None:
    one = FEWEST_LIVE_SUCCESSES - 1

    assert not Live(met=one, succeeded=one).vouches_for(0, RATE)
    assert Live(met=FEWEST_LIVE_SUCCESSES, succeeded=FEWEST_LIVE_SUCCESSES).vouches_for(0, RATE)


@pytest.mark.parametrize("tens", [1, 3, 100])
def test_many_letters_that_failed_want_more_live_successes_to_be_outweighed(tens: int) -> None:
    failed = FAILURES_PER_LIVE_SUCCESS * tens
    enough = max(FEWEST_LIVE_SUCCESSES, tens)

    assert Live(met=enough, succeeded=enough).vouches_for(failed, RATE)
    assert not Live(met=enough, succeeded=enough).vouches_for(
        FAILURES_PER_LIVE_SUCCESS * enough + 1, RATE
    )


def test_live_messages_of_which_too_many_fail_vouch_for_nobody() -> None:
    assert Live(met=100, succeeded=51).vouches_for(4, RATE)
    assert not Live(met=100, succeeded=50).vouches_for(4, RATE)


def test_live_messages_of_which_nothing_is_known_vouch_for_nobody() -> None:
    assert not Live(met=100, succeeded=0).vouches_for(0, 1.0)
    assert not Live().vouches_for(0, 1.0)


def test_live_messages_have_spoken_when_as_many_came_to_an_end_as_could_outweigh() -> None:
    few = FEWEST_LIVE_SUCCESSES

    assert not Live(met=9, succeeded=1, finished=few - 1).has_spoken(1)
    assert Live(met=9, succeeded=1, finished=few).has_spoken(1)
    assert not Live(met=9, succeeded=1, finished=2).has_spoken(20 * FAILURES_PER_LIVE_SUCCESS)


def test_live_messages_that_all_failed_have_spoken_however_many_letters_came_back() -> None:
    """More of them would not vouch for anybody either."""
    few = FEWEST_LIVE_SUCCESSES

    assert Live(met=9, finished=few).has_spoken(20 * FAILURES_PER_LIVE_SUCCESS)
    assert not Live(met=9, finished=few - 1).has_spoken(20 * FAILURES_PER_LIVE_SUCCESS)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 1_000), st.floats(0.01, 1))
def test_one_more_live_success_never_takes_a_vouchers_word_back(
    succeeded: int, others: int, failed: int, rate: float
) -> None:
    met = succeeded + others + 1
    less, more = (Live(met=met, succeeded=count) for count in (succeeded, succeeded + 1))

    assert more.vouches_for(failed, rate) or not less.vouches_for(failed, rate)


# While the circuit is OPEN.


def heard(keeper: MinuteKeeper, since: timedelta | None = None) -> LiveOutcome:
    return live_outcome(keeper.metrics, NOW - since if since is not None else LONG_AGO)


def test_without_books_nothing_is_seen() -> None:
    assert live_outcome(None, LONG_AGO) is LiveOutcome.UNSEEN
    assert live_outcome(QueueMetrics(), LONG_AGO) is LiveOutcome.UNSEEN


def test_without_messages_nothing_is_seen() -> None:
    assert heard(MinuteKeeper(ago(minutes=20)).quiet(15)) is LiveOutcome.UNSEEN


def test_messages_that_are_deleted_succeed() -> None:
    keeper = MinuteKeeper(ago(minutes=9)).minute(sent=2, deleted=2)

    assert heard(keeper) is LiveOutcome.SUCCEEDS


def test_one_delete_is_no_success_of_the_consumer() -> None:
    assert heard(MinuteKeeper(ago(minutes=9)).minute(sent=1, deleted=1)) is LiveOutcome.UNSEEN


def test_receives_that_all_come_to_nothing_fail() -> None:
    keeper = MinuteKeeper(ago(minutes=9)).minute(sent=2, tries=2).minute(tries=2).minute(moved=2)

    assert heard(keeper) is LiveOutcome.FAILS


def test_one_receive_that_came_to_nothing_is_no_failure_of_the_consumer() -> None:
    assert heard(MinuteKeeper(ago(minutes=9)).minute(sent=1, tries=1)) is LiveOutcome.UNSEEN


@pytest.mark.parametrize(("ours", "outcome"), [(2, LiveOutcome.FAILS), (3, LiveOutcome.UNSEEN)])
def test_failed_tries_of_judged_letters_say_nothing_new(ours: int, outcome: LiveOutcome) -> None:
    """On a queue without producers, the canary's own tries would put off the next canary."""
    keeper = MinuteKeeper(ago(minutes=9)).minute(sent=2, tries=2).minute(tries=2).minute(moved=2)

    assert live_outcome(keeper.metrics, LONG_AGO, ours) is outcome


@pytest.mark.parametrize("tries", [3, 6])
def test_where_no_more_succeed_than_fail_nobody_can_tell(tries: int) -> None:
    keeper = MinuteKeeper(ago(minutes=9)).minute(sent=9, deleted=3, tries=tries)

    assert heard(keeper) is LiveOutcome.UNSEEN


def test_the_end_of_an_outage_shows_at_once() -> None:
    keeper = MinuteKeeper(ago(minutes=20))
    for _ in range(15):
        keeper.minute(sent=2, tries=2, moved=2)

    assert heard(keeper) is LiveOutcome.FAILS
    assert heard(keeper.minute(sent=2, deleted=2).minute(sent=2, deleted=2).minute(deleted=0)) is (
        LiveOutcome.SUCCEEDS
    )


@pytest.mark.parametrize(
    ("minutes_since", "outcome"), [(2, LiveOutcome.UNSEEN), (3, LiveOutcome.SUCCEEDS)]
)
def test_an_outage_is_over_when_the_last_three_minutes_say_so(
    minutes_since: int, outcome: LiveOutcome
) -> None:
    keeper = MinuteKeeper(ago(minutes=20)).minute(sent=9, tries=9, moved=9)
    keeper.minute(sent=2, deleted=2).quiet(minutes_since - 1)

    assert heard(keeper) is outcome


@pytest.mark.parametrize(
    ("tries", "outcome"), [(1, LiveOutcome.UNSEEN), (2, LiveOutcome.FAILS), (3, LiveOutcome.FAILS)]
)
def test_two_receives_that_came_to_nothing_are_a_failure(tries: int, outcome: LiveOutcome) -> None:
    assert heard(MinuteKeeper(ago(minutes=9)).minute(sent=tries, tries=tries)) is outcome


def test_a_few_messages_a_quarter_of_an_hour_are_heard_when_the_last_minutes_are_silent() -> None:
    keeper = MinuteKeeper(ago(minutes=14)).minute(sent=2, deleted=2).quiet(10)

    assert heard(keeper) is LiveOutcome.SUCCEEDS


def test_what_was_before_the_circuits_last_change_says_nothing_any_more() -> None:
    """The minute in which it changed holds both, before and after: the next one is the first to be heard."""
    keeper = MinuteKeeper(ago(minutes=5)).minute(sent=5, deleted=5)

    assert heard(keeper, since=timedelta(minutes=4)) is LiveOutcome.UNSEEN
    assert heard(keeper, since=timedelta(minutes=5)) is LiveOutcome.SUCCEEDS


def test_a_circuit_that_changed_after_the_metrics_end_hears_nothing() -> None:
    keeper = MinuteKeeper(ago(minutes=9)).minute(sent=5, deleted=5)

    assert heard(keeper, since=timedelta()) is LiveOutcome.UNSEEN


def test_messages_from_the_outage_that_fail_their_last_tries_do_not_outvote_the_new_ones() -> None:
    keeper = MinuteKeeper(ago(minutes=9), present=3).quiet(4)
    keeper.minute(sent=2, deleted=2, tries=3, moved=3)

    assert heard(keeper) is LiveOutcome.SUCCEEDS
    assert heard(keeper.minute(sent=3, tries=3)) is LiveOutcome.UNSEEN


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20),
    st.integers(0, 25),
)
def test_nobody_is_said_to_succeed_without_deletes_nor_to_fail_beside_them(
    minutes: list[tuple[int, int]], since: int
) -> None:
    keeper = MinuteKeeper(ago(minutes=25))
    for deleted, tries in minutes:
        keeper.minute(sent=deleted, deleted=deleted, tries=tries)
    first = NOW - since * PERIOD + PERIOD
    counted = [one for one in keeper.metrics.minutes if one.at >= first]

    traffic = heard(keeper, since=since * PERIOD)

    assert traffic is not LiveOutcome.SUCCEEDS or sum(one.deleted for one in counted) > 1
    assert traffic is not LiveOutcome.FAILS or sum(one.received for one in counted) > 1
    assert counted or traffic is LiveOutcome.UNSEEN
