"""How verdicts move the circuit, and what it permits: every pair of state and event, then the bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.breaker import (
    SMALLEST_WINDOW,
    Permit,
    allow,
    charge,
    cool_down,
    force,
    has_cooled_down,
    judge,
    new_circuit,
    order,
    refuse,
    register_batch,
)
from redrive.core.circuit import Batch, Circuit, Depth, Orders, State, Verdict
from redrive.core.verdict import Evidence
from redrive.settings import Settings
from tests.unit.examples import NOW, QUEUE, a_batch, a_circuit, ahead

SETTINGS = Settings(max_window=16)
SEEN = Evidence(saw_every_letter=True)
GENERATION = 2


def judged(circuit: Circuit, evidence: Evidence = SEEN, now: datetime = NOW) -> Circuit:
    return judge(circuit, evidence, SETTINGS, now)[0]


def judging(**batch: Any) -> Callable[[Circuit], Circuit]:
    """The event that a batch like this, of the size of the window, is judged."""

    def happen(circuit: Circuit) -> Circuit:
        one = a_batch(**{"size": circuit.window, "generation": circuit.generation} | batch)
        return judged(replace(circuit, pending=(one,)))

    return happen


def of_an_older_generation(**batch: Any) -> Callable[[Circuit], Circuit]:
    return judging(generation=GENERATION - 1, **batch)


def overturned(circuit: Circuit) -> Circuit:
    """The event that letters of a batch return after it was judged a success."""
    batch = a_batch(size=1, generation=circuit.generation)
    success = circuit.settled(batch, Verdict.SUCCESS, is_strike=True, overturned_at=1)
    return judged(charge(success, {(batch.id, False): 1}))


def cooled_down(circuit: Circuit) -> Circuit:
    """The event that time passes beyond every cool-down, and no letter is there to send."""
    now = ahead(days=1)
    allow(circuit, SETTINGS, now)
    return judged(circuit, now=now)


def canary_sent(circuit: Circuit) -> Circuit:
    """The event that a letter is about to be sent after the cool-down."""
    now = ahead(days=1)
    permit = allow(circuit, SETTINGS, now)
    return register_batch(circuit, permit, now, due_at=now)[0]


class Event(Enum):
    SUCCESS = auto()
    FAILURE = auto()
    LAST_SUCCESS = auto()
    LAST_FAILURE = auto()
    NO_EVIDENCE = auto()
    VERDICT_WAITS = auto()
    REFUSED_SENDS = auto()
    OLD_SUCCESS = auto()
    OLD_FAILURE = auto()
    OVERTURNED = auto()
    EMPTY_DLQ = auto()
    COOLED_DOWN = auto()
    LETTER_SENT = auto()
    FORCED_OPEN = auto()
    FORCED_CLOSED = auto()


HAPPENS: dict[Event, Callable[[Circuit], Circuit]] = {
    Event.SUCCESS: judging(),
    Event.FAILURE: judging(returned=100),
    Event.LAST_SUCCESS: judging(),
    Event.LAST_FAILURE: judging(returned=100),
    Event.NO_EVIDENCE: judging(is_complete=False),
    Event.VERDICT_WAITS: judging(due_at=ahead(minutes=1)),
    Event.REFUSED_SENDS: lambda circuit: refuse(circuit, "AccessDenied", SETTINGS, NOW),
    Event.OLD_SUCCESS: of_an_older_generation(),
    Event.OLD_FAILURE: of_an_older_generation(returned=100),
    Event.OVERTURNED: overturned,
    Event.EMPTY_DLQ: judged,
    Event.COOLED_DOWN: cooled_down,
    Event.LETTER_SENT: canary_sent,
    Event.FORCED_OPEN: lambda circuit: force(circuit, State.OPEN, "by hand", NOW),
    Event.FORCED_CLOSED: lambda circuit: force(circuit, State.CLOSED, "by hand", NOW),
}

#: One short of each threshold, where the event is the last that it takes.
COUNTS = {
    Event.LAST_SUCCESS: {"success_count": SETTINGS.success_threshold - 1},
    Event.LAST_FAILURE: {"failure_count": SETTINGS.failure_threshold - 1},
}

BEFORE = {
    State.CLOSED: a_circuit(window=8, failure_count=1),
    State.OPEN: a_circuit(state=State.OPEN, window=8, consecutive_opens=2, failure_count=3),
    State.HALF_OPEN: a_circuit(
        state=State.HALF_OPEN, window=8, consecutive_opens=2, failure_count=3
    ),
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


CLOSED, OPEN, HALF_OPEN = State.CLOSED, State.OPEN, State.HALF_OPEN
SAME = {state: After.of(circuit) for state, circuit in BEFORE.items()}
#: No batch of an OPEN circuit's own generation exists: opening voids all, and none is registered before HALF_OPEN.
IMPOSSIBLE = None

TABLE: dict[tuple[State, Event], After | None] = {
    (CLOSED, Event.SUCCESS): After(CLOSED, 0, 0, 16),
    (CLOSED, Event.FAILURE): After(CLOSED, 2, 0, 4),
    (CLOSED, Event.LAST_SUCCESS): After(CLOSED, 0, 0, 16),
    (CLOSED, Event.LAST_FAILURE): After(OPEN, 3, 1, 4, generations=1),
    (CLOSED, Event.NO_EVIDENCE): SAME[CLOSED],
    (CLOSED, Event.VERDICT_WAITS): SAME[CLOSED],
    (CLOSED, Event.REFUSED_SENDS): After(CLOSED, 2, 0, 4),
    (CLOSED, Event.OLD_SUCCESS): SAME[CLOSED],
    (CLOSED, Event.OLD_FAILURE): SAME[CLOSED],
    (CLOSED, Event.OVERTURNED): After(CLOSED, 2, 0, 4),
    (CLOSED, Event.EMPTY_DLQ): SAME[CLOSED],
    (CLOSED, Event.COOLED_DOWN): SAME[CLOSED],
    (CLOSED, Event.LETTER_SENT): SAME[CLOSED],
    (CLOSED, Event.FORCED_OPEN): After(OPEN, 0, 1, 8, generations=1),
    (CLOSED, Event.FORCED_CLOSED): After(CLOSED, 0, 0, 1, generations=1),
    (OPEN, Event.SUCCESS): IMPOSSIBLE,
    (OPEN, Event.FAILURE): IMPOSSIBLE,
    (OPEN, Event.LAST_SUCCESS): IMPOSSIBLE,
    (OPEN, Event.LAST_FAILURE): IMPOSSIBLE,
    (OPEN, Event.NO_EVIDENCE): IMPOSSIBLE,
    (OPEN, Event.VERDICT_WAITS): IMPOSSIBLE,
    (OPEN, Event.REFUSED_SENDS): IMPOSSIBLE,
    (OPEN, Event.OLD_SUCCESS): SAME[OPEN],
    (OPEN, Event.OLD_FAILURE): SAME[OPEN],
    (OPEN, Event.OVERTURNED): IMPOSSIBLE,
    (OPEN, Event.EMPTY_DLQ): SAME[OPEN],
    (OPEN, Event.COOLED_DOWN): SAME[OPEN],
    (OPEN, Event.LETTER_SENT): After(HALF_OPEN, 3, 2, 8, generations=1),
    (OPEN, Event.FORCED_OPEN): After(OPEN, 0, 1, 8, generations=1),
    (OPEN, Event.FORCED_CLOSED): After(CLOSED, 0, 0, 1, generations=1),
    (HALF_OPEN, Event.SUCCESS): SAME[HALF_OPEN],
    (HALF_OPEN, Event.FAILURE): After(OPEN, 3, 3, 8, generations=1),
    (HALF_OPEN, Event.LAST_SUCCESS): After(CLOSED, 0, 2, 1, generations=1),
    (HALF_OPEN, Event.LAST_FAILURE): After(OPEN, 2, 3, 8, generations=1),
    (HALF_OPEN, Event.NO_EVIDENCE): SAME[HALF_OPEN],
    (HALF_OPEN, Event.VERDICT_WAITS): SAME[HALF_OPEN],
    (HALF_OPEN, Event.REFUSED_SENDS): After(OPEN, 3, 3, 8, generations=1),
    (HALF_OPEN, Event.OLD_SUCCESS): SAME[HALF_OPEN],
    (HALF_OPEN, Event.OLD_FAILURE): SAME[HALF_OPEN],
    (HALF_OPEN, Event.OVERTURNED): After(OPEN, 3, 3, 8, generations=1),
    (HALF_OPEN, Event.EMPTY_DLQ): SAME[HALF_OPEN],
    (HALF_OPEN, Event.COOLED_DOWN): SAME[HALF_OPEN],
    (HALF_OPEN, Event.LETTER_SENT): SAME[HALF_OPEN],
    (HALF_OPEN, Event.FORCED_OPEN): After(OPEN, 0, 1, 8, generations=1),
    (HALF_OPEN, Event.FORCED_CLOSED): After(CLOSED, 0, 0, 1, generations=1),
}

POSSIBLE = [(*pair, after) for pair, after in TABLE.items() if after is not IMPOSSIBLE]


def test_the_transition_table_lists_every_pair_of_state_and_event() -> None:
    assert set(TABLE) == set(product(State, Event))


@pytest.mark.parametrize(
    ("state", "event", "after"), POSSIBLE, ids=[f"{one[0].value}-{one[1].name}" for one in POSSIBLE]
)
def test_an_event_moves_the_circuit_as_the_transition_table_says(
    state: State, event: Event, after: After
) -> None:
    before = replace(BEFORE[state], **COUNTS.get(event, {}))

    moved = HAPPENS[event](before)

    unmoved = event in COUNTS and after == SAME[state]
    assert After.of(moved) == (After.of(before) if unmoved else after)


@pytest.mark.parametrize(
    ("state", "event", "after"), POSSIBLE, ids=[f"{one[0].value}-{one[1].name}" for one in POSSIBLE]
)
def test_every_change_of_state_starts_a_generation_and_a_clock_and_voids_what_is_out(
    state: State, event: Event, after: After
) -> None:
    waiting = a_batch(id=99, due_at=ahead(days=2))
    before = replace(BEFORE[state], **COUNTS.get(event, {}))

    moved = HAPPENS[event](before)
    moved_with_waiting = HAPPENS[event](replace(before, pending=(waiting,)))

    assert (moved.generation > before.generation) is (moved.changed_at != before.changed_at)
    assert (moved.state is before.state) or moved.generation == before.generation + 1
    if moved_with_waiting.state is not before.state:
        assert moved_with_waiting.pending_batch(99) is None


def test_a_batch_voided_by_a_change_of_state_is_no_evidence_and_no_strike() -> None:
    waiting = a_batch(id=99, due_at=ahead(days=2))

    forced = force(a_circuit(pending=(waiting,)), State.OPEN, "by hand", NOW)

    voided = forced.judged_batch(99)
    assert voided is not None
    assert (voided.verdict, voided.is_strike) == (Verdict.NO_EVIDENCE, False)


def test_a_new_circuit_is_closed_with_the_initial_window() -> None:
    circuit = new_circuit(QUEUE, Settings(initial_window=7), NOW)

    assert (circuit.state, circuit.window, circuit.version) == (State.CLOSED, 7, 0)
    assert allow(circuit, Settings(initial_window=7), NOW).limit == 7


# The window.


def test_success_doubles_the_window_up_to_the_maximum() -> None:
    circuit, windows = a_circuit(window=3), []
    for _ in range(4):
        circuit = judging()(circuit)
        windows.append(circuit.window)

    assert windows == [6, 12, 16, 16]


def test_a_window_that_was_not_used_is_not_doubled() -> None:
    assert judging(size=3)(a_circuit(window=8)).window == 8


def test_failure_halves_the_window_down_to_one_letter() -> None:
    patient = replace(SETTINGS, failure_threshold=100)
    circuit, windows = a_circuit(window=9), []
    for number in range(5):
        batch = a_batch(id=number, returned=4)
        circuit = judge(replace(circuit, pending=(batch,)), SEEN, patient, NOW)[0]
        windows.append(circuit.window)

    assert windows == [4, 2, 1, 1, 1]


def test_failures_need_to_be_in_a_row_to_open_the_circuit() -> None:
    fail, succeed = judging(returned=100), judging()

    interrupted = fail(fail(succeed(fail(fail(a_circuit())))))
    in_a_row = fail(interrupted)

    assert interrupted.state is State.CLOSED
    assert in_a_row.state is State.OPEN


def test_canaries_need_to_succeed_in_a_row_to_close_the_circuit() -> None:
    half_open = a_circuit(state=State.HALF_OPEN, consecutive_opens=1)
    once = judging(size=1)(half_open)

    assert once.state is State.HALF_OPEN
    assert judging(size=1)(once).state is State.CLOSED

    again = canary_sent(judging(size=1, returned=1)(once))
    again = replace(again, pending=())
    assert judging(size=1)(again).state is State.HALF_OPEN


def test_the_circuit_says_why_it_opened() -> None:
    opened = judging(returned=100)(a_circuit(failure_count=2))

    assert opened.reason.startswith("3 failed batches in a row")
    assert opened.changed_at == NOW


# The permit.


@pytest.mark.parametrize(
    ("window", "out", "limit"), [(8, 0, 8), (8, 3, 5), (8, 8, 0), (8, 11, 0), (100, 0, 16)]
)
def test_a_closed_circuit_permits_what_is_free_of_its_window(
    window: int, out: int, limit: int
) -> None:
    pending = (a_batch(size=out),) if out else ()

    permit = allow(a_circuit(window=window, pending=pending), SETTINGS, NOW)

    assert (permit.limit, permit.is_canary) == (limit, False)


def test_several_batches_share_one_window() -> None:
    pending = (a_batch(id=1, size=2), a_batch(id=2, size=3))

    assert allow(a_circuit(window=8, pending=pending), SETTINGS, NOW).limit == 3


def test_after_a_failure_only_one_batch_is_out_at_a_time() -> None:
    failed = judging(returned=100)(a_circuit(window=16))
    registered = register_batch(failed, allow(failed, SETTINGS, NOW), NOW, due_at=NOW)[0]

    assert 0 < allow(failed, SETTINGS, NOW).limit <= failed.window
    assert allow(registered, SETTINGS, NOW).limit == 0


def test_an_open_circuit_permits_nothing_until_its_cool_down_is_over() -> None:
    circuit = a_circuit(state=State.OPEN, consecutive_opens=1, changed_at=NOW)
    ends = ahead(seconds=SETTINGS.cool_down_seconds)

    before = allow(circuit, SETTINGS, ends - timedelta(seconds=1))
    after = allow(circuit, SETTINGS, ends)

    assert before.limit == 0
    assert before.reason == "OPEN, cooling down until 2026-01-10T12:01:00Z"
    assert (after.limit, after.is_canary) == (SETTINGS.canary_size, True)
    assert not has_cooled_down(circuit, SETTINGS, ends - timedelta(seconds=1))
    assert has_cooled_down(circuit, SETTINGS, ends)


def test_a_half_open_circuit_permits_one_canary_at_a_time() -> None:
    half_open = a_circuit(state=State.HALF_OPEN)

    free = allow(half_open, SETTINGS, NOW)
    busy = allow(replace(half_open, pending=(a_batch(size=1),)), SETTINGS, NOW)

    assert (free.limit, free.is_canary) == (SETTINGS.canary_size, True)
    assert busy.limit == 0


@pytest.mark.parametrize(
    ("consecutive_opens", "seconds"),
    [(0, 60), (1, 60), (2, 120), (3, 240), (5, 960), (6, 1800), (7, 1800), (10_000, 1800)],
)
def test_the_cool_down_doubles_with_every_opening_up_to_its_maximum(
    consecutive_opens: int, seconds: int
) -> None:
    circuit = a_circuit(state=State.OPEN, consecutive_opens=consecutive_opens)

    assert cool_down(circuit, SETTINGS) == timedelta(seconds=seconds)


def test_a_failed_canary_reopens_the_circuit_with_a_longer_cool_down() -> None:
    circuit = a_circuit(state=State.OPEN, consecutive_opens=1)
    cool_downs = []
    for _ in range(7):
        half_open = replace(canary_sent(circuit), pending=())
        circuit = judging(size=1, returned=1)(half_open)
        cool_downs.append(cool_down(circuit, SETTINGS).total_seconds())

    assert cool_downs == [120, 240, 480, 960, 1800, 1800, 1800]


def test_a_success_after_closing_makes_the_next_cool_down_short_again() -> None:
    closed = judging(size=1)(a_circuit(state=State.HALF_OPEN, consecutive_opens=5, success_count=1))
    failing = judging(returned=100)

    proven = judging(size=1)(closed)
    reopened = failing(failing(failing(proven)))

    assert closed.consecutive_opens == 5
    assert reopened.state is State.OPEN
    assert cool_down(reopened, SETTINGS) == timedelta(seconds=60)


def test_a_probe_that_failed_leaves_the_window_as_it_was() -> None:
    """It says that now is not the time, and nothing about the window's size."""
    shaken = a_circuit(window=8, is_shaken=True)

    assert judging(size=1, is_probe=True, returned=1)(shaken).window == 8
    assert judging(size=1, is_probe=True, returned=1)(shaken).failure_count == 1


