"""Powertools' batch processors for SQS that report outcomes and park messages that can never succeed.

Use them in a handler instead of Powertools' own: `process_partial_response(event, work, processor, context)`, or
`async_process_partial_response` with the same processor. Only this module needs Powertools.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from aws_lambda_powertools.utilities.batch import (
    AsyncBatchProcessor,
    BatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
)
from aws_lambda_powertools.utilities.batch.base import BasePartialBatchProcessor
from aws_lambda_powertools.utilities.batch.exceptions import (
    ExceptionInfo,
    SQSFifoCircuitBreakerError,
    SQSFifoMessageGroupCircuitBreakerError,
)

from smart_redriver.consumer.reporter import Batch, Reporter

#: Errors that Powertools gives for messages that it returns untried because an earlier one failed.
_UNTRIED = (SQSFifoCircuitBreakerError, SQSFifoMessageGroupCircuitBreakerError)

#: A call is given up after a second, and the function has to answer Lambda afterwards.
_LONGEST_CALL_MILLIS = 1_200

#: The record as Lambda gave it, because Powertools passes on a model's version. Each task has its own.
_RECORD: ContextVar[Mapping[str, Any]] = ContextVar("record")


class _Deferred(Exception):  # noqa: N818 - it is no error
    """Carries a failure out of Powertools' own method, which can't await."""

    def __init__(self, record: Any, exception: ExceptionInfo) -> None:
        super().__init__()
        self.record = record
        self.exception = exception


class _Reporting(BasePartialBatchProcessor):
    """A base class to put before a Powertools processor. The only change: permanent failures are parked."""

    reporter: Reporter
    _batch: Batch
    _is_async = False

    def _prepare(self) -> None:
        self._batch = self.reporter.batch(self._has_time)
        super()._prepare()  # type: ignore[no-untyped-call]

    def _has_time(self) -> bool:
        """Whether the invocation can still end by itself after a call that hangs.

        Raises if its context does not say.
        """
        left: float = self.lambda_context.get_remaining_time_in_millis()
        return left >= _LONGEST_CALL_MILLIS

    def _process_record(self, record: dict[str, Any]) -> Any:
        _RECORD.set(record)
        self._is_async = False
        try:
            return super()._process_record(record)  # type: ignore[safe-super]
        except BaseException as end:
            self._note_end(record, end)
            raise

    def success_handler(self, record: Any, result: Any) -> Any:
        self._batch.succeeded(_RECORD.get())
        return super().success_handler(record, result)

    def failure_handler(self, record: Any, exception: ExceptionInfo) -> Any:
        error = exception[1]
        if self._is_async:
            raise _Deferred(record, exception)
        if error and not isinstance(error, _UNTRIED) and self._batch.failed(_RECORD.get(), error):
            return super().success_handler(_RECORD.get(), None)
        return super().failure_handler(record, exception)

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        # After an invocation that ends in an error, all its messages come back, even successful ones.
        if exception_type is not None:
            self._batch.claim_no_success()
        context = getattr(self, "lambda_context", None)
        self._batch.send(getattr(context, "aws_request_id", None))
        super().__exit__(exception_type, exception_value, traceback)  # type: ignore[no-untyped-call]

    def _note_end(self, record: Mapping[str, Any], end: BaseException) -> None:
        if not isinstance(end, Exception):
            self._batch.interrupted(record, end)


class ReportingProcessor(_Reporting, BatchProcessor):
    """Powertools' `BatchProcessor` and `AsyncBatchProcessor` for a standard queue.

    `options` are theirs, except the event type.
    """

    def __init__(self, reporter: Reporter | None = None, **options: Any) -> None:
        super().__init__(event_type=EventType.SQS, **options)
        self.reporter = reporter or Reporter.from_env()

    async def _async_process_record(self, record: dict[str, Any]) -> Any:
        _RECORD.set(record)
        self._is_async = True
        try:
            return await AsyncBatchProcessor._async_process_record(self, record)  # type: ignore[arg-type]
        except _Deferred as failed:
            error = failed.exception[1]
            if error and await self._batch.failed_async(record, error):
                return BatchProcessor.success_handler(self, record, None)
            return BatchProcessor.failure_handler(self, failed.record, failed.exception)
        except BaseException as end:
            self._note_end(record, end)
            raise


class ReportingFifoProcessor(_Reporting, SqsFifoPartialProcessor):
    """Powertools' `SqsFifoPartialProcessor` for a FIFO queue. `options` are its own."""

    def __init__(self, reporter: Reporter | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.reporter = reporter or Reporter.from_env()
