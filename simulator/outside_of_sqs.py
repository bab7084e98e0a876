"""Which scenarios can be played on a worker queue in Postgres or a topic in Kafka, and why others can't."""

from __future__ import annotations

from dataclasses import fields

from simulator.conditions import FOURTEEN_DAYS
from simulator.scenarios import Scenario
from simulator.variation import ImpossibleError, Wishes

#: Conditions that only SQS and CloudWatch have, and neither a table nor a topic.
OF_SQS = ("count_lag", "count_noise", "metrics_lag", "fifo", "groups")


#: By origin: where letters are, and what reports their outcomes.
PLACES = {"postgres": ("a table", "the database tells"), "kafka": ("a topic", "the group tells")}


def check_outside(origin: str, scenario: Scenario, wishes: Wishes) -> None:
    """Raises ImpossibleError, with a sentence, if such a place lacks what the scenario is about."""
    place, teller = PLACES[origin]
    usual = Wishes()
    for one in fields(Wishes):
        if one.name in OF_SQS and getattr(wishes, one.name) != getattr(usual, one.name):
            option = one.name.replace("_", "-")
            raise ImpossibleError(f"--{option} is of queues in SQS; {place} has none of it.")
    if wishes.valid_hours is not None:
        raise ImpossibleError(
            f"--valid-hours: what is in {place} here is no messages that are valid for a while."
        )
    if wishes.reports or wishes.permanent or scenario.consumer(0).reports is not None:
        raise ImpossibleError(f"Reports are for queues in SQS: of {place} {teller} itself.")
    if why := _unfit(scenario):
        raise ImpossibleError(f"Scenario {scenario.name} is about {why}, which {place} has not.")


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
