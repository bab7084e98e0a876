"""The two managed policies against the calls that the commands really make: nothing missing, nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from simulator.consumers import Consumer, Reports
from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.faults.scenes import SOME
from tests.infrastructure.adopted import entry, key_arn, queue_arn
from tests.infrastructure.conftest import STRICT, make_app
from tests.oncall.desk import Desk
from tests.oncall.test_looking import LOOKS

#: What a call is called in a policy, where that is not its own name.
ACTIONS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "lambda:Invoke": "lambda:InvokeFunction",
}
#: AWS lets everybody ask who they are.
FREE = {"sts:GetCallerIdentity"}
#: Where the CDK's names of resources are the words of this test.
PLACES = {
    "QueuesSource": "source",
    "QueuesDeadLetter": "dlq",
    "QueuesParkingLot": "lot",
    "RedriverOutcomes": "outcomes",
    "StateTable": "table",
    "RedriverFunction": "function",
    "RedriverLogs": "log",
    "RedriverRole": "role",
    "MonitoringWarning": "topic",
    "MonitoringPaging": "topic",
    "MonitoringKey": "topic's key",
}

Allowed = set[tuple[str, str]]


def policies(**context: Any) -> dict[str, Allowed]:
    """Action and place of every permission, by the policy's name."""
    app = make_app(oncall_policies="true", **context)
    template = Template.from_stack(make_stack(app, read_context(app.node)))
    found = template.find_resources("AWS::IAM::ManagedPolicy")
    return {
        name.removeprefix("OnCall")[:-8]: {
            pair
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            for pair in pairs(statement)
        }
        for name, policy in found.items()
        if name.startswith("OnCall")  # and not a consumer's
    }


def pairs(statement: dict[str, Any]) -> Allowed:
    actions, resources = statement["Action"], statement["Resource"]
    return {
        (action, place_of(resource))
        for action in ([actions] if isinstance(actions, str) else actions)
        for resource in (resources if isinstance(resources, list) else [resources])
    }


def place_of(resource: Any) -> str:
    if resource == "*":
        return "anything"
    if resource == {"Ref": "AWS::StackId"}:
        return "stack"
    if isinstance(resource, str):
        return resource
    logical_id: str = resource["Fn::GetAtt"][0] if "Fn::GetAtt" in resource else resource["Ref"]
    known = (place for name, place in PLACES.items() if logical_id.startswith(name))
    return next(known, logical_id)


