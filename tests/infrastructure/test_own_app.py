"""The construct in somebody else's CDK app: the documented example, word by word, and what it shares."""

import json
import os
import subprocess
import sys

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from smart_redriver.cdk import SmartRedriver
from tests.infrastructure.app_process import ROOT, UNBUNDLED

EXAMPLE = ROOT / "examples" / "own_app.py"


def test_the_example_synthesizes_from_anywhere_with_nothing_but_the_path_to_this_project(tmp_path):
    env = {
        **os.environ,
        "PATH": os.pathsep.join([str(ROOT / "node_modules" / ".bin"), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "CDK_CONTEXT_JSON": json.dumps(UNBUNDLED),
        "CDK_OUTDIR": str(tmp_path / "out"),
    }

    subprocess.run([sys.executable, str(EXAMPLE)], cwd=tmp_path, env=env, check=True)

    template = json.loads((tmp_path / "out" / "OrdersRedriver.template.json").read_text())
    kinds = [resource["Type"] for resource in template["Resources"].values()]
    assert kinds.count("AWS::Lambda::Function") == 1
    assert kinds.count("AWS::Scheduler::Schedule") == 1
    assert kinds.count("AWS::SQS::Queue") == 2  # parking lot and outcome queue
    assert kinds.count("AWS::DynamoDB::GlobalTable") == 1
    assert kinds.count("AWS::CloudWatch::Dashboard") == 1
    [function] = [r for r in template["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    variables = function["Properties"]["Environment"]["Variables"]
    assert (variables["MODE"], variables["MAX_ATTEMPTS"]) == ("dry_run", "3")


def test_the_example_has_ten_lines_and_is_the_one_in_the_docs():
    code = EXAMPLE.read_text().split('"""')[2].strip()
    lines = [line for line in code.splitlines() if line and not line.startswith(("import", "from"))]

    assert len(lines) <= 10
    assert code in (ROOT / "docs" / "deploy.md").read_text()


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")


def redriver(stack: cdk.Stack, name: str, key: kms.IKey | None = None) -> SmartRedriver:
    dead_letters = sqs.Queue(stack, f"{name}DeadLetters", encryption_master_key=key)
    source = sqs.Queue(stack, name, encryption_master_key=key)
    return SmartRedriver(
        stack, f"{name}Redriver", source_queue=source, dead_letter_queue=dead_letters
    )


def test_the_redrivers_of_a_stack_share_one_state_table_and_two_topics(stack):
    first, second = redriver(stack, "Orders"), redriver(stack, "Mails")
    template = Template.from_stack(stack)

    template.resource_count_is("AWS::DynamoDB::GlobalTable", 1)
    template.resource_count_is("AWS::SNS::Topic", 2)
    template.resource_count_is("AWS::Lambda::Function", 2)
    assert first.topics is second.topics
    assert stack.resolve(first.table.table_name) == stack.resolve(second.table.table_name)


def test_two_stacks_of_an_app_share_nothing():
    app = cdk.App(context=UNBUNDLED)
    stacks = [cdk.Stack(app, "Shop"), cdk.Stack(app, "Bank")]
    for stack in stacks:
        redriver(stack, "Orders")

    for stack in stacks:
        Template.from_stack(stack).resource_count_is("AWS::DynamoDB::GlobalTable", 1)


def test_a_key_of_the_apps_own_lets_the_function_in(stack):
    key = kms.Key(stack, "Key")
    redriver(stack, "Orders", key)
    template = Template.from_stack(stack)

    actions = [
        set(statement["Action"])
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "Fn::GetAtt" in statement["Resource"]
        and str(statement["Resource"]["Fn::GetAtt"][0]).startswith("Key")
    ]
    assert actions == [{"kms:Decrypt", "kms:GenerateDataKey"}]
