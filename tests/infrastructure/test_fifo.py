"""FIFO queues in templates: those that the stack makes, those that it adopts, and their parking lots."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from smart_redriver.engine.errors import SettingsError
from stacks.redriver_stack import make_stack
from stacks.settings import parse_context, read_context
from tests.infrastructure.adopted import entry, fifo_entry, queue_arn, shared_entry
from tests.infrastructure.conftest import make_app

IN_ORDER = {
    "FifoQueue": True,
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}


@pytest.fixture(scope="module")
def fifo_template(synth) -> Template:
    return synth(fifo="true", with_sample_consumer="true", fifo_poison="block")


def queue_behind(template: Template, output: str) -> dict[str, Any]:
    """The queue whose URL this output is."""
    name = template.to_json()["Outputs"][output]["Value"]["Ref"]
    return template.find_resources("AWS::SQS::Queue")[name]["Properties"]


@pytest.mark.parametrize("output", ["SourceQueueUrl", "DeadLetterQueueUrl", "ParkingLotQueueUrl"])
def test_the_stacks_own_queues_are_fifo_with_high_throughput_when_asked_for(fifo_template, output):
    assert queue_behind(fifo_template, output).items() >= IN_ORDER.items()


def test_the_name_that_the_source_is_given_says_that_it_is_fifo_and_fits(fifo_template):
    *name, suffix = queue_behind(fifo_template, "SourceQueueUrl")["QueueName"]["Fn::Join"][1]
    [given, stack_id] = name

    assert suffix == ".fifo"
    assert "Fn::Select" in stack_id
    assert len(given) + 36 + len(suffix) <= 80


def test_reports_come_in_no_order(fifo_template):
    assert not IN_ORDER.keys() & queue_behind(fifo_template, "OutcomeQueueUrl").keys()


def test_nothing_is_fifo_unless_asked_for(template):
    queues = template.find_resources("AWS::SQS::Queue").values()

    assert not any(IN_ORDER.keys() & queue["Properties"].keys() for queue in queues)


def test_the_function_is_told_what_becomes_of_poison(fifo_template):
    name = fifo_template.to_json()["Outputs"]["RedriveFunctionName"]["Value"]["Ref"]
    function = fifo_template.find_resources("AWS::Lambda::Function")[name]["Properties"]

    assert function["Environment"]["Variables"]["FIFO_POISON"] == "block"


def test_an_adopted_fifo_pair_gets_a_fifo_parking_lot_and_its_neighbour_a_standard_one(synth):
    template = synth(queues=[fifo_entry("bookings", "bookings"), entry("orders")])

    queues = template.find_resources("AWS::SQS::Queue")

    def made(owner: str, role: str) -> dict[str, Any]:
        (found,) = [one for name, one in queues.items() if owner in name and role in name]
        return found["Properties"]

    assert made("Bookings", "ParkingLot").items() >= IN_ORDER.items()
    assert not IN_ORDER.keys() & made("Orders", "ParkingLot").keys()
    assert not IN_ORDER.keys() & made("Bookings", "Outcome").keys()


def test_alarms_and_metrics_name_a_fifo_queue_in_full():
    """As SQS's metrics do: in each dimension, and in the names of alarms."""
    app = make_app(queues=[fifo_entry("bookings", "bookings")])
    stack = make_stack(app, read_context(app.node))
    [nested] = [one for one in stack.node.find_all() if isinstance(one, cdk.NestedStack)]

    alarms = Template.from_stack(nested).find_resources("AWS::CloudWatch::Alarm")

    named = {
        dimension["Value"]
        for alarm in alarms.values()
        for metric in metrics_of(alarm["Properties"])
        for dimension in metric.get("Dimensions", ())
        if dimension["Name"] in ("Queue", "QueueName") and isinstance(dimension["Value"], str)
    }
    assert named == {"bookings.fifo", "bookings-dlq.fifo"}
    names = [alarm["Properties"]["AlarmName"] for alarm in alarms.values()]
    assert names
    assert all(name.startswith("bookings.fifo ") for name in names)


def test_a_list_may_have_fifo_pairs():
    [queue] = parse_context({"queues": [fifo_entry("bookings", "bookings", "changes")]}).queues

    assert queue.source_arns == (queue_arn("bookings.fifo"), queue_arn("changes.fifo"))
    assert queue.dead_letter_arn == queue_arn("bookings-dlq.fifo")


@pytest.mark.parametrize(
    ("queue", "place", "accepted"),
    [
        (
            entry("orders", source_arn=queue_arn("orders.fifo")),
            "queues[0].source_arn",
            "a standard queue, as its dead_letter_arn is",
        ),
        (
            entry("orders", dead_letter_arn=queue_arn("orders-dlq.fifo")),
            "queues[0].source_arn",
            "a FIFO queue, as its dead_letter_arn is",
        ),
        (
            shared_entry("refunds", "refunds", "returns.fifo"),
            "queues[0].source_arn[1]",
            "a standard queue, as its dead_letter_arn is",
        ),
    ],
)
def test_a_list_has_no_mixed_pairs(queue, place, accepted):
    assert faults_of(queues=[queue]) == {place: accepted}


@pytest.mark.parametrize("name", ["orders.fif", "orders.fifo.fifo", ".fifo", f"{'o' * 76}.fifo"])
def test_what_is_no_name_of_a_queue_is_refused(name):
    faults = faults_of(queues=[entry("orders", dead_letter_arn=queue_arn(name))])

    assert faults["queues[0].dead_letter_arn"] == "the ARN of an SQS queue"


def test_queues_that_exist_say_by_their_names_what_they_are():
    assert "fifo" in faults_of(fifo="true", queues=[fifo_entry("bookings", "bookings")])


def test_a_fifo_poison_that_is_none_is_refused():
    assert "fifo_poison" in faults_of(fifo_poison="drop")


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm, whether of a single one or of a sum."""
    several = [
        one["MetricStat"]["Metric"] for one in alarm.get("Metrics", ()) if "MetricStat" in one
    ]
    return [alarm, *several]


def faults_of(**context: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        parse_context(context)
    return {fault.setting: fault.accepted for fault in caught.value.faults}
