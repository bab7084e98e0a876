"""Letters of other origins than SQS, all the way round: received, recognised, given back, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from fakes.clock import START, VirtualClock
from fakes.cloudwatch import FakeCloudWatch
from fakes.functions import FakeLambda
from fakes.sqs import FakeSqs
from fakes.targets import FakeFirehose, FakeSns, FakeStates
from smart_redriver.engine.aws.queues import DeadLetters
from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.messages.origins import recognise
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.targets.functions import FunctionMetricsReader
from smart_redriver.engine.targets.target_source import Reach, TargetSource, target_source

PLACE = "eu-west-1:123456789012"
FUNCTION = Target.parse(f"arn:aws:lambda:{PLACE}:function:orders")
QUEUE = Target.parse(f"arn:aws:sqs:{PLACE}:orders")
MACHINE = Target.parse(f"arn:aws:states:{PLACE}:stateMachine:orders")
TOPIC = Target.parse(f"arn:aws:sns:{PLACE}:orders")
STREAM = Target.parse(f"arn:aws:firehose:{PLACE}:deliverystream/orders")
ALL = (FUNCTION, QUEUE, MACHINE, TOPIC, STREAM)


class Scene:
    """One DLQ, and one of every target; the function's letters come back to the DLQ."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.sqs = FakeSqs(
            self.clock,
            Random(7),
            count_lag_seconds=0,
            region="eu-west-1",
            account="123456789012",
        )
        self.lambdas = FakeLambda(self.clock, self.sqs, Random(8))
        self.firehose = FakeFirehose(Random(9), ["orders"])
        self.states = FakeStates([MACHINE.place])
        self.sns = FakeSns(Random(9), [TOPIC.place])
        self.sqs.create_queue(QueueName="orders")
        self.dlq = self.sqs.create_queue(QueueName="orders-dlq")["QueueUrl"]
        self.letters = DeadLetters(SqsQueue(self.sqs, self.dlq), {"lambda:orders"})
        self.is_down = False
        self.function = self.lambdas.add("orders", self._handle, dlq_url=self.dlq)
        self.cloudwatch = FakeCloudWatch(self.clock, self.sqs, self.lambdas)

    def _handle(self, event: bytes) -> None:
        if self.is_down or b"poison" in event:
            raise RuntimeError("boom")

    def source(self, target: Target, origin: Origin) -> TargetSource:
        clients: dict[str, Any] = {
            "sqs": self.sqs,
            "lambda": self.lambdas,
            "firehose": self.firehose,
            "stepfunctions": self.states,
            "sns": self.sns,
        }
        return target_source(target, origin, Reach(clients=lambda service, _: clients[service]))

    def put(self, body: str, **attributes: str) -> None:
        """As a service sends a letter to the DLQ."""
        told = {
            name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()
        }
        self.sqs.send_message(QueueUrl=self.dlq, MessageBody=body, MessageAttributes=told)

    def invoke(self, event: str) -> None:
        self.lambdas.invoke(FunctionName="orders", InvocationType="Event", Payload=event)

    def pass_time(self, seconds: int = 600) -> None:
        for _ in range(seconds // 20):
            self.lambdas.run_due()
            self.clock.advance(20)
        self.lambdas.run_due()

    def receive(self, origin: Origin, *targets: Target) -> list[Letter]:
        received = self.letters.receive(10, hidden_for=timedelta(minutes=1))
        return [recognise(one, origin, targets) for one in received]

    def redrive(self, letters: list[Letter], source: TargetSource) -> Sent:
        going = [
            Outgoing(letter=one, metadata=metadata(one), size_limit=source.facts().max_message_size)
            for one in letters
        ]
        sent = source.deliver(going)
        self.letters.delete(one for one in letters if one.message_id in sent.new_ids)
        return sent

    def asked(self) -> list[str]:
        """Every target that has been given something, once for each letter."""
        waiting = self.sqs.get_queue_attributes(
            QueueUrl=f"{self.dlq.removesuffix('-dlq')}", AttributeNames=["All"]
        )["Attributes"]["ApproximateNumberOfMessages"]
        return [
            *["lambda"] * len(self.function.calls),
            *["sqs"] * int(waiting),
            *["firehose"] * len(self.firehose.records),
            *["states"] * len(self.states.executions),
            *["sns"] * len(self.sns.published),
        ]


def metadata(letter: Letter) -> RedriveMetadata:
    return RedriveMetadata(
        queue="lambda:orders",
        original_id=letter.message_id,
        redrive_count=1,
        first_seen=START,
        batch=1,
        generation=0,
    )


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("kind", ["dlq_url", "destination_url"])
def test_a_functions_letter_comes_back_under_the_request_that_it_was_given_back_with(
    scene: Scene, kind: str
) -> None:
    scene.function.dlq_url = None
    setattr(scene.function, kind, scene.dlq)
    scene.is_down = True
    scene.invoke('{"order": 1}')
    scene.pass_time()
    orders = scene.source(FUNCTION, Origin.LAMBDA)

    sent = scene.redrive(scene.receive(Origin.LAMBDA, FUNCTION), orders)
    scene.pass_time()

    (again,) = scene.receive(Origin.LAMBDA, FUNCTION)
    assert list(sent.new_ids.values()) == [again.request_id]
    assert orders.owns(again.source_arn, None)
    assert [json.loads(one) for one in scene.function.calls] == [{"order": 1}] * 6


def test_when_the_function_is_well_again_only_poison_comes_back(scene: Scene) -> None:
    scene.is_down = True
    for order in ("1", "2", '"poison"'):
        scene.invoke(f'{{"order": {order}}}')
    scene.pass_time()
    scene.is_down = False

    scene.redrive(scene.receive(Origin.LAMBDA, FUNCTION), scene.source(FUNCTION, Origin.LAMBDA))
    scene.pass_time()

    (again,) = scene.receive(Origin.LAMBDA, FUNCTION)
    assert again.body == '{"order": "poison"}'
    assert scene.lambdas.held == 0


def test_cloudwatch_shows_which_of_the_events_succeeded(scene: Scene) -> None:
    orders = scene.source(FUNCTION, Origin.LAMBDA)
    metrics = FunctionMetricsReader(
        scene.cloudwatch, lambda _: orders.time_to_fail(orders.facts(), 3)
    )
    scene.pass_time(1200)
    start = scene.clock.now()
    for order in ("1", "2", '"poison"'):
        scene.invoke(f'{{"order": {order}}}')

    scene.pass_time(1200)

    account = metrics.since(start, scene.clock.now(), orders.name).account(start)
    assert account is not None
    assert (account.sent, account.done, account.moved, account.left) == (3, 2, 1, 0)


EVENT = '{"source": "shop"}'
RULE = "arn:aws:events:eu-west-1:123456789012:rule/orders"
SCHEDULE = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/orders"


@pytest.mark.parametrize(
    ("origin", "told"), [(Origin.EVENTBRIDGE, "RULE_ARN"), (Origin.SCHEDULER, "SCHEDULE_ARN")]
)
@pytest.mark.parametrize("target", [FUNCTION, QUEUE, MACHINE, TOPIC], ids=lambda one: one.name)
def test_only_the_target_that_failed_is_called(
    scene: Scene, origin: Origin, told: str, target: Target
) -> None:
    scene.put(EVENT, **{told: RULE, "TARGET_ARN": target.place, "ERROR_CODE": "NO_PERMISSIONS"})
    letters = scene.receive(origin, *ALL)
    (source,) = (
        one
        for one in (scene.source(each, origin) for each in (FUNCTION, QUEUE, MACHINE, TOPIC))
        if one.owns(letters[0].source_arn, None)
    )

    sent = scene.redrive(letters, source)
    scene.pass_time(20)

    assert (len(sent.new_ids), sent.faults) == (1, [])
    assert scene.asked() == [target.kind.value]


@pytest.mark.parametrize(
    "attributes",
    [
        {"RULE_ARN": RULE, "TARGET_ARN": FUNCTION.place.replace("123456789012", "210987654321")},
        {"RULE_ARN": RULE, "TARGET_ARN": "file:///etc/passwd"},
        {"RULE_ARN": RULE, "TARGET_ARN": "http://169.254.169.254/latest/meta-data"},
        {"RULE_ARN": RULE, "TARGET_ARN": "arn:aws:lambda:eu-west-1:123456789012:function:admin"},
        {"BUS_ARN": "arn:aws:eventsv2:eu-west-1:123456789012:bus/a", "TARGET_ARN": FUNCTION.place},
        {"TARGET_ARN": FUNCTION.place},
    ],
)
def test_hostile_letters_are_of_nobody(scene: Scene, attributes: dict[str, str]) -> None:
    scene.put(EVENT, **attributes)

    (letter,) = scene.receive(Origin.EVENTBRIDGE, *ALL)

    assert letter.unfit is not None
    assert not any(
        scene.source(one, Origin.EVENTBRIDGE).owns(letter.source_arn, None) for one in ALL[:4]
    )


Client = Callable[[Scene], Any]


@pytest.mark.parametrize(
    ("target", "client"),
    [
        (FUNCTION, lambda scene: scene.lambdas),
        (MACHINE, lambda scene: scene.states),
        (TOPIC, lambda scene: scene.sns),
        (STREAM, lambda scene: scene.firehose),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
@pytest.mark.parametrize("code", ["ServiceUnavailable", "AccessDenied"])
def test_no_letter_is_lost_to_an_outage_of_a_target(
    scene: Scene, target: Target, client: Client, code: str
) -> None:
    origin = Origin.SNS if target is STREAM else Origin.EVENTBRIDGE
    for order in range(3):
        scene.put(f'{{"order": {order}}}', RULE_ARN=RULE, TARGET_ARN=target.place)
    source = scene.source(target, origin)
    client(scene).outage = code

    refused = scene.redrive(scene.receive(origin, target), source)
    client(scene).outage = None
    scene.clock.advance(61)
    accepted = scene.redrive(scene.receive(origin, target), source)

    assert (len(refused.faults), refused.new_ids) == (3, {})
    assert refused.refused is not None
    assert (len(accepted.new_ids), accepted.faults) == (3, [])
    assert scene.receive(origin, target) == []


def test_a_start_that_a_crash_repeats_starts_one_execution(scene: Scene) -> None:
    """The process died between StartExecution and the ledger; the letter is met again, redriven as often as before."""
    scene.put(EVENT, RULE_ARN=RULE, TARGET_ARN=MACHINE.place)
    letters = scene.receive(Origin.EVENTBRIDGE, MACHINE)
    source = scene.source(MACHINE, Origin.EVENTBRIDGE)

    first = scene.redrive(letters, source)
    second = scene.redrive(letters, source)
    scene.states.executions[0].is_running = False
    third = scene.redrive(letters, source)

    assert first.new_ids == second.new_ids == third.new_ids
    assert len(scene.states.executions) == 1
