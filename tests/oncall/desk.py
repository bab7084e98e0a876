"""One person on call: a simulated deployment with its letters, and the command to look after it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import typer

from fakes.faults import Script, Wire, nothing
from fakes.sqs import Message, Rest
from simulator.consumers import Consumer
from simulator.sources import Source
from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE, Conditions, World
from smart_redriver.engine.aws.queues import owner_of
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.passes.apply import Parking
from smart_redriver.engine.passes.read import read_letters
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Park, ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.wiring import dead_letters_of, parking_lot_of, sources_of
from smart_redriver.oncall.cli import Asked, app
from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.faults.scenes import WatchedRedriver
from tests.oncall.fakes import (
    STACK,
    FakeAlarms,
    FakeCloudFormation,
    FakeFunction,
    FakeIam,
    FakeKms,
    FakeLogs,
    FakeScheduler,
    FakeSns,
    FakeSts,
    FakeTable,
    OneAtATime,
    outputs_of,
)
from tests.oncall.ran import Ran

#: Put together once: `app` would do so for every command that is typed.
COMMAND = typer.main.get_command(app)


def park_all(
    sqs: Any, deployment: Deployment, store: StateStore, now: datetime, reason: ParkReason
) -> None:
    """Park every letter of the DLQ, as a pass does."""
    dlq, lot = dead_letters_of(deployment, sqs), parking_lot_of(deployment, sqs)
    sources = sources_of(deployment, sqs)

    def name_of(case: Case) -> str:
        owner = owner_of(sources, source_arn=case.source_arn, metadata=case.letter.metadata)
        assert owner is not None
        return owner.name

    limit = lot.facts().max_message_size
    parking = Parking(dlq, lot, store, limit=limit, name_of=name_of)
    while cases := read_letters(dlq, store, 100, hidden_for=timedelta(minutes=5)).cases:
        parking.park([(case, Park(reason=reason, strikes=5)) for case in cases], now)


class _Nobody:
    """A policy that redrives nothing: passes are the command's."""

    every = timedelta(days=1)

    def tick(self) -> None:
        pass


