"""What the construct refuses of queues that the app makes itself: letters would be lost, or never come."""

import json
from contextlib import nullcontext
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk import Resources, SmartRedriver
from smart_redriver.engine.errors import SettingsError
from tests.infrastructure.adopted import ACCOUNT, in_role, key_arn, queue_arn
from tests.infrastructure.app_process import UNBUNDLED
from tests.infrastructure.conftest import FLAGS, check_by_the_cdk

CHINESE_KEY = key_arn(1).replace("arn:aws", "arn:aws-cn").replace("eu-west-1", "cn-north-1")
FOURTEEN, ONE = cdk.Duration.days(14), cdk.Duration.days(1)


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")


def a_queue(stack: cdk.Stack, name: str, **more: Any) -> sqs.Queue:
    return sqs.Queue(stack, name, **more)


def failing_to(dead_letters: sqs.IQueue, after: float = 5) -> dict[str, Any]:
    return {"dead_letter_queue": sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=after)}


def refused(stack: cdk.Stack, **queues: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        SmartRedriver(stack, "Redriver", **queues)
    return {fault.setting: fault.accepted for fault in caught.value.faults}


def test_a_source_whose_failed_messages_go_elsewhere_is_refused(stack):
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    other = a_queue(stack, "Other", retention_period=FOURTEEN)
    source = a_queue(stack, "Source", **failing_to(other))

    assert refused(stack, source_queue=source, dead_letter_queue=dead) == {
        "source_queue": "a queue whose failed messages go to dead_letter_queue"
    }


def test_a_dead_letter_queue_with_one_of_its_own_is_refused(stack):
    dead = a_queue(stack, "Dead", **failing_to(a_queue(stack, "Deader")))
    source = a_queue(stack, "Source", **failing_to(dead))

    faults = refused(stack, source_queue=source, dead_letter_queue=dead)

    assert list(faults) == ["dead_letter_queue"]
    assert "without a dead-letter queue of its own" in faults["dead_letter_queue"]


def test_a_dead_letter_queue_that_forgets_before_any_of_its_sources_is_refused(stack):
    dead = a_queue(stack, "Dead", retention_period=ONE)
    source = a_queue(stack, "Source", retention_period=ONE, **failing_to(dead))
    further = a_queue(stack, "Further", **failing_to(dead))

    faults = refused(stack, source_queue=source, further_sources=[further], dead_letter_queue=dead)

    assert faults == {
        "dead_letter_queue.retention_period": "at least the 345600 s for which "
        "further_sources[0] keeps messages"
    }


def test_a_parking_lot_that_forgets_first_or_lets_letters_go_is_refused(stack):
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    source = a_queue(stack, "Source", **failing_to(dead))
    lot = a_queue(stack, "Lot", **failing_to(a_queue(stack, "Deader")))

    faults = refused(
        stack, source_queue=source, dead_letter_queue=dead, resources=Resources(parking_lot=lot)
    )

    assert set(faults) == {"parking_lot.retention_period", "parking_lot"}


def warned(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("retention"))
    return [str(one.entry.data) for one in found]


@pytest.mark.parametrize(
    ("kept", "seconds"), [({}, 345_600), ({"retention_period": cdk.Duration.days(13)}, 1_123_200)]
)
def test_a_dead_letter_queue_that_keeps_letters_for_less_than_14_days_is_warned_of(
    stack, kept, seconds
):
    dead = a_queue(stack, "Dead", **kept)
    source = a_queue(stack, "Source", **failing_to(dead))

    made = SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    [told] = warned(stack)
    assert told.startswith(f"dead_letter_queue (Shop/Dead) keeps letters for {seconds} s, then ")
    assert "to 14 days, the most there is. [ack: smart-redriver:retention]" in told
    cdk.Annotations.of(made).acknowledge_warning("smart-redriver:retention", "short by intent")
    assert warned(stack) == []


def test_a_parking_lot_that_keeps_letters_for_less_than_14_days_is_warned_of(stack):
    dead, source = (
        sqs.Queue.from_queue_arn(stack, name, queue_arn(name)) for name in ("orders-dlq", "orders")
    )
    resources = Resources(parking_lot=a_queue(stack, "Lot"))

    SmartRedriver(
        stack, "Redriver", source_queue=source, dead_letter_queue=dead, resources=resources
    )

    [told] = warned(stack)
    assert told.startswith("parking_lot (Shop/Lot) keeps letters for 345600 s")


@pytest.mark.parametrize("kept", ["14 days", "told at deployment"])
def test_a_queue_that_keeps_letters_as_long_as_sqs_can_is_not_warned_of(stack, kept):
    later = cdk.CfnParameter(stack, "Kept", type="Number").value_as_number
    retention = FOURTEEN if kept == "14 days" else cdk.Duration.seconds(later)
    dead = a_queue(stack, "Dead", retention_period=retention)
    source = a_queue(stack, "Source", **failing_to(dead))

    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    assert warned(stack) == []


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (
            600,
            "source_queue (Shop/Source) keeps a message for 600 s, and one that fails takes 600 s to go to the "
            "dead_letter_queue: SQS deletes it before.",
        ),
        (601, None),
    ],
)
def test_a_source_queue_that_forgets_messages_before_they_fail_is_warned_of(stack, kept, told):
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    source = a_queue(
        stack,
        "Source",
        retention_period=cdk.Duration.seconds(kept),
        visibility_timeout=cdk.Duration.minutes(2),
        **failing_to(dead),
    )

    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    assert [one.partition(" Set its ")[0] for one in warned(stack)] == ([told] if told else [])


