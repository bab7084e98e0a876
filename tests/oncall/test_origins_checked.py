"""`doctor` of a DLQ that SQS does not fill: who fails to it, who may be called, and what nobody can tell."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from fakes.faults import on, refuse
from smart_redriver.cdk.origin_config import OriginConfig
from smart_redriver.cdk.target_access import target_calls
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.deployment.places import Place
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import calls_of
from smart_redriver.oncall.doctor.findings import Finding, Level
from smart_redriver.oncall.doctor.origins import (
    check_origin,
    check_targets,
    judge_function,
    judge_senders,
    judge_subscription,
    judge_web,
)
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.infrastructure.test_origin_entries import OF_EACH
from tests.oncall.target_desk import FUNCTION, SUBSCRIPTIONS, WEB, TargetDesk
from tests.oncall.test_network import GROUP, SUBNETS, VPC, FakeEc2, interface

DLQ = "arn:aws:sqs:us-east-1:123456789012:dlq"


def subscription(desk: TargetDesk, endpoint: str, protocol: str, **more: str) -> dict[str, str]:
    """Attributes of a subscription that is well."""
    return {
        "PendingConfirmation": "false",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": desk.dlq_arn}),
        "Endpoint": endpoint,
        "Protocol": protocol,
        **more,
    }


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: Callable[..., None]
) -> TargetDesk:
    """A topic's two subscriptions, all of it well but for its passes."""
    monkeypatch.chdir(tmp_path)
    desk = TargetDesk(monkeypatch)
    desk.let_send("sns.amazonaws.com")
    desk.clients["sns"].subscriptions = {
        SUBSCRIPTIONS[0]: subscription(desk, FUNCTION, "lambda"),
        SUBSCRIPTIONS[1]: subscription(desk, WEB, "https"),
    }
    return desk


