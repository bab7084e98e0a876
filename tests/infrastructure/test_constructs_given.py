"""Constructs instead of ARNs and numbers of days, and what is wrong among them:

all refused by name, with a sentence.
"""

import json
import re
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk import (
    MonitoringSettings,
    Naming,
    OnCallPolicies,
    Resources,
    Safeguards,
    Settings,
    SettingsError,
    SmartRedriver,
    Targets,
    Topics,
)
from tests.infrastructure.adopted import ACCOUNT, REGION, key_arn, queue_arn
from tests.infrastructure.app_process import UNBUNDLED


@pytest.fixture
def stack() -> cdk.Stack:
    env = cdk.Environment(account=ACCOUNT, region=REGION)
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop", env=env)


def redriver(stack: cdk.Stack, name: str = "orders", **given: Any) -> SmartRedriver:
    source, dead = (
        sqs.Queue.from_queue_arn(stack, one.title().replace("-", ""), queue_arn(one))
        for one in (name, f"{name}-dlq")
    )
    usual = {"source_queue": source, "dead_letter_queue": dead}
    return SmartRedriver(stack, f"{name.title()}Redriver", **{**usual, **given})


def refused(stack: cdk.Stack, **given: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        redriver(stack, **given)
    return {fault.setting: fault.accepted for fault in caught.value.faults}


def test_a_key_of_the_apps_own_gets_the_statements_that_services_need_once(stack):
    key = kms.Key(stack, "Key")
    for name in ("orders", "mails"):
        redriver(stack, name, safeguards=Safeguards.of(encryption_key=key))

    template = Template.from_stack(stack)
    [policy] = [
        one["Properties"]["KeyPolicy"]["Statement"]
        for name, one in template.find_resources("AWS::KMS::Key").items()
        if name.startswith("Key")
    ]
    services = [one["Principal"]["Service"] for one in policy if "Service" in one["Principal"]]
    assert services.count(f"logs.{REGION}.amazonaws.com") == 1
    assert "cloudwatch.amazonaws.com" in services
    [condition] = [
        one["Condition"]["ArnLike"] for one in policy if one.get("Sid") == "SmartRedriverLogs"
    ]
    assert json.dumps(condition).endswith(f':logs:{REGION}:{ACCOUNT}:log-group:Shop-*"]]}}}}')
    groups = template.find_resources("AWS::Logs::LogGroup").values()
    assert all("KmsKeyId" in one["Properties"] for one in groups)
    Annotations.from_stack(stack).has_no_info("*", Match.string_like_regexp("encryption key must"))


def test_a_key_of_the_apps_own_template_is_no_foreign_key(stack):
    """`kms.Key.from_cfn_key` lets statements be added, but does not count as owned by the CDK."""
    resource = kms.CfnKey(stack, "Key", key_policy={"Version": "2012-10-17", "Statement": []})
    key = kms.Key.from_cfn_key(resource)
    lot = Resources(parking_lot_key=key)
    redriver(stack, "orders", safeguards=Safeguards.of(encryption_key=key), resources=lot)

    statements = stack.resolve(resource.key_policy)["Statement"]
    services = [one["Principal"].get("Service") for one in statements]
    assert {f"logs.{REGION}.amazonaws.com", "cloudwatch.amazonaws.com"} <= {*services}
    assert any("aws:PrincipalArn" in one["Condition"].get("ArnLike", {}) for one in statements)
    for told in ("policy of the encryption key", r"\$\{Key"):
        Annotations.from_stack(stack).has_no_info("*", Match.string_like_regexp(told))


def test_the_owner_of_a_foreign_key_is_told_once_in_one_line(stack):
    key = kms.Key.from_key_arn(stack, "Key", key_arn(1))
    for name in ("orders", "mails"):
        redriver(stack, name, safeguards=Safeguards.of(encryption_key=key))

    found = Annotations.from_stack(stack).find_info(
        "*", Match.string_like_regexp("policy of the encryption key")
    )
    [told] = [one.entry.data for one in found]
    assert "\n" not in told.split(" [ack:")[0].strip()
    assert key_arn(1) in told  # type: ignore[operator]


def test_a_vpc_with_its_groups_and_days_of_logs_are_constructs(stack):
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    safeguards = Safeguards.of(
        vpc=vpc, security_groups=[group], log_retention=logs.RetentionDays.ONE_YEAR
    )

    made = redriver(stack, safeguards=safeguards)

    template = Template.from_stack(stack)
    placed = stack.resolve(made.function.node.default_child.vpc_config)
    assert len(placed["subnetIds"]) == len(vpc.private_subnets) == 2
    template.has_resource_properties("AWS::Logs::LogGroup", {"RetentionInDays": 365})


def test_a_vpc_that_is_still_to_be_looked_up_does_not_stop_the_look_up(stack):
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_name="main")

    made = redriver(stack, safeguards=Safeguards.of(vpc=vpc))

    assert made.is_in_vpc


