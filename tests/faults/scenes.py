"""Moments just before a pass, one for each kind of pass there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fakes.faults import Crash, Script, Wire, nothing
from redrive.aws import items
from redrive.core.breaker import new_circuit
from redrive.core.circuit import Batch, Circuit, Judged, State, Verdict
from redrive.core.ledger import Entry, Status
from redrive.core.letter import TRAIL_ATTRIBUTE, Trail, trail_attribute
from redrive.core.report import Report
from redrive.settings import Settings
from simulator.consumers import Consumer
from simulator.smart_policy import SmartPolicy
from simulator.world import SOURCE, TABLE, World, hours, minutes
from tests.faults.witness import Witness

#: Another queue that uses the same DLQ and that the re-driver does not serve.
STRANGER = "invoices"
#: The batch that the scenes' returned letters come from, and one judged before it.
BATCH, EARLIER_BATCH = 17, 11
#: Letters that one batch call can hold.
ONE_CALL = 10

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a8:1"
SOME = {
    "kind": {"DataType": "String.json", "StringValue": '{"a":1}'},
    "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
}
TEN = {f"n{n}": {"DataType": "Number.int", "StringValue": str(n + 1)} for n in range(10)}


class WatchedRedriver(SmartPolicy):
    """Our policy with its log kept, a witness beside it, and a wire that can be bad."""

    def __init__(self, world: World, settings: Settings | None = None) -> None:
        super().__init__(world, settings)
        self.journal: list[tuple[str, dict[str, Any]]] = []
        self.witness = Witness(world)
        self._aws = world
        self._passes = 0

    def tick(self) -> None:
        """One pass over a good wire."""
        self.pass_over(Wire())

    def pass_over(self, wire: Wire) -> Report | None:
        """One pass; None when it died."""
        self._passes += 1
        self.witness.note_what_the_ledger_knows()
        try:
            return self.run_pass(
                wire.to(self._aws.sqs),
                wire.to(self._aws.dynamodb),
                cloudwatch=wire.to(self._aws.cloudwatch),
                owner=f"invocation-{self._passes}",
            )
        except Crash:
            return None

    def _note(self, event: str, /, **fields: Any) -> None:
        super()._note(event, **fields)
        self.journal.append((event, fields))


@dataclass(kw_only=True)
class Scene:
    """A world before a pass.

    Attributes:
        doomed: bodies that have to end in the parking lot. `undecided`: those that may end there or be done.
        verdict: what the batch that awaits one has to be judged.
        days_after: how long to watch what is parked after all else is done.

    """

    world: World
    redriver: WatchedRedriver
    doomed: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)
    verdict: Verdict | None = None
    days_after: int = 0

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def run_pass(self, script: Script = nothing) -> tuple[Wire, Report | None]:
        wire = Wire(script)
        return wire, self.redriver.pass_over(wire)

    def complaints(
        self, *, repeats_allowed: int = 0, ledger_missed_a_write: bool = False
    ) -> list[str]:
        """Let the schedule go on over good wires until all is done, and hear what went wrong."""
        until = self.world.elapsed + hours(24)
        self.world.run(self.redriver, until=until, stop=lambda: self.world.is_drained)
        for _ in range(0, self.days_after, 3):
            self.world.clock.advance(3 * 86_400)
            self.redriver.tick()
        witness = self.redriver.witness
        found = witness.complaints(
            doomed=self.doomed, undecided=self.undecided, repeats_allowed=repeats_allowed
        )
        found += self._verdict_complaints()
        return found if ledger_missed_a_write else found + witness.ledger_complaints()

    def _verdict_complaints(self) -> list[str]:
        judged = self.circuit.judged_batch(BATCH)
        verdict = judged and judged.verdict
        return [f"wrong verdict: {verdict}"] if self.verdict not in (None, verdict) else []

    def is_told(self, report: Report, operation: str, code: str) -> bool:
        """Whether both the report and the log name the call and the code."""
        in_log = any(
            event in ("call.failed", "entry.failed")
            and (fields["call"], fields["code"]) == (operation, code)
            for event, fields in self.redriver.journal
        )
        return in_log and report.faults[f"{operation}:{code}"] > 0

    def post(self, body: str, *, queue: str = SOURCE, **fields: Any) -> str:
        """A producer's message, with attributes unless others are given; its MessageId."""
        fields = {"MessageAttributes": SOME} | fields
        self.world.sent.add(body)
        sent = self.world.sqs.send_message(
            QueueUrl=self.world.url(queue), MessageBody=body, **fields
        )
        message_id: str = sent["MessageId"]
        return message_id

    def post_fresh(self, count: int) -> None:
        """Letters on their first way to the DLQ; every other one with group and trace header."""
        trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}
        for n in range(count):
            extra = (
                {"MessageGroupId": "tenant-7", "MessageSystemAttributes": trace} if n % 2 else {}
            )
            self.post(f"fresh-{n}", **extra)

    def post_returning(
        self,
        body: str,
        *,
        count: int = 1,
        batch: int = BATCH,
        strikes: int = 0,
        attributes: dict[str, Any] = SOME,
    ) -> None:
        """A letter that was redriven before, in the ledger and with its trail, on its way to the DLQ again.

        One with ten attributes has its trail in the ledger.
        """
        trail = Trail(
            queue=SOURCE,
            original_id="id-" + re.sub(r"\W", "-", body),
            redrive_count=count,
            first_seen=self.now - hours(3),
            batch=batch,
            generation=2,
        )
        has_room = len(attributes) < 10
        carried = {TRAIL_ATTRIBUTE: trail_attribute(trail)} if has_room else {}
        message_id = self.post(body, MessageAttributes=attributes | carried)
        entry = Entry(
            original_id=trail.original_id,
            queue=SOURCE,
            first_seen=trail.first_seen,
            status=Status.REDRIVEN,
            current_id=message_id,
            replaced_ids=(trail.original_id,),
            redrive_count=count,
            strikes=strikes,
            batch=batch,
            settled_batch=EARLIER_BATCH,
            generation=2,
        )
        kept = [] if has_room else [(message_id, trail)]
        self.redriver.store.write_ledger([entry], kept, self.now)

    def bury(self) -> None:
        """Let everything in the source queues fail until SQS has moved it to the DLQ, and counts settle."""
        for _ in range(4):
            for queue in (SOURCE, STRANGER):
                while self.world.sqs.receive_message(
                    QueueUrl=self.world.url(queue), MaxNumberOfMessages=10
                ).get("Messages"):
                    pass
            self.world.clock.advance(31)
        self.world.clock.advance(120)

    def set_circuit(self, **changes: Any) -> None:
        """The circuit as it stands when the pass begins: CLOSED and tried, unless said otherwise."""
        circuit = replace(
            new_circuit(SOURCE, self.redriver.settings, self.now),
            **{"version": 20, "generation": 2, "window": 20, "changed_at": self.now - hours(2)}
            | {"judged": (JUDGED_EARLIER,)}
            | changes,
        )
        self.world.dynamodb.put_item(TableName=TABLE, Item=items.circuit_to_item(circuit))

    def batch(self, size: int, *, is_due: bool = True) -> Batch:
        """The batch that awaits its verdict."""
        return Batch(
            id=BATCH,
            generation=2,
            sent_at=self.now - minutes(12),
            first_try_at=self.now - minutes(11),
            due_at=self.now + timedelta() if is_due else self.now + minutes(20),
            size=size,
        )

    @property
    def circuit(self) -> Circuit:
        circuit = self.redriver.circuit
        assert circuit is not None
        return circuit