def test_a_full_batch_follows_a_probe_that_succeeded() -> None:
    shaken = a_circuit(window=8, is_shaken=True)
    probe = allow(shaken, SETTINGS, NOW)

    probed = judging(size=1, is_probe=True)(shaken)

    assert (probe.limit, probe.is_probe) == (SETTINGS.canary_size, True)
    assert allow(probed, SETTINGS, NOW).limit == 8


# What people order.


def test_a_drain_raises_a_closed_circuits_window_at_once_and_never_lowers_it() -> None:
    drain = Orders(drain_until=ahead(hours=1), drain_window=12)

    assert order(a_circuit(window=8), drain, NOW).window == 12
    assert order(a_circuit(window=16), drain, NOW).window == 16


@pytest.mark.parametrize("state", [State.OPEN, State.HALF_OPEN])
def test_a_drain_does_not_overrule_the_breaker(state: State) -> None:
    drain = Orders(drain_until=ahead(hours=1), drain_window=12)

    ordered = order(a_circuit(state=state, window=8), drain, NOW)

    assert (ordered.state, ordered.window, ordered.orders) == (state, 8, drain)


@pytest.mark.parametrize(
    ("orders", "pauses"),
    [
        (Orders(), False),
        (Orders(is_paused=True), True),
        (Orders(is_paused=True, paused_until=ahead(seconds=1)), True),
        (Orders(is_paused=True, paused_until=NOW), False),
    ],
)
def test_a_pause_lasts_until_its_time_or_until_resumed(orders: Orders, pauses: bool) -> None:
    assert orders.pauses(NOW) is pauses


