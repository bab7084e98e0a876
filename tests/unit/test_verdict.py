"""What one batch shows about the consumer: evidence in, verdict out."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.circuit import Batch, Verdict
from redrive.core.verdict import MAX_VERDICT_WAIT, METRICS_LAG, Evidence, Judgement, Traffic, weigh
from redrive.settings import Settings
from tests.unit.examples import NOW, a_batch, ago, ahead

SETTINGS = Settings()
SEEN = Evidence(saw_every_letter=True)
UNSEEN = Evidence()
WAITS = None

#: What the batch's ten minutes, less the metrics' lag, leave of a message's possible age.
OLDER_THAN_BATCH = timedelta(minutes=10)
YOUNGER_THAN_BATCH = timedelta(minutes=10) - METRICS_LAG - timedelta(seconds=1)


def backed_up(messages: int = 10, oldest: timedelta | None = None, asked: bool = False) -> Evidence:
    age = oldest.total_seconds() if oldest is not None else None
    traffic = Traffic(received=0, deleted=0, oldest_age_seconds=age)
    return Evidence(
        saw_every_letter=True, source_backlog=messages, traffic=traffic if asked else None
    )


def live(*, received: int, deleted: int, saw_every_letter: bool = True) -> Evidence:
    traffic = Traffic(received=received, deleted=deleted)
    return Evidence(saw_every_letter=saw_every_letter, traffic=traffic)


def judgement_on(
    batch: Batch,
    evidence: Evidence,
    settings: Settings = SETTINGS,
    now: datetime = NOW,
    *,
    is_canary: bool = False,
) -> Judgement:
    return weigh(batch, evidence, settings, now, is_canary=is_canary)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A batch and the evidence on it; what is not said is ordinary: four letters, due now."""

    batch: Batch = field(default_factory=a_batch)
    evidence: Evidence = SEEN
    now: datetime = NOW


def dying(**changes: int) -> Batch:
    """A batch whose pass died while it sent."""
    return a_batch(is_complete=False, **changes)


NOT_DUE = ahead(seconds=1)
#: Due so long ago that every figure about it is in.
LONG_DUE = a_batch(due_at=NOW - METRICS_LAG)

