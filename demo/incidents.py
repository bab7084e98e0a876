"""Incidents to practise on: each is played until it is in full swing, then left to the person on call, and watched.

`python -m demo mend` throws the switches back, as the consumer's owner would; all else is done with `redrive`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import boto3
from botocore.exceptions import EndpointConnectionError

from .stack import DeployedStack, control_item
from .story import DEPLOYED_WITH, Snapshot, Stage, holds_payments

#: The stack as `cdk deploy` names it.
_STACK = "SmartRedriver"
#: An incident that has not come by then never will. Minutes are virtual.
_PATIENCE_MINUTES = 240
_ORDERS_A_MINUTE = 2
_MEND = "`python -m demo mend` does what the consumer's owner would"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident.

    Attributes:
        begin: what goes wrong, on the stage.
        is_reached: whether it is in full swing.
        owner: what the owner of the consumer tells; the fix is theirs, or yours where they have none.
        context: what the deployment has beside the story's settings.

    """

    title: str
    begin: Callable[[Stage], None]
    is_reached: Callable[[Snapshot], bool]
    owner: str
    context: dict[str, str] = field(default_factory=dict)


def _payments(stage: Stage) -> None:
    stage.stack.set_dependency(is_down=True, payments_down=True)
    for _ in range(10):
        stage.send(3)
        stage.send(1, has_payment=True)
    for _ in stage.minutes(2, _ORDERS_A_MINUTE):
        pass
    stage.stack.set_dependency(is_down=False, payments_down=True)


def _outage(stage: Stage) -> None:
    stage.stack.set_dependency(is_down=True)
    stage.is_down = True
    stage.send(20)


def _poison(stage: Stage) -> None:
    stage.send(6, is_poison=True)


def _overload(stage: Stage) -> None:
    stage.stack.set_dependency(is_down=False, capacity=12)
    stage.send(120)


INCIDENTS = {
    "payments": Incident(
        title="Some letters go back, others do not",
        begin=_payments,
        is_reached=holds_payments,
        owner=f"The payment provider is down. Once it is back: {_MEND}.",
    ),
    "outage": Incident(
        title="Nothing goes back",
        begin=_outage,
        is_reached=lambda seen: seen.circuit.state == "OPEN",
        owner=f"A deployment broke the consumer. Once it is rolled back: {_MEND}.",
    ),
    "poison": Incident(
        title="Letters wait for a decision",
        begin=_poison,
        is_reached=lambda seen: seen.depths.parked == 6,
        owner='The mark "poison" in an order is a producer\'s bug; without it the order is fine.',
        context={"last_chance_seconds": "900"},
    ),
    "overload": Incident(
        title="More comes than the consumer can bear",
        begin=_overload,
        is_reached=lambda seen: seen.depths.dead_letters >= 30,
        owner=f"The consumer does twelve orders a minute. To scale it: {_MEND}.",
    ),
}


class Practice:
    """One incident on one stage, from its beginning until it is solved."""

    def __init__(self, incident: Incident, stage: Stage) -> None:
        self._incident = incident
        self._stage = stage
        self._of_incident: set[str] = set()

    def reach(self) -> bool:
        """Play it until it is in full swing; whether it is."""
        stage = self._stage
        stage.chapter = "All is well"
        for _ in stage.minutes(2, _ORDERS_A_MINUTE):
            pass
        stage.chapter = self._incident.title
        self._incident.begin(stage)
        reached = any(
            self._incident.is_reached(seen)
            for seen in stage.minutes(_PATIENCE_MINUTES, _ORDERS_A_MINUTE)
        )
        self._of_incident = set(stage.played.sent)
        return reached

    def why_not_reached(self) -> str:
        """How things stand instead, and what to do."""
        seen = self._stage.played.snapshots[-1]
        return (
            f'The incident did not come within {_PATIENCE_MINUTES} of its minutes: "{self._incident.title}". Instead: '
            f"circuit {seen.circuit.state} ({seen.circuit.reason}), {seen.depths.dead_letters} letters in the DLQ, "
            f"{seen.depths.parked} parked, {seen.depths.source} messages in the source queue. Start it again, on a "
            "busy machine when it is less busy, or take another incident."
        )

    def go_on(self) -> Iterator[Snapshot]:
        """Minute by minute, with live orders, until it is solved or nobody looks any more."""
        for seen in self._stage.minutes(1_000_000, _ORDERS_A_MINUTE):
            yield seen
            if self._is_solved(seen):
                return

    def _is_solved(self, seen: Snapshot) -> bool:
        """Whether nothing waits, and each order of before was processed, or deleted by a person."""
        if seen.depths.dead_letters or seen.depths.parked:
            return False
        left = self._of_incident - self._stage.stack.processed()
        return all(self._stage.stack.is_deleted(one) for one in left)


def context_of(incident: Incident) -> dict[str, str]:
    """The deployment's context: the story's, with all alarms."""
    return {**DEPLOYED_WITH, "alarms": "all", **incident.context}


def pages(stack: DeployedStack) -> list[str]:
    """The texts of the alarms that ring, as the person on call reads them."""
    return [f"{name.split(' ')[1]}: {said}" for name, said in stack.ringing().items()]


def mend() -> None:
    """Throw all switches back, in the shell of a person who looks around. Raises LookupError in any other."""
    if "AWS_ENDPOINT_URL" not in os.environ:
        raise LookupError("source the file that `make demo INCIDENT=...` named, then try again")
    try:
        (stack,) = boto3.client("cloudformation").describe_stacks(StackName=_STACK)["Stacks"]
    except EndpointConnectionError as fault:
        raise LookupError("that demo has ended; start another, and read its file") from fault
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    boto3.client("dynamodb").put_item(
        TableName=outputs["SampleControlTableName"], Item=control_item(is_down=False)
    )
