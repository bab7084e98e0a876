"""Circuits by cause: when letters of one cause are held together, and what ends that."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import CAUSES_KEPT, CauseCount, Heard
from smart_redriver.engine.model.causes import (
    COUNTED_FOR,
    FEWEST_OF_A_CAUSE,
    FORGOTTEN_AFTER,
    MOST_CAUSES,
    PATIENCE,
    CauseCircuit,
    with_failures,
    with_successes,
)
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.evidence import Evidence
from smart_redriver.engine.model.judging import judge, note_reports
from smart_redriver.engine.model.permit import cause_cool_down, cool_down
from tests.unit.circuits import ROLL, all_failed, all_succeeded, judged
from tests.unit.circuits import SETTINGS as CIRCUITS_SETTINGS
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, ago, ahead

COOL = timedelta(minutes=1)
DECLINED = "Declined"
SETTINGS = Settings()
TIME_TO_FAIL = timedelta(seconds=90)


def failed(
    letters: int, causes: tuple[CauseCircuit, ...] = (), now: datetime = NOW
) -> tuple[CauseCircuit, ...]:
    return with_failures(causes, {DECLINED: letters}, COOL, now)


def recovered(
    causes: tuple[CauseCircuit, ...], *times: datetime, now: datetime = NOW
) -> tuple[CauseCircuit, ...]:
    return with_successes(causes, {DECLINED: times}, now)


def held(**changes: Any) -> CauseCircuit:
    """A cause that has been held for an hour and has a canary out."""
    usual: dict[str, Any] = {
        "cause": DECLINED,
        "held_since": ago(hours=1),
        "seen_at": ago(minutes=1),
        "canary_id": "first",
        "canary_batch": 7,
        "canary_sent_at": ago(minutes=2),
    }
    return CauseCircuit(**usual | changes)


# When a cause is held.


@pytest.mark.parametrize(("letters", "is_held"), [(2, False), (3, True), (200, True)])
def test_a_cause_is_held_at_its_third_letter(letters: int, is_held: bool) -> None:
    (one,) = failed(letters)

    assert (one.failed, one.is_held) == (letters, is_held)
    assert one.cools_until == (NOW + COOL if is_held else None)


def test_letters_add_up_over_batches() -> None:
    (one,) = failed(1, failed(2))

    assert one.is_held


def test_what_failed_long_ago_says_nothing_of_what_fails_now() -> None:
    late = NOW + COUNTED_FOR + timedelta(seconds=1)

    (one,) = failed(1, failed(2), late)
    (in_time,) = failed(1, failed(2), NOW + COUNTED_FOR)

    assert (one.failed, one.is_held) == (1, False)
    assert (in_time.failed, in_time.is_held) == (3, True)


@pytest.mark.parametrize(("lucky", "is_held"), [(3, False), (2, False), (1, False), (0, True)])
def test_bad_luck_that_others_of_the_cause_did_not_have_holds_nobody(
    lucky: int, is_held: bool
) -> None:
    causes = recovered((), *[ago(minutes=1)] * lucky) if lucky else ()

    (one,) = failed(FEWEST_OF_A_CAUSE, causes)

    assert one.is_held == is_held


def test_four_of_five_are_most_of_them() -> None:
    (one,) = failed(4, recovered((), NOW))

    assert one.is_held


def test_a_held_cause_is_not_held_anew() -> None:
    (before,) = failed(3)

    (after,) = failed(5, (before,), ahead(minutes=5))

    assert (after.held_since, after.cools_until) == (before.held_since, before.cools_until)


# What ends it.


def test_a_letter_that_succeeds_while_its_cause_is_held_ends_that() -> None:
    (one,) = recovered((held(),), ago(minutes=2))

    assert (one.is_held, one.canary_id, one.canaries_failed) == (False, None, 0)


def test_one_that_succeeded_before_does_not() -> None:
    (one,) = recovered((held(),), ago(hours=2))

    assert one.is_held
    assert one.succeeded == 1


@pytest.mark.parametrize(("seconds", "is_held"), [(-1, True), (0, False), (1, False)])
def test_one_that_succeeds_in_the_second_in_which_it_was_held_ends_it(
    seconds: int, is_held: bool
) -> None:
    (one,) = recovered((held(),), ago(hours=1, seconds=-seconds))

    assert one.is_held == is_held


def test_one_of_several_that_succeeded_since_is_enough() -> None:
    (one,) = recovered((held(),), ago(hours=2), ago(minutes=2))

    assert not one.is_held


# What is remembered, and how much of it.


def test_counts_of_letters_that_flow_are_forgotten_when_they_are_old() -> None:
    late = NOW + COUNTED_FOR + timedelta(seconds=1)

    after = with_failures(failed(2), {"Timeout": 1}, COOL, late)
    in_time = with_failures(failed(2), {"Timeout": 1}, COOL, NOW + COUNTED_FOR)

    assert [one.cause for one in after] == ["Timeout"]
    assert len(in_time) == 2


def test_counts_that_are_old_begin_at_none() -> None:
    before = failed(2, recovered((), NOW))

    (after,) = failed(1, before, NOW + COUNTED_FOR + timedelta(seconds=1))
    (in_time,) = failed(1, before, NOW + COUNTED_FOR)

    assert (after.failed, after.succeeded) == (1, 0)
    assert (in_time.failed, in_time.succeeded) == (3, 1)


def test_a_held_cause_of_which_no_letter_was_seen_for_a_day_is_forgotten() -> None:
    seen = held(seen_at=NOW - FORGOTTEN_AFTER)
    not_seen = held(seen_at=NOW - FORGOTTEN_AFTER - timedelta(seconds=1))

    assert seen in with_failures((seen,), {"Timeout": 1}, COOL, NOW)
    assert not_seen not in with_failures((not_seen,), {"Timeout": 1}, COOL, NOW)


def test_no_more_causes_are_kept_than_may_be_and_those_that_hold_letters_first() -> None:
    many = with_failures((), {f"Cause{n}": 1 for n in range(100)}, COOL, NOW)

    after = failed(3, many)

    assert (len(many), len(after)) == (MOST_CAUSES, MOST_CAUSES)
    assert after[0].cause == DECLINED


def test_a_cause_beyond_what_is_kept_is_not_held() -> None:
    full = with_failures((), {f"Cause{n}": 3 for n in range(MOST_CAUSES)}, COOL, NOW)

    assert failed(3, full) == full


# Canaries.


def test_a_canary_may_go_when_the_cool_down_is_over_and_no_other_is_out() -> None:
    cool = held(canary_sent_at=None, cools_until=NOW)
    out = held(canary_sent_at=NOW - TIME_TO_FAIL - PATIENCE + timedelta(seconds=1))
    given_up = replace(out, canary_sent_at=NOW - TIME_TO_FAIL - PATIENCE)

    assert cool.may_try(NOW, TIME_TO_FAIL)
    assert not cool.may_try(ago(seconds=1), TIME_TO_FAIL)
    assert not out.may_try(NOW, TIME_TO_FAIL)
    assert given_up.may_try(NOW, TIME_TO_FAIL)


def test_a_failed_canary_is_no_longer_out_and_the_cause_cools_down() -> None:
    after = held().after_failed_canary(COOL, NOW, convicts_after=timedelta(hours=6), fewest=5)

    assert (after.canaries_failed, after.canary_id, after.cools_until) == (1, None, NOW + COOL)


@pytest.mark.parametrize(("most", "seconds"), [(1, 1), (3, 1), (4, 2)])
def test_a_cool_down_by_cause_lasts_a_second_at_the_least(most: int, seconds: int) -> None:
    settings = Settings(cool_down_seconds=1, max_cool_down_seconds=most)

    assert cause_cool_down(9, settings, 1.0) == timedelta(seconds=seconds)


@pytest.mark.parametrize("failed_before", range(12))
def test_a_cool_down_by_cause_doubles_and_is_half_as_long_at_most(failed_before: int) -> None:
    longest = timedelta(seconds=SETTINGS.max_cool_down_seconds / 2)

    by_cause = cause_cool_down(failed_before + 1, SETTINGS, 0.5)

    assert by_cause == min(cool_down(failed_before + 1, SETTINGS, 0.5), longest)


@pytest.mark.parametrize(
    ("canaries", "held_for", "is_convicted"),
    [(4, 6, True), (3, 6, False), (4, 5, False), (0, 100, False), (400, 5, False)],
)
def test_a_cause_is_convicted_after_enough_canaries_the_last_of_them_late_enough(
    canaries: int, held_for: int, is_convicted: bool
) -> None:
    sent = NOW - timedelta(minutes=2)
    one = held(canaries_failed=canaries, held_since=sent - timedelta(hours=held_for))

    after = one.after_failed_canary(COOL, NOW, convicts_after=timedelta(hours=6), fewest=5)

    assert after.convicted_at == (one.canary_sent_at if is_convicted else None)
    assert (after.held_since, after.canaries_failed) == (one.held_since, canaries + 1)


# In a queue's circuit.


def heard_of(letters: int, cause: str = DECLINED, **more: int) -> Heard:
    return Heard(causes=(CauseCount(cause=cause, letters=letters),), **more)


def test_a_cause_is_held_when_its_letters_failed_while_others_succeeded() -> None:
    batch = a_batch(size=20, heard=heard_of(4))
    circuit = a_circuit(window=20, pending=(batch,))

    assert judged(circuit, all_succeeded).cause(DECLINED).is_held
    assert judged(circuit, all_failed).causes == ()


def test_the_first_canary_of_a_cause_waits_for_the_first_cool_down() -> None:
    some = a_batch(size=20, heard=heard_of(3, failed=3, succeeded=17))
    shown = Evidence(succeeded=17, failed=3, met=20, deleted=17, were_tried=True, has_metrics=True)

    (one,) = judged(a_circuit(pending=(some,)), lambda _: shown).causes

    assert one.cools_until == NOW + cause_cool_down(1, CIRCUITS_SETTINGS, ROLL)


def test_what_is_heard_of_a_batch_after_its_verdict_counts_for_causes_alone() -> None:
    striking = a_circuit(judged=(a_judged(id=7),))
    acquitting = a_circuit(judged=(a_judged(id=7, is_strike=False),))
    told = {7: heard_of(3, succeeded=9, failed=9)}

    after = note_reports(striking, told, SETTINGS, NOW, 0.0)

    assert after.cause(DECLINED).is_held
    assert after.judged == striking.judged
    assert after.heard_at == NOW
    assert note_reports(acquitting, told, SETTINGS, NOW, 0.0).causes == ()


def test_reports_of_a_batch_add_up_until_its_verdict() -> None:
    circuit = a_circuit(pending=(a_batch(),))

    for _ in range(2):
        circuit = note_reports(circuit, {7: heard_of(1, succeeded=1, tries=2)}, SETTINGS, NOW, 0.0)

    assert circuit.pending[0].heard == heard_of(2, succeeded=2, tries=4)


def test_what_is_heard_of_a_batch_that_nobody_knows_is_dropped() -> None:
    circuit = a_circuit(pending=(a_batch(),))

    after = note_reports(circuit, {99: heard_of(50)}, SETTINGS, NOW, 0.0)

    assert after == replace(circuit, heard_at=NOW)


def test_however_many_causes_there_are_a_batch_keeps_the_most_frequent() -> None:
    all_of_them = sum((heard_of(1, f"Cause{n}") for n in range(1_000)), heard_of(5) + heard_of(1))

    assert len(all_of_them.causes) == CAUSES_KEPT
    assert all_of_them.causes[0] == CauseCount(cause=DECLINED, letters=6)


def test_while_the_verdict_waits_no_cause_is_held() -> None:
    batch = a_batch(size=20, heard=heard_of(4))
    circuit: Circuit = a_circuit(window=20, pending=(batch,))
    unknown = {7: Evidence()}

    after, rulings = judge(circuit, unknown, SETTINGS, ago(minutes=1), roll=0.0)

    assert [one.judgement.verdict for one in rulings] == [None]
    assert after.causes == ()
