"""One DLQ that another origin than SQS fills, with targets of every kind, each of which remembers what it took.

The clients of a pass go over one wire, those of the targets among them; a POST is a call on it like any other.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fakes.clock import VirtualClock
from fakes.cloudwatch import FakeCloudWatch
from fakes.dynamodb import FakeDynamoDb
from fakes.faults import Crash, Response, Script, Wire, nothing
from fakes.functions import FakeLambda
from fakes.sqs import FakeSqs
from fakes.targets import FakeFirehose, FakeSns, FakeStates
from simulator.smart_policy import PASS_TIME
from smart_redriver.engine.aws.items import entry_from_item
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.redelivery import post_of
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.engine.targets.target_calls import Bounced, deliver_one_by_one
from smart_redriver.engine.targets.target_source import Reach
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.wiring import Queues, make_tools

PLACE = "eu-west-1:123456789012"
QUEUE, FUNCTION, MACHINE, TOPIC, STREAM, WEB = (
    f"arn:aws:sqs:{PLACE}:orders",
    f"arn:aws:lambda:{PLACE}:function:orders",
    f"arn:aws:states:{PLACE}:stateMachine:orders",
    f"arn:aws:sns:{PLACE}:orders",
    f"arn:aws:firehose:{PLACE}:deliverystream/orders",
    "https://hooks.example.com/orders",
)
TABLE, DLQ, LOT = "redriver-state", "orders-dlq", "orders-parking-lot"

#: A letter has its last chance soon, and is given up soon where nobody is left to compare it with: stories are short.
SOON = Settings(
    last_chance_seconds=600, max_attempts=2, give_up_seconds=14_400, base_delay_seconds=0
)

_NAME = re.compile(r"letter-[a-z]+-\d+|live-\d+")


class Web:
    """A web target, without the web: `post` is the call, and `taken` what it said 200 to."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.answers: Callable[[bytes], str | None] = lambda _: None

    def post(self, *, Body: bytes) -> Response:  # noqa: N803 - as boto3 has it
        """Take a body, or raise what `answers` has for it."""
        if answer := self.answers(Body):
            raise Bounced(answer)
        self.taken.append(Body)
        return {}


class _Posts:
    def __init__(self, client: Any, target: Target, clock: VirtualClock) -> None:
        self._client = client
        self._target = target
        self._clock = clock

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        return deliver_one_by_one("POST", outgoing, self._give, self._clock.time)

    def _give(self, one: Outgoing) -> str:
        self._client.post(Body=post_of(one.letter, self._target).body)
        return one.letter.message_id


