"""Who is told in an app of somebody else's: whoever its monitoring names, and never nobody unseen."""

import json
from contextlib import nullcontext
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk import Alarms, MonitoringSettings, Resources, SmartRedriver, Topics
from smart_redriver.engine.errors import SettingsError
from stacks.redriver_stack import make_stack
from stacks.settings import parse_context
from tests.infrastructure.adopted import queue_arn
from tests.infrastructure.app_process import UNBUNDLED
from tests.infrastructure.conftest import make_app

ANN = MonitoringSettings(paging_emails=("ann@example.com",))
BOB = MonitoringSettings(paging_emails=("bob@example.com",))
THRESHOLDS = MonitoringSettings(alarm_dead_letters_paging=7)
TOPIC = "arn:aws:sns:eu-west-1:111122223333:pages"


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")


def redriver(stack: cdk.Stack, name: str = "orders", **given: Any) -> SmartRedriver:
    source, dead = (
        sqs.Queue.from_queue_arn(stack, f"{one}{len(stack.node.children)}", queue_arn(one))
        for one in (name, f"{name}-dlq")
    )
    return SmartRedriver(stack, name.title(), source_queue=source, dead_letter_queue=dead, **given)


def refused(stack: cdk.Stack, name: str = "orders", **given: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        redriver(stack, name, **given)
    return {fault.setting: fault.accepted for fault in caught.value.faults}


def mailed(stack: cdk.Stack) -> list[str]:
    found = Template.from_stack(stack).find_resources(
        "AWS::SNS::Subscription", {"Properties": {"Protocol": "email"}}
    )
    return [one["Properties"]["Endpoint"] for one in found.values()]


@pytest.mark.parametrize("emails", [("ann@example.com",), ["ann@example.com"], "ann@example.com"])
def test_whom_monitoring_names_is_subscribed_to_the_topics_of_the_stack(stack, emails):
    redriver(stack, monitoring=MonitoringSettings(paging_emails=emails))

    assert mailed(stack) == ["ann@example.com"]


def warned(stack: cdk.Stack) -> list[str]:
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("emails"))
    return [str(one.entry.data) for one in found]


def test_addresses_for_warnings_where_no_alarm_warns_are_warned_of(stack):
    topics = Topics(
        stack, "Topics", monitoring=MonitoringSettings(warning_emails=("ann@example.com",))
    )
    redriver(stack, resources=Resources(topics=topics))

    [told] = warned(stack)
    assert told.startswith("warning_emails are told nothing: with alarms=paging there is no alarm")
    cdk.Annotations.of(topics).acknowledge_warning("smart-redriver:warning-emails")
    assert warned(stack) == []


def test_addresses_for_warnings_are_warned_of_only_if_none_of_the_stacks_re_drivers_warns(stack):
    redriver(stack, monitoring=MonitoringSettings(warning_emails=("ann@example.com",)))
    redriver(stack, "mails", monitoring=MonitoringSettings(alarms=Alarms.ALL))

    assert warned(stack) == []


def test_addresses_for_warnings_that_get_the_pages_too_are_not_warned_of(stack):
    topics = {"warning_topic_arn": TOPIC, "paging_topic_arn": TOPIC}
    people = {"warning_emails": ("ann@example.com",)}
    redriver(stack, monitoring=MonitoringSettings(**people, **topics))  # type: ignore[arg-type]

    assert warned(stack) == []


def test_a_topic_that_monitoring_names_is_paged(stack):
    own = sns.Topic(stack, "Own").topic_arn
    made = redriver(
        stack, monitoring=MonitoringSettings(paging_topic_arn=TOPIC, warning_topic_arn=own)
    )

    assert (made.topics.paging.topic_arn, made.topics.warning.topic_arn) == (TOPIC, own)


def test_re_drivers_that_share_topics_tell_the_same_people(stack):
    redriver(stack, monitoring=ANN)

    assert list(refused(stack, "mails", monitoring=BOB)) == ["monitoring"]
    redriver(stack, "refunds", monitoring=ANN)
    redriver(stack, "returns", monitoring=THRESHOLDS)

    assert mailed(stack) == ["ann@example.com"]


def test_people_who_come_after_the_topics_were_made_are_refused(stack):
    redriver(stack)

    assert list(refused(stack, "mails", monitoring=ANN)) == ["monitoring"]


def test_people_whom_the_topics_given_do_not_tell_are_refused(stack):
    topics = Topics(stack, "Topics", monitoring=ANN)

    assert list(refused(stack, resources=Resources(topics=topics), monitoring=BOB)) == [
        "monitoring"
    ]
    redriver(stack, "mails", resources=Resources(topics=topics), monitoring=ANN)


def test_an_address_in_a_text_is_not_taken_for_a_list_of_letters(stack):
    Topics(stack, "Topics", monitoring=MonitoringSettings(paging_emails="a@b.example, c@d.example"))  # type: ignore[arg-type]

    assert mailed(stack) == ["a@b.example", "c@d.example"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"alarm_silent_minutes": 2000},
        {"alarm_dead_letters_paging": -1},
        {"paging_emails": "nobody"},
        {"paging_topic_arn": "pages"},
        {"alarms": "none"},
    ],
)
def test_monitoring_is_read_as_it_would_be_from_the_context(stack, wrong):
    assert list(refused(stack, monitoring=MonitoringSettings(**wrong))) == list(wrong)


