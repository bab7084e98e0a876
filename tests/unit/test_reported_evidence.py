"""What consumers' reports add to what is known of a batch, and the verdicts that fall by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.model.batch import Batch, CauseCount, Heard, Verdict
from smart_redriver.engine.model.evidence import Evidence, gather_evidence
from smart_redriver.engine.model.verdict import weigh
from tests.unit.examples import NOW, a_batch, ago, ahead
from tests.unit.judging import SETTINGS
from tests.unit.queue_minutes import BEGIN, MAX_RECEIVES, MinuteKeeper, known

COUNTS = st.integers(0, 12)
HEARD = st.builds(
    Heard,
    succeeded=COUNTS,
    failed=COUNTS,
    suspects_failed=COUNTS,
    parked=COUNTS,
    tries=st.integers(0, 36),
)


def told(batch: Batch | None = None, **heard: Any) -> Evidence:
    """What is known of a batch from its returns and reports, where CloudWatch could not be asked."""
    batch = replace(batch or just_sent(), heard=Heard(**heard))
    return gather_evidence(batch, [], None, max_receives=MAX_RECEIVES)


def just_sent(**changes: Any) -> Batch:
    """A batch of four whose letters were tried some seconds ago."""
    usual = {
        "sent_at": ago(seconds=10),
        "first_try_at": ago(seconds=10),
        "last_try_at": ago(seconds=5),
        "due_at": ahead(minutes=3),
    }
    return a_batch(**usual | changes)


def verdict(batch: Batch | None = None, **heard: Any) -> Verdict | None:
    batch = replace(batch or just_sent(), heard=Heard(**heard))
    evidence = gather_evidence(batch, [], None, max_receives=MAX_RECEIVES)
    judgement = weigh(batch, evidence, SETTINGS, NOW, is_canary=False, was_up=True)
    return judgement.verdict


def failing(letters: int) -> tuple[CauseCount, ...]:
    """So many letters have failed their first try."""
    return (CauseCount(cause="Declined", letters=letters),)


# What is known.


def test_without_reports_nothing_is_added() -> None:
    assert told() == Evidence()


def test_reports_are_evidence_before_there_are_metrics() -> None:
    evidence = told(succeeded=2, failed=1, suspects_failed=1, tries=6)

    assert (evidence.succeeded, evidence.failed, evidence.suspects_failed) == (2, 1, 1)
    assert evidence.deleted == 2
    assert evidence.is_heard
    assert not evidence.has_metrics


def test_tries_of_one_letter_say_nothing_of_the_others_while_no_metrics_tell_what_was_deleted() -> (
    None
):
    alone = just_sent(size=1)
    metrics = MinuteKeeper(BEGIN).minute(sent=4).quiet(3)

    assert told(tries=3, causes=failing(1)).failed_tries == 1
    assert told(tries=5, causes=failing(4)).failed_tries == 5
    assert told(alone, tries=2, causes=failing(1)).failed_tries == 2
    assert known(metrics, batch=a_batch(heard=Heard(tries=3, causes=failing(1)))).failed_tries == 3


def test_what_was_parked_has_failed() -> None:
    assert told(failed=1, parked=2).failed == 3


def test_a_letter_that_was_reported_and_came_back_has_failed_once() -> None:
    assert told(just_sent(returned=2), failed=2).failed == 2
    assert told(just_sent(returned=2), failed=1).failed == 2


def test_no_more_than_what_is_not_back_can_have_succeeded() -> None:
    assert told(just_sent(returned=3), succeeded=4).succeeded == 1


def test_what_its_consumer_parked_is_no_success_although_it_was_deleted() -> None:
    """The metrics know deletes, and not why."""
    metrics = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4).quiet(3)

    plain, parked = known(metrics), known(metrics, batch=a_batch(heard=Heard(parked=3)))

    assert (plain.succeeded, plain.failed) == (4, 0)
    assert (parked.succeeded, parked.failed) == (1, 3)


def test_metrics_and_reports_each_know_only_some() -> None:
    metrics = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=3, tries=1, in_flight=1)

    few = known(metrics, batch=a_batch(heard=Heard(succeeded=1)))
    more = known(metrics, batch=a_batch(heard=Heard(succeeded=4)))

    assert (few.succeeded, more.succeeded) == (3, 4)


def test_suspects_that_are_reported_as_failed_did_not_succeed_whatever_the_metrics_say() -> None:
    keeper = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4).quiet(2)
    batch = a_batch(size=4, suspects=2)

    evidence = gather_evidence(
        replace(batch, heard=Heard(failed=1, suspects_failed=2, tries=3)),
        [],
        keeper.metrics,
        max_receives=MAX_RECEIVES,
    )

    assert (evidence.succeeded, evidence.failed, evidence.suspects_failed) == (1, 1, 2)


@given(HEARD, COUNTS, st.integers(1, 12))
def test_no_claim_makes_more_of_a_batch_than_it_has(heard: Heard, returned: int, size: int) -> None:
    batch = a_batch(size=size, returned=min(returned, size), heard=heard)

    evidence = gather_evidence(batch, [], None, max_receives=MAX_RECEIVES)

    assert 0 <= evidence.succeeded <= size - batch.seen_again
    assert batch.returned <= evidence.failed <= size


# Verdicts within seconds.


@pytest.mark.parametrize(
    ("heard", "falls"),
    [
        ({"succeeded": 3}, Verdict.SUCCESS),
        ({"succeeded": 2}, None),
        ({"succeeded": 3, "parked": 1}, Verdict.SUCCESS),
        ({"succeeded": 2, "parked": 2}, Verdict.SUCCESS),
        ({"succeeded": 0, "parked": 3}, Verdict.FAILURE),
        ({"failed": 2, "tries": 6}, Verdict.FAILURE),
        ({"failed": 1, "succeeded": 1, "tries": 3}, None),
        ({"parked": 4}, Verdict.FAILURE),
        ({"tries": 2, "causes": failing(2)}, Verdict.FAILURE),
        ({"tries": 4}, Verdict.FAILURE),
        ({"tries": 3}, None),
        ({"tries": 3, "causes": failing(1)}, None),
        ({"tries": 2, "causes": failing(2), "succeeded": 1}, None),
    ],
)
def test_a_verdict_falls_as_soon_as_reports_make_it_certain(
    heard: dict[str, Any], falls: Verdict | None
) -> None:
    assert verdict(**heard) is falls


def test_a_consumer_that_takes_all_for_unhealable_is_given_no_more() -> None:
    metrics = MinuteKeeper(BEGIN).minute(sent=4).minute(deleted=4).quiet(3)
    batch = a_batch(heard=Heard(parked=4))

    judgement = weigh(
        batch,
        known(metrics, batch=batch),
        SETTINGS,
        NOW,
        is_canary=False,
        was_up=True,
    )

    assert judgement.verdict is Verdict.FAILURE


def test_suspects_that_fail_show_nothing_of_a_consumer_that_was_well() -> None:
    suspects = just_sent(suspects=4)

    assert verdict(suspects, suspects_failed=4) is Verdict.NO_EVIDENCE
    assert verdict(suspects, tries=9) is None


def test_reports_of_a_batch_whose_pass_died_acquit_nobody() -> None:
    assert verdict(just_sent(is_complete=False), succeeded=4) is None


@given(HEARD)
def test_reports_never_make_a_success_of_a_batch_that_is_back(heard: Heard) -> None:
    batch = replace(just_sent(returned=4), heard=heard)
    evidence = gather_evidence(batch, [], None, max_receives=MAX_RECEIVES)

    judgement = weigh(batch, evidence, SETTINGS, NOW, is_canary=False, was_up=True)

    assert judgement.verdict is Verdict.FAILURE


def test_every_letter_that_the_consumer_told_the_end_of_counts_as_ended() -> None:
    assert Heard(succeeded=8, failed=4, suspects_failed=2, parked=1, tries=99).ended == 15
