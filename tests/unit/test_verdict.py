"""What one batch shows about the consumer: evidence in, verdict out."""

from dataclasses import replace

import pytest

from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.verdict import (
    LONGEST_WAIT,
    LONGEST_WAIT_FOR_LATE_METRICS,
    LONGEST_WAIT_WITHOUT_METRICS,
)
from tests.unit.examples import NOW, a_batch, ahead
from tests.unit.judging import (
    FAILURE,
    LONG_TRIED,
    NO_EVIDENCE,
    NOT_DUE,
    SECOND,
    SILENT,
    SUCCESS,
    UNWELL,
    WAITS,
    WELL,
    Case,
    beside,
    dying,
    of_suspects,
    shown,
)


def mixed(*, deleted: int, live_successes: int) -> Evidence:
    """Four letters and four live messages, of which nobody knows whose were deleted."""
    live = Live(met=4, succeeded=live_successes, finished=live_successes)
    return Evidence(live=live, met=8, deleted=deleted, were_tried=True, has_metrics=True)


LATE = Evidence(are_metrics_late=True)


def others_fail(tries: int, *, deleted: int = 3) -> Evidence:
    """One of four letters came back. Three messages were deleted, and so many tries that are not ours failed."""
    return Evidence(
        failed=1,
        met=10,
        deleted=deleted,
        others_failed_tries=tries,
        were_tried=True,
        has_metrics=True,
    )


def hardly_any_but_suspects(failed: int, *, size: int, suspects: int) -> Case:
    """Before the batch is due, so many came back beside suspects that all did."""
    return Case(
        evidence=shown(failed=failed, suspects_failed=suspects),
        batch=replace(NOT_DUE, size=size, suspects=suspects),
    )


