"""Queues of one app in two stacks, deployed by the real CDK command line: the command finds all by the first,
and works on each.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from demo.stack import DeployedStack
from emulator import cdk
from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws
from smart_redriver.oncall.deployment.places import read_outputs
from tests.e2e.checked_aws import checked_aws
from tests.e2e.oncall_command import OnCall
from tests.e2e.queue_pairs import make_pairs
from tests.e2e.synthesized import deploy_all

QUEUES = {"orders": "", "parcels": "shipping", "labels": "shipping"}


@dataclass
class Shop:
    """Three queues that existed before, adopted by two stacks, and a person on call."""

    aws: LocalAws
    outputs: dict[str, str]
    on_call: OnCall

    def send(self, url: str, *bodies: str) -> None:
        for body in bodies:
            self.aws.client("sqs").send_message(QueueUrl=url, MessageBody=body)


def entry(name: str, stack: str) -> dict[str, str]:
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    where = {"stack": stack} if stack else {}
    return {"name": name, "source_arn": arn, "dead_letter_arn": f"{arn}-dlq", **where}


def toml(fields: dict[str, str]) -> str:
    return "\n".join(["[[queues]]", *(f"{key} = {json.dumps(one)}" for key, one in fields.items())])


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with checked_aws() as aws:
        cdk.prepare(aws)
        make_pairs(aws, *QUEUES)
        listed = aws.work_dir / "queues.toml"
        listed.write_text("\n".join(toml(entry(*one)) for one in QUEUES.items()))
        folder = aws.work_dir / "deployment"
        outputs = read_outputs(deploy_all(aws, {"queues": str(listed)}, folder))
        first = {name.removeprefix("Orders"): value for name, value in outputs.items()}
        yield Shop(aws, outputs, OnCall(DeployedStack(aws, first)))


def test_each_queue_is_in_the_stack_that_it_names(shop: Shop) -> None:
    functions = {
        name: shop.outputs[f"{name.title()}RedriveFunctionName"].startswith("SmartRedriver-ship")
        for name in QUEUES
    }

    assert functions == {"orders": False, "parcels": True, "labels": True}
    assert shop.outputs["RedriverStacks"] == "SmartRedriver SmartRedriver-shipping"


def test_the_command_finds_the_queues_of_both_by_the_first(shop: Shop) -> None:
    shop.send(shop.outputs["LabelsDeadLetterQueueUrl"], "a", "b")

    told = shop.on_call("status", "--overview", "--json").json["homes"]
    short = shop.on_call("status", "--overview")

    (home,) = told
    depths = {one["queue"]: one["depths"]["dead_letters"] for one in home["queues"]}
    assert depths == {"orders": 0, "parcels": 0, "labels": 2}
    assert not any(one["unknown"] for one in home["queues"])
    assert short.out.startswith("3 queues, 2 dead letters")


def test_a_pass_runs_and_its_log_is_read_in_either_stack(shop: Shop) -> None:
    for name in QUEUES:
        ran = shop.on_call("run", "--queue", name, "--yes")
        logged = shop.on_call("logs", "--queue", name, "--event", "pass.finished", "--json")

        assert ran.code == 0, ran.said
        assert logged.json["lines"], logged.said
        assert logged.json["log_group"] == shop.outputs[f"{name.title()}RedriveLogGroupName"]


def test_one_stack_is_looked_at_alone_by_its_name(shop: Shop) -> None:
    told = shop.on_call("status", "--stack", "SmartRedriver-shipping", "--overview", "--json")

    (home,) = told.json["homes"]
    assert {one["queue"] for one in home["queues"]} == {"parcels", "labels"}


def test_a_home_that_is_not_there_is_a_line_beside_one_that_is(shop: Shop) -> None:
    ran = shop.on_call("status", "--home", f"/{REGION}", "--home", "nobody")

    assert ran.code == 3, ran.said
    assert f"/{REGION} ({REGION}): 3 queues" in ran.out
    assert "nobody: not reached. That profile does not exist." in ran.out
