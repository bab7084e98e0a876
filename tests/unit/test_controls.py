"""Which letters stay as controls, to be compared with suspects, and where a flapping consumer's letters are spread."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import MOST_FLAPS, Circuit, Fared
from smart_redriver.engine.model.permit import Permit
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.triage.admission import (
    CONTROLS,
    CONTROLS_AMONG,
    SPREAD,
    Admission,
)
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Hold, HoldReason, Redrive
from smart_redriver.engine.triage.triage import Terms
from tests.unit.examples import NOW, a_batch, a_circuit, a_judged, a_letter, ago
from tests.unit.situations import TERMS, a_return

UNLIMITED = Settings(max_rate=0)
WINDOW = Permit(limit=1_000, reason="window")
A_STRIKING_RETURN = a_judged(returned=1)
AMONG_SUSPECTS = a_circuit(judged=(A_STRIKING_RETURN,))
AWAITING = replace(AMONG_SUSPECTS, pending=(a_batch(id=9),))


def unblemished(count: int) -> list[Case]:
    """Letters on their first visit, the oldest first, whose backoff is long over."""
    waited = {"first_received_at": ago(hours=1)}
    return [
        Case(letter=a_letter(message_id=f"m{n}", sent_at=ago(hours=2, minutes=-n), **waited))
        for n in range(count)
    ]


def a_suspect() -> Case:
    return a_return(strikes=1, last_redrive=ago(hours=1))


def controls(
    cases: Sequence[Case],
    circuit: Circuit = AMONG_SUSPECTS,
    permit: Permit = WINDOW,
    *,
    beyond: float = 0,
    awaits_suspects: bool = False,
    is_quiet: bool = False,
) -> list[str]:
    one = Admission(
        circuit, permit, UNLIMITED, NOW, awaits_suspects=awaits_suspects, is_quiet=is_quiet
    )
    decided = one.decide(cases, [0.0] * len(cases), circuit, TERMS, NOW, beyond=beyond)
    held = {case.message_id: decision for case, decision in decided if isinstance(decision, Hold)}
    return [name for name, hold in held.items() if hold.reason is HoldReason.CONTROL]


ENOUGH = unblemished(CONTROLS_AMONG)
FEW = unblemished(CONTROLS_AMONG - 1)
LAST = [case.message_id for case in ENOUGH[-CONTROLS:]]


def test_where_suspects_are_about_the_last_letters_without_strikes_stay() -> None:
    assert controls(ENOUGH) == LAST


def test_suspects_wait_with_them_to_be_compared() -> None:
    suspect = a_suspect()

    assert sorted(controls([suspect, *ENOUGH])) == sorted([*LAST, suspect.message_id])


def test_where_nobody_came_back_while_others_succeeded_nobody_stays() -> None:
    failed = a_judged(returned=1, verdict=Verdict.FAILURE, is_strike=False)

    assert controls(ENOUGH, a_circuit()) == []
    assert controls(ENOUGH, a_circuit(judged=(a_judged(returned=0),))) == []
    assert controls(ENOUGH, a_circuit(judged=(failed,))) == []


def test_on_a_quiet_queue_letters_that_are_out_may_be_the_first_suspects() -> None:
    """If all went before those came back, none would be left to compare them with."""
    soon = NOW + timedelta(minutes=2)
    many = a_circuit(pending=(a_batch(size=CONTROLS_AMONG, due_at=soon),))
    few = a_circuit(pending=(a_batch(size=CONTROLS_AMONG - 1, due_at=soon),))
    overdue = a_circuit(pending=(a_batch(size=CONTROLS_AMONG),))

    assert controls(ENOUGH, many, is_quiet=True) == LAST
    assert controls(ENOUGH, many) == []
    assert controls(ENOUGH, few, is_quiet=True) == []
    assert controls(ENOUGH, overdue, is_quiet=True) == []


def test_what_came_back_already_is_no_control_where_others_were_never_tried() -> None:
    """It may be what it would be compared with."""
    returned = a_return(last_redrive=ago(minutes=5))

    assert controls([*ENOUGH, returned]) == LAST


def test_on_a_quiet_queue_more_stay_where_more_may_be_poison() -> None:
    """One of thirty failed: two are hardly both poison. Half of them failed: six hardly are."""
    few_fail = replace(AMONG_SUSPECTS, fared=Fared(failed=1, succeeded=29))
    many_fail = replace(AMONG_SUSPECTS, fared=Fared(failed=50, succeeded=50))
    plenty = unblemished(40)

    assert len(controls(plenty, few_fail, is_quiet=True)) == CONTROLS
    assert len(controls(plenty, many_fail, is_quiet=True)) == 11
    assert len(controls(plenty, many_fail)) == CONTROLS


def test_on_a_quiet_queue_suspects_of_the_rounds_before_count_too() -> None:
    few_fail = replace(AMONG_SUSPECTS, fared=Fared(failed=0, succeeded=20))
    one = Admission(few_fail, WINDOW, UNLIMITED, NOW, awaits_suspects=False, is_quiet=True)
    suspects = [a_suspect() for _ in range(20)]

    def held(cases: Sequence[Case], *, beyond: float) -> int:
        rolls = [0.0] * len(cases)
        decided = one.decide(cases, rolls, few_fail, TERMS, NOW, beyond=beyond)
        return sum(isinstance(what, Hold) for _, what in decided)

    assert held(suspects, beyond=math.inf) == 0
    assert held(unblemished(40), beyond=0) == 13


def test_on_a_quiet_queue_the_larger_half_of_them_goes_first() -> None:
    many_fail = replace(AMONG_SUSPECTS, fared=Fared(failed=50, succeeded=50))
    twelve = unblemished(12)

    assert controls(twelve, many_fail, is_quiet=True) == [one.message_id for one in twelve[-5:]]


MANY_FAIL = replace(AMONG_SUSPECTS, fared=Fared(failed=50, succeeded=50))


def in_rounds(
    *rounds: tuple[Sequence[Case], float], circuit: Circuit = MANY_FAIL, room: int = 1_000
) -> list[list[str]]:
    """The names of the letters that go in each round of one pass on a quiet queue."""
    permit = Permit(limit=room, reason="window")
    one = Admission(circuit, permit, UNLIMITED, NOW, awaits_suspects=False, is_quiet=True)
    return [
        [
            case.message_id
            for case, what in one.decide(
                cases, [0.0] * len(cases), circuit, TERMS, NOW, beyond=beyond
            )
            if isinstance(what, Redrive)
        ]
        for cases, beyond in rounds
    ]


def some_suspects(count: int) -> list[Case]:
    return [
        replace(one, letter=replace(one.letter, message_id=f"suspect-{n}"))
        for n, one in enumerate(a_suspect() for _ in range(count))
    ]


def test_on_a_quiet_queue_they_stay_from_the_first_round_of_a_pass_that_may_reach_the_end() -> None:
    """By the last round, all letters without strikes would be gone."""
    first, last = in_rounds((unblemished(100), 1.0), (some_suspects(100), 0.0))

    assert len(first) == 100 - 11
    assert last == []


def test_on_a_quiet_queue_nobody_stays_while_more_wait_than_may_go() -> None:
    assert len(*in_rounds((unblemished(100), 10.0), room=1_000)) == 100


def test_all_suspects_go_beside_the_controls_whatever_the_window() -> None:
    """They are expected to fail, and no letter is left to compare the next ones with."""
    (went,) = in_rounds(([*some_suspects(50), *unblemished(12)], 0.0), room=20)

    assert len(went) == 50 + 7


def test_suspects_wait_for_a_round_with_controls() -> None:
    suspects = some_suspects(20)

    first, second = in_rounds((suspects[:10], 2.0), ([*suspects[10:], *unblemished(8)], 0.0))

    assert first == []
    assert len(second) == 10 + 4


def test_suspects_alone_go_where_no_letter_is_left_to_compare_them_with() -> None:
    assert len(*in_rounds((some_suspects(20), 0.0), room=5)) == 5


def test_on_a_quiet_queue_they_stay_even_where_there_is_no_room_for_all_suspects() -> None:
    suspects = [a_suspect() for _ in range(3)]
    room = Permit(limit=len(ENOUGH) + 1, reason="window")

    assert len(controls([*suspects, *ENOUGH], permit=room, is_quiet=True)) > CONTROLS
    assert controls([*suspects, *ENOUGH], permit=room) == []


def test_nobody_stays_while_the_dlq_shows_more_letters_to_come() -> None:
    assert controls(ENOUGH, beyond=math.inf) == []


def test_nobody_stays_where_the_permit_holds_some_back_anyway() -> None:
    narrow = Permit(limit=len(ENOUGH), reason="window")

    assert controls(ENOUGH, permit=narrow) == []


@pytest.mark.parametrize("trial", ["is_canary", "is_probe"])
def test_a_trial_leaves_nobody_behind(trial: str) -> None:
    assert controls(ENOUGH, permit=Permit(limit=1_000, reason="a trial", **{trial: True})) == []


def test_the_last_few_go_with_the_suspects_when_nothing_is_out_any_more() -> None:
    """A verdict is what they stayed for: while one is awaited they stay, and then all but one go."""
    assert controls([a_suspect(), *FEW]) == [FEW[-1].message_id]
    assert len(controls([a_suspect(), *FEW], AWAITING)) == CONTROLS + 1


def test_the_very_last_control_goes_with_what_became_a_suspect_beside_the_others() -> None:
    """Two comparisons convict, and so many does a letter get that nobody suspected before."""
    assert controls([a_suspect(), FEW[0]]) == []


def test_the_last_control_waits_for_nobody_where_the_others_were_tried_in_vain() -> None:
    """They may all be poison: with them for ever, it would never go."""
    returned = a_return(last_redrive=ago(minutes=5))

    assert controls([a_suspect(), returned, FEW[0]]) == []


def test_letters_that_are_still_being_tried_may_be_the_first_suspects_of_all() -> None:
    """Where a message takes long to fail, verdicts fall long before: some stay until it is known, and go then."""
    nobody = a_circuit()

    assert controls(ENOUGH, nobody, awaits_suspects=True) == LAST
    assert controls(FEW, nobody, awaits_suspects=True) == [
        one.message_id for one in FEW[-CONTROLS:]
    ]
    assert controls(FEW, nobody) == []


def test_what_came_back_beside_suspects_alone_is_one_of_them() -> None:
    alone = a_judged(verdict=Verdict.NO_EVIDENCE, is_strike=False, was_alone=True, returned=1)
    doubtful = a_return(last_redrive=ago(hours=1))
    circuit = a_circuit(judged=(A_STRIKING_RETURN, replace(alone, id=7)))

    assert doubtful.batch == 7
    assert doubtful.is_doubtful(circuit)
    assert sorted(controls([doubtful, *ENOUGH], circuit)) == sorted([*LAST, doubtful.message_id])


def test_a_suspect_that_was_met_in_this_pass_is_about_although_no_verdict_knows_of_its_return() -> (
    None
):
    unaware = a_circuit()

    assert len(controls([a_suspect(), *ENOUGH], unaware)) == CONTROLS + 1


def test_suspects_wait_for_an_hour_to_be_compared_and_no_longer() -> None:
    """Where producers' messages keep coming some batch is always out, and they would wait for ever."""
    patient = a_return(strikes=1, last_redrive=ago(minutes=30))
    tired = a_return(strikes=1, last_redrive=ago(hours=1) - TERMS.time_to_fail)

    assert patient.message_id in controls([patient, *FEW], AWAITING)
    assert tired.message_id not in controls([tired, *FEW], AWAITING)


