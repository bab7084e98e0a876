"""What an account has beside the re-driver: queues, functions, a topic, a rule, a stream, a state machine.

Those that only accept letters are made after the outage: until then AWS answers that they are not there.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from demo.event_log import EventLog
from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws

#: Fails on poison, on all else while it is down, and says what it was given.
_FUNCTION = """
import json, os

def handler(event, context):
    if "poison" in json.dumps(event) or os.environ.get("DOWN"):
        raise RuntimeError("the database is not there")
    print(json.dumps({"message": "done", "event": event}))
"""
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": ["lambda.amazonaws.com", "states.amazonaws.com"]},
        }
    ],
}
_MACHINE = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
_BUCKET = "archive"

TOPIC_ARN = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"
MACHINE_ARN = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:parcels"
#: Of a rule's target, and not the one that people subscribe to.
TARGET_TOPIC_ARN = f"arn:aws:sns:{REGION}:{ACCOUNT}:parcels"
STREAM_ARN = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/archive"


def queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def _let_in(service: str, queue: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn(queue),
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


class Places:
    """All of it in one local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self.sqs, self.functions = aws.client("sqs"), aws.client("lambda")
        self._states, self._s3 = aws.client("stepfunctions"), aws.client("s3")
        self._role = aws.client("iam").create_role(
            RoleName="places", AssumeRolePolicyDocument=json.dumps(_TRUST)
        )["Role"]["Arn"]

    def make_queue(self, name: str, **attributes: str) -> str:
        """Make a queue; its URL."""
        url: str = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def make_function(self, name: str, **settings: Any) -> None:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as code:
            code.writestr("index.py", _FUNCTION)
        self.functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="index.handler",
            Role=self._role,
            Code={"ZipFile": archive.getvalue()},
            Timeout=3,
            **settings,
        )

    def make_machine_and_stream(self) -> None:
        self._states.create_state_machine(
            name="parcels", definition=json.dumps(_MACHINE), roleArn=self._role
        )
        self._s3.create_bucket(Bucket=_BUCKET)
        self._aws.client("firehose").create_delivery_stream(
            DeliveryStreamName="archive",
            S3DestinationConfiguration={
                "RoleARN": self._role,
                "BucketARN": f"arn:aws:s3:::{_BUCKET}",
            },
        )

    def subscribe(
        self,
        protocol: str,
        endpoint: str,
        dead_letters: str = "",
        token: Callable[[], str] | None = None,
    ) -> str:
        """Subscribe something to the topic, which is made if need be; the ARN of the subscription.

        With `token`, which the endpoint was sent, it is confirmed.
        """
        sns = self._aws.client("sns")
        sns.create_topic(Name="orders")
        policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": queue_arn(dead_letters)})}
        answer = sns.subscribe(
            TopicArn=TOPIC_ARN,
            Protocol=protocol,
            Endpoint=endpoint,
            Attributes=policy if dead_letters else {},
        )
        if token:
            answer = sns.confirm_subscription(TopicArn=TOPIC_ARN, Token=token())
        return str(answer["SubscriptionArn"])

    def make_topic(self, queue: str) -> None:
        """The topic that is a target, with a queue that hears of all, and lets it in."""
        sns = self._aws.client("sns")
        sns.create_topic(Name=TARGET_TOPIC_ARN.rpartition(":")[2])
        self.make_queue(queue, Policy=json.dumps(_let_in("sns.amazonaws.com", queue)))
        sns.subscribe(TopicArn=TARGET_TOPIC_ARN, Protocol="sqs", Endpoint=queue_arn(queue))

    def call_by_rule(self, target_arn: str, dead_letters: str) -> None:
        events = self._aws.client("events")
        events.put_rule(Name="shop", EventPattern='{"source": ["shop"]}')
        target = {
            "Id": target_arn.rpartition(":")[2],
            "Arn": target_arn,
            "DeadLetterConfig": {"Arn": queue_arn(dead_letters)},
        }
        events.put_targets(Rule="shop", Targets=[target])

    def invoke(self, function: str, event: Mapping[str, Any]) -> str:
        """Invoke it asynchronously; the request's id."""
        answer = self.functions.invoke(
            FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode()
        )
        return str(answer["ResponseMetadata"]["RequestId"])

    def events_of(self, function: str) -> list[dict[str, Any]]:
        """Events that a function was given and did not fail on."""
        log = EventLog(self._aws.client("logs"), f"/aws/lambda/{function}")
        return [one.fields["event"] for one in log.fresh() if one.name == "done"]

    def invocations_of(self, function: str) -> int:
        """How often it ran, failed or not."""
        groups = self._aws.client("logs").describe_log_groups()["logGroups"]
        if f"/aws/lambda/{function}" not in {one["logGroupName"] for one in groups}:
            return 0
        pages = self._aws.client("logs").get_paginator("filter_log_events")
        found = pages.paginate(
            logGroupName=f"/aws/lambda/{function}", filterPattern='"START RequestId"'
        )
        return sum(len(page["events"]) for page in found)

    def messages_in(self, name: str) -> list[dict[str, Any]]:
        """All messages of a queue, which stay hidden for a moment."""
        url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return list(self._receive(url))

    def _receive(self, url: str) -> Iterator[dict[str, Any]]:
        while messages := self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=60,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages"):
            yield from messages

    def executions(self) -> dict[str, str]:
        """Inputs by the executions' names."""
        listed = self._states.list_executions(stateMachineArn=MACHINE_ARN)["executions"]
        return {
            one["name"]: self._states.describe_execution(executionArn=one["executionArn"])["input"]
            for one in listed
        }

    def archived(self) -> Counter[str]:
        """What the stream delivered, one record an object."""
        listed = self._s3.list_objects_v2(Bucket=_BUCKET).get("Contents", ())
        bodies = (self._s3.get_object(Bucket=_BUCKET, Key=one["Key"])["Body"] for one in listed)
        return Counter(body.read().decode() for body in bodies)
