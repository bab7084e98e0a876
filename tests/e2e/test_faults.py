"""The deployed re-driver on a bad wire: at random its calls are throttled, fail, or lose their way or their answer.

Faults befall the re-driver's calls alone, so that whatever goes wrong with a letter is its doing. The draws are
seeded; which call meets which of them depends on the order of calls under way at once, and what is asserted holds
for every order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, islice

import pytest

from demo.event_log import Event
from demo.orders import Order
from demo.stack import DeployedStack
from emulator import cdk
from smart_redriver.engine.report import Outcome
from tests.e2e.bad_wire import BadWire, Rule
from tests.e2e.checked_aws import checked_aws
from tests.e2e.synthesized import deploy

SEED = 20
#: Good ones, every ten minutes.
LIVE_ORDERS = 5
ORDERS, EVERY_HOW_MANIETH_IS_POISON = 60, 20

_MINUTE = 60
#: Calls by the hundred; and on until each kind of fault has struck.
STORM_MINUTES = 40
LONGEST_STORM_MINUTES = 240
PATIENCE_MINUTES = 240
#: Strikes before parking: fewer than by default, so that the poison is not what takes the time.
MAX_ATTEMPTS = 3
#: And as soon as they are earned, or the last would come six hours after the first.
LAST_CHANCE_SECONDS = 0

#: The share of calls to a service that each of its kinds of fault befalls.
SHARE = 0.05
ONE_BATCH_CALL = 10


#: What befalls a call, with the one that each kind is sure to befall once: where it hurts.
FAULTS: list[tuple[str, str, Rule]] = [
    ("sqs", "ReceiveMessage", {"error": {"code": "RequestThrottled"}}),
    ("sqs", "DeleteMessageBatch", {"error": {"code": "ServiceUnavailable", "status": 503}}),
    # Lost before it took effect, or with all of its answer afterwards.
    ("sqs", "SendMessageBatch", {"reset": True}),
    ("sqs", "SendMessageBatch", {"response": {"abort_bytes": 0}}),
    ("dynamodb", "BatchGetItem", {"error": {"code": "ProvisionedThroughputExceededException"}}),
    ("dynamodb", "PutItem", {"error": {"code": "InternalServerError", "status": 500}}),
    ("dynamodb", "GetItem", {"reset": True}),
    ("dynamodb", "BatchWriteItem", {"response": {"abort_bytes": 0}}),
]


def storm() -> list[Rule]:
    headers = {"user-agent": "smart-redriver"}
    sure = [
        {"service": service, "operation": operation, "headers": headers, "times": 1, **fault}
        for service, operation, fault in FAULTS
    ]
    random = [
        {"service": service, "headers": headers, "probability": SHARE, **fault}
        for service, _, fault in FAULTS
    ]
    return sure + random


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What the storm left, by original ids; what is parked, by the order's number.

    Where the answer to a send was lost, the letter may be in the queue twice, and poison in the parking lot.
    `repeated` are deliveries of what was processed already, `crashes` invocations that ended without an answer.
    """

    sent: dict[str, Order]
    processed: set[str]
    parked: set[int]
    waiting: int
    repeated: int
    crashes: int
    faults: Counter[tuple[str, str, str]]
    events: list[Event]

    @property
    def poison(self) -> set[str]:
        return {message_id for message_id, order in self.sent.items() if order.is_poison}

    @property
    def poison_numbers(self) -> set[int]:
        return {self.sent[message_id].number for message_id in self.poison}

    @property
    def passes(self) -> list[Event]:
        return [event for event in self.events if event.name == "pass.finished"]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    """Orders that died during a short outage, and a storm while they are redriven."""
    work_dir = tmp_path_factory.mktemp("bad-wire")
    with (
        BadWire(work_dir, seed=SEED) as wire,
        checked_aws(lambda_endpoint_url=wire.endpoint_url) as aws,
    ):
        wire.lead_to(aws.endpoint_url)
        cdk.prepare(aws)
        stack = deploy(
            aws,
            with_sample_consumer="true",
            max_attempts=str(MAX_ATTEMPTS),
            last_chance_seconds=str(LAST_CHANCE_SECONDS),
        )
        yield weathered(stack, wire)


