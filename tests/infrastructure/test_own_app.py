"""The construct in somebody else's CDK app: the documented example, word by word, and what it shares."""

import json
import os
import subprocess
import sys
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template
from constructs import Construct

from smart_redriver.cdk import Naming, Resources, Safeguards, Settings, SmartRedriver
from smart_redriver.engine.errors import SettingsError
from tests.infrastructure.adopted import in_role, key_arn, queue_arn
from tests.infrastructure.app_process import ROOT, UNBUNDLED

FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:billing"
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
    assert kinds.count("AWS::CloudWatch::CompositeAlarm") == 2
    assert kinds.count("AWS::CloudWatch::Dashboard") == 0  # that is with Alarms.ALL
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
    fails_to = sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=5)
    source = sqs.Queue(stack, name, encryption_master_key=key, dead_letter_queue=fails_to)
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


def strict_key(stack: cdk.Stack, *actions: str) -> kms.Key:
    """A key whose policy lets the account's IAM allow these actions alone."""
    administer = iam.PolicyStatement(
        actions=list(actions), resources=["*"], principals=[iam.AccountRootPrincipal()]
    )
    return kms.Key(stack, "Key", policy=iam.PolicyDocument(statements=[administer]))


def let_in(stack: cdk.Stack) -> list[dict[str, Any]]:
    """What the policy of the app's key allows for re-drivers."""
    return [
        statement
        for name, key in Template.from_stack(stack).find_resources("AWS::KMS::Key").items()
        if name.startswith("Key")
        for statement in key["Properties"]["KeyPolicy"]["Statement"]
        if "kms:ViaService" in json.dumps(statement)
    ]


@pytest.mark.parametrize("place", ["with the queues", "beside", "nested"])
def test_a_key_of_the_apps_own_that_leaves_nothing_to_iam_lets_the_roles_in(stack, place):
    key = strict_key(stack, "kms:Create*", "kms:Put*")
    scope = {
        "with the queues": lambda: stack,
        "beside": lambda: cdk.Stack(stack.node.root, "Redrive"),
        "nested": lambda: cdk.NestedStack(stack, "Redrive"),
    }[place]()
    dead, source = (
        sqs.Queue.from_queue_attributes(scope, name, queue_arn=queue_arn(name))
        for name in ("orders-dlq", "orders")
    )
    lot = sqs.Queue(scope, "Lot", retention_period=cdk.Duration.days(14), encryption_master_key=key)
    SmartRedriver(
        scope,
        "Redriver",
        source_queue=source,
        dead_letter_queue=dead,
        resources=Resources(parking_lot=lot),
    )

    [statement] = let_in(stack)

    outermost = "Redrive" if place == "beside" else "Shop"
    arn = ["arn:", {"Ref": "AWS::Partition"}, ":iam::", {"Ref": "AWS::AccountId"}]
    via = ["sqs.", {"Ref": "AWS::Region"}, ".amazonaws.com"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {"AWS": {"Fn::Join": ["", [*arn, ":root"]]}},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": "*",
        "Condition": {
            "ArnLike": {"aws:PrincipalArn": {"Fn::Join": ["", [*arn, f":role/{outermost}-*"]]}},
            "StringEquals": {"kms:ViaService": {"Fn::Join": ["", via]}},
        },
    }


@pytest.mark.parametrize("actions", [["kms:*"], ["kms:Decrypt", "kms:Generate*"]])
def test_a_key_of_the_apps_own_that_leaves_its_use_to_iam_is_as_the_app_made_it(stack, actions):
    redriver(stack, "Orders", strict_key(stack, *actions))

    assert let_in(stack) == []


def test_a_key_of_the_apps_own_with_an_empty_policy_lets_the_roles_in(stack):
    redriver(stack, "Orders", kms.Key(stack, "Key", policy=iam.PolicyDocument()))

    assert len(let_in(stack)) == 1


def imported(stack: cdk.Stack, name: str) -> sqs.IQueue:
    return sqs.Queue.from_queue_arn(stack, f"Imported{len(stack.node.children)}", queue_arn(name))


def faults_of(stack: cdk.Stack, **given: Any) -> dict[str, str]:
    usual = {
        "source_queue": imported(stack, "orders"),
        "dead_letter_queue": imported(stack, "orders-dlq"),
    }
    with pytest.raises(SettingsError) as caught:
        SmartRedriver(stack, "Redriver", **{**usual, **given})
    return {fault.setting: fault.accepted for fault in caught.value.faults}


def test_settings_that_the_function_would_refuse_are_refused_at_synth(stack):
    faults = faults_of(
        stack, settings=Settings(max_attempts=-3, failure_rate=2, canary_size=60_000)
    )

    assert faults.keys() == {"max_attempts", "failure_rate", "canary_size"}


@pytest.mark.parametrize(
    ("role", "name", "other"),
    [
        ("dead_letter_queue", "orders", "source_queue"),
        ("parking_lot", "orders", "source_queue"),
        ("parking_lot", "orders-dlq", "dead_letter_queue"),
    ],
)
def test_a_queue_has_one_role(stack, role, name, other):
    assert faults_of(stack, **in_role(role, imported(stack, name))) == {
        role: f"another queue than {other}"
    }


def test_a_queue_of_the_apps_own_has_one_role_too(stack):
    queue = sqs.Queue(stack, "Queue")

    faults = faults_of(stack, source_queue=queue, dead_letter_queue=queue)

    assert faults["dead_letter_queue"] == "another queue than source_queue"


