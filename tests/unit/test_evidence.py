"""What is known of a batch's letters from returns and metrics: bounds that hold, and nothing beyond them."""

from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smart_redriver.engine.model.batch import Batch, Heard, Judged
from smart_redriver.engine.model.evidence import Evidence, Live, gather_evidence
from smart_redriver.engine.model.queue_metrics import QueueMetrics
from tests.unit.examples import NOW, a_batch, a_judged, ago
from tests.unit.queue_minutes import BEGIN, MAX_RECEIVES, MinuteKeeper, known

# What metrics are needed for.


@pytest.mark.parametrize(("max_receives", "tries"), [(1, 3), (2, 2), (3, 1)])
def test_without_metrics_letters_count_that_must_have_failed_for_so_many_failed_tries(
    max_receives: int, tries: int
) -> None:
    batch = a_batch(heard=Heard(tries=3))

    evidence = gather_evidence(batch, [], None, max_receives=max_receives)

    assert evidence.failed_tries == tries


def test_without_metrics_only_returns_are_known() -> None:
    batch = a_batch(suspects=2, returned=1, suspects_returned=1)

    evidence = gather_evidence(batch, [], None, max_receives=MAX_RECEIVES)

    assert evidence == Evidence(failed=1, suspects_failed=1)


@pytest.mark.parametrize("minutes", [0, 1])
def test_metrics_that_end_before_the_first_try_show_nothing_of_the_batch(minutes: int) -> None:
    keeper = MinuteKeeper(BEGIN)
    if minutes:
        keeper.minute(sent=4, deleted=4)  # by others, ten minutes ago: no letter could be tried yet

    evidence = known(keeper, batch=a_batch(returned=1))

    assert (evidence.succeeded, evidence.failed, evidence.has_metrics) == (0, 1, False)
    assert not evidence.were_tried


def test_metrics_are_whole_only_a_minute_after_the_last_letter_can_be_tried() -> None:
    """What was delayed and is in no gauge yet would pass for moved."""
    batch = a_batch(last_try_at=ago(minutes=6))
    keeper = MinuteKeeper(BEGIN).minute(sent=4).quiet(3)

    early = known(keeper, batch=batch)
    whole = known(keeper.quiet(2), batch=batch)

    assert (early.has_metrics, whole.has_metrics) == (False, True)


def test_letters_that_others_sent_after_the_metrics_end_do_not_make_deletions_ours() -> None:
    """They are back already, and in no minute that is told yet: of four messages three live ones were deleted."""
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(sent=3, deleted=3, tries=4).quiet(1)
    later, within = (
        a_batch(id=8, sent_at=ago(minutes=at), first_try_at=ago(minutes=at), size=3, returned=3)
        for at in (7, 9)
    )

    assert known(keeper, later).succeeded == 0
    assert known(keeper, within).succeeded == 3


def test_a_batch_of_the_last_minute_that_is_told_is_among_the_others() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(sent=3, deleted=3, tries=4).quiet(1)
    just_within = a_batch(id=8, sent_at=ago(minutes=8), size=3, returned=3)

    assert known(keeper, just_within).succeeded == 3


@pytest.mark.parametrize(("minutes", "were_tried"), [(3, False), (4, True), (5, True)])
def test_all_were_tried_when_metrics_cover_the_minute_after_the_last_try(
    minutes: int, were_tried: bool
) -> None:
    batch = a_batch(last_try_at=ago(minutes=6))
    keeper = MinuteKeeper(BEGIN).minute(sent=4, deleted=4).quiet(minutes)

    assert known(keeper, batch=batch).were_tried == were_tried


# What spans other than from the batch on tell.