def test_isolated_subnets_are_taken_where_there_are_no_private_ones(stack):
    isolated = ec2.SubnetConfiguration(name="in", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[isolated])

    assert len(Safeguards.of(vpc=vpc).vpc_subnet_ids) == 2


def test_topics_of_the_apps_own_let_its_alarms_publish(stack):
    pages, mails = sns.Topic(stack, "Pages"), sns.Topic(stack, "Mails")
    made = redriver(
        stack, resources=Resources(topics=Topics(stack, "Team", warning=mails, paging=pages))
    )

    template = Template.from_stack(stack)
    template.resource_count_is("AWS::SNS::Topic", 2)
    allowed = [
        one["Resource"]
        for policy in template.find_resources("AWS::SNS::TopicPolicy").values()
        for one in policy["Properties"]["PolicyDocument"]["Statement"]
        if one["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    ]
    assert sorted(one["Ref"][:5] for one in allowed) == ["Mails", "Pages"]
    assert made.topics.paging is pages


def a_table(stack: cdk.Stack, name: str, **more: Any) -> dynamodb.TableV2:
    key = dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
    return dynamodb.TableV2(stack, "Table", partition_key=key, **more)


def test_a_table_that_fits_is_taken(stack):
    table = a_table(stack, "PK", time_to_live_attribute="TTL")

    assert redriver(stack, resources=Resources(table=table)).table is table


@pytest.mark.parametrize(
    ("name", "more", "accepted"),
    [
        ("id", {"time_to_live_attribute": "TTL"}, "a table whose one key is the string PK"),
        ("PK", {}, "a table whose `time_to_live_attribute` is TTL"),
    ],
)
def test_a_table_of_another_shape_is_refused(stack, name, more, accepted):
    table = a_table(stack, name, **more)

    assert refused(stack, resources=Resources(table=table)) == {"table": accepted}


def test_a_widget_without_a_dashboard_is_refused(stack):
    monitoring = MonitoringSettings(dashboard_widget=True)

    assert refused(stack, monitoring=monitoring) == {
        "dashboard_widget": "false with alarms=paging, which makes no dashboard"
    }


def test_a_queue_with_an_alias_of_its_key_is_refused(stack):
    alias = kms.Alias(stack, "Alias", alias_name="alias/q", target_key=kms.Key(stack, "Key"))
    dead = sqs.Queue(stack, "Dead", encryption_master_key=alias)
    name = f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/q"
    lot = sqs.Queue.from_queue_attributes(stack, "Lot", queue_arn=queue_arn("lot"), key_arn=name)

    faults = refused(stack, dead_letter_queue=dead, resources=Resources(parking_lot=lot))

    its_key = "a queue with its key, and not with an alias of it"
    assert faults["dead_letter_queue"] == faults["parking_lot"] == its_key


def with_key(stack: cdk.Stack, key: kms.IKey) -> Resources:
    table = dynamodb.TableV2.from_table_attributes(
        stack, "Table", table_name="state", encryption_key=key
    )
    return Resources(table=table)


@pytest.mark.parametrize(
    ("give", "setting"),
    [
        (lambda _, key: {"resources": Resources(parking_lot_key=key)}, "parking_lot_key"),
        (
            lambda _, key: {"targets": Targets(origin="sns", to=[queue_arn("mails")], keys=[key])},
            "targets.keys[0]",
        ),
        (lambda stack, key: {"resources": with_key(stack, key)}, "table"),
    ],
)
def test_an_alias_is_refused_wherever_a_key_is_given(stack, give, setting):
    """IAM ignores it in a policy, so that every call would be denied."""
    alias = kms.Alias.from_alias_name(stack, "Alias", "alias/q")

    assert "an alias of it" in refused(stack, **give(stack, alias))[setting]
    with pytest.raises(SettingsError, match="an alias of it"):
        Safeguards.of(encryption_key=alias)


IN_GOV_CLOUD = key_arn(1).replace("arn:aws:", "arn:aws-us-gov:")


def test_a_parking_lots_key_of_another_region_is_refused(stack):
    key = kms.Key.from_key_arn(stack, "Key", key_arn(1).replace(REGION, "us-east-1"))

    assert refused(stack, resources=Resources(parking_lot_key=key)) == {
        "parking_lot_key": f"a key of {REGION}, where the stack is"
    }


@pytest.mark.parametrize("given", [{"encryption_key": key_arn(1)}, {"vpc": "vpc-12345"}])
def test_safeguards_of_ids_instead_of_constructs_are_refused(given):
    (name,) = given

    with pytest.raises(SettingsError, match=rf"{name}.* makes one of an"):
        Safeguards.of(**given)


def test_a_queue_with_a_key_of_another_region_is_refused(stack):
    key = key_arn(1).replace(REGION, "us-east-1")
    dead = sqs.Queue.from_queue_attributes(
        stack, "Dead", queue_arn=queue_arn("orders-dlq"), key_arn=key
    )

    assert refused(stack, dead_letter_queue=dead) == {
        "dead_letter_queue": f"a queue with a key of {REGION}, where the stack is"
    }


def test_a_queue_with_a_key_in_another_partition_than_its_region_is_refused(stack):
    dead = sqs.Queue.from_queue_attributes(
        stack, "Dead", queue_arn=queue_arn("orders-dlq"), key_arn=IN_GOV_CLOUD
    )

    assert refused(stack, dead_letter_queue=dead) == {
        "dead_letter_queue": f"an ARN in the partition aws, as {REGION} is"
    }


def test_another_key_in_another_partition_than_its_region_is_refused(stack):
    key = kms.Key.from_key_arn(stack, "Key", IN_GOV_CLOUD)
    told = f"an ARN in the partition aws, as {REGION} is"

    assert refused(stack, resources=Resources(parking_lot_key=key)) == {"parking_lot_key": told}
    with pytest.raises(SettingsError, match=rf"encryption_key_arn.*{told}"):
        Safeguards.of(encryption_key=key)


def test_a_queue_of_a_stack_in_another_region_is_refused(stack):
    env = cdk.Environment(account=ACCOUNT, region="us-east-1")
    elsewhere = cdk.Stack(stack.node.root, "Elsewhere", env=env)
    dead = sqs.Queue(elsewhere, "Dead", queue_name="orders-dlq")

    assert refused(stack, dead_letter_queue=dead)["dead_letter_queue"] == (
        f"a queue where the stack is, in {REGION}/{ACCOUNT}"
    )


def test_the_arn_of_a_topic_is_no_topic(stack):
    with pytest.raises(SettingsError, match=r"paging: .*`sns.Topic.from_topic_arn`"):
        Topics(stack, "Topics", paging=f"arn:aws:sns:{REGION}:{ACCOUNT}:pages")  # type: ignore[arg-type]


def test_the_arn_of_a_topics_key_is_no_key(stack):
    with pytest.raises(SettingsError, match=r"^1 .*\n  key: .*`kms.Key.from_key_arn`"):
        Topics(stack, "Topics", key=key_arn(1))  # type: ignore[arg-type]


def test_a_table_of_the_first_kind_is_refused(stack):
    key = dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.STRING)
    table = dynamodb.Table(stack, "Table", partition_key=key)

    assert "TableV2" in refused(stack, resources=Resources(table=table))["table"]  # type: ignore[arg-type]


def test_a_source_that_fails_to_nothing_is_refused(stack):
    source = sqs.Queue(stack, "Source")

    assert refused(stack, source_queue=source) == {
        "source_queue": "a queue whose failed messages go to dead_letter_queue"
    }


def test_a_table_with_a_number_for_its_key_is_refused(stack):
    key = dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.NUMBER)
    table = dynamodb.TableV2(stack, "Table", partition_key=key, time_to_live_attribute="TTL")

    assert refused(stack, resources=Resources(table=table)) == {
        "table": "a table whose one key is the string PK"
    }


