"""What breaches on the deployed stack arrives as a page, and its end does too."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bench.metric_record import Emitted, parse_emf
from demo.orders import Order
from smart_redriver.engine.aws import metrics
from tests.e2e.by_hand import ByHand

_MINUTES = 60
_MANY = 120

Told = list[tuple[str, str]]


class Pager:
    """A queue subscribed to a topic: what a person's phone would show."""

    def __init__(self, by_hand: ByHand, topic_output: str, name: str) -> None:
        stack = by_hand.stack
        self._by_hand = by_hand
        self._sns = stack.aws.client("sns")
        self._url = stack.sqs.create_queue(QueueName=name)["QueueUrl"]
        asked = stack.sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        self._subscription = self._sns.subscribe(
            TopicArn=stack.outputs[topic_output],
            Protocol="sqs",
            Endpoint=asked["Attributes"]["QueueArn"],
        )["SubscriptionArn"]

    def told(self) -> Told:
        """Alarm and state of each message since the last look, oldest first."""
        messages = []
        while some := self._by_hand.receive(self._url):
            messages += [json.loads(json.loads(one["Body"])["Message"]) for one in some]
            for one in some:
                self._by_hand.stack.sqs.delete_message(
                    QueueUrl=self._url, ReceiptHandle=one["ReceiptHandle"]
                )
        return [(one["AlarmName"], one["NewStateValue"]) for one in messages]

    def close(self) -> None:
        self._sns.unsubscribe(SubscriptionArn=self._subscription)
        self._by_hand.stack.sqs.delete_queue(QueueUrl=self._url)


@pytest.fixture
def pager(by_hand: ByHand) -> Iterator[Callable[[str], Pager]]:
    """Makes a pager for the topic of an output."""
    made: list[Pager] = []

    def make(topic_output: str) -> Pager:
        made.append(Pager(by_hand, topic_output, f"pager-{len(made)}"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _about(told: Told, alarm: str) -> list[str]:
    return [state for name, state in told if alarm in name]


def _log_of_redriver(by_hand: ByHand) -> list[str]:
    stack = by_hand.stack
    function = stack.outputs["RedriveFunctionName"]
    settings = stack.functions.get_function_configuration(FunctionName=function)
    pages = stack.aws.client("logs").get_paginator("filter_log_events")
    found = pages.paginate(logGroupName=settings["LoggingConfig"]["LogGroup"])
    return [line["message"] for page in found for line in page["events"]]


def _on_record(by_hand: ByHand) -> dict[str, set[frozenset[tuple[str, str]]]]:
    """Dimensions of each of our metrics that CloudWatch knows."""
    pages = by_hand.stack.aws.client("cloudwatch").get_paginator("list_metrics")
    known: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for page in pages.paginate(Namespace=metrics.NAMESPACE):
        for one in page["Metrics"]:
            dimensions = frozenset((d["Name"], d["Value"]) for d in one["Dimensions"])
            known.setdefault(one["MetricName"], set()).add(dimensions)
    return known


def test_dead_letters_that_pile_up_page_once_and_their_end_is_told(
    by_hand: ByHand, pager: Callable[[str], Pager]
) -> None:
    phone, mailbox = pager("PagingTopicArn"), pager("WarningTopicArn")
    stack = by_hand.stack
    stack.aws.pass_time(5 * _MINUTES)  # an empty queue, to grow from
    by_hand.add_letters(*[Order(number=number) for number in range(_MANY)])
    stack.aws.pass_time(20 * _MINUTES)

    # Many and growing fast: two alarms, one page.
    assert _about(phone.told(), "LettersPileUp") == ["ALARM"]
    assert _about(mailbox.told(), "DeadLettersPresent") == ["ALARM"]

    stack.sqs.purge_queue(QueueUrl=stack.dead_letter_url)
    stack.aws.pass_time(20 * _MINUTES)

    assert _about(phone.told(), "LettersPileUp") == ["OK"]
    assert _about(mailbox.told(), "DeadLettersPresent") == ["OK"]
    # The emulator says so of an alarm whose metric math it does not understand.
    assert "could not be evaluated" not in stack.aws.log_file.read_text()


def test_our_own_metrics_reach_their_alarms(by_hand: ByHand, pager: Callable[[str], Pager]) -> None:
    phone, mailbox = pager("PagingTopicArn"), pager("WarningTopicArn")
    stack = by_hand.stack

    def put(metric: metrics.Metric, value: float) -> None:
        stack.aws.client("cloudwatch").put_metric_data(
            Namespace=metrics.NAMESPACE,
            MetricData=[
                {
                    "MetricName": metric.name,
                    "Dimensions": [{"Name": metrics.QUEUE, "Value": stack.queue_name}],
                    "Unit": metric.unit.value,
                    "Value": value,
                    "Timestamp": datetime.fromtimestamp(stack.aws.clock.now(), UTC),
                }
            ],
        )

    put(metrics.LETTERS_PARKED, 2)
    put(metrics.LEAST_LIFE_LEFT, 1)
    stack.aws.pass_time(65 * _MINUTES)

    # The lot is empty all the same, so this warning is over by now.
    assert _about(mailbox.told(), "PoisonParked") == ["ALARM", "OK"]
    assert _about(phone.told(), "LettersNearExpiry") == ["ALARM"]


def test_the_deployed_function_emits_what_alarms_look_at(by_hand: ByHand) -> None:
    by_hand.add_letters(Order(number=1), Order(number=2))

    by_hand.invoke()
    by_hand.stack.aws.pass_time(_MINUTES)

    emitted = [one for line in _log_of_redriver(by_hand) for one in parse_emf(line)]
    queue = frozenset({(metrics.QUEUE, by_hand.stack.queue_name)})
    units = {metric.name: metric.unit.value for metric in metrics.ALL}
    always = {metric.name for metric in metrics.ALL if metric.always}

    def is_as_declared(one: Emitted) -> bool:
        namespace, unit = one.metric.namespace, units[one.metric.name]
        return (namespace, one.metric.dimensions, one.unit) == (metrics.NAMESPACE, queue, unit)

    assert emitted
    assert all(map(is_as_declared, emitted))
    names = {one.metric.name for one in emitted}
    assert names >= always | {"LettersExamined", "LettersRedriven", "LeastLifeLeft"}
    # And CloudWatch has read the same from the log.
    known: Any = _on_record(by_hand)
    assert all(queue in known[name] for name in names)