@pytest.mark.parametrize(("minutes_before", "succeeded"), [(1, 4), (14, 4), (15, 4), (16, 0)])
def test_letters_of_a_batch_before_that_came_back_leave_the_successes_to_this_one(
    minutes_before: int, succeeded: int
) -> None:
    """They were there when it was sent, and may have been deleted since; but they came back."""
    sent = 10 + minutes_before
    before = a_batch(id=6, sent_at=ago(minutes=sent), size=4, returned=4)
    keeper = MinuteKeeper(ago(minutes=sent + 1)).minute(sent=4, tries=4, in_flight=4)
    for _ in range(minutes_before - 1):
        keeper.minute(in_flight=4)
    keeper.minute(sent=4, in_flight=4).minute(deleted=4, moved=4)

    assert known(keeper, before).succeeded == succeeded


def test_before_another_batch_was_sent_its_letters_had_none_of_the_successes() -> None:
    after = a_batch(id=8, sent_at=ago(minutes=8), size=4)
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4).minute(sent=4).quiet(1)

    assert known(keeper, after).succeeded == 4


def test_of_several_batches_after_the_span_before_the_first_one_tells() -> None:
    first = a_batch(id=8, sent_at=ago(minutes=8), size=4)
    second = a_batch(id=9, sent_at=ago(minutes=7), size=4)
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4).minute(sent=4).minute(sent=4)

    assert known(keeper.quiet(1), first, second).succeeded == 4


def test_nor_had_they_where_a_third_batch_was_sent_in_the_minute_of_the_first() -> None:
    beside = a_batch(id=6, size=1, returned=1)
    after = a_batch(id=8, sent_at=ago(minutes=8), size=4)
    keeper = MinuteKeeper(BEGIN).minute(sent=5).minute(deleted=4, moved=1).minute(sent=4).quiet(1)

    assert known(keeper, beside, after).succeeded == 4


def test_what_came_back_of_a_batch_before_counts_where_a_third_was_sent_beside_this_one() -> None:
    before = a_batch(id=6, sent_at=ago(minutes=12), size=4, returned=4)
    beside = a_batch(id=5, size=1, returned=1)
    keeper = MinuteKeeper(ago(minutes=13)).minute(sent=4, tries=4, in_flight=4).minute(in_flight=4)
    keeper.minute(sent=5, in_flight=4).minute(deleted=4, moved=5)

    assert known(keeper, before, beside).succeeded == 4


def test_of_several_batches_before_the_span_of_the_last_one_tells() -> None:
    """Letters of an earlier one went to the DLQ and nobody has met them: they may have been deleted."""
    earlier = a_batch(id=5, sent_at=ago(minutes=14), size=4)
    before = a_batch(id=6, sent_at=ago(minutes=12), size=4, returned=4)
    keeper = MinuteKeeper(ago(minutes=15)).minute(sent=4).minute(moved=4)
    keeper.minute(sent=4, in_flight=4).minute(in_flight=4)
    keeper.minute(sent=4, in_flight=4).minute(deleted=4, moved=4)

    assert known(keeper, earlier, before).succeeded == 4


def test_of_several_batches_before_the_span_of_an_earlier_one_tells_where_its_letters_were_met() -> (
    None
):
    """Some of the last one's letters came back, and some of the earlier one's were there until then."""
    earlier = a_batch(id=5, sent_at=ago(minutes=14), size=4, returned=4)
    before = a_batch(id=6, sent_at=ago(minutes=12), size=2, returned=2)
    keeper = MinuteKeeper(ago(minutes=15)).minute(sent=4).minute(in_flight=4)
    keeper.minute(sent=2, in_flight=6).minute(in_flight=6)
    keeper.minute(sent=4, in_flight=10).minute(deleted=4, moved=6)

    assert known(keeper, before).succeeded == 0
    assert known(keeper, earlier, before).succeeded == 4


@pytest.mark.parametrize(("minutes_ago", "live"), [(8, 2), (7, 6), (6, 6)])
def test_letters_that_are_sent_when_the_metrics_end_are_in_none_of_their_minutes(
    minutes_ago: int, live: int
) -> None:
    later = a_batch(id=8, sent_at=ago(minutes=minutes_ago), size=4)
    keeper = MinuteKeeper(BEGIN).minute(sent=10).quiet(2)

    assert known(keeper, later).live.met == live


