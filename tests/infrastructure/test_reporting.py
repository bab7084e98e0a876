"""Who may report, by which key, and where a consumer is told to do it."""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from smart_redriver.cdk import SmartRedriver
from smart_redriver.consumer.reporter import OUTCOME_QUEUE_URL, PARKING_LOT_URL, Reporter
from tests.infrastructure.adopted import entry, key_arn
from tests.infrastructure.app_process import UNBUNDLED
from tests.infrastructure.test_adoption import adopt, told

FOUR_DAYS = 4 * 24 * 3600
Granted = dict[str, set[str]]


def granted(policy: Mapping[str, Any]) -> Granted:
    """Actions by the logical id, or the ARN, of the resource."""
    found: Granted = {}
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            where = resource if isinstance(resource, str) else resource["Fn::GetAtt"][0]
            found.setdefault(where, set()).update(listed(statement["Action"]))
    return found


def listed(one_or_several: Any) -> list[Any]:
    return one_or_several if isinstance(one_or_several, list) else [one_or_several]


def by_kind(granted: Granted) -> Granted:
    """The same by what the resource is."""
    kinds = ("Outcomes", "ParkingLot", "Key")
    return {
        next((kind for kind in kinds if kind in where), where): actions
        for where, actions in granted.items()
    }


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")


def redriver(stack: cdk.Stack, key: kms.IKey | None = None) -> SmartRedriver:
    dead = sqs.Queue(stack, "DeadLetters", encryption_master_key=key)
    fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=5)
    return SmartRedriver(
        stack,
        "Redriver",
        source_queue=sqs.Queue(stack, "Source", dead_letter_queue=fails_to),
        dead_letter_queue=dead,
    )


def of_consumer(stack: cdk.Stack, *, key: kms.IKey | None = None) -> Granted:
    """What a consumer may do whom the construct lets report."""
    role = iam.Role(stack, "Consumer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    redriver(stack, key).grant_report(role)
    [policy] = [
        policy
        for name, policy in Template.from_stack(stack).find_resources("AWS::IAM::Policy").items()
        if name.startswith("Consumer")
    ]
    return by_kind(granted(policy))


SEND = {"sqs:SendMessage"}


def test_a_consumer_may_report_and_park_and_nothing_more(stack: cdk.Stack) -> None:
    assert of_consumer(stack) == {"Outcomes": SEND, "ParkingLot": SEND}


def test_a_consumer_may_use_the_key_of_what_it_sends_to(stack: cdk.Stack) -> None:
    assert of_consumer(stack, key=kms.Key(stack, "Key")) == {
        "Outcomes": SEND,
        "ParkingLot": SEND,
        "Key": {"kms:Decrypt", "kms:GenerateDataKey"},
    }


def test_consumers_elsewhere_take_a_managed_policy_that_says_the_same(template: Template) -> None:
    [(name, policy)] = template.find_resources("AWS::IAM::ManagedPolicy").items()

    assert by_kind(granted(policy)) == {"Outcomes": SEND, "ParkingLot": SEND}
    assert not {"Roles", "Users", "Groups"} & set(policy["Properties"])
    assert template.to_json()["Outputs"]["ReportPolicyArn"]["Value"] == {"Ref": name}


def test_each_adopted_queue_has_an_outcome_queue_and_a_policy_of_its_own() -> None:
    lot_key = key_arn(3)
    template = Template.from_stack(
        adopt(entry("orders", parking_lot_key_arn=lot_key), entry("mails"))
    )
    outputs = told(template)
    policies = template.find_resources("AWS::IAM::ManagedPolicy")

    for name, keys in (
        ("Orders", {lot_key: {"kms:Decrypt", "kms:GenerateDataKey"}}),
        ("Mails", {}),
    ):
        policy = policies[outputs[f"{name}ReportPolicyArn"]]
        outcomes = outputs[f"{name}OutcomeQueueUrl"]
        lot = outputs[f"{name}ParkingLotQueueUrl"]
        assert granted(policy) == {outcomes: SEND, lot: SEND, **keys}


def test_what_a_consumer_is_told_is_what_the_kit_reads(stack: cdk.Stack) -> None:
    made = redriver(stack)

    assert {name: stack.resolve(url) for name, url in made.report_environment.items()} == {
        OUTCOME_QUEUE_URL: stack.resolve(made.outcome_queue.queue_url),
        PARKING_LOT_URL: stack.resolve(made.parking_lot.queue_url),
    }
    assert not Reporter.from_env(env={}).is_on


def test_reports_are_kept_for_days_and_in_no_order(template: Template) -> None:
    url = template.to_json()["Outputs"]["OutcomeQueueUrl"]["Value"]["Ref"]
    queue = template.find_resources("AWS::SQS::Queue")[url]["Properties"]

    assert queue["MessageRetentionPeriod"] == FOUR_DAYS
    assert "FifoQueue" not in queue
