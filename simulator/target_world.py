"""A world in which another origin than SQS fills the DLQ.

Letters look as the origin leaves them, and go back to a target.

The source queue holds what SNS, Lambda, EventBridge or Scheduler itself has still to deliver. It comes to the DLQ when
all its tries have failed. A Lambda function takes events into the same queue; any other target answers at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from fakes.cloudwatch import FakeCloudWatch
from fakes.sqs import Event, Message
from fakes.sqs.message import new_message_id
from fakes.sqs.message_attributes import Attributes
from simulator.conditions import DLQ, PARKING_LOT, SOURCE
from simulator.failures import BadOrder
from simulator.shapes import TARGETS, letter, payload_of
from simulator.worker import ATTRIBUTES
from simulator.world import World
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.redelivery import post_of
from smart_redriver.engine.targets.target_calls import Bounced, deliver_one_by_one
from smart_redriver.engine.targets.target_source import Reach


class TargetWorld(World):
    """Letters of `conditions.origin`, and the one target that failed them. `client` is how the target is called."""

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.target = TARGETS[self.conditions.origin]
        self._ids = Random(world["seed"] + 5)
        self._answers = 0
        self._dropped_in: Counter[int] = Counter()
        self.cloudwatch = FakeCloudWatch(
            self.clock,
            self._queues,
            self,
            lag_seconds=self.conditions.metrics_lag_seconds,
            lateness=self.conditions.lateness,
        )
        self._queues.inspect.subscribe(self._reshape)

    @property
    def deployment(self) -> Deployment:
        """A world's deployment, with the target in place of a source queue."""
        return replace(
            super().deployment,
            queue_name=self.target.name,
            source_queue_url="",
            origin=self.conditions.origin,
            targets=(self.target,),
        )

    @property
    def reach(self) -> Reach:
        """How to reach the target, by clients with the calls that its source makes."""
        made = {"lambda": Functions(self), "stepfunctions": StateMachines(self)}
        return Reach(
            clients=lambda service, _: made[service], web=lambda target, _: Endpoint(self, target)
        )

    def answer(self, payload: str) -> Exception | None:
        """Return the target's immediate answer to a payload."""
        self._answers += 1
        return self._workers[self.queue_name(SOURCE)].answer(payload, self.elapsed)

    def queue_up(self, payload: str) -> str:
        """Let the target's own service deliver the payload, with its retries; returns the request's id."""
        answer = self._queues.send_message(
            QueueUrl=self.url(SOURCE), MessageBody=payload, MessageAttributes=ATTRIBUTES
        )
        request_id: str = answer["MessageId"]
        return request_id

    def _reshape(self, happened: Event) -> None:
        """Give a message that SQS is about to move the form that the origin would have sent to the DLQ."""
        if happened.kind != "dead" or happened.queue_name != self.queue_name(DLQ):
            return
        message = happened.message
        self._dropped_in[int(self.clock.time()) // 60] += 1
        body, attributes = letter(self.conditions.origin, message.body, message.message_id)
        message.message_id = new_message_id(self._ids)
        message.body, message.carried = body, Attributes(attributes)
        message.sent_at, message.dead_letter_source_arn = self.clock.time(), None

    @property
    def counted(self) -> dict[str, dict[str, Mapping[int, int]]]:
        """Lambda's counts by the minute, for the function that the source queue stands for."""
        queue = self._queues.inspect.metrics(self.queue_name(SOURCE))
        assert queue is not None  # noqa: S101 - it was made with the world
        tried, done = queue.received_in, queue.deleted_in
        return {
            SOURCE: {
                "AsyncEventsReceived": queue.sent_in,
                "Invocations": tried,
                "Errors": {minute: tried[minute] - done.get(minute, 0) for minute in tried},
                "AsyncEventsDropped": self._dropped_in,
                "Throttles": {},
            }
        }

    def _sent_this_minute(self) -> int:
        return super()._sent_this_minute() + self._answers

    def _at_rest(self, queue: str) -> list[Message]:
        messages = super()._at_rest(queue)
        if self.queue_name(queue) not in (self.queue_name(DLQ), self.queue_name(PARKING_LOT)):
            return messages
        return [replace(one, body=payload_of(one.body)) for one in messages]


class Endpoint:
    """A web target, without the web."""

    def __init__(self, world: TargetWorld, target: Target) -> None:
        self._world = world
        self._target = target

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Post letters one by one."""
        return deliver_one_by_one("POST", outgoing, self._post, self._world.clock.time)

    def _post(self, one: Outgoing) -> str:
        body = post_of(one.letter, self._target).body.decode()
        error = self._world.answer(payload_of(body))
        if error is not None:
            raise Bounced("HTTP 400" if isinstance(error, BadOrder) else "HTTP 503")
        return one.letter.message_id


class Functions:
    """The calls that a source makes on a boto3 Lambda client."""

    def __init__(self, world: TargetWorld) -> None:
        self._world = world

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        """Accept an event for later."""
        world = self._world
        assert (FunctionName, InvocationType) == (world.target.place, "Event")  # noqa: S101
        payload = payload_of(Payload.decode())
        if world.conditions.origin is Origin.LAMBDA:
            request_id = world.queue_up(payload)
        else:
            _take(world.answer(payload), "Invoke", "TooManyRequestsException")
            request_id = f"taken-{payload}"
        return {"StatusCode": 202, "ResponseMetadata": {"RequestId": request_id}}

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        """How long one try may take.

        Three tries, and the waits between them, last as long as the world's queue takes for three.
        """
        conditions = self._world.conditions
        waits = 60 + 120
        total = conditions.visibility_timeout * conditions.max_receive_count
        return {"Timeout": max(1, (total - waits) // conditions.max_receive_count)}

    def get_function_event_invoke_config(self, **_: str) -> dict[str, Any]:
        """How often a failed event is tried again."""
        return {"MaximumRetryAttempts": self._world.conditions.max_receive_count - 1}


class StateMachines:
    """The calls that a source makes on a boto3 Step Functions client."""

    def __init__(self, world: TargetWorld) -> None:
        self._world = world

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> dict[str, Any]:  # noqa: A002, N803
        """Start an execution."""
        assert stateMachineArn == self._world.target.place  # noqa: S101
        _take(self._world.answer(payload_of(input)), "StartExecution", "StateMachineDeleting")
        return {"executionArn": f"{stateMachineArn.replace('stateMachine', 'execution')}:{name}"}


def _take(error: Exception | None, call: str, when_down: str) -> None:
    """Raise the service's answer if the target refuses it."""
    if error is not None:
        code = "InvalidRequestContentException" if isinstance(error, BadOrder) else when_down
        raise ClientError({"Error": {"Code": code, "Message": str(error)}}, call)
