"""What letters of other origins go back to: how a target is written, named and refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.targets import Origin, Target, TargetKind, read_targets

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
        QUEUE.replace("123456789012", "١٢٣٤٥٦٧٨٩٠١٢"),
        f"{SUBSCRIPTION.replace('123456789012', '١٢٣٤٥٦٧٨٩٠١٢')}={QUEUE}",
    ],
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(the ARN|a URL|a name that)"):
        Target.parse(text)


def test_two_targets_of_one_name_are_refused_as_their_circuits_would_be_one() -> None:
    rule = (QUEUE, QUEUE.replace("eu-west-1", "eu-west-2"))

    targets, faults = read_targets(Origin.EVENTBRIDGE, (*rule, QUEUE))

    assert len(targets) == 1
    elsewhere, again = [fault.accepted for fault in faults]
    assert elsewhere.startswith(f"one that is not called sqs:orders, as {QUEUE} is")
    assert again == "each target once"


@pytest.mark.parametrize(
    ("origin", "texts", "accepted"),
    [
        (
            Origin.SNS,
            (f"{SUBSCRIPTION}={QUEUE}", f"{SUBSCRIPTION}=https://example.com/"),
            "each subscription once",
        ),
        (
            Origin.SNS,
            (f"{SUBSCRIPTION.replace(':orders:', ':orders.fifo:')}={QUEUE}",),
            "a subscription of a standard topic",
        ),
        (Origin.EVENTBRIDGE, (f"{SUBSCRIPTION}={QUEUE}",), "with origin eventbridge the target"),
    ],
)
def test_a_subscription_is_of_a_standard_topic_and_delivers_to_one_endpoint(
    origin: Origin, texts: tuple[str, ...], accepted: str
) -> None:
    targets, (fault,) = read_targets(origin, texts)

    assert fault.accepted.startswith(accepted)
    assert len(targets) == len(texts) - 1


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "127.1", "0x7f.1", "0x7f000001", "0", "017700000001", "127.0.0.1.", "1.2.3.4.5",
        "256.1.1.1", "example.7", "a..b", ".a", "a" * 64, "a.b-", "-a.b", "*", "*.example.com",
        "a,b", "a" * 60 + ".a" * 100, "[::1", "[::1%eth0]", "[fe80]", "exa\\mple", "a%2eb", '"', "..",
    ],
)  # fmt: skip
def test_a_host_that_somebody_may_read_otherwise_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"^a URL"):
        Target.parse(f"https://{host}/orders")


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "Example.com.",
        "a_b.internal",
        "8.8.8.8",
        "[2606:2800::1]",
        "a:8443",
        "bücher.test",
    ],
)
def test_a_name_or_a_full_address_is_a_host(host: str) -> None:
    assert Target.parse(f"HTTPS://{host}/orders").kind is TargetKind.WEB


def test_a_worker_queue_in_postgres_is_sent_to_its_own_construct() -> None:
    targets, faults = read_targets(Origin.POSTGRES, ())

    assert targets == ()
    assert [(fault.setting, "PostgresRedriver" in fault.accepted) for fault in faults] == [
        ("origin", True)
    ]


@pytest.mark.parametrize(
    "userinfo", ["me:secret", ":secret", "me:sec/ret", "secret", "me:s@secret"]
)
def test_a_refusal_prints_no_password(userinfo: str) -> None:
    _, [fault] = read_targets(Origin.SNS, (f"https://{userinfo}@example.com/orders",))

    assert "'https://...@example.com/orders'" in str(fault)
    assert "sec" not in str(fault)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https:/me:secret@example.com", "https:/...@example.com"),
        ("https:me:secret@example.com", "https:...@example.com"),
        ("https://me:s\necret@example.com", "https://...@example.com"),
        ("me:secret@example.com", "me:...@example.com"),
    ],
)
def test_no_password_is_printed_however_the_url_is_misspelt(text: str, shown: str) -> None:
    _, [fault] = read_targets(Origin.SNS, (text,))

    assert fault.seen == shown


@given(st.text())
def test_any_text_is_a_target_or_is_refused_with_a_reason(text: str) -> None:
    targets, faults = read_targets(Origin.SNS, (text,))

    assert len(targets) + len(faults) == 1