# Batches that are announced and never completed, and returns that come late.


def test_an_announced_batch_counts_in_full_against_the_window() -> None:
    circuit = a_circuit(window=8, version=20)

    registered, batch = register_batch(
        circuit, Permit(limit=8, reason=""), NOW, due_at=ahead(minutes=20)
    )

    assert (batch.id, batch.generation, batch.size) == (21, GENERATION, 8)
    assert not batch.is_complete
    assert registered.last_attempt_at == NOW
    assert allow(registered, SETTINGS, NOW).limit == 0


def test_a_batch_that_a_dead_pass_left_behind_opens_the_window_again_when_it_is_due() -> None:
    announced, _ = register_batch(
        a_circuit(window=8), Permit(limit=8, reason=""), NOW, due_at=ahead(minutes=20)
    )

    before = judged(announced, now=ahead(minutes=19))
    after = judged(announced, now=ahead(minutes=20))

    assert before.outstanding == 8
    assert (after.outstanding, after.window, after.failure_count) == (0, 8, 0)


def test_an_announced_canary_is_of_the_new_generation() -> None:
    cooled = a_circuit(state=State.OPEN, consecutive_opens=1, success_count=1)

    half_open, canary = register_batch(
        cooled, allow(cooled, SETTINGS, NOW), NOW, due_at=ahead(minutes=20)
    )

    assert (half_open.state, half_open.success_count) == (State.HALF_OPEN, 0)
    assert canary.generation == half_open.generation == GENERATION + 1