@pytest.mark.parametrize(("region", "account"), [("us-east-1", ACCOUNT), (REGION, "9" * 12)])
def test_a_table_that_is_elsewhere_is_refused(stack, region, account):
    """The function knows the table by its name, which would be another table's, or nobody's."""
    arn = f"arn:aws:dynamodb:{region}:{account}:table/state"
    table = dynamodb.TableV2.from_table_arn(stack, "Table", arn)

    assert refused(stack, resources=Resources(table=table)) == {
        "table": "a table where the stack is, in its account and Region"
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [(cdk.RemovalPolicy.RETAIN, cdk.RemovalPolicy.DESTROY), (cdk.RemovalPolicy.DESTROY, None)],
)
def test_a_shared_table_is_not_removed_otherwise_than_a_re_driver_asks(stack, first, second):
    redriver(stack, "mails", removal_policy=first)
    redriver(stack, "returns", removal_policy=first)
    other = {"removal_policy": second} if second else {}

    accepted = refused(stack, **other)

    assert accepted.keys() == {"removal_policy"}
    assert "the stack's first re-driver" in accepted["removal_policy"]
    own = a_table(stack, "PK", time_to_live_attribute="TTL")
    redriver(stack, "refunds", resources=Resources(table=own), **other)


def test_what_only_alarms_use_is_refused_without_alarms(stack):
    topics = Topics(stack, "Topics")
    faults = refused(
        stack,
        monitoring=None,
        resources=Resources(topics=topics),
        naming=Naming(monitoring_scope=stack),
    )

    assert faults.keys() == {"topics", "naming.monitoring_scope"}


