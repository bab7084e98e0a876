"""Targets as they are written: what is one, and what it is called."""

import pytest

from redrive.targets import Origin, Target, read_targets
from tests.unit.origin_letters import FUNCTION_ARN, MACHINE_ARN, QUEUE_ARN, SUBSCRIPTION


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https:///orders",
        "https://user@example.com/",
        "https://:secret@example.com/",
        "https://example.com/#part",
        "https://example.com:99999/",
        "https://example.com:port/",
        "https://example.com/a b",
        "https://example.com/orders.fifo",
        "arn:aws:iam::123456789012:role/admin",
        f"{QUEUE_ARN}.fifo",
        f"{MACHINE_ARN}.fifo",
        "",
    ],
)
def test_what_is_no_target_is_a_fault_with_what_would_be_one(text: str) -> None:
    targets, faults = read_targets(Origin.SNS, (text,))

    assert targets == ()
    assert [one.seen for one in faults] == [text]
    assert faults[0].accepted


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (QUEUE_ARN, "sqs:orders"),
        (FUNCTION_ARN, "lambda:orders"),
        (f"{FUNCTION_ARN}:live", "lambda:orders:live"),
        (MACHINE_ARN, "states:orders"),
        (f"{SUBSCRIPTION}={QUEUE_ARN}", "sqs:orders"),
        ("https://example.com:8443/orders?key=secret", "https://example.com:8443/orders"),
    ],
)
def test_a_target_has_a_name_without_secrets_and_is_written_as_it_was_read(
    text: str, name: str
) -> None:
    target = Target.parse(text)

    assert (target.name, str(target)) == (name, text)