@pytest.mark.parametrize("alarms", [Alarms.PAGING, "paging"])
def test_few_alarms_are_few_however_they_are_asked_for(stack, alarms):
    redriver(stack, monitoring=MonitoringSettings(alarms=alarms))

    Template.from_stack(stack).resource_count_is("AWS::CloudWatch::Dashboard", 0)


def test_a_stack_may_have_topics_of_several_teams(stack):
    redriver(stack, monitoring=ANN)
    redriver(stack, "mails", resources=Resources(topics=Topics(stack, "Team", monitoring=BOB)))

    template = Template.from_stack(stack)
    assert mailed(stack) == ["ann@example.com", "bob@example.com"]
    endpoints = {
        one["Properties"]["Endpoint"]["Ref"]
        for one in template.find_resources(
            "AWS::SNS::Subscription", {"Properties": {"Protocol": "https"}}
        ).values()
    }
    assert len(endpoints) == 4
    assert {"PagingHttpsEndpoint", "WarningHttpsEndpoint"} < endpoints
    assert sum(one.startswith("Team") for one in endpoints) == 2
    assert endpoints <= set(template.to_json()["Parameters"])


def test_an_address_that_is_named_twice_is_subscribed_once():
    context = parse_context({"paging_emails": "ann@example.com, ann@example.com,"})

    assert mailed(make_stack(make_app(), context)) == ["ann@example.com"]


@pytest.mark.parametrize("wrong", [[["ann@example.com"]], [{"ann@example.com": 1}], [None]])
def test_what_is_no_address_is_not_subscribed_for_looking_like_one(wrong):
    with pytest.raises(SettingsError, match="paging_emails"):
        parse_context({"paging_emails": wrong})


def test_a_boundary_that_is_nothing_is_not_called_none():
    with pytest.raises(SettingsError, match="permissions_boundary_arn"):
        parse_context({"permissions_boundary_arn": None})


@pytest.mark.parametrize("region", ["eu-west-1", "us-east-1", None])
def test_a_topic_that_cloudwatch_would_refuse_is_refused_at_synth(region):
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop", env=cdk.Environment(region=region))
    abroad = MonitoringSettings(paging_topic_arn=TOPIC)

    with (
        pytest.raises(SettingsError, match="a topic of us-east-1")
        if (region == "us-east-1")
        else nullcontext()
    ):
        Topics(stack, "Topics", monitoring=abroad)


@pytest.mark.parametrize("region", ["eu-west-1", None])
def test_a_topic_that_cloudwatch_does_not_publish_to_is_refused(region):
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop", env=cdk.Environment(region=region))
    abroad = sns.Topic.from_topic_arn(stack, "Abroad", TOPIC.replace("eu-west-1", "us-east-1"))
    in_order = sns.Topic(stack, "InOrder", fifo=True)

    with pytest.raises(SettingsError) as caught:
        Topics(stack, "Topics", warning=in_order, paging=abroad)

    accepted = {fault.setting: fault.accepted for fault in caught.value.faults}
    elsewhere = {"paging": "a topic of eu-west-1"} if region else {}
    assert accepted == {"warning": "a standard topic, not a FIFO one", **elsewhere}


@pytest.mark.parametrize("by", ["construct", "arn", "two constructs"])
def test_one_topic_for_warnings_and_pages_has_each_address_once(stack, by):
    people = {"warning_emails": ("ann@example.com",), "paging_emails": ("ann@example.com",)}
    if by == "arn":
        arns = {"warning_topic_arn": TOPIC, "paging_topic_arn": TOPIC}
        Topics(stack, "Topics", monitoring=MonitoringSettings(**people, **arns))  # type: ignore[arg-type]
    else:
        one = sns.Topic(stack, "One")
        for name in ("Topics", "Others")[: 2 if by == "two constructs" else 1]:
            monitoring = MonitoringSettings(**people)  # type: ignore[arg-type]
            Topics(stack, name, monitoring=monitoring, warning=one, paging=one)

    assert mailed(stack) == ["ann@example.com"]


def test_endpoints_of_topics_in_nested_stacks_are_parameters_of_the_stack_that_people_deploy(stack):
    inner = cdk.NestedStack(cdk.NestedStack(stack, "Outer"), "Inner")
    Topics(inner, "Topics")
    Topics(cdk.NestedStack(stack, "Other"), "Topics")

    template = Template.from_stack(stack).to_json()
    names = {one for one in template["Parameters"] if one.endswith("HttpsEndpoint")}
    assert names == {
        f"{place}{kind}HttpsEndpoint"
        for place in ("", "OtherTopics")
        for kind in ("Paging", "Warning")
    }
    assert all(template["Parameters"][one]["NoEcho"] for one in names)
    handed_on = [
        one["Properties"]["Parameters"]["PagingHttpsEndpoint"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::CloudFormation::Stack"
    ]
    assert handed_on == [
        {"Ref": "PagingHttpsEndpoint"},
        {"Ref": "OtherTopicsPagingHttpsEndpoint"},
    ]
    innermost = Template.from_stack(inner).to_json()
    assert innermost["Parameters"]["PagingHttpsEndpoint"]["NoEcho"]
    assert "referenceto" not in json.dumps([innermost["Parameters"], template["Resources"]])


def test_topics_of_a_stack_in_another_region_are_refused():
    app = cdk.App(context=UNBUNDLED)
    here, there = (
        cdk.Stack(app, one, env=cdk.Environment(region=one)) for one in ("eu-west-1", "us-east-1")
    )

    given = Resources(topics=Topics(there, "Topics"))

    assert refused(here, resources=given) == {"topics": "topics of eu-west-1, where the alarms are"}
