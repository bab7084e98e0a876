"""What an asynchronous invocation that failed for good leaves, as on AWS.

MiniStack sends the same envelope to dead-letter queue and destination, and names no request. On AWS a dead-letter queue
gets the original event, with RequestID, ErrorCode and ErrorMessage as attributes, and a destination gets a record of
the invocation. Both name the request by the id that Invoke returned to its caller.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

import contextvars
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from ministack.services import cloudwatch, lambda_svc, sqs

from .patching import wrap

#: The request id of the invocation that the current request asked for.
request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


def new_request_id() -> str:
    """The id of an invocation that was just accepted; the answer to the caller has the same id."""
    one = str(uuid.uuid4())
    request_id.set(one)
    return one


def count(metric: str, function_name: str) -> None:
    """Add one to an AWS/Lambda counter."""
    dimensions = {"FunctionName": function_name}
    cloudwatch.record_metric("AWS/Lambda", metric, 1, "Count", dimensions)


def leave(
    config: dict[str, Any],
    settings: dict[str, Any],
    payload: Any,
    result: dict[str, Any],
    *,
    request: str,
    tries: int,
    now: float,
) -> None:
    """Send the failed event to where the function wants it. A destination has priority over a dead-letter queue."""
    count("AsyncEventsDropped", config["FunctionName"])
    destination = ((settings.get("DestinationConfig") or {}).get("OnFailure") or {}).get(
        "Destination"
    )
    dead_letter_queue = (config.get("DeadLetterConfig") or {}).get("TargetArn")
    response = result.get("body") if isinstance(result.get("body"), dict) else {}
    if destination:
        record = _record(config, payload, result, response, request, tries, now)
        _send(destination, config, payload, result, json.dumps(record), {})
    elif dead_letter_queue:
        attributes = {
            "RequestID": {"DataType": "String", "StringValue": request},
            "ErrorCode": {"DataType": "Number", "StringValue": "200"},
            "ErrorMessage": {
                "DataType": "String",
                "StringValue": str(response.get("errorMessage") or "failed")[:1024],
            },
        }
        _send(dead_letter_queue, config, payload, result, json.dumps(payload), attributes)


def _record(
    config: dict[str, Any],
    payload: Any,
    result: dict[str, Any],
    response: dict[str, Any],
    request: str,
    tries: int,
    now: float,
) -> dict[str, Any]:
    arn: str = config["FunctionArn"]
    is_qualified = arn.count(":") > 6
    return {
        "version": "1.0",
        "timestamp": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.000Z}",
        "requestContext": {
            "requestId": request,
            "functionArn": arn if is_qualified else f"{arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": tries,
        },
        "requestPayload": payload,
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": result.get("function_error") or "Unhandled",
        },
        "responsePayload": response,
    }


def _send(
    target: str,
    config: dict[str, Any],
    payload: Any,
    result: dict[str, Any],
    body: str,
    attributes: dict[str, Any],
) -> None:
    queue = sqs._queue_by_arn(target) if ":sqs:" in target else None
    if queue is None:  # a topic, or another function: as in MiniStack
        lambda_svc._route_async_failure(target, config["FunctionName"], payload, result)
        return
    sqs._HANDLERS["SendMessage"](
        {"QueueUrl": queue["url"], "MessageBody": body, "MessageAttributes": attributes},
        queue["url"],
    )
    lambda_svc.esm_wake.set()


class _Named(dict[str, str]):
    """Headers of an answer that keep their id, because the app would overwrite it with its own."""

    def __init__(self, headers: dict[str, str], request: str) -> None:
        super().__init__(headers)
        self._request = request

    def update(self, other: dict[str, str]) -> None:  # type: ignore[override]
        super().update(other | {"x-amzn-requestid": self._request})


def install() -> None:
    @wrap(lambda_svc, "_invoke")
    async def invoke(original: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer an accepted event with the id that a letter of it would carry."""
        request_id.set("")
        status, headers, body = await original(*args, **kwargs)
        if status == 202 and request_id.get():
            headers = _Named(headers, request_id.get())
        return status, headers, body