@pytest.fixture(scope="module")
def granted() -> dict[str, Allowed]:
    return policies()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Allowed]:
    """Action and place of every call that the commands make, by who is to be allowed it."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/a/b/")
    monkeypatch.chdir(tmp_path)  # where originals are kept
    return {
        "RedriveViewer": calls_of_looking(tmp_path),
        "RedriveOperator": calls_of_changing(tmp_path),
    }


def calls_of_looking(folder: Path) -> Allowed:
    desk = Desk(consumer=Consumer(reports=Reports()))
    desk("run", "--yes")
    (message_id, *_) = desk.park("a", "b")
    desk.dead_letters("c")
    desk.world.sqs.send_message(QueueUrl=desk.deployment.outcome_queue_url, MessageBody="none")
    desk.asked.clear()
    looks = (
        *LOOKS,
        ("doctor",),
        ("export", str(folder / "a")),
        ("export", str(folder / "b"), "--from-dlq"),
    )
    for arguments in looks:
        desk(*(message_id if one == "ID" else one for one in arguments))
    return permissions(desk)


def calls_of_changing(folder: Path) -> Allowed:
    desk = Desk(consumer=Consumer(reports=Reports()))
    parked = desk.park("a", "b", "c", "d", MessageAttributes=SOME)
    dead = desk.dead_letters("e", "f", "a g", "h", MessageAttributes=SOME)
    desk.asked.clear()
    file = str(folder / "gone.jsonl")
    for arguments in (
        ("replay", parked[0]),
        ("replay", "--contains", "b"),
        ("replay", dead[0], "--from-dlq"),
        ("edit", dead[2], "--from-dlq"),
        ("edit", parked[3], "--with", "sed s/d/D/"),
        ("delete", parked[2], "--export", file),
        ("delete", dead[1], "--from-dlq", "--export", file),
        ("import", file),
        ("import", file, "--to", "source"),
        ("park", dead[3]),
        ("undo", file),
        ("pause", "--reason", "x"),
        ("resume",),
        ("open", "--reason", "x"),
        ("close", "--reason", "x"),
        ("run",),
        ("drain",),
    ):
        ran = desk(*arguments, "--yes")
        assert ran.code in (0, 1), ran.said
    return permissions(desk)


def permissions(desk: Desk) -> Allowed:
    calls = {(ACTIONS.get(call, call), place) for call, place in desk.asked}
    return {(action, place) for action, place in calls if action not in FREE}


@pytest.mark.parametrize("policy", ["RedriveViewer", "RedriveOperator"])
def test_a_policy_allows_exactly_what_its_commands_ask_for(
    policy: str, granted: dict[str, Allowed], asked: dict[str, Allowed]
) -> None:
    assert asked[policy] - granted[policy] == set()
    assert granted[policy] - asked[policy] == ONLY_WITH_KEYS[policy]


def test_an_observer_sees_status_causes_and_history_and_can_neither_read_nor_hide_a_letter(
    granted: dict[str, Allowed],
) -> None:
    desk = Desk(consumer=Consumer(reports=Reports()))
    desk("run", "--yes")
    desk.park("a", "b")
    desk.asked.clear()
    for arguments in (("status",), ("status", "--overview"), ("causes",), ("history",)):
        assert desk(*arguments).code == 0

    assert permissions(desk) - granted["RedriveObserver"] == set()
    assert granted["RedriveObserver"] < granted["RedriveViewer"]
    actions = {action for action, _ in granted["RedriveObserver"]}
    assert not actions & {"sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "kms:GetKeyPolicy"}


def test_the_policies_of_a_team_hold_its_queues_and_no_other() -> None:
    allowed = policies(queues=[{**adopted(0), "team": "mail-room"}, adopted(1)])

    queues = {
        name: {place[-1] for _, place in found if ":queue-" in place and "dlq" not in place}
        for name, found in allowed.items()
    }

    assert queues["MailRoomRedriveViewer"] == queues["MailRoomRedriveObserver"] == {"0"}
    assert queues["RedriveViewer"] == queues["RedriveOperator"] == {"1"}


#: The topics of the stack have a key, the topics of the desk have none.
ONLY_WITH_KEYS = {"RedriveViewer": {("kms:GetKeyPolicy", "topic's key")}, "RedriveOperator": set()}


def test_there_are_no_policies_unless_they_are_asked_for() -> None:
    app = make_app()

    template = Template.from_stack(make_stack(app, read_context(app.node)))

    [of_consumers] = template.find_resources("AWS::IAM::ManagedPolicy")
    assert of_consumers.startswith("RedriverReportPolicy")


def test_keys_of_queues_may_be_used_as_looking_and_sending_need_it() -> None:
    allowed = policies(queues=[adopted(0)])

    keys = {name: {pair for pair in found if pair[1] == KEY} for name, found in allowed.items()}
    assert keys["RedriveViewer"] == {("kms:Decrypt", KEY), ("kms:DescribeKey", KEY)}
    assert keys["RedriveOperator"] == {("kms:Decrypt", KEY), ("kms:GenerateDataKey", KEY)}


def test_many_queues_are_spread_over_policies_that_iam_takes() -> None:
    allowed = policies(queues=[adopted(number, keys=False) for number in range(10)])

    kinds = ("RedriveObserver", "RedriveViewer", "RedriveOperator")
    assert set(allowed) == {*kinds, *(f"{kind}2" for kind in kinds)}
    for queues, policy in ((range(5), "RedriveViewer"), (range(5, 10), "RedriveViewer2")):
        for number in queues:
            place = f":queue-{number}"
            assert [one for one, at in allowed[policy] if at.endswith(place)] == [
                "sqs:GetQueueAttributes"
            ]


#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
MAX_POLICY_CHARACTERS = 6144
#: Of a queue, function, role or log that CloudFormation named: a name is cut to 64, but for queues, which have 80.
LONGEST_MADE_ARN = 105


def test_policies_of_the_longest_names_and_a_key_for_each_queue_in_a_strict_account_fit_iam() -> (
    None
):
    names = ["x" * 75 + f"-{number}" for number in range(6)]
    queues = [
        entry(
            f"queue-{number}",
            source_arn=queue_arn(name),
            dead_letter_arn=queue_arn(f"y{name}"),
            source_key_arn=key_arn(1).replace("00000001", f"{number:07d}1"),
            dead_letter_key_arn=key_arn(1).replace("00000001", f"{number:07d}2"),
        )
        for number, name in enumerate(names)
    ]
    app = make_app(oncall_policies="true", alarms="paging", queues=queues, **STRICT)
    template = Template.from_stack(make_stack(app, read_context(app.node)))

    sizes = {
        name: len(json.dumps(spelt(policy["Properties"]["PolicyDocument"]), separators=(",", ":")))
        for name, policy in template.find_resources("AWS::IAM::ManagedPolicy").items()
        if name.startswith("OnCall")
    }

    assert len(sizes) == 6
    assert max(sizes.values()) <= MAX_POLICY_CHARACTERS, sizes


def spelt(value: Any) -> Any:
    """A policy with as many letters for each reference as a deployment puts in its place."""
    if isinstance(value, list):
        return [spelt(one) for one in value]
    if isinstance(value, dict):
        is_reference = {"Ref", "Fn::GetAtt", "Fn::Join"} & value.keys()
        return "x" * LONGEST_MADE_ARN if is_reference else {k: spelt(v) for k, v in value.items()}
    return value


KEY = "arn:aws:kms:eu-west-1:123456789012:key/5a8b1f0e-0000-4000-8000-0123456789ab"


def adopted(number: int, *, keys: bool = True) -> dict[str, str]:
    queue = f"arn:aws:sqs:eu-west-1:123456789012:queue-{number}"
    return {
        "name": f"queue-{number}",
        "source_arn": queue,
        "dead_letter_arn": f"{queue}-dlq",
        **({"source_key_arn": KEY, "dead_letter_key_arn": KEY} if keys else {}),
    }