def success_of(size: int, *, generation: int = GENERATION) -> Circuit:
    """A CLOSED circuit that has just judged a batch of this size a success, seeing nothing returned."""
    batch = a_batch(size=size, generation=generation)
    return judged(a_circuit(pending=(batch,)))


def test_a_success_falls_when_as_many_return_late_as_would_have_failed_it() -> None:
    almost = judged(charge(success_of(4), {(7, False): 1}))
    fallen = judged(charge(almost, {(7, False): 1}))

    judged_batch = fallen.judged_batch(7)
    assert almost.failure_count == 0
    assert fallen.failure_count == 1
    assert judged_batch is not None
    assert (judged_batch.verdict, judged_batch.is_strike) == (Verdict.FAILURE, False)


def test_a_success_falls_only_once() -> None:
    fallen = judged(charge(success_of(4), {(7, False): 3}))

    assert judged(charge(fallen, {(7, False): 1})).failure_count == 1


def test_suspects_that_return_late_overturn_nothing() -> None:
    assert judged(charge(success_of(4), {(7, True): 4})).failure_count == 0


def test_a_success_of_an_older_generation_falls_without_moving_the_circuit() -> None:
    """Its letters' strikes are taken back all the same: they spoke against nobody."""
    moved_on = replace(success_of(4), generation=GENERATION + 1)

    fallen = judged(charge(moved_on, {(7, False): 4}))

    judged_batch = fallen.judged_batch(7)
    assert (fallen.failure_count, fallen.window) == (0, moved_on.window)
    assert judged_batch is not None
    assert not judged_batch.is_strike