def test_receives_that_only_a_deployment_knows_are_not_reckoned_with(stack):
    """They are an absurd number at synth, which made an alarm that CloudFormation refuses."""
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    after = cdk.CfnParameter(stack, "Receives", type="Number").value_as_number
    source = a_queue(stack, "Source", **failing_to(dead, after))

    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    alarms = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    assert min(one["Properties"]["EvaluationPeriods"] for one in alarms) >= 1
    assert warned(stack) == []


@pytest.mark.parametrize("fifo", ["source", "dead"])
def test_a_pair_of_which_one_is_fifo_is_refused(stack, fifo):
    queues = {
        name: a_queue(stack, name, fifo=True if name == fifo else None)
        for name in ("source", "dead")
    }

    faults = refused(stack, source_queue=queues["source"], dead_letter_queue=queues["dead"])

    kind = "FIFO" if fifo == "source" else "standard"
    # The CDK itself makes no such pair, so that the source fails to nothing.
    assert set(faults) == {"source_queue", "dead_letter_queue"}
    assert faults["dead_letter_queue"].startswith(f"a {kind} queue, as source_queue is")


def consumer(stack: cdk.Stack, queue: sqs.IQueue, timeout: int) -> None:
    function = lambda_.Function(
        stack,
        "Consumer",
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler="index.handler",
        code=lambda_.Code.from_inline("handler = print"),
        timeout=cdk.Duration.seconds(timeout),
    )
    function.add_event_source(event_sources.SqsEventSource(queue))


@pytest.mark.parametrize(("timeout", "is_refused"), [(30, False), (31, True)])
def test_a_consumer_that_works_longer_than_its_messages_are_hidden_is_refused_by_the_cdk(
    timeout, is_refused
):
    """Which is why the construct does not look for it."""
    app = cdk.App(context={**FLAGS, **UNBUNDLED})
    check_by_the_cdk(app)
    stack = cdk.Stack(app, "Shop")
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    hidden = cdk.Duration.seconds(30)
    source = a_queue(stack, "Source", visibility_timeout=hidden, **failing_to(dead))
    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)
    consumer(stack, source, timeout)

    with pytest.raises(RuntimeError, match="Validation") if is_refused else nullcontext():
        app.synth()


def test_of_queues_that_exist_nothing_is_presumed(stack):
    source, dead = (
        sqs.Queue.from_queue_arn(stack, name, queue_arn(name)) for name in ("orders", "orders-dlq")
    )
    consumer(stack, source, 900)

    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)

    Template.from_stack(stack).resource_count_is("AWS::Lambda::EventSourceMapping", 1)


@pytest.mark.parametrize("role", ["source_queue", "dead_letter_queue", "parking_lot"])
def test_an_arn_is_no_queue(stack, role):
    queues = {"source_queue": a_queue(stack, "A"), "dead_letter_queue": a_queue(stack, "B")}

    assert refused(stack, **queues | in_role(role, queue_arn("orders"))) == {
        role: "a queue: `sqs.Queue.from_queue_arn` makes one of an ARN"
    }


@pytest.mark.parametrize(
    ("setting", "given", "accepted"),
    [
        ("settings", {"max_attempts": 3}, "a Settings"),
        ("safeguards", {"vpc_id": "vpc-12345678"}, "a Safeguards"),
        ("monitoring", "paging", "a MonitoringSettings"),
        ("topics", "oncall@example.com", "a Topics"),
    ],
)
def test_what_is_of_another_type_is_refused_by_its_name(stack, setting, given, accepted):
    dead = a_queue(stack, "Dead", retention_period=FOURTEEN)
    source = a_queue(stack, "Source", **failing_to(dead))

    told = refused(stack, source_queue=source, dead_letter_queue=dead, **in_role(setting, given))

    assert told == {setting: accepted}


def test_queues_and_keys_whose_arns_only_a_deployment_knows_are_served_and_told_of(stack):
    def told_of(name: str) -> sqs.IQueue:
        arn, key = (
            cdk.CfnParameter(stack, f"{name}{what}Arn").value_as_string for what in ("", "Key")
        )
        return sqs.Queue.from_queue_attributes(stack, name, queue_arn=arn, key_arn=key)

    SmartRedriver(
        stack, "Redriver", source_queue=told_of("Orders"), dead_letter_queue=told_of("Dead")
    )

    [told] = Annotations.from_stack(stack).find_info(
        "*", Match.string_like_regexp("Statements for")
    )
    text = str(told.entry.data)
    statements = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert statements.keys() == {"${OrdersArn}", "${OrdersKeyArn}", "${DeadArn}", "${DeadKeyArn}"}
    of_key = statements["${OrdersKeyArn}"]
    whole_account = "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"
    assert of_key["Principal"] == {"AWS": whole_account}
    assert of_key["Condition"]["StringEquals"] == {
        "kms:ViaService": "sqs.${AWS::Region}.amazonaws.com"
    }
    assert "Replace each $ and its braces by the value in the deployment." in text


