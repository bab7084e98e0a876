"""What the metrics say of a span of time: what was there, what left, and what became of it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.model.queue_metrics import Account, Minute, QueueMetrics
from tests.unit.examples import NOW, ago
from tests.unit.queue_minutes import MinuteKeeper, a_minute


def account_of(*minutes: Minute, since: int, until: int | None = None) -> Account:
    """The account from so many minutes ago on."""
    end = None if until is None else ago(minutes=until)
    account = QueueMetrics(minutes).account(ago(minutes=since), end)
    assert account is not None
    return account


def test_of_metrics_without_a_minute_nothing_is_known() -> None:
    assert QueueMetrics().account(NOW) is None


def test_of_a_span_that_no_minute_covers_yet_nothing_is_known() -> None:
    """CloudWatch is one to three minutes late: what was just sent is in no minute."""
    metrics = QueueMetrics((a_minute(5), a_minute(4)))

    assert metrics.account(ago(minutes=3)) is None
    assert metrics.account(ago(minutes=9), ago(minutes=5)) is None


def test_counters_add_up_from_the_minute_of_the_start_on() -> None:
    account = account_of(
        a_minute(4, sent=100, received=100, deleted=100),
        a_minute(3, sent=5, received=4, deleted=1),
        a_minute(2, sent=1, received=6, deleted=2),
        since=3,
    )

    assert (account.sent, account.received, account.deleted) == (6, 10, 3)


def test_a_span_begins_with_the_whole_minute_of_its_start() -> None:
    metrics = QueueMetrics((a_minute(3, sent=5), a_minute(2, sent=1)))

    account = metrics.account(ago(minutes=2, seconds=30))

    assert account is not None
    assert account.sent == 6


def test_a_span_ends_before_the_minute_of_its_end() -> None:
    account = account_of(a_minute(3, sent=5), a_minute(2, sent=1), since=3, until=2)

    assert account.sent == 5
    assert account.until == ago(minutes=2)


def test_what_was_present_is_what_the_last_minute_before_the_span_held() -> None:
    account = account_of(
        a_minute(5, visible=90),
        a_minute(4, visible=3, in_flight=2, delayed=1),
        a_minute(3, sent=4, visible=10),
        since=3,
    )

    assert account.present == 6
    assert account.met == 10


def test_before_the_first_known_minute_nothing_counts_as_present() -> None:
    assert account_of(a_minute(3, sent=4), since=3).present == 0


def test_what_is_neither_deleted_nor_there_was_moved_to_the_dlq() -> None:
    account = account_of(
        a_minute(4, visible=2),
        a_minute(3, sent=10, received=12, deleted=5),
        a_minute(2, visible=1),
        a_minute(1, visible=1, in_flight=1),
        since=3,
    )

    assert (account.met, account.deleted, account.left) == (12, 5, 2)
    assert account.moved == 5


def test_what_is_left_is_the_larger_of_the_last_two_minutes() -> None:
    """A gauge is taken at some moment of its minute, perhaps before the last message was sent."""
    minutes = (a_minute(3, sent=4), a_minute(2, visible=4), a_minute(1, visible=0))

    assert account_of(*minutes, since=3).left == 4
    assert account_of(*minutes, since=3).moved == 0
    assert account_of(*minutes, a_minute(0), since=3).moved == 4


def test_a_repeated_delete_makes_nobody_moved_twice_nor_less_than_none() -> None:
    assert account_of(a_minute(3, sent=2, received=3, deleted=3), since=3).moved == 0


def test_a_receive_that_ended_without_a_delete_is_a_failed_try() -> None:
    account = account_of(a_minute(3, received=9, deleted=4), a_minute(2), a_minute(1), since=3)

    assert account.failed_tries == 5


def test_a_receive_that_is_still_in_hand_is_no_failed_try() -> None:
    account = account_of(a_minute(2, received=9, deleted=4), a_minute(1, in_flight=5), since=2)

    assert account.failed_tries == 0


def test_a_delete_whose_receive_came_before_the_span_makes_no_tries_negative() -> None:
    assert account_of(a_minute(2, received=0, deleted=3), since=2).failed_tries == 0


def test_what_waits_and_what_somebody_has_in_hand_are_told_apart() -> None:
    account = account_of(
        a_minute(3, visible=9, in_flight=9),
        a_minute(2, visible=1, in_flight=6),
        a_minute(1, visible=4, in_flight=2, delayed=3, deleted=7),
        since=3,
    )

    assert (account.waiting, account.in_flight, account.left) == (4, 6, 9)
    assert account.deleted_lately == 7


def test_a_minute_without_a_gauge_holds_nothing_that_is_known() -> None:
    assert Minute(at=NOW).held == 0


def test_late_minutes_leave_the_end_of_the_span_where_the_metrics_end() -> None:
    """Nothing after `until` is known: who waits for a letter's outcome must not take silence for one."""
    account = account_of(a_minute(9, sent=3), a_minute(8, visible=3), since=9)

    assert account.until == ago(minutes=7)
    assert account.moved == 0


