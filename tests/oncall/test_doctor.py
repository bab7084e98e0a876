"""`doctor`: nothing to mend in a deployment that is well, and a remedy for each thing that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes.faults import on, refuse
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.oncall.doctor.alarms import judge_topic, lets_publish
from smart_redriver.oncall.doctor.findings import Level
from smart_redriver.oncall.doctor.passes import judge_report
from smart_redriver.oncall.doctor.queues import (
    judge_consumer,
    judge_dead_letters,
    judge_reports,
    judge_source,
)
from tests.faults.errors import refusal
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, TOPIC, lose

KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


@pytest.fixture
def well(desk: Desk) -> Desk:
    """A deployment in which a pass has just run."""
    desk("run", "--yes")
    return desk


def set_attributes(desk: Desk, queue: str, **attributes: Any) -> None:
    plain = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in attributes.items()
    }
    desk.world.sqs.set_queue_attributes(QueueUrl=desk.world.url(queue), Attributes=plain)


def arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:123456789012:{queue}"


def let_a_lambda_consume(queue: str, state: str = "Enabled") -> Callable[[Desk], None]:
    mapping = {"FunctionArn": "another", "State": state, "UUID": "1234"}
    return lambda desk: desk.clients["lambda"].mappings.update({arn(queue): [mapping]})


def pause(desk: Desk) -> None:
    desk("pause", "--reason", "migration", "--yes")


def share_downstream(desk: Desk) -> None:
    desk.redriver.settings = replace(desk.redriver.settings, downstream="payments")


def forbid_telling(desk: Desk) -> None:
    share_downstream(desk)
    desk.clients["iam"].denied.add("events:PutEvents")


FAULTS: dict[str, tuple[Callable[[Desk], Any], str, str]] = {
    "a DLQ on the DLQ": (
        lambda desk: desk.world.let_dead_letters_end_in(PARKING_LOT, of=DLQ, after=3),
        "orders-dlq has a DLQ of its own",
        "Remove RedrivePolicy from orders-dlq.",
    ),
    "a source that dies elsewhere": (
        lambda desk: desk.world.let_dead_letters_end_in(PARKING_LOT, of=SOURCE, after=3),
        "The failed messages of orders do not go to orders-dlq",
        f"Set RedrivePolicy of orders to deadLetterTargetArn {arn(DLQ)}.",
    ),
    "a short retention": (
        lambda desk: set_attributes(desk, DLQ, MessageRetentionPeriod="3600"),
        "orders-dlq keeps letters 3600 s, orders 1209600 s",
        "Set MessageRetentionPeriod of orders-dlq to 1209600",
    ),
    "a retention that passes can't keep up with": (
        lambda desk: set_attributes(desk, DLQ, MessageRetentionPeriod="600"),
        "orders-dlq keeps letters 600 s: a letter can expire between two passes",
        "Set MessageRetentionPeriod of orders-dlq to 1209600",
    ),
    "a source that forgets before its messages die": (
        lambda desk: set_attributes(desk, SOURCE, MessageRetentionPeriod="60"),
        "orders keeps a message for 60 s, and one that fails takes 90 s to go to orders-dlq",
        "Set MessageRetentionPeriod of orders well above that.",
    ),
    "a source that forgets in an outage": (
        lambda desk: set_attributes(desk, SOURCE, MessageRetentionPeriod="3599"),
        "orders keeps messages for 3599 s: letters that wait there for longer",
        "Set MessageRetentionPeriod of orders to more than its consumer may be down.",
    ),
    "a short retention of the parking lot": (
        lambda desk: set_attributes(desk, PARKING_LOT, MessageRetentionPeriod="3600"),
        "orders-parking-lot keeps letters for a shorter time",
        "Set MessageRetentionPeriod of orders-parking-lot to 1209600",
    ),
    "a consumer that takes too long": (
        let_a_lambda_consume(SOURCE),
        "A message can be delivered again while its consumer still works on it",
        "Set VisibilityTimeout of orders to 1440",
    ),
    "a consumer that fails whole batches": (
        let_a_lambda_consume(SOURCE),
        "A message of orders that fails takes up to 9 others with it",
        "Set FunctionResponseTypes of event source mapping 1234 to ReportBatchItemFailures",
    ),
    "a consumer that is off": (
        let_a_lambda_consume(SOURCE, "Disabled"),
        "The consumer of orders is switched off.",
        "Enable event source mapping 1234",
    ),
    "somebody else at the DLQ": (
        let_a_lambda_consume(DLQ),
        "A Lambda consumes orders-dlq",
        "Remove that function's event source mapping.",
    ),
    "a table that forgets nothing": (
        lambda desk: setattr(desk.clients["dynamodb"], "time_to_live", "DISABLED"),
        "time to live is off",
        "Enable time to live of redriver-state",
    ),
    "a pause without an end": (
        pause,
        'Paused by kim until somebody resumes it: "migration".',
        "`redrive resume` ends it.",
    ),
    "a schedule that is off": (
        lambda desk: setattr(desk.clients["scheduler"], "state", "DISABLED"),
        "The schedule is off.",
        "Enable it in EventBridge Scheduler.",
    ),
    "no schedule": (
        lambda desk: setattr(desk.clients["scheduler"], "state", None),
        "There is no schedule for the function.",
        "Deploy the stack anew.",
    ),
    "an old pass": (
        lambda desk: desk.world.clock.advance(1000),
        "The last pass was 16 min 40 s ago; one is due every 5 min.",
        "`redrive run` runs one now",
    ),
    "no pass": (
        lambda desk: desk.world.clock.advance(2 * 86_400),
        "No pass has ended within the last day.",
        "`redrive run` runs one now",
    ),
    "a role that can't read metrics": (
        lambda desk: desk.clients["iam"].denied.add("cloudwatch:GetMetricData"),
        "The function may not call cloudwatch:GetMetricData on CloudWatch.",
        "Deploy the stack anew",
    ),
    "a role that may not tell others of a recovery": (
        forbid_telling,
        "may not call events:PutEvents on the event bus, on which it tells others of a recovery",
        "Deploy the stack anew",
    ),
    "a role that lost a permission": (
        lambda desk: desk.clients["iam"].denied.add("sqs:DeleteMessage"),
        "The function may not call sqs:DeleteMessage on orders-dlq.",
        "Deploy the stack anew",
    ),
    "alarms that were silenced": (
        lambda desk: desk.clients["cloudwatch"].silenced.append(f"{STACK} Quiet"),
        "Somebody switched off the actions of SmartRedriver Quiet.",
        "enable-alarm-actions",
    ),
    "a topic that refuses alarms": (
        lambda desk: setattr(desk.clients["sns"], "policy", "{}"),
        "Alarms may not publish to paging",
        "Allow cloudwatch.amazonaws.com sns:Publish",
    ),
    "nobody to hear": (
        lambda desk: setattr(desk.clients["sns"], "subscribers", 0),
        "Nobody is subscribed to paging.",
        "Deploy with -c paging_emails=",
    ),
}


def test_a_deployment_that_is_well_has_nothing_to_mend(well: Desk) -> None:
    ran = well("doctor", "--all")

    assert ran.code == 0, ran.out
    assert "Nothing to fix." in ran.out
    assert "WRONG" not in ran.out
    assert " ? " not in ran.out


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_comes_with_its_remedy(well: Desk, fault: str) -> None:
    cause, what, remedy = FAULTS[fault]
    cause(well)

    ran = well("doctor", "--json")

    (told,) = ran.json["queues"]
    wrong = [one for one in told["findings"] if one["level"] == "wrong"]
    assert ran.code == 1
    assert any(what in one["what"] and remedy in one["remedy"] for one in wrong), wrong


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        ("GetQueueAttributes", "The queues could not be checked: GetQueueAttributes: AccessDenied"),
        ("GetItem", "The state table could not be checked: GetItem: AccessDenied"),
    ],
)
def test_what_can_not_be_checked_is_told_and_the_rest_is_checked(
    well: Desk, operation: str, what: str
) -> None:
    ran = well("doctor", "--all", script=on(operation, refuse(refusal(operation, "AccessDenied"))))

    assert what in ran.out
    assert "ok     The schedule is on." in ran.out


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("source", "The queue orders does not exist: queues and access could not"),
        ("dlq", "The queue orders-dlq does not exist: queues and access could not"),
        ("lot", "The queue orders-parking-lot does not exist: queues and access could not"),
        ("table", "The state table redriver-state does not exist: state table and access could not"),
        ("function", "The function redriver-function does not exist: state table, passes, access and network could"),
        ("topic", "The topic paging does not exist: what alarms publish to it reaches nobody."),
    ],
)  # fmt: skip
def test_what_was_deleted_is_wrong_and_named_with_its_remedy(
    well: Desk, place: str, what: str
) -> None:
    """It said "Nothing to fix." when a queue, the table or the function had been deleted, and blamed the rights."""
    ran = well("doctor", script=lose(place))

    assert ran.code == 1
    assert f"WRONG  {what}" in ran.out
    assert "-> Make it again under the same name" in ran.out
    assert "RedriveViewer" not in ran.out
    assert ran.out.count("1 thing to fix.") == 1


def test_several_things_that_were_deleted_are_all_named(well: Desk) -> None:
    ran = well("doctor", script=lose("dlq", "table", "function"))

    assert [f"The {one} does not exist" in ran.out for one in (
        "queue orders-dlq", "state table redriver-state", "function redriver-function"
    )] == [True, True, True]  # fmt: skip
    assert "3 things to fix." in ran.out


def test_all_queues_that_were_deleted_are_named_at_once(well: Desk) -> None:
    """It named only the first one, and after its return the next."""
    ran = well("doctor", script=lose("source", "dlq", "lot"))

    lacks = [line for line in ran.out.splitlines() if "does not exist" in line]
    assert [line.partition("The queue ")[2] for line in lacks] == [
        "orders-dlq does not exist: queues and access could not be checked in full.",
        "orders does not exist: queues could not be checked in full.",
        "orders-parking-lot does not exist: queues could not be checked in full.",
    ]
    assert "3 things to fix." in ran.out


@pytest.mark.parametrize(
    ("cause", "end"),
    [
        (lambda _: None, "Nothing to fix was found. See also 2 things marked ?."),
        (
            lambda desk: setattr(desk.clients["sns"], "subscribers", 0),
            "1 thing to fix. See also 2 things marked ?.",
        ),
    ],
)
def test_what_could_not_be_checked_is_counted_in_the_end(
    well: Desk, cause: Callable[[Desk], None], end: str
) -> None:
    cause(well)

    ran = well(
        "doctor",
        script=on("GetQueueAttributes", refuse(refusal("GetQueueAttributes", "AccessDenied"))),
    )

    assert end in ran.out
    assert "Nothing to fix." not in ran.out
    assert ran.code == int(end.startswith("1"))


def test_whether_the_function_may_tell_others_is_asked_as_its_policy_grants_it(well: Desk) -> None:
    """The grant is of recovery events alone: IAM's simulator has to be told that it is one."""
    assert "tells others" not in well("doctor", "--all").out

    share_downstream(well)

    assert "The function may do what it needs with the event bus" in well("doctor", "--all").out