def test_a_span_that_ends_before_the_metrics_begin_shows_no_success() -> None:
    after = a_batch(id=8, sent_at=ago(minutes=8))
    keeper = MinuteKeeper(ago(minutes=5)).quiet(2)

    assert known(keeper, after).succeeded == 0


# A quiet queue: every message is a letter of the batch.


def test_on_a_quiet_queue_every_delete_is_a_letter_that_succeeded() -> None:
    evidence = known(MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=3, tries=1, in_flight=1))

    assert (evidence.succeeded, evidence.failed) == (3, 0)
    assert evidence.is_still_there


def test_on_a_quiet_queue_what_is_neither_deleted_nor_there_has_failed() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=1, tries=3, in_flight=3)

    evidence = known(keeper.minute(moved=3).quiet(2))

    assert (evidence.succeeded, evidence.failed) == (1, 3)
    assert evidence.were_tried
    assert not evidence.is_still_there


def test_nothing_counts_as_failed_while_letters_may_not_be_entered_yet() -> None:
    batch = a_batch(last_try_at=ago(minutes=5))
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=1, moved=3).quiet(2)

    assert known(keeper, batch=batch).failed == 0


def test_a_return_that_was_seen_is_a_failure_whatever_the_metrics_say() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(tries=4, in_flight=4)

    assert known(keeper, batch=a_batch(returned=2)).failed == 2


def test_a_letter_that_was_seen_again_did_not_succeed_however_many_deletes_were_counted() -> None:
    """A consumer may delete a message and let it fail all the same, or delete it twice."""
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4)

    assert known(keeper, batch=a_batch(returned=1)).succeeded == 3


def test_of_what_left_for_the_dlq_suspects_are_taken_to_be_the_first() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=1).minute(moved=3).quiet(2)

    evidence = known(keeper, batch=a_batch(suspects=2))

    assert (evidence.failed, evidence.suspects_failed) == (1, 0)


def test_a_long_visibility_timeout_leaves_letters_in_hand_and_shows_neither_end() -> None:
    batch = a_batch(size=300, due_at=NOW + timedelta(hours=7))
    keeper = MinuteKeeper(BEGIN).minute(sent=300).minute(tries=300, in_flight=300)
    keeper.minute(in_flight=300).minute(in_flight=300)

    evidence = known(keeper, batch=batch)

    assert (evidence.succeeded, evidence.failed, evidence.failed_tries) == (0, 0, 0)
    assert evidence.were_tried
    assert evidence.is_still_there


def test_deletes_acquit_letters_long_before_the_visibility_timeouts_are_over() -> None:
    batch = a_batch(size=300, due_at=NOW + timedelta(hours=7))
    keeper = MinuteKeeper(BEGIN).minute(sent=300).minute(deleted=280, tries=20, in_flight=20)

    assert known(keeper, batch=batch).succeeded == 280


def test_a_receive_that_came_to_nothing_is_told_whoevers_message_it_was() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(tries=4, in_flight=4).minute(tries=4)

    evidence = known(keeper.quiet(1))

    assert evidence.failed_tries == 8
    assert evidence.deleted == 0


@pytest.mark.parametrize(("tries", "others"), [(0, 0), (12, 0), (13, 1), (20, 8)])
def test_failed_tries_are_others_only_beyond_what_our_own_letters_can_have_had(
    tries: int, others: int
) -> None:
    """Each of the four letters may be received three times before it is back in the DLQ."""
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(tries=tries).quiet(1)

    assert known(keeper).others_failed_tries == others


def test_letters_of_another_batch_of_the_same_time_may_have_had_the_failed_tries() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(tries=20).quiet(1)

    assert known(keeper, a_judged(2)).others_failed_tries == 20 - (4 + 2) * MAX_RECEIVES
    assert known(keeper, a_judged(2, minutes=20)).others_failed_tries == 20 - 4 * MAX_RECEIVES
    at_its_start = a_judged(2, minutes=10)  # the batch was sent in that minute
    assert known(keeper, at_its_start).others_failed_tries == 20 - (4 + 2) * MAX_RECEIVES


