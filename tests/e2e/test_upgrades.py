"""Deployments over deployments: settings change, queues come and go, and nothing that holds letters is replaced.

One local AWS for all. The first steps are played before the tests, which look at what they left; the last two
tests, in this order, take the deployment down.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from demo.stack import APP_DIR
from emulator import cdk
from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws
from smart_redriver.oncall.deployment.places import read_outputs
from tests.e2e.checked_aws import checked_aws
from tests.e2e.queue_pairs import make_pairs

STACK = "SmartRedriver"
STATEFUL = (
    "AWS::SQS::Queue",
    "AWS::DynamoDB::GlobalTable",
    "AWS::Logs::LogGroup",
)


@dataclass
class Account:
    """One AWS account with three queues in use, and what each deployment made."""

    aws: LocalAws
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    stateful: dict[str, dict[str, str]] = field(default_factory=dict)

    def deploy(self, step: str, *queues: str, **context: str) -> None:
        """Deploy for these queues, and note outputs and stateful resources under `step`."""
        folder = self.aws.work_dir / step
        folder.mkdir()
        listed = folder / "queues.toml"
        listed.write_text("\n".join(_entry(queue) for queue in queues))
        self.outputs[step] = read_outputs(
            cdk.deploy(self.aws, APP_DIR, {"queues": str(listed), **context}, folder)
        )
        self.stateful[step] = self.resources(STACK)

    def resources(self, stack: str) -> dict[str, str]:
        """Physical ids of the stack's stateful resources by their logical ids."""
        cloudformation = self.aws.client("cloudformation")
        found = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        return {
            one["LogicalResourceId"]: one["PhysicalResourceId"]
            for one in found
            if one["ResourceType"] in STATEFUL
        }

    def environment(self, step: str, queue: str) -> dict[str, str]:
        """The variables of a queue's function, as they are now."""
        name = self.outputs[step][f"{queue.title()}RedriveFunctionName"]
        answer = self.aws.client("lambda").get_function_configuration(FunctionName=name)
        variables: dict[str, str] = answer["Environment"]["Variables"]
        return variables

    def park(self, url: str, body: str) -> None:
        self.aws.client("sqs").send_message(QueueUrl=url, MessageBody=body)

    def parked(self, url: str) -> list[str]:
        answer = self.aws.client("sqs").receive_message(
            QueueUrl=url, VisibilityTimeout=0, WaitTimeSeconds=0
        )
        return [message["Body"] for message in answer.get("Messages", [])]

    def depth(self, url: str) -> int:
        answer = self.aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(answer["Attributes"][count]) for count in counts)

    def state(self, key: str) -> Any:
        table = self.outputs["first"]["StateTableName"]
        answer = self.aws.client("dynamodb").get_item(TableName=table, Key={"PK": {"S": key}})
        return answer.get("Item")

    def queues_and_tables(self) -> set[str]:
        queues = self.aws.client("sqs").list_queues()["QueueUrls"]
        return {*queues, *self.aws.client("dynamodb").list_tables()["TableNames"]}

    def functions(self) -> list[str]:
        found = self.aws.client("lambda").list_functions()["Functions"]
        return [one["FunctionName"] for one in found]

    def invoke(self, step: str, queue: str) -> Any:
        name = self.outputs[step][f"{queue.title()}RedriveFunctionName"]
        answer = self.aws.client("lambda").invoke(FunctionName=name)
        return json.loads(answer["Payload"].read())


#: A circuit as the first version wrote it: with the attributes that the design names, and no others.
FIRST_CIRCUIT = {
    "PK": {"S": "CIRCUIT_BREAKER#orders"},
    "State": {"S": "OPEN"},
    "FailureCount": {"N": "3"},
    "SuccessCount": {"N": "0"},
    "LastStateChangeTimestamp": {"S": "2099-01-01T00:00:00Z"},
    "LastAttemptTimestamp": {"S": "2099-01-01T00:00:00Z"},
    "Window": {"N": "7"},
}


def _entry(queue: str) -> str:
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"
    lines = [f'name = "{queue}"', f'source_arn = "{arn}"', f'dead_letter_arn = "{arn}-dlq"']
    return "\n".join(["[[queues]]", *lines])


def _strict(aws: LocalAws) -> dict[str, str]:
    """What a strict account asks for, but for a network, which this local AWS gives no function."""
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    return {
        "encryption_key_arn": key,
        "tags": "team=payments",
        "log_retention_days": "90",
        "reserved_concurrency": "2",
        "permissions_boundary_arn": "arn:aws:iam::aws:policy/AdministratorAccess",
    }


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """Deployed, changed and destroyed, in the order of the steps' names."""
    with checked_aws() as aws:
        cdk.prepare(aws)
        make_pairs(aws, "orders", "mails", "refunds")
        account = Account(aws)
        account.deploy("first", "orders", "mails", mode="dry_run")
        for queue in ("Orders", "Mails"):
            account.park(account.outputs["first"][f"{queue}ParkingLotQueueUrl"], f"of {queue}")
        aws.client("dynamodb").put_item(
            TableName=account.outputs["first"]["StateTableName"], Item=FIRST_CIRCUIT
        )
        account.deploy(
            "second", "orders", "refunds", max_attempts="7", alarms="paging", **_strict(aws)
        )
        yield account


