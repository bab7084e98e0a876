"""Any stack that holds a re-driver tells the command where it is, by one output for each."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from aws_cdk.assertions import Template
from constructs import Construct, IConstruct

from smart_redriver.cdk import MonitoringSettings, Naming, SmartRedriver, Targets
from smart_redriver.engine.config.deployment import read_environment
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.places import Place, read_places
from smart_redriver.oncall.terminal.exits import Refused
from tests.infrastructure.app_process import UNBUNDLED
from tests.infrastructure.test_adoption import _joined

FAKE_ACCOUNT = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "111122223333",
}


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")


def redriver(scope: Construct, construct_id: str = "Redriver", **given: Any) -> SmartRedriver:
    dead = sqs.Queue(scope, f"{construct_id}Dead")
    if "targets" not in given:
        fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=5)
        given["source_queue"] = sqs.Queue(
            scope, f"{construct_id}Source", dead_letter_queue=fails_to
        )
    return SmartRedriver(scope, construct_id, dead_letter_queue=dead, **given)


def places(stack: cdk.Stack, **more: str) -> dict[str, Place]:
    """What the command finds, by the name of each."""
    outputs = Template.from_stack(stack).to_json().get("Outputs", {})
    told = {name: _joined(one["Value"]) for name, one in outputs.items()}
    return {one.prefix: one for one in read_places("Shop", told | more)}


def test_the_only_re_driver_of_a_stack_is_found_with_all_that_the_command_needs(stack):
    made = redriver(stack, naming=Naming(known_as="shop-orders"))

    [place] = places(stack).values()

    assert place.prefix == ""
    assert place.deployment.source_queue_url == logical_id(made.source_queues[0])
    assert place.deployment.dlq_url == logical_id(made.dead_letter_queue)
    assert place.deployment.table_name.startswith("SmartRedriverState")
    assert place.function == logical_id(made.function)
    assert place.alarms_known_as[0] == "shop-orders"
    assert place.paging_topic.startswith("SmartRedriverTopics")


def logical_id(construct: IConstruct) -> str:
    return cdk.Stack.of(construct).resolve(construct.node.default_child.logical_id)


def test_several_of_them_are_told_apart_by_their_places_in_the_stack(stack):
    redriver(stack, "Redriver")
    redriver(stack, "MailsRedriver")
    redriver(Construct(stack, "refunds-of-2026"))
    redriver(stack, "Returns")

    assert set(places(stack)) == {"", "Mails", "RefundsOf2026", "Returns"}


def test_a_neighbour_without_monitoring_does_not_borrow_topics(stack):
    redriver(stack, "Redriver")
    redriver(stack, "MailsRedriver", monitoring=None)

    found = places(stack)

    assert found[""].paging_topic
    assert found["Mails"].paging_topic is None


def test_outputs_of_the_apps_own_are_no_re_drivers(stack):
    redriver(stack, "OrdersRedriver")

    found = places(
        stack, LegacySourceQueueUrl="https://x", TheirRedriver='{"a": "b"}', MyRedriver="no JSON"
    )

    assert set(found) == {"Orders"}


def test_the_output_can_be_switched_off(stack):
    made = redriver(stack, naming=Naming(output=False))

    assert made.output is None
    with pytest.raises(Refused, match="not a smart re-driver"):
        places(stack)


def test_the_output_may_have_another_name(stack):
    redriver(stack).output.override_logical_id("PaymentsRedriver")

    assert set(places(stack)) == {"Payments"}


@pytest.mark.parametrize("other", ["my-orders", "MyOrdersRedriver"])
def test_two_that_the_command_would_know_by_one_name_are_refused(stack, other):
    """It ended in a traceback of jsii about an output that exists."""
    redriver(stack, "MyOrders")

    with pytest.raises(SettingsError, match="the command knows both as MyOrders"):
        redriver(stack, other)


def test_what_is_in_a_nested_stack_is_told_by_the_one_that_a_person_deploys(stack):
    nested = cdk.NestedStack(stack, "Messaging")
    redriver(nested, "OrdersRedriver")

    template = Template.from_stack(stack).to_json()
    [(name, output)] = template["Outputs"].items()

    assert name == "MessagingOrdersRedriver"
    assert json.loads(_joined(output["Value"])).keys() >= {"SourceQueueUrl", "RedriveFunctionName"}
    assert "Outputs.Shop" in json.dumps(output["Value"])


def test_without_monitoring_there_is_no_alarm_topic_or_dashboard(stack):
    made = redriver(stack, monitoring=None)

    template = Template.from_stack(stack)

    assert (made.alarms, made.topics) == ((), None)
    for kind in (
        "CloudWatch::Alarm",
        "CloudWatch::CompositeAlarm",
        "CloudWatch::Dashboard",
        "SNS::Topic",
    ):
        template.resource_count_is(f"AWS::{kind}", 0)


def test_a_first_re_driver_without_monitoring_leaves_the_topics_to_the_second(stack):
    redriver(stack, "One", monitoring=None)
    redriver(stack, "Two", monitoring=MonitoringSettings(paging_emails=("ann@example.com",)))

    Template.from_stack(stack).resource_count_is("AWS::SNS::Topic", 2)


def test_metrics_and_alarms_are_there_for_an_apps_own_dashboard(stack):
    made = redriver(stack)

    names = {
        one.metric_name
        for one in (
            made.metric_dead_letters(),
            made.metric_parked_letters(),
            made.metric_letters_redriven(),
            made.metric_circuit_state(),
        )
    }

    assert names == {"DeadLetters", "ParkedLetters", "LettersRedriven", "CircuitState"}
    assert made.metric("Window").dimensions == {"QueueName": made.source_queues[0].queue_name}
    assert "CircuitOpen" in {one.node.id for one in made.alarms}


def constructs(stack: cdk.Stack, key: kms.IKey) -> dict[str, Any]:
    machine = stepfunctions.StateMachine(
        stack, "Machine", definition_body=stepfunctions.DefinitionBody.from_string("{}")
    )
    function = lambda_.Function(
        stack,
        "Function",
        code=lambda_.Code.from_inline("handler = print"),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_14,
    )
    return {
        "sqs": sqs.Queue(stack, "Queue", encryption_master_key=key),
        "lambda": function,
        "sns": sns.Topic(stack, "Topic"),
        "states": machine,
    }


def test_constructs_of_the_same_app_are_targets(stack):
    key = kms.Key(stack, "Key")
    given = constructs(stack, key)

    made = redriver(stack, targets=Targets(origin="eventbridge", to=list(given.values())))

    template = Template.from_stack(stack)
    resources = template.to_json()["Resources"]
    [ours] = [
        one["Properties"] for name, one in resources.items() if name == logical_id(made.function)
    ]
    variables = ours["Environment"]["Variables"]
    told = {name: _value(one, resources) for name, one in variables.items()}
    _, deployment = read_environment(told)
    assert [one.kind.value for one in deployment.targets] == list(given)
    # What the alarms go by is what the function will say, once both are deployed.
    [dimension] = stack.resolve(made.metric("Window").dimensions).values()
    assert _value(dimension, resources) == deployment.targets[0].name
    statements = [
        one
        for name, policy in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith("RedriverRole")
        for one in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    actions = {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
    assert {
        "lambda:InvokeFunction",
        "sns:Publish",
        "states:StartExecution",
        "sqs:SendMessage",
    } <= actions
    assert "kms:GenerateDataKey" in actions


def _value(value: Any, resources: dict[str, Any]) -> str:
    """What a deployment makes of a value: a resource's name is its logical id, or its attribute's."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        name = value["Ref"]
        kind = resources.get(name, {}).get("Type", "")
        return (
            f"https://sqs/1/{name}" if kind == "AWS::SQS::Queue" else FAKE_ACCOUNT.get(name, name)
        )
    if "Fn::GetAtt" in value:
        return str(value["Fn::GetAtt"][0])
    separator, parts = value["Fn::Join"]
    return str(separator).join(_value(one, resources) for one in parts)


