# ruff: noqa: N803 - the parameters have boto3's names
"""The queues of one fake account, and the API operations that deal with queues as such."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from random import Random

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs.fifo_attributes import FifoAttributes, check_kind, is_fifo_name
from fakes.sqs.fifo_queue import FifoQueue
from fakes.sqs.inspection import Event, Inspection, event
from fakes.sqs.lines import FrontOfLine
from fakes.sqs.message import EventKind, Message, new_message_id
from fakes.sqs.message_attributes import invalid
from fakes.sqs.metrics import Counts
from fakes.sqs.move_tasks import MoveTasks
from fakes.sqs.queue import Queue
from fakes.sqs.queue_attributes import QueueAttributes
from fakes.sqs.validation import (
    check_range,
)

MAX_LISTED_QUEUES = 1000  # [botocore ListDeadLetterSourceQueues]


class SqsAccount(FakeClient):
    """Queues by URL and ARN. Every access first lets everything happen that was due until now."""

    def __init__(
        self,
        clock: VirtualClock,
        rng: Random,
        *,
        count_lag_seconds: float,
        count_noise: int,
        order_width: int,
        region: str,
        account: str,
    ) -> None:
        super().__init__("sqs")
        self._clock = clock
        self._rng = rng
        self._count_lag_seconds = count_lag_seconds
        self._count_noise = count_noise
        self._order_width = order_width
        self._arn_prefix = f"arn:aws:sqs:{region}:{account}:"
        self._url_prefix = f"https://sqs.{region}.amazonaws.com/{account}/"
        self._queues: dict[str, Queue] = {}
        self._attributes: dict[str, QueueAttributes] = {}
        self._serials: Iterator[int] = count()
        self._move_tasks = MoveTasks(self._queue_by_arn, self._renewed)
        self._listeners: list[Callable[[Event], None]] = []
        self.inspect = Inspection(self._settled, self._listeners)

    @operation
    def create_queue(
        self, *, QueueName: str, Attributes: Mapping[str, str] | None = None
    ) -> Response:
        """Create a queue. A second call with the same attributes finds the first queue."""
        given = Attributes or {}
        if QueueName in self._queues:
            if self._attributes[QueueName].differ_from(given):
                exists = "A queue already exists with the same name and a different value."
                raise Fault("QueueNameExists", exists, query_code="QueueAlreadyExists")
            return {"QueueUrl": self._url_prefix + QueueName}
        check_kind(QueueName, given)
        now = self._clock.time()
        queue, attributes = self._new_queue(QueueName, now)
        attributes.change(given, self._dead_letter_queue_for(queue), now)
        self._queues[QueueName], self._attributes[QueueName] = queue, attributes
        queue.observe(now)
        return {"QueueUrl": self._url_prefix + QueueName}

    @operation
    def set_queue_attributes(self, *, QueueUrl: str, Attributes: Mapping[str, str]) -> Response:
        """Change attributes, at once (on AWS within 60 s, retention within 15 min)."""
        queue, now = self._queue(QueueUrl)
        self._attributes[queue.name].change(Attributes, self._dead_letter_queue_for(queue), now)
        return {}

    @operation
    def get_queue_url(
        self, *, QueueName: str, QueueOwnerAWSAccountId: str | None = None
    ) -> Response:
        """The URL of an existing queue. Other accounts have no queues here."""
        owner = QueueOwnerAWSAccountId or self._url_prefix.split("/")[-2]
        prefix = self._url_prefix.rpartition("/")[0].rpartition("/")[0]
        queue, _ = self._queue(f"{prefix}/{owner}/{QueueName}")
        return {"QueueUrl": self._url_prefix + queue.name}

    @operation
    def get_queue_attributes(
        self, *, QueueUrl: str, AttributeNames: Sequence[str] = ()
    ) -> Response:
        """Attributes and counts. The counts are approximate: late, and slightly wrong."""
        queue, now = self._queue(QueueUrl)
        queue.observe(now)
        told = self._attributes[queue.name].tell(AttributeNames, self._approximate(queue, now))
        return {"Attributes": told} if told else {}

    @operation
    def list_dead_letter_source_queues(
        self, *, QueueUrl: str, MaxResults: int | None = None, NextToken: str | None = None
    ) -> Response:
        """The URLs of the queues that name this one in their RedrivePolicy, a page at a time."""
        dead_letter_queue, _ = self._queue(QueueUrl)
        limit = MaxResults or MAX_LISTED_QUEUES
        check_range("MaxResults", limit, 1, MAX_LISTED_QUEUES)
        urls = [self._url_prefix + name for name in self._sources_of(dead_letter_queue)]
        start = int(NextToken or 0)
        answer: Response = {"queueUrls": urls[start : start + limit]}
        # Without MaxResults there is no NextToken. [botocore ListDeadLetterSourceQueues]
        if MaxResults and start + limit < len(urls):
            answer["NextToken"] = str(start + limit)
        return answer

    @operation
    def start_message_move_task(
        self,
        *,
        SourceArn: str,
        DestinationArn: str | None = None,
        MaxNumberOfMessagesPerSecond: int | None = None,
    ) -> Response:
        """Begin a native redrive: to the letters' own source queues, or to one destination."""
        now = self._catch_up()
        source = self._queue_by_arn(SourceArn)
        if not self._sources_of(source):
            raise invalid("Source queue must be configured as a Dead Letter Queue.")
        source.settle(now)
        task = self._move_tasks.start(SourceArn, DestinationArn, MaxNumberOfMessagesPerSecond, now)
        return {"TaskHandle": task.handle}

    @operation
    def list_message_move_tasks(self, *, SourceArn: str, MaxResults: int = 1) -> Response:
        """The latest native redrives of a queue, newest first."""
        self._catch_up()
        tasks = self._move_tasks.of(SourceArn, MaxResults)
        return {"Results": [task.describe() for task in tasks]}

    @operation
    def cancel_message_move_task(self, *, TaskHandle: str) -> Response:
        """Stop a native redrive."""
        self._catch_up()
        task = self._move_tasks.cancel(TaskHandle)
        return {"ApproximateNumberOfMessagesMoved": task.moved}

    def _new_queue(self, name: str, now: float) -> tuple[Queue, QueueAttributes]:
        arn = self._arn_prefix + name
        if is_fifo_name(name):
            fifo = FifoQueue(name=name, arn=arn, serials=self._serials, report=self._report)
            return fifo, FifoAttributes(fifo, now)
        line = FrontOfLine(self._rng, self._order_width)
        queue = Queue(name=name, arn=arn, line=line, report=self._report)
        return queue, QueueAttributes(queue, now)

    def _approximate(self, queue: Queue, now: float) -> Counts:
        """The counts as SQS reports them: "approximate", converging within a minute of quiet.

        Source: SQS Developer Guide, "Determining the number of messages". How far off they are is not documented.
        """
        counts = queue.counts()
        if self._count_lag_seconds:
            counts = queue.metrics.counts_at(now - self._rng.random() * self._count_lag_seconds)
        if noise := self._count_noise:
            counts = Counts(*(max(0, one + self._rng.randint(-noise, noise)) for one in counts))
        return counts

    def _catch_up(self) -> float:
        now = self._clock.time()
        self._move_tasks.advance(now)
        return now

    def _settled(self, queue_name: str) -> Queue | None:
        now = self._catch_up()
        queue = self._queues.get(queue_name)
        if queue is not None:
            queue.settle(now)
        return queue

    def _queue(self, url: str) -> tuple[Queue, float]:
        queue = self._settled(url.removeprefix(self._url_prefix))
        if queue is None:
            raise _no_such_queue()
        return queue, self._clock.time()

    def _queue_by_arn(self, arn: str) -> Queue:
        queue = self._queues.get(arn.removeprefix(self._arn_prefix))
        if queue is None:
            raise _no_such_queue()
        return queue

    def _dead_letter_queue_for(self, source: Queue) -> Callable[[str], Queue]:
        """Look up a queue by ARN. Respects its kind and its RedriveAllowPolicy."""

        def find(arn: str) -> Queue:
            queue = self._queue_by_arn(arn)
            if queue.is_fifo != source.is_fifo:
                raise invalid("Dead-letter queue must be same type of queue as the source.")
            if not self._attributes[queue.name].allows_redrive_from(source.arn):
                raise invalid(f"Queue {arn} does not allow {source.arn} to use it as its DLQ.")
            return queue

        return find

    def _sources_of(self, dead_letter_queue: Queue) -> list[str]:
        return sorted(
            name
            for name, queue in self._queues.items()
            if queue.dead_letter_target and queue.dead_letter_target.queue is dead_letter_queue
        )

    def _renewed(self, message: Message, now: float) -> Message:
        """The message as a new one: what a native redrive makes of a letter."""
        return Message(
            serial=next(self._serials),
            message_id=new_message_id(self._rng),
            body=message.body,
            carried=message.carried,
            sent_at=now,
            group_id=message.group_id,
            trace_header=message.trace_header,
            # For a FIFO queue's letter: no source says which id AWS uses.
            deduplication_id=message.deduplication_id and message.message_id,
        )

    def _report(self, kind: EventKind, at: float, queue: Queue, message: Message) -> None:
        for listener in self._listeners:
            listener(event(kind, at, queue, message))


def _no_such_queue() -> Fault:
    return Fault(
        "QueueDoesNotExist",
        "The specified queue does not exist.",
        query_code="AWS.SimpleQueueService.NonExistentQueue",
    )
