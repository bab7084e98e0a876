"""The command with its own clients against moto, from the stack's outputs on: the shapes of real answers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
import time_machine
from moto import mock_aws
from moto.sqs.models import Queue

from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.cli import Asked, app
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.contract.moto_dlq import dead_letter_source_arns
from tests.faults.scenes import SOME
from tests.oncall.desk import park_all
from tests.oncall.ran import Ran

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
STACK = "SmartRedriver"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


def get(logical_id: str, attribute: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id, attribute]}


def ref(logical_id: str) -> dict[str, Any]:
    return {"Ref": logical_id}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


FORTNIGHT = {"MessageRetentionPeriod": 1_209_600}
TEMPLATE = {
    "Resources": {
        "Dlq": resource("SQS::Queue", **FORTNIGHT),
        "Lot": resource("SQS::Queue", **FORTNIGHT),
        "Source": resource(
            "SQS::Queue",
            QueueName="orders",
            VisibilityTimeout=30,
            RedrivePolicy={"deadLetterTargetArn": get("Dlq", "Arn"), "maxReceiveCount": 3},
        ),
        "Table": resource(
            "DynamoDB::Table",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        ),
        "Role": resource("IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Function": resource(
            "Lambda::Function",
            Handler="a.b",
            Runtime="python3.13",
            Role=get("Role", "Arn"),
            Code={"ZipFile": "def b(event, context): pass"},
            Environment={"Variables": Settings().to_env()},
        ),
    },
    "Outputs": {
        "SourceQueueUrl": {"Value": ref("Source")},
        "DeadLetterQueueUrl": {"Value": ref("Dlq")},
        "ParkingLotQueueUrl": {"Value": ref("Lot")},
        "StateTableName": {"Value": ref("Table")},
        "RedriveFunctionName": {"Value": ref("Function")},
    },
}


@dataclass
class Account:
    """A deployed stack on moto."""

    clock: time_machine.Traveller
    deployment: Deployment
    sqs: Any
    dynamodb: Any

    def __call__(self, *arguments: str, answer: str = "") -> Ran:
        """Type `redrive` with these arguments."""
        terminal = Terminal(
            out=io.StringIO(), err=io.StringIO(), answers=io.StringIO(answer + "\n")
        )

        def open_session(asked: Asked) -> Session:
            terminal.is_json, terminal.assume_yes = asked.json, asked.yes
            aws = Aws(connect_as(Caller(region=asked.region)))
            return Session(aws=aws, terminal=terminal, stack=asked.stack, sleep=self.clock.shift)

        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="redrive", obj=open_session)
        return Ran(
            code=int(ended.value.code or 0),
            out=terminal.out.getvalue(),  # type: ignore[attr-defined]
            err=terminal.err.getvalue(),  # type: ignore[attr-defined]
        )

    def park(self, *bodies: str) -> list[str]:
        """Let messages with these bodies die, and park them; their ids."""
        url = self.deployment.source_queue_url
        ids = [
            self.sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=SOME)
            for body in bodies
        ]
        for _ in range(4):
            self.bodies(url)
            self.clock.shift(31)
        store = StateStore(self.dynamodb, self.deployment.table_name, "orders")
        park_all(self.sqs, self.deployment, store, datetime.now(UTC), ParkReason.MAX_ATTEMPTS)
        return [one["MessageId"] for one in ids]

    def bodies(self, url: str) -> list[str]:
        """The bodies of all that is visible in a queue; it is hidden afterwards."""
        found: list[str] = []
        while messages := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            found += [one["Body"] for one in messages]
        return sorted(found)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Account]:
    monkeypatch.chdir(tmp_path)  # where originals are kept
    # An emulator's endpoint in the environment would take these calls out of moto's hands.
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")
    with (
        # It ticks: to moto, what was made visible at this very moment is not visible yet.
        time_machine.travel(START, tick=True) as clock,
        mock_aws(),
        dead_letter_source_arns(),
        patch.object(Queue, "wait_for_messages", lambda _queue, seconds: clock.shift(seconds + 1)),
    ):
        formation = boto3.client("cloudformation")
        formation.create_stack(StackName=STACK, TemplateBody=json.dumps(TEMPLATE))
        (stack,) = formation.describe_stacks(StackName=STACK)["Stacks"]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
        deployment = Deployment(
            queue_name="orders",
            table_name=outputs["StateTableName"],
            dlq_url=outputs["DeadLetterQueueUrl"],
            source_queue_url=outputs["SourceQueueUrl"],
            parking_lot_url=outputs["ParkingLotQueueUrl"],
        )
        yield Account(clock, deployment, boto3.client("sqs"), boto3.client("dynamodb"))


def test_the_deployment_is_found_and_parked_letters_are_told(account: Account) -> None:
    ids = account.park("a", "b")

    status, parked = account("status", "--json"), account("parked", "--list", "--json")

    (told,) = status.json["queues"]
    assert told["queue"] == "orders"
    assert told["depths"] == {"source": 0, "dead_letters": 0, "parked": 2}
    assert sorted(one["original_id"] for one in parked.json["letters"]) == sorted(ids)


def test_where_there_is_no_stack_region_and_account_are_named(account: Account) -> None:
    ran = account("status", "--stack", "Other", "--region", "eu-central-1")

    assert ran.code == 1
    assert "There is no stack 'Other' in eu-central-1 of account 123456789012." in ran.err


def test_letters_are_replayed_edited_deleted_and_imported(account: Account, tmp_path: Path) -> None:
    replayed, edited, _ = account.park("a", "broken", "c")
    file = tmp_path / "gone.jsonl"

    codes = [
        account("replay", replayed, "--yes").code,
        account("edit", edited, "--yes").code,
        account("delete", "--contains", "c", "--export", str(file), answer="1").code,
        account("import", str(file), "--to", "source", "--yes").code,
    ]

    assert codes == [0, 0, 0, 0]
    assert account.bodies(account.deployment.source_queue_url) == ["a", "c", "mended"]
    assert account.bodies(account.deployment.parking_lot_url) == []
    assert account("parked", "--json").json["count"] == 0
    assert len(account("history", "--json").json["changes"]) == 8


def test_letters_are_edited_by_a_command_come_back_and_are_put_back(
    account: Account, tmp_path: Path
) -> None:
    account.park("broken 1", "broken 2")
    swap = ("--with", "sed s/broken/mended/", "--export", "edits.jsonl")

    codes = [account("edit", "--all", *swap, "--yes").code]
    for _ in range(4):
        account.bodies(account.deployment.source_queue_url)
        account.clock.shift(31)
    codes.append(account("park", "--cause", "no json", "--yes").code)
    codes.append(account("undo", "edits.jsonl", "--export", "undone.jsonl", "--yes").code)

    assert codes == [0, 0, 0]
    assert account.bodies(account.deployment.parking_lot_url) == ["broken 1", "broken 2"]
    undone = (tmp_path / "undone.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["body"] for line in undone) == ["mended 1", "mended 2"]


def test_a_letter_is_shown_whole(account: Account) -> None:
    (message_id,) = account.park("crème")

    told = account("show", message_id, "--json").json

    assert told["message"]["body"] == "crème"
    assert told["message"]["attributes"]["blob"] == {"DataType": "Binary", "BinaryBase64": "AP8="}


def test_stuck_letters_are_counted_by_what_the_ledger_says_of_them(account: Account) -> None:
    account.park("a")
    now = datetime.now(UTC)
    out = Entry(
        original_id="out",
        queue="orders",
        first_seen=now,
        status=Status.REDRIVEN,
        current_id="out",
        cause="KeyError",
    )
    given_up = replace(out, original_id="given up", is_settled=True)
    failed = replace(out, original_id="failed", status=Status.FAILED)
    done = replace(out, original_id="done", status=Status.SUCCEEDED, is_settled=True)
    store = StateStore(account.dynamodb, account.deployment.table_name, "orders")
    store.write_ledger([out, given_up, failed, done], [], now)

    (told,) = account("causes", "--json").json["queues"]

    groups = [(one["cause"], one["in_dlq"], one["parked"]) for one in told["groups"]]
    assert groups == [("KeyError", 2, 0), (None, 0, 1)]


def test_orders_are_kept_with_the_circuit(account: Account) -> None:
    paused = account("pause", "--reason", "migration", "--for", "2h", "--yes", "--json").json
    opened = account("open", "--reason", "not now", "--yes", "--json").json

    assert paused["paused_until"].startswith("2026-01-10T14:00:")
    assert opened["circuit"] == "OPEN"


def test_a_stack_that_does_not_exist_is_told(account: Account) -> None:
    assert "There is no stack 'Other'" in account("status", "--stack", "Other").err