def test_a_further_source_is_another_one(stack):
    faults = faults_of(stack, further_sources=[imported(stack, name) for name in ("a", "orders")])

    assert faults == {"further_sources[1]": "another queue than source_queue"}


def test_a_dlq_has_as_many_source_queues_as_sqs_allows(stack):
    further = [imported(stack, f"mails-{number}") for number in range(10)]

    faults = faults_of(stack, further_sources=further)

    assert faults == {
        "further_sources": "at most 10 source queues of a DLQ, source_queue among them"
    }


@pytest.mark.parametrize(
    ("argument", "given", "expected"),
    [
        ("source_queue", "arn:aws:sqs:eu-west-1:111122223333:orders", "a queue: `sqs.Queue"),
        ("dead_letter_queue", None, "a queue: `sqs.Queue"),
        ("table", "redriver-state", "a table: a `dynamodb.TableV2`"),
        ("parking_lot_key", "arn:aws:kms:eu-west-1:111122223333:key/1", "a key: `kms.Key"),
        ("further_sources", "arn:aws:sqs:eu-west-1:111122223333:mails", "a list"),
        ("targets", FUNCTION, "a Targets"),
        ("resources", "table", "a Resources"),
        ("naming", "orders", "a Naming"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(stack, argument, given, expected):
    faults = faults_of(stack, **in_role(argument, given))

    assert list(faults) == [argument]
    assert faults[argument].startswith(expected)


def test_a_key_of_another_region_is_refused():
    stack = cdk.Stack(cdk.App(), "Shop", env=cdk.Environment(region="us-east-1"))

    faults = faults_of(stack, safeguards=Safeguards(encryption_key_arn=key_arn(1)))

    assert faults["encryption_key_arn"] == "a key of us-east-1, where the stack is"


def test_a_key_in_a_stack_that_may_be_deployed_anywhere_is_refused_with_a_sentence(stack):
    faults = faults_of(stack, safeguards=Safeguards(encryption_key_arn=key_arn(1)))

    assert faults["encryption_key_arn"].endswith("give the stack an `env`")


def test_a_queue_is_no_list_of_sources(stack):
    assert faults_of(stack, further_sources=imported(stack, "mails")) == {
        "further_sources": "a list"
    }


def test_two_redrivers_have_no_scope_of_monitoring_in_common(stack):
    alarms = Construct(stack, "Alarms")
    SmartRedriver(
        stack,
        "Mails",
        source_queue=imported(stack, "mails"),
        dead_letter_queue=imported(stack, "mails-dlq"),
        naming=Naming(monitoring_scope=alarms),
    )

    assert list(faults_of(stack, naming=Naming(monitoring_scope=alarms))) == ["monitoring_scope"]


LIKE_A_FIFO_SOURCE = "a FIFO queue, as source_queue is (order is kept from end to end)"


@pytest.mark.parametrize(("role", "name"), [("dead_letter_queue", "dlq"), ("parking_lot", "lot")])
def test_a_standard_queue_beside_fifo_ones_is_refused(stack, role, name):
    fifo = {
        "source_queue": imported(stack, "orders.fifo"),
        "dead_letter_queue": imported(stack, "dlq.fifo"),
    }

    given = {**fifo, **in_role(role, imported(stack, name))}
    assert faults_of(stack, **given) == {role: LIKE_A_FIFO_SOURCE}


def test_a_fifo_queue_beside_standard_ones_is_refused(stack):
    further = [imported(stack, name) for name in ("mails", "refunds.fifo")]

    assert faults_of(stack, further_sources=further) == {
        "further_sources[1]": "a standard queue, as source_queue is (order is kept from end to end)"
    }


def test_the_parking_lot_of_fifo_queues_is_fifo_and_reports_come_in_no_order(stack):
    SmartRedriver(
        stack,
        "Redriver",
        source_queue=imported(stack, "orders.fifo"),
        further_sources=[imported(stack, "mails.fifo")],
        dead_letter_queue=imported(stack, "dlq.fifo"),
    )

    queues = Template.from_stack(stack).find_resources("AWS::SQS::Queue")
    in_order = {name: queue["Properties"].get("FifoQueue") for name, queue in queues.items()}
    assert sorted(in_order.values(), key=str) == [None, True]
    assert [name for name, is_fifo in in_order.items() if is_fifo and "ParkingLot" in name]


@pytest.mark.parametrize("place", ["us-east-1:111122223333", "eu-west-1:444455556666"])
def test_queues_of_different_places_are_refused(stack, place):
    elsewhere = sqs.Queue.from_queue_arn(stack, "Elsewhere", f"arn:aws:sqs:{place}:orders-dlq")

    faults = faults_of(stack, dead_letter_queue=elsewhere)

    assert faults == {"dead_letter_queue": "a queue in eu-west-1/111122223333"}


def test_settings_in_text_arrive_as_what_they_say(stack):
    settings = Settings(memory_mib="256")  # type: ignore[arg-type]

    SmartRedriver(
        stack,
        "Redriver",
        source_queue=imported(stack, "orders"),
        dead_letter_queue=imported(stack, "orders-dlq"),
        settings=settings,
    )

    Template.from_stack(stack).has_resource_properties("AWS::Lambda::Function", {"MemorySize": 256})
