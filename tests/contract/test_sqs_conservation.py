"""Whatever clients do, and whenever: a message is always in exactly one place."""

import json
from collections import Counter, defaultdict
from random import Random
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fakes.clock import VirtualClock
from fakes.sqs import Counts, Event, FakeSqs, Message, Rest

QUEUES = ("orders", "orders-dlq")
queue_names = st.sampled_from(QUEUES)


class Conservation(RuleBasedStateMachine):
    """Two clients' worth of calls on a source queue and its DLQ, with duplicates and expiry."""

    suffix = ""
    attributes: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.sqs = FakeSqs(self.clock, Random(7), duplicate_probability=0.1, order_width=3)
        dlq = {"MessageRetentionPeriod": "600"}
        url = self.create("orders-dlq", dlq)
        asked = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        self.dlq_arn = asked["Attributes"]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": self.dlq_arn, "maxReceiveCount": 2})
        source = {"RedrivePolicy": policy, "VisibilityTimeout": "30"}
        self.urls = {"orders": self.create("orders", source), "orders-dlq": url}
        self.handles: list[tuple[str, str]] = []
        self.events: Counter[str] = Counter()
        self.ended: set[str] = set()
        self.sent: set[str] = set()
        self.sqs.inspect.subscribe(self.note)

    def create(self, name: str, attributes: dict[str, str]) -> str:
        url: str = self.sqs.create_queue(
            QueueName=name + self.suffix, Attributes=self.attributes | attributes
        )["QueueUrl"]
        return url

    def entry(self, number: int, delay: int) -> dict[str, object]:
        """A message to send."""
        return {"Id": str(number), "MessageBody": "x", "DelaySeconds": delay}

    def messages(self, name: str) -> list[Message]:
        return self.sqs.inspect.messages(name + self.suffix)

    def note(self, event: Event) -> None:
        message_id = event.message.message_id
        assert message_id not in self.ended, "nothing happens to a message after its end"
        self.events[event.kind] += 1
        if event.kind == "sent":
            assert message_id not in self.sent
            self.sent.add(message_id)
        if event.kind in {"deleted", "expired", "moved back"}:
            self.ended.add(message_id)

    @rule(name=queue_names, delay=st.sampled_from([0, 0, 5, 900]), count=st.integers(1, 10))
    def send(self, name: str, delay: int, count: int) -> None:
        entries = [self.entry(number, delay) for number in range(count)]
        self.sqs.send_message_batch(QueueUrl=self.urls[name], Entries=entries)

    @rule(name=queue_names, timeout=st.sampled_from([None, 0, 1, 300]), count=st.integers(1, 10))
    def receive(self, name: str, timeout: int | None, count: int) -> None:
        answer = self.sqs.receive_message(
            QueueUrl=self.urls[name], MaxNumberOfMessages=count, VisibilityTimeout=timeout
        )
        messages = answer.get("Messages", [])
        assert len({message["MessageId"] for message in messages}) == len(messages)
        self.handles += [(name, message["ReceiptHandle"]) for message in messages]

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.handles:
            name, handle = data.draw(st.sampled_from(self.handles))
            entry = {"Id": "0", "ReceiptHandle": handle}
            self.sqs.delete_message_batch(QueueUrl=self.urls[name], Entries=[entry])

    @rule(data=st.data(), timeout=st.sampled_from([0, 10, 600]))
    def change_visibility(self, data: st.DataObject, timeout: int) -> None:
        if self.handles:
            name, handle = data.draw(st.sampled_from(self.handles))
            entry = {"Id": "0", "ReceiptHandle": handle, "VisibilityTimeout": timeout}
            self.sqs.change_message_visibility_batch(QueueUrl=self.urls[name], Entries=[entry])

    @rule(rate=st.sampled_from([1, 500]))
    def redrive_natively(self, rate: int) -> None:
        tasks = self.sqs.list_message_move_tasks(SourceArn=self.dlq_arn)["Results"]
        if not any(task["Status"] == "RUNNING" for task in tasks):
            self.sqs.start_message_move_task(
                SourceArn=self.dlq_arn, MaxNumberOfMessagesPerSecond=rate
            )

    @rule(seconds=st.sampled_from([0.5, 1, 31, 300, 86_400]))
    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        at_rest = [message.message_id for name in QUEUES for message in self.messages(name)]
        assert len(at_rest) == len(set(at_rest))
        assert set(at_rest) == self.sent - self.ended

    @invariant()
    def the_counts_are_those_of_the_messages(self) -> None:
        for name in QUEUES:
            rests = Counter(message.rest for message in self.messages(name))
            assert self.sqs.inspect.counts(name + self.suffix) == Counts(
                rests[Rest.VISIBLE], rests[Rest.IN_FLIGHT], rests[Rest.DELAYED]
            )


class FifoConservation(Conservation):
    """The same on FIFO queues, where a receive goes through its groups from the front, and skips nothing."""

    suffix = ".fifo"
    attributes: ClassVar[dict[str, str]] = {"FifoQueue": "true"}

    def entry(self, number: int, delay: int) -> dict[str, object]:
        del delay  # no message of a FIFO queue has one of its own
        group, twice = "abc"[number % 3], f"{len(self.sent)}-{number // 2}"
        ids = {"MessageGroupId": group, "MessageDeduplicationId": twice}
        return {"Id": str(number), "MessageBody": "x", **ids}

    @rule(name=queue_names)
    def receive_in_order(self, name: str) -> None:
        before, handed_out = self.fronts(name), defaultdict[str | None, list[str]](list)
        answer = self.sqs.receive_message(
            QueueUrl=self.urls[name],
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        for message in answer.get("Messages", []):
            handed_out[message["Attributes"]["MessageGroupId"]].append(message["MessageId"])
            self.handles.append((name, message["ReceiptHandle"]))
        moved = {one.message_id for one in self.messages("orders-dlq")} if name == "orders" else {}
        for group, ids in handed_out.items():
            alive = [one for one in before[group] if one not in moved]
            assert ids == alive[: len(ids)]

    def fronts(self, name: str) -> dict[str | None, list[str]]:
        """By group, the messages before the first that is not visible, in the order of their sequence numbers."""
        fronts, ended = defaultdict[str | None, list[str]](list), set()
        for message in sorted(self.messages(name), key=lambda one: str(one.sequence_number)):
            if message.rest is not Rest.VISIBLE:
                ended.add(message.group_id)
            if message.group_id not in ended:
                fronts[message.group_id].append(message.message_id)
        return fronts


TestConservation = Conservation.TestCase
TestFifoConservation = FifoConservation.TestCase
TestConservation.settings = TestFifoConservation.settings = settings(
    max_examples=100, stateful_step_count=50, deadline=None, derandomize=True
)