def test_the_key_of_an_encrypted_queue_is_looked_at(well: Desk) -> None:
    set_attributes(well, DLQ, KmsMasterKeyId=KEY)
    well.clients["kms"].states[KEY] = "PendingDeletion"

    ran = well("doctor", "--all")

    assert f"The key {KEY} is PendingDeletion" in ran.out
    assert "cancel its deletion" in ran.out


def test_a_fault_of_the_last_pass_is_told_with_its_call() -> None:
    (finding,) = judge_report({"faults": {"SendMessageBatch:AccessDenied": 3}})

    assert finding.what == "AWS refused the last pass SendMessageBatch 3 times: AccessDenied."
    assert "may not call SendMessageBatch" in finding.remedy


@pytest.mark.parametrize(
    ("policy", "is_allowed"),
    [
        ({}, True),
        ({"redrivePermission": "allowAll"}, True),
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn("other")]}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn(SOURCE)]}, True),
    ],
)
def test_the_redrive_allow_policy_has_to_name_the_source(
    policy: dict[str, Any], is_allowed: bool
) -> None:
    retention = KEPT
    source = {
        "QueueArn": arn(SOURCE),
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(DLQ)}),
    } | retention
    dlq = {"QueueArn": arn(DLQ), "RedriveAllowPolicy": json.dumps(policy)} | retention

    wrong = [one for one in judge_source(source, dlq) if one.level is Level.WRONG]

    assert bool(wrong) is not is_allowed


