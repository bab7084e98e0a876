"""Reports what became of messages to the re-driver, and parks messages that can never succeed.

It never makes its consumer fail, or wait for more than two seconds a batch: one for the report, and one for all parked
messages. If it can't report, it logs that. If it can't park a message, that fails like any other message.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from time import monotonic, time
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import ClientError

from smart_redriver.consumer.delivery import (
    Delivery,
    Message,
    Received,
    delivery_of,
    is_carrying_metadata,
    received,
)
from smart_redriver.consumer.errors import (
    PERMANENT,
    ErrorKind,
    checked_kinds,
    is_permanent,
    retry_after_of,
)
from smart_redriver.consumer.failure import (
    Failure,
    class_of,
    failure_of,
    traceback_of,
    unreadable,
)
from smart_redriver.consumer.quick_sqs import DEADLINE, Allowance, Wire, quick_client
from smart_redriver.consumer.report import (
    FAILED,
    SUCCEEDED,
    Consumer,
    Outcome,
    outcome_of,
    parking_request,
    reports,
)
from smart_redriver.consumer.report import PERMANENT as PARKED_FOR_GOOD

#: Environment variables for the values of the stack's outputs `OutcomeQueueUrl` and `ParkingLotQueueUrl`.
OUTCOME_QUEUE_URL = "OUTCOME_QUEUE_URL"
PARKING_LOT_URL = "PARKING_LOT_URL"

NOT_REPORTED = "outcomes.not_reported"
PARKED = "message.parked"
NOT_PARKED = "message.not_parked"
SWITCHED_OFF = "outcomes.switched_off"

#: A copy of a message that was received otherwise would lose its attributes and its group.
_STRIPPED = (
    'received without attributes; receive_message needs MessageAttributeNames=["All"] and '
    'MessageSystemAttributeNames=["All"]'
)

#: Tracebacks in one batch, one for each cause: the report is then billed as one request of 64 KB.
_MAX_TRACEBACKS = 10
#: Seconds between reports of recoveries: a consumer that fails now and then recovers again and again.
_BETWEEN_RECOVERIES = 30.0

#: Changes an outcome that is to be reported, or drops it by returning None.
BeforeSend = Callable[[Outcome], Outcome | None]

_log = logging.getLogger(__name__)


class Reporter:
    """Reports a consumer's outcomes. Make one at start; threads may share it.

    Without an outcome queue it reports nothing, and without a parking lot it parks nothing.

    Args:
        consumer: the consumer that reports.
        permanent: errors that no retry can fix: classes, or names as `top package.class`.
        before_send: changes each outcome, a mapping as in the schema of reports, or drops it by returning None.
        class_names_only: report no text of an error, only its class, and the consumer's file and function in its
            cause.
        client: an SQS client to use instead of one with short time-outs.

    """

    #: Seconds for all calls of one report, and for all parked messages of a batch.
    deadline = DEADLINE

    def __init__(
        self,
        *,
        outcome_queue_url: str = "",
        parking_lot_url: str = "",
        consumer: Consumer | None = None,
        permanent: tuple[ErrorKind, ...] = PERMANENT,
        before_send: BeforeSend | None = None,
        class_names_only: bool = False,
        client: Any = None,
    ) -> None:
        if iscoroutinefunction(before_send):
            raise TypeError("before_send can't be async: nothing awaits it")
        self.permanent = checked_kinds(permanent)
        self.class_names_only = class_names_only
        self._before_send = before_send
        self._parking_lot_url = parking_lot_url
        self._outcome_queue_url = outcome_queue_url
        self._consumer = consumer or Consumer()
        if client is None and (outcome_queue_url or parking_lot_url):
            # Now, because Lambda gives a function a whole processor at its start, but not at its first failure.
            client = _client_or_none()
        self.client = client
        self._wire = Wire(client, self.deadline) if client else None
        #: Queues whose consumer has failed, without a reported recovery since; and when the last one was reported.
        self._failing: set[str] = set()
        self._recovered_at: dict[str, float] = {}

    @property
    def is_on(self) -> bool:
        """Whether it can report or park anything."""
        return self._wire is not None

    @classmethod
    def from_env(
        cls,
        *,
        name: str | None = None,
        version: str | None = None,
        permanent: tuple[ErrorKind, ...] = PERMANENT,
        before_send: BeforeSend | None = None,
        class_names_only: bool = False,
        env: Mapping[str, str] = os.environ,
    ) -> Self:
        """Make a reporter from `OUTCOME_QUEUE_URL`, `PARKING_LOT_URL` and Lambda's own variables."""
        return cls(
            outcome_queue_url=env.get(OUTCOME_QUEUE_URL, ""),
            parking_lot_url=env.get(PARKING_LOT_URL, ""),
            permanent=permanent,
            before_send=before_send,
            class_names_only=class_names_only,
            consumer=Consumer(
                name=name or env.get("AWS_LAMBDA_FUNCTION_NAME"),
                version=version or env.get("AWS_LAMBDA_FUNCTION_VERSION"),
                log_group=env.get("AWS_LAMBDA_LOG_GROUP_NAME"),
                log_stream=env.get("AWS_LAMBDA_LOG_STREAM_NAME"),
            ),
        )

    def batch(self, has_time: Callable[[], bool] = lambda: True) -> Batch:
        """A batch of messages. It sends their outcomes in one report when its `with` ends.

        `has_time` says whether there is time for a call of a second. If it raises, there is.
        """
        return Batch(self, has_time)

    def message(self, message: Message, queue: str) -> InHand:
        """A `with` for work on one message, see `Batch.message`. It reports the outcome at once."""
        return InHand(self.batch(), message, queue, is_whole_batch=True)

    def receive(self, sqs: Any, url: str, **request: Any) -> Iterator[Received]:
        """Receive once from the queue with `sqs`, and yield the messages. Work on each in a `with`.

        If the `with` ends without an error, the message is deleted. An error is logged and reported, and the message
        comes back. In a FIFO queue, later messages of its group come back, too. `request` has more arguments for
        `receive_message`, which always asks for all attributes, because the kit needs them.
        """
        with self.batch() as batch:
            yield from received(batch.message, sqs, url, request)

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return monotonic()

    def is_awaiting(self, queue: str) -> bool:
        """Whether to report the next success on the queue: its consumer has failed, and reported no recovery lately."""
        last = self._recovered_at.get(queue)
        is_due = last is None or self.now() - last >= _BETWEEN_RECOVERIES
        return is_due and queue in self._failing

    def is_any_failing(self) -> bool:
        """Whether `is_awaiting` may be true for any queue."""
        return bool(self._failing)

    def have_failed(self, outcomes: list[Outcome]) -> None:
        """Remember on which queues the consumer has failed, so that its next success is reported."""
        self._failing.update(one["queue"] for one in outcomes if _is_failure(one))

    def parking_requests(self, delivery: Delivery, failure: Failure) -> list[dict[str, Any]]:
        """The requests that park the message; none without a parking lot or without the message's attributes."""
        if not self._parking_lot_url:
            return []
        if not delivery.is_whole:
            _log.warning("%s: %s: %s", NOT_PARKED, delivery.message_id, _STRIPPED)
            return []
        now = datetime.fromtimestamp(time(), UTC)
        return [parking_request(self._parking_lot_url, delivery, failure, now)]

    def report_requests(
        self, outcomes: list[Outcome], request_id: str | None
    ) -> list[dict[str, Any]]:
        """The requests that report the outcomes; none without an outcome queue."""
        if not self._outcome_queue_url:
            return []
        told = [one for given in outcomes if (one := self._to_send(given)) is not None]
        bodies = reports(replace(self._consumer, request_id=request_id), told)
        return [{"QueueUrl": self._outcome_queue_url, "MessageBody": body} for body in bodies]

    def call(self, requests: list[dict[str, Any]], allowance: Allowance | None = None) -> list[Any]:
        """Send all within the deadline or the allowance, and return the answers. See `Wire.send`."""
        return self._wire.send(requests, allowance) if self._wire and requests else []

    async def call_async(
        self, requests: list[dict[str, Any]], allowance: Allowance | None = None
    ) -> list[Any]:
        """Do as `call` does, without blocking the event loop."""
        return await self._wire.send_async(requests, allowance) if self._wire and requests else []

    def was_told(self, outcomes: list[Outcome]) -> None:
        """Remember which recoveries the re-driver has been told about."""
        for one in outcomes:
            if one["result"] == SUCCEEDED and one["queue"] in self._failing:
                self._failing.discard(one["queue"])
                self._recovered_at[one["queue"]] = self.now()
        self.have_failed(outcomes)

    def _to_send(self, outcome: Outcome) -> Outcome | None:
        if self._before_send is None:
            return outcome
        # A team's own code: without its result, texts may contain what it should remove. It must not end the consumer
        # by SystemExit. Elsewhere that passes, because a handler of SIGTERM raises it while the kit waits for a call.
        try:
            return _checked(self._before_send(dict(outcome)))
        except (Exception, SystemExit) as fault:
            _log.warning("%s: before_send: %s", NOT_REPORTED, _told(fault))
            texts = ("first_line", "traceback", "cause")
            return {name: value for name, value in outcome.items() if name not in texts}


