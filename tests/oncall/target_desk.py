"""A desk for a DLQ that SQS does not fill: targets that a test lets accept, bounce and refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from simulator.world import DLQ, TABLE
from smart_redriver.engine.aws.queues import DeadLetters, ParkingLot
from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata, Unfit
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, FakeFunction, outputs_of

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:billing"
WEB = "https://example.com/orders"
SUBSCRIPTIONS = [
    f"arn:aws:sns:us-east-1:123456789012:news:0000000{n}-0000-4000-8000-000000000000"
    for n in range(1, 4)
]
OF_SNS = (f"{SUBSCRIPTIONS[0]}={FUNCTION}", f"{SUBSCRIPTIONS[1]}={WEB}")


class FakeTarget:
    """Accepts each letter, but for what a test says of its body: an answer that is a bounce, or a code of a fault."""

    carries_metadata = False
    longest_delay = timedelta()

    def __init__(self, target: Target, origin: Origin) -> None:
        self.name = target.name
        self.settles_at_once = origin is not Origin.LAMBDA
        self.given: list[str] = []
        self.bounces: dict[str, str] = {}
        self.refuses: dict[str, str] = {}
        self._target = target

    def facts(self) -> QueueFacts:
        return QueueFacts(
            arn=self._target.place,
            visible=0,
            in_flight=0,
            delayed=0,
            visibility_timeout=timedelta(),
            retention=timedelta(),
            max_message_size=1_048_576,
        )

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        sent = Sent()
        for one in outgoing:
            body, key = one.letter.body, one.letter.message_id
            if answer := self.bounces.get(body):
                sent.bounced[key] = answer
            elif code := self.refuses.get(body):
                sent.faults.append(EntryFault(call="Invoke", key=key, code=code, detail=""))
            else:
                self.given.append(body)
                sent.new_ids[key] = f"{len(self.given):08}-accepted-by-{key}"[:36]
        return sent

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:
        return timedelta(minutes=3)

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool:
        if source_arn is not None:
            return source_arn == self._target.place
        return metadata is not None and metadata.queue == self.name


def recognise(letter: Letter) -> Letter:
    """By an attribute, for a test: the place of a target, or why it fits none."""
    told = letter.attributes.get("of", {}).get("StringValue", "")
    if told in Unfit.__members__:
        return replace(letter, unfit=Unfit(told))
    return replace(letter, source_arn=told or None)


class RecognisingDlq(DeadLetters):
    def receive(self, *args: Any, **options: Any) -> list[Letter]:
        return [recognise(one) for one in super().receive(*args, **options)]


class RecognisingLot(ParkingLot):
    def receive(self, *args: Any, **options: Any) -> list[Letter]:
        return [recognise(one) for one in super().receive(*args, **options)]


class FakeEvents:
    """Rules of the default bus: by the target that they call, and the DLQ that each names."""

    def __init__(self) -> None:
        self.rules: dict[str, dict[str, str]] = {}

    def list_rule_names_by_target(self, *, TargetArn: str, **_: str) -> dict[str, Any]:  # noqa: N803
        return {"RuleNames": [name for name, rule in self.rules.items() if TargetArn in rule]}

    def list_targets_by_rule(self, *, Rule: str, **_: str) -> dict[str, Any]:  # noqa: N803
        targets = self.rules[Rule].items()
        return {"Targets": [{"Arn": arn, "DeadLetterConfig": {"Arn": dlq}} for arn, dlq in targets]}


class FakeFunctions(FakeFunction):
    """Beside the re-driver's own function those of targets: their configuration, or the code of what refuses it."""

    targets: dict[str, Mapping[str, Any] | str]
    on_failure: dict[str, str]

    def get_function_configuration(self, **request: str) -> dict[str, Any]:
        told = self.targets.get(request["FunctionName"])
        if isinstance(told, str):
            raise ClientError({"Error": {"Code": told}}, "GetFunctionConfiguration")
        return super().get_function_configuration() if told is None else dict(told)

    def get_function_event_invoke_config(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        if FunctionName not in self.on_failure:
            code = {"Error": {"Code": "ResourceNotFoundException"}}
            raise ClientError(code, "GetFunctionEventInvokeConfig")  # type: ignore[arg-type]
        return {"DestinationConfig": {"OnFailure": {"Destination": self.on_failure[FunctionName]}}}


class TargetDesk(Desk):
    """A deployment whose DLQ `origin` fills. Letters say by an attribute of which target they are."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        origin: Origin = Origin.SNS,
        targets: Sequence[str] = OF_SNS,
        private_hosts: Sequence[str] = (),
    ) -> None:
        super().__init__()
        listed = tuple(map(Target.parse, targets))
        self.deployment = replace(
            self.deployment,
            queue_name=listed[0].name,
            source_queue_url="",
            origin=origin,
            targets=listed,
            private_hosts=tuple(private_hosts),
        )
        self.targets = {one.name: FakeTarget(one, origin) for one in listed}
        self.clients["cloudformation"].stacks[STACK] = outputs_of(self.deployment)
        functions = FakeFunctions(self.redriver, self.deployment, self.logs)
        functions.targets = {
            one.place: {"DeadLetterConfig": {"TargetArn": self.dlq_arn}} for one in listed
        }
        functions.on_failure = {}
        self.clients["lambda"] = functions
        self.clients["events"] = FakeEvents()
        self.store = StateStore(self.world.dynamodb, TABLE, listed[0].name)
        names = frozenset(self.deployment.source_names)

        def dlq_of(deployment: Any, sqs: Any) -> DeadLetters:
            return RecognisingDlq(SqsQueue(sqs, deployment.dlq_url), names)

        def lot_of(deployment: Any, sqs: Any) -> ParkingLot:
            return RecognisingLot(SqsQueue(sqs, deployment.parking_lot_url), names)

        sources = tuple(self.targets.values())
        monkeypatch.setattr("smart_redriver.engine.wiring.sources_of", lambda *_, **__: sources)
        monkeypatch.setattr("smart_redriver.engine.wiring.dead_letters_of", dlq_of)
        monkeypatch.setattr("smart_redriver.engine.wiring.parking_lot_of", lot_of)

    @property
    def dlq_arn(self) -> str:
        return f"arn:aws:sqs:us-east-1:123456789012:{self.world.queue_name(DLQ)}"

    def letters_of(self, told: str, *bodies: str) -> list[str]:
        """Put letters into the DLQ, of a target's place or unfit; their ids."""
        attributes = {"of": {"DataType": "String", "StringValue": told}} if told else {}
        return [
            self.world.sqs.send_message(
                QueueUrl=self.world.url(DLQ), MessageBody=body, MessageAttributes=attributes
            )["MessageId"]
            for body in bodies
        ]

    def let_send(self, service: str, **more: str) -> None:
        """A policy of the DLQ that lets a service send to it."""
        policy = {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": service},
                    "Action": "sqs:SendMessage",
                }
            ]
        }
        self.world.sqs.set_queue_attributes(
            QueueUrl=self.world.url(DLQ), Attributes={"Policy": json.dumps(policy), **more}
        )
