"""What holds after any story of producers, consumers, passes, crashes, faults and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fakes.faults import (
    Act,
    Call,
    Mishap,
    Response,
    Wire,
    ask_twice,
    die_after,
    die_before,
    hand_out_twice,
    lose_answer,
    meanwhile,
    nth,
    refuse,
)
from simulator.consumers import Consumer
from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE, World, hours, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import Circuit, Lease, State
from smart_redriver.engine.model.permit import allow
from smart_redriver.engine.passes.read import read_letters
from smart_redriver.engine.passes.send_back import Leaving, forward
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from tests.faults.errors import UNANSWERED, refusal
from tests.faults.scenes import TEN, WatchedRedriver

LIMIT = 1_048_576
SETTINGS = Settings(
    initial_window=3, max_window=8, canary_size=2, base_delay_seconds=30, max_delay_seconds=1200
)

#: Which call meets a mishap: the operation, and the how manieth of its kind. A pass that makes no such call meets none.
CALLS = st.tuples(
    st.sampled_from(
        [
            "ReceiveMessage",
            "BatchGetItem",
            "PutItem",
            "SendMessageBatch",
            "BatchWriteItem",
            "DeleteMessageBatch",
            "ChangeMessageVisibilityBatch",
            "DeleteItem",
        ]
    ),
    st.integers(min_value=0, max_value=2),
)


#: Whether letters are poison pills, and whether they have no room for redrive metadata.
SHARES = st.tuples(st.booleans(), st.booleans())


Verb = Callable[[Case], Leaving]


def replayed(case: Case) -> Leaving:
    """As `SendBack` does it."""
    metadata = case.replay_metadata(SOURCE)

    def record(new_id: str) -> Entry:
        return case.known(SOURCE).replayed(
            replaced_id=case.message_id,
            new_id=new_id,
            redrive_count=metadata.redrive_count,
            now=case.letter.sent_at,
            note="replayed by hand",
        )

    return Leaving(Outgoing(letter=case.letter, metadata=metadata, size_limit=LIMIT), record)


def parked(case: Case) -> Leaving:
    """As `redrive park` does it."""

    def record(new_id: str) -> Entry:
        return case.known(SOURCE).parked(
            replaced_id=case.message_id,
            new_id=new_id,
            reason="BY_HAND",
            strikes=0,
            now=case.letter.sent_at,
        )

    metadata = case.next_metadata(SOURCE, None)
    return Leaving(Outgoing(letter=case.letter, metadata=metadata, size_limit=LIMIT), record)


class Idle:
    """Lets time pass without a re-driver."""

    every = timedelta(days=1)

    def tick(self) -> None:
        """Nothing."""


class Story(RuleBasedStateMachine):
    """One queue's life. `repeats_allowed` counts the letters whose send nobody could have recorded."""

    @initialize(seed=st.integers(min_value=0, max_value=7))
    def begin(self, seed: int) -> None:
        self.is_up = True
        self.world = World(
            seed=seed, consumer=Consumer(health=lambda _: self.is_up), step=minutes(1)
        )
        self.redriver = WatchedRedriver(self.world, SETTINGS)
        self.repeats_allowed = 0
        self.has_lost_table = False
        self.bodies = 0

    # What happens around the re-driver.

    @rule(count=st.integers(min_value=1, max_value=14), share=SHARES)
    def letters_arrive(self, count: int, share: tuple[bool, bool]) -> None:
        """The consumer fails for two minutes on what producers just sent, and on all else that is there."""
        self.producers_send(count, share)
        was_up, self.is_up = self.is_up, False
        self.world.run(Idle(), until=self.world.elapsed + minutes(4))
        self.is_up = was_up

    @rule(count=st.integers(min_value=1, max_value=6), share=SHARES)
    def producers_send(self, count: int, share: tuple[bool, bool]) -> None:
        are_poison, have_ten_attributes = share
        for _ in range(count):
            body = f"body-{self.bodies}"
            self.bodies += 1
            attributes = {"MessageAttributes": TEN} if have_ten_attributes else {}
            self.world.sqs.send_message(
                QueueUrl=self.world.url(SOURCE), MessageBody=body, **attributes
            )
            self.world.sent.add(body)
            if are_poison:
                self.world.poison.add(body)

    @rule(is_up=st.booleans(), count=st.sampled_from([1, 4, 5, 10, 30]))
    def time_passes(self, is_up: bool, count: int) -> None:
        self.is_up = is_up
        self.world.run(Idle(), until=self.world.elapsed + minutes(count))

    @rule(count=st.sampled_from([1, 6]))
    def nobody_polls(self, count: int) -> None:
        self.world.clock.advance(count * 3600)

    @rule(state=st.sampled_from(State))
    def a_person_forces_the_circuit(self, state: State) -> None:
        self.force(state)

    @rule(count=st.integers(min_value=1, max_value=4))
    def a_person_replays(self, count: int) -> None:
        self.by_hand(count, replayed)

    @rule(count=st.integers(min_value=1, max_value=4))
    def a_person_parks(self, count: int) -> None:
        self.by_hand(count, parked)

    @rule()
    def the_table_is_lost(self) -> None:
        """Only the ledger knows of copies that were sent and are still there, so that these may go once more."""
        replaced = {one for e in self.redriver.witness.ledger().values() for one in e.replaced_ids}
        left = [
            message
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for message in self.world.sqs.inspect.messages(queue)
            if message.message_id in replaced
        ]
        if left or self.redriver.circuit is None:
            return
        dynamodb = self.world.dynamodb
        for item in dynamodb.scan(TableName=TABLE, ConsistentRead=True)["Items"]:
            dynamodb.delete_item(TableName=TABLE, Key={"PK": item["PK"]})
        self.has_lost_table = True

    # Passes.

    @rule()
    def pass_runs(self) -> None:
        before = self.redriver.circuit
        report = self.redriver.pass_over(Wire())

        assert report is not None
        self.check_what_moved(before, report)

    @rule(count=st.integers(min_value=2, max_value=8), is_up=st.booleans())
    def the_schedule_runs(self, count: int, is_up: bool) -> None:
        for _ in range(count):
            self.time_passes(is_up, 5)
            self.pass_runs()

    @rule(chosen=CALLS, side=st.sampled_from([die_before, die_after]))
    def a_pass_dies(self, chosen: tuple[str, int], side: Mishap) -> None:
        self.unlucky_pass(chosen, side)

    @rule(
        chosen=CALLS,
        mishap=st.sampled_from(
            [
                refuse(refusal("SendMessageBatch", "RequestThrottled")),
                lose_answer(UNANSWERED[0]),
                ask_twice,
            ]
        ),
    )
    def a_call_fails(self, chosen: tuple[str, int], mishap: Mishap) -> None:
        self.unlucky_pass(chosen, mishap)

    @rule(number=st.integers(min_value=0, max_value=2))
    def letters_are_handed_out_twice(self, number: int) -> None:
        self.unlucky_pass(("ReceiveMessage", number), hand_out_twice)

    @rule(chosen=CALLS)
    def two_passes_run_at_once(self, chosen: tuple[str, int]) -> None:
        self.unlucky_pass(chosen, meanwhile(lambda: self.redriver.pass_over(Wire())))

    @rule(chosen=CALLS, state=st.sampled_from(State))
    def a_person_forces_the_circuit_during_a_pass(
        self, chosen: tuple[str, int], state: State
    ) -> None:
        self.unlucky_pass(chosen, meanwhile(lambda: self.force(state)))

    # What holds.

    @invariant()
    def every_letter_is_somewhere_and_only_those_of_an_unrecorded_send_are_in_two_places(
        self,
    ) -> None:
        copies, once = self.copies(), Counter(self.world.sent)

        assert once - copies == Counter()
        assert (copies - once).total() <= self.repeats_allowed
        assert self.redriver.witness.recorded_repeats == []

    @invariant()
    def letters_stay_as_they_were(self) -> None:
        assert self.redriver.witness.altered == []

    @invariant()
    def the_window_stays_in_its_bounds(self) -> None:
        circuit = self.redriver.circuit
        assert circuit is None or 1 <= circuit.window <= SETTINGS.max_window

    @invariant()
    def a_half_open_circuit_has_one_canary_out(self) -> None:
        """Where the consumer flaps, the second one is a batch."""
        circuit = self.redriver.circuit
        if circuit is None or circuit.state is not State.HALF_OPEN:
            return
        awaited = {batch.id for batch in circuit.pending}
        metadata = self.redriver.witness.metadata
        letters = {
            metadata[message.message_id].original_id
            for message in self.world.sqs.inspect.messages(SOURCE)
            if message.message_id in metadata and metadata[message.message_id].batch in awaited
        }
        canary = allow(replace(circuit, pending=()), SETTINGS, self.world.clock.now()).limit
        assert len(letters) <= canary
        assert circuit.outstanding <= canary
        assert all(batch.generation == circuit.generation for batch in circuit.pending)

    @invariant()
    def the_ledger_counts_every_redrive_that_some_metadata_counts(self) -> None:
        """Once a record was lost only the metadata has the true count, and decisions heed the higher of both."""
        if not (self.repeats_allowed or self.has_lost_table):
            assert self.redriver.witness.behind_the_metadata() == []

    def teardown(self) -> None:
        """In the end the consumer is mended, and everything is done or parked."""
        if not hasattr(self, "world"):
            return
        self.is_up = True
        self.world.poison.clear()
        self.world.run(
            self.redriver,
            until=self.world.elapsed + hours(48),
            stop=lambda: self.world.is_drained,
        )
        assert self.world.is_drained
        assert not self.redriver.witness.unanswered
        self.every_letter_is_somewhere_and_only_those_of_an_unrecorded_send_are_in_two_places()
        self.letters_stay_as_they_were()
        assert self.has_lost_table or self.redriver.trace.faults == []

    # How.

    def unlucky_pass(self, chosen: tuple[str, int], mishap: Mishap) -> None:
        if not self.world.depth(DLQ):
            self.letters_arrive(3, (False, False))
        struck: list[Call] = []

        def strike(call: Call, act: Act) -> Response:
            struck.append(call)
            return mishap(call, act)

        wire = Wire(nth(*chosen, strike))
        self.redriver.pass_over(wire)
        self.repeats_allowed += sum(unrecorded_sends(wire, call.number) for call in struck)

    def by_hand(self, count: int, verb: Verb) -> None:
        """What a command does with letters of the DLQ: its lease, then the same send, record, delete as a pass."""
        tools, now = self.redriver.tools(), self.world.clock.now()
        lease = Lease(owner="a person", expires_at=now + minutes(1))
        if not tools.memory.acquire_lease(lease, now):
            return
        read = read_letters(tools.dead_letters, tools.memory, count, hidden_for=minutes(1))
        leaving = [verb(case) for case in read.cases if not case.is_replaced]
        send = tools.sources[0].deliver if verb is replayed else tools.parking_lot.park
        forward(leaving, send, out_of=tools.dead_letters, ledger=tools.memory, now=now)
        tools.memory.release_lease(lease)

    def force(self, state: State) -> None:
        circuit = self.redriver.circuit
        if circuit is not None:
            forced = breaker.force(circuit, state, "by hand", self.world.clock.now())
            self.redriver.store.save_circuit(forced)

    def copies(self) -> Counter[str]:
        """Of each letter those at rest and those done, but not what the ledger says is only to be deleted."""
        replaced = {one for e in self.redriver.witness.ledger().values() for one in e.replaced_ids}
        at_rest = Counter(
            message.body
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for message in self.world.sqs.inspect.messages(queue)
            if message.message_id not in replaced
        )
        return at_rest + self.world.deliveries.done

    def check_what_moved(self, before: Circuit | None, report: Report) -> None:
        """A circuit that a pass moved towards OPEN was moved by a batch of the circuit's own generation.

        Or by further failed tries of what its failed batches have left in the source queue.
        """
        after = self.redriver.circuit
        if before is None or after is None:
            return
        opened = after.state is State.OPEN and before.state is not State.OPEN
        if not opened and after.failure_count <= before.failure_count:
            return
        of_this_generation = {
            *(one.id for one in before.pending if one.generation == before.generation),
            *(one.id for one in before.judged if one.generation == before.generation),
        }
        failed = {one.id for one in after.judged if one.verdict is Verdict.FAILURE}
        failed -= {one.id for one in before.judged if one.verdict is Verdict.FAILURE}
        # An opened circuit has nothing left any more: what its failed batches left then counts as it was before.
        has_left = before.left_failing or after.left_failing
        assert failed & of_this_generation or report.outcome is Outcome.REFUSED or has_left


def unrecorded_sends(wire: Wire, number: int) -> int:
    """The letters of the one batch call whose sends the ledger had not been told of when the mishap came."""
    letters = 0
    for call in wire.calls[: number + 1]:
        if call.operation == "SendMessageBatch":
            letters += len(call.request["Entries"])
        elif call.operation == "BatchWriteItem" and call.number < number:
            letters = 0
    return letters


TestStory = Story.TestCase
TestStory.settings = settings(
    derandomize=True,
    deadline=None,
    max_examples=250,
    stateful_step_count=25,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