JUDGED_EARLIER = Judged(
    id=EARLIER_BATCH,
    generation=2,
    verdict=Verdict.SUCCESS,
    is_strike=True,
    sent_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def a_scene(settings: Settings | None = None) -> Scene:
    """Three empty queues, a healthy consumer, and a stranger that shares the DLQ."""
    world = World(seed=4, consumer=Consumer(), step=minutes(2.5))
    source = world.sqs.get_queue_attributes(
        QueueUrl=world.url(SOURCE), AttributeNames=["RedrivePolicy"]
    )
    world.sqs.create_queue(QueueName=STRANGER, Attributes=source["Attributes"])
    return Scene(world=world, redriver=WatchedRedriver(world, settings))


def fresh_letters() -> Scene:
    scene = a_scene()
    scene.post_fresh(12)
    scene.bury()
    scene.set_circuit()
    return scene


def a_good_batch_and_its_returns() -> Scene:
    scene = a_scene()
    scene.post_returning("returned")
    scene.post_returning("returned often", count=3, strikes=2)
    scene.post_fresh(2)
    scene.bury()
    scene.set_circuit(pending=(scene.batch(10),))
    scene.verdict = Verdict.SUCCESS
    return scene


def a_failed_batch_and_live_traffic() -> Scene:
    scene = a_scene()
    scene.post_returning("returned")
    scene.post_returning("returned, too")
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(pending=(scene.batch(4),))
    scene.verdict = Verdict.FAILURE
    return scene


def the_first_canary() -> Scene:
    scene = a_scene()
    scene.post_returning("returned")
    scene.post_fresh(2)
    scene.bury()
    scene.set_circuit(state=State.OPEN, consecutive_opens=1, window=1, is_shaken=True)
    return scene


def the_next_canary() -> Scene:
    scene = a_scene()
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(state=State.HALF_OPEN, window=1, pending=(scene.batch(1),))
    return scene


def a_canary_that_came_back() -> Scene:
    scene = a_scene()
    scene.post_returning("returned")
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(state=State.HALF_OPEN, window=1, pending=(scene.batch(1),))
    scene.verdict = Verdict.FAILURE
    return scene


def letters_to_park() -> Scene:
    scene = a_scene()
    scene.post_returning("five strikes", strikes=5, count=6)
    scene.post_returning("fifteen redrives", count=15, batch=EARLIER_BATCH)
    scene.post("stranger's", queue=STRANGER)
    scene.post("too large" + "." * 2000)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(1)
    scene.bury()
    scene.world.sqs.set_queue_attributes(
        QueueUrl=scene.world.url(SOURCE), Attributes={"MaximumMessageSize": "1024"}
    )
    scene.set_circuit(pending=(scene.batch(10),))
    return scene


def letters_to_hold() -> Scene:
    scene = a_scene(Settings(base_delay_seconds=900, max_delay_seconds=1800))
    scene.post_returning("awaits its verdict")
    scene.post_returning("backs off for half an hour", count=3, batch=EARLIER_BATCH)
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(window=20, pending=(scene.batch(12, is_due=False),))
    return scene


def letters_without_room_for_a_trail() -> Scene:
    scene = a_scene()
    scene.post("ten attributes", MessageAttributes=TEN)
    scene.post_returning("ten attributes, returned", attributes=TEN)
    scene.post_returning("ten attributes, poison", attributes=TEN, strikes=5, count=5)
    scene.doomed = {"ten attributes, poison"}
    scene.bury()
    scene.set_circuit(pending=(scene.batch(10),))
    return scene


def letters_near_expiry_in_an_outage() -> Scene:
    scene = a_scene()
    scene.post("sent thirteen days ago")
    scene.undecided = {"sent thirteen days ago"}  # a canary may be quicker than the next sweep
    scene.bury()
    scene.world.clock.advance(12.5 * 86_400)
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(state=State.OPEN, consecutive_opens=9, changed_at=scene.now - minutes(1))
    return scene


def parked_letters_to_renew() -> Scene:
    scene = a_scene()
    scene.post_returning("five strikes", strikes=5, count=6)
    scene.post("ten attributes, stranger's", queue=STRANGER, MessageAttributes=TEN)
    scene.doomed = set(scene.world.sent)
    scene.bury()
    scene.set_circuit()
    scene.run_pass()
    scene.world.clock.advance(8 * 86_400)
    scene.post_fresh(1)
    scene.bury()
    scene.set_circuit(version=40)
    scene.days_after = 9
    return scene


def more_than_a_round() -> Scene:
    scene = a_scene()
    for n in range(12):
        scene.post_returning(f"poison-{n}", strikes=5, count=6)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(92)
    scene.bury()
    scene.set_circuit(window=200, pending=(scene.batch(40),))
    return scene


def three_of_each() -> Scene:
    """Every batch call of the pass has three entries."""
    scene = a_scene(Settings(base_delay_seconds=900, max_delay_seconds=1800))
    for n in range(3):
        scene.post_returning(f"five strikes-{n}", strikes=5, count=6)
    scene.doomed = set(scene.world.sent)
    for n in range(3):
        scene.post_returning(f"backs off for half an hour-{n}", count=3, batch=EARLIER_BATCH)
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(window=12, pending=(scene.batch(10),))
    return scene


def a_bit_of_everything() -> Scene:
    """Small, and with every call that a pass can make: sends, parks, discards, holds, a verdict, CloudWatch."""
    scene = a_scene()
    scene.post_returning("five strikes", strikes=5, count=6)
    scene.doomed = set(scene.world.sent)
    scene.post_returning("backs off for half an hour", count=3, batch=EARLIER_BATCH)
    scene.post("ten attributes", MessageAttributes=TEN)
    scene.post_fresh(3)
    scene.bury()
    scene.redriver.settings = Settings(base_delay_seconds=900, max_delay_seconds=1800)
    scene.set_circuit(window=12, pending=(scene.batch(2),))
    return scene


SCENES: tuple[Callable[[], Scene], ...] = (
    fresh_letters,
    a_good_batch_and_its_returns,
    a_failed_batch_and_live_traffic,
    the_first_canary,
    the_next_canary,
    a_canary_that_came_back,
    letters_to_park,
    letters_to_hold,
    letters_without_room_for_a_trail,
    letters_near_expiry_in_an_outage,
    parked_letters_to_renew,
    more_than_a_round,
    a_bit_of_everything,
)
