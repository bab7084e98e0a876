"""DLQ topics in a list of queues: `origin = "kafka"`, what it makes, and the sentences for what is wrong."""

import json
import tomllib
from dataclasses import fields

import pytest
from aws_cdk.assertions import Template

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.errors import SettingsError
from smart_redriver.kafka.cdk.entry import TopicsEntry
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.oncall.deployment.places import read_outputs, read_places
from stacks.accounts import parse_homes
from tests.infrastructure.adopted import (
    ACCOUNT,
    REGION,
    by_password,
    cluster_arn,
    entry,
    jobs_entry,
    key_arn,
    shared_entry,
    topics_entry,
)
from tests.infrastructure.conftest import ROOT
from tests.infrastructure.test_jobs_entries import ODD, faults, joined, named, read, stack_of


@pytest.fixture(scope="module")
def template() -> Template:
    return Template.from_stack(
        stack_of(
            entry("orders"),
            jobs_entry("jobs"),
            topics_entry("topics", max_attempts=7),
            by_password("others", secret_key_arn=key_arn(1)),
            oncall_policies="true",
            alarms="all",
        )
    )


def test_an_entry_is_read_with_its_home_network_topics_and_settings():
    (topics,) = read(topics_entry("topics", max_attempts=7, stack="shop"), max_attempts=3)

    assert (topics.name, topics.id, topics.stack) == ("topics", "Topics", "shop")
    assert (topics.region, topics.account) == (REGION, ACCOUNT)
    assert topics.kafka.name == "topics"
    assert topics.kafka.topics == ("shop.orders",)
    assert topics.cluster_arn == cluster_arn("topics")
    assert topics.safeguards.vpc_subnet_ids == ("subnet-0123456789abcdef0",)
    assert topics.settings.max_attempts == 7


def test_a_secret_says_where_it_is_where_no_cluster_does():
    (topics,) = read(by_password("topics", secret_key_arn=key_arn(1)))

    assert (topics.region, topics.account) == (REGION, ACCOUNT)
    assert topics.secret_key_arn == key_arn(1)


def test_the_command_finds_it_beside_queues_of_other_kinds(template):
    outputs = template.to_json()["Outputs"]
    told = read_outputs({name: joined(output["Value"]) for name, output in outputs.items()})

    jobs, orders, others, topics = read_places("SmartRedriver", told)

    assert [one.origin for one in (jobs, orders, others, topics)] == [
        Origin.POSTGRES,
        Origin.SQS,
        Origin.KAFKA,
        Origin.KAFKA,
    ]
    assert (topics.prefix, topics.queue) == ("Topics", "shop.orders")
    assert topics.deployment.location == KafkaTopics.read(
        {**topics_entry("topics")["kafka"], "name": "topics"}
    )
    assert topics.deployment.table_name == orders.deployment.table_name
    assert topics.alarms_known_as == ("topics",)
    assert topics.mode == "automatic"


def test_the_function_reads_what_synth_wrote_and_shares_table_and_topics(template):
    functions = template.find_resources("AWS::Lambda::Function").values()
    told = {
        json.loads(variables["KAFKA"])["name"]: variables
        for one in functions
        if "KAFKA" in (variables := one["Properties"]["Environment"]["Variables"])
    }

    read_back = Deployment.from_env(told["topics"] | {"DYNAMODB_TABLE_NAME": "state"})

    assert (read_back.origin, told["topics"]["MAX_ATTEMPTS"]) == (Origin.KAFKA, "7")
    assert set(told) == {"topics", "others"}
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 1)
    template.resource_count_is("AWS::SNS::Topic", 2)


def test_both_re_drivers_of_one_topics_name_have_metrics_of_their_own(template):
    alarms = template.find_resources("AWS::CloudWatch::Alarm").values()
    measured = {
        dimension["Value"]
        for one in alarms
        for dimension in one["Properties"].get("Dimensions", ())
        if dimension["Name"] == "QueueName" and "shop.orders" in str(dimension["Value"])
    }

    assert measured == {"topics/shop.orders", "others/shop.orders"}


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"kafka": None}, ["queues[0].kafka"]),
        ({"kafka": "b-1:9098"}, ["queues[0].kafka"]),
        ({"cluster_arn": None}, ["queues[0].cluster_arn"]),
        ({"cluster_arn": "shop"}, ["queues[0].cluster_arn"]),
        ({"cluster_arn": cluster_arn("shop").replace(REGION, "us-east-1")}, ["queues[0].cluster_arn"]),
        ({"cluster_arn": cluster_arn("shop").replace(":aws:", ":aws-cn:")}, ["queues[0].cluster_arn"]),
        ({"secret_key_arn": key_arn(1)}, ["queues[0].secret_key_arn"]),
        ({"secret_key_arn": "alias/mine"}, ["queues[0].secret_key_arn"]),
        ({"vpc_id": "vpc"}, ["queues[0].vpc_id"]),
        ({"source_arn": "arn:aws:sqs:eu-west-1:111122223333:jobs"}, ["queues[0].source_arn"]),
        ({"region": REGION}, ["queues[0].region"]),
        ({"max_attempts": 0}, ["queues[0].max_attempts"]),
        ({"name": "shop.orders"}, ["queues[0].name"]),
        ({"kakfa": {}}, ["queues[0].kakfa"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_missing_or_wrong_is_told_with_its_place(change, places):
    assert named(topics_entry("topics") | change) == places


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"servers": "b-1"}, ["servers"]),
        ({"topics": []}, ["topics"]),
        ({"dead_letters": "shop.orders"}, ["dead_letters"]),
        ({"name": "topics"}, ["name"]),
        ({"iam_regoin": REGION}, ["iam_regoin"]),
        ({"client": {"debug": "all"}}, ["client"]),
        ({"client": {"acks": "0"}}, ["client"]),
    ],
    ids=str,
)
def test_what_is_wrong_with_its_topics_is_told_in_their_table(change, places):
    given = topics_entry("topics", kafka=change)

    assert named(given) == [f"queues[0].kafka.{one}" for one in places]


