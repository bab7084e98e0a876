"""A FIFO pair on the deployed stack: an outage with a poison pill in one group, drained in the order of the groups.

How MiniStack's FIFO queues differ from those of AWS is in docs/stand-ins.md.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from demo.orders import Order
from demo.stack import DeployedStack, Depths
from emulator import cdk
from tests.e2e.checked_aws import checked_aws
from tests.e2e.synthesized import deploy

_MINUTE = 60.0
#: Virtual minutes within which the DLQ is drained and the pill parked.
_PATIENCE = 180
_GROUPS = ("a", "b", "c")
_IN_A_GROUP = 4
_PILL = ("b", 1)
#: Number of the first order of live traffic.
_LIVE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What became of an outage. Message ids of each group in the order of sending, and of the pill."""

    stack: DeployedStack
    groups: Mapping[str, Sequence[str]]
    pill: str
    dead: Depths
    left: Depths


@pytest.fixture(scope="module")
def drained() -> Iterator[Drained]:
    with checked_aws() as aws:
        cdk.prepare(aws)
        stack = deploy(
            aws,
            fifo="true",
            with_sample_consumer="true",
            max_attempts="1",
            last_chance_seconds="0",
            alarms="paging",
        )
        yield play(stack)


def play(stack: DeployedStack) -> Drained:
    """Let all fail, bring the consumer back, and wait until nothing but the pill is left."""
    stack.set_dependency(is_down=True)
    groups = {
        group: [
            send(stack, group, Order(number=number, is_poison=(group, number) == _PILL))
            for number in range(_IN_A_GROUP)
        ]
        for group in _GROUPS
    }
    for _ in range(30):
        stack.aws.pass_time(_MINUTE)
        if stack.depths().dead_letters >= len(_GROUPS) * _IN_A_GROUP:
            break
    dead = stack.depths()
    stack.set_dependency(is_down=False)
    for minute in range(_PATIENCE):
        send(stack, "live", Order(number=_LIVE + minute))
        stack.aws.pass_time(_MINUTE)
        left = stack.depths()
        if left.parked and not left.dead_letters:
            break
    group, place = _PILL
    return Drained(stack=stack, groups=groups, pill=groups[group][place], dead=dead, left=left)


def send(stack: DeployedStack, group: str, order: Order) -> str:
    """Send one order of a group; its message id."""
    answer = stack.sqs.send_message(
        QueueUrl=stack.source_url,
        MessageBody=order.body,
        MessageGroupId=group,
        MessageDeduplicationId=f"{group}-{order.number}",
        MessageAttributes=order.attributes,
    )
    return str(answer["MessageId"])


def test_the_deployed_queues_are_fifo_but_that_of_reports(drained: Drained) -> None:
    stack = drained.stack

    for url in (stack.source_url, stack.dead_letter_url, stack.parking_lot_url):
        attributes = attributes_of(stack, url)
        assert url.endswith(".fifo")
        assert attributes["FifoQueue"] == "true"
        assert attributes["FifoThroughputLimit"] == "perMessageGroupId"
    assert "FifoQueue" not in attributes_of(stack, stack.outputs["OutcomeQueueUrl"])


def test_all_failed_and_all_but_the_pill_were_drained(drained: Drained) -> None:
    sent = {one for ids in drained.groups.values() for one in ids}

    assert drained.dead.dead_letters == len(sent)
    assert (drained.left.dead_letters, drained.left.parked) == (0, 1)
    assert sent - drained.stack.processed() == {drained.pill}


def test_each_group_was_processed_in_its_order_and_each_of_its_messages_once(
    drained: Drained,
) -> None:
    done = [
        str(event.fields["original_id"])
        for event in drained.stack.consumer_log().fresh()
        if event.name == "message.processed"
    ]

    for ids in drained.groups.values():
        assert [one for one in done if one in ids] == [one for one in ids if one != drained.pill]


def test_the_pill_is_parked_whole_in_the_fifo_lot_and_keeps_its_group(drained: Drained) -> None:
    parked = drained.stack.parked()

    assert parked.keys() == {drained.pill}
    message = parked[drained.pill]
    group, number = _PILL
    assert json.loads(message["Body"])["order"] == number
    assert message["Attributes"]["MessageGroupId"] == group
    expected = Order(number=number, is_poison=True).attributes
    assert expected.keys() < message["MessageAttributes"].keys()


def attributes_of(stack: DeployedStack, url: str) -> dict[str, Any]:
    answer = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    attributes: dict[str, Any] = answer["Attributes"]
    return attributes
