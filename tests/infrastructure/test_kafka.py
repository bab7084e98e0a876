"""The construct for a DLQ topic in MSK: what it may do, where it is, and what it is told."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Annotations, Match, Template
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from smart_redriver.cdk import (
    KafkaRedriver,
    KafkaTopics,
    MonitoringSettings,
    OnCallPolicies,
    Safeguards,
)
from smart_redriver.cdk.monitoring_settings import Alarms
from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.places import read_outputs, read_places
from tests.infrastructure.app_process import UNBUNDLED, findings

ROOT = Path(__file__).parents[2]
HOME = cdk.Environment(account="123456789012", region="eu-west-1")
OF_MSK = "arn:aws:kafka:eu-west-1:123456789012"
CLUSTER = f"{OF_MSK}:cluster/shop/0123abcd-1"
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:AmazonMSK_shop-x"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
NETWORK = Safeguards(
    vpc_id="vpc-12345678",
    vpc_subnet_ids=("subnet-12345678",),
    vpc_security_group_ids=("sg-12345678",),
)


def topics(**given):
    table = {
        "name": "orders",
        "servers": "b-1.shop.kafka.eu-west-1.amazonaws.com:9098",
        "consumer_group": "shop",
        "topics": ["shop.orders"],
        "dead_letters": "shop.orders.DLT",
        "iam_region": "eu-west-1",
    }
    return KafkaTopics.read(table | given)


def made(**given) -> cdk.Stack:
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    stack = cdk.Stack(app, "Topics", env=HOME)
    told = {"kafka": topics(), "cluster_arn": CLUSTER, "safeguards": NETWORK, **given}
    KafkaRedriver(stack, "Redriver", **told)
    return stack


@pytest.fixture(scope="module")
def template() -> Template:
    return Template.from_stack(made())


def function(template: Template) -> dict:
    (found,) = template.find_resources("AWS::Lambda::Function").values()
    return found["Properties"]


def granted(template: Template) -> dict[str, set[str]]:
    """Actions by resource, of the function's role."""
    return by_resource(
        statement
        for policy in template.find_resources("AWS::IAM::Policy").values()
        if "Schedule" not in json.dumps(policy["Properties"]["Roles"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    )


def by_resource(statements) -> dict[str, set[str]]:
    """What is allowed."""
    found: dict[str, set[str]] = {}
    for statement in statements:
        if statement["Effect"] != "Allow":
            continue
        actions, resources = statement["Action"], statement["Resource"]
        for one in resources if isinstance(resources, list) else [resources]:
            found.setdefault(one if isinstance(one, str) else json.dumps(one), set()).update(
                [actions] if isinstance(actions, str) else actions
            )
    return found


def test_with_iam_it_may_do_with_each_topic_and_group_what_a_pass_does_and_no_more(template):
    of_kafka = {
        where.removeprefix(f"{OF_MSK}:"): {one.removeprefix("kafka-cluster:") for one in actions}
        for where, actions in granted(template).items()
        if any(one.startswith("kafka-cluster:") for one in actions)
    }

    assert of_kafka == {
        "cluster/shop/0123abcd-1": {"Connect", "WriteDataIdempotently"},
        "topic/shop/0123abcd-1/shop.orders.DLT": {"DescribeTopic", "ReadData"},
        "topic/shop/0123abcd-1/shop.orders": {"DescribeTopic", "WriteData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.held": {"DescribeTopic", "ReadData", "WriteData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.parked": {"DescribeTopic", "ReadData", "WriteData"},
        "group/shop/0123abcd-1/redrive-orders": {"AlterGroup", "DescribeGroup"},
        "group/shop/0123abcd-1/shop": {"DescribeGroup"},
    }
    assert not [
        one
        for actions in granted(template).values()
        for one in actions
        if one.startswith(("sqs:", "cloudwatch:", "secretsmanager:"))
    ]


def test_with_scram_it_may_read_its_secret_and_use_the_key_by_secrets_manager_alone():
    place = topics(iam_region="", secret=SECRET)
    stack = cdk.Stack(cdk.App(context={"aws:cdk:bundling-stacks": []}), "Topics", env=HOME)
    key = kms.Key.from_key_arn(stack, "SecretKey", KEY)
    KafkaRedriver(stack, "Redriver", kafka=place, safeguards=NETWORK, secret_key=key)
    template = Template.from_stack(stack)

    actions = granted(template)

    assert actions[SECRET] == {"secretsmanager:GetSecretValue"}
    assert actions[KEY] == {"kms:Decrypt"}
    assert "kafka-cluster" not in str(actions)
    assert "secretsmanager.eu-west-1" in json.dumps(template.find_resources("AWS::IAM::Policy"))


def test_the_arn_of_a_secrets_key_is_no_key():
    place = topics(iam_region="", secret=SECRET)
    stack = cdk.Stack(cdk.App(context={"aws:cdk:bundling-stacks": []}), "Topics", env=HOME)

    with pytest.raises(SettingsError, match=r"^1 .*\n  secret_key: .*`kms.Key.from_key_arn`"):
        KafkaRedriver(stack, "Redriver", kafka=place, safeguards=NETWORK, secret_key=KEY)  # type: ignore[arg-type]


def test_it_is_in_the_brokers_network_and_reads_what_synth_wrote(template):
    told = function(template)
    env = {
        name: value if isinstance(value, str) else "state"
        for name, value in told["Environment"]["Variables"].items()
    }

    assert told["VpcConfig"] == {
        "SubnetIds": ["subnet-12345678"],
        "SecurityGroupIds": ["sg-12345678"],
    }
    read = Deployment.from_env(env)
    assert read.location == topics()
    assert read.queue_name == "shop.orders"
    assert Settings.from_env(env) == Settings()


def test_the_command_finds_it_by_the_stacks_outputs(template):
    outputs = {
        name: one["Value"] if isinstance(one["Value"], str) else _resolved(one["Value"])
        for name, one in template.to_json()["Outputs"].items()
    }

    (place,) = read_places("Topics", read_outputs(outputs))

    assert place.deployment.location == topics()
    assert place.origin is Origin.KAFKA
    assert place.alarms_known_as == ("orders",)
    assert place.function


def _resolved(value) -> str:
    """A join of texts, with names in place of references."""
    (_, parts) = value["Fn::Join"]
    return "".join(one if isinstance(one, str) else "made" for one in parts)


def test_its_alarms_are_on_what_passes_write_and_name_its_own_runbook(template):
    alarms = [
        one["Properties"] for one in template.find_resources("AWS::CloudWatch::Alarm").values()
    ]

    assert {one["AlarmName"].split()[0] for one in alarms} == {"orders"}
    names = {one["AlarmName"].split()[1] for one in alarms if isinstance(one["AlarmName"], str)}
    assert names == {"CircuitOpen", "PassesFail", "LettersStay", "FunctionFails", "LettersParked"}
    assert all("docs/kafka.md#runbook" in one["AlarmDescription"] for one in alarms)
    assert "## Runbook" in (ROOT / "docs" / "kafka.md").read_text()
    (passes,) = [one for one in alarms if "PassesFail" in one["AlarmName"]]
    assert passes["Dimensions"] == [{"Name": "QueueName", "Value": "orders/shop.orders"}]


def test_addresses_for_warnings_are_told_of_its_alarms_whatever_alarms_says():
    stack = made(monitoring=MonitoringSettings(warning_emails=("ann@example.com",)))

    Annotations.from_stack(stack).has_no_warning("*", Match.string_like_regexp("warning_emails"))


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"safeguards": Safeguards()}, "vpc_id"),
        ({"cluster_arn": ""}, "cluster_arn"),
        ({"table": "state"}, "table"),
        ({"removal_policy": cdk.RemovalPolicy.SNAPSHOT}, "removal_policy"),
        ({"kafka": topics(iam_region="")}, "kafka"),
        ({"kafka": topics(iam_region="", client={"sasl.password": "hunter2"})}, "client"),
        ({"kafka": topics(topics=[f"topic-{n:0240}" for n in range(12)])}, "kafka"),
    ],
)
def test_what_would_not_work_is_refused_at_synth(given, setting):
    with pytest.raises(SettingsError) as error:
        made(**given)

    assert setting in {fault.setting for fault in error.value.faults}
    assert "hunter2" not in str(error.value)


