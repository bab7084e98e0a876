"""When an invocation ends: in time for the schedule's next tick to go on."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from random import Random

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.passes.redrive_pass import run_invocation
from smart_redriver.engine.passes.reporting import LISTENING_SECONDS
from smart_redriver.engine.report import Report
from smart_redriver.engine.wiring import Queues, make_tools
from tests.integration.conftest import PASS_TIME, Account

TICK = timedelta(minutes=1)


def test_a_visit_that_could_go_on_ends_just_before_a_tick(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended just after it, the letters would wait for the next one: that tick has found the lease taken."""
    began, looks = account.now(), [account.now()]

    def look(*_: object, **__: object) -> Report:
        looks.append(account.now())
        return Report(queue="first", mode="automatic", look_again_seconds=LISTENING_SECONDS)

    monkeypatch.setattr("smart_redriver.engine.passes.redrive_pass.run_pass", look)
    tools = make_tools(
        Queues(account.deployment, sqs=account.sqs, cloudwatch=account.cloudwatch),
        account.deployment,
        dynamodb=account.dynamodb,
        journal=lambda _event, /, **_fields: None,
        clock=account.now,
        rng=Random(0),
        owner="the invocation",
    )

    deadline: datetime = began + PASS_TIME
    for _ in run_invocation(
        tools, Settings(), deadline=deadline, pause=lambda s: account.advance(seconds=s)
    ):
        pass

    missing = -(account.now() - began) % TICK
    assert timedelta() < missing <= TICK / 4
    assert account.now() - began > 2 * TICK
    assert max(after - before for before, after in pairwise(looks)) == (
        timedelta(seconds=LISTENING_SECONDS)
    )
