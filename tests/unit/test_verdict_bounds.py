"""What holds of every verdict, whatever is known: success is shown, certainty stays, and no batch waits for ever."""

from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.verdict import LIVE_PATIENCE, LONGEST_WAIT
from tests.unit.examples import NOW, a_batch
from tests.unit.judging import FAILURE, SUCCESS, Case

#: From the worst to the best. What is not known is neither, and neither is a mixture.
RANK = {FAILURE: -1, None: 0, Verdict.NO_EVIDENCE: 0, SUCCESS: 1}


def live_messages(draw: st.DrawFn) -> Live:
    succeeded, failed, unknown = (draw(st.integers(0, 60)) for _ in range(3))
    return Live(
        met=succeeded + failed + unknown,
        succeeded=succeeded,
        finished=succeeded + failed,
        is_expected=draw(st.booleans()),
    )


@st.composite
def cases(draw: st.DrawFn, *, is_quiet: bool = False, most_suspects: int = 20) -> Case:
    """A batch, and what may be known of it: never more letters than it has."""
    size = draw(st.integers(1, 40))
    suspects = draw(st.integers(0, min(size, most_suspects)))
    failed = draw(st.integers(0, size - suspects))
    suspects_failed = draw(st.integers(0, suspects))
    succeeded = draw(st.integers(0, size - failed - suspects_failed))
    live = Live() if is_quiet else live_messages(draw)
    failed_tries = draw(st.integers(0, 50))
    evidence = Evidence(
        succeeded=succeeded,
        failed=failed,
        suspects_failed=suspects_failed,
        live=live,
        met=size + live.met,
        deleted=succeeded + live.succeeded,
        failed_tries=failed_tries,
        others_failed_tries=draw(st.integers(0, failed_tries)),
        were_tried=draw(st.booleans()),
        is_still_there=draw(st.booleans()),
        has_metrics=draw(st.booleans()),
    )
    return Case(
        batch=a_batch(size=size, suspects=suspects),
        evidence=evidence,
        settings=Settings(failure_rate=draw(st.floats(0.01, 1))),
        now=NOW + draw(st.sampled_from((-1, 0, 1))) * LONGEST_WAIT,
        is_canary=draw(st.booleans()),
    )


def known(case: Case, **changes: Any) -> Case:
    return replace(case, evidence=replace(case.evidence, **changes))


def unknown_letters(case: Case) -> int:
    known_of = case.evidence
    return case.batch.size - known_of.succeeded - known_of.failed - known_of.suspects_failed


def rank(case: Case) -> int:
    judgement = case.judge()
    return 0 if judgement.is_mixture else RANK[judgement.verdict]


@given(cases())
def test_success_is_shown_and_never_presumed(case: Case) -> None:
    shown = case.evidence.succeeded + case.evidence.live.succeeded

    assert shown or case.judge().verdict is not SUCCESS


@given(cases())
def test_failure_is_shown_and_never_presumed(case: Case) -> None:
    nothing_failed = known(case, failed=0, suspects_failed=0, failed_tries=0, others_failed_tries=0)

    assert nothing_failed.judge().verdict is not FAILURE


@given(cases())
def test_one_more_known_success_never_makes_a_verdict_worse(case: Case) -> None:
    assume(unknown_letters(case) > 0)
    evidence = case.evidence

    more = known(case, succeeded=evidence.succeeded + 1, deleted=evidence.deleted + 1)

    assert rank(more) >= rank(case)


@given(cases(is_quiet=True))
def test_on_a_quiet_queue_one_more_return_never_makes_a_verdict_milder(case: Case) -> None:
    assume(unknown_letters(case) > 0)
    assume(case.evidence.failed < case.batch.size - case.batch.suspects)

    more = known(case, failed=case.evidence.failed + 1)

    assert rank(more) <= rank(case)


@given(cases(), st.integers(1, 50))
def test_beside_live_messages_one_more_return_never_makes_a_failure_a_success(
    case: Case, more: int
) -> None:
    more_failed = known(case, failed=min(case.evidence.failed + more, case.batch.size))

    if case.judge().verdict is FAILURE and case.evidence.were_tried:
        assert more_failed.judge().verdict is not SUCCESS


@given(cases(is_quiet=True, most_suspects=0), st.integers(0, 40), st.integers(0, 40))
def test_what_is_certain_stays_so_whatever_becomes_of_the_rest(
    case: Case, succeeding: int, failing: int
) -> None:
    case = known(case, failed_tries=0, others_failed_tries=0)
    succeeding = min(succeeding, unknown_letters(case))
    failing = min(failing, unknown_letters(case) - succeeding)
    evidence = case.evidence

    later = known(
        case,
        succeeded=evidence.succeeded + succeeding,
        deleted=evidence.deleted + succeeding,
        failed=evidence.failed + failing,
    )

    if rank(case) and not (rank(case) < 0 and succeeding and later.judge().is_mixture):
        assert rank(later) == rank(case)


@given(cases(is_quiet=True, most_suspects=0))
def test_on_a_quiet_queue_a_batch_that_failed_as_a_whole_is_a_failure_whatever_the_rate(
    case: Case,
) -> None:
    whole = known(case, failed=case.batch.size, succeeded=0, deleted=0)

    assert whole.judge().verdict is FAILURE


@given(cases())
def test_no_batch_waits_for_ever(case: Case) -> None:
    late = replace(case, now=case.batch.due_at + LONGEST_WAIT + LIVE_PATIENCE)

    assert late.judge().verdict is not None


@given(cases(), st.booleans())
def test_a_batch_of_an_unknown_size_is_never_acquitted(case: Case, has_returns: bool) -> None:
    returned = case.batch.size if has_returns else 0
    dead = replace(case, batch=replace(case.batch, is_complete=False, returned=returned))

    assert dead.judge().verdict is not SUCCESS