CASES: dict[str, tuple[Case, Verdict | None]] = {
    # The returns themselves.
    "none returned, all had time to": (Case(), Verdict.SUCCESS),
    "none returned, but one still may": (Case(batch=a_batch(due_at=NOT_DUE)), WAITS),
    "fewer returned than the failure rate": (Case(batch=a_batch(returned=1)), Verdict.SUCCESS),
    "as many returned as the failure rate": (Case(batch=a_batch(returned=2)), Verdict.FAILURE),
    "enough returned to fail before the time is up": (
        Case(batch=a_batch(returned=2, due_at=NOT_DUE)),
        Verdict.FAILURE,
    ),
    "too few returned to fail before the time is up": (
        Case(batch=a_batch(returned=1, due_at=NOT_DUE)),
        WAITS,
    ),
    "a canary that returned": (Case(batch=a_batch(size=1, returned=1)), Verdict.FAILURE),
    # suspects
    "suspects returned and all others did not": (
        Case(batch=a_batch(suspects=2, suspects_returned=2)),
        Verdict.SUCCESS,
    ),
    "suspects returned and half of the others did": (
        Case(batch=a_batch(suspects=2, suspects_returned=2, returned=1)),
        Verdict.FAILURE,
    ),
    "suspects that succeeded speak for the consumer": (
        Case(batch=a_batch(suspects=2, returned=1)),
        Verdict.SUCCESS,
    ),
    "nothing but suspects, and all returned": (
        Case(batch=a_batch(suspects=4, suspects_returned=4)),
        Verdict.NO_EVIDENCE,
    ),
    "nothing but suspects, and one succeeded": (
        Case(batch=a_batch(suspects=4, suspects_returned=3)),
        Verdict.SUCCESS,
    ),
    # growth
    "the DLQ grew by half of the batch behind a backlog": (
        Case(evidence=Evidence(unexplained=2)),
        Verdict.FAILURE,
    ),
    "the DLQ grew by less": (Case(evidence=Evidence(unexplained=1.9)), Verdict.SUCCESS),
    "growth and returns add up": (
        Case(batch=a_batch(returned=1), evidence=Evidence(unexplained=1)),
        Verdict.FAILURE,
    ),
    "the DLQ grew before the letters had time to fail": (
        Case(batch=a_batch(due_at=NOT_DUE), evidence=Evidence(unexplained=9)),
        WAITS,
    ),
    "the DLQ grew, but every letter in it was seen": (
        Case(evidence=Evidence(unexplained=9, saw_every_letter=True)),
        Verdict.SUCCESS,
    ),
    "growth is put down to suspects first": (
        Case(batch=a_batch(suspects=2), evidence=Evidence(unexplained=2)),
        Verdict.SUCCESS,
    ),
    "growth beyond the suspects is put down to the others": (
        Case(batch=a_batch(suspects=2), evidence=Evidence(unexplained=3)),
        Verdict.FAILURE,
    ),
    # live traffic
    "all returned while many others succeeded": (
        Case(batch=a_batch(returned=4), evidence=live(received=112, deleted=100)),
        Verdict.SUCCESS,
    ),
    "all returned and all others failed": (
        Case(batch=a_batch(returned=4), evidence=live(received=312, deleted=0)),
        Verdict.FAILURE,
    ),
    "all returned and no others came": (
        Case(batch=a_batch(returned=4), evidence=live(received=12, deleted=0)),
        Verdict.FAILURE,
    ),
    "a handful of others that succeeded can't outvote a large batch": (
        Case(batch=a_batch(size=100, returned=100), evidence=live(received=305, deleted=5)),
        Verdict.FAILURE,
    ),
    "the batch's own successes are no others": (
        Case(batch=a_batch(size=10, returned=5), evidence=live(received=20, deleted=5)),
        Verdict.FAILURE,
    ),
    "none returned, but the consumer receives and deletes nothing": (
        Case(batch=LONG_DUE, evidence=live(received=3, deleted=0, saw_every_letter=False)),
        Verdict.FAILURE,
    ),
    "none returned, and the consumer deletes": (
        Case(batch=LONG_DUE, evidence=live(received=3, deleted=1, saw_every_letter=False)),
        Verdict.SUCCESS,
    ),
    "none returned, and the figures may lag behind": (
        Case(evidence=live(received=3, deleted=0, saw_every_letter=False)),
        WAITS,
    ),
    "none returned, and there are no figures at all": (
        Case(batch=LONG_DUE, evidence=live(received=0, deleted=0, saw_every_letter=False)),
        Verdict.SUCCESS,
    ),
    "none returned, and all of the DLQ was seen, whatever the figures": (
        Case(evidence=live(received=3, deleted=0)),
        Verdict.SUCCESS,
    ),
    # a source queue that is backed up
    "letters may still wait in the source queue": (Case(evidence=backed_up()), WAITS),
    "they may, by what little live figures say": (Case(evidence=backed_up(asked=True)), WAITS),
    "they may: something there is as old as the batch": (
        Case(evidence=backed_up(oldest=OLDER_THAN_BATCH, asked=True)),
        WAITS,
    ),
    "they can't: all that waits there came after them": (
        Case(evidence=backed_up(oldest=YOUNGER_THAN_BATCH, asked=True)),
        Verdict.SUCCESS,
    ),
    "too few wait there to matter": (Case(evidence=backed_up(1)), Verdict.SUCCESS),
    "enough returned already, whatever waits there": (
        Case(batch=a_batch(returned=2), evidence=backed_up()),
        Verdict.FAILURE,
    ),
    "the wait is bounded": (
        Case(batch=a_batch(due_at=NOW - MAX_VERDICT_WAIT), evidence=backed_up()),
        Verdict.NO_EVIDENCE,
    ),
    "until just before that bound it lasts": (
        Case(
            batch=a_batch(due_at=NOW - MAX_VERDICT_WAIT + timedelta(seconds=1)),
            evidence=backed_up(),
        ),
        WAITS,
    ),
    # a pass that died
    "a pass died while it sent, and enough returned": (
        Case(batch=dying(returned=2)),
        Verdict.FAILURE,
    ),
    "a pass died while it sent, and nothing returned": (Case(batch=dying()), Verdict.NO_EVIDENCE),
    "a pass died while it sent, and letters may still return": (
        Case(batch=a_batch(is_complete=False, due_at=NOT_DUE)),
        WAITS,
    ),
    "a pass died while it sent, and the DLQ grew": (
        Case(batch=dying(), evidence=Evidence(unexplained=9)),
        Verdict.NO_EVIDENCE,
    ),
}


@pytest.mark.parametrize(("case", "verdict"), CASES.values(), ids=CASES.keys())
def test_the_evidence_decides_the_verdict(case: Case, verdict: Verdict | None) -> None:
    judgement = judgement_on(case.batch, case.evidence, SETTINGS, case.now)

    assert judgement.verdict is verdict
    assert judgement.reason