@dataclass(kw_only=True)
class Stage:
    """The world of one story.

    Attributes:
        of: by letter, the name of the target that failed it; letters that nobody may be called for are not there.
        doomed: by letter, the reason for which it has to end in the parking lot.

    """

    origin: Origin
    targets: tuple[Target, ...]
    settings: Settings = SOON
    of: dict[str, str] = field(default_factory=dict)
    doomed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = VirtualClock()
        self.sqs = FakeSqs(
            self.clock, Random(7), count_lag_seconds=0, region="eu-west-1", account="123456789012"
        )
        self.lambdas = FakeLambda(self.clock, self.sqs, Random(8))
        self.firehose = FakeFirehose(Random(9), ["orders"])
        self.states = FakeStates([MACHINE])
        self.sns = FakeSns(Random(9), [TOPIC])
        self.web = Web()
        self.fails: Callable[[str], bool] = lambda _: False
        self.done: list[str] = []
        self.dynamodb = FakeDynamoDb(self.clock)
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.urls = {
            name: self.sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("orders", DLQ, LOT)
        }
        dlq = self.urls[DLQ] if self.origin is Origin.LAMBDA else None
        self.lambdas.add("orders", self._handle, dlq_url=dlq, retries=2)
        self.cloudwatch = FakeCloudWatch(self.clock, self.sqs, self.lambdas)
        self.passes = 0

    def _handle(self, event: bytes) -> None:
        name = _name_of(event.decode())
        if self.fails(name):
            raise RuntimeError("down")
        self.done.append(name)

    def put(self, name: str, body: str, **attributes: str) -> None:
        """A letter, as a service sends it to the DLQ."""
        told = {
            key: {"DataType": "String", "StringValue": text} for key, text in attributes.items()
        }
        self.sqs.send_message(QueueUrl=self.urls[DLQ], MessageBody=body, MessageAttributes=told)

    def run_pass(self, script: Script = nothing) -> tuple[Wire, Report | None]:
        """One pass, None for the report where it died; then a minute goes by."""
        wire = Wire(script)
        tools = make_tools(
            Queues(
                self._deployment,
                sqs=wire.to(self.sqs),
                cloudwatch=wire.to(self.cloudwatch),
                reach=self._reach(wire),
            ),
            self._deployment,
            dynamodb=wire.to(self.dynamodb),
            journal=lambda *_, **__: None,
            clock=self.clock.now,
            pause=lambda _: None,
            rng=Random(self.passes),
            owner=f"invocation-{self.passes}",
        )
        self.passes += 1
        try:
            report = run_pass(tools, self.settings, deadline=self.clock.now() + PASS_TIME)
        except Crash:
            report = None
        self._a_minute_goes_by()
        return wire, report

    def _a_minute_goes_by(self) -> None:
        """Lambda tries what it holds when that is due."""
        for _ in range(3):
            self.lambdas.run_due()
            self.clock.advance(20)
        self.lambdas.run_due()

    @property
    def _deployment(self) -> Deployment:
        return Deployment(
            queue_name=self.targets[0].name,
            table_name=TABLE,
            dlq_url=self.urls[DLQ],
            source_queue_url="",
            parking_lot_url=self.urls[LOT],
            origin=self.origin,
            targets=self.targets,
        )

    def _reach(self, wire: Wire) -> Reach:
        clients = {
            "sqs": self.sqs,
            "lambda": self.lambdas,
            "firehose": self.firehose,
            "stepfunctions": self.states,
            "sns": self.sns,
        }
        over = {name: wire.to(client) for name, client in clients.items()}
        web = wire.to(self.web)
        return Reach(
            clients=lambda service, _: over[service],
            web=lambda target, _: _Posts(web, target, self.clock),
        )

    # What became of letters.

    def taken(self) -> Counter[tuple[str, str]]:
        """How often each target took each letter: (its name, the letter)."""
        waiting = [one.body for one in self.sqs.inspect.messages("orders")]
        took = {
            "sqs:orders": waiting,
            "lambda:orders": self.done,
            "firehose:orders": [data.decode() for _, data in self.firehose.records],
            "states:orders": [one.input for one in self.states.executions],
            "sns:orders": [one["Message"] for one in self.sns.published],
            "https://hooks.example.com/orders": [one.decode() for one in self.web.taken],
        }
        return Counter((where, _name_of(text)) for where, all_of in took.items() for text in all_of)

    def resting(self, queue: str) -> Counter[str]:
        """Letters in the DLQ or the parking lot."""
        return Counter(_name_of(one.body) for one in self.sqs.inspect.messages(queue))

    def parked_for(self) -> dict[str, str]:
        """Parked letters with their reason, as the ledger has it."""
        listed = {
            one.current_id: one.park_reason for one in self.ledger() if one.status is Status.PARKED
        }
        return {
            _name_of(one.body): str(listed.get(one.message_id))
            for one in self.sqs.inspect.messages(LOT)
            if one.message_id in listed or _name_of(one.body) not in listed
        }

    def ledger(self) -> list[Entry]:
        items = self.dynamodb.scan(TableName=TABLE, ConsistentRead=True)["Items"]
        return [entry_from_item(one) for one in items if "ReplacedMessageIds" in one]

    @property
    def is_over(self) -> bool:
        """Whether nothing waits in the DLQ or at Lambda."""
        return not self.resting(DLQ) and not self.lambdas.held

    def nowhere(self) -> Collection[str]:
        """Letters that their target did not take, and that are in neither queue nor at Lambda: lost."""
        took = {name for _, name in self.taken()}
        held = {_name_of(one.payload.decode()) for one in self.lambdas._events}
        return self.everybody - took - held - self.resting(DLQ).keys() - self.resting(LOT).keys()

    @property
    def everybody(self) -> set[str]:
        return {*self.of, *self.doomed}

    def called_wrongly(self) -> list[tuple[str, str]]:
        """Who took letters that another target had failed, or nobody may have."""
        return [(where, name) for where, name in self.taken() if self.of.get(name) != where]


def _name_of(text: str) -> str:
    found = _NAME.search(text)
    return found[0] if found else json.dumps(text)[:60]
