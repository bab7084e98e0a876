"""Records on AWS itself what the stand-ins assume of it: `make account-probe`, run once by a person in an account of theirs.

It makes queues under one prefix, tagged, sends a few dozen messages, waits for CloudWatch, writes one JSON file, and removes
what it made, also after a failure. It costs less than a cent and takes about 25 minutes. Everything that
`docs/stand-ins.md` lists as never compared with an account has one question here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

_PREFIX = "redriver-probe"
_TAGS = {"purpose": "smart-redriver-account-probe"}
#: Messages whose minute is watched in CloudWatch.
_MESSAGES = 20
_METRICS = {
    "NumberOfMessagesSent": "Sum",
    "NumberOfMessagesReceived": "Sum",
    "NumberOfMessagesDeleted": "Sum",
    "ApproximateNumberOfMessagesVisible": "Maximum",
    "ApproximateNumberOfMessagesNotVisible": "Maximum",
    "ApproximateNumberOfMessagesDelayed": "Maximum",
    "ApproximateAgeOfOldestMessage": "Maximum",
}

#: The figure of a minute, and when it was read.
Reading = dict[str, Any]


@dataclass
class Probe:
    """The questions, each a method that returns what AWS answered. `minutes` bounds the wait for CloudWatch."""

    sqs: Any
    cloudwatch: Any
    minutes: int
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    name: str = field(default_factory=lambda: f"{_PREFIX}-{uuid4().hex[:8]}")
    _made: list[str] = field(default_factory=list)

    def answers(self) -> dict[str, Any]:
        """Every question's answer; what AWS refused is an answer, too."""
        questions: dict[str, Callable[[], Any]] = {
            "duplicate_on_fifo": self.duplicate_on_fifo,
            "receive_attempt": self.receive_attempt,
            "move_to_dlq": self.move_to_dlq,
            "counter_and_gauge_delays": self.metrics,
        }
        told: dict[str, Any] = {"asked_at": _stamp(self.clock()), "name": self.name}
        for name, ask in questions.items():
            try:
                told[name] = ask()
            except ClientError as refused:
                told[name] = {"refused": refused.response["Error"]["Code"]}
        return told

    def queue(self, suffix: str, **attributes: str) -> str:
        """A queue that is removed at the end; its URL."""
        made = self.sqs.create_queue(
            QueueName=f"{self.name}-{suffix}", Attributes=attributes, tags=_TAGS
        )
        self._made.append(made["QueueUrl"])
        return str(made["QueueUrl"])

    def remove(self) -> list[str]:
        """Delete what was made; the URLs that stay."""
        stay = []
        for url in self._made:
            try:
                self.sqs.delete_queue(QueueUrl=url)
            except ClientError:
                stay.append(url)
        return stay

    def duplicate_on_fifo(self) -> dict[str, Any]:
        """Which MessageId a deduplicated send returns, and how many messages there are then."""
        url = self.queue("a.fifo", FifoQueue="true")
        sends = [
            self.sqs.send_message(
                QueueUrl=url, MessageBody="a", MessageGroupId="g", MessageDeduplicationId="d"
            )
            for _ in range(2)
        ]
        received = self._receive(url)
        return {
            "same_message_id": sends[0]["MessageId"] == sends[1]["MessageId"],
            "same_sequence_number": sends[0].get("SequenceNumber")
            == sends[1].get("SequenceNumber"),
            "messages": len(received),
        }

    def move_to_dlq(self) -> dict[str, Any]:
        """Ask which attributes a message keeps when SQS moves it, and whether the move needs one more receive."""
        dlq = self.queue("moved-dlq")
        asked = self.sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": asked["Attributes"]["QueueArn"], "maxReceiveCount": 1}
        source = self.queue("moved", VisibilityTimeout="1", RedrivePolicy=json.dumps(policy))
        sent = self.sqs.send_message(QueueUrl=source, MessageBody="a")
        first = self._receive(source, hidden=1)
        self.sleep(5)
        before_a_receive = self._receive(dlq, hidden=0)
        again = self._receive(source, hidden=1)
        self.sleep(2)
        letters = self._receive(dlq, hidden=0)
        kept = letters or before_a_receive
        attributes = kept[0]["Attributes"] if kept else {}
        of_first = first[0]["Attributes"] if first else {}
        return {
            "moved_without_a_further_receive": bool(before_a_receive),
            "received_again_instead": len(again),
            "same_message_id": bool(kept) and kept[0]["MessageId"] == sent["MessageId"],
            "same_sent_timestamp": attributes.get("SentTimestamp") == of_first.get("SentTimestamp"),
            "attributes": sorted(attributes),
            "receive_count": attributes.get("ApproximateReceiveCount"),
        }

    def receive_attempt(self) -> dict[str, Any]:
        """Whether a receive that is repeated with its attempt id returns the same messages, and the same handles."""
        url = self.queue("attempt.fifo", FifoQueue="true")
        self.sqs.send_message(
            QueueUrl=url, MessageBody="a", MessageGroupId="g", MessageDeduplicationId="d"
        )
        first, again = (self._receive(url, ReceiveRequestAttemptId="once") for _ in range(2))
        return {
            "same_messages": _told(first, "MessageId") == _told(again, "MessageId"),
            "same_handles": _told(first, "ReceiptHandle") == _told(again, "ReceiptHandle"),
        }

    def metrics(self) -> dict[str, Any]:
        """For each figure and minute: when a value could be read first, and each value that took its place later.

        Counters are those of a few messages that are deleted, the age that of the rest: these are received three times
        in the second minute and left, so that the minutes after it show whether they leave the age.
        """
        url = self.queue("metrics", VisibilityTimeout="5")
        for number in range(_MESSAGES):
            self.sqs.send_message(QueueUrl=url, MessageBody=str(number))
        began = self.clock()
        for message in self._receive(url, hidden=5):
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        self.sleep(60)
        received = [self._receive_all(url) for _ in range(3)]
        third_receive_at = self.clock()
        figures: dict[str, dict[str, list[Reading]]] = {name: {} for name in _METRICS}
        while self.clock() < began + 60 * self.minutes:
            self.sleep(10)
            for name, values in self._read(url, began).items():
                for minute, value in values.items():
                    readings = figures[name].setdefault(minute, [])
                    if not readings or readings[-1]["value"] != value:
                        readings.append({"at": _stamp(self.clock()), "value": value})
        return {
            "received": received,
            "third_receive_at": _stamp(third_receive_at),
            "figures": figures,
            "revised": {
                name: sorted(minute for minute, readings in minutes.items() if len(readings) > 1)
                for name, minutes in figures.items()
            },
        }

    def _receive_all(self, url: str) -> int:
        """Receive what is visible once, and wait until it is visible again; how many messages."""
        count = 0
        while received := self._receive(url, hidden=5):
            count += len(received)
        self.sleep(6)
        return count

    def _read(self, url: str, began: float) -> dict[str, dict[str, float]]:
        """Each figure as CloudWatch tells it now, by the minute."""
        queue = url.rpartition("/")[2]
        start = datetime.fromtimestamp(began, UTC).replace(second=0, microsecond=0)
        answer = self.cloudwatch.get_metric_data(
            StartTime=start,
            EndTime=datetime.fromtimestamp(self.clock(), UTC) + timedelta(minutes=1),
            MetricDataQueries=[
                {
                    "Id": f"m{number}",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": "AWS/SQS",
                            "MetricName": name,
                            "Dimensions": [{"Name": "QueueName", "Value": queue}],
                        },
                        "Period": 60,
                        "Stat": statistic,
                    },
                }
                for number, (name, statistic) in enumerate(_METRICS.items())
            ],
        )
        told = {one["Id"]: one for one in answer["MetricDataResults"]}
        return {
            name: {
                _stamp(at.timestamp()): value
                for at, value in zip(one["Timestamps"], one["Values"], strict=True)
            }
            for number, name in enumerate(_METRICS)
            if (one := told.get(f"m{number}"))
        }

    def _receive(self, url: str, hidden: int = 30, **more: str) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=hidden,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["All"],
            **more,
        )
        return list(answer.get("Messages", ()))


