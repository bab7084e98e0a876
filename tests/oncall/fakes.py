# ruff: noqa: N803 - the parameters have boto3's names
"""What the command asks of AWS beyond queues and tables, on top of a simulated world."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from botocore.exceptions import ClientError

from fakes.faults import Call, Mishap, Script, refuse
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, OUTCOMES, PARKING_LOT, SOURCE
from smart_redriver.engine.config.deployment import Deployment

STACK = "SmartRedriver"
FUNCTION = "redriver-function"
FUNCTION_ARN = f"arn:aws:lambda:us-east-1:123456789012:function:{FUNCTION}"
TOPIC = "arn:aws:sns:us-east-1:123456789012:paging"
LOG_GROUP = "/aws/lambda/redriver"


class OneAtATime:
    """A client that several threads may share, as boto3's may be: the fakes are not made for it.

    It notes what it was asked as `service:Operation`, and of what.
    """

    _lock = RLock()

    def __init__(self, service: str, client: Any, asked: set[tuple[str, str]]) -> None:
        self._service = service
        self._client = client
        self._asked = asked

    def __getattr__(self, method: str) -> Any:
        act = getattr(self._client, method)
        operation = "".join(word.capitalize() for word in method.split("_"))

        def call(**request: Any) -> Any:
            with self._lock:
                self._asked.add((f"{self._service}:{operation}", place_of(request)))
                return act(**request)

        return call


#: Which of a request's parameters names a resource, and what kind it is.
_KINDS = {
    "TableName": "table",
    "RequestItems": "table",
    "StackName": "stack",
    "FunctionName": "function",
    "logGroupName": "log",
    "PolicySourceArn": "role",
    "TopicArn": "topic",
}
_QUEUES = {SOURCE: "source", DLQ: "dlq", PARKING_LOT: "lot", OUTCOMES: "outcomes"}


def place_of(request: dict[str, Any]) -> str:
    """What a request is about."""
    if queue := request.get("QueueUrl") or request.get("SourceArn"):
        name = queue.replace("/", ":").rpartition(":")[2]
        return _QUEUES.get(name, name)
    return next((kind for name, kind in _KINDS.items() if name in request), "anything")


def lose(*places: str) -> Script:
    """None of these exists any more, by what `place_of` calls them."""
    not_found = "ResourceNotFoundException"
    codes = {"topic": "NotFound", "table": not_found, "function": not_found}

    def script(call: Call) -> Mishap | None:
        place = place_of(dict(call.request))
        code = codes.get(place, "AWS.SimpleQueueService.NonExistentQueue")
        missing = ClientError({"Error": {"Code": code}}, call.operation)
        return refuse(missing) if place in places else None

    return script


@dataclass
class FakeCloudFormation:
    """Stacks by name, each with its outputs."""

    stacks: dict[str, dict[str, str]]

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        if StackName not in self.stacks:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        outputs = self.stacks[StackName].items()
        told = [{"OutputKey": key, "OutputValue": value} for key, value in outputs]
        return {"Stacks": [{"StackName": StackName, "Outputs": told}]}


@dataclass
class FakeSts:
    """Says who is at the keyboard."""

    arn: str = "arn:aws:iam::123456789012:user/kim"

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": self.arn}


@dataclass
class FakeFunction:
    """The deployed function: an invocation is a pass in the world."""

    redriver: SmartPolicy
    deployment: Deployment
    logs: FakeLogs
    #: By the ARN of the queue that they consume.
    mappings: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    #: Where in a VPC it is; outside of all where this is empty.
    network: dict[str, Any] = field(default_factory=dict)
    #: Where it can't be decrypted for the caller.
    environment_error: dict[str, str] | None = None

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        variables = self.deployment.to_env() | self.redriver.settings.to_env()
        error = self.environment_error
        return {
            "Environment": {"Error": error} if error else {"Variables": variables},
            "VpcConfig": self.network,
            "LoggingConfig": {"LogGroup": LOG_GROUP},
            "FunctionArn": FUNCTION_ARN,
            "Role": "arn:aws:iam::123456789012:role/redriver",
            "Timeout": 240,
        }

    def list_event_source_mappings(self, *, EventSourceArn: str) -> dict[str, Any]:
        return {"EventSourceMappings": self.mappings.get(EventSourceArn, [])}

    def invoke(self, **_: Any) -> dict[str, Any]:
        self.redriver.tick()
        report = self.redriver.reports[-1].to_json()
        self.logs.note(report)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(report).encode())}


@dataclass
class FakeLogs:
    """CloudWatch Logs: of the function the reports of the passes that were invoked,
    and what a test puts into others.
    """

    clock: Any
    #: By log group; a stream is told with each.
    groups: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {LOG_GROUP: []})
    #: Of each request the first answer's events are on so many pages, most of them empty.
    pages: int = 1

    def note(self, report: dict[str, Any]) -> None:
        self.write(LOG_GROUP, json.dumps({"message": "pass.finished", **report}))

    def write(self, group: str, message: str, *, stream: str = "a-stream") -> None:
        """One line, now."""
        at = int(self.clock.now().timestamp() * 1000)
        line = {"timestamp": at, "message": message, "logStreamName": stream}
        self.groups.setdefault(group, []).append(line)

    def filter_log_events(
        self,
        *,
        logGroupName: str,
        startTime: int,
        endTime: int,
        filterPattern: str = "",
        logStreamNames: Sequence[str] = (),
        nextToken: str = "0",
    ) -> dict[str, Any]:
        if logGroupName not in self.groups:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "FilterLogEvents")
        found = [
            one
            for one in self.groups[logGroupName]
            if startTime <= one["timestamp"] < endTime
            and (not logStreamNames or one["logStreamName"] in logStreamNames)
            and _matches(filterPattern, one["message"])
        ]
        page = int(nextToken) + 1
        if page < self.pages:
            return {"events": [], "nextToken": str(page)}
        return {"events": found}


def _matches(pattern: str, line: str) -> bool:
    """CloudWatch's patterns, as far as the command uses them: a term, or any of some terms."""
    terms = re.findall(r'"([^"]+)"', pattern)
    return not terms or any(term in line for term in terms)


