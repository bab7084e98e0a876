"""What holds after any story of letters, consumers, passes and people who type commands, of which some die.

A letter that is edited is from then on what the edit made of it: as that it has to be somewhere, and as
nothing else may it be done. An undo makes it what it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
#: What an edit adds to a body, with a number that no other edit has.
MARK = "+"
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
    """One queue, and a person at the desk. `repeats_allowed` counts letters whose send a fault left unrecorded.

    `files` are all that commands have written, `deleted` those of deleted letters, which are nowhere else.
    """

    files: list[Path]
    deleted: list[Path]

    @initialize(fifo=st.booleans(), is_reporting=st.booleans())
    def begin(self, fifo: bool, is_reporting: bool) -> None:
        self.is_up = True
        reports = Reports() if is_reporting else None
        self.desk = Desk(fifo=fifo, consumer=Consumer(health=lambda _: self.is_up, reports=reports))
        self.folder = TemporaryDirectory()
        self.files, self.deleted = [], []
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
        delete = ("delete", "--all", *(["--from-dlq"] if is_dlq else []))
        self.stock(*delete)
        self.deleted.append(self.new_file())
        self.typed(*delete, "--export", str(self.deleted[-1]))

    @rule(is_dlq=st.booleans())
    def a_person_edits(self, is_dlq: bool) -> None:
        self.edit(is_dlq)

    @rule(is_dlq=st.booleans())
    def a_person_takes_an_edit_back(self, is_dlq: bool) -> None:
        """Of letters that all fail again."""
        file = self.edit(is_dlq)
        self.the_consumer_works(is_up=False, count=5)
        if file.exists():
            self.bring_back("undo", file)
        if not self.repeats_allowed:
            assert Counter(bodies_of(file)) <= Counter(self.desk.bodies(PARKING_LOT))

    @precondition(lambda self: any(one.exists() for one in self.files))
    @rule(data=st.data(), verb=st.sampled_from(["undo", "import"]))
    def a_person_brings_back(self, data: st.DataObject, verb: str) -> None:
        self.bring_back(
            verb, data.draw(st.sampled_from([one for one in self.files if one.exists()]))
        )

    @rule(move=MOVES, chosen=CALLS, mishap=MISHAPS)
    def a_command_meets_a_fault(
        self, move: tuple[str, ...], chosen: tuple[str, int], mishap: Mishap
    ) -> None:
        self.stock(*move)
        self.repeats_allowed += ONE_CALL
        self.typed(*move, script=nth(*chosen, mishap))

    @rule(is_dlq=st.booleans(), chosen=CALLS, mishap=MISHAPS)
    def an_edit_meets_a_fault(self, is_dlq: bool, chosen: tuple[str, int], mishap: Mishap) -> None:
        self.repeats_allowed += ONE_CALL
        self.edit(is_dlq, nth(*chosen, mishap))

    # What holds.

    @invariant()
    def every_letter_is_somewhere(self) -> None:
        """In a queue, done, or in a file that `delete` has written before."""
        kept = {body for file in self.deleted for body in bodies_of(file)}
        there = {*self.at_rest(), *self.desk.world.deliveries.done, *kept}

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
        assert self.desk.redriver.trace.faults == []
        self.folder.cleanup()

    # How.

    def stock(self, *command: str) -> None:
        """Have letters where the command looks for them, and none in another's hand: it could do nothing else."""
        is_in_lot = command[0] in ("replay", "delete", "edit") and "--from-dlq" not in command
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

    def edit(self, is_dlq: bool, script: Script = nothing) -> Path:
        """Have a command edit all letters of a queue; the file that keeps them as they were."""
        where = ["--from-dlq"] if is_dlq else []
        self.stock("edit", *where)
        file, mark = self.new_file(), f"{MARK}{len(self.files)}"
        edit = ("edit", "--all", *where, "--with", f"sed s/$/{mark}/", "--export", str(file))
        with self.changing(SOURCE) as made:
            self.typed(*edit, script=script)
        if script is nothing:
            assert made == Counter(f"{body}{mark}" for body in bodies_of(file))
        return file

    def bring_back(self, verb: str, file: Path) -> None:
        repeats = list(self.desk.redriver.witness.recorded_repeats)
        kept = ("--export", str(self.new_file())) if verb == "undo" else ()
        with self.changing(PARKING_LOT) as made:
            self.typed(verb, str(file), *kept)
        self.desk.redriver.witness.recorded_repeats = repeats  # it sends what is in no queue
        assert made <= Counter(bodies_of(file))

    def at_rest(self, but: frozenset[str] | set[str] = frozenset()) -> list[str]:
        return [
            one.body
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for one in self.desk.messages(queue)
            if one.message_id not in but
        ]

    def new_file(self) -> Path:
        self.files.append(Path(self.folder.name, f"{len(self.files)}.jsonl"))
        return self.files[-1]

    @contextmanager
    def changing(self, queue: str) -> Iterator[Counter[str]]:
        """What a command has sent to a queue meanwhile, at its end: the letters are that now."""
        before, made = Counter(self.desk.bodies(queue)), Counter[str]()
        yield made
        made.update(Counter(self.desk.bodies(queue)) - before)
        now = {letter_of(body): body for body in made}
        sent = self.desk.world.sent
        sent -= {body for body in sent if letter_of(body) in now}
        sent.update(now.values())


def letter_of(body: str) -> str:
    return body.partition(MARK)[0]


def bodies_of(file: Path) -> list[str]:
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line)["body"] for line in lines]


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