def test_letters_of_an_earlier_batch_that_may_still_be_out_may_have_had_them_too() -> None:
    """Where a message takes long to fail, two batches are tried side by side: neither is an outage of the other."""
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(tries=30).quiet(1)
    earlier = a_batch(id=6, size=3, returned=1, sent_at=ago(minutes=20))
    judged = a_judged(5, minutes=20, unaccounted=1)

    assert known(keeper, earlier).others_failed_tries == 30 - (4 + 2) * MAX_RECEIVES
    assert known(keeper, judged).others_failed_tries == 30 - (4 + 1) * MAX_RECEIVES


def test_letters_that_nobody_has_received_yet_were_not_tried() -> None:
    assert not known(MinuteKeeper(BEGIN).minute(sent=4).quiet(4)).were_tried


# Beside others' messages.


@pytest.mark.parametrize(("deleted", "succeeded"), [(6, 0), (7, 1), (9, 3), (10, 4)])
def test_beside_live_messages_a_success_is_one_that_they_cannot_have_had(
    deleted: int, succeeded: int
) -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(deleted=deleted).quiet(2)

    assert known(keeper).succeeded == succeeded


@pytest.mark.parametrize(("moved", "failed"), [(6, 0), (7, 1), (10, 4)])
def test_beside_live_messages_a_failure_is_one_that_they_cannot_have_had(
    moved: int, failed: int
) -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=10).minute(moved=moved).quiet(2)

    assert known(keeper).failed == failed


def test_messages_that_were_there_before_are_others_too() -> None:
    keeper = MinuteKeeper(BEGIN, present=6).minute(sent=4).minute(deleted=7).quiet(2)

    evidence = known(keeper)

    assert (evidence.met, evidence.succeeded) == (10, 1)


@pytest.mark.parametrize(("present", "moved", "died"), [(0, 4, 0), (0, 6, 2), (1, 6, 1), (3, 6, 0)])
def test_live_messages_died_where_neither_letters_nor_what_was_there_before_can_have(
    present: int, moved: int, died: int
) -> None:
    keeper = MinuteKeeper(BEGIN, present=present).minute(sent=10).minute(moved=moved).quiet(2)

    assert known(keeper).live.failed == died


@pytest.mark.parametrize(
    ("succeeded", "failed", "is_mixed"),
    [
        (18, 2, True),
        (19, 2, False),
        (2, 2, True),
        (9, 1, False),
        (1, 0, False),
        (0, 9, None),
        (0, 0, None),
    ],
)
def test_it_is_mixed_where_a_tenth_fails_and_others_succeed(
    succeeded: int, failed: int, is_mixed: bool | None
) -> None:
    of_letters = Evidence(succeeded=succeeded, failed=failed, suspects_failed=50)
    live = Live(succeeded=succeeded, failed=failed, finished=20)
    of_live = Evidence(succeeded=3, failed=3, live=live)

    assert of_letters.is_mixed is is_mixed
    assert of_live.is_mixed is is_mixed


def test_another_batch_of_the_same_time_may_have_had_the_successes() -> None:
    other = a_batch(id=8, size=3, sent_at=ago(minutes=9))
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(sent=3, deleted=5).quiet(2)

    assert known(keeper, other).succeeded == 2


@pytest.mark.parametrize(
    "other",
    [a_judged(3, returned=2), a_batch(id=8, size=3, returned=2, sent_at=ago(minutes=9))],
    ids=["judged", "pending"],
)
def test_letters_of_another_batch_that_were_seen_again_had_no_success(
    other: Batch | Judged,
) -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(sent=3, deleted=4).quiet(2)

    assert known(keeper, other).succeeded == 3


def test_letters_that_return_from_another_batch_are_not_charged_to_this_one() -> None:
    """All four letters of this batch were deleted; nine of ten that went a minute later came back."""
    keeper = (
        MinuteKeeper(BEGIN).minute(sent=4).minute(sent=10, deleted=4).minute(deleted=1, moved=9)
    )

    evidence = known(keeper.quiet(3), a_judged(10, returned=9))

    assert (evidence.succeeded, evidence.failed) == (4, 0)