@pytest.mark.parametrize("case", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_the_same_evidence_gets_the_same_judgement(case: Case) -> None:
    first = judgement_on(case.batch, case.evidence, SETTINGS, case.now)

    assert judgement_on(case.batch, case.evidence, SETTINGS, case.now) == first


@pytest.mark.parametrize("case", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_live_figures_are_asked_for_only_once(case: Case) -> None:
    judgement = judgement_on(case.batch, case.evidence, SETTINGS, case.now)

    assert case.evidence.traffic is None or not judgement.wants_traffic


@pytest.mark.parametrize(
    ("case", "wants_traffic"),
    [
        (Case(batch=a_batch(returned=4)), True),
        (Case(evidence=backed_up()), True),
        (Case(evidence=UNSEEN), True),
        (Case(), False),
        (Case(batch=a_batch(due_at=NOT_DUE)), False),
    ],
    ids=[
        "for the defence",
        "on the age of what waits",
        "where returns may hide behind a backlog",
        "not where all was seen",
        "not while letters may still return",
    ],
)
def test_live_figures_are_asked_for_where_they_can_change_the_verdict(
    case: Case, wants_traffic: bool
) -> None:
    assert (
        judgement_on(case.batch, case.evidence, SETTINGS, case.now).wants_traffic is wants_traffic
    )


@pytest.mark.parametrize(
    ("case", "is_strike"),
    [
        (Case(batch=a_batch(returned=1)), True),
        (Case(batch=a_batch(returned=4), evidence=live(received=112, deleted=100)), True),
        (Case(batch=a_batch(suspects=4, suspects_returned=4)), True),
        (Case(batch=a_batch(returned=4)), False),
        (Case(batch=dying(returned=1)), False),
        (Case(evidence=backed_up()), False),
    ],
    ids=[
        "others of the batch succeeded",
        "live messages succeeded",
        "suspects alone, against themselves",
        "no strike for a failed batch",
        "no strike for an unfinished batch",
        "no strike while it waits",
    ],
)
def test_a_return_is_a_strike_only_where_others_succeeded(case: Case, is_strike: bool) -> None:
    assert judgement_on(case.batch, case.evidence, SETTINGS, case.now).is_strike is is_strike


def test_a_canary_of_suspects_alone_speaks_against_nobody() -> None:
    """While the consumer is in doubt, a suspect's return proves nothing against the letter either."""
    suspects = a_batch(suspects=4, suspects_returned=4)

    judgement = judgement_on(suspects, SEEN, is_canary=True)

    assert judgement.verdict is Verdict.NO_EVIDENCE
    assert not judgement.is_strike


def test_a_probe_of_suspects_alone_is_a_strike_where_live_messages_show_the_consumer_well() -> None:
    probe = a_batch(size=1, suspects=1, suspects_returned=1, is_probe=True)

    unasked = judgement_on(probe, Evidence(saw_every_letter=True))
    well = judgement_on(probe, live(received=8, deleted=5))
    unwell = judgement_on(probe, live(received=33, deleted=0))

    assert (unasked.verdict, unasked.wants_traffic) == (Verdict.NO_EVIDENCE, True)
    assert (well.verdict, well.is_strike) == (Verdict.SUCCESS, True)
    assert (unwell.verdict, unwell.is_strike) == (Verdict.NO_EVIDENCE, False)


def test_a_success_of_its_own_can_be_overturned_and_a_defended_one_cannot() -> None:
    own = judgement_on(a_batch(size=5), SEEN, SETTINGS, NOW)
    defended = judgement_on(a_batch(returned=4), live(received=112, deleted=100), SETTINGS, NOW)

    assert own.overturned_at == 3
    assert defended.overturned_at == 0


@pytest.mark.parametrize(("unexplained", "charged"), [(0, 0), (1.9, 1), (4, 4), (100, 4)], ids=str)
def test_a_batch_is_charged_with_whole_letters_and_no_more_than_it_has_out(
    unexplained: float, charged: int
) -> None:
    judgement = judgement_on(a_batch(), Evidence(unexplained=unexplained), SETTINGS, NOW)

    assert judgement.charged == charged


@given(
    size=st.integers(1, 50),
    returned=st.integers(0, 49),
    failure_rate=st.floats(0.01, 1),
    is_due=st.booleans(),
)
def test_one_more_return_never_makes_a_verdict_milder(
    size: int, returned: int, failure_rate: float, is_due: bool
) -> None:
    settings = Settings(failure_rate=failure_rate)
    due_at = ago(seconds=1) if is_due else ahead(seconds=1)
    fewer, more = (
        judgement_on(a_batch(size=size, due_at=due_at, returned=count), SEEN, settings, NOW).verdict
        for count in (min(returned, size - 1), min(returned, size - 1) + 1)
    )

    assert not (fewer is Verdict.FAILURE and more is not Verdict.FAILURE)


@given(size=st.integers(1, 50), failure_rate=st.floats(0.01, 1), saw=st.booleans())
def test_a_batch_that_returned_as_a_whole_is_a_failure_whatever_the_rate(
    size: int, failure_rate: float, saw: bool
) -> None:
    batch = a_batch(size=size, returned=size)

    judgement = judgement_on(
        batch, Evidence(saw_every_letter=saw), Settings(failure_rate=failure_rate), NOW
    )

    assert judgement.verdict is Verdict.FAILURE