def test_a_secret_and_its_key_in_another_partition_than_their_region_are_refused():
    given = by_password("topics", secret_key_arn=key_arn(1).replace(":aws:", ":aws-us-gov:"))
    given["kafka"]["secret"] = given["kafka"]["secret"].replace(":aws:", ":aws-us-gov:")

    assert named(given) == ["queues[0].secret_key_arn", "queues[0].kafka.secret"]


def test_the_way_into_the_cluster_is_told_to_be_missing_or_doubled():
    nothing = by_password("topics")
    del nothing["kafka"]["secret"]
    both = by_password("topics", cluster_arn=cluster_arn("topics"))
    both["cluster_arn"] = cluster_arn("topics")

    assert named(nothing) == ["queues[0].kafka"]
    assert named(both) == ["queues[0].cluster_arn"]


def test_what_two_entries_may_not_share_is_told():
    first, second = topics_entry("topics"), topics_entry("late")
    second["kafka"]["servers"] = first["kafka"]["servers"].upper()
    orders = shared_entry("shop", "orders", "refunds")

    assert set(faults(first, second)) == {
        ("queues[1].kafka", "topics of one entry alone, see queues[0].kafka")
    }
    assert faults(orders, topics_entry("orders")) == [
        ("queues[1].name", "a name that no source queue has, see queues[0].source_arn[0]")
    ]
    assert named(topics_entry("topics"), topics_entry("topics")) == [
        "queues[1].name",
        *["queues[1].kafka"] * 4,
    ]


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"dead_letters": "late.DLT"}, None),
        ({"dead_letters": "late.DLT", "held": "shop.orders.DLT.held"}, "shop.orders.DLT.held"),
        ({"dead_letters": "late.DLT", "parked": "shop.orders.DLT.parked"}, "shop.orders.DLT.parked"),
    ],
    ids=str,
)  # fmt: skip
def test_two_groups_of_one_cluster_share_source_topics_and_no_others(change, shared):
    first, second = topics_entry("topics"), topics_entry("late", kafka=change)
    second["kafka"]["servers"] = first["kafka"]["servers"]

    if shared is None:
        assert len(read(first, second)) == 2
        return
    with pytest.raises(SettingsError) as refused:
        read(first, second)
    assert [(one.setting, one.seen) for one in refused.value.faults] == [
        ("queues[1].kafka", f"{first['kafka']['servers']}/{shared}")
    ]


@pytest.mark.parametrize("make", [topics_entry, by_password])
def test_whatever_toml_can_say_is_told_in_a_sentence(make):
    """Somewhere each of them would end in a traceback, which names no entry."""
    given = [
        make("topics") | {key: odd}
        for key in (*TopicsEntry.places, *Settings.names())
        for odd in ODD
        if (key, odd) != ("max_rate", 1.5)
    ]
    names = {one.name for one in fields(KafkaTopics)} - {"time_to_fail"}
    given += [
        make("topics") | {"kafka": make("topics")["kafka"] | {name: odd}}
        for name in (*names, "time_to_fail_seconds")
        for odd in ODD
        if (name, odd) not in (("client", {}), ("commits_first", True))
    ]

    for one in given:
        with pytest.raises(SettingsError) as refused:
            read(one, make("late"))
        assert all(fault.setting.startswith("queues[0]") for fault in refused.value.faults)


def test_homes_tell_topics_of_several_regions_apart():
    far = topics_entry("topics", kafka={"iam_region": "us-east-1"})
    far["cluster_arn"] = far["cluster_arn"].replace(REGION, "us-east-1")
    far["kafka"]["servers"] = "b-1.far.example.com:9098"

    homes = parse_homes({"queues": [topics_entry("topics"), far]})

    assert [(one.queues[0].region, one.queues[0].account) for one in homes] == [
        (REGION, ACCOUNT),
        ("us-east-1", ACCOUNT),
    ]


def test_the_example_in_the_documentation_is_read_as_it_stands():
    text = (ROOT / "docs" / "kafka.md").read_text()
    (block,) = (
        part.split("```")[0] for part in text.split("```toml\n")[1:] if "[[queues]]" in part
    )

    (topics,) = read(*tomllib.loads(block)["queues"])

    assert topics.kafka.iam_region == topics.region