def test_a_second_re_driver_of_the_same_topics_is_refused():
    stack = made()

    with pytest.raises(SettingsError):
        KafkaRedriver(stack, "Again", kafka=topics(), cluster_arn=CLUSTER, safeguards=NETWORK)


def test_cdk_nag_has_nothing_left_to_find(tmp_path):
    app = cdk.App(context=UNBUNDLED, outdir=str(tmp_path / "out"))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    stack = cdk.Stack(app, "Topics", env=HOME)
    redriver = KafkaRedriver(
        stack,
        "Redriver",
        kafka=topics(),
        cluster_arn=CLUSTER,
        safeguards=NETWORK,
        monitoring=MonitoringSettings(alarms=Alarms.ALL),
    )
    OnCallPolicies(stack, "OnCall", redrivers=[redriver])

    app.synth()

    assert findings(tmp_path / "out") == []


def test_its_bundle_is_what_the_lock_of_kafka_holds():
    lock = (ROOT / "requirements" / "lambda-kafka.lock").read_text()
    of_all = (ROOT / "requirements" / "lambda.lock").read_text()

    assert "confluent-kafka==" in lock
    assert set(of_all.split()) <= set(lock.split())
    assert (ROOT / "smart_redriver" / "kafka" / "cdk" / "lambda.lock").read_text() == lock
    assert BACKENDS[Origin.KAFKA].connection.startswith("smart_redriver.kafka.engine.")