@dataclass
class FakeAlarms:
    """CloudWatch: the simulated queues' metrics, and alarms that a test sets."""

    cloudwatch: Any
    in_alarm: list[str] = field(default_factory=list)
    silenced: list[str] = field(default_factory=list)
    #: What composites ring for, by their names.
    rules: dict[str, str] = field(default_factory=dict)
    has_none: bool = False
    #: By name.
    descriptions: dict[str, str] = field(default_factory=dict)

    def get_metric_data(self, **request: Any) -> Any:
        return self.cloudwatch.get_metric_data(**request)

    def describe_alarms(
        self,
        *,
        AlarmNamePrefix: str = "",
        StateValue: str | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        quiet = [] if StateValue or self.has_none else [f"{STACK} Quiet"]
        return {
            "MetricAlarms": self._described((*self.in_alarm, *quiet), AlarmNamePrefix),
            "CompositeAlarms": [
                one | {"AlarmRule": self.rules[one["AlarmName"]]}
                for one in self._described(() if StateValue else self.rules, AlarmNamePrefix)
            ],
        }

    def _described(self, names: Iterable[str], prefix: str) -> list[dict[str, Any]]:
        return [
            {
                "AlarmName": name,
                "AlarmDescription": self.descriptions.get(name, ""),
                "AlarmActions": [TOPIC],
                "ActionsEnabled": name not in self.silenced,
            }
            for name in names
            if name.startswith(prefix)
        ]


@dataclass
class FakeTable:
    """The simulated table, and what it says of itself."""

    dynamodb: Any
    time_to_live: str = "ENABLED"

    def __getattr__(self, method: str) -> Any:
        return getattr(self.dynamodb, method)

    def describe_table(self, *, TableName: str) -> dict[str, Any]:
        return {"Table": {"TableArn": f"arn:aws:dynamodb:us-east-1:123456789012:table/{TableName}"}}

    def describe_time_to_live(self, **_: str) -> dict[str, Any]:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": self.time_to_live}}


@dataclass
class FakeScheduler:
    """The schedules of the account."""

    state: str | None = "ENABLED"

    def list_schedules(self, **_: str) -> dict[str, Any]:
        schedules = [{"Target": {"Arn": FUNCTION_ARN}, "State": self.state}] if self.state else []
        return {"Schedules": [{"Target": {"Arn": "another"}, "State": "ENABLED"}, *schedules]}


_OF_A_RECOVERY = {"events:source": ["smart-redriver"], "events:detail-type": ["Recovery"]}


@dataclass
class FakeIam:
    """IAM's simulator, for a role that may do all but what is denied; events it may send of a recovery alone."""

    denied: set[str] = field(default_factory=set)

    def simulate_principal_policy(
        self, *, ActionNames: list[str], ContextEntries: Sequence[dict[str, Any]] = (), **_: Any
    ) -> dict[str, Any]:
        given = {one["ContextKeyName"]: one["ContextKeyValues"] for one in ContextEntries}
        denied = self.denied | (set() if given == _OF_A_RECOVERY else {"events:PutEvents"})
        return {
            "EvaluationResults": [
                {
                    "EvalActionName": one,
                    "EvalDecision": "implicitDeny" if one in denied else "allowed",
                }
                for one in ActionNames
            ]
        }


@dataclass
class FakeKms:
    """Keys by their state."""

    states: dict[str, str] = field(default_factory=dict)

    def describe_key(self, *, KeyId: str) -> dict[str, Any]:
        return {"KeyMetadata": {"KeyState": self.states[KeyId]}}


@dataclass
class FakeSns:
    """A topic that CloudWatch may publish to, and one subscriber."""

    policy: str = json.dumps(
        {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "cloudwatch.amazonaws.com"},
                    "Action": "sns:Publish",
                }
            ]
        }
    )
    subscribers: int = 1
    #: Attributes by the subscription's ARN, or the code of what refuses them.
    subscriptions: dict[str, dict[str, str] | str] = field(default_factory=dict)

    def get_subscription_attributes(self, *, SubscriptionArn: str) -> dict[str, Any]:
        told = self.subscriptions[SubscriptionArn]
        if isinstance(told, str):
            raise ClientError({"Error": {"Code": told}}, "GetSubscriptionAttributes")
        return {"Attributes": told}

    def get_topic_attributes(self, **_: str) -> dict[str, Any]:
        confirmed = str(self.subscribers)
        return {"Attributes": {"Policy": self.policy, "SubscriptionsConfirmed": confirmed}}


def outputs_of(deployment: Deployment, prefix: str = "") -> dict[str, str]:
    """What a stack publishes of one queue."""
    targets = {
        "RedriveOrigin": deployment.origin.value,
        "RedriveTargets": " ".join(map(str, deployment.targets)),
        "RedrivePrivateHosts": " ".join(deployment.private_hosts),
    }
    own = {
        **(targets if deployment.targets else {"SourceQueueUrl": deployment.source_queue_url}),
        "DeadLetterQueueUrl": deployment.dlq_url,
        "ParkingLotQueueUrl": deployment.parking_lot_url,
        "RedriveFunctionName": FUNCTION,
    }
    if deployment.further_source_urls:
        own["FurtherSourceQueueUrls"] = " ".join(deployment.further_source_urls)
    if deployment.outcome_queue_url:
        own["OutcomeQueueUrl"] = deployment.outcome_queue_url
    return {prefix + name: value for name, value in own.items()} | {
        "StateTableName": deployment.table_name
    }
