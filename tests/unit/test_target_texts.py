"""What letters of other origins go back to: how a target is written, named and refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.targets import Origin, Target, TargetKind, read_targets

PLACE = "eu-west-1:123456789012"
QUEUE = f"arn:aws:sqs:{PLACE}:orders"
SUBSCRIPTION = f"arn:aws:sns:{PLACE}:orders:2bcfbf39-05c3-41de-beaa-fcfcc21c8f55"


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        (QUEUE, TargetKind.QUEUE, "sqs:orders"),
        (f"arn:aws:lambda:{PLACE}:function:orders", TargetKind.FUNCTION, "lambda:orders"),
        (f"arn:aws:lambda:{PLACE}:function:orders:live", TargetKind.FUNCTION, "lambda:orders:live"),
        (
            f"arn:aws:firehose:{PLACE}:deliverystream/orders",
            TargetKind.DELIVERY_STREAM,
            "firehose:orders",
        ),
        (f"arn:aws:states:{PLACE}:stateMachine:orders", TargetKind.STATE_MACHINE, "states:orders"),
        (f"arn:aws:sns:{PLACE}:orders", TargetKind.TOPIC, "sns:orders"),
        ("arn:aws-cn:sqs:cn-north-1:123456789012:orders", TargetKind.QUEUE, "sqs:orders"),
        ("https://example.com/a/b?c=d", TargetKind.WEB, "https://example.com/a/b"),
    ],
)
def test_a_target_is_an_arn_or_a_url_and_is_named_by_what_people_call_it(
    text: str, kind: TargetKind, name: str
) -> None:
    target = Target.parse(text)

    assert (target.kind, target.name, str(target)) == (kind, name, text)


def test_a_target_can_be_of_one_subscription() -> None:
    text = f"{SUBSCRIPTION}=https://example.com/orders?a=b"

    target = Target.parse(text)

    assert (target.subscription, target.place) == (SUBSCRIPTION, "https://example.com/orders?a=b")
    assert str(target) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "arn:aws:sqs:eu-west-1:12345:orders",
        f"{QUEUE}.fifo",
        f"arn:aws:lambda:{PLACE}:layer:orders",
        f"arn:aws:ecs:{PLACE}:cluster/orders",
        "file:///etc/passwd",
        "ftp://example.com/",
        "https://",
        "https:///orders",
        "https://me:secret@example.com/",
        "https://:secret@example.com/",
        "https://example.com/#there",
        "https://example.com:99999/",
        "https://example.com:port/",
        "https://example.com/a b",
        "https://example.com/orders.fifo",
        f"arn:aws:states:{PLACE}:stateMachine:orders.fifo",
    ],
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(the ARN|a URL|a name that)"):
        Target.parse(text)


def test_two_targets_of_one_name_are_refused_as_their_circuits_would_be_one() -> None:
    rule = (QUEUE, QUEUE.replace("eu-west-1", "eu-west-2"))

    targets, faults = read_targets(Origin.EVENTBRIDGE, rule)

    assert len(targets) == 1
    assert [fault.accepted for fault in faults] == ["each target once"]


def test_a_worker_queue_in_postgres_is_sent_to_its_own_construct() -> None:
    targets, faults = read_targets(Origin.POSTGRES, ())

    assert targets == ()
    assert [(fault.setting, "PostgresRedriver" in fault.accepted) for fault in faults] == [
        ("origin", True)
    ]


@given(st.text())
def test_any_text_is_a_target_or_is_refused_with_a_reason(text: str) -> None:
    targets, faults = read_targets(Origin.SNS, (text,))

    assert len(targets) + len(faults) == 1