def test_an_imported_function_without_its_role_is_not_left_without_grants(stack):
    made = redriver(stack)
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:orders"
    consumer = lambda_.Function.from_function_arn(stack, "Consumer", arn)

    with pytest.raises(SettingsError, match="an imported one with its `role`"):
        made.grant_report(consumer)


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"removal_policy": cdk.RemovalPolicy.SNAPSHOT}, "removal_policy"),
        ({"naming": Naming(known_as="x" * 300)}, "naming.known_as"),
        ({"naming": Naming(known_as="two words")}, "naming.known_as"),
        ({"naming": Naming(known_as="")}, "naming.known_as"),
        ({"naming": Naming(known_as='a"b')}, "naming.known_as"),
        ({"naming": Naming(known_as="a\x07b")}, "naming.known_as"),
        ({"safeguards": Safeguards(encryption_key_arn=None)}, "encryption_key_arn"),  # type: ignore[arg-type]
        ({"monitoring": MonitoringSettings(runbook_url=5)}, "runbook_url"),  # type: ignore[arg-type]
        ({"monitoring": MonitoringSettings(runbook_url="x" * 501)}, "runbook_url"),
        ({"naming": Naming(output="false")}, "naming.output"),  # type: ignore[arg-type]
        ({"naming": Naming(monitoring_scope="Alarms")}, "naming.monitoring_scope"),  # type: ignore[arg-type]
        ({"settings": Settings(with_sample_consumer=True)}, "with_sample_consumer"),
        ({"further_sources": [None]}, "further_sources[0]"),
        ({"targets": Targets(origin="sns", to=[], keys=[None])}, "targets.keys[0]"),  # type: ignore[list-item]
        ({"monitoring": MonitoringSettings(runbook_url=None)}, "runbook_url"),  # type: ignore[arg-type]
        ({"targets": "arn:aws:lambda:eu-west-1:111122223333:function:x"}, "targets"),
        ({"targets": Targets(origin="sns", to=3)}, "targets.to"),  # type: ignore[arg-type]
        ({"targets": Targets(origin="sns", to=[3])}, "targets.to"),  # type: ignore[list-item]
        ({"targets": Targets(origin="sns", to=[], private_hosts=[3])}, "targets.private_hosts"),  # type: ignore[list-item]
    ],
)
def test_what_is_wrong_is_refused_by_its_name(stack, given, setting):
    assert setting in refused(stack, **given)


def test_a_name_that_another_re_driver_has_is_refused(stack):
    redriver(stack, "mails", naming=Naming(known_as="shop"))

    assert list(refused(stack, naming=Naming(known_as="shop"))) == ["naming.known_as"]


def test_what_can_not_be_granted_anything_is_refused_with_a_sentence(stack):
    made = redriver(stack)

    with pytest.raises(SettingsError, match="what runs the consumer"):
        made.grant_report(made.source_queues[0])  # type: ignore[arg-type]


