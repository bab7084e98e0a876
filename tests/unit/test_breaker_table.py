"""How events move the circuit: every pair of state and event, whether it can happen or not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from itertools import product
from typing import Any

import pytest

from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.breaker import SMALLEST_WINDOW, VOUCHED_MINUTES, failed, force
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.verdict import GROWTH_WHERE_SHOWN, GROWTH_WHERE_VOUCHED
from tests.unit import circuits
from tests.unit.circuits import (
    ROLL,
    SETTINGS,
    all_failed,
    all_failed_beside_live_successes,
    all_failed_beside_some_live_successes,
    all_succeeded,
    judging,
    nothing_known,
    overturning,
    sending,
    waiting,
)
from tests.unit.examples import NOW, a_batch, a_circuit, ago, ahead
from tests.unit.judging import WELL

CLOSED, OPEN, HALF_OPEN = State.CLOSED, State.OPEN, State.HALF_OPEN
GENERATION = 2
WINDOW = 8
HALF = WINDOW // 2
LONG_COOL_DOWN = timedelta(seconds=SETTINGS.max_cool_down_seconds)
COOL_DOWN_ENDS = ahead(minutes=5)


class Event(Enum):
    SUCCESS_SHOWN = auto()
    SUCCESS_VOUCHED = auto()
    SUCCESS_BEYOND_DOUBT = auto()
    FAILURE = auto()
    LAST_SUCCESS_SHOWN = auto()
    LAST_SUCCESS_VOUCHED = auto()
    LAST_FAILURE = auto()
    NO_EVIDENCE = auto()
    VERDICT_WAITS = auto()
    PASS_DIED = auto()
    PROBE_SUCCEEDED = auto()
    PROBE_FAILED = auto()
    LAST_PROBE_FAILED = auto()
    REFUSED_SENDS = auto()
    OVERTURNED = auto()
    OLD_SUCCESS = auto()
    OLD_FAILURE = auto()
    OLD_OVERTURNED = auto()
    EMPTY_DLQ = auto()
    COOLED_DOWN = auto()
    LETTER_TOO_EARLY = auto()
    LETTER_AFTER_COOL_DOWN = auto()
    LETTER_AS_LIVE_SUCCEEDS = auto()
    LETTER_AS_LIVE_FAILS = auto()
    LETTER_AS_LIVE_FAILS_FOR_LONG = auto()
    FORCED_OPEN = auto()
    FORCED_CLOSED = auto()


HAPPENS: dict[Event, circuits.Event] = {
    Event.SUCCESS_SHOWN: judging(all_succeeded),
    Event.SUCCESS_VOUCHED: judging(all_failed_beside_some_live_successes),
    Event.SUCCESS_BEYOND_DOUBT: judging(all_failed_beside_live_successes),
    Event.FAILURE: judging(all_failed),
    Event.LAST_SUCCESS_SHOWN: judging(all_succeeded),
    Event.LAST_SUCCESS_VOUCHED: judging(all_failed_beside_live_successes),
    Event.LAST_FAILURE: judging(all_failed),
    Event.NO_EVIDENCE: judging(nothing_known),
    Event.VERDICT_WAITS: judging(nothing_known, due_at=ahead(minutes=1)),
    Event.PASS_DIED: judging(all_succeeded, is_complete=False),
    Event.PROBE_SUCCEEDED: judging(all_succeeded, size=1, is_probe=True),
    Event.PROBE_FAILED: judging(all_failed, size=1, is_probe=True),
    Event.LAST_PROBE_FAILED: judging(all_failed, size=1, is_probe=True),
    Event.REFUSED_SENDS: lambda circuit: failed(circuit, "AccessDenied", SETTINGS, NOW, ROLL),
    Event.OVERTURNED: overturning(),
    Event.OLD_SUCCESS: judging(all_succeeded, generations_ago=1),
    Event.OLD_FAILURE: judging(all_failed, generations_ago=1),
    Event.OLD_OVERTURNED: overturning(generations_ago=1),
    Event.EMPTY_DLQ: waiting(NOW),
    Event.COOLED_DOWN: waiting(ahead(days=1)),
    Event.LETTER_TOO_EARLY: sending(COOL_DOWN_ENDS - timedelta(seconds=1)),
    Event.LETTER_AFTER_COOL_DOWN: sending(COOL_DOWN_ENDS),
    Event.LETTER_AS_LIVE_SUCCEEDS: sending(NOW, LiveOutcome.SUCCEEDS),
    Event.LETTER_AS_LIVE_FAILS: sending(COOL_DOWN_ENDS, LiveOutcome.FAILS),
    Event.LETTER_AS_LIVE_FAILS_FOR_LONG: sending(NOW + LONG_COOL_DOWN, LiveOutcome.FAILS),
    Event.FORCED_OPEN: lambda circuit: force(circuit, OPEN, "by hand", NOW),
    Event.FORCED_CLOSED: lambda circuit: force(circuit, CLOSED, "by hand", NOW),
}

#: One short of each threshold, where the event is the last that it takes.
ONE_SHORT: dict[Event, dict[str, Any]] = {
    Event.LAST_SUCCESS_SHOWN: {"success_count": SETTINGS.success_threshold - 1},
    Event.LAST_SUCCESS_VOUCHED: {"success_count": SETTINGS.success_threshold - 1},
    Event.LAST_FAILURE: {"failure_count": SETTINGS.failure_threshold - 1},
    Event.LAST_PROBE_FAILED: {"failure_count": SETTINGS.failure_threshold - 1},
}

BEFORE = {
    CLOSED: a_circuit(window=WINDOW, failure_count=1),
    OPEN: a_circuit(
        state=OPEN,
        window=WINDOW,
        consecutive_opens=2,
        failure_count=3,
        changed_at=ago(minutes=1),
        cools_until=COOL_DOWN_ENDS,
    ),
    HALF_OPEN: a_circuit(state=HALF_OPEN, window=WINDOW, consecutive_opens=2, failure_count=3),
}


@dataclass(frozen=True)
class After:
    """What the table fixes of a circuit."""

    state: State
    failure_count: int
    consecutive_opens: int
    window: int
    generations: int = 0

    @classmethod
    def of(cls, circuit: Circuit) -> "After":
        return cls(
            circuit.state,
            circuit.failure_count,
            circuit.consecutive_opens,
            circuit.window,
            circuit.generation - GENERATION,
        )


def before(state: State, event: Event) -> Circuit:
    return replace(BEFORE[state], **ONE_SHORT.get(event, {}))


#: The circuit stays as it was.
SAME = "SAME"
#: No batch of an OPEN circuit's own generation exists: opening voids all, and none is registered before HALF_OPEN.
#: A probe is of a CLOSED circuit only.
IMPOSSIBLE = "IMPOSSIBLE"

RATE_OF_LIVE = round(WELL.per_minute * VOUCHED_MINUTES)
GROWN = After(CLOSED, 0, 0, WINDOW * GROWTH_WHERE_SHOWN)
VOUCHED = After(CLOSED, 0, 0, max(WINDOW * GROWTH_WHERE_VOUCHED, RATE_OF_LIVE))
FAILED = After(CLOSED, 2, 0, HALF)
PROBE_FAILED = After(CLOSED, 2, 0, WINDOW)
REOPENED = After(OPEN, 3, 3, WINDOW, generations=1)
TRIED = After(HALF_OPEN, 3, 2, WINDOW, generations=1)
#: Whatever opens the circuit next is another outage: its cool-down begins anew.
CANARY_SUCCEEDED = After(HALF_OPEN, 3, 0, WINDOW)
BY_HAND_OPEN = After(OPEN, 0, 1, WINDOW, generations=1)
BY_HAND_CLOSED = After(CLOSED, 0, 0, SMALLEST_WINDOW, generations=1)

TABLE: dict[tuple[State, Event], After | str] = {
    (CLOSED, Event.SUCCESS_SHOWN): GROWN,
    (CLOSED, Event.SUCCESS_VOUCHED): VOUCHED,
    (CLOSED, Event.SUCCESS_BEYOND_DOUBT): VOUCHED,
    (CLOSED, Event.FAILURE): FAILED,
    (CLOSED, Event.LAST_SUCCESS_SHOWN): GROWN,
    (CLOSED, Event.LAST_SUCCESS_VOUCHED): VOUCHED,
    (CLOSED, Event.LAST_FAILURE): After(OPEN, 3, 1, HALF, generations=1),
    (CLOSED, Event.NO_EVIDENCE): SAME,
    (CLOSED, Event.VERDICT_WAITS): SAME,
    (CLOSED, Event.PASS_DIED): SAME,
    (CLOSED, Event.PROBE_SUCCEEDED): After(CLOSED, 0, 0, WINDOW),
    (CLOSED, Event.PROBE_FAILED): PROBE_FAILED,
    (CLOSED, Event.LAST_PROBE_FAILED): After(OPEN, 3, 1, WINDOW, generations=1),
    (CLOSED, Event.REFUSED_SENDS): FAILED,
    (CLOSED, Event.OVERTURNED): FAILED,
    (CLOSED, Event.OLD_SUCCESS): SAME,
    (CLOSED, Event.OLD_FAILURE): SAME,
    (CLOSED, Event.OLD_OVERTURNED): SAME,
    (CLOSED, Event.EMPTY_DLQ): SAME,
    (CLOSED, Event.COOLED_DOWN): SAME,
    (CLOSED, Event.LETTER_TOO_EARLY): SAME,
    (CLOSED, Event.LETTER_AFTER_COOL_DOWN): SAME,
    (CLOSED, Event.LETTER_AS_LIVE_SUCCEEDS): SAME,
    (CLOSED, Event.LETTER_AS_LIVE_FAILS): SAME,
    (CLOSED, Event.LETTER_AS_LIVE_FAILS_FOR_LONG): SAME,
    (CLOSED, Event.FORCED_OPEN): BY_HAND_OPEN,
    (CLOSED, Event.FORCED_CLOSED): BY_HAND_CLOSED,
    (OPEN, Event.SUCCESS_SHOWN): IMPOSSIBLE,
    (OPEN, Event.SUCCESS_VOUCHED): IMPOSSIBLE,
    (OPEN, Event.SUCCESS_BEYOND_DOUBT): IMPOSSIBLE,
    (OPEN, Event.FAILURE): IMPOSSIBLE,
    (OPEN, Event.LAST_SUCCESS_SHOWN): IMPOSSIBLE,
    (OPEN, Event.LAST_SUCCESS_VOUCHED): IMPOSSIBLE,
    (OPEN, Event.LAST_FAILURE): IMPOSSIBLE,
    (OPEN, Event.NO_EVIDENCE): IMPOSSIBLE,
    (OPEN, Event.VERDICT_WAITS): IMPOSSIBLE,
    (OPEN, Event.PASS_DIED): IMPOSSIBLE,
    (OPEN, Event.PROBE_SUCCEEDED): IMPOSSIBLE,
    (OPEN, Event.PROBE_FAILED): IMPOSSIBLE,
    (OPEN, Event.LAST_PROBE_FAILED): IMPOSSIBLE,
    (OPEN, Event.REFUSED_SENDS): IMPOSSIBLE,
    (OPEN, Event.OVERTURNED): IMPOSSIBLE,
    (OPEN, Event.OLD_SUCCESS): SAME,
    (OPEN, Event.OLD_FAILURE): SAME,
    (OPEN, Event.OLD_OVERTURNED): SAME,
    (OPEN, Event.EMPTY_DLQ): SAME,
    (OPEN, Event.COOLED_DOWN): SAME,
    (OPEN, Event.LETTER_TOO_EARLY): SAME,
    (OPEN, Event.LETTER_AFTER_COOL_DOWN): TRIED,
    (OPEN, Event.LETTER_AS_LIVE_SUCCEEDS): TRIED,
    (OPEN, Event.LETTER_AS_LIVE_FAILS): SAME,
    (OPEN, Event.LETTER_AS_LIVE_FAILS_FOR_LONG): TRIED,
    (OPEN, Event.FORCED_OPEN): BY_HAND_OPEN,
    (OPEN, Event.FORCED_CLOSED): BY_HAND_CLOSED,
    (HALF_OPEN, Event.SUCCESS_SHOWN): CANARY_SUCCEEDED,
    (HALF_OPEN, Event.SUCCESS_VOUCHED): CANARY_SUCCEEDED,
    (HALF_OPEN, Event.SUCCESS_BEYOND_DOUBT): After(CLOSED, 0, 0, RATE_OF_LIVE, generations=1),
    (HALF_OPEN, Event.FAILURE): REOPENED,
    (HALF_OPEN, Event.LAST_SUCCESS_SHOWN): After(
        CLOSED, 0, 0, SETTINGS.initial_window, generations=1
    ),
    (HALF_OPEN, Event.LAST_SUCCESS_VOUCHED): After(CLOSED, 0, 0, RATE_OF_LIVE, generations=1),
    (HALF_OPEN, Event.LAST_FAILURE): After(OPEN, 2, 3, WINDOW, generations=1),
    (HALF_OPEN, Event.NO_EVIDENCE): SAME,
    (HALF_OPEN, Event.VERDICT_WAITS): SAME,
    (HALF_OPEN, Event.PASS_DIED): SAME,
    (HALF_OPEN, Event.PROBE_SUCCEEDED): IMPOSSIBLE,
    (HALF_OPEN, Event.PROBE_FAILED): IMPOSSIBLE,
    (HALF_OPEN, Event.LAST_PROBE_FAILED): IMPOSSIBLE,
    (HALF_OPEN, Event.REFUSED_SENDS): REOPENED,
    (HALF_OPEN, Event.OVERTURNED): REOPENED,
    (HALF_OPEN, Event.OLD_SUCCESS): SAME,
    (HALF_OPEN, Event.OLD_FAILURE): SAME,
    (HALF_OPEN, Event.OLD_OVERTURNED): SAME,
    (HALF_OPEN, Event.EMPTY_DLQ): SAME,
    (HALF_OPEN, Event.COOLED_DOWN): SAME,
    (HALF_OPEN, Event.LETTER_TOO_EARLY): SAME,
    (HALF_OPEN, Event.LETTER_AFTER_COOL_DOWN): SAME,
    (HALF_OPEN, Event.LETTER_AS_LIVE_SUCCEEDS): SAME,
    (HALF_OPEN, Event.LETTER_AS_LIVE_FAILS): SAME,
    (HALF_OPEN, Event.LETTER_AS_LIVE_FAILS_FOR_LONG): SAME,
    (HALF_OPEN, Event.FORCED_OPEN): BY_HAND_OPEN,
    (HALF_OPEN, Event.FORCED_CLOSED): BY_HAND_CLOSED,
}


def possible() -> Iterator[tuple[State, Event, After]]:
    for (state, event), after in TABLE.items():
        if isinstance(after, After):
            yield state, event, after
        elif after == SAME:
            yield state, event, After.of(before(state, event))


POSSIBLE = list(possible())
IDS = [f"{state.value}-{event.name}" for state, event, _ in POSSIBLE]


def test_the_transition_table_lists_every_pair_of_state_and_event() -> None:
    assert set(TABLE) == set(product(State, Event))
    assert set(HAPPENS) == set(Event)


@pytest.mark.parametrize(("state", "event", "after"), POSSIBLE, ids=IDS)
def test_an_event_moves_the_circuit_as_the_transition_table_says(
    state: State, event: Event, after: After
) -> None:
    assert After.of(HAPPENS[event](before(state, event))) == after


@pytest.mark.parametrize(("state", "event", "after"), POSSIBLE, ids=IDS)
def test_every_change_of_state_starts_a_generation_and_a_clock_and_voids_what_is_out(
    state: State, event: Event, after: After
) -> None:
    circuit = before(state, event)
    out = a_batch(id=99, due_at=ahead(days=2))

    moved = HAPPENS[event](circuit)
    moved_with_out = HAPPENS[event](replace(circuit, pending=(out,)))

    assert (moved.generation > circuit.generation) is (moved.changed_at != circuit.changed_at)
    assert (moved.generation > circuit.generation) is (after.generations > 0)
    if moved_with_out.state is not state:
        voided = moved_with_out.judged_batch(99)
        assert moved_with_out.pending_batch(99) is None
        assert voided is not None
        assert (voided.verdict, voided.is_strike) == (Verdict.NO_EVIDENCE, False)


@pytest.mark.parametrize(("state", "event", "after"), POSSIBLE, ids=IDS)
def test_a_cool_down_is_drawn_when_the_breaker_opens_and_forgotten_with_every_change(
    state: State, event: Event, after: After
) -> None:
    circuit = before(state, event)

    moved = HAPPENS[event](circuit)

    if not after.generations:
        assert moved.cools_until == circuit.cools_until
    elif after.state is OPEN and event is not Event.FORCED_OPEN:
        assert moved.cools_until is not None
        assert moved.cools_until > moved.changed_at
    else:
        assert moved.cools_until is None