def test_a_batch_that_was_sent_before_the_span_takes_nothing_from_its_successes() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4)

    assert known(keeper, a_judged(50, minutes=20)).succeeded == 4


def test_the_batch_itself_among_the_others_is_not_counted_twice() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=3, tries=1, in_flight=1)

    assert known(keeper, a_batch()) == known(keeper)


# Bounds, over any world.

Fates = dict[str, int]
FATES: st.SearchStrategy[Fates] = st.fixed_dictionaries(
    dict.fromkeys(("succeeded", "failed", "unknown"), st.integers(0, 20))
)


@example(
    mine={"succeeded": 4, "failed": 0, "unknown": 0},
    others={"succeeded": 1, "failed": 9, "unknown": 0},
    live={"succeeded": 0, "failed": 0, "unknown": 0},
    seen=9,
    suspects=0,
)
@given(mine=FATES, others=FATES, live=FATES, seen=st.integers(0, 20), suspects=st.integers(0, 5))
def test_no_more_is_known_of_any_batch_than_what_is_true(
    mine: Fates, others: Fates, live: Fates, seen: int, suspects: int
) -> None:
    size, others_size = sum(mine.values()), sum(others.values())
    total = {fate: mine[fate] + others[fate] + live[fate] for fate in mine}
    keeper = MinuteKeeper(BEGIN).minute(sent=sum(total.values()))
    keeper.minute(deleted=total["succeeded"], moved=total["failed"]).quiet(2)
    batch = a_batch(size=max(1, size), suspects=min(suspects, size))
    beside = a_judged(others_size, returned=min(seen, others["failed"]), minutes=10)

    evidence = known(keeper, beside, batch=batch)

    assert evidence.succeeded <= mine["succeeded"]
    assert evidence.failed <= mine["failed"]
    assert evidence.live.succeeded <= live["succeeded"]
    assert evidence.live.finished <= live["succeeded"] + live["failed"]
    assert evidence.is_still_there is (total["unknown"] > 0)


@given(FATES)
def test_on_a_quiet_queue_all_that_is_true_is_known(mine: Fates) -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=sum(mine.values()))
    keeper.minute(deleted=mine["succeeded"], moved=mine["failed"]).quiet(2)

    evidence = known(keeper, batch=a_batch(size=max(1, sum(mine.values()))))

    assert (evidence.succeeded, evidence.failed) == (mine["succeeded"], mine["failed"])


@given(FATES, FATES, st.integers(0, 20))
def test_a_return_that_is_seen_makes_no_letter_of_its_batch_more_successful(
    mine: Fates, live: Fates, seen: int
) -> None:
    size = max(1, sum(mine.values()))
    keeper = MinuteKeeper(BEGIN).minute(sent=size + sum(live.values()))
    keeper.minute(deleted=mine["succeeded"] + live["succeeded"], moved=mine["failed"]).quiet(2)

    unseen = known(keeper, batch=a_batch(size=size))
    after = known(keeper, batch=a_batch(size=size, returned=min(seen, size)))

    assert after.succeeded <= unseen.succeeded
    assert after.failed >= unseen.failed


def test_metrics_of_no_minute_are_as_good_as_none_and_may_still_come() -> None:
    evidence = gather_evidence(a_batch(returned=1), [], QueueMetrics(), max_receives=MAX_RECEIVES)

    assert evidence == Evidence(failed=1, are_metrics_late=True)


@pytest.mark.parametrize("minutes", range(4))
def test_metrics_are_late_until_they_tell_of_the_first_tries(minutes: int) -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=2).quiet(minutes)

    evidence = known(keeper, batch=a_batch(size=2))

    assert evidence.are_metrics_late != evidence.has_metrics
    assert (evidence.has_metrics, minutes >= 1) in {(True, True), (False, False)}
