"""Hints that a consumer is well, at bad moments: a flood, one during a pass, one that is lost."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from simulator.scenarios import named
from simulator.smart_policy import Hint, SmartPolicy
from simulator.world import World, hours, minutes
from smart_redriver.engine.config.recovery import Recovery
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.recovery import hear, tell
from smart_redriver.engine.report import Outcome, Report

ROW = replace(named("35:event"), hints=())
WELL = Recovery(of=frozenset({"payments"}), by="refunds")
SHARED = replace(ROW.settings, downstream="payments")


def opened(*, lasts_hours: float = 6) -> tuple[World, SmartPolicy]:
    """An outage of so long, an hour old: the circuit is OPEN, and cools down for half an hour at a time."""
    assert ROW.outage is not None
    world = replace(ROW, outage=replace(ROW.outage, lasts=hours(lasts_hours))).world(0)
    policy = SmartPolicy(world, ROW.settings)
    world.run(policy, until=hours(1))
    world.run(policy, until=hours(2), stop=lambda: state(policy) == "OPEN")
    return world, policy


def state(policy: SmartPolicy) -> str:
    assert policy.circuit is not None
    return policy.circuit.state.value


def test_a_flood_costs_one_canary_a_minute_and_no_letter() -> None:
    world, policy = opened()
    sent, begins = policy.redriven, world.elapsed
    for second in range(0, 1800, 2):
        world.later(begins + timedelta(seconds=second), lambda: policy.hear(Hint.EVENT))
    world.run(policy, until=begins + minutes(30))

    assert 5 <= policy.redriven - sent <= 30
    assert policy.trace.faults == []
    world.run(policy, until=hours(30), stop=lambda: world.is_settled)
    assert world.is_settled


class Meanwhile:
    """A DynamoDB client to which something happens just before the pass writes its circuit."""

    def __init__(self, client: Any, happens: Callable[[], object]) -> None:
        self._client = client
        self._happens = happens

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._client, operation)

    def put_item(self, **request: Any) -> Any:
        if request["Item"]["PK"]["S"].startswith("CIRCUIT"):
            happens, self._happens = self._happens, lambda: None
            happens()
        return self._client.put_item(**request)


def test_a_hint_during_a_pass_stops_neither_and_is_heeded_after_it() -> None:
    world, policy = opened()
    world.run(policy, until=world.elapsed + minutes(2))
    assert hear(WELL, policy.tools(), SHARED)
    sent, heard_again = policy.redriven, []

    def hear_again() -> None:
        world.clock.advance(1)
        heard_again.append(hear(WELL, policy.tools(), SHARED))

    report = policy.run_pass(world.sqs, Meanwhile(world.dynamodb, hear_again))

    assert heard_again == [False], "no second pass beside it"
    assert report.outcome is Outcome.DONE, "the pass lost no race to the hint"
    hint = policy.store.load_hint()
    assert hint is not None
    assert hint.by == "refunds"
    assert policy.redriven == sent + 1
    world.run(policy, until=world.elapsed + minutes(8))
    assert policy.redriven == sent + 2, "what was heard during the canary sends the next one"


def test_a_hint_while_the_circuit_is_closed_is_not_even_written_down() -> None:
    world = replace(ROW, outage=None).world(0)
    policy = SmartPolicy(world, ROW.settings)
    policy.run_pass(world.sqs, world.dynamodb)
    before = policy.circuit

    assert not hear(WELL, policy.tools(), SHARED)

    assert policy.store.load_hint() is None
    assert policy.circuit == before


@pytest.mark.parametrize("mode", ["paused", "dry_run"])
def test_who_may_not_act_hears_nothing(mode: str) -> None:
    _, policy = opened()

    assert not hear(WELL, policy.tools(), replace(SHARED, mode=type(SHARED.mode)(mode)))

    assert policy.store.load_hint() is None


class Deaf(Meanwhile):
    """A table that takes no hint."""

    def put_item(self, **request: Any) -> Any:
        if request["Item"]["PK"]["S"].startswith("HINT"):
            raise CallFailed("PutItem", "ThrottlingException", "")
        return self._client.put_item(**request)


def test_a_hint_that_is_lost_costs_time_and_no_letter() -> None:
    world, policy = opened(lasts_hours=2)
    tools = policy.tools(dynamodb=Deaf(world.dynamodb, lambda: None))

    assert hear(WELL, tools, SHARED), "the pass looks for itself"
    assert policy.events["call.failed"] == 1
    assert policy.store.load_hint() is None
    world.run(policy, until=hours(30), stop=lambda: world.is_settled)
    assert world.is_settled


def test_a_neighbour_that_cant_be_told_keeps_no_circuit_from_closing() -> None:
    _, policy = opened()

    class Refuses:
        def tell(self, downstream: str, *, by: str) -> None:
            assert (downstream, "orders" in by) == ("payments", True)
            raise CallFailed("PutEvents", "ThrottlingException", "")

    report = Report(queue="orders", mode="automatic")
    report.circuits = [{"queue": "orders", "before": "HALF_OPEN", "after": "CLOSED"}]

    tell(report, policy.tools(), SHARED, Refuses())

    assert policy.events["call.failed"] == 1