def test_a_queue_that_stays_keeps_its_parking_lot_table_and_log(account: Account) -> None:
    first, second = account.stateful["first"], account.stateful["second"]
    kept = {logical_id for logical_id in first if "Mails" not in logical_id}

    assert {kind for kind in ("ParkingLot", "Table", "Logs") if kind in str(kept)} == {
        "ParkingLot",
        "Table",
        "Logs",
    }
    assert {one: second[one] for one in kept} == {one: first[one] for one in kept}
    url = account.outputs["second"]["OrdersParkingLotQueueUrl"]
    assert account.parked(url) == ["of Orders"]


def test_what_a_strict_account_asks_for_reaches_what_was_there(account: Account) -> None:
    lot = account.outputs["second"]["OrdersParkingLotQueueUrl"]
    attributes = account.aws.client("sqs").get_queue_attributes(
        QueueUrl=lot, AttributeNames=["KmsMasterKeyId"]
    )["Attributes"]
    name = account.outputs["second"]["OrdersRedriveFunctionName"]
    reserved = account.aws.client("lambda").get_function_concurrency(FunctionName=name)

    assert ":key/" in attributes["KmsMasterKeyId"]
    assert reserved["ReservedConcurrentExecutions"] == 2


def test_a_queue_that_is_added_gets_what_is_its_own_and_shares_the_table(account: Account) -> None:
    added = set(account.stateful["second"]) - set(account.stateful["first"])

    assert all("Refunds" in logical_id for logical_id in added)
    assert len(added) == 3  # its parking lot, its outcome queue and its log
    table = account.outputs["first"]["StateTableName"]
    assert account.environment("second", "refunds")["DYNAMODB_TABLE_NAME"] == table


def test_the_parking_lot_of_a_queue_that_is_removed_stays_with_its_letters(
    account: Account,
) -> None:
    removed = set(account.stateful["first"]) - set(account.stateful["second"])

    assert removed
    assert all("Mails" in logical_id for logical_id in removed)
    assert "MailsRedriveFunctionName" not in account.outputs["second"]
    url = account.outputs["first"]["MailsParkingLotQueueUrl"]
    assert account.parked(url) == ["of Mails"]


def test_changed_settings_reach_the_function_that_was_there(account: Account) -> None:
    variables = account.environment("second", "orders")

    name = "OrdersRedriveFunctionName"
    assert account.outputs["second"][name] == account.outputs["first"][name]
    assert (variables["MODE"], variables["MAX_ATTEMPTS"]) == ("automatic", "7")


def test_a_circuit_that_the_first_version_wrote_is_read_and_kept(account: Account) -> None:
    report = account.invoke("second", "orders")

    assert (report["circuit_before"], report["window"]) == ("OPEN", 7)
    assert report["faults"] == {}
    assert account.state("CIRCUIT_BREAKER#orders")["State"] == {"S": "OPEN"}


def test_destroy_leaves_queues_letters_and_table(account: Account) -> None:
    stateful = {one for name, one in account.resources(STACK).items() if "Logs" not in name}

    sqs = account.aws.client("sqs")
    urls = {
        name: sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in ("orders", "orders-dlq")
    }
    before = {url: account.depth(url) for url in urls.values()}
    for url in urls.values():  # one letter out, and one dead, both in somebody's hands
        account.park(url, "in flight")
        sqs.receive_message(QueueUrl=url, VisibilityTimeout=600)

    cdk.destroy(account.aws, account.aws.work_dir / "second")

    assert {url: account.depth(url) - count for url, count in before.items()} == dict.fromkeys(
        before, 1
    )
    named = sqs.list_queues(QueueNamePrefix="SmartRedriver")["QueueUrls"]
    assert {one for one in stateful if "ParkingLot" in one} <= set(
        named
    )  # as docs/deploy.md finds them
    assert stateful <= account.queues_and_tables()
    assert account.depth(account.outputs["second"]["OrdersParkingLotQueueUrl"]) == 1
    assert account.state("CIRCUIT_BREAKER#orders") is not None
    assert not account.functions()


def test_a_stack_that_does_not_retain_is_destroyed_without_a_trace(account: Account) -> None:
    """After the test above, which has taken the other deployment down."""
    folder = account.aws.work_dir / "third"
    outputs = cdk.deploy(account.aws, APP_DIR, {"retain": "false"}, folder)
    names = ("SourceQueueUrl", "DeadLetterQueueUrl", "ParkingLotQueueUrl", "StateTableName")
    stateful = {outputs[name] for name in names}
    assert stateful <= account.queues_and_tables()

    cdk.destroy(account.aws, folder)

    assert not stateful & account.queues_and_tables()
    assert not account.functions()
