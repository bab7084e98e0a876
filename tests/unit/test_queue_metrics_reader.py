"""A source's metrics: minute by minute what CloudWatch counted, and nothing that it has not told yet."""

from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest

from fakes.clock import VirtualClock
from fakes.cloudwatch import FakeCloudWatch
from fakes.sqs import FakeSqs
from smart_redriver.engine.aws.queue_metrics import (
    LONGEST,
    MOST_PAGES,
    POINTS_PER_PAGE,
    SqsMetricsReader,
)
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics
from tests.unit.examples import NOW, ago
from tests.unit.sqs_client import denial

VISIBLE = "ApproximateNumberOfMessagesVisible"
IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
OLDEST = "ApproximateAgeOfOldestMessage"
SENT, RECEIVED, DELETED = (f"NumberOfMessages{one}" for one in ("Sent", "Received", "Deleted"))

#: By metric, the value of each of the last minutes, by how many minutes ago it began.
Figures = dict[str, dict[int, float]]

#: Every minute of the last five was measured.
MEASURED: Figures = {
    VISIBLE: dict.fromkeys(range(1, 6), 0),
    IN_FLIGHT: dict.fromkeys(range(1, 6), 0),
    DELAYED: dict.fromkeys(range(1, 6), 0),
}


class RecordingCloudWatch:
    """A CloudWatch client that answers with these pages, one a call; the last one again and again."""

    def __init__(self, *pages: Figures, status: str = "Complete", is_endless: bool = False) -> None:
        self.requests: list[dict[str, Any]] = []
        self._pages = pages
        self._status = status
        self._is_endless = is_endless

    def get_metric_data(self, **request: Any) -> Any:
        page = min(len(self.requests), len(self._pages) - 1)
        self.requests.append(request)
        is_last = page == len(self._pages) - 1 and not self._is_endless
        more = {} if is_last else {"NextToken": f"page {page + 1}"}
        status = self._status if is_last else "PartialData"
        return {
            "MetricDataResults": [
                self._result(query, self._pages[page], status)
                for query in request["MetricDataQueries"]
            ],
            **more,
        }

    def _result(self, query: dict[str, Any], figures: Figures, status: str) -> dict[str, Any]:
        points = figures.get(query["MetricStat"]["Metric"]["MetricName"], {})
        return {
            "Id": query["Id"],
            # boto3 gives times in the zone of the machine.
            "Timestamps": [
                ago(minutes=n).astimezone(timezone(timedelta(hours=5, minutes=30))) for n in points
            ],
            "Values": list(points.values()),
            "StatusCode": status,
        }


def metrics_of(*pages: Figures, minutes: int = 5, **client: Any) -> QueueMetrics:
    cloudwatch = RecordingCloudWatch(*pages, **client)
    return SqsMetricsReader(cloudwatch).since(ago(minutes=minutes), NOW, "orders")


def test_the_metrics_have_every_minute_in_order_with_what_was_counted_and_measured() -> None:
    figures = MEASURED | {
        SENT: {5: 4, 4: 1},
        RECEIVED: {5: 4},
        DELETED: {4: 3},
        VISIBLE: {2: 0, 1: 0, 5: 7, 4: 2, 3: 0},
        OLDEST: {5: 30.5},
    }

    minutes = metrics_of(figures, minutes=5).minutes

    assert minutes[:2] == (
        Minute(
            at=ago(minutes=5),
            sent=4,
            received=4,
            deleted=0,
            visible=7,
            in_flight=0,
            delayed=0,
            oldest_age_seconds=30.5,
        ),
        Minute(at=ago(minutes=4), sent=1, deleted=3, visible=2, in_flight=0, delayed=0),
    )
    assert [one.at for one in minutes] == [ago(minutes=n) for n in (5, 4, 3, 2, 1)]
    assert all(one.at.tzinfo is UTC for one in minutes)


def test_a_minute_in_between_of_which_nothing_was_counted_counts_as_none() -> None:
    gauges = {name: {5: 1.0, 2: 1.0} for name in (VISIBLE, IN_FLIGHT, DELAYED)}

    minutes = metrics_of(gauges | {DELETED: {5: 9}}).minutes

    assert [(one.deleted, one.visible) for one in minutes] == [
        (9, 1),
        (0, None),
        (0, None),
        (0, 1),
    ]


def test_minutes_that_cloudwatch_has_not_measured_yet_are_absent() -> None:
    """Their counters are missing, too, and would read as "nothing was deleted"."""
    figures = MEASURED | {VISIBLE: {5: 1, 4: 1, 3: 1}, DELETED: {5: 2, 2: 2}}

    assert [one.at for one in metrics_of(figures).minutes] == [ago(minutes=n) for n in (5, 4, 3)]


def test_a_queue_of_which_cloudwatch_knows_nothing_has_empty_metrics() -> None:
    assert metrics_of({}) == QueueMetrics()
    assert metrics_of({DELETED: {3: 5}}) == QueueMetrics()


