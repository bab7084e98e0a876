"""Which letters go first, how many, and when: the permit's room and the rate, dealt out one by one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY
from smart_redriver.engine.model.circuit import Circuit, Orders
from smart_redriver.engine.model.permit import Permit
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.triage.admission import SUSPECTS_TURN, Admission
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
)
from tests.unit.examples import (
    NOW,
    a_circuit,
    a_letter,
    a_returned_letter,
    ago,
    ahead,
    an_entry,
    some_metadata,
)
from tests.unit.situations import EXPIRING, JUST_FAILED, OTHER_ARN, TERMS

UNLIMITED = Settings(max_rate=0)
WINDOW = Permit(limit=1_000, reason="window")


def waiting(name: str, **changes: Any) -> Case:
    """A letter that has waited in the DLQ for longer than its backoff."""
    return Case(
        letter=a_letter(**{"message_id": name, "first_received_at": ago(hours=1)} | changes)
    )


def returned(name: str, redrives: int = 1, strikes: int = 0, **changes: Any) -> Case:
    """A letter that came back an hour ago."""
    metadata = some_metadata(original_id=name, redrive_count=redrives)
    entry = an_entry(
        original_id=name,
        current_id=name,
        redrive_count=redrives,
        strikes=strikes,
        last_redrive=ago(hours=1),
        replaced_ids=(),
    )
    return Case(
        letter=a_returned_letter(message_id=name, metadata=metadata, **changes), entry=entry
    )


def admission(
    permit: Permit = WINDOW,
    settings: Settings = UNLIMITED,
    circuit: Circuit | None = None,
    now: datetime = NOW,
) -> Admission:
    return Admission(circuit or a_circuit(), permit, settings, now, awaits_suspects=False)


def decided(
    one: Admission, cases: Sequence[Case], now: datetime = NOW
) -> list[tuple[str, Decision]]:
    some = one.decide(cases, [0.0] * len(cases), a_circuit(), TERMS, now)
    return [(case.message_id, decision) for case, decision in some]


def admitted(one: Admission, cases: Sequence[Case], now: datetime = NOW) -> list[str]:
    return [name for name, what in decided(one, cases, now) if isinstance(what, Redrive)]


def delays(one: Admission, cases: Sequence[Case], now: datetime = NOW) -> list[float]:
    return [
        what.delay.total_seconds()
        for _, what in decided(one, cases, now)
        if isinstance(what, Redrive)
    ]


def letters(count: int, **changes: Any) -> list[Case]:
    return [waiting(f"m{number}", **changes) for number in range(count)]


def nearly_convicted(count: int, strikes: int = 4) -> list[Case]:
    """Suspects that have been tried for hours."""
    cases = [returned(f"suspect {number}", 5, strikes) for number in range(count)]
    struck = ago(hours=6, minutes=30)
    return [
        replace(one, entry=replace(one.entry, first_strike=struck)) for one in cases if one.entry
    ]


# Who goes first.


NEAR_EXPIRY = returned("near its expiry", redrives=9, strikes=2, sent_at=EXPIRING)
OLDEST = waiting("on its first visit, the oldest", sent_at=ago(hours=2))
OFTEN = returned("redriven often", redrives=4, sent_at=ago(hours=1, minutes=45))
YOUNGER = waiting("on its first visit, a younger one", sent_at=ago(hours=1, minutes=30))
ONCE = returned("redriven once", sent_at=ago(hours=1))
OFTEN_SUSPECTED = returned(
    "a suspect that was redriven often", redrives=3, strikes=1, sent_at=ago(hours=3)
)
SUSPECT = returned("a suspect", strikes=1, sent_at=ago(hours=1))

IN_ORDER = [NEAR_EXPIRY, OLDEST, OFTEN, YOUNGER, ONCE, OFTEN_SUSPECTED, SUSPECT]
IN_A_TRIALS_ORDER = [NEAR_EXPIRY, OLDEST, YOUNGER, ONCE, SUSPECT, OFTEN, OFTEN_SUSPECTED]


def names(cases: Sequence[Case]) -> list[str]:
    return [case.message_id for case in cases]


@given(st.permutations(IN_ORDER))
def test_what_is_near_expiry_goes_first_then_what_has_no_strikes_the_oldest_first(
    cases: list[Case],
) -> None:
    assert admitted(admission(), cases) == names(IN_ORDER)


@pytest.mark.parametrize("trial", ["is_canary", "is_probe"])
@given(cases=st.permutations(IN_ORDER))
def test_in_a_trial_the_least_redriven_goes_first_and_a_suspect_has_its_turn_later(
    trial: str, cases: list[Case]
) -> None:
    """Were it always the same letter, and poison, no canary would ever succeed."""
    permit = Permit(limit=len(cases), reason="a trial", **{trial: True})

    assert admitted(admission(permit), cases) == names(IN_A_TRIALS_ORDER)


def test_a_suspect_has_its_turn_when_the_others_were_tried_in_vain_so_much_oftener() -> None:
    """What has no strike can be poison, too, and what has one a good letter whose downstream is up again."""
    trial = Permit(limit=1, reason="a canary", is_canary=True)
    often, oftener = (returned(str(n), redrives=1 + SUSPECTS_TURN + n) for n in (0, 1))

    assert admitted(admission(trial), [SUSPECT, often]) == [often.message_id]
    assert admitted(admission(trial), [SUSPECT, oftener]) == [SUSPECT.message_id]


@given(st.permutations(IN_ORDER), st.integers(0, len(IN_ORDER)))
def test_a_small_permit_takes_the_first_of_them(cases: list[Case], limit: int) -> None:
    permit = Permit(limit=limit, reason="window")

    assert admitted(admission(permit), cases) == names(IN_ORDER[:limit])


def test_of_equals_the_one_that_is_due_sooner_goes_first() -> None:
    later = waiting("later", first_received_at=JUST_FAILED)

    assert admitted(admission(), [later, waiting("sooner")]) == ["sooner", "later"]


# How many.


def test_what_is_beyond_the_permit_is_held_and_the_room_is_used_up() -> None:
    one = admission(Permit(limit=2, reason="window"))

    what = [decision for _, decision in decided(one, letters(5))]

    assert sum(isinstance(decision, Redrive) for decision in what) == 2
    assert {d.reason for d in what if isinstance(d, Hold)} == {HoldReason.NO_PERMIT}
    assert one.room == 0


def test_the_room_lasts_over_the_rounds_of_a_pass() -> None:
    one = admission(Permit(limit=5, reason="window"))

    counts = [len(admitted(one, letters(3))) for _ in range(3)]

    assert counts == [3, 2, 0]


def test_a_letter_near_expiry_that_finds_no_room_is_parked() -> None:
    one = admission(Permit(limit=0, reason="OPEN"))

    ((_, decision),) = decided(one, [waiting("m", sent_at=EXPIRING)])

    assert decision == Park(reason=ParkReason.EXPIRING, strikes=0)


def test_what_does_not_go_takes_no_room() -> None:
    replaced = replace(returned("r"), entry=an_entry(replaced_ids=("r",)))
    stranger = waiting("s", source_arn=OTHER_ARN)
    one = admission(Permit(limit=1, reason="window"))

    what = dict(decided(one, [replaced, stranger, waiting("m")]))

    assert isinstance(what["r"], Discard)
    assert isinstance(what["s"], Park)
    assert isinstance(what["m"], Redrive)


@given(st.permutations(IN_ORDER), st.integers(0, 10))
def test_every_letter_gets_exactly_one_decision(cases: list[Case], limit: int) -> None:
    one = admission(Permit(limit=limit, reason=""))

    assert sorted(name for name, _ in decided(one, cases)) == sorted(names(cases))


def test_no_letter_is_left_out_for_want_of_chance() -> None:
    with pytest.raises(ValueError, match="shorter"):
        admission().decide(letters(2), [0.0], a_circuit(), TERMS, NOW)


# When.


@pytest.mark.parametrize("trial", ["is_canary", "is_probe"])
def test_a_trial_goes_without_delay(trial: str) -> None:
    """What it is to show is how the consumer is now."""
    just_failed = letters(1, first_received_at=JUST_FAILED)
    permit = Permit(limit=1, reason="a trial", **{trial: True})

    assert delays(admission(permit), just_failed) == [0]
    assert delays(admission(), just_failed) == [30]


@pytest.mark.parametrize("rate", [0.0, 9.0])
def test_the_letters_of_a_trial_that_go_apart_are_far_apart(rate: float) -> None:
    permit = Permit(limit=5, reason="a canary", is_canary=True, is_apart=True)

    went = delays(admission(permit, replace(UNLIMITED, max_rate=rate)), letters(5))

    assert [later - sooner for sooner, later in pairwise(went)] == 4 * [20]


def test_letters_are_spread_so_that_the_consumer_sees_no_more_than_the_rate() -> None:
    assert delays(admission(settings=Settings(max_rate=2)), letters(5)) == [0, 0, 1, 1, 2]


def test_the_rounds_of_a_pass_share_the_seconds() -> None:
    one = admission(settings=Settings(max_rate=2))

    first = delays(one, letters(3))
    second = delays(one, letters(3), ahead(seconds=1))

    assert (first, second) == ([0, 0, 1], [0, 1, 1])


def test_the_next_pass_begins_where_the_one_before_left_off() -> None:
    settings = Settings(max_rate=10)
    one = admission(settings=settings)
    ends = max(delays(one, letters(1_000)))
    assert one.paced_until == ahead(seconds=ends + 1)

    later = ahead(seconds=60)
    other = admission(settings=settings, circuit=a_circuit(paced_until=one.paced_until), now=later)

    assert min(delays(other, letters(10), later)) == ends + 1 - 60


def test_a_pass_that_the_rate_did_not_hold_up_leaves_nothing_to_wait_for() -> None:
    one = admission(settings=Settings(max_rate=100))

    delays(one, letters(50))

    assert one.paced_until is None


def test_a_pace_that_is_over_holds_nobody_up() -> None:
    one = admission(settings=Settings(max_rate=10), circuit=a_circuit(paced_until=ago(minutes=1)))

    assert delays(one, letters(3)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("strikes", "expected"), [(0, [0, 0, 0]), (3, [0, 0, 0]), (4, [0, 20, 40])]
)
def test_letters_that_are_parked_if_they_fail_much_oftener_go_one_by_one(
    strikes: int, expected: list[float]
) -> None:
    """Their consumer may fail all that it was given together, for one of them."""
    assert delays(admission(), nearly_convicted(3, strikes)) == expected


@pytest.mark.parametrize(("strikes", "expected"), [(0, [0, 0, 0]), (1, [0, 20, 40])])
def test_where_two_strikes_park_a_letter_the_first_one_is_all_that_it_takes(
    strikes: int, expected: list[float]
) -> None:
    one = admission(settings=replace(UNLIMITED, max_attempts=2))

    assert delays(one, nearly_convicted(3, strikes)) == expected


def test_over_the_rounds_of_a_pass_they_go_one_by_one_too() -> None:
    one = admission()

    first, second = delays(one, nearly_convicted(2)), delays(one, nearly_convicted(2))

    assert (first, second) == ([0, 20], [40, 60])


def test_where_there_are_more_than_sqs_can_delay_the_further_ones_go_in_between() -> None:
    all_delays = delays(admission(), nearly_convicted(100))

    assert max(all_delays) <= MAX_SQS_DELAY.total_seconds()
    assert max(Counter(all_delays).values()) <= 3


def test_letters_without_strikes_are_not_among_them_even_where_one_attempt_is_all() -> None:
    assert delays(admission(settings=replace(UNLIMITED, max_attempts=1)), letters(3)) == [0, 0, 0]


def test_chance_puts_each_of_them_somewhere_in_its_turn() -> None:
    some = nearly_convicted(3)

    went = admission().decide(some, [0.0, 0.5, 0.9], a_circuit(), TERMS, NOW)

    assert [what.delay.total_seconds() for _, what in went if isinstance(what, Redrive)] == [
        0,
        30,
        58,
    ]


@pytest.mark.parametrize(
    ("flaps", "rested", "expected"),
    [
        (10, 0, 600),  # spread over ten minutes
        (15, 0, 900),  # just as far as SQS can delay it
        (20, 0, 300),  # what is too far goes in between
        (10, 600, 600),  # of a letter that rests for ten minutes, the other five are left
        (8, 600, 780),
        (5, 600, 900),
        (4, 600, 840),
        (3, 900, 900),  # nothing is left
    ],
)
def test_no_letter_is_spread_further_than_sqs_can_delay_it(
    flaps: int, rested: float, expected: float
) -> None:
    """One that were would find no second, and end the pass."""
    flapping = a_circuit(flaps=flaps)
    one = admission(circuit=flapping)
    case = returned("resting")
    assert case.entry is not None
    case = replace(case, entry=replace(case.entry, not_before=ahead(seconds=rested)))

    ((_, what),) = one.decide([case], [1.0], flapping, TERMS, NOW)

    assert isinstance(what, Redrive)
    assert what.delay.total_seconds() == expected


def test_what_nobody_can_delay_goes_at_once_when_its_second_is_near_and_is_told_no_delay() -> None:
    """Its last try is reckoned from the delay, which a target or a FIFO queue would not keep."""
    undelayed = replace(TERMS, longest_delay=timedelta(), ahead=timedelta(seconds=2))
    one = admission(settings=Settings(max_rate=1))

    went = one.decide(letters(5), [0.0] * 5, a_circuit(), undelayed, NOW)

    assert [what.delay if isinstance(what, Redrive) else what.reason for _, what in went] == [
        timedelta()
    ] * 3 + [HoldReason.NO_PERMIT] * 2


def test_one_that_is_tried_for_the_first_time_does_not_wait_for_them() -> None:
    assert delays(admission(), [*nearly_convicted(2), *letters(2)]) == [0, 0, 0, 20]


def test_a_letter_that_finds_no_second_within_sqs_longest_delay_ends_the_room() -> None:
    circuit = a_circuit(paced_until=NOW + MAX_SQS_DELAY)
    one = admission(settings=Settings(max_rate=1), circuit=circuit)

    what = [decision for _, decision in decided(one, letters(3))]

    assert [type(decision) for decision in what] == [Redrive, Hold, Hold]
    assert one.room == 0


@given(
    st.lists(st.integers(1, 80), min_size=1, max_size=4), st.integers(1, 10), st.integers(0, 120)
)
def test_over_several_passes_no_letter_is_due_beyond_the_rate(
    passes: list[int], rate: int, apart: int
) -> None:
    circuit, now, due = a_circuit(), NOW, []
    for count in passes:
        one = admission(settings=Settings(max_rate=rate), circuit=circuit, now=now)
        due += [now + timedelta(seconds=after) for after in delays(one, letters(count), now)]
        circuit = replace(circuit, paced_until=one.paced_until)
        now += timedelta(seconds=apart + 1)

    # Where two passes meet they share a second, and the few letters that are not worth a note in the circuit.
    span = (max(due) - min(due)).total_seconds() + 1
    assert len(due) <= rate * span + (len(passes) - 1) * (rate + 3)


@pytest.mark.parametrize(
    ("paced_until", "first"), [(None, 1), (ago(minutes=1), 1), (ahead(seconds=5), 6)]
)
def test_beside_live_messages_a_pass_begins_in_the_second_after_the_last_that_may_be_full(
    paced_until: datetime | None, first: int
) -> None:
    rate = Rate(per_second=1, looked_at=NOW)
    circuit = a_circuit(rate=rate, paced_until=paced_until)

    assert delays(admission(circuit=circuit), letters(3)) == [first, first + 1, first + 2]


@pytest.mark.parametrize(
    ("max_rate", "borne", "expected"),
    [(5, 1.0, [1, 2, 3]), (1, 5.0, [1, 2, 3]), (0, 1.0, [1, 2, 3]), (0, 5.0, [1, 1, 1])],
)
def test_the_rate_is_the_lower_of_the_setting_and_what_the_consumer_bears(
    max_rate: float, borne: float, expected: list[float]
) -> None:
    circuit = a_circuit(rate=Rate(per_second=borne, looked_at=NOW))

    assert delays(admission(settings=Settings(max_rate=max_rate), circuit=circuit), letters(3)) == (
        expected
    )


@pytest.mark.parametrize(
    ("rested", "ahead_seconds", "paced", "goes"),
    [
        (0, 20, 20, True),
        (0, 20, 21, False),  # further ahead of its time than it may be
        (600, 20, 620, True),
        (600, 20, 621, False),
        (600, 900, 900, True),
        (600, 900, 901, False),  # further than SQS can delay it
    ],
)
def test_a_second_is_near_enough_to_a_letters_time_and_within_what_sqs_can_delay(
    rested: float, ahead_seconds: float, paced: float, goes: bool
) -> None:
    case = returned("resting")
    assert case.entry is not None
    case = replace(case, entry=replace(case.entry, not_before=ahead(seconds=rested)))
    terms = replace(TERMS, ahead=timedelta(seconds=ahead_seconds))
    circuit = a_circuit(paced_until=ahead(seconds=paced))
    one = admission(settings=Settings(max_rate=1), circuit=circuit)

    ((_, what),) = one.decide([case], [0.0], circuit, terms, NOW)

    assert isinstance(what, Redrive) == goes


def test_a_persons_drain_raises_the_rate_while_it_lasts_and_never_lowers_it() -> None:
    def rate_with(**orders: Any) -> float:
        drain = Orders(**{"drain_until": ahead(hours=1)} | orders)
        one = admission(settings=Settings(max_rate=2), circuit=a_circuit(orders=drain))
        return delays(one, letters(20)).count(0)

    assert rate_with(drain_rate=10) == 10
    assert rate_with(drain_rate=1) == 2
    assert rate_with(drain_rate=None) == 2
    assert rate_with(drain_rate=10, drain_until=NOW) == 2


def test_where_there_is_no_limit_a_drain_sets_none() -> None:
    drain = Orders(drain_until=ahead(hours=1), drain_rate=1)

    one = admission(settings=UNLIMITED, circuit=a_circuit(orders=drain))

    assert set(delays(one, letters(50))) == {0}
