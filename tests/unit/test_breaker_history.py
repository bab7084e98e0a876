"""No history takes the circuit beyond its bounds: passes that send, die, are refused, judge,
and people who overrule.
"""

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.breaker import (
    SMALLEST_WINDOW,
    failed,
    force,
    new_circuit,
    order,
    register_batch,
)
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.evidence import Evidence, LiveOutcome
from smart_redriver.engine.model.judging import charge, judge
from smart_redriver.engine.model.permit import (
    FLAPS_THAT_SHOW,
    allow,
    cool_down,
    cools_until,
    has_cooled_down,
    restart_window,
)
from tests.unit.circuits import all_failed, all_succeeded, nothing_known
from tests.unit.examples import NOW, QUEUE, a_batch
from tests.unit.judging import WELL, beside

SHARES = st.integers(0, 100)
ROLLS = st.floats(0, 1, exclude_max=True)
LIVE = st.sampled_from(LiveOutcome)
MINUTE = timedelta(minutes=1)


def share_of(count: int, share: int) -> int:
    return count * share // 100


class History(RuleBasedStateMachine):
    """A circuit in the hands of passes and people; what holds of it after every step is in the invariants."""

    @initialize(
        initial=st.integers(1, 20),
        more=st.integers(0, 100),
        canary=st.integers(1, 5),
        failures=st.integers(1, 4),
        successes=st.integers(1, 3),
    )
    def begin(self, initial: int, more: int, canary: int, failures: int, successes: int) -> None:
        self.settings = Settings(
            initial_window=initial,
            max_window=max(initial, canary) + more,
            canary_size=canary,
            failure_threshold=failures,
            success_threshold=successes,
        )
        self.now = NOW
        self.circuit = new_circuit(QUEUE, self.settings, NOW)

    # What happens.

    @rule(minutes=st.integers(1, 60))
    def time_passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE

    @rule(used=SHARES, live=LIVE, dies=st.booleans(), probes=st.integers(1, 40))
    def a_pass_sends(self, used: int, live: LiveOutcome, dies: bool, probes: int) -> None:
        before, permit = self.circuit, allow(self.circuit, self.settings, self.now, live)
        if not permit.limit:
            return
        tried_at = self.now + probes * MINUTE / 10
        circuit, batch = register_batch(before, permit, self.now, due_at=tried_at + 3 * MINUTE)
        if not dies:
            size = max(1, share_of(permit.limit, used))
            sent = replace(batch, size=size, last_try_at=tried_at, is_complete=True)
            circuit = circuit.with_batch(sent)
        self.write(circuit)

    @rule(
        succeeded=SHARES,
        failed=SHARES,
        vouched=st.booleans(),
        late=st.booleans(),
        roll=ROLLS,
    )
    def a_pass_judges(
        self, succeeded: int, failed: int, vouched: bool, late: bool, roll: float
    ) -> None:
        self.now += timedelta(hours=3) * late
        evidence = {
            one.id: self.witnessed(one, succeeded, failed, vouched) for one in self.circuit.pending
        }
        self.write(self.judged(self.circuit, evidence, roll))

    @rule(share=SHARES)
    def letters_return(self, share: int) -> None:
        circuit = self.circuit
        returns = {(one.id, False): share_of(one.size, share) for one in circuit.pending}
        returns |= {(one.id, False): share for one in circuit.judged}
        self.write(charge(circuit, returns))

    @precondition(lambda self: self.circuit.state is not State.OPEN)
    @rule(roll=ROLLS)
    def the_source_refuses(self, roll: float) -> None:
        self.write(failed(self.circuit, "AccessDenied", self.settings, self.now, roll))

    @rule(state=st.sampled_from((State.OPEN, State.CLOSED)))
    def a_person_overrules(self, state: State) -> None:
        self.write(force(self.circuit, state, "by hand", self.now))

    @rule(share=SHARES)
    def a_person_drains(self, share: int) -> None:
        window = max(1, share_of(self.settings.max_window, share))
        drain = Orders(drain_until=self.now + 60 * MINUTE, drain_window=window)
        self.write(order(self.circuit, drain, self.now))

    # What changes nothing.

    @rule(size=st.integers(1, 50), fails=st.booleans(), roll=ROLLS)
    def an_old_generation_changes_nothing(self, size: int, fails: bool, roll: float) -> None:
        batch = a_batch(
            id=10**6, size=size, generation=self.circuit.generation - 1, due_at=self.now
        )
        evidence = all_failed(batch) if fails else all_succeeded(batch)

        after = self.judged(replace(self.circuit, pending=(batch,)), {batch.id: evidence}, roll)

        assert self.what_moves(after) == self.what_moves(self.without_overturned(roll))

    @rule(roll=ROLLS)
    def no_evidence_changes_nothing(self, roll: float) -> None:
        # What returned from a batch whose pass died is evidence enough.
        pending = tuple(one for one in self.circuit.pending if one.is_complete or not one.returned)
        evidence = {one.id: nothing_known(one) for one in pending}

        after = self.judged(replace(self.circuit, pending=pending), evidence, roll)

        assert self.what_moves(after) == self.what_moves(self.without_overturned(roll))

    @rule(roll=ROLLS)
    def looking_twice_is_looking_once(self, roll: float) -> None:
        once = self.judged(self.circuit, {}, roll)

        assert self.judged(once, {}, roll) == once

    # What holds.

    @invariant()
    def the_window_stays_within_its_bounds(self) -> None:
        assert SMALLEST_WINDOW <= self.circuit.window <= self.settings.max_window

    @invariant()
    def no_more_is_out_than_the_largest_window_and_a_few_probes(self) -> None:
        probes = self.settings.failure_threshold * self.settings.canary_size
        assert self.circuit.outstanding <= self.settings.max_window + probes

    @invariant()
    def half_open_has_at_most_one_canary_out(self) -> None:
        if self.circuit.state is State.HALF_OPEN:
            assert len(self.circuit.pending) <= 1
            assert self.circuit.outstanding <= self.largest_canary

    @invariant()
    def open_has_nothing_out_and_lets_nothing_through_before_its_cool_down(self) -> None:
        if self.circuit.state is State.OPEN:
            assert not self.circuit.pending
            if not has_cooled_down(self.circuit, self.settings, self.now):
                assert self.limit(LiveOutcome.UNSEEN) == self.limit(LiveOutcome.FAILS) == 0
                assert self.limit(LiveOutcome.SUCCEEDS) == self.settings.canary_size

    @invariant()
    def a_circuit_that_is_not_closed_lets_through_canaries_only(self) -> None:
        if self.circuit.state is State.OPEN:
            assert all(self.limit(live) <= self.largest_canary for live in LiveOutcome)
        if self.circuit.state is State.HALF_OPEN:
            assert all(self.limit(live) <= self.largest_canary for live in LiveOutcome)

    @invariant()
    def no_cool_down_is_longer_than_the_longest(self) -> None:
        if self.circuit.state is State.OPEN:
            lasts = cools_until(self.circuit, self.settings) - self.circuit.changed_at
            assert lasts <= timedelta(seconds=self.settings.max_cool_down_seconds)
            assert lasts >= cool_down(1, self.settings, 0.0, may_flap=self.circuit.flaps > 0)

    @invariant()
    def what_is_out_is_of_this_generation_and_known_by_its_id(self) -> None:
        pending = self.circuit.pending
        assert {one.generation for one in pending} <= {self.circuit.generation}
        ids = [one.id for one in pending] + [one.id for one in self.circuit.judged]
        assert len(set(ids)) == len(ids)

    @invariant()
    def fewer_failures_in_a_row_are_counted_than_open_it(self) -> None:
        threshold = self.settings.failure_threshold
        assert 0 <= self.circuit.failure_count <= threshold
        if self.circuit.state is State.CLOSED:
            assert self.circuit.failure_count < threshold

    @invariant()
    def no_return_is_a_strike_where_the_batch_was_no_success(self) -> None:
        for one in self.circuit.judged:
            assert one.verdict is Verdict.SUCCESS or not one.is_strike

    @invariant()
    def only_a_shaken_circuit_remembers_that_the_consumer_flaps(self) -> None:
        assert self.circuit.flaps >= 0
        if self.circuit.state is State.CLOSED and self.circuit.flaps:
            assert self.circuit.is_shaken

    # How it is done.

    def write(self, circuit: Circuit) -> None:
        """As the state table does, whose every write raises the version; and a state never changes in silence."""
        before = self.circuit
        assert circuit.generation >= before.generation
        assert circuit.state is before.state or circuit.generation > before.generation
        self.circuit = replace(circuit, version=before.version + 1)

    @property
    def largest_canary(self) -> int:
        """Letters in a canary: a window only after a success, where the consumer is known to flap."""
        circuit, settings = self.circuit, self.settings
        if circuit.flaps < FLAPS_THAT_SHOW or not circuit.success_count:
            return max(settings.canary_size, settings.initial_window)
        return min(restart_window(circuit, settings), settings.max_window)

    def limit(self, live: LiveOutcome) -> int:
        return allow(self.circuit, self.settings, self.now, live).limit

    def judged(self, circuit: Circuit, evidence: dict[int, Evidence], roll: float) -> Circuit:
        return judge(circuit, evidence, self.settings, self.now, roll=roll)[0]

    def without_overturned(self, roll: float) -> Circuit:
        """The circuit as late returns alone leave it, which every look takes into account."""
        return self.judged(replace(self.circuit, pending=()), {}, roll)

    @staticmethod
    def what_moves(circuit: Circuit) -> Circuit:
        return replace(circuit, pending=(), judged=())

    @staticmethod
    def witnessed(batch: Batch, succeeded: int, failed: int, vouched: bool) -> Evidence:
        failing = max(batch.seen_again, share_of(batch.size, failed))
        if vouched:
            return beside(WELL, failed=failing, ours=batch.size)
        succeeding = min(share_of(batch.size, succeeded), batch.size - failing)
        return Evidence(
            succeeded=succeeding,
            failed=failing,
            met=batch.size,
            deleted=succeeding,
            were_tried=True,
            has_metrics=True,
        )


TestHistory = History.TestCase
TestHistory.settings = effort(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True
)
