"""Reports what became of messages to the re-driver, and parks those that can never succeed.

It never makes its consumer fail, nor wait for more than about a second: what can't be reported is logged, and what
can't be parked fails like any other message.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic, time
from typing import Any, Self

from botocore.exceptions import ClientError

from redrive.core.outcomes import Consumer, DeliveryOutcome, Result
from smart_redriver.consumer.delivery import Delivery, Message, delivery_of, is_carrying_trail
from smart_redriver.consumer.errors import PERMANENT, ErrorKind, is_permanent
from smart_redriver.consumer.failure import Failure, failure_of
from smart_redriver.consumer.parking import parking_request
from smart_redriver.consumer.quick_sqs import TIME_TO_BEGIN, call_in_time, quick_client
from smart_redriver.consumer.report import reports

#: Environment variables, as the stack's outputs `OutcomeQueueUrl` and `ParkingLotQueueUrl` have them.
OUTCOME_QUEUE_URL = "OUTCOME_QUEUE_URL"
PARKING_LOT_URL = "PARKING_LOT_URL"

NOT_REPORTED = "outcomes.not_reported"
PARKED = "message.parked"
NOT_PARKED = "message.not_parked"
SWITCHED_OFF = "outcomes.switched_off"

#: Of one batch: with as many of 4 KB each, a report is still billed as one request, of 64 KB.
_MAX_TRACEBACKS = 10

_log = logging.getLogger(__name__)


class Reporter:
    """What a consumer has of this kit, made once where it starts. Threads may share it.

    Without an outcome queue nothing is reported, without a parking lot nothing parked.

    Args:
        consumer: who reports.
        permanent: what no retry can heal: classes, or names as `top package.class`.
        client: an SQS client in place of one that gives up within a second.

    """

    def __init__(
        self,
        *,
        outcome_queue_url: str = "",
        parking_lot_url: str = "",
        consumer: Consumer | None = None,
        permanent: tuple[ErrorKind, ...] = PERMANENT,
        client: Any = None,
    ) -> None:
        self.permanent = permanent
        self._parking_lot_url = parking_lot_url
        self._outcome_queue_url = outcome_queue_url
        self._consumer = consumer or Consumer()
        self._client = client
        if client is None and (outcome_queue_url or parking_lot_url):
            # Now: where a function starts Lambda gives it a whole processor, and to the first failure not.
            self._client = _client_or_none()

    @property
    def is_on(self) -> bool:
        """Whether there is anything that it can do."""
        return self._client is not None

    @classmethod
    def from_env(
        cls,
        *,
        name: str | None = None,
        version: str | None = None,
        permanent: tuple[ErrorKind, ...] = PERMANENT,
        env: Mapping[str, str] = os.environ,
    ) -> Self:
        """As `OUTCOME_QUEUE_URL`, `PARKING_LOT_URL` and, in Lambda, its own variables say."""
        return cls(
            outcome_queue_url=env.get(OUTCOME_QUEUE_URL, ""),
            parking_lot_url=env.get(PARKING_LOT_URL, ""),
            permanent=permanent,
            consumer=Consumer(
                name=name or env.get("AWS_LAMBDA_FUNCTION_NAME"),
                version=version or env.get("AWS_LAMBDA_FUNCTION_VERSION"),
                log_group=env.get("AWS_LAMBDA_LOG_GROUP_NAME"),
                log_stream=env.get("AWS_LAMBDA_LOG_STREAM_NAME"),
            ),
        )

    def batch(self, has_time: Callable[[], bool] = lambda: True) -> Batch:
        """A batch of messages, whose outcomes go in one report when it is left.

        `has_time` says whether a call may still take a second; if it raises, it may.
        """
        return Batch(self, has_time)

    @contextmanager
    def message(self, message: Message, queue: str) -> Iterator[None]:
        """Work on one message within it, see `Batch.message`; its outcome is reported at once."""
        with self.batch() as batch, batch.message(message, queue):
            yield

    def park(self, delivery: Delivery, failure: Failure) -> str | None:
        """The id that the message has in the parking lot; None where it is not there."""
        if not self._parking_lot_url:
            return None
        try:
            now = datetime.fromtimestamp(time(), UTC)
            request = parking_request(self._parking_lot_url, delivery, failure, now)
            answer = call_in_time(self._client.send_message, monotonic() + TIME_TO_BEGIN, **request)
            return str(answer["MessageId"])
        except Exception as fault:
            _log.warning("%s: %s: %s", NOT_PARKED, delivery.message_id, _told(fault))
            return None

    def send(self, outcomes: list[DeliveryOutcome], request_id: str | None = None) -> None:
        """Send the outcomes, as many as can be sent in time."""
        if not self._outcome_queue_url:
            return
        try:
            begin_by = monotonic() + TIME_TO_BEGIN
            consumer = replace(self._consumer, request_id=request_id)
            for body in reports(consumer, outcomes):
                if monotonic() >= begin_by:
                    raise TimeoutError("SQS is slow")  # noqa: TRY301 - one place tells of all
                call_in_time(
                    self._client.send_message,
                    begin_by,
                    QueueUrl=self._outcome_queue_url,
                    MessageBody=body,
                )
        except Exception as fault:
            _log.warning("%s: %s", NOT_REPORTED, _told(fault))


class Batch:
    """The messages of one invocation or one receive. As a context manager it reports when it is left.

    Where there is no time for a call none is made: whoever is killed in it gets all messages of the batch again.
    """

    def __init__(self, reporter: Reporter, has_time: Callable[[], bool]) -> None:
        self._reporter = reporter
        self._has_time = has_time
        self._outcomes: list[DeliveryOutcome] = []
        self._failures = 0
        self._may_park = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send()

    @contextmanager
    def message(self, message: Message, queue: str) -> Iterator[None]:
        """Work on one message within it, as `ReceiveMessage` gave it, with all attributes asked for.

        An error goes on to the caller as if this were not here, but for a permanent one of a message that is in
        the parking lot now: the message is done, and to be deleted.
        """
        try:
            yield
        except Exception as error:
            if not self.failed(message, error, queue):
                raise
        else:
            self.succeeded(message, queue)

    def succeeded(self, message: Message, queue: str | None = None) -> None:
        """Note a success; only of a redriven message is it of interest."""
        if self._reporter.is_on and is_carrying_trail(message):
            try:
                delivery = delivery_of(message, queue)
                if delivery.trail:
                    self._note(delivery, Result.SUCCEEDED)
            except Exception as fault:
                _log.warning("%s: %s", NOT_REPORTED, _told(fault))

    def failed(self, message: Message, error: BaseException, queue: str | None = None) -> bool:
        """Note a failure, and park the message if it is permanent. Whether it is parked, and so done."""
        parked_id = None
        if not self._reporter.is_on:
            return False
        try:
            delivery = delivery_of(message, queue)
            # Of a batch of ten thousand all may fail: what is not sent is not made.
            self._failures += 1
            is_traced = self._failures <= _MAX_TRACEBACKS
            failure = failure_of(error, delivery.body, is_traced=is_traced)
            permanent = is_permanent(error, delivery.body, self._reporter.permanent)
            if permanent and self._may_park and self._is_in_time():
                parked_id = self._reporter.park(delivery, failure)
                # A queue that refuses or hangs would do so for every message of the batch.
                self._may_park = parked_id is not None
            if parked_id:
                # Nobody else will: to its consumer the message is a success.
                what = (delivery.message_id, failure.error_class, failure.first_line)
                _log.warning("%s: %s: %s: %s", PARKED, *what)
            self._note_failure(delivery, failure, permanent=permanent, parked_id=parked_id)
        except Exception as fault:
            _log.warning("%s: %s", NOT_REPORTED, _told(fault))
        return parked_id is not None

    def send(self, request_id: str | None = None) -> None:
        """Report what was noted; no call where that is nothing."""
        outcomes, self._outcomes = self._outcomes, []
        if outcomes and self._is_in_time():
            self._reporter.send(outcomes, request_id)
        elif outcomes:
            _log.warning("%s: no time left", NOT_REPORTED)

    def _is_in_time(self) -> bool:
        try:
            return self._has_time()
        except Exception:  # no context was given, or a stand-in of somebody's tests
            return True

    def _note_failure(
        self, delivery: Delivery, failure: Failure, *, permanent: bool, parked_id: str | None
    ) -> None:
        self._note(
            delivery,
            Result.PERMANENT if parked_id else Result.FAILED,
            permanent=permanent,
            parked_id=parked_id,
            error_class=failure.error_class,
            first_line=failure.first_line,
            traceback=failure.traceback or None,
        )

    def _note(self, delivery: Delivery, result: Result, **more: Any) -> None:
        trail = delivery.trail
        outcome = DeliveryOutcome(
            queue=delivery.queue,
            message_id=delivery.message_id,
            original_id=delivery.original_id,
            batch=trail.batch if trail else None,
            generation=trail.generation if trail else None,
            receive_count=delivery.receive_count,
            result=result,
            **more,
        )
        self._outcomes.append(outcome)


def _client_or_none() -> Any:
    try:
        return quick_client()
    except Exception as fault:
        _log.warning("%s: %s", SWITCHED_OFF, _told(fault))
        return None


def _told(fault: Exception) -> str:
    """What AWS says in its own words; other errors can quote what was to be sent, and only their names are told."""
    return str(fault) if isinstance(fault, ClientError) else type(fault).__name__
