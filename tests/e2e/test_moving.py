"""Queues that get another name or another stack, and a first deployment that fails,
by the real CDK command line on one local AWS.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from emulator import cdk
from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws
from tests.e2e.checked_aws import checked_aws
from tests.e2e.queue_pairs import make_pairs
from tests.e2e.synthesized import deploy_all


@dataclass
class Account:
    """One AWS account, on which the same app is deployed again and again."""

    aws: LocalAws
    deployments: int = 0

    def deploy(self, *entries: dict[str, str], **context: str) -> None:
        self.deployments += 1
        folder = self.aws.work_dir / f"deployment-{self.deployments}"
        folder.mkdir()
        listed = folder / "queues.toml"
        listed.write_text("\n".join(map(toml, entries)))
        given = {"queues": str(listed), "alarms": "all", **context}
        deploy_all(self.aws, given, folder)

    def left(self) -> set[str]:
        """What an account has of the kinds that outlive their stack."""
        queues = self.aws.client("sqs").list_queues().get("QueueUrls", [])
        tables = self.aws.client("dynamodb").list_tables()["TableNames"]
        logs = self.aws.client("logs").describe_log_groups()["logGroups"]
        return {*queues, *tables, *(one["logGroupName"] for one in logs)}

    def alarms(self) -> list[str]:
        """The names of all of them, without the hash of their place."""
        client = self.aws.client("cloudwatch")
        kinds = ["MetricAlarm", "CompositeAlarm"]
        pages = client.get_paginator("describe_alarms").paginate(AlarmTypes=kinds)
        found = [one for page in pages for kind in kinds for one in page[f"{kind}s"]]
        return [one["AlarmName"] for one in found]


def toml(fields: dict[str, str]) -> str:
    return "\n".join(["[[queues]]", *(f"{key} = {json.dumps(one)}" for key, one in fields.items())])


def entry(queue: str, **more: str) -> dict[str, str]:
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"
    return {"name": queue, "source_arn": arn, "dead_letter_arn": f"{arn}-dlq", **more}


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with checked_aws() as aws:
        cdk.prepare(aws)
        make_pairs(aws, "orders", "mails")
        yield Account(aws)


def places(alarms: list[str], alarm: str) -> dict[str, list[str]]:
    """Where the alarm of each queue is, or the page of each stack."""
    found: dict[str, list[str]] = {}
    for queue, kind, place in (one.split(" ") for one in alarms):
        if kind == alarm:
            found.setdefault(queue, []).append(place.rpartition("-")[0])
    return found


def test_a_queue_is_renamed_and_moved_to_another_stack_and_back(account: Account) -> None:
    """All of it was refused: CloudFormation makes the new alarms before it deletes the old ones."""
    orders, mails = "SmartRedriver-Adopted-Orders", "SmartRedriver-Adopted-Mails"
    steps: list[tuple[list[dict[str, str]], dict[str, str]]] = [
        ([entry("orders"), entry("mails")], {"orders": orders, "mails": mails}),
        (
            [entry("orders", name="shop"), entry("mails", stack="post")],
            {
                "orders": "SmartRedriver-Adopted-Shop",
                "mails": "SmartRedriver-post-Adopted-Mails",
            },
        ),
        (
            [entry("orders", name="shop", stack="post"), entry("mails")],
            {"orders": "SmartRedriver-post-Adopted-Shop", "mails": mails},
        ),
    ]
    made: list[list[str]] = []
    for entries, _ in steps:
        account.deploy(*entries)
        made.append(account.alarms())

    for alarms, (_, wanted) in zip(made, steps, strict=True):
        own = places(alarms, "LettersNearExpiry")
        assert own.keys() == wanted.keys()
        for queue, place in wanted.items():
            assert [one.removesuffix("-Alarms-Monitoring") for one in own[queue]] == [place]
        stacks = {
            "SmartRedriver-post" if "-post-" in one else "SmartRedriver" for one in wanted.values()
        }
        assert places(alarms, "LettersPileUp") == {
            one: [f"{one}-SmartRedriverMonitoringLettersPileUp"] for one in stacks
        }


def test_a_first_deployment_that_fails_leaves_nothing_and_its_retry_works() -> None:
    with checked_aws() as aws:
        cdk.prepare(aws)
        make_pairs(aws, "orders")
        account = Account(aws)
        account.deploy(entry("orders"), retain="false")
        taken = next(one for one in account.alarms() if "LettersNearExpiry" in one)
        cdk.destroy(aws, aws.work_dir / "deployment-1")
        before = account.left()
        cloudwatch = aws.client("cloudwatch")
        cloudwatch.put_metric_alarm(
            AlarmName=taken,
            Namespace="AWS/SQS",
            MetricName="NumberOfMessagesSent",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            ComparisonOperator="GreaterThanThreshold",
            Threshold=1,
        )

        with pytest.raises(cdk.CdkError, match="already exists"):
            account.deploy(entry("orders"), deletion_protection="false")
        left = account.left()
        cloudwatch.delete_alarms(AlarmNames=[taken])
        account.deploy(entry("orders"), deletion_protection="false")

        assert left == before
        assert len(account.left()) > len(before)