def test_its_dashboard_draws_what_passes_write_of_each_topic_and_alarms_alone_have_none(template):
    watched = Template.from_stack(
        made(
            kafka=topics(topics=["shop.orders", "shop.returns"]),
            monitoring=MonitoringSettings(alarms=Alarms.ALL),
        )
    )

    (dashboard,) = watched.find_resources("AWS::CloudWatch::Dashboard").values()

    drawn = json.dumps(dashboard["Properties"]["DashboardBody"]).replace("\\", "")
    for one in ("DeadLetters", "ParkedLetters", "CircuitState", "PassesFailed", "LettersFailed"):
        assert f'"{one}"' in drawn
    for circuit in ("orders/shop.orders", "orders/shop.returns"):
        assert f'"CircuitState","QueueName","{circuit}"' in drawn
    assert "AWS/Kafka" not in drawn
    template.resource_count_is("AWS::CloudWatch::Dashboard", 0)


def policies(*redrivers: dict) -> dict[str, dict[str, set[str]]]:
    """Actions by resource, of each policy for people."""
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    stack = cdk.Stack(app, "Topics", env=HOME)
    all_of_them = [
        KafkaRedriver(stack, f"Redriver{number}", safeguards=NETWORK, **told)
        for number, told in enumerate(redrivers)
    ]
    OnCallPolicies(stack, "OnCall", redrivers=all_of_them)
    found: dict[str, dict[str, set[str]]] = {}
    for policy in Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values():
        document = policy["Properties"]["PolicyDocument"]
        name = f"{policy['Properties']['Description'].partition(':')[0]} {len(found)}"
        found[name] = by_resource(document["Statement"])
    return found


def of_the_cluster(allowed: dict[str, set[str]]) -> dict[str, set[str]]:
    return {
        where.removeprefix(f"{OF_MSK}:"): {one.removeprefix("kafka-cluster:") for one in actions}
        for where, actions in allowed.items()
        if any(one.startswith("kafka-cluster:") for one in actions)
    }


def test_with_iam_who_looks_may_read_topics_and_write_none():
    viewer, operator = policies({"kafka": topics(), "cluster_arn": CLUSTER}).values()

    settings = {"DescribeTopic", "DescribeTopicDynamicConfiguration"}
    assert of_the_cluster(viewer) == {
        "cluster/shop/0123abcd-1": {"Connect"},
        "topic/shop/0123abcd-1/shop.orders": settings,
        "topic/shop/0123abcd-1/shop.orders.DLT": settings | {"ReadData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.held": settings | {"ReadData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.parked": settings | {"ReadData"},
        "group/shop/0123abcd-1/redrive-orders": {"DescribeGroup"},
        "group/shop/0123abcd-1/shop": {"DescribeGroup"},
    }
    assert of_the_cluster(operator) == {
        "cluster/shop/0123abcd-1": {"WriteDataIdempotently"},
        "topic/shop/0123abcd-1/shop.orders": {"WriteData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.held": {"WriteData"},
        "topic/shop/0123abcd-1/shop.orders.DLT.parked": {"WriteData"},
        "group/shop/0123abcd-1/redrive-orders": {"AlterGroup"},
    }
    actions = set().union(*viewer.values(), *operator.values())
    assert not [one for one in actions if one.startswith(("sqs:", "secretsmanager:"))]
    assert "lambda:InvokeFunction" in set().union(*operator.values())


def test_with_scram_people_read_the_secret_and_nothing_of_iam_opens_the_cluster():
    viewer, operator = policies({"kafka": topics(iam_region="", secret=SECRET)}).values()

    assert viewer[SECRET] == operator[SECRET] == {"secretsmanager:GetSecretValue"}
    assert of_the_cluster(viewer) == of_the_cluster(operator) == {}


def test_policies_of_many_re_drivers_are_as_many_as_iam_has_room_for():
    told = [
        {
            "kafka": topics(
                name=f"orders-{number}", dead_letters=f"dlt-{number}", topics=[f"topic-{number}"]
            ),
            "cluster_arn": CLUSTER,
        }
        for number in range(12)
    ]

    made_of = policies(*told)

    assert len(made_of) > 2
    read = [one for allowed in made_of.values() for one in of_the_cluster(allowed)]
    assert {f"topic/shop/0123abcd-1/dlt-{number}" for number in range(12)} <= set(read)
