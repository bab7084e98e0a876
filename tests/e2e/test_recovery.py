"""A deployed re-driver hears that its consumer is well: by an event, by a downstream, by an alarm that is OK again."""

import json
from collections.abc import Iterator

import pytest

from demo.stack import DeployedStack
from emulator import cdk
from emulator.environments import ACCOUNT, REGION
from smart_redriver.engine.aws import items
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from tests.e2e.by_hand import DRESSED, ByHand
from tests.e2e.checked_aws import checked_aws
from tests.e2e.synthesized import deploy

ALARM = "consumer-errors"


@pytest.fixture(scope="module")
def deployed() -> Iterator[DeployedStack]:
    """Nothing but what it hears invokes the function."""
    with checked_aws() as aws:
        cdk.prepare(aws)
        arn = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{ALARM}"
        stack = deploy(aws, recovery_alarms=arn, downstream="payments")
        stack.stop_schedule()
        yield stack


@pytest.fixture
def opened(deployed: DeployedStack) -> ByHand:
    """A circuit that opened this minute, and a letter."""
    hand = ByHand(deployed)
    hand.empty()
    hand.add_letters(DRESSED)
    queue, settings = deployed.queue_name, Settings(cool_down_seconds=1800)
    circuit = new_circuit(queue, settings, deployed.now())
    circuit = force(circuit, State.OPEN, "for a test", deployed.now())
    deployed.dynamodb.put_item(
        TableName=deployed.outputs["StateTableName"], Item=items.circuit_to_item(circuit)
    )
    assert deployed.circuit().state == "OPEN"
    return hand


def say(stack: DeployedStack, *recovered: str, source: str = "smart-redriver") -> None:
    detail = json.dumps({"recovered": recovered, "by": "release 7"})
    entry = {"Source": source, "DetailType": "Recovery", "Detail": detail}
    answer = stack.aws.client("events").put_events(Entries=[entry])
    assert answer["FailedEntryCount"] == 0
    stack.aws.pass_time(1)


def set_alarm(stack: DeployedStack, *states: str) -> None:
    cloudwatch = stack.aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=ALARM, MetricName="Errors", Namespace="Shop", Statistic="Sum", Period=60,
        EvaluationPeriods=1, Threshold=1, ComparisonOperator="GreaterThanThreshold",
    )  # fmt: skip
    for state in states:
        cloudwatch.set_alarm_state(AlarmName=ALARM, StateValue=state, StateReason="for a test")
    stack.aws.pass_time(1)


def waits(hand: ByHand) -> bool:
    """Whether the letter is where it was, and the circuit OPEN."""
    depths, circuit = hand.stack.depths(), hand.stack.circuit()
    assert (depths.source, circuit.state) in {(0, "OPEN"), (1, "HALF_OPEN")}
    return circuit.state == "OPEN"


def test_an_event_of_anybodys_sends_a_canary_at_once(opened: ByHand) -> None:
    say(opened.stack, "another")
    say(opened.stack, opened.stack.queue_name, source="somebody-else")
    assert waits(opened)

    say(opened.stack, "another", opened.stack.queue_name)

    assert not waits(opened)
    reason = "a canary, as release 7 says that the consumer is well"
    assert opened.stack.circuit().reason == reason


def test_a_queue_that_shares_the_downstream_sends_one(opened: ByHand) -> None:
    say(opened.stack, "payments")

    assert not waits(opened)


def test_an_alarm_of_the_consumers_sends_one_when_it_is_ok_again(opened: ByHand) -> None:
    set_alarm(opened.stack, "ALARM")
    assert waits(opened)

    set_alarm(opened.stack, "OK")

    assert not waits(opened)