def weathered(stack: DeployedStack, wire: BadWire) -> Aftermath:
    sent = let_orders_die(stack)
    wire.fail_by(storm())
    numbers = count(ORDERS + 1)
    for minutes in range(10, LONGEST_STORM_MINUTES, 10):
        sent |= let_orders_flow(stack, numbers)
        faults = wire.faults()
        if minutes >= STORM_MINUTES and has_struck(faults):
            break
    wire.fail_by([])
    for _ in range(0, PATIENCE_MINUTES, 10):
        sent |= let_orders_flow(stack, numbers)
        if not waiting(stack):
            break
    consumer = Counter(event.name for event in stack.consumer_log().fresh())
    return Aftermath(
        sent=sent,
        processed=stack.processed(),
        parked={json.loads(message["Body"])["order"] for message in stack.parked().values()},
        waiting=waiting(stack),
        repeated=consumer["message.already_processed"],
        crashes=crashes(stack),
        faults=faults,
        events=stack.redriver_log.fresh(),
    )


def has_struck(faults: Counter[tuple[str, str, str]]) -> bool:
    """Whether each kind of fault befell each service, and more than what was sure to come."""
    struck = {(service, kind) for service, _, kind in faults}
    return len(struck) == len(FAULTS) and faults.total() > 2 * len(FAULTS)


def let_orders_die(stack: DeployedStack) -> dict[str, Order]:
    stack.set_dependency(is_down=True)
    numbers = range(1, ORDERS + 1)
    sent = stack.send(
        [Order(number=n, is_poison=n % EVERY_HOW_MANIETH_IS_POISON == 0) for n in numbers]
    )
    pass_minutes(stack, 3)
    depths = stack.depths()
    # A pass that comes as early as it may has sent a batch of the first ones back.
    assert depths.source + depths.dead_letters == ORDERS
    assert depths.dead_letters > ORDERS / 2
    stack.set_dependency(is_down=False)
    return sent


def let_orders_flow(stack: DeployedStack, numbers: Iterator[int]) -> dict[str, Order]:
    """Ten minutes in which producers go on: without them poison and an outage look alike."""
    orders = [Order(number=number, is_poison=False) for number in islice(numbers, LIVE_ORDERS)]
    sent = stack.send(orders)
    pass_minutes(stack, 10)
    return sent


def pass_minutes(stack: DeployedStack, count: int) -> None:
    stack.aws.pass_time(count * _MINUTE, step=_MINUTE)


def crashes(stack: DeployedStack) -> int:
    function = stack.outputs["RedriveFunctionName"]
    answer = stack.aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="Errors",
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=stack.now() - timedelta(days=1),
        EndTime=stack.now(),
        Period=86_400,
        Statistics=["Sum"],
    )
    return int(sum(point["Sum"] for point in answer["Datapoints"]))


def waiting(stack: DeployedStack) -> int:
    depths = stack.depths()
    return depths.source + depths.dead_letters


def test_the_storm_struck_with_every_kind_of_fault(aftermath: Aftermath) -> None:
    """Else the tests below would prove nothing."""
    assert has_struck(aftermath.faults)


def test_nothing_is_lost_in_a_storm(aftermath: Aftermath) -> None:
    assert aftermath.waiting == 0
    parked = {one for one, order in aftermath.sent.items() if order.number in aftermath.parked}
    assert aftermath.processed | parked == aftermath.sent.keys()


def test_exactly_the_poison_is_parked_in_a_storm(aftermath: Aftermath) -> None:
    assert aftermath.parked == aftermath.poison_numbers
    assert aftermath.processed == aftermath.sent.keys() - aftermath.poison


def test_only_letters_of_a_call_that_failed_are_repeated(aftermath: Aftermath) -> None:
    """The letters of one call, where its answer or the record of it was lost."""
    ambiguous = sum(
        count
        for (_, operation, _), count in aftermath.faults.items()
        if operation in ("SendMessageBatch", "BatchWriteItem")
    )

    assert aftermath.repeated <= ONE_BATCH_CALL * ambiguous


def test_every_pass_ends_with_a_report_whatever_befalls_it(aftermath: Aftermath) -> None:
    assert aftermath.crashes == 0
    outcomes = {event.fields["outcome"] for event in aftermath.passes}
    assert "FAILED" in outcomes
    # A write whose answer was lost looks like another's to the pass that goes on.
    assert outcomes <= set(Outcome) - {"DRY_RUN", "PAUSED", "MOVE_TASK_RUNNING"}


def test_the_reports_name_the_calls_and_codes_that_failed(aftermath: Aftermath) -> None:
    """Those that botocore's own retries did not hide: it retries no throttle in the shape that the proxy gives it."""
    told: Counter[str] = Counter()
    for event in aftermath.passes:
        told.update(event.fields["faults"])
    throttled = Counter(
        {
            f"{operation}:RequestThrottled": count
            for (_, operation, kind), count in aftermath.faults.items()
            if kind == "error:RequestThrottled"
        }
    )

    assert throttled - told == Counter()
