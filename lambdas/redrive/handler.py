"""The Lambda shell of the re-driver: environment and clients at cold start, then one pass per invocation.

The event says that it is time, and the pass looks for itself. Only the schedule's own ticks may find that nothing is
due; whoever else invokes the function gets a pass.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol

from redrive.aws import clients
from redrive.aws.collector import set_up_collector
from redrive.aws.log import Log
from redrive.aws.metrics import emit, kept_metrics
from redrive.environment import read_environment
from redrive.passes.redrive_pass import STOPPING_TIME, run_pass
from redrive.passes.rhythm import Rhythm
from redrive.wiring import make_tools

#: What the schedule's ticks carry, and no other event.
TICK = {"scheduled": True}

settings, deployment = read_environment(os.environ)
sqs, dynamodb = clients.sqs_client(), clients.dynamodb_client()
cloudwatch = clients.OnFirstUse(clients.cloudwatch_client)
kept = kept_metrics(os.environ)
rhythm = Rhythm()
set_up_collector()


class LambdaContext(Protocol):
    """What is asked of the context that Lambda hands over."""

    @property
    def function_name(self) -> str: ...
    @property
    def aws_request_id(self) -> str: ...
    def get_remaining_time_in_millis(self) -> int: ...


def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run one pass and return its report as a JSON object; a tick that is not due says when the next look is."""
    if event == TICK and not rhythm.is_due(_now()):
        return {"outcome": "NOT_DUE", "next_look": f"{rhythm.next_look:%Y-%m-%dT%H:%M:%SZ}"}
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    tools = make_tools(
        deployment,
        sqs=sqs,
        dynamodb=dynamodb,
        cloudwatch=cloudwatch,
        journal=_log_of(context),
        clock=_now,
        rng=Random(),
        owner=context.aws_request_id,
        workers=clients.WORKERS,
    )
    report = run_pass(tools, settings, deadline=_now() + remaining - STOPPING_TIME)
    rhythm.looked(report, _now())
    emit(report, kept)
    return report.to_json()


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _log_of(context: LambdaContext) -> Log:
    return Log(
        _now,
        service="smart-redriver",
        function_name=context.function_name,
        function_request_id=context.aws_request_id,
    )