def test_a_subscription_of_the_same_app_goes_before_its_endpoint(stack):
    topic = sns.Topic(stack, "Topic")
    queues = [sqs.Queue(stack, name) for name in ("One", "Two")]
    subscriptions = [
        sns.CfnSubscription(
            stack,
            f"{queue.node.id}Sub",
            topic_arn=topic.topic_arn,
            protocol="sqs",
            endpoint=queue.queue_arn,
        )
        for queue in queues
    ]

    pairs = [(one.ref, queue) for one, queue in zip(subscriptions, queues, strict=True)]
    made = redriver(stack, targets=Targets(origin="sns", to=pairs))

    assert [one.subscription for one in made.origin_config.targets] == [
        one.ref for one in subscriptions
    ]


def test_a_stream_is_a_target_of_sns(stack):
    stream = firehose.DeliveryStream.from_delivery_stream_arn(
        stack, "Stream", "arn:aws:firehose:eu-west-1:111122223333:deliverystream/mails"
    )

    made = redriver(stack, targets=Targets(origin="sns", to=[stream]))

    assert made.origin_config.targets[0].name == "firehose:mails"


def test_a_fifo_queue_of_the_app_is_no_target(stack):
    queue = sqs.Queue(stack, "Queue", fifo=True)

    with pytest.raises(SettingsError, match="only letters of SQS itself go back to FIFO queues"):
        redriver(stack, targets=Targets(origin="sns", to=[queue]))


def test_a_target_of_the_app_has_one_circuit_too(stack):
    queue = sqs.Queue(stack, "Queue")
    redriver(stack, "One", targets=Targets(origin="eventbridge", to=[queue]))

    with pytest.raises(SettingsError, match="a target that Shop/One does not have"):
        redriver(stack, "Two", targets=Targets(origin="sns", to=[queue]))