def test_suspects_alone_wait_for_nobody() -> None:
    assert controls([a_suspect()], AWAITING) == []


@pytest.mark.parametrize("good", [2, 3])
def test_the_last_of_two_or_more_that_were_tried_as_often_stays_once_more(good: int) -> None:
    assert controls([a_suspect(), *ENOUGH[:good]]) == [ENOUGH[good - 1].message_id]


@pytest.mark.parametrize(("verdict", "stay"), [(Verdict.SUCCESS, LAST), (Verdict.FAILURE, [])])
def test_what_is_back_from_a_batch_that_succeeded_is_a_suspect_that_no_verdict_charged(
    verdict: Verdict, stay: list[str]
) -> None:
    """Its batch had succeeded before it came back: it has no strike for that, and may be poison all the same."""
    judged = a_judged(id=7, verdict=verdict, is_strike=False)
    returned = a_return(last_redrive=ago(minutes=5))

    assert controls([*ENOUGH, returned], a_circuit(judged=(judged,))) == stay


@pytest.mark.parametrize(("behind", "stay"), [("m0", []), ("another", LAST)])
def test_letters_that_are_followed_in_their_group_are_no_last_ones(
    behind: str, stay: list[str]
) -> None:
    """What waits behind them can be compared with later; a group of others says nothing of that."""
    alone = replace(TERMS, is_fifo=True, longest_delay=timedelta())
    held = replace(AMONG_SUSPECTS, pending=(a_batch(id=7),))
    groups = [replace(one, letter=replace(one.letter, group_id=one.message_id)) for one in ENOUGH]
    first = a_return(letter=a_letter(message_id="second", group_id=behind))
    next_one = Case(letter=a_letter(message_id="next", group_id=behind))
    ahead = [first] if behind == "another" else []
    one = Admission(held, WINDOW, UNLIMITED, NOW, awaits_suspects=False)

    decided = one.decide(
        [*ahead, *groups, next_one],
        [0.0] * len([*ahead, *groups, next_one]),
        held,
        alone,
        NOW,
        beyond=0,
    )

    holds = {case.message_id: what for case, what in decided if isinstance(what, Hold)}
    assert holds["next"].reason is HoldReason.GROUP
    assert [name for name, what in holds.items() if what.reason is HoldReason.CONTROL] == stay