@pytest.fixture(autouse=True)
def public(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Every host is at a public address, unless a test says where."""

    def at(*addresses: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 443)) for one in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    at("93.184.215.14")
    return at


def told(desk: TargetDesk, level: str) -> list[dict[str, str]]:
    """What doctor found of a level, but for the passes, which this desk can't make."""
    (queue,) = desk("doctor", "--json").json["queues"]
    return [one for one in queue["findings"] if one["level"] == level and "pass" not in one["what"]]


def test_an_origin_that_is_well_has_nothing_to_mend(desk: TargetDesk) -> None:
    good = [one["what"] for one in told(desk, "good")]

    assert told(desk, "wrong") == []
    assert told(desk, "unknown") == []
    for what in (
        "sns.amazonaws.com may send to orders-dlq.",
        "The subscription of lambda:billing is confirmed.",
        "The subscription of lambda:billing fails to this DLQ.",
        f"The subscription of {WEB} delivers to it.",
        "The subscription of lambda:billing delivers in SNS's envelope, by which its letters are known.",
        "lambda:billing is there.",
        f"{WEB} is at a public address.",
        "The function may do what it needs with billing.",
    ):
        assert what in good
    assert not [one for one in good if "No consumer of" in one]


def spoil(number: int, **attributes: str) -> Callable[[TargetDesk], None]:
    return lambda desk: desk.clients["sns"].subscriptions[SUBSCRIPTIONS[number]].update(attributes)


def refused(code: str) -> Callable[[TargetDesk], None]:
    return lambda desk: desk.clients["sns"].subscriptions.update({SUBSCRIPTIONS[0]: code})


def function(told: Any) -> Callable[[TargetDesk], None]:
    return lambda desk: desk.clients["lambda"].targets.update({FUNCTION: told})


FAULTS: dict[str, tuple[Callable[[TargetDesk], Any], str, str]] = {
    "not confirmed": (
        spoil(1, PendingConfirmation="true"),
        f"The subscription of {WEB} is not confirmed",
        "Let its endpoint confirm it.",
    ),
    "another DLQ": (
        spoil(0, RedrivePolicy='{"deadLetterTargetArn": "arn:else"}'),
        "The subscription of lambda:billing fails to arn:else, and not to this one.",
        "Set its RedrivePolicy to deadLetterTargetArn arn:aws:sqs:",
    ),
    "no DLQ": (
        spoil(0, RedrivePolicy=""),
        "The subscription of lambda:billing fails to no DLQ",
        "Set its RedrivePolicy",
    ),
    "another endpoint": (
        spoil(1, Endpoint="https://example.org/else"),
        f"The subscription of {WEB} delivers to https://example.org/else by https",
        "Name the subscription's own endpoint",
    ),
    "another protocol": (
        spoil(1, Protocol="email"),
        "by email, and not to",
        "Name the subscription's own endpoint",
    ),
    "raw beside another": (
        spoil(0, RawMessageDelivery="true"),
        "which do not tell whose they are: their letters are parked.",
        "Give it a DLQ of its own, or switch raw delivery off.",
    ),
    "a subscription that is gone": (
        refused("NotFound"),
        "The subscription of lambda:billing can't be found: it is gone.",
        "Name what takes its place.",
    ),
    "a DLQ that takes nothing from SNS": (
        lambda desk: desk.let_send("s3.amazonaws.com"),
        "sns.amazonaws.com may not send to orders-dlq: what fails is lost.",
        "Allow sns.amazonaws.com sqs:SendMessage",
    ),
    "a function that is gone": (
        function("ResourceNotFoundException"),
        "lambda:billing is gone: its letters are held back.",
        "Make it again",
    ),
    "a role that may not invoke": (
        lambda desk: desk.clients["iam"].denied.add("lambda:InvokeFunction"),
        "The function may not call lambda:InvokeFunction on billing.",
        "Deploy the stack anew",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_comes_with_its_remedy(desk: TargetDesk, fault: str) -> None:
    cause, what, remedy = FAULTS[fault]
    cause(desk)

    wrong = told(desk, "wrong")

    assert any(what in one["what"] and remedy in one["remedy"] for one in wrong), wrong
    assert len(wrong) == 1


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ("GetSubscriptionAttributes", "The subscription of lambda:billing could not be looked at"),
        ("GetFunctionConfiguration", "lambda:billing could not be looked at: AccessDenied."),
    ],
)
def test_what_may_not_be_asked_is_unknown_and_the_rest_is_told(
    desk: TargetDesk, operation: str, what: str
) -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied"}}, operation)

    ran = desk("doctor", "--all", script=on(operation, refuse(denied)))

    assert f"?      {what}" in ran.out
    assert "sns.amazonaws.com may send to orders-dlq." in ran.out


@pytest.mark.parametrize(
    ("addresses", "private", "level", "words"),
    [
        (["93.184.215.14"], (), Level.GOOD, "at a public address"),
        (["93.184.215.14", "10.0.0.1"], (), Level.WRONG, "is at 10.0.0.1, which is not public"),
        (["127.0.0.1"], (), Level.WRONG, "not public"),
        (["::1"], (), Level.WRONG, "not public"),
        (["10.0.0.1"], ("example.com",), Level.GOOD, "private_hosts names it"),
        (["169.254.169.254"], ("example.com",), Level.WRONG, "link-local"),
        (["fe80::1"], (), Level.WRONG, "link-local"),
    ],
)
def test_letters_are_posted_to_public_addresses_and_named_hosts_alone(
    addresses: list[str], private: tuple[str, ...], level: Level, words: str
) -> None:
    finding = judge_web(Target.parse(WEB), private, addresses, "")

    assert (finding.level, words in finding.what) == (level, True)


def test_a_host_that_is_not_known_here_may_be_known_to_the_function(
    desk: TargetDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)

    [one] = told(desk, "unknown")

    assert one["what"] == "The host example.com is not known here: gaierror."


def test_a_subscription_that_is_not_named_can_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = TargetDesk(monkeypatch, Origin.SNS, [FUNCTION])
    desk.let_send("sns.amazonaws.com")

    [one] = told(desk, "unknown")

    assert (
        one["what"] == "Which subscription of lambda:billing fails to this DLQ is not in the list."
    )
    assert "SUBSCRIPTION_ARN=TARGET" in one["remedy"]


def test_a_raw_subscription_alone_is_as_good_as_any() -> None:
    attributes = {
        "RawMessageDelivery": "true",
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": DLQ}),
        "Endpoint": WEB,
        "Protocol": "https",
    }

    found = list(judge_subscription(attributes, Target.parse(WEB), DLQ, is_only_one=True))

    assert {one.level for one in found} == {Level.GOOD}
    assert "raw messages: a letter is the message itself" in found[-1].what


@pytest.mark.parametrize(
    ("destinations", "level", "words"),
    [
        ({"DeadLetterConfig": DLQ}, Level.GOOD, "as its DeadLetterConfig says"),
        ({"on-failure destination": DLQ}, Level.GOOD, "as its on-failure destination says"),
        (
            {"DeadLetterConfig": "arn:else", "on-failure destination": DLQ},
            Level.GOOD,
            "as its on-failure destination says",
        ),
        ({"DeadLetterConfig": "arn:else"}, Level.WRONG, "it names DeadLetterConfig arn:else"),
        ({}, Level.WRONG, "it names nothing"),
    ],
)
def test_a_function_fails_to_the_dlq_by_either_way(
    destinations: dict[str, str], level: Level, words: str
) -> None:
    finding = judge_function(Target.parse(FUNCTION), DLQ, destinations)

    assert (finding.level, words in finding.what) == (level, True)


def test_a_key_of_sqs_itself_lets_no_other_service_in() -> None:
    policy = '{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:*"}]}'
    dlq = {"QueueArn": DLQ, "Policy": policy, "KmsMasterKeyId": "alias/aws/sqs"}

    levels = [one.level for one in judge_senders(dlq, Origin.EVENTBRIDGE)]

    assert levels == [Level.GOOD, Level.WRONG]
    assert list(judge_senders(dlq, Origin.LAMBDA)) == []


def of(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *targets: str
) -> TargetDesk:
    monkeypatch.chdir(tmp_path)
    desk = TargetDesk(monkeypatch, origin, targets or [FUNCTION])
    desk.let_send("events.amazonaws.com")
    return desk


def test_a_function_of_its_own_dlq_is_asked_where_it_fails_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = of(Origin.LAMBDA, monkeypatch, tmp_path)
    by_dlq = [one["what"] for one in told(desk, "good")]
    desk.clients["lambda"].targets[FUNCTION] = {}
    neither = told(desk, "wrong")
    desk.clients["lambda"].on_failure[FUNCTION] = desk.dlq_arn
    by_destination = [one["what"] for one in told(desk, "good")]

    says = "The failed invocations of lambda:billing go to this DLQ, as its {} says."
    assert says.format("DeadLetterConfig") in by_dlq
    assert [one["what"] for one in neither] == [
        "The failed invocations of lambda:billing do not go to this DLQ: it names nothing."
    ]
    assert says.format("on-failure destination") in by_destination


def test_rules_are_found_by_their_target_on_the_default_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = of(Origin.EVENTBRIDGE, monkeypatch, tmp_path)
    [nobody] = told(desk, "unknown")
    desk.clients["events"].rules = {
        "nightly": {FUNCTION: desk.dlq_arn},
        "other": {FUNCTION: "arn:else"},
    }
    good = [one["what"] for one in told(desk, "good")]

    assert nobody["what"].startswith("No rule of the default event bus calls lambda:billing")
    assert "lambda:billing is called by nightly, with this DLQ." in good


def test_what_schedules_there_are_can_not_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = of(Origin.SCHEDULER, monkeypatch, tmp_path)

    [one] = told(desk, "unknown")

    assert one["what"].startswith("Which schedules call lambda:billing")
    assert "Target.DeadLetterConfig" in one["remedy"]


@pytest.mark.parametrize("account", ["123456789012", "111122223333"])
@pytest.mark.parametrize("origin", OF_EACH)
def test_doctor_asks_for_what_the_stack_grants(origin: str, account: str) -> None:
    targets = tuple(map(Target.parse, OF_EACH[origin]))
    deployment = Deployment(
        queue_name="a",
        table_name="b",
        dlq_url=f"https://sqs.eu-west-1.amazonaws.com/{account}/dlq",
        source_queue_url="",
        parking_lot_url="d",
        origin=Origin(origin),
        targets=targets,
    )

    origin_config = OriginConfig(origin=Origin(origin), targets=targets)
    granted = dict(target_calls(origin_config, "eu-west-1", account))

    assert dict(calls_of(deployment)) == granted


def reached(desk: TargetDesk) -> dict[str, str]:
    """What doctor says of the network, by level."""
    (told,) = desk("doctor", "--json").json["queues"]
    return {one["what"]: one["level"] for one in told["findings"] if VPC in one["what"]}


def test_a_target_needs_an_endpoint_of_its_service_and_a_web_target_a_way_out(
    desk: TargetDesk,
) -> None:
    ec2 = desk.clients["ec2"] = FakeEc2()
    desk.clients["lambda"].network = {
        "VpcId": VPC,
        "SubnetIds": list(SUBNETS),
        "SecurityGroupIds": [GROUP],
    }
    without = reached(desk)
    ec2.endpoints.append(interface("lambda"))
    with_endpoint = reached(desk)

    assert [what for what, level in without.items() if level == "wrong"] == [
        f"The function does not reach lambda from {VPC} (endpoints: there is none), and no subnet has a way out."
    ]
    assert "wrong" not in with_endpoint.values()
    assert [what for what, level in with_endpoint.items() if level == "unknown"] == [
        f"No subnet of the function has a way out of {VPC}, which web targets outside of it need."
    ]


# Against moto: the shapes of real answers


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


def session_of(origin: Origin, dlq_url: str, *targets: str) -> Session:
    listed = tuple(map(Target.parse, targets))
    deployment = Deployment(
        queue_name=listed[0].name,
        table_name="table",
        dlq_url=dlq_url,
        source_queue_url="",
        parking_lot_url="lot",
        origin=origin,
        targets=listed,
    )
    place = Place(stack="SmartRedriver", deployment=deployment)
    aws = Aws(connect_as(Caller(region="us-east-1")))
    return Session(aws=aws, terminal=Terminal(), stack="SmartRedriver", known_place=place)


def words(findings: Iterator[Finding]) -> dict[str, str]:
    return {one.what: one.level.value for one in findings}


@pytest.mark.usefixtures("aws")
def test_a_subscription_on_moto_is_looked_at_and_one_that_is_gone_is_told() -> None:
    sqs, sns = boto3.client("sqs"), boto3.client("sns")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("dlq", "news")]
    topic = sns.create_topic(Name="news")["TopicArn"]
    queue = DLQ.replace(":dlq", ":news")
    arn = sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=queue,
        Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": DLQ})},
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    session = session_of(Origin.SNS, urls[0], f"{arn}={queue}")

    there = words(check_origin(session)) | words(check_targets(session))
    sns.unsubscribe(SubscriptionArn=arn)
    sqs.delete_queue(QueueUrl=urls[1])
    gone = words(check_origin(session)) | words(check_targets(session))

    assert there["The subscription of sqs:news fails to this DLQ."] == "good"
    assert there["The subscription of sqs:news delivers to it."] == "good"
    assert there["sqs:news is there."] == "good"
    assert there["sns.amazonaws.com may not send to dlq: what fails is lost."] == "wrong"
    assert gone["The subscription of sqs:news can't be found: it is gone."] == "wrong"
    assert gone["sqs:news is gone: its letters are held back."] == "wrong"


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("fails_to", ["dlq", "another"])
def test_a_target_queue_that_fails_to_the_same_dlq_is_told(fails_to: str) -> None:
    sqs = boto3.client("sqs")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("dlq", "another", "news")]
    policy = {"deadLetterTargetArn": DLQ.replace(":dlq", f":{fails_to}"), "maxReceiveCount": "3"}
    sqs.set_queue_attributes(QueueUrl=urls[2], Attributes={"RedrivePolicy": json.dumps(policy)})

    found = words(check_targets(session_of(Origin.SNS, urls[0], DLQ.replace(":dlq", ":news"))))

    is_told = [one for one in found if one.startswith("sqs:news fails to this DLQ, too")]
    assert bool(is_told) is (fails_to == "dlq")


