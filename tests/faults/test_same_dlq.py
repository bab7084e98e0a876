"""A target queue whose own failed messages go to the very DLQ that its letters are in: they come back,
as a source queue's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.model.circuit import State
from tests.faults.stage import DLQ, LOT, QUEUE, Stage
from tests.faults.stories import RULE, SCHEDULE, SUBSCRIPTIONS, envelope

LETTERS = [f"letter-sqs-{number}" for number in range(6)]
PILL = LETTERS[0]
MARKS = {
    Origin.SNS: {},
    Origin.EVENTBRIDGE: {"RULE_ARN": RULE, "TARGET_ARN": QUEUE},
    Origin.SCHEDULER: {"SCHEDULE_ARN": SCHEDULE, "TARGET_ARN": QUEUE},
}


class Consumer:
    """Takes all that is in the queue, and deletes what it can do; `tries` are its receives of each letter."""

    def __init__(self, stage: Stage, fails: Callable[[str], bool]) -> None:
        self.tries: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self._stage = stage
        self._fails = fails
        policy = {"deadLetterTargetArn": f"{QUEUE}-dlq", "maxReceiveCount": 1}
        stage.sqs.set_queue_attributes(
            QueueUrl=stage.urls["orders"],
            Attributes={"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": "10"},
        )

    def work(self) -> None:
        sqs, url = self._stage.sqs, self._stage.urls["orders"]
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for one in messages:
                name = re.findall(r"letter-sqs-\d", one["Body"])[0]
                self.tries[name] += 1
                if not self._fails(name):
                    self.done[name] += 1
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])


def stage_of(origin: Origin) -> Stage:
    stage = Stage(origin=origin, targets=(Target.parse(QUEUE),))
    for name in LETTERS:
        body = envelope(name, SUBSCRIPTIONS[QUEUE]) if origin is Origin.SNS else name
        stage.put(name, body, **MARKS[origin])
    return stage


@pytest.mark.parametrize("origin", MARKS)
def test_poison_that_the_consumer_fails_for_ever_is_parked(origin: Origin) -> None:
    stage = stage_of(origin)
    consumer = Consumer(stage, lambda name: name == PILL)

    for _ in range(500):
        stage.run_pass()
        consumer.work()

    assert consumer.done == dict.fromkeys(LETTERS[1:], 1)
    assert stage.resting(DLQ) == {}
    assert (stage.resting(LOT), consumer.tries[PILL] < 20) == ({PILL: 1}, True)
    assert stage.parked_for()[PILL] in ("MAX_ATTEMPTS", "GAVE_UP")


@pytest.mark.parametrize("origin", MARKS)
def test_a_consumer_that_is_down_opens_the_circuit_and_loses_nothing(origin: Origin) -> None:
    stage = stage_of(origin)
    consumer = Consumer(stage, lambda _: stage.passes < 60)
    states = []

    for _ in range(200):
        _, report = stage.run_pass()
        states.append(report.circuit_after if report else None)
        consumer.work()

    assert State.OPEN in states
    assert consumer.done == dict.fromkeys(LETTERS, 1)
    assert (stage.resting(DLQ), stage.resting(LOT)) == ({}, {})