# Spread, where the consumer flaps.


def delays(roll: float, permit: Permit = WINDOW, **circuit: Any) -> set[timedelta]:
    flapping = a_circuit(**circuit)
    one = Admission(flapping, permit, UNLIMITED, NOW, awaits_suspects=False)
    decided = one.decide(ENOUGH, [roll] * len(ENOUGH), flapping, TERMS, NOW)
    return {decision.delay for _, decision in decided if isinstance(decision, Redrive)}


@pytest.mark.parametrize("flaps", [0, 1, MOST_FLAPS])
def test_each_time_that_the_consumer_flapped_spreads_letters_by_more(flaps: int) -> None:
    assert delays(0.0, flaps=flaps) == {timedelta()}
    assert delays(0.5, flaps=flaps) == {SPREAD * flaps * 0.5}


def test_letters_that_go_at_a_rate_are_spread_by_that() -> None:
    assert delays(0.5, flaps=1, rate=Rate(per_second=10_000.0, looked_at=NOW)) == {
        timedelta(seconds=1)
    }


def test_a_trial_is_not_spread() -> None:
    trial = Permit(limit=1_000, reason="a probe", is_probe=True)

    assert delays(0.5, trial, flaps=MOST_FLAPS) == {timedelta()}


# Where nobody can delay a letter.