def test_returns_are_charged_to_the_batch_that_they_come_from() -> None:
    circuit = a_circuit(pending=(a_batch(id=1), a_batch(id=2)))

    charged = charge(circuit, {(1, False): 2, (2, True): 1, (3, False): 5})

    first, second = charged.pending
    assert (first.returned, first.suspects_returned) == (2, 0)
    assert (second.returned, second.suspects_returned) == (0, 1)


def test_a_return_that_was_seen_no_longer_passes_for_unexplained_growth() -> None:
    depth = Depth(letters=10, at=NOW, unexplained=5)

    assert charge(a_circuit(depth=depth), {(1, False): 2}).depth == replace(depth, unexplained=3)


def test_growth_that_was_charged_to_one_batch_is_not_charged_to_the_next() -> None:
    first, second = a_batch(id=1, size=1), a_batch(id=2, size=1)
    circuit = a_circuit(
        pending=(first, second), depth=Depth(letters=10, at=NOW, unexplained=1), failure_count=0
    )

    after, rulings = judge(circuit, Evidence(unexplained=1), SETTINGS, NOW)

    verdicts = [ruling.judgement.verdict for ruling in rulings]
    assert verdicts == [Verdict.FAILURE, Verdict.SUCCESS]
    assert after.depth == Depth(letters=10, at=NOW)