KEPT = {"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "30"}


@pytest.mark.parametrize(
    ("queue", "dlq"), [("orders.fifo", "orders-dlq"), ("orders", "orders-dlq.fifo")]
)
def test_a_source_of_another_kind_than_its_dlq_is_wrong(queue: str, dlq: str) -> None:
    first, *_ = judge_source({"QueueArn": arn(queue)} | KEPT, {"QueueArn": arn(dlq)} | KEPT)

    assert first.level is Level.WRONG
    assert "no letter can go from one to the other in order" in first.what
    assert f"take the place of {queue}" in first.remedy


def test_a_parking_lot_of_another_kind_than_the_dlq_is_wrong() -> None:
    dlq, lot = ({"QueueArn": arn(one)} | KEPT for one in ("orders-dlq.fifo", "lot"))

    first, *_ = judge_dead_letters(dlq, lot)

    assert first.level is Level.WRONG
    assert "lot is a standard queue, orders-dlq.fifo a FIFO one" in first.what


def test_reports_that_a_fifo_queue_would_refuse_are_found() -> None:
    (finding,) = judge_reports({"QueueArn": arn("outcomes.fifo")})

    assert finding.level is Level.WRONG
    assert list(judge_reports({"QueueArn": arn("outcomes")})) == []


@pytest.mark.parametrize(
    ("attributes", "what"),
    [
        ({}, "orders.fifo takes 300 calls a second of a kind"),
        ({"FifoThroughputLimit": "perMessageGroupId"}, "orders.fifo has high throughput."),
    ],
)
def test_whether_a_fifo_queue_has_high_throughput_is_told_and_no_fault(
    attributes: dict[str, str], what: str
) -> None:
    source = {"QueueArn": arn("orders.fifo")} | KEPT | attributes

    told = [
        one
        for one in judge_source(source, {"QueueArn": arn("dlq.fifo")} | KEPT)
        if what in one.what
    ]

    assert [one.level for one in told] == [Level.GOOD]


def test_a_fifo_deployment_that_is_well_has_nothing_to_mend() -> None:
    desk = Desk(fifo=True)
    desk("run", "--yes")

    ran = desk("doctor", "--all")

    assert ran.code == 0, ran.out
    assert "Nothing to fix." in ran.out
    assert "orders.fifo is a FIFO queue, as orders-dlq.fifo is." in ran.out


@pytest.mark.parametrize(("visibility", "level"), [(29, Level.WRONG), (30, Level.GOOD)])
def test_a_message_has_to_stay_hidden_while_its_consumer_works(
    visibility: int, level: Level
) -> None:
    assert judge_consumer(SOURCE, visibility, 30).level is level


@pytest.mark.parametrize(
    ("principal", "action", "may"),
    [
        ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish", True),
        ({"Service": ["events.amazonaws.com", "cloudwatch.amazonaws.com"]}, ["SNS:*"], True),
        ("*", "sns:Publish", True),
        ({"Service": "events.amazonaws.com"}, "sns:Publish", False),
        ({"Service": "cloudwatch.amazonaws.com"}, "sns:Subscribe", False),
    ],
)
def test_a_policy_is_read_as_aws_reads_it(principal: Any, action: Any, may: bool) -> None:
    statement = {"Effect": "Allow", "Principal": principal, "Action": action}

    assert lets_publish(json.dumps({"Statement": [statement]}), "sns:publish") is may


def test_a_topic_with_a_key_that_cloudwatch_may_not_use_pages_nobody() -> None:
    topic = {"Policy": "{}", "KmsMasterKeyId": KEY, "SubscriptionsConfirmed": "1"}

    findings = {one.what: one.level for one in judge_topic("paging", topic, "{}")}

    assert findings["Alarms may not use the key of paging, so that nothing arrives."] is Level.WRONG


def test_an_app_that_asks_for_no_alarms_has_nothing_to_mend(well: Desk) -> None:
    well.clients["cloudformation"].stacks[STACK] |= {"WarningTopicArn": "", "PagingTopicArn": ""}
    well.clients["cloudwatch"].has_none = True

    ran = well("doctor", "--all")

    assert ran.code == 0, ran.out
    assert "The stack asks for no alarms for this queue" in ran.out


@pytest.mark.parametrize(("rings_for", "code"), [("Quiet", 1), ("Another", 0)])
def test_a_page_of_the_stack_that_was_silenced_is_found_by_the_alarms_that_it_rings_for(
    well: Desk, rings_for: str, code: int
) -> None:
    page = f"{STACK} LettersPileUp Place"
    well.clients["cloudformation"].stacks[STACK]["RedriveAlarms"] = "orders"
    well.clients["cloudwatch"].in_alarm.append("orders Quiet")
    well.clients["cloudwatch"].rules[page] = f'ALARM("orders {rings_for}")'
    well.clients["cloudwatch"].silenced.append(page)

    ran = well("doctor", "--all")

    assert ran.code == code, ran.out
    assert (f"Somebody switched off the actions of {page}" in ran.out) is bool(code)


@pytest.mark.parametrize(
    ("output", "setting"),
    [("WarningTopicArn", "warning_emails"), ("PagingTopicArn", "paging_emails")],
)
def test_a_topic_without_subscribers_is_mended_by_its_own_setting(
    desk: Desk, output: str, setting: str
) -> None:
    desk.clients["cloudformation"].stacks[STACK][output] = TOPIC
    desk.clients["sns"].subscribers = 0

    assert f"-> Deploy with -c {setting}=..., or subscribe to it" in desk("doctor", "--all").out
