"""One pass of ours over the letters of the stand-in for AWS, by the real requests of real boto3 clients."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from fakes.stand_in import DEPLOYMENT, SOURCE, TABLE, StandIn
from smart_redriver.engine.aws import clients
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.engine.wiring import Queues, make_tools


def pass_over(aws: StandIn, letters: int, *, workers: int = clients.WORKERS) -> Report:
    """A pass with room for so many letters, no pace and no sweep due; what `aws.seen` has is of this pass alone."""
    sqs, dynamodb = clients.sqs_client(), clients.dynamodb_client()
    aws.serve(sqs, dynamodb)
    settings = replace(Settings(), max_window=letters, max_rate=0.0)
    later = _now() + timedelta(days=1)
    fresh = new_circuit(SOURCE, settings, _now())
    circuit = replace(fresh, window=letters, urgent_sweep_at=later, dlq_sweep_at=later)
    StateStore(dynamodb, TABLE, SOURCE).save_circuit(circuit)
    aws.seen.forget()
    tools = make_tools(
        Queues(DEPLOYMENT, sqs=sqs, cloudwatch=clients.OnFirstUse(clients.cloudwatch_client)),
        DEPLOYMENT,
        dynamodb=dynamodb,
        journal=lambda event, /, **fields: None,
        clock=_now,
        rng=Random(0),
        owner="a test",
        workers=workers,
    )
    return run_pass(tools, settings, deadline=_now() + timedelta(hours=1))


def _now() -> datetime:
    return datetime.now(UTC)