def test_one_call_asks_for_the_seven_metrics_of_the_queue_by_the_minute() -> None:
    cloudwatch = RecordingCloudWatch(MEASURED)

    SqsMetricsReader(cloudwatch).since(
        ago(minutes=4, seconds=30), NOW + timedelta(seconds=20), "orders"
    )

    (request,) = cloudwatch.requests
    assert (request["StartTime"], request["EndTime"]) == (ago(minutes=5), NOW)
    asked = [query["MetricStat"] for query in request["MetricDataQueries"]]
    assert {one["Metric"]["MetricName"]: one["Stat"] for one in asked} == {
        SENT: "Sum",
        RECEIVED: "Sum",
        DELETED: "Sum",
        VISIBLE: "Maximum",
        IN_FLIGHT: "Maximum",
        DELAYED: "Maximum",
        OLDEST: "Maximum",
    }
    assert {one["Period"] for one in asked} == {60}
    assert all(
        one["Metric"]["Dimensions"] == [{"Name": "QueueName", "Value": "orders"}] for one in asked
    )


def test_the_age_of_a_standard_source_queues_messages_is_not_paid_for() -> None:
    cloudwatch = RecordingCloudWatch(MEASURED)
    metrics = SqsMetricsReader(cloudwatch, standard=["orders"])

    minutes = [
        metrics.since(ago(minutes=5), NOW, name).minutes for name in ("orders", "orders-dlq")
    ]

    asked = [
        {query["MetricStat"]["Metric"]["MetricName"] for query in request["MetricDataQueries"]}
        for request in cloudwatch.requests
    ]
    assert asked[1] - asked[0] == {OLDEST}
    assert [one.deleted for one in minutes[0]] == [one.deleted for one in minutes[1]]


def test_no_whole_minute_is_no_call() -> None:
    cloudwatch = RecordingCloudWatch(MEASURED)

    metrics = SqsMetricsReader(cloudwatch).since(NOW, NOW + timedelta(seconds=59), "orders")

    assert metrics == QueueMetrics()
    assert cloudwatch.requests == []


def test_an_answer_in_pages_is_read_to_its_end() -> None:
    early = {name: {5: 1.0, 4: 1.0} for name in MEASURED}
    late = {name: {3: 1.0} for name in MEASURED}
    cloudwatch = RecordingCloudWatch(early | {DELETED: {5: 1}}, late | {DELETED: {3: 2}})

    minutes = SqsMetricsReader(cloudwatch).since(ago(minutes=5), NOW, "orders").minutes

    assert [one.deleted for one in minutes] == [1, 0, 2]
    assert [request.get("NextToken") for request in cloudwatch.requests] == [None, "page 1"]


@pytest.mark.parametrize("status", ["PartialData", "InternalError", "Forbidden"])
def test_figures_that_stay_incomplete_are_no_answer(status: str) -> None:
    """A reader that can't read makes a verdict slower, never bolder."""
    with pytest.raises(CallFailed, match=f"GetMetricData: {status}"):
        metrics_of(MEASURED, status=status)


def test_an_answer_without_end_is_no_answer() -> None:
    cloudwatch = RecordingCloudWatch(MEASURED, is_endless=True)

    with pytest.raises(CallFailed, match="GetMetricData: PartialData"):
        SqsMetricsReader(cloudwatch).since(ago(minutes=5), NOW, "orders")

    assert len(cloudwatch.requests) == MOST_PAGES


def test_no_more_is_asked_for_than_one_page_holds() -> None:
    cloudwatch = RecordingCloudWatch({})

    SqsMetricsReader(cloudwatch).since(ago(days=100), NOW, "orders")

    (request,) = cloudwatch.requests
    minutes = (request["EndTime"] - request["StartTime"]) / timedelta(minutes=1)
    assert timedelta(days=9) < LONGEST
    assert minutes * len(request["MetricDataQueries"]) <= POINTS_PER_PAGE


def test_figures_that_are_denied_fail_by_name() -> None:
    class Denying:
        def get_metric_data(self, **_: Any) -> Any:
            raise denial()

    with pytest.raises(CallFailed, match="GetMetricData: AccessDenied"):
        SqsMetricsReader(Denying()).since(ago(minutes=5), NOW, "orders")


def test_the_metrics_of_a_queue_add_up() -> None:
    """Against the fake of SQS and CloudWatch, which the contract tests hold to what AWS documents."""
    clock = VirtualClock(datetime(2026, 1, 10, 12, tzinfo=UTC))
    sqs = FakeSqs(clock, Random(0))
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    start = clock.now()
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    clock.advance(60)
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    clock.advance(300)

    metrics = SqsMetricsReader(FakeCloudWatch(clock, sqs)).since(start, clock.now(), "orders")

    assert [(one.sent, one.received, one.deleted) for one in metrics.minutes[:3]] == [
        (2, 0, 0),
        (0, 1, 1),
        (0, 0, 0),
    ]
    assert metrics.minutes[-1].visible == 1
    assert metrics.minutes[-1].at < clock.now() - timedelta(minutes=1)