class Batch:
    """The messages of one invocation or one receive. It reports when its `with` or `async with` ends.

    Without time for a call, it makes none: a consumer that is killed in a call gets all messages of the batch again.
    """

    def __init__(self, reporter: Reporter, has_time: Callable[[], bool]) -> None:
        self._reporter = reporter
        self._has_time = has_time
        self._outcomes: list[Outcome] = []
        self._traced: set[str] = set()
        self._parking_time = Allowance(reporter.deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.send_async()

    def message(self, message: Message, queue: str) -> InHand:
        """A `with` for work on one message, as `ReceiveMessage` returned it with all attributes.

        An error goes on to the caller as if the `with` were not there. The exception is a permanent error of a message
        that is now in the parking lot: that message is done, and should be deleted.
        """
        return InHand(self, message, queue)

    def succeeded(self, message: Message, queue: str | None = None) -> None:
        """Note a success if the message was redriven, or if it is the first success since the consumer failed."""
        is_redriven = self._reporter.is_on and is_carrying_metadata(message)
        if not is_redriven and not self._reporter.is_any_failing():
            return
        with _logged(NOT_REPORTED):
            delivery = delivery_of(message, queue)
            if delivery.metadata or self._is_recovery(delivery.queue):
                self._outcomes.append(outcome_of(delivery, SUCCEEDED))

    def failed(self, message: Message, error: BaseException, queue: str | None = None) -> bool:
        """Note a failure, and park the message if it is permanent. Returns whether it is parked, and therefore done."""
        failing = self._assessed(message, error, queue)
        if failing and failing.requests:
            with self._parking(failing):
                answers = self._reporter.call(failing.requests, self._parking_time)
                failing.parked_id = str(answers[0]["MessageId"])
        return self._noted(failing)

    async def failed_async(
        self, message: Message, error: BaseException, queue: str | None = None
    ) -> bool:
        """Do as `failed` does, without blocking the event loop."""
        failing = self._assessed(message, error, queue)
        if failing and failing.requests:
            with self._parking(failing):
                answers = await self._reporter.call_async(failing.requests, self._parking_time)
                failing.parked_id = str(answers[0]["MessageId"])
        return self._noted(failing)

    def interrupted(self, message: Message, end: BaseException, queue: str | None = None) -> None:
        """Note that something outside ended work on the message. That counts against neither message nor consumer."""
        if not self._reporter.is_on:
            return
        with _logged(NOT_REPORTED):
            delivery = delivery_of(message, queue)
            failure = Failure(error_class=class_of(end), first_line="", cause="", traceback="")
            self._outcomes.append(outcome_of(delivery, FAILED, failure=failure, interrupted=True))

    def claim_no_success(self) -> None:
        """Forget the successes, because all messages of the batch come back."""
        self._outcomes = [one for one in self._outcomes if one["result"] != SUCCEEDED]

    def send(self, request_id: str | None = None) -> None:
        """Report what was noted. Makes no call if that is nothing."""
        with _logged(NOT_REPORTED):
            outcomes, requests = self._taken(request_id)
            self._reporter.call(requests)
            self._reporter.was_told(outcomes)

    async def send_async(self, request_id: str | None = None) -> None:
        """Do as `send` does, without blocking the event loop."""
        with _logged(NOT_REPORTED):
            outcomes, requests = self._taken(request_id)
            await self._reporter.call_async(requests)
            self._reporter.was_told(outcomes)

    def _is_recovery(self, queue: str) -> bool:
        is_noted = any(
            one["result"] == SUCCEEDED and one["queue"] == queue for one in self._outcomes
        )
        return not is_noted and self._reporter.is_awaiting(queue)

    def _assessed(
        self, message: Message, error: BaseException, queue: str | None
    ) -> _Failing | None:
        """Decide what to report and do about a failure; None if the kit can do nothing."""
        if not self._reporter.is_on:
            return None
        with _logged(NOT_REPORTED):
            delivery = delivery_of(message, queue)
            permanent, failure, retry_after = self._known_of(error, delivery)
            is_parkable = permanent and self._parking_time.to_begin > 0 and self._is_in_time()
            return _Failing(
                delivery=delivery,
                failure=failure,
                is_permanent=permanent,
                retry_after=retry_after,
                requests=self._reporter.parking_requests(delivery, failure) if is_parkable else [],
            )
        return None

    def _known_of(
        self, error: BaseException, delivery: Delivery
    ) -> tuple[bool, Failure, int | None]:
        """Whether `error` is permanent, what to report of it, and when to try again: its class, if it can't be read."""
        now = datetime.fromtimestamp(time(), UTC)
        try:
            permanent = is_permanent(error, delivery.body, self._reporter.permanent)
            return permanent, self._failure_of(error, delivery), retry_after_of(error, now)
        except Exception:  # attributes of an unknown class
            return False, unreadable(error), None

    def _failure_of(self, error: BaseException, delivery: Delivery) -> Failure:
        """Describe a failure. Only the first one with its cause gets a traceback, because the others have the same."""
        has_texts = not self._reporter.class_names_only
        told = (error, delivery.body, delivery.values)
        failure = failure_of(*told, is_traced=False, has_texts=has_texts)
        is_known = failure.cause in self._traced or len(self._traced) >= _MAX_TRACEBACKS
        if is_known or not has_texts:
            return failure
        self._traced.add(failure.cause)
        return replace(failure, traceback=traceback_of(*told))

    @contextmanager
    def _parking(self, failing: _Failing) -> Iterator[None]:
        """Wraps the call that parks, and logs its result."""
        try:
            yield
            # Nobody else will log it, because its consumer sees a success.
            what = (failing.failure.error_class, failing.failure.first_line)
            _log.warning("%s: %s: %s: %s", PARKED, failing.delivery.message_id, *what)
        except Exception as fault:
            _log.warning("%s: %s: %s", NOT_PARKED, failing.delivery.message_id, _told(fault))

    def _noted(self, failing: _Failing | None) -> bool:
        """Note the outcome. Returns whether the message is parked, and therefore done."""
        if failing is None:
            return False
        with _logged(NOT_REPORTED):
            self._outcomes.append(failing.outcome())
        return failing.parked_id is not None

    def _taken(self, request_id: str | None) -> tuple[list[Outcome], list[dict[str, Any]]]:
        """Take the noted outcomes, and the requests that report them."""
        outcomes, self._outcomes, self._traced = self._outcomes, [], set()
        self._reporter.have_failed(outcomes)
        if outcomes and not self._is_in_time():
            _log.warning("%s: no time left", NOT_REPORTED)
            return [], []
        return outcomes, self._reporter.report_requests(outcomes, request_id) if outcomes else []

    def _is_in_time(self) -> bool:
        try:
            return self._has_time()
        except Exception:  # there is no context, or a test's stand-in
            return True


@dataclass(slots=True, kw_only=True)
class _Failing:
    """A message that failed, the `requests` to park it, and its id in the parking lot once it is there."""

    delivery: Delivery
    failure: Failure
    is_permanent: bool
    retry_after: int | None
    requests: list[dict[str, Any]]
    parked_id: str | None = None

    def outcome(self) -> Outcome:
        return outcome_of(
            self.delivery,
            FAILED if self.parked_id is None else PARKED_FOR_GOOD,
            failure=self.failure,
            permanent=self.is_permanent,
            parked_id=self.parked_id,
            retry_after=None if self.is_permanent else self.retry_after,
        )


class InHand:
    """One message while it is worked on, in `with` or `async with`."""

    def __init__(
        self, batch: Batch, message: Message, queue: str, *, is_whole_batch: bool = False
    ) -> None:
        self._batch = batch
        self._message = message
        self._queue = queue
        self._is_whole_batch = is_whole_batch

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        is_parked = False
        if isinstance(error, Exception):
            is_parked = self._batch.failed(self._message, error, self._queue)
        else:
            self._note_end(error)
        if self._is_whole_batch:
            self._batch.send()
        return is_parked

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        is_parked = False
        if isinstance(error, Exception):
            is_parked = await self._batch.failed_async(self._message, error, self._queue)
        else:
            self._note_end(error)
        if self._is_whole_batch:
            await self._batch.send_async()
        return is_parked

    def _note_end(self, end: BaseException | None) -> None:
        if end is None:
            self._batch.succeeded(self._message, self._queue)
        else:
            self._batch.interrupted(self._message, end, self._queue)


def _is_failure(outcome: Outcome) -> bool:
    """Whether it says that the consumer failed, and not the message itself or something that ended the work."""
    is_its_own = outcome.get("permanent", False) or outcome.get("interrupted", False)
    return outcome["result"] == FAILED and not is_its_own


@contextmanager
def _logged(event: str) -> Iterator[None]:
    """Log errors within it, and go on after it: the kit must not make a consumer fail."""
    try:
        yield
    except Exception as fault:
        _log.warning("%s: %s", event, _told(fault))


def _checked(outcome: Outcome | None) -> Outcome | None:
    """Return the result of `before_send`. Raises TypeError if it is no outcome."""
    if outcome is not None and not isinstance(outcome, dict):
        raise TypeError("before_send returned no outcome")
    return outcome


def _client_or_none() -> Any:
    with _logged(SWITCHED_OFF):
        return quick_client()
    return None


def _told(fault: BaseException) -> str:
    """AWS's own message. For other errors only the class name, because their text can quote the request."""
    return str(fault) if isinstance(fault, ClientError) else type(fault).__name__
