"""Lambda's queue of asynchronous invocations, with its retries in virtual time.

A schedule, a rule, a topic and `InvocationType=Event` only put an event here. A failed attempt is repeated after one
and then two minutes. A throttled attempt is repeated as long as the event is young enough, and does not count. Events
that fail for good go to the destination or dead-letter queue.
"""

import contextvars
import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ministack.core import responses
from ministack.services import eventbridge, lambda_svc

from . import lambda_failures
from .flights import flights
from .patching import wrap

logger = logging.getLogger("overlay.lambda_events")

_RETRIES = 2
_FIRST_RETRY_SECONDS = 60
_THROTTLED_RETRY_SECONDS = 1
_MAX_AGE_SECONDS = 21_600
_LATEST = "$LATEST"


@dataclass(kw_only=True)
class QueuedEvent:
    """One event on its way to one function."""

    function: dict[str, Any]
    payload: Any
    due: float = field(default_factory=time.time)
    queued: float = field(default_factory=time.time)
    failures: int = 0
    request_id: str = field(default_factory=lambda_failures.new_request_id)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.function.get("config") or self.function
        return config

    @property
    def settings(self) -> dict[str, Any]:
        """The function's EventInvokeConfig."""
        by_qualifier = self.function.get("event_invoke_configs") or {}
        settings: dict[str, Any] = by_qualifier.get(_LATEST) or {}
        return settings

    def attempt(self) -> None:
        """Invoke once. After a failure, queue the event again or give up."""
        account, region = lambda_svc._account_region_from_function_config(self.config)
        responses.set_request_account_id(account)
        responses.set_request_region(region)
        result = lambda_svc._execute_function(self.function, self.payload)
        if not result.get("error") and not result.get("throttle"):
            return
        now = time.time()
        if result.get("throttle"):
            self.due = now + _THROTTLED_RETRY_SECONDS
            out_of_attempts = False
        else:
            self.due = now + _FIRST_RETRY_SECONDS * 2**self.failures
            self.failures += 1
            out_of_attempts = self.failures > int(
                self.settings.get("MaximumRetryAttempts", _RETRIES)
            )
        max_age = int(self.settings.get("MaximumEventAgeInSeconds", _MAX_AGE_SECONDS))
        if out_of_attempts or self.due > self.queued + max_age:
            self._give_up(result)
        else:
            _put(self)

    def _give_up(self, result: dict[str, Any]) -> None:
        lambda_failures.leave(
            self.config,
            self.settings,
            self.payload,
            result,
            request=self.request_id,
            tries=self.failures,
            now=time.time(),
        )


_queue: list[QueuedEvent] = []
_guard = threading.Lock()


def _put(event: QueuedEvent) -> None:
    with _guard:
        _queue.append(event)


def start_due(now: float) -> None:
    """Start an attempt for every event that is due."""
    with _guard:
        due = [event for event in _queue if event.due <= now]
        _queue[:] = [event for event in _queue if event.due > now]
    for event in due:
        _start(event)


def _start(event: QueuedEvent) -> None:
    name = f"asynchronous {event.config.get('FunctionName')}"
    flights.open(name)

    def attempt() -> None:
        with flights.carry(name):
            try:
                event.context.run(event.attempt)
            except Exception:
                logger.exception("%s: lost an event", name)

    threading.Thread(target=attempt, daemon=True, name=name).start()


def _invoke_asynchronously(function: dict[str, Any], payload: Any) -> None:
    event = QueuedEvent(function=function, payload=payload)
    lambda_failures.count("AsyncEventsReceived", event.config["FunctionName"])
    _start(event)


def _invoke_target(arn: str, payload: str) -> None:
    """Queue the event: EventBridge and its Scheduler invoke Lambda asynchronously, so a failure is retried."""
    function, config, name = lambda_svc._get_func_record_for_ref(arn)
    if not function or not config:
        logger.warning("no function %s for a rule or schedule", name)
        return
    try:
        event = lambda_svc.json.loads(payload)
    except (TypeError, ValueError):
        event = {"body": payload}
    _invoke_asynchronously(lambda_svc._execution_record_for_config(function, config), event)


def _mean_the_latest(name: str) -> None:
    """Take a function without a qualifier for its latest version, as AWS does. CloudFormation names that version.

    https://docs.aws.amazon.com/lambda/latest/api/API_GetFunctionEventInvokeConfig.html
    """

    @wrap(lambda_svc, name)
    def act(original: Any, function: str, qualifier: str | None = None, *more: Any) -> Any:
        return original(function, qualifier or _LATEST, *more)


def install() -> None:
    for call in ("get", "put", "delete"):
        _mean_the_latest(f"_{call}_event_invoke_config")
    lambda_svc.invoke_async_with_retry = _invoke_asynchronously
    eventbridge._dispatch_to_lambda = _invoke_target
