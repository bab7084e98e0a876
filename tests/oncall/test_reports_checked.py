"""`doctor` on reports: the outcome queue is there and read, and who ever reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from simulator.consumers import Consumer, Reports
from simulator.world import OUTCOMES, SOURCE
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.oncall.deployment.places import read_places
from smart_redriver.oncall.doctor.findings import Level
from smart_redriver.oncall.doctor.passes import judge_unread
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, outputs_of


@pytest.fixture
def well() -> Desk:
    """A deployment whose consumers may report, and in which a pass has just run."""
    desk = Desk(consumer=Consumer(reports=Reports()))
    desk("run", "--yes")
    return desk


def test_a_deployment_with_an_outcome_queue_has_nothing_to_mend(well: Desk) -> None:
    ran = well("doctor", "--all")

    assert ran.code == 0, ran.out
    assert f"ok     Consumers may report to {OUTCOMES}." in ran.out
    assert "ok     No report waits long to be read." in ran.out
    assert f"ok     The function may do what it needs with {OUTCOMES}." in ran.out
    assert "No consumer of orders has reported on a redriven letter yet" in ran.out


def test_a_stack_of_the_first_edition_has_no_outcome_queue_and_nothing_to_mend(desk: Desk) -> None:
    desk("run", "--yes")

    ran = desk("doctor", "--all")

    assert ran.code == 0, ran.out
    assert "ok     Consumers have nowhere to report to" in ran.out


def test_who_reported_last_is_told(well: Desk) -> None:
    now = well.world.clock.now()
    heard = replace(new_circuit(SOURCE, well.redriver.settings, now), heard_at=now)
    stored = well.store.load_circuit()
    well.store.save_circuit(replace(heard, version=stored.version if stored else 0))
    well.world.clock.advance(120)

    assert (
        "The consumer of orders last reported on a redriven letter 2 min ago."
        in well("doctor", "--all").out
    )


def leave_a_report_unread(desk: Desk) -> None:
    desk.world.sqs.send_message(QueueUrl=desk.deployment.outcome_queue_url, MessageBody="{}")
    desk.world.clock.advance(3900)


def let_the_function_read_another(desk: Desk) -> None:
    function = desk.clients["lambda"]
    function.deployment = replace(function.deployment, outcome_queue_url="")


def lose_the_queue(desk: Desk) -> None:
    url = desk.deployment.outcome_queue_url
    lost = replace(desk.deployment, outcome_queue_url=url.replace(OUTCOMES, "gone"))
    desk.clients["cloudformation"].stacks[STACK] = outputs_of(lost)


FAULTS: dict[str, tuple[Callable[[Desk], Any], str, str]] = {
    "nobody reads": (
        leave_a_report_unread,
        "The oldest report has been waiting for 1 h ",
        "see what is said of the last pass",
    ),
    "no queue any more": (
        lose_the_queue,
        "The queue gone does not exist: queues, reports and access could not be checked in full.",
        "Make it again under the same name",
    ),
    "a function that knows of none": (
        let_the_function_read_another,
        "The function does not read it: its variable OUTCOME_QUEUE_URL is not set.",
        "Deploy the stack anew.",
    ),
    "a role of an earlier edition": (
        lambda desk: desk.clients["iam"].denied.add("sqs:ChangeMessageVisibility"),
        f"The function may not call sqs:ChangeMessageVisibility on {OUTCOMES}.",
        "Deploy the stack anew",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found_and_comes_with_its_remedy(well: Desk, fault: str) -> None:
    cause, what, remedy = FAULTS[fault]
    cause(well)

    ran = well("doctor", "--json")

    (told,) = ran.json["queues"]
    wrong = [one for one in told["findings"] if one["level"] == "wrong"]
    assert ran.code == 1
    assert any(what in one["what"] and remedy in one["remedy"] for one in wrong), wrong


@pytest.mark.parametrize(
    ("minutes", "schedule_minutes", "level"),
    [(60, 5, Level.GOOD), (61, 5, Level.WRONG), (240, 120, Level.GOOD), (241, 120, Level.WRONG)],
)
def test_a_queue_that_is_looked_at_seldom_may_have_older_reports(
    minutes: int, schedule_minutes: int, level: Level
) -> None:
    assert judge_unread(timedelta(minutes=minutes), schedule_minutes).level is level


def test_each_queue_of_a_stack_has_an_outcome_queue_of_its_own_or_none(well: Desk) -> None:
    mails = replace(well.deployment, outcome_queue_url="")
    outputs = {**outputs_of(well.deployment, "Orders"), **outputs_of(mails, "Mails")}
    outputs["OutcomeQueueUrl"] = "https://sqs/another"  # of a queue without a prefix

    urls = {one.prefix: one.deployment.outcome_queue_url for one in read_places(STACK, outputs)}

    assert urls == {"Orders": well.deployment.outcome_queue_url, "Mails": ""}