CASES: dict[str, tuple[Case, Verdict | None]] = {
    # Success is shown, never presumed.
    "all succeeded": (Case(evidence=shown(4)), SUCCESS),
    "all succeeded, long before the batch is due": (
        Case(evidence=shown(4), batch=NOT_DUE),
        SUCCESS,
    ),
    "so many succeeded that the failure of the rest would not turn it": (
        Case(evidence=shown(3), batch=NOT_DUE),
        SUCCESS,
    ),
    "half succeeded, and of the rest nothing is known yet": (
        Case(evidence=shown(2), batch=NOT_DUE),
        WAITS,
    ),
    "one succeeded, and of the rest nothing will be known": (
        Case(evidence=shown(1)),
        NO_EVIDENCE,
    ),
    "nothing came back, and nothing is known": (Case(), NO_EVIDENCE),
    "nothing came back yet": (Case(batch=NOT_DUE), WAITS),
    "nothing came back, and nobody could be asked": (Case(evidence=Evidence()), WAITS),
    # Failure is shown, too.
    "half failed, and nothing is known of the rest": (Case(evidence=shown(failed=2)), FAILURE),
    "one in twenty succeeded": (
        Case(evidence=shown(1, failed=19), batch=a_batch(size=20)),
        FAILURE,
    ),
    # A mixture of both is no outage.
    "half failed": (Case(evidence=shown(2, failed=2)), SUCCESS),
    "one in ten succeeded": (
        Case(evidence=shown(1, failed=9), batch=a_batch(size=10)),
        SUCCESS,
    ),
    "half failed, long before the batch is due": (
        Case(evidence=shown(failed=2), batch=NOT_DUE),
        FAILURE,
    ),
    "fewer than half failed, and the rest succeeded": (
        Case(evidence=shown(3, failed=1)),
        SUCCESS,
    ),
    "fewer than half failed, and of the rest nothing is known yet": (
        Case(evidence=shown(failed=1), batch=NOT_DUE),
        WAITS,
    ),
    "a canary failed": (
        Case(evidence=shown(failed=1), batch=a_batch(size=1), is_canary=True),
        FAILURE,
    ),
    "returns were seen, and the metrics could not be asked": (
        Case(evidence=Evidence(failed=4)),
        FAILURE,
    ),
    # Suspects are expected to fail.
    "suspects failed and all others succeeded": (
        Case(evidence=shown(2, suspects_failed=2), batch=of_suspects(2)),
        SUCCESS,
    ),
    "suspects failed and half of the others did": (
        Case(evidence=shown(1, failed=1, suspects_failed=2), batch=of_suspects(2)),
        SUCCESS,
    ),
    "suspects that succeeded speak for the consumer": (
        Case(evidence=shown(3, failed=1), batch=of_suspects(2)),
        SUCCESS,
    ),
    "all others succeeded, and of the suspects nothing is known yet": (
        Case(evidence=shown(2), batch=replace(of_suspects(2), due_at=ahead(seconds=1))),
        SUCCESS,
    ),
    "of the others, too, something is not known yet": (
        Case(evidence=shown(1), batch=replace(of_suspects(2), due_at=ahead(seconds=1))),
        WAITS,
    ),
    "only suspects, and all failed": (
        Case(evidence=shown(suspects_failed=4), batch=of_suspects(4)),
        NO_EVIDENCE,
    ),
    "one letter without strikes failed beside its equal that succeeded, and many suspects": (
        Case(evidence=shown(1, failed=1, suspects_failed=3), batch=of_suspects(3, size=5)),
        SUCCESS,
    ),
    "two of them failed beside one": (
        Case(evidence=shown(1, failed=2, suspects_failed=5), batch=of_suspects(5, size=8)),
        SUCCESS,
    ),
    "hardly any but suspects, and all failed": (
        Case(evidence=shown(failed=1, suspects_failed=3), batch=of_suspects(3)),
        NO_EVIDENCE,
    ),
    "hardly any but suspects, and all failed but one of which nothing is known yet": (
        Case(
            evidence=shown(failed=1, suspects_failed=6),
            batch=replace(of_suspects(6, size=8), due_at=ahead(seconds=1)),
        ),
        WAITS,
    ),
    "likewise, and it was to show that the consumer is well again": (
        Case(
            evidence=shown(failed=1, suspects_failed=6),
            batch=of_suspects(6, size=8),
            is_canary=True,
        ),
        FAILURE,
    ),
    "more than hardly any, and all failed": (
        Case(evidence=shown(failed=2, suspects_failed=5), batch=of_suspects(5, size=7)),
        FAILURE,
    ),
    "hardly any but suspects, and all failed: that the consumer is well again it did not show": (
        Case(evidence=shown(failed=1, suspects_failed=3), batch=of_suspects(3), is_canary=True),
        FAILURE,
    ),
    "most are suspects, and tries failed": (
        Case(
            evidence=replace(shown(), failed_tries=9),
            batch=replace(of_suspects(3), due_at=ahead(seconds=1)),
        ),
        WAITS,
    ),
    "half are suspects, and tries failed": (
        Case(
            evidence=replace(shown(), failed_tries=9),
            batch=replace(of_suspects(2), due_at=ahead(seconds=1)),
        ),
        FAILURE,
    ),
    "only suspects, and one succeeded": (
        Case(evidence=shown(1, suspects_failed=3), batch=of_suspects(4)),
        SUCCESS,
    ),
    "a canary of a suspect failed: that the consumer is well again it did not show": (
        Case(evidence=shown(suspects_failed=1), batch=of_suspects(1, size=1), is_canary=True),
        FAILURE,
    ),
    # Live traffic.
    "all failed while live messages succeed": (Case(evidence=beside(WELL, failed=4)), SUCCESS),
    "all failed while live messages fail, too": (
        Case(evidence=beside(UNWELL, failed=4)),
        FAILURE,
    ),
    "only suspects, and all failed while live messages succeed": (
        Case(evidence=beside(WELL, suspects_failed=4), batch=of_suspects(4)),
        SUCCESS,
    ),
    "nothing is known of the letters while live messages succeed": (
        Case(evidence=beside(WELL)),
        SUCCESS,
    ),
    "live messages succeed, but letters may still wait to be tried": (
        Case(evidence=replace(beside(WELL), were_tried=False), batch=NOT_DUE),
        WAITS,
    ),
    "most of all messages succeeded, one of them surely a live one": (
        Case(evidence=mixed(deleted=5, live_successes=1)),
        SUCCESS,
    ),
    "only half of all messages did": (
        Case(evidence=mixed(deleted=4, live_successes=1)),
        NO_EVIDENCE,
    ),
    "most did, and none of them is surely a live one": (
        Case(evidence=mixed(deleted=5, live_successes=0)),
        NO_EVIDENCE,
    ),
    "a canary, and one succeeded on a queue without producers": (
        Case(
            evidence=Evidence(met=3, deleted=1, were_tried=True, has_metrics=True),
            batch=replace(a_batch(size=1), due_at=ahead(hours=1)),
            is_canary=True,
        ),
        SUCCESS,
    ),
    "a batch, and as many succeeded of those before": (
        Case(
            evidence=Evidence(met=8, deleted=4, were_tried=True, has_metrics=True),
            batch=NOT_DUE,
        ),
        WAITS,
    ),
    "as many succeeded as ours are, and others fail": (
        Case(evidence=replace(mixed(deleted=4, live_successes=0), others_failed_tries=5)),
        SUCCESS,
    ),
    "fewer succeeded than ours are, and others fail": (
        Case(evidence=replace(mixed(deleted=3, live_successes=0), others_failed_tries=5)),
        NO_EVIDENCE,
    ),
    "all failed, and live messages that are expected have not been heard": (
        Case(evidence=replace(beside(SILENT, failed=4), deleted=1)),
        WAITS,
    ),
    "all failed, and live messages are expected, but others fail, too": (
        Case(evidence=replace(beside(SILENT, failed=4), failed_tries=14, others_failed_tries=2)),
        FAILURE,
    ),
    "all failed, and one try of others that came to nothing is no sign of what they meet": (
        Case(evidence=replace(beside(SILENT, failed=4), failed_tries=13, others_failed_tries=1)),
        WAITS,
    ),
    "all failed, and every try that came to nothing may have been our own letters'": (
        Case(evidence=replace(beside(SILENT, failed=4), failed_tries=12)),
        WAITS,
    ),
    "all failed, and others, too, but one of them succeeded": (
        Case(evidence=replace(beside(SILENT, failed=4), deleted=1, others_failed_tries=2)),
        WAITS,
    ),
    "all failed, and live messages have let themselves be waited for": (
        Case(evidence=beside(SILENT, failed=4), batch=LONG_TRIED),
        FAILURE,
    ),
    "all failed, and none are expected": (Case(evidence=beside(Live(), failed=4)), FAILURE),
    # Nothing but failed tries.
    "the consumer receives and is done with nothing": (
        Case(evidence=replace(shown(), failed_tries=4), batch=NOT_DUE),
        FAILURE,
    ),
    "the consumer receives, and is done with something": (
        Case(evidence=replace(shown(), failed_tries=4, met=9, deleted=1), batch=NOT_DUE),
        WAITS,
    ),
    "the consumer is done with nothing, but live messages are expected and may fare better": (
        Case(evidence=replace(beside(SILENT), failed_tries=12), batch=NOT_DUE),
        WAITS,
    ),
    "one try of others that came to nothing is no sign of how they fare": (
        Case(
            evidence=replace(beside(SILENT), failed_tries=13, others_failed_tries=1),
            batch=NOT_DUE,
        ),
        WAITS,
    ),
    "they fare no better": (
        Case(
            evidence=replace(beside(SILENT), failed_tries=14, others_failed_tries=2),
            batch=NOT_DUE,
        ),
        FAILURE,
    ),
    "they have let themselves be waited for": (
        Case(evidence=replace(beside(SILENT), failed_tries=12), batch=LONG_TRIED),
        FAILURE,
    ),
    "one failed try may be bad luck where another follows": (
        Case(
            evidence=replace(shown(), failed_tries=1), batch=a_batch(size=1, due_at=ahead(hours=1))
        ),
        WAITS,
    ),
    "few tries failed of a large batch": (
        Case(
            evidence=replace(shown(), failed_tries=4), batch=a_batch(size=9, due_at=ahead(hours=1))
        ),
        WAITS,
    ),
    "failed tries are not known without whole metrics": (
        Case(evidence=replace(shown(), failed_tries=9, has_metrics=False), batch=NOT_DUE),
        WAITS,
    ),
    # What stays unknown.
    "letters are still in the source queue": (
        Case(evidence=replace(shown(), is_still_there=True)),
        WAITS,
    ),
    "letters were in the source queue to the end of all patience": (
        Case(
            evidence=replace(shown(), is_still_there=True),
            batch=a_batch(due_at=NOW - LONGEST_WAIT),
        ),
        NO_EVIDENCE,
    ),
    "until just before that end they are waited for": (
        Case(
            evidence=replace(shown(), is_still_there=True),
            batch=a_batch(due_at=NOW - LONGEST_WAIT + SECOND),
        ),
        WAITS,
    ),
    "metrics that can't be read are waited for": (
        Case(
            evidence=Evidence(), batch=a_batch(due_at=NOW - LONGEST_WAIT_WITHOUT_METRICS + SECOND)
        ),
        WAITS,
    ),
    "and no longer than some minutes": (
        Case(evidence=Evidence(), batch=a_batch(due_at=NOW - LONGEST_WAIT_WITHOUT_METRICS)),
        NO_EVIDENCE,
    ),
    "metrics that are late are waited for longer": (
        Case(evidence=LATE, batch=a_batch(due_at=NOW - LONGEST_WAIT_FOR_LATE_METRICS + SECOND)),
        WAITS,
    ),
    "and not for ever": (
        Case(evidence=LATE, batch=a_batch(due_at=NOW - LONGEST_WAIT_FOR_LATE_METRICS)),
        NO_EVIDENCE,
    ),
    # Whose the successes are.
    "most tries of others fail, so that the successes are ours": (
        Case(evidence=others_fail(4)),
        SUCCESS,
    ),
    "as many of theirs fail as messages succeed": (Case(evidence=others_fail(3)), NO_EVIDENCE),
    "fewer succeeded than did not come back": (
        Case(evidence=others_fail(9, deleted=2)),
        NO_EVIDENCE,
    ),
    # Live messages vouch when all came to an end.
    "not all were received, but all came back, suspects and others": (
        Case(
            evidence=replace(beside(WELL, failed=2, suspects_failed=2), were_tried=False),
            batch=NOT_DUE,
        ),
        SUCCESS,
    ),
    "not all were received, and one is still out": (
        Case(
            evidence=replace(beside(WELL, suspects_failed=3), were_tried=False),
            batch=NOT_DUE,
        ),
        WAITS,
    ),
    # Few beside suspects.
    "all are back before the batch is due, hardly any but suspects among them": (
        hardly_any_but_suspects(1, size=4, suspects=3),
        NO_EVIDENCE,
    ),
    "one that is still out may make strikes of the others": (
        hardly_any_but_suspects(1, size=8, suspects=6),
        WAITS,
    ),
    # A pass that died.
    "a pass died while it sent, and enough returned": (Case(batch=dying(returned=2)), FAILURE),
    "a pass died while it sent, and too little returned": (
        Case(batch=dying(returned=1)),
        NO_EVIDENCE,
    ),
    "a pass died while it sent, and letters may still return": (
        Case(batch=replace(NOT_DUE, is_complete=False)),
        WAITS,
    ),
    "a pass died while it sent: nobody knows of how many letters these are the successes": (
        Case(evidence=shown(4), batch=dying()),
        NO_EVIDENCE,
    ),
}
JUST_CASES = [case for case, _ in CASES.values()]


@pytest.mark.parametrize(("case", "verdict"), CASES.values(), ids=CASES.keys())
def test_the_evidence_decides_the_verdict(case: Case, verdict: Verdict | None) -> None:
    judgement = case.judge()

    assert judgement.verdict is verdict
    assert judgement.reason


@pytest.mark.parametrize("case", JUST_CASES, ids=CASES.keys())
def test_the_same_evidence_gets_the_same_judgement(case: Case) -> None:
    assert case.judge() == case.judge()


@pytest.mark.parametrize("others_are_expected", [True, False])
def test_returns_from_a_mixture_are_strikes_where_no_producer_sends(
    others_are_expected: bool,
) -> None:
    """Beside letters of earlier batches, which are all that the consumer met there, they can't be compared again."""
    live = Live(met=4, is_expected=others_are_expected)
    mixture = Case(evidence=replace(shown(1, failed=3), live=live))

    assert mixture.judge().is_strike is not others_are_expected
