"""What holds after any story of letters, consumers, passes and people who type commands, of which some die."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakes.faults import (
    Crash,
    Mishap,
    Script,
    Wire,
    ask_twice,
    die_after,
    die_before,
    lose_answer,
    nothing,
    nth,
    refuse,
)
from simulator.consumers import Consumer, Reports
from simulator.world import DLQ, PARKING_LOT, SOURCE, hours, minutes
from smart_redriver.oncall.terminal.exits import Exit
from tests.faults.errors import UNANSWERED, refusal
from tests.oncall.desk import Desk

#: For so long a pass or a command hides what it looks at.
_HIDDEN_SECONDS = 360
#: A batch call of SQS: what one fault may leave unrecorded.
ONE_CALL = 10

WRITES = ["SendMessageBatch", "BatchWriteItem", "DeleteMessageBatch", "PutItem", "UpdateItem"]
CALLS = st.tuples(
    st.sampled_from([*WRITES, "ReceiveMessage", "BatchGetItem"]),
    st.integers(min_value=0, max_value=2),
)
MISHAPS = st.sampled_from(
    [
        die_before,
        die_after,
        ask_twice,
        lose_answer(UNANSWERED[0]),
        refuse(refusal("SendMessageBatch", "RequestThrottled")),
    ]
)
WHY = ("--reason", "an incident", "--yes")
MOVES = st.sampled_from(
    [
        ("replay", "--all"),
        ("replay", "--all", "--from-dlq"),
        ("replay", "--contains", "1"),
        ("park", "--all"),
        ("park", "--contains", "2"),
        ("run",),
    ]
)
ORDERS = st.sampled_from(
    [
        ("pause",),
        ("pause", "--for", "20m"),
        ("resume",),
        ("open",),
        ("close",),
        ("drain", "--no-follow"),
        ("drain", "--no-follow", "--window", "20", "--for", "10m"),
    ]
)


class Nobody:
    """Lets time pass without a re-driver."""

    every = timedelta(days=1)

    def tick(self) -> None:
        """Nothing."""


class Incident(RuleBasedStateMachine):
    """One queue, and a person at the desk. `repeats_allowed` counts letters whose send a fault left unrecorded."""

    files: list[Path]

    @initialize(fifo=st.booleans(), is_reporting=st.booleans())
    def begin(self, fifo: bool, is_reporting: bool) -> None:
        self.is_up = True
        reports = Reports() if is_reporting else None
        self.desk = Desk(fifo=fifo, consumer=Consumer(health=lambda _: self.is_up, reports=reports))
        self.folder = TemporaryDirectory()
        self.files = []
        self.repeats_allowed = self.bodies = 0

    # What happens around the person.

    @rule(count=st.integers(min_value=1, max_value=12))
    def letters_die(self, count: int) -> None:
        first = self.bodies
        self.bodies += count
        self.desk.dead_letters(
            *(f"g{number % 3}-{number}" for number in range(first, first + count))
        )

    @rule(is_up=st.booleans(), count=st.sampled_from([1, 5, 30]))
    def the_consumer_works(self, is_up: bool, count: int) -> None:
        self.is_up = is_up
        self.desk.world.run(Nobody(), until=self.desk.world.elapsed + minutes(count))

    @rule(count=st.sampled_from([1, 7]))
    def nobody_does_anything(self, count: int) -> None:
        self.desk.world.clock.advance(count * 3600)

    @rule(count=st.integers(min_value=1, max_value=4))
    def passes_run(self, count: int) -> None:
        for _ in range(count):
            self.desk.redriver.pass_over(Wire())
            self.desk.world.run(Nobody(), until=self.desk.world.elapsed + minutes(1))

    @rule(chosen=CALLS, mishap=MISHAPS)
    def a_pass_meets_a_fault(self, chosen: tuple[str, int], mishap: Mishap) -> None:
        self.repeats_allowed += ONE_CALL
        self.desk.redriver.pass_over(Wire(nth(*chosen, mishap)))

    # What the person types.

    @rule(order=ORDERS)
    def a_person_steers(self, order: tuple[str, ...]) -> None:
        self.stock("--from-dlq")
        self.typed(*order)

    @rule(move=MOVES)
    def a_person_moves_letters(self, move: tuple[str, ...]) -> None:
        self.stock(*move)
        self.typed(*move)

    @rule(is_dlq=st.booleans())
    def a_person_deletes(self, is_dlq: bool) -> None:
        self.files.append(Path(self.folder.name, f"{len(self.files)}.jsonl"))
        delete = ("delete", "--all", *(["--from-dlq"] if is_dlq else []))
        self.stock(*delete)
        self.typed(*delete, "--export", str(self.files[-1]))

    @precondition(lambda self: any(one.exists() for one in self.files))
    @rule(data=st.data(), verb=st.sampled_from(["undo", "import"]))
    def a_person_brings_back(self, data: st.DataObject, verb: str) -> None:
        file = data.draw(st.sampled_from([one for one in self.files if one.exists()]))
        repeats = list(self.desk.redriver.witness.recorded_repeats)
        self.typed(verb, str(file))
        self.desk.redriver.witness.recorded_repeats = repeats  # it sends what is in no queue

    @rule(move=MOVES, chosen=CALLS, mishap=MISHAPS)
    def a_command_meets_a_fault(
        self, move: tuple[str, ...], chosen: tuple[str, int], mishap: Mishap
    ) -> None:
        self.stock(*move)
        self.repeats_allowed += ONE_CALL
        self.typed(*move, script=nth(*chosen, mishap))

    # What holds.

    @invariant()
    def every_letter_is_somewhere(self) -> None:
        """In a queue, done, or in a file that `delete` has written before."""
        there = {*self.at_rest(), *self.desk.world.deliveries.done, *self.kept()}

        assert self.desk.world.sent - there == set()

    @invariant()
    def only_faults_repeat_letters(self) -> None:
        entries = self.desk.redriver.witness.ledger().values()
        # What was sent on stays in its place in a FIFO queue until its fate is known.
        others = {one for e in entries for one in (*e.replaced_ids, e.kept_id) if one}
        copies = Counter(self.at_rest(others)) + self.desk.world.deliveries.done

        assert (copies - Counter(self.desk.world.sent)).total() <= self.repeats_allowed
        assert self.desk.redriver.witness.recorded_repeats == []

    @invariant()
    def letters_stay_as_they_were(self) -> None:
        assert self.desk.redriver.witness.altered == []

    def teardown(self) -> None:
        """In the end the consumer is mended and the person goes home: everything is done, parked, or in a file."""
        if not hasattr(self, "desk"):
            return
        self.is_up = True
        self.typed("resume")
        world = self.desk.world
        world.run(
            self.desk.redriver, until=world.elapsed + hours(80), stop=lambda: world.is_drained
        )
        assert world.is_drained
        self.every_letter_is_somewhere()
        self.only_faults_repeat_letters()
        self.letters_stay_as_they_were()
        assert self.repeats_allowed or self.desk.redriver.trace.faults == []
        self.folder.cleanup()

    # How.

    def stock(self, *command: str) -> None:
        """Have letters where the command looks for them, and none in another's hand: it could do nothing else."""
        is_in_lot = command[0] in ("replay", "delete") and "--from-dlq" not in command
        if not self.desk.messages(PARKING_LOT if is_in_lot else DLQ):
            self.letters_die(4)
            if is_in_lot:
                self.typed("park", "--all")
        self.desk.world.clock.advance(_HIDDEN_SECONDS)

    def typed(self, *arguments: str, script: Script = nothing) -> None:
        """Type a command that makes sense, which may be refused, or die."""
        why = WHY if arguments[0] not in ("resume", "run") else ("--yes",)
        self.desk.redriver.witness.note_what_the_ledger_knows()
        try:
            ran = self.desk(*arguments, *why, script=script)
        except Crash:
            return
        assert ran.code in (Exit.DONE, Exit.REFUSED, Exit.PARTLY), ran.said

    def at_rest(self, but: frozenset[str] | set[str] = frozenset()) -> list[str]:
        return [
            one.body
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for one in self.desk.messages(queue)
            if one.message_id not in but
        ]

    def kept(self) -> set[str]:
        lines = [
            line for one in self.files if one.exists() for line in one.read_text().splitlines()
        ]
        return {json.loads(line)["body"] for line in lines}


TestIncident = Incident.TestCase
TestIncident.settings = settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    stateful_step_count=15,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