def test_one_re_driver_is_no_list_of_them(stack):
    made = redriver(stack)

    with pytest.raises(SettingsError, match=r"redrivers: .* a list"):
        OnCallPolicies(stack, "OnCall", redrivers=made)  # type: ignore[arg-type]


def test_alarms_may_be_part_of_an_apps_own_composite(stack):
    made = redriver(stack)

    cloudwatch.CompositeAlarm(stack, "Any", alarm_rule=cloudwatch.AlarmRule.any_of(*made.alarms))

    Template.from_stack(stack).resource_count_is("AWS::Lambda::Function", 1)


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("mails-dlq", True), ("others-dlq", False), (None, False), ("a parameter", False)],
)
def test_a_dlq_that_the_app_names_and_imports_is_of_one_re_driver(stack, name, is_refused):
    if name == "a parameter":
        name = cdk.CfnParameter(stack, "Name", default="mails-dlq").value_as_string
    made = sqs.Queue(stack, "Dead", queue_name=name, retention_period=cdk.Duration.days(14))
    redriver(stack, dead_letter_queue=made)

    if is_refused:
        accepted = refused(stack, name="mails")
        assert "Shop/OrdersRedriver does not have" in accepted["dead_letter_queue"]
    else:
        redriver(stack, "mails")


@pytest.mark.parametrize("role", ["source_queue", "further_sources[0]", "parking_lot"])
def test_a_queue_that_another_re_driver_has_is_refused(stack, role):
    """A replay would send the parked letters of both to one consumer."""
    lot = sqs.Queue(stack, "Lot", retention_period=cdk.Duration.days(14))
    orders = redriver(stack, resources=Resources(parking_lot=lot))
    shared = lot if role == "parking_lot" else orders.source_queues[0]
    given: dict[str, dict[str, Any]] = {
        "source_queue": {"source_queue": shared},
        "further_sources[0]": {"further_sources": [shared]},
        "parking_lot": {"resources": Resources(parking_lot=shared)},
    }

    accepted = refused(stack, name="mails", **given[role])

    assert accepted.keys() == {role}
    assert "Shop/OrdersRedriver does not have" in accepted[role]


def test_a_long_trial_of_the_apps_own_queue_delays_the_page_of_its_circuit(stack):
    """With the settings' 30 s and 3 tries, an outage would page while the first canary is still being tried."""
    periods: list[float] = []
    for name, timeout in (("Short", None), ("Long", cdk.Duration.minutes(10))):
        dead = sqs.Queue(stack, f"{name}Dead")
        fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=3)
        source = sqs.Queue(
            stack, f"{name}Own", visibility_timeout=timeout, dead_letter_queue=fails_to
        )
        made = redriver(stack, name, source_queue=source, dead_letter_queue=dead)
        [alarm] = [one for one in made.alarms if one.node.id == "CircuitOpen"]
        resource = cast("cloudwatch.CfnAlarm", alarm.node.default_child)
        periods.append(resource.evaluation_periods or 0)

    assert periods[1] > periods[0]


def test_a_nested_stacks_key_is_open_to_logs_of_its_family_alone(stack):
    key = kms.Key(stack, "Key")
    nested = cdk.NestedStack(stack, "Nested")
    redriver(nested, safeguards=Safeguards.of(encryption_key=key))

    [policy] = Template.from_stack(stack).find_resources("AWS::KMS::Key").values()
    [statement] = [
        one
        for one in policy["Properties"]["KeyPolicy"]["Statement"]
        if one.get("Sid") == "SmartRedriverLogs"
    ]
    assert ":log-group:Shop-*" in json.dumps(statement)


def test_values_that_only_a_deployment_knows_are_refused_as_such(stack):
    """The CDK gives a number as -1.8881545897087817e+289 or the like."""
    number, text = cdk.CfnParameter(stack, "N", type="Number"), cdk.CfnParameter(stack, "T")
    given = Settings(
        max_attempts=number.value_as_number,  # type: ignore[arg-type]
        downstream=text.value_as_string,
        max_rate=-1,
    )

    with pytest.raises(SettingsError) as caught:
        redriver(stack, settings=given)

    attempts, rate, downstream = map(str, caught.value.faults)
    assert re.search(r"max_attempts: saw '\$\{Token\[.*known at synth: a whole number", attempts)
    assert re.search(r"downstream: saw '\$\{Token\[.*known at synth: a name", downstream)
    assert "max_rate: saw -1, accepted is a number from" in rate