def told_of_foreign_queues(stack: cdk.Stack, orders: str) -> str:
    source, dead = (
        sqs.Queue.from_queue_attributes(stack, name, queue_arn=arn, key_arn=CHINESE_KEY)
        for name, arn in (("Orders", orders), ("Dead", queue_arn("orders-dlq")))
    )
    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)
    [told] = Annotations.from_stack(stack).find_info(
        "*", Match.string_like_regexp("Statements for")
    )
    return str(told.entry.data)


def test_statements_of_an_app_without_flags_and_a_place_can_be_pasted(stack):
    """Its partition, Region and account are functions of CloudFormation: the ARNs given say what they will be."""
    text = told_of_foreign_queues(stack, queue_arn("orders"))

    statements = json.loads(text[text.index("{") : text.rindex("}") + 1])
    of_queue, of_key = statements[queue_arn("orders")], statements[CHINESE_KEY]
    assert of_queue["Condition"]["ArnLike"] == {
        "aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/Shop-*"
    }
    assert of_key["Principal"] == {"AWS": f"arn:aws-cn:iam::{ACCOUNT}:root"}
    assert of_key["Condition"]["StringEquals"] == {"kms:ViaService": "sqs.cn-north-1.amazonaws.com"}
    assert "$" not in text
    assert "Fn::" not in text


def test_a_queue_that_another_stack_exports_is_told_of_by_its_export(stack):
    text = told_of_foreign_queues(stack, cdk.Fn.import_value("orders-arn"))

    statements = json.loads(text[text.index("{") : text.rindex("}") + 1])
    name = '${Fn::ImportValue of "orders-arn"}'
    assert statements[name]["Resource"] == name


@pytest.mark.parametrize(
    ("env", "is_refused"),
    [
        ({"region": "us-east-1"}, True),
        ({"account": "444455556666", "region": "eu-west-1"}, True),
        ({"account": ACCOUNT, "region": "eu-west-1"}, False),
        ({"region": "eu-west-1"}, False),
        ({}, False),
    ],
)
def test_queues_that_are_not_where_the_stack_is_are_refused(env, is_refused):
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop", env=cdk.Environment(**env))
    queues: dict[str, Any] = {
        "source_queue": sqs.Queue.from_queue_arn(stack, "Orders", queue_arn("orders")),
        "dead_letter_queue": sqs.Queue.from_queue_arn(stack, "Dead", queue_arn("orders-dlq")),
    }

    if is_refused:
        assert list(refused(stack, **queues)) == ["source_queue", "dead_letter_queue"]
    else:
        SmartRedriver(stack, "Redriver", **queues)


@pytest.mark.parametrize(
    "arn",
    [
        f"arn:aws:sns:eu-west-1:{ACCOUNT}:orders",
        f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders*",
        f"arn:aws:sqs:*:{ACCOUNT}:orders",
        f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders:extra",
    ],
)
def test_a_queue_imported_by_what_is_no_arn_of_one_queue_is_refused(stack, arn):
    dead = sqs.Queue.from_queue_arn(stack, "Dead", queue_arn("orders-dlq"))
    source = sqs.Queue.from_queue_arn(stack, "Orders", arn)

    assert refused(stack, source_queue=source, dead_letter_queue=dead) == {
        "source_queue": "the ARN of one SQS queue"
    }


@pytest.mark.parametrize(
    ("region", "partition", "named"),
    [("eu-west-1", "aws", "aws-cn"), ("cn-north-1", "aws-cn", "aws")],
)
def test_a_queue_in_another_partition_than_its_region_is_refused(stack, region, partition, named):
    def imported(name: str, partition: str) -> sqs.IQueue:
        arn = f"arn:{partition}:sqs:{region}:{ACCOUNT}:{name}"
        return sqs.Queue.from_queue_arn(stack, name, arn)

    queues = {"source_queue": imported("orders", partition)}

    faults = refused(stack, **queues, dead_letter_queue=imported("orders-dlq", named))

    assert faults == {"dead_letter_queue": f"an ARN in the partition {partition}, as {region} is"}


def test_the_partition_of_a_region_that_the_cdk_does_not_know_is_as_named(stack):
    source, dead = (
        sqs.Queue.from_queue_arn(stack, name, f"arn:aws-new:sqs:xx-new-9:{ACCOUNT}:{name}")
        for name in ("orders", "orders-dlq")
    )

    SmartRedriver(stack, "Redriver", source_queue=source, dead_letter_queue=dead)