class Desk:
    """A deployment of one DLQ in virtual time: of `orders`, and of the neighbours that share it.

    Its stack is of the first edition, without an outcome queue, unless the `consumer` reports. With `fifo` its queues
    are FIFO queues, and a message is of the group that its body begins with, up to a hyphen.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        neighbours: Sequence[Source] = (),
        consumer: Consumer | None = None,
        fifo: bool = False,
    ) -> None:
        self.world = World(
            seed=1,
            consumer=consumer or Consumer(),
            conditions=Conditions(count_lag_seconds=0, fifo=fifo),
            neighbours=neighbours,
        )
        self.redriver = WatchedRedriver(self.world, settings)
        self.deployment = Deployment(
            queue_name=self.world.queue_name(SOURCE),
            table_name=TABLE,
            dlq_url=self.world.url(DLQ),
            source_queue_url=self.world.url(SOURCE),
            parking_lot_url=self.world.url(PARKING_LOT),
            further_source_urls=tuple(self.world.url(one.name) for one in neighbours),
            outcome_queue_url=self.world.outcome_queue_url,
        )
        logs = self.logs = FakeLogs(self.world.clock)
        self.alarms = FakeAlarms(self.world.cloudwatch)
        self.clients: dict[str, Any] = {
            "sqs": self.world.sqs,
            "dynamodb": FakeTable(self.world.dynamodb),
            "cloudwatch": self.alarms,
            "cloudformation": FakeCloudFormation({STACK: outputs_of(self.deployment)}),
            "sts": FakeSts(),
            "lambda": FakeFunction(self.redriver, self.deployment, logs),
            "logs": logs,
            "scheduler": FakeScheduler(),
            "iam": FakeIam(),
            "kms": FakeKms(),
            "sns": FakeSns(),
        }
        self.store = StateStore(self.world.dynamodb, TABLE, self.world.queue_name(SOURCE))
        self._numbers = count()
        self.calls: list[str] = []
        #: All that was asked of AWS so far, and of which resource.
        self.asked: set[tuple[str, str]] = set()
        self.is_consumer_up = False

    # What a person types.

    def __call__(self, *arguments: str, answer: str = "", script: Script = nothing) -> Ran:
        """Type `redrive` with these arguments, and `answer` when asked. Raises what the script has happen."""
        wire = Wire(script)
        terminal = Terminal(
            out=io.StringIO(), err=io.StringIO(), answers=io.StringIO(answer + "\n")
        )

        def open_session(asked: Asked) -> Session:
            terminal.is_json, terminal.assume_yes = asked.json, asked.yes
            terminal.spared_stack = asked.spared_stack
            return self.session(wire, terminal, asked)

        try:
            COMMAND(list(arguments), prog_name="redrive", obj=open_session)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            self.calls = [call.operation for call in wire.calls]
        out, err = terminal.out, terminal.err
        assert isinstance(out, io.StringIO)
        assert isinstance(err, io.StringIO)
        return Ran(code=code, out=out.getvalue(), err=err.getvalue())

    def session(self, wire: Wire, terminal: Terminal, asked: Asked | None = None) -> Session:
        """What the command works with, over this wire."""
        asked = asked or Asked()
        return Session(
            aws=Aws(lambda one: OneAtATime(one, wire.to(self.clients[one]), self.asked)),
            terminal=terminal,
            stack=asked.stack,
            queue=asked.queue,
            clock=self.world.clock.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        """Let time pass, with the consumer at work where there is one."""
        if self.is_consumer_up:
            self.world.run(_Nobody(), until=self.world.elapsed + timedelta(seconds=seconds))
        else:
            self.world.clock.advance(seconds)

    # What happened before.

    def dead_letters(self, *bodies: str, of: str = SOURCE, **fields: Any) -> list[str]:
        """Let messages with these bodies fail until SQS has moved them to the DLQ; their ids."""
        ids = []
        for body in bodies:
            sent = self.world.sqs.send_message(
                QueueUrl=self.world.url(of), MessageBody=body, **self._in_group(body), **fields
            )
            ids.append(sent["MessageId"])
            self.world.sent.add(body)
        self.fail_again(of)
        return ids

    def _in_group(self, body: str) -> dict[str, str]:
        if not self.world.conditions.fifo:
            return {}
        return {
            "MessageGroupId": body.partition("-")[0],
            "MessageDeduplicationId": str(next(self._numbers)),
        }

    def fail_again(self, of: str = SOURCE) -> None:
        """Let what is in a source queue fail until SQS has moved it to the DLQ."""
        while self.world.depth(of):
            self.consumer_fails(of)

    def consumer_fails(self, of: str = SOURCE) -> None:
        """One delivery of all that is visible, without success."""
        while self.world.sqs.receive_message(
            QueueUrl=self.world.url(of), MaxNumberOfMessages=10
        ).get("Messages"):
            pass
        self.world.clock.advance(31)

    def purge(self, queue: str) -> None:
        """Empty a queue behind the ledger's back."""
        sqs, url = self.world.sqs, self.world.url(queue)
        while few := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for one in few:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])

    def park(
        self, *bodies: str, reason: ParkReason = ParkReason.MAX_ATTEMPTS, **fields: Any
    ) -> list[str]:
        """Let such letters fail and a pass park them; their original ids."""
        ids = self.dead_letters(*bodies, **fields)
        park_all(self.world.sqs, self.deployment, self.store, self.world.clock.now(), reason)
        return ids

    def suspect(self, message_id: str) -> Entry:
        """The entry of a letter that failed while others succeeded, as often as it may but once."""
        now = self.world.clock.now()
        return Entry(
            original_id=message_id,
            queue=SOURCE,
            first_seen=now,
            status=Status.RETURNED,
            current_id=message_id,
            strikes=self.redriver.settings.max_attempts - 1,
            first_redrive=now,
            first_strike=now,
        )

    # What is there now.

    def messages(self, queue: str) -> list[Message]:
        """Every message in a queue."""
        messages: list[Message] = self.world.sqs.inspect.messages(self.world.queue_name(queue))
        return messages

    def bodies(self, queue: str) -> list[str]:
        """Every body in a queue, sorted."""
        return sorted(message.body for message in self.messages(queue))

    def in_order(self, queue: str) -> list[str]:
        """Every body in a FIFO queue, in the order of sending."""
        messages = sorted(self.messages(queue), key=lambda one: one.sequence_number or "")
        return [one.body for one in messages]

    def visible(self, queue: str) -> int:
        name = self.world.queue_name(queue)
        return len(self.world.sqs.inspect.messages(name, Rest.VISIBLE))

    def entry(self, original_id: str) -> Entry:
        return self.store.read_ledger([original_id]).entries[original_id]

    def history(self) -> list[str]:
        """What the audit trail says was done."""
        return [line["what"] for line in self("history", "--json").json["changes"]]


class PassesInTheLog:
    """The re-driver's passes, with a line in the function's log for each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.every: timedelta = timedelta(minutes=1)

    def tick(self) -> None:
        redriver = self._desk.redriver
        before = len(redriver.reports)
        redriver.tick()
        for told in redriver.reports[before:]:
            self._desk.clients["logs"].note(told.to_json())
