"""The plain template, deployed as plain CloudFormation.

Its function redrives a letter, and the command finds it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.environments import ROOT
from emulator.process import LocalAws
from smart_redriver import __version__
from tests.e2e.checked_aws import checked_aws

STACK, BUCKET, NAME = "orders-redriver", "code-of-the-release", f"smart-redriver-{__version__}"
#: Seconds that one command may take on a busy machine.
PATIENCE = 300


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    program = ROOT / "packages" / "template" / "build.py"
    subprocess.run([sys.executable, program, folder], check=True, capture_output=True)
    return folder


class Deployed:
    """Two queues that were there before, and the stack."""

    def __init__(self, aws: LocalAws, dist: Path) -> None:
        self.aws = aws
        self.sqs = aws.client("sqs")
        s3 = aws.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.upload_file(str(dist / f"{NAME}.zip"), BUCKET, f"{NAME}.zip")
        self._template = (dist / f"{NAME}.template.json").read_text()
        self.source, self.dead = self.make_queues("orders")
        self.deploy(STACK, self.source, self.dead)
        resources = aws.client("cloudformation").describe_stack_resources(StackName=STACK)
        [self.function] = [
            one["PhysicalResourceId"]
            for one in resources["StackResources"]
            if one["ResourceType"] == "AWS::Lambda::Function"
        ]

    def make_queues(self, name: str) -> tuple[str, str]:
        """The URLs of a source queue of this name, and of its DLQ."""
        dead = self.sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
        redrive = {"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": 1}
        attributes = {"RedrivePolicy": json.dumps(redrive), "VisibilityTimeout": "0"}
        return self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"], dead

    def deploy(self, stack: str, source: str, dead: str) -> None:
        given = {
            "SourceQueueArn": self.arn(source),
            "DeadLetterQueueArn": self.arn(dead),
            "CodeBucket": BUCKET,
            "MaxAttempts": "3",
            "BaseDelaySeconds": "0",
        }
        cloudformation = self.aws.client("cloudformation")
        # `aws cloudformation deploy` does the same.
        cloudformation.create_change_set(
            StackName=stack,
            ChangeSetName="first",
            ChangeSetType="CREATE",
            Capabilities=["CAPABILITY_IAM"],
            TemplateBody=self._template,
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value} for name, value in given.items()
            ],
        )
        cloudformation.execute_change_set(StackName=stack, ChangeSetName="first")
        cloudformation.get_waiter("stack_create_complete").wait(StackName=stack)

    def arn(self, url: str) -> str:
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(attributes["Attributes"]["QueueArn"])

    def run_pass(self) -> dict[str, Any]:
        answer = self.aws.client("lambda").invoke(FunctionName=self.function, Payload=b"{}")
        return dict(json.loads(answer["Payload"].read()))

    def redrive(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "smart_redriver.oncall", *arguments, "--stack", STACK],
            env=self.aws.environment() | {"PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def deployed(dist: Path) -> Iterator[Deployed]:
    with checked_aws() as aws:
        yield Deployed(aws, dist)


def test_its_function_gives_a_letter_back(deployed: Deployed) -> None:
    sent = deployed.sqs.send_message(QueueUrl=deployed.source, MessageBody="an order")["MessageId"]
    for _ in range(2):
        deployed.sqs.receive_message(QueueUrl=deployed.source)

    report = deployed.run_pass()

    assert report["redriven"] == 1, report
    [back] = deployed.sqs.receive_message(
        QueueUrl=deployed.source, MessageAttributeNames=["All"], WaitTimeSeconds=10
    )["Messages"]
    assert back["Body"] == "an order"
    assert sent in back["MessageAttributes"]["RedriveTrail"]["StringValue"]


def test_the_command_finds_it_and_its_settings(deployed: Deployed) -> None:
    status = json.loads(deployed.redrive("status", "--json"))

    assert "orders" in json.dumps(status)
    variables = deployed.aws.client("lambda").get_function_configuration(
        FunctionName=deployed.function
    )["Environment"]["Variables"]
    assert variables["MAX_ATTEMPTS"] == "3"


def test_a_second_stack_serves_other_queues(deployed: Deployed) -> None:
    """Refused before: its composite alarms had the names of the first one's."""
    deployed.deploy("mails-redriver", *deployed.make_queues("mails"))

    alarms = deployed.aws.client("cloudwatch").describe_alarms(AlarmTypes=["CompositeAlarm"])
    assert sorted(one["AlarmName"] for one in alarms["CompositeAlarms"]) == [
        f"{queue} {alarm} {queue}-redriver"
        for queue in ("mails", "orders")
        for alarm in ("LettersPileUp", "RedriverUnwell")
    ]