def test_batches_are_judged_oldest_first_until_one_changes_the_state() -> None:
    pending = tuple(a_batch(id=number, returned=4) for number in (1, 2))

    after, rulings = judge(a_circuit(failure_count=2, pending=pending), SEEN, SETTINGS, NOW)

    (ruling,) = rulings
    assert (ruling.batch.id, ruling.before, ruling.after) == (1, State.CLOSED, State.OPEN)
    assert after.consecutive_opens == 1
    assert after.pending == ()


def test_a_verdict_that_waits_is_told_and_changes_nothing() -> None:
    circuit = a_circuit(pending=(a_batch(due_at=ahead(minutes=1)),))

    after, (ruling,) = judge(circuit, SEEN, SETTINGS, NOW)

    assert after == circuit
    assert ruling.judgement.verdict is None


# Bounds, over any history.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "judge", "crash", "refuse", "open", "close", "late returns"]),
        st.integers(0, 40),  # minutes that pass
        st.integers(1, 100),  # per cent of the permit that is used
        st.integers(0, 100),  # per cent of each batch that returns
        st.integers(0, 20),  # letters of unexplained growth
    ),
    max_size=40,
)


class History:
    """A circuit in the hands of passes that are used, killed, refused and overruled."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now = NOW
        self.circuit = new_circuit(QUEUE, settings, NOW)

    def live(self, what: str, minutes: int, used: int, returning: int, growth: int) -> None:
        self.now += timedelta(minutes=minutes)
        match what:
            case "send" | "crash":
                self._send(used, is_complete=what == "send")
            case "judge":
                self._judge(returning, growth)
            case "late returns":
                ids = [batch.id for batch in self.circuit.judged]
                self.circuit = charge(self.circuit, {(one, False): returning for one in ids})
            case "refuse" if self.circuit.state is not State.OPEN:
                self.circuit = refuse(self.circuit, "refused", self.settings, self.now)
            case "open":
                self.circuit = force(self.circuit, State.OPEN, "by hand", self.now)
            case "close":
                self.circuit = force(self.circuit, State.CLOSED, "by hand", self.now)
        self.circuit = replace(self.circuit, version=self.circuit.version + 1)

    def _send(self, used: int, *, is_complete: bool) -> None:
        permit = allow(self.circuit, self.settings, self.now)
        if permit.limit:
            due_at = self.now + timedelta(minutes=20)
            self.circuit, batch = register_batch(self.circuit, permit, self.now, due_at=due_at)
            if is_complete:
                size = max(1, permit.limit * used // 100)
                self.circuit = self.circuit.with_batch(replace(batch, size=size, is_complete=True))

    def _judge(self, returning: int, growth: int) -> None:
        pending: tuple[Batch, ...] = self.circuit.pending
        returns = {(one.id, False): one.outstanding * returning // 100 for one in pending}
        circuit = charge(self.circuit, returns)
        self.circuit, _ = judge(circuit, Evidence(unexplained=growth), self.settings, self.now)


@given(
    STEPS,
    st.integers(1, 20),
    st.integers(0, 100),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_no_history_takes_the_circuit_beyond_its_bounds(
    steps: list[tuple[str, int, int, int, int]],
    initial: int,
    more: int,
    canary: int,
    threshold: int,
) -> None:
    settings = Settings(
        initial_window=initial,
        max_window=max(initial, canary) + more,
        canary_size=canary,
        failure_threshold=threshold,
    )
    history = History(settings)

    for step in steps:
        before = history.circuit
        history.live(*step)
        after = history.circuit

        assert SMALLEST_WINDOW <= after.window <= settings.max_window
        assert after.outstanding <= settings.max_window
        assert after.generation >= before.generation
        assert after.state is before.state or after.generation > before.generation
        assert after.state is not State.OPEN or not after.pending
        if after.state is State.HALF_OPEN:
            assert len(after.pending) <= 1
            assert after.outstanding <= canary
        assert len({batch.id for batch in after.pending}) == len(after.pending)
        assert 0 <= after.failure_count <= threshold
        assert cool_down(after, settings) <= timedelta(seconds=settings.max_cool_down_seconds)
        assert allow(after, settings, history.now).limit + after.outstanding <= max(
            settings.max_window, canary
        )