COUNTED = ("sent", "deleted", "moved", "tries", "in_flight")
MINUTES = st.lists(
    st.fixed_dictionaries(dict.fromkeys(COUNTED, st.integers(0, 50))),
    min_size=1,
    max_size=10,
)


@given(st.integers(0, 30), MINUTES)
def test_metrics_that_are_complete_account_for_every_message(
    present: int, minutes: list[dict[str, int]]
) -> None:
    first = ago(minutes=30)
    keeper, held, sums = MinuteKeeper(first, present), present, {"deleted": 0, "moved": 0}
    for one in minutes:
        held += one["sent"]
        one["deleted"] = min(one["deleted"], held)
        one["moved"] = min(one["moved"], held - one["deleted"])
        held -= one["deleted"] + one["moved"]
        one["in_flight"] = min(one["in_flight"], held)
        sums = {name: sums[name] + one[name] for name in sums}
        keeper.minute(**one)

    account = keeper.quiet(2).metrics.account(first + timedelta(minutes=1))

    assert account is not None
    assert account.met == present + sum(one["sent"] for one in minutes)
    assert (account.deleted, account.left, account.moved) == (sums["deleted"], held, sums["moved"])


@pytest.mark.parametrize("known", [1, 2, 3])
def test_metrics_that_end_early_never_say_that_more_was_moved_than_was(known: int) -> None:
    """Cut anywhere: what is not entered yet may only be missing, not invented."""
    first = ago(minutes=10)
    keeper = MinuteKeeper(first).minute(sent=6, in_flight=6).minute(tries=6, in_flight=6)
    minutes = keeper.minute(deleted=2, moved=4).metrics.minutes

    account = QueueMetrics(minutes[: known + 1]).account(first + timedelta(minutes=1))

    assert account is not None
    assert account.moved <= 4
    assert account.deleted <= 2


class TestWhatIsNotToldYet:
    """Of what is only counted: minutes 10 to 6 ago are taken for known, and one minute has counted three messages."""

    @staticmethod
    def metrics(told_ago: int) -> QueueMetrics:
        minutes = [
            Minute(at=ago(minutes=number), sent=3 if number == told_ago else 0)
            for number in range(10, 5, -1)
        ]
        return QueueMetrics(tuple(minutes), has_gauges=False)

    @pytest.mark.parametrize(
        ("told_ago", "sent_ago", "known"),
        [
            (8, (8, 8), 5),
            (7, (8, 8), 5),  # a call may count in the minute after it
            (8, (9, 8), 5),
            (6, (8, 8), 2),
            (10, (8, 8), 2),
            (0, (10, 10), 0),
            (0, (5, 5), 5),  # they don't reach so far
        ],
    )
    def test_they_end_before_what_was_sent_and_is_not_counted(
        self, told_ago: int, sent_ago: tuple[int, int], known: int
    ) -> None:
        start, last = (ago(minutes=number) for number in sent_ago)

        metrics = self.metrics(told_ago).up_to_untold([(start, last, 3)])

        assert len(metrics.minutes) == known
        assert not metrics.has_gauges

    def test_the_first_that_is_not_counted_ends_them(self) -> None:
        sent = [(ago(minutes=number), ago(minutes=number), 3) for number in (7, 9, 10)]

        assert len(self.metrics(10).up_to_untold(sent).minutes) == 1
