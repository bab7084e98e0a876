"""Our own policy in a simulated world: the same pass that the Lambda runs, on the fakes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from random import Random
from typing import Any

from proof.trace import TraceCheck
from simulator.world import TABLE, World
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.recovery import (
    ALARM_DETAIL_TYPE,
    ALARM_SOURCE,
    DETAIL_TYPE,
    RECOVERED,
    SOURCE,
    Recovery,
)
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.recovery import hear
from smart_redriver.engine.passes.redrive_pass import STOPPING_TIME, Rhythm, run_pass
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.engine.report import Report
from smart_redriver.engine.wiring import make_tools

#: The time that the deployed function has for one pass.
PASS_TIME = timedelta(seconds=240) - STOPPING_TIME


MINUTE = timedelta(minutes=1)
#: The world's step: the function itself looks more often.
LISTENING = timedelta(seconds=10)


#: The downstream that a neighbour shares with the queue.
_DOWNSTREAM = "payments"


class Hint(str, Enum):
    """How someone says that the consumer is well again. It may not be true."""

    EVENT = "event"
    ALARM = "alarm"
    NEIGHBOUR = "neighbour"


class SmartPolicy:
    """Runs passes, and remembers their reports, when each was, and the circuit's states."""

    def __init__(self, world: World, settings: Settings | None = None, *, seed: int = 0) -> None:
        self.settings = settings or Settings()
        #: Concurrent rounds; with more than one, the clients have to be thread-safe.
        self.workers = 1
        self.reports: list[Report] = []
        self.times: list[timedelta] = []
        self.states: list[tuple[timedelta, str]] = []
        self.hints: list[Hint] = []
        self.events: Counter[str] = Counter()
        self.redriven_by_id: Counter[str] = Counter()
        self.trace = TraceCheck()
        self._world = world
        self._rng = Random(seed)
        self._rhythm = Rhythm()
        self._deployment = world.deployment
        world.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        name = self._deployment.queue_name
        self.store = StateStore(world.dynamodb, TABLE, name, pause=_no_pause)

    @property
    def every(self) -> timedelta:
        """The deployed schedule ticks every minute. While the consumer reports, the function goes on by itself."""
        is_listening = bool(self.reports) and self.reports[-1].look_again_seconds < BUSY_SECONDS
        return LISTENING if is_listening else MINUTE - self._world.elapsed % MINUTE

    def tick(self) -> None:
        """One tick of the schedule: a pass, if one is due."""
        if self._rhythm.is_due(self._world.clock.now()):
            self.look()

    def look(self) -> None:
        """Run a pass, due or not."""
        self.run_pass(self._world.sqs, self._world.dynamodb)

    def hear(self, hint: Hint) -> None:
        """Receive the news that the consumer is well again, as the deployed function does."""
        self.hints.append(hint)
        recovery = Recovery.read(_event_of(hint, self._deployment.queue_name))
        settings = replace(self.settings, downstream=_DOWNSTREAM)
        if recovery and hear(recovery, self.tools(), settings):
            self.run_pass(self._world.sqs, self._world.dynamodb)

    def run_pass(
        self,
        sqs: Any,
        dynamodb: Any,
        *,
        cloudwatch: Any = None,
        owner: str | None = None,
        settings: Settings | None = None,
    ) -> Report:
        """Run one pass over these clients, which may inject faults before they call the world's."""
        tools = self.tools(sqs, dynamodb, cloudwatch=cloudwatch, owner=owner)
        now = tools.clock
        try:
            report = run_pass(tools, settings or self.settings, deadline=now() + PASS_TIME)
        except BaseException:
            self.trace.died(tools.owner)
            raise
        self._rhythm.looked(report, now())
        self.reports.append(report)
        self.times.append(self._world.elapsed)
        if report.circuit_after:
            self.states.append((self._world.elapsed, report.circuit_after))
        return report

    def tools(
        self,
        sqs: Any = None,
        dynamodb: Any = None,
        *,
        cloudwatch: Any = None,
        owner: str | None = None,
    ) -> Tools:
        """The tools of a pass, over these clients if they are given."""
        world, owner = self._world, owner or f"pass-{len(self.reports)}"

        def journal(event: str, /, **fields: Any) -> None:
            self.trace.feed(event, fields, by=owner)
            self._note(event, **fields)

        return make_tools(
            world.connection(sqs or world.sqs, cloudwatch or world.cloudwatch),
            self._deployment,
            dynamodb=dynamodb or world.dynamodb,
            journal=journal,
            clock=world.clock.now,
            pause=_no_pause,
            rng=self._rng,
            owner=owner,
            workers=self.workers,
        )

    @property
    def circuit(self) -> Circuit | None:
        """The circuit as it stands in the table."""
        return self.store.load_circuit()

    @property
    def redriven(self) -> int:
        """Letters redriven so far."""
        return sum(report.redriven for report in self.reports)

    @property
    def was_ever_open(self) -> bool:
        """Whether a pass ever left the circuit OPEN."""
        return any(state == "OPEN" for _, state in self.states)

    def parked_for(self, reason: str) -> int:
        """Letters parked for this reason so far."""
        return sum(report.parked[reason] for report in self.reports)

    def _note(self, event: str, /, **fields: Any) -> None:
        self.events[event] += 1
        if event == "letter.redriven":
            self.redriven_by_id[fields["original_id"]] += 1


def _event_of(hint: Hint, queue: str) -> dict[str, Any]:
    """The event that EventBridge passes to the function."""
    if hint is Hint.ALARM:
        detail = {"alarmName": "errors", "state": {"value": "OK"}}
        return {"source": ALARM_SOURCE, "detail-type": ALARM_DETAIL_TYPE, "detail": detail}
    recovered = _DOWNSTREAM if hint is Hint.NEIGHBOUR else queue
    return {"source": SOURCE, "detail-type": DETAIL_TYPE, "detail": {RECOVERED: [recovered]}}


def _no_pause(_seconds: float) -> None:
    """Virtual time stands still within a pass."""