@pytest.mark.usefixtures("aws")
def test_a_rule_on_moto_is_found_by_its_target() -> None:
    url = boto3.client("sqs").create_queue(QueueName="dlq")["QueueUrl"]
    events = boto3.client("events")
    events.put_rule(Name="nightly", ScheduleExpression="rate(1 day)")
    target = {"Id": "1", "Arn": FUNCTION, "DeadLetterConfig": {"Arn": DLQ}}
    events.put_targets(Rule="nightly", Targets=[target])

    found = words(check_origin(session_of(Origin.EVENTBRIDGE, url, FUNCTION)))

    assert found["lambda:billing is called by nightly, with this DLQ."] == "good"


@pytest.mark.usefixtures("aws")
def test_a_function_that_moto_does_not_know_is_gone() -> None:
    url = boto3.client("sqs").create_queue(QueueName="dlq")["QueueUrl"]
    session = session_of(Origin.LAMBDA, url, FUNCTION)

    found = words(check_origin(session)) | words(check_targets(session))

    assert found["lambda:billing is gone: its letters are held back."] == "wrong"


@pytest.mark.usefixtures("aws")
def test_a_target_in_another_region_is_not_taken_for_gone() -> None:
    url = boto3.client("sqs").create_queue(QueueName="dlq")["QueueUrl"]
    session = session_of(
        Origin.SNS, url, DLQ.replace("us-east-1:123456789012:dlq", "eu-west-1:123456789012:far")
    )
    session.aws.client("sqs")

    found = words(check_targets(session))

    assert found == {"sqs:far is in another Region, and is not looked at from here.": "unknown"}
