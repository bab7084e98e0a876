"""What a judgement carries beside its verdict: strikes, growth, and what could still overturn it."""

from dataclasses import replace

import pytest

from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.verdict import (
    GROWTH_WHERE_SHOWN,
    GROWTH_WHERE_VOUCHED,
    MANY_LIVE_SUCCESSES,
)
from tests.unit.examples import a_batch, ago
from tests.unit.judging import FAILURE, NO_EVIDENCE, SUCCESS, WELL, Case, beside, of_suspects, shown
from tests.unit.test_verdict import CASES, JUST_CASES


@pytest.mark.parametrize("case", JUST_CASES, ids=CASES.keys())
def test_only_a_success_is_a_strike_and_lets_the_window_grow(case: Case) -> None:
    judgement = case.judge()

    if judgement.verdict is not SUCCESS:
        assert not judgement.is_strike
        assert (judgement.growth, judgement.overturned_at) == (1, 0)
        assert judgement.vouched_per_minute == 0


def beside_some(evidence: Evidence) -> Evidence:
    """The same where producers' messages were there, too, and nobody knows what became of them."""
    return replace(evidence, live=Live(met=3, is_expected=True))


@pytest.mark.parametrize(
    ("case", "is_strike"),
    [
        (Case(evidence=shown(4)), True),
        (Case(evidence=shown(9, failed=1), batch=a_batch(size=10)), True),
        (Case(evidence=shown(6, failed=4), batch=a_batch(size=10)), True),
        (Case(evidence=shown(1, failed=3)), True),
        (Case(evidence=beside_some(shown(6, failed=4)), batch=a_batch(size=10)), False),
        (Case(evidence=beside_some(shown(6)), batch=a_batch(size=10)), False),
        (Case(evidence=beside_some(shown(1, failed=3))), False),
        (Case(evidence=beside(WELL, failed=4)), True),
        (Case(evidence=beside(WELL, suspects_failed=4), batch=of_suspects(4)), True),
        (Case(evidence=shown(suspects_failed=4), batch=of_suspects(4)), False),
        (Case(evidence=shown(1, failed=1, suspects_failed=3), batch=of_suspects(3, size=5)), True),
        (Case(evidence=shown(failed=4)), False),
    ],
    ids=[
        "others of the batch succeeded",
        "one of ten failed",
        "nearly half failed, and nobody else will tell",
        "most failed, and nobody else will tell",
        "nearly half failed beside live messages: that is how the consumer is",
        "nearly half may have failed beside live messages",
        "most failed beside live messages",
        "live messages succeeded",
        "live messages succeeded beside suspects",
        "suspects alone, and nobody to compare them with",
        "one of two failed, and so did many suspects",
        "the batch failed",
    ],
)
def test_a_return_is_a_strike_only_where_enough_others_succeeded(
    case: Case, is_strike: bool
) -> None:
    assert case.judge().is_strike is is_strike


@pytest.mark.parametrize("case", JUST_CASES, ids=CASES.keys())
def test_suspects_that_were_alone_are_told_and_nobody_else(case: Case) -> None:
    judgement, evidence = case.judge(), case.evidence

    came_back = evidence.failed + evidence.suspects_failed
    is_alone = came_back == case.batch.size and evidence.suspects_failed > 0
    assert judgement.was_alone is (is_alone and judgement.verdict is NO_EVIDENCE)


def test_what_the_letters_show_lets_the_window_grow_more_than_what_others_vouch_for() -> None:
    own, vouched = Case(evidence=shown(4)).judge(), Case(evidence=beside(WELL, failed=4)).judge()

    assert (own.growth, vouched.growth) == (GROWTH_WHERE_SHOWN, GROWTH_WHERE_VOUCHED)
    assert own.growth > vouched.growth > 1


def test_what_succeeded_beside_others_that_fail_is_what_did_not_come_back() -> None:
    others_fail = Evidence(
        failed=1, met=10, deleted=3, others_failed_tries=4, were_tried=True, has_metrics=True
    )

    assert Case(evidence=others_fail).judge().shown_window == GROWTH_WHERE_SHOWN * 3


@pytest.mark.parametrize(
    ("succeeded", "is_beyond_doubt"),
    [
        (MANY_LIVE_SUCCESSES - 1, False),
        (MANY_LIVE_SUCCESSES, True),
        (MANY_LIVE_SUCCESSES + 1, True),
    ],
)
def test_many_live_successes_are_beyond_doubt(succeeded: int, is_beyond_doubt: bool) -> None:
    live = Live(met=succeeded, succeeded=succeeded, finished=succeeded)

    vouched = Case(evidence=beside(live, failed=1, ours=1), batch=a_batch(size=1)).judge()
    by_itself = Case(evidence=replace(shown(1), live=live), batch=a_batch(size=1)).judge()

    for judgement in (vouched, by_itself):
        assert (judgement.verdict, judgement.is_beyond_doubt) == (SUCCESS, is_beyond_doubt)


@pytest.mark.parametrize(
    ("succeeded", "told"), [(1, "1 live message succeeded"), (2, "2 live messages succeeded")]
)
def test_a_reason_that_people_read_counts_in_english(succeeded: int, told: str) -> None:
    live = Live(met=succeeded, succeeded=succeeded, finished=succeeded)

    judgement = Case(
        evidence=replace(beside(live, ours=1), deleted=succeeded + 1), batch=a_batch(size=1)
    ).judge()

    assert judgement.reason == f"0 of 1 returned, but {told}"


def test_a_success_tells_at_what_rate_live_messages_succeed() -> None:
    own = Case(evidence=replace(beside(WELL), succeeded=4)).judge()
    vouched = Case(evidence=beside(WELL, failed=4)).judge()

    assert own.vouched_per_minute == vouched.vouched_per_minute == WELL.per_minute


def test_a_success_of_its_own_can_be_overturned_and_a_vouched_one_cannot() -> None:
    own = Case(evidence=shown(5), batch=a_batch(size=5)).judge()
    vouched = Case(evidence=beside(WELL, failed=4)).judge()

    assert own.overturned_at == 3
    assert vouched.overturned_at == 0


def test_a_success_beside_suspects_is_not_overturned_by_the_return_it_was_judged_with() -> None:
    """One that succeeded, one that came back, and three suspects that did: half of what counts, and no outage."""
    batch = replace(of_suspects(3, size=5), returned=1, suspects_returned=3)
    success = Case(evidence=shown(1, failed=1, suspects_failed=3), batch=batch).judge()

    assert (success.verdict, success.is_strike) == (SUCCESS, True)
    assert success.overturned_at == batch.returned + 1


def test_a_handful_of_live_successes_cannot_outvote_a_large_batch() -> None:
    few = Live(met=5, succeeded=5, finished=5)
    returned = beside(few, failed=100, ours=100)

    judgement = Case(evidence=returned, batch=a_batch(size=100, due_at=ago(hours=1))).judge()

    assert judgement.verdict is FAILURE
