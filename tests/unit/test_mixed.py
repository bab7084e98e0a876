"""A mix is what verdicts show: many messages fail while others succeed, so that a kind of them may be broken."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import Circuit, Fared, State
from smart_redriver.engine.model.evidence import Evidence, Live
from smart_redriver.engine.model.judging import charge, judge
from smart_redriver.engine.model.permit import FLAPS_THAT_SHOW, MIX_LASTS, is_mixed
from smart_redriver.engine.model.verdict import LIVE_PATIENCE, Judgement
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ago
from tests.unit.judging import SETTINGS, SILENT, WELL, beside, shown

LASTS = MIX_LASTS * timedelta(seconds=SETTINGS.last_chance_seconds)
SENT = a_batch().sent_at
MIXED = shown(succeeded=2, failed=2)
SUSPECTS_ALONE = shown(suspects_failed=4)


def after(evidence: Evidence, mixed_at: datetime | None = None) -> Circuit:
    """The circuit after a verdict on four letters of which this is known."""
    batch = a_batch(suspects=evidence.suspects_failed, last_try_at=NOW - LIVE_PATIENCE)
    circuit = a_circuit(pending=(batch,), mixed_at=mixed_at)
    circuit, (ruling,) = judge(circuit, {7: evidence}, SETTINGS, NOW, roll=0.5)
    assert ruling.judgement.verdict is not None
    return circuit


def test_a_verdict_remembers_when_it_showed_a_mix() -> None:
    assert after(MIXED).mixed_at == NOW


def test_a_success_of_all_shows_none_and_leaves_the_one_before_to_run_out() -> None:
    assert after(shown(succeeded=4)).mixed_at is None
    assert after(shown(succeeded=4), ago(minutes=30)).mixed_at == ago(minutes=30)


@pytest.mark.parametrize(
    ("shown_at", "holds_on"),
    [(SENT - LASTS, True), (SENT - LASTS - timedelta(seconds=1), False), (None, False)],
)
def test_on_a_quiet_queue_it_holds_on_while_suspects_alone_are_tried(
    shown_at: datetime | None, holds_on: bool
) -> None:
    assert after(SUSPECTS_ALONE, shown_at).mixed_at == (NOW if holds_on else shown_at)


@pytest.mark.parametrize("live", [SILENT, WELL], ids=["silent", "well"])
def test_beside_live_messages_it_does_not(live: Live) -> None:
    shown_at = ago(minutes=30)

    assert after(beside(live, suspects_failed=4), shown_at).mixed_at == shown_at


def test_it_lasts_for_a_part_of_the_time_to_a_last_chance() -> None:
    circuit = a_circuit(mixed_at=NOW)

    assert is_mixed(circuit, NOW + LASTS, SETTINGS)
    assert not is_mixed(circuit, NOW + LASTS + timedelta(seconds=1), SETTINGS)
    assert not is_mixed(circuit, NOW + LASTS, Settings(last_chance_seconds=60))
    assert not is_mixed(a_circuit(), NOW, SETTINGS)


def in_a_mix(
    evidence: Evidence,
    *,
    fared: Fared,
    size: int = 4,
    state: State = State.CLOSED,
    success_count: int = 0,
    flaps: int = 0,
) -> Judgement:
    """The judgement of a batch of which this is known, on a queue of which many letters failed so lately."""
    batch = a_batch(size=size, last_try_at=NOW - LIVE_PATIENCE)
    circuit = a_circuit(
        pending=(batch,),
        state=state,
        success_count=success_count,
        mixed_at=batch.sent_at,
        fared=fared,
        flaps=flaps,
    )
    _, (ruling,) = judge(circuit, {7: evidence}, SETTINGS, NOW, roll=0.5)
    return ruling.judgement


MOSTLY_FAIL = Fared(failed=8, succeeded=2)
HARDLY_FAIL = Fared(failed=2, succeeded=18)


@pytest.mark.parametrize(
    ("fared", "verdict"), [(MOSTLY_FAIL, Verdict.NO_EVIDENCE), (HARDLY_FAIL, Verdict.FAILURE)]
)
def test_as_many_failures_in_a_row_as_chance_brings_are_no_outage(
    fared: Fared, verdict: Verdict
) -> None:
    judgement = in_a_mix(shown(failed=4), fared=fared)

    assert judgement.verdict is verdict
    assert judgement.was_alone is (verdict is Verdict.NO_EVIDENCE)


@pytest.mark.parametrize(
    ("flaps", "verdict"),
    [(FLAPS_THAT_SHOW - 1, Verdict.NO_EVIDENCE), (FLAPS_THAT_SHOW, Verdict.FAILURE)],
)
def test_where_the_consumer_flaps_no_failure_is_chance(flaps: int, verdict: Verdict) -> None:
    """The mixture is its phases: if failures were none, nobody would see for how long it is up."""
    assert in_a_mix(shown(failed=4), fared=MOSTLY_FAIL, flaps=flaps).verdict is verdict


def test_enough_failures_in_a_row_show_an_outage_although_most_letters_fail() -> None:
    assert in_a_mix(shown(failed=40), fared=MOSTLY_FAIL, size=40).verdict is Verdict.FAILURE


def test_letters_that_failed_in_the_batches_before_count() -> None:
    batch = a_batch(last_try_at=NOW - LIVE_PATIENCE)
    before = a_judged(id=6, verdict=Verdict.NO_EVIDENCE, is_strike=False, returned=36)
    circuit = a_circuit(pending=(batch,), judged=(before,), mixed_at=NOW, fared=MOSTLY_FAIL)

    _, (ruling,) = judge(
        circuit,
        {7: shown(failed=4)},
        SETTINGS,
        NOW,
        roll=0.5,
    )

    assert ruling.judgement.verdict is Verdict.FAILURE


@pytest.mark.parametrize(("successes", "verdict"), [(0, Verdict.FAILURE), (1, Verdict.NO_EVIDENCE)])
def test_a_canary_fails_however_many_do_unless_the_one_before_succeeded(
    successes: int, verdict: Verdict
) -> None:
    """With mostly poison in the DLQ, the second canary failed nearly each time, and the circuit stayed OPEN."""
    canary = in_a_mix(
        shown(failed=1),
        fared=MOSTLY_FAIL,
        size=1,
        state=State.HALF_OPEN,
        success_count=successes,
    )

    assert canary.verdict is verdict


def test_a_failure_waits_for_letters_that_may_have_succeeded_as_others_did() -> None:
    some_back = replace(shown(failed=3), has_metrics=False, are_metrics_late=True)

    assert in_a_mix(some_back, fared=MOSTLY_FAIL).verdict is None


def test_beside_live_messages_these_tell_whether_the_consumer_is_down() -> None:
    silent = beside(Live(met=4, is_expected=True), failed=4)

    assert in_a_mix(silent, fared=MOSTLY_FAIL).verdict is Verdict.FAILURE


def test_what_is_long_past_counts_for_half_at_each_verdict() -> None:
    assert Fared(failed=8, succeeded=4).and_then(1, 3) == Fared(failed=5, succeeded=5)


@pytest.mark.parametrize(
    ("fared", "letters", "chance"),
    [(Fared(), 1, 1 / 2), (Fared(failed=1, succeeded=2), 2, 2 / 5 * 3 / 6), (MOSTLY_FAIL, 0, 1)],
)
def test_the_chance_that_all_fail_is_laplaces(fared: Fared, letters: int, chance: float) -> None:
    assert fared.chance_that_all_fail(letters) == pytest.approx(chance)


def test_late_returns_of_a_success_count_as_failed() -> None:
    circuit = a_circuit(judged=(a_judged(id=7),), fared=Fared(succeeded=4))

    assert charge(circuit, {(7, False): 2, (7, True): 1}).fared == Fared(failed=2, succeeded=4)


def test_late_returns_from_before_the_circuit_moved_do_not_count() -> None:
    circuit = a_circuit(judged=(a_judged(id=7, generation=0),), generation=3)

    assert charge(circuit, {(7, False): 2}).fared == Fared()