UNDELAYED = replace(TERMS, longest_delay=timedelta(), ahead=timedelta(seconds=20))
CALM = a_circuit()
HIDDEN = a_return(strikes=1, last_redrive=ago(seconds=TERMS.time_to_fail.total_seconds()))


def decided(cases: Sequence[Case], circuit: Circuit = CALM) -> Admission:
    one = Admission(circuit, WINDOW, UNLIMITED, NOW, awaits_suspects=False)
    one.decide(cases, [0.0] * len(cases), circuit, UNDELAYED, NOW, beyond=0)
    return one


def test_controls_wait_for_suspects_that_are_hidden_as_nobody_can_delay_them() -> None:
    one = Admission(a_circuit(), WINDOW, UNLIMITED, NOW, awaits_suspects=False)

    went = one.decide([HIDDEN, *FEW], [0.0] * 8, a_circuit(), UNDELAYED, NOW, beyond=0)

    held = [(case.message_id, what.reason) for case, what in went if isinstance(what, Hold)]
    assert held == [
        (HIDDEN.message_id, HoldReason.BACKOFF),
        *((case.message_id, HoldReason.CONTROL) for case in FEW[-CONTROLS:]),
    ]


def test_until_when_they_are_hidden_is_remembered() -> None:
    later = a_circuit(suspects_until=NOW + timedelta(minutes=10))

    assert decided([HIDDEN, *FEW]).suspects_until == NOW + timedelta(seconds=60)
    assert decided([HIDDEN, *FEW], later).suspects_until == NOW + timedelta(minutes=10)
    assert decided(FEW).suspects_until is None
    unblemished = a_return(strikes=0, last_redrive=ago(seconds=TERMS.time_to_fail.total_seconds()))
    assert decided([unblemished, *FEW]).suspects_until is None


def hidden_for(seconds: float) -> Case:
    """A suspect that may be tried again so much later."""
    return a_return(strikes=1, not_before=NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [60, 1_200])
@pytest.mark.parametrize(
    "terms",
    [TERMS, replace(TERMS, is_fifo=True), replace(UNDELAYED, is_fifo=True)],
    ids=["standard", "FIFO", "FIFO, undelayed"],
)
def test_where_sqs_delays_suspects_or_keeps_them_in_order_nobody_waits_for_them(
    terms: Terms, seconds: float
) -> None:
    """They are on their way, or hidden only until SQS can delay them; in a group nobody goes beside them."""
    one = Admission(a_circuit(), WINDOW, UNLIMITED, NOW, awaits_suspects=False)

    one.decide([hidden_for(seconds), *FEW], [0.0] * 8, a_circuit(), terms, NOW, beyond=0)

    assert one.suspects_until is None


@pytest.mark.parametrize(("seconds", "is_waited_for"), [(899, True), (900, True), (901, False)])
def test_what_is_hidden_for_longer_than_sqs_could_delay_it_is_not_waited_for(
    seconds: float, is_waited_for: bool
) -> None:
    one = decided([hidden_for(seconds), *FEW])

    assert (one.suspects_until is not None) == is_waited_for
