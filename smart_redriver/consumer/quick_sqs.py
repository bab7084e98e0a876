"""An SQS client that gives up within a second, so that nobody's consumer waits for its reports."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import HTTPClientError

#: Seconds. A call that begins in time ends at most as much later as connecting and reading may take: after a second.
TIME_TO_BEGIN = 0.2
#: For each address of SQS: an endpoint in a VPC has one in each zone, three as a rule, and none of them answers where a
#: security group is wrong. https://docs.aws.amazon.com/vpc/latest/privatelink/privatelink-access-aws-services.html
_CONNECT = 0.2
_READ = 0.4


def quick_client() -> Any:
    """An SQS client with short time-outs and no retries. Its sends carry no trace of the consumer's own.

    In Lambda, botocore adds the trace of the invocation to every call, `Lineage` included, in which Lambda's
    recursion guard counts hops.
    """
    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    client = boto3.client("sqs", config=config)
    # Last, and on plain "before-call": there botocore's own handler adds the header.
    client.meta.events.register_last("before-call", _without_own_trace)
    return client


def call_in_time(call: Callable[..., Any], begin_by: float, **request: Any) -> Any:
    """The answer of `call`. A lost connection is tried anew, if it is still earlier than `begin_by` (monotonic).

    After a pause, in which Lambda freezes a function, the connection of the last call is often gone.
    """
    try:
        return call(**request)
    except HTTPClientError:
        if monotonic() >= begin_by:
            raise
        return call(**request)


def _without_own_trace(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("X-Amzn-Trace-Id", None)