@contextmanager
def removed_at_the_end(probe: Probe) -> Iterator[Probe]:
    """The probe, and nothing of it afterwards."""
    try:
        yield probe
    finally:
        for url in probe.remove():
            print(f"could not be removed, delete it by hand: {url}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make account-probe", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask before queues are made")
    parser.add_argument("--minutes", type=int, default=20, help="how long CloudWatch is watched")
    parser.add_argument("--out", type=Path, default=Path("account-probe.json"))
    arguments = parser.parse_args()
    account = boto3.client("sts").get_caller_identity()["Account"]
    question = f"Make five queues {_PREFIX}-* in account {account}, for {arguments.minutes} minutes? [y/N] "
    if not arguments.yes and input(question).strip().lower() != "y":
        sys.exit("nothing was made")
    probe = Probe(boto3.client("sqs"), boto3.client("cloudwatch"), arguments.minutes)
    with removed_at_the_end(probe):
        answers = probe.answers()
    arguments.out.write_text(json.dumps(answers, indent=1) + "\n")
    print(f"{arguments.out}: compare it with docs/stand-ins.md")


def _told(messages: list[dict[str, Any]], field_name: str) -> list[str]:
    return sorted(one[field_name] for one in messages)


def _stamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


if __name__ == "__main__":
    main()
