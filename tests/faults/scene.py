"""A moment just before a pass, and what to say of it when all is over."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from fakes.faults import Script, Wire, nothing
from simulator.consumers import Consumer
from simulator.sources import Source
from simulator.world import DLQ, SOURCE, TABLE, World, hours, minutes
from smart_redriver.consumer import Consumer as Author
from smart_redriver.consumer.report import reports
from smart_redriver.engine.aws import items
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    RedriveMetadata,
    metadata_attribute,
)
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL
from smart_redriver.engine.model.batch import Batch, Judged, Verdict
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.verdict import LIVE_PATIENCE
from smart_redriver.engine.passes.send_back import ENTRIES_PER_WRITE
from smart_redriver.engine.report import Report
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, Result, report_fields
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.faults.likeness import likeness
from tests.faults.watched import WatchedRedriver

#: Another queue that uses the same DLQ and that the re-driver does not serve.
STRANGER = "invoices"
#: The batch that the scenes' returned letters come from, and one judged before it.
BATCH, EARLIER_BATCH = 17, 11
#: Letters that one batch call can hold.
ONE_CALL = ENTRIES_PER_CALL
#: Letters that a round may have sent and not yet recorded, where a pass redrives more than a round.
UNRECORDED = -(-ENTRIES_PER_WRITE // ENTRIES_PER_CALL) * ENTRIES_PER_CALL

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a8:1"
SOME = {
    "kind": {"DataType": "String.json", "StringValue": '{"a":1}'},
    "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
}
TEN = {f"n{n}": {"DataType": "Number.int", "StringValue": str(n + 1)} for n in range(10)}

#: How long ago letters that came back were redriven first, unless said otherwise: so long that the last try of one
#: with strikes was its last chance.
A_WORKING_DAY = timedelta(seconds=Settings().last_chance_seconds) + hours(1)

#: Complaints by the moment from which the schedule went on, see `Scene.complaints`.
_HEARD: dict[bytes, tuple[list[str], list[str]]] = {}


@dataclass(kw_only=True)
class Scene:
    """A world before a pass.

    Attributes:
        doomed: bodies that have to end in the parking lot. `undecided`: those that may end there or be done.
        verdicts: what `BATCH` has to be judged in the end, by source queue.
        repeats_allowed: letters that a crash may repeat: those whose send nobody could have recorded.
        days_after: how long to watch what is parked after all else is done.

    """

    world: World
    redriver: WatchedRedriver
    doomed: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    repeats_allowed: int = ONE_CALL
    days_after: int = 0
    batch_sent_at: datetime | None = None

    # The pass, and what came of it.

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    @property
    def circuit(self) -> Circuit:
        return self.circuit_of(SOURCE)

    def circuit_of(self, queue: str) -> Circuit:
        circuit = self.redriver.store.of(queue).load_circuit()
        assert circuit is not None
        return circuit

    def run_pass(self, script: Script = nothing) -> tuple[Wire, Report | None]:
        wire = Wire(script)
        return wire, self.redriver.pass_over(wire)

    def complaints(
        self, *, repeats_allowed: int = 0, ledger_missed_a_write: bool = False
    ) -> list[str]:
        """Let the schedule go on over good wires until all is done, and hear what went wrong.

        What follows from a moment that was there before was heard then, and is not played again.
        """
        moment = likeness((self, repeats_allowed))
        if moment not in _HEARD:
            _HEARD[moment] = self._play_on(repeats_allowed)
        found, of_ledger = _HEARD[moment]
        return [*found] if ledger_missed_a_write else [*found, *of_ledger]

    def _play_on(self, repeats_allowed: int) -> tuple[list[str], list[str]]:
        """What went wrong in the end, and what is wrong with the ledger."""
        until = self.world.elapsed + hours(24)
        self.world.run(self.redriver, until=until, stop=self._is_over)
        for _ in range(0, self.days_after, 3):
            self.world.clock.advance(3 * 86_400)
            self.redriver.tick()
        witness = self.redriver.witness
        found = witness.complaints(
            doomed=self.doomed, undecided=self.undecided, repeats_allowed=repeats_allowed
        )
        return found + self._verdict_complaints(), witness.ledger_complaints()

    def _is_over(self) -> bool:
        """Where days are skipped nothing awaits its verdict either,
        or the metrics of all those minutes were asked for.
        """
        circuit = self.redriver.store.of(SOURCE).load_circuit()
        awaited = circuit.pending if circuit else ()
        return self.world.is_drained and not (self.days_after and awaited)

    def _verdict_complaints(self) -> list[str]:
        judged = {queue: self.circuit_of(queue).judged_batch(BATCH) for queue in self.verdicts}
        fell = {queue: one and one.verdict for queue, one in judged.items()}
        return [f"wrong verdicts: {fell}"] if fell != self.verdicts else []

    def is_told(self, report: Report, operation: str, code: str) -> bool:
        """Whether both the report and the log name the call and the code."""
        in_log = any(
            event in ("call.failed", "entry.failed")
            and (fields["call"], fields["code"]) == (operation, code)
            for event, fields in self.redriver.journal
        )
        return in_log and report.faults[f"{operation}:{code}"] > 0

    # What was before.

    def post(self, body: str, *, queue: str = SOURCE, **fields: Any) -> str:
        """A producer's message, with attributes unless others are given; its MessageId."""
        self.world.sent.add(body)
        return self._put(body, queue, {"MessageAttributes": SOME} | fields)

    def post_fresh(self, count: int, *, queue: str = SOURCE) -> None:
        """Letters on their first way to the DLQ; every other one with group and trace header."""
        trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}
        for n in range(count):
            extra = (
                {"MessageGroupId": "tenant-7", "MessageSystemAttributes": trace} if n % 2 else {}
            )
            self.post(
                f"fresh-{n}" if queue == SOURCE else f"{queue}-fresh-{n}", queue=queue, **extra
            )

    def post_returning(
        self,
        body: str,
        *,
        queue: str = SOURCE,
        count: int = 1,
        batch: int = BATCH,
        strikes: int = 0,
        attributes: dict[str, Any] = SOME,
        tried_for: timedelta = A_WORKING_DAY,
        cause: str | None = None,
        **fields: Any,
    ) -> RedriveMetadata:
        """A letter that was redriven before, in the ledger and with its metadata, on its way to the DLQ again.

        One with ten attributes has its metadata in the ledger. Its first redrive, and its first strike if it has any,
        were `tried_for` ago. `cause`: what its consumer said that it failed of.
        """
        metadata = self._metadata_of(body, queue, count=count, batch=batch)
        has_room = len(attributes) < 10
        carried = {METADATA_ATTRIBUTE: metadata_attribute(metadata)} if has_room else {}
        message_id = self.post(body, queue=queue, MessageAttributes=attributes | carried, **fields)
        first = self.now - tried_for
        entry = Entry(
            original_id=metadata.original_id,
            queue=queue,
            first_seen=first,
            status=Status.REDRIVEN,
            current_id=message_id,
            replaced_ids=(metadata.original_id,),
            redrive_count=count,
            strikes=strikes,
            batch=batch,
            counted_batch=EARLIER_BATCH,
            generation=2,
            first_redrive=first,
            last_redrive=self.now,
            first_strike=first if strikes else None,
            cause=cause,
        )
        kept = [] if has_room else [(message_id, metadata)]
        self.redriver.store.write_ledger([entry], kept, self.now)
        return metadata

    def begin_batch(self, *, successes: int = 0, queue: str = SOURCE) -> None:
        """The batch whose letters are posted next is on its way; so many of it are done already."""
        self.batch_sent_at = self.batch_sent_at or self.now
        for n in range(successes):
            self._put(f"{queue} done-{n}", queue, {"MessageAttributes": SOME})
        url, done = self.world.url(queue), 0
        while done < successes:
            answer = self.world.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
            for message in answer["Messages"]:
                self.world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                done += 1

    def report(self, result: Result, *bodies: str, receive: int = 1) -> None:
        """The consumer reports of messages with these bodies, wherever they are, in one report."""
        self.send_outcomes(*self.outcomes(result, *bodies, receive=receive))

    def outcomes(self, result: Result, *bodies: str, receive: int = 1) -> list[DeliveryOutcome]:
        """What the consumer has to say of them."""
        there = [
            message
            for queue in (*self.world.source_names, DLQ)
            for message in self.world.sqs.inspect.messages(queue)
        ]
        metadata = [
            (one, RedriveMetadata.decode(one.attributes[METADATA_ATTRIBUTE]["StringValue"]))
            if METADATA_ATTRIBUTE in one.attributes
            else (one, None)
            for one in there
            if one.body in bodies
        ]
        assert len(metadata) == len(bodies)
        return [
            DeliveryOutcome(
                queue=SOURCE,
                message_id=one.message_id,
                original_id=metadata.original_id if metadata else one.message_id,
                batch=metadata.batch if metadata else None,
                generation=metadata.generation if metadata else None,
                result=result,
                receive_count=receive,
                error_class="Declined" if result is Result.FAILED else None,
                traceback="line 7" if result is Result.FAILED else None,
            )
            for one, metadata in metadata
        ]

    def send_outcomes(self, *outcomes: DeliveryOutcome) -> None:
        for body in reports(Author(name="orders-consumer"), map(report_fields, outcomes)):
            self.send_report(body)

    def send_report(self, body: str) -> None:
        url = self.world.outcome_queue_url
        self.world.sqs.send_message(QueueUrl=url, MessageBody=body)

    def do_and_report(self, *bodies: str) -> None:
        """Letters of `BATCH` that the consumer is done with, and has said so."""
        self.batch_sent_at = self.batch_sent_at or self.now
        for body in bodies:
            self.post_returning(body)
        self.report(Result.SUCCEEDED, *bodies)
        url = self.world.url(SOURCE)
        for message in self.world.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)[
            "Messages"
        ]:
            self.world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        self.world.sent.difference_update(bodies)  # they are done, and nobody else's to look for

    def bury(self) -> None:
        """Let everything in the source queues fail until SQS has moved it to the DLQ, and the metrics are written."""
        for _ in range(4):
            for queue in (*self.world.source_names, STRANGER):
                while self.world.sqs.receive_message(
                    QueueUrl=self.world.url(queue), MaxNumberOfMessages=10
                ).get("Messages"):
                    pass
            self.world.clock.advance(31)
        self.world.clock.advance(240)

    def let_live_messages_speak(self) -> None:
        """So much time passes after `BATCH` that its returns need not wait for producers' messages any more."""
        self.world.clock.advance(LIVE_PATIENCE.total_seconds())

    def set_circuit(self, queue: str = SOURCE, **changes: Any) -> None:
        """The circuit as it stands when the pass begins: CLOSED and tried, unless said otherwise."""
        circuit = replace(
            new_circuit(queue, self.redriver.settings, self.now),
            **{
                "version": 20,
                "generation": 2,
                "window": 20,
                "changed_at": self.now - hours(2),
                "judged": (self.judged_earlier(),),
                **changes,
            },
        )
        self.world.dynamodb.put_item(TableName=TABLE, Item=items.circuit_to_item(circuit))

    def batch(self, size: int, *, is_due: bool = True) -> Batch:
        """The batch that awaits its verdict, of which `post_returning` and `begin_batch` made letters."""
        sent_at = self.batch_sent_at or self.now - minutes(12)
        return Batch(
            id=BATCH,
            generation=2,
            sent_at=sent_at,
            first_try_at=sent_at,
            last_try_at=sent_at,
            due_at=self.now if is_due else self.now + minutes(20),
            size=size,
        )

    def judged_earlier(self, *, returned: int = 0) -> Judged:
        """The batch that `EARLIER_BATCH` names."""
        return Judged(
            id=EARLIER_BATCH,
            generation=2,
            verdict=Verdict.SUCCESS,
            is_strike=True,
            sent_at=self.now - hours(3),
            size=20,
            returned=returned,
        )

    def _metadata_of(self, body: str, queue: str, *, count: int, batch: int) -> RedriveMetadata:
        return RedriveMetadata(
            queue=queue,
            original_id="id-" + re.sub(r"\W", "-", body),
            redrive_count=count,
            first_seen=self.now - hours(3),
            batch=batch,
            generation=2,
        )

    def _put(self, body: str, queue: str, fields: dict[str, Any]) -> str:
        sent = self.world.sqs.send_message(
            QueueUrl=self.world.url(queue), MessageBody=body, **fields
        )
        message_id: str = sent["MessageId"]
        return message_id


def a_scene(
    settings: Settings | None = None,
    *,
    neighbours: tuple[Source, ...] = (),
    consumer: Consumer = Consumer(),  # noqa: B008 - a value
) -> Scene:
    """Empty queues, healthy consumers, and a stranger that shares the DLQ."""
    world = World(seed=4, consumer=consumer, step=minutes(2.5), neighbours=neighbours)
    source = world.sqs.get_queue_attributes(
        QueueUrl=world.url(SOURCE), AttributeNames=["RedrivePolicy"]
    )
    world.sqs.create_queue(QueueName=STRANGER, Attributes=source["Attributes"])
    return Scene(world=world, redriver=WatchedRedriver(world, settings))
