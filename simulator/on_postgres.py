"""Which scenarios can be played on a worker queue in Postgres, and why others can't."""

from __future__ import annotations

from dataclasses import fields

from simulator.conditions import FOURTEEN_DAYS
from simulator.scenarios import Scenario
from simulator.variation import ImpossibleError, Wishes

#: What SQS and CloudWatch do, and a table does not.
OF_SQS = ("count_lag", "count_noise", "metrics_lag", "fifo", "groups")


def check_on_postgres(scenario: Scenario, wishes: Wishes) -> None:
    """Raises ImpossibleError with a sentence where a table has nothing that the scenario is about."""
    usual = Wishes()
    for one in fields(Wishes):
        if one.name in OF_SQS and getattr(wishes, one.name) != getattr(usual, one.name):
            option = one.name.replace("_", "-")
            raise ImpossibleError(f"--{option} is of queues in SQS; a table has none of it.")
    if wishes.valid_hours is not None:
        raise ImpossibleError(
            "--valid-hours: jobs of the simulated table are no messages that are valid for a while."
        )
    if wishes.reports or wishes.permanent or scenario.consumer(0).reports is not None:
        raise ImpossibleError(
            "Reports are for queues in SQS: of its jobs the database tells itself."
        )
    if why := _unfit(scenario):
        raise ImpossibleError(f"Scenario {scenario.name} is about {why}, which a table has not.")


def _unfit(scenario: Scenario) -> str | None:
    conditions = scenario.conditions
    about = {
        "two queues that share a DLQ": scenario.neighbour is not None,
        "letters that expire": scenario.left is not None
        or scenario.consumer(0).validity is not None
        or conditions.dlq_retention != FOURTEEN_DAYS,
        "counts that are wrong": conditions.count_noise > 0,
        "letters of other queues, or in other hands": scenario.foreign > 0
        or scenario.held is not None,
        "messages in order": conditions.fifo,
    }
    return next((what for what, is_so in about.items() if is_so), None)
