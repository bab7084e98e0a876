# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 Lambda client: asynchronous invocations, their retries, and what is left of them.

Source: Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation" (a second try after
a minute, a third after two more), and what LocalStack's TestLambdaDLQ and TestLambdaDestinationSqs recorded on AWS: a
DLQ gets the event as its body with RequestID, ErrorCode and ErrorMessage, a destination a record without attributes.

Nothing waits: the driver of the world moves the clock and calls `run_due` to try what is due. A try takes no time.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from fakes.sqs.message import new_message_id

MOST_OF_AN_EVENT = 1_048_576  # [botocore Invoke]
WAITS = (60.0, 120.0)
MOST_OF_A_MESSAGE = 1024

#: Takes an event, and raises if it fails.
Handler = Callable[[bytes], object]


@dataclass(slots=True)
class Function:
    """One function; `calls` are the events of all tries. Without `retries`, its retries are not configured."""

    arn: str
    handler: Handler
    dlq_url: str | None = None
    destination_url: str | None = None
    timeout: int = 3
    retries: int | None = None
    calls: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Event:
    """An event that Lambda holds until it is due to be tried."""

    function: Function
    payload: bytes
    request_id: str
    due: float
    tries: int = 0


class FakeLambda(FakeClient):
    """The functions of one account. While `outage` is set, it refuses every call with that code."""

    def __init__(
        self,
        clock: VirtualClock,
        sqs: FakeSqs,
        rng: Random,
        *,
        prefix: str = "arn:aws:lambda:eu-west-1:123456789012:function:",
    ) -> None:
        super().__init__("lambda")
        self._clock = clock
        self._sqs = sqs
        self._rng = rng
        self._prefix = prefix
        self._functions: dict[str, Function] = {}
        self._events: list[Event] = []
        self.outage: str | None = None
        #: Counts by function, metric, and minute since the epoch.
        self.counted: defaultdict[str, defaultdict[str, Counter[int]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def add(self, name: str, handler: Handler, **more: Any) -> Function:
        """Add a function that can be invoked; for `more` see `Function`."""
        self._functions[name] = Function(arn=self._prefix + name, handler=handler, **more)
        return self._functions[name]

    @operation
    def invoke(
        self, *, FunctionName: str, InvocationType: str, Payload: bytes | str = b"{}"
    ) -> Response:
        """Accept an event; the next call of `run_due` first tries it."""
        function = self._function(FunctionName)
        if InvocationType != "Event":
            unsupported = "this fake knows asynchronous invocations only"
            raise NotImplementedError(unsupported)
        payload = Payload.encode() if isinstance(Payload, str) else Payload
        if len(payload) > MOST_OF_AN_EVENT:
            raise Fault("RequestTooLargeException", "Request must be smaller")
        try:
            json.loads(payload)
        except ValueError:
            raise Fault("InvalidRequestContentException", "Could not parse into json") from None
        request_id = new_message_id(self._rng)
        self._count(function, "AsyncEventsReceived", self._clock.time())
        self._events.append(Event(function, payload, request_id, due=self._clock.time()))
        return {"StatusCode": 202, "ResponseMetadata": {"RequestId": request_id}}

    @operation
    def get_function_configuration(self, *, FunctionName: str) -> Response:
        """Its time-out."""
        function = self._function(FunctionName)
        return {"FunctionArn": function.arn, "Timeout": function.timeout}

    @operation
    def get_function_event_invoke_config(self, *, FunctionName: str) -> Response:
        """Its retries, if they are configured."""
        function = self._function(FunctionName)
        if function.retries is None:
            raise Fault("ResourceNotFoundException", f"{function.arn} has no EventInvokeConfig")
        return {"FunctionArn": function.arn, "MaximumRetryAttempts": function.retries}

    @property
    def held(self) -> int:
        """Events that may still be tried."""
        return len(self._events)

    def next_due(self) -> float | None:
        """When the next try is due, in seconds since the epoch."""
        return min((one.due for one in self._events), default=None)

    def run_due(self) -> None:
        """Try every event that is due by now, in the order in which they became due."""
        now = self._clock.time()
        while (due := self.next_due()) is not None and due <= now:
            event = min(self._events, key=lambda one: one.due)
            self._try(event)

    def _try(self, event: Event) -> None:
        function = event.function
        event.tries += 1
        function.calls.append(event.payload)
        self._count(function, "Invocations", event.due)
        try:
            function.handler(event.payload)
        except Exception as error:
            self._count(function, "Errors", event.due)
            retries = len(WAITS) if function.retries is None else function.retries
            if event.tries <= retries:
                event.due += WAITS[event.tries - 1]
                return
            self._give_up(event, error)
        self._events.remove(event)

    def _give_up(self, event: Event, error: Exception) -> None:
        function = event.function
        if function.destination_url:
            body = json.dumps(_record(event, error))
            self._sqs.send_message(QueueUrl=function.destination_url, MessageBody=body)
        elif function.dlq_url:
            told = {
                "RequestID": ("String", event.request_id),
                "ErrorCode": ("Number", "200"),
                "ErrorMessage": ("String", str(error)[:MOST_OF_A_MESSAGE] or "null"),
            }
            self._sqs.send_message(
                QueueUrl=function.dlq_url,
                MessageBody=event.payload.decode(),
                MessageAttributes={
                    name: {"DataType": kind, "StringValue": text}
                    for name, (kind, text) in told.items()
                },
            )
        self._count(function, "AsyncEventsDropped", event.due)

    def _function(self, named: str) -> Function:
        if self.outage:
            raise Fault(self.outage, "as scripted")
        name = named.removeprefix(self._prefix).removesuffix(":$LATEST")
        if name not in self._functions:
            missing = f"Function not found: {self._prefix}{name}"
            raise Fault("ResourceNotFoundException", missing)
        return self._functions[name]

    def _count(self, function: Function, metric: str, at: float) -> None:
        self.counted[function.arn.rpartition(":")[2]][metric][int(at // 60)] += 1


def _record(event: Event, error: Exception) -> dict[str, Any]:
    return {
        "version": "1.0",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "requestContext": {
            "requestId": event.request_id,
            "functionArn": f"{event.function.arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": event.tries,
        },
        "requestPayload": json.loads(event.payload),
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "responsePayload": {"errorMessage": str(error), "errorType": type(error).__name__},
    }
