"""Our own policy in a simulated world: the very pass that the Lambda runs, on the fakes."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

from redrive.aws.state_table import StateStore
from redrive.core.circuit import Circuit
from redrive.core.report import Report
from redrive.passes.redrive_pass import STOPPING_TIME, run_pass
from redrive.passes.reporting import BUSY_SECONDS
from redrive.passes.rhythm import Rhythm
from redrive.settings import Settings
from redrive.wiring import make_tools
from simulator.world import TABLE, World

#: What the deployed function has for one pass.
PASS_TIME = timedelta(seconds=240) - STOPPING_TIME


MINUTE = timedelta(minutes=1)
#: The world's step: the function itself looks oftener.
LISTENING = timedelta(seconds=10)


class SmartPolicy:
    """Runs passes, and remembers their reports, when each was, and the circuit's states."""

    def __init__(self, world: World, settings: Settings | None = None, *, seed: int = 0) -> None:
        self.settings = settings or Settings()
        #: Rounds side by side; with more than one the clients have to bear threads.
        self.workers = 1
        self.reports: list[Report] = []
        self.times: list[timedelta] = []
        self.states: list[tuple[timedelta, str]] = []
        self.events: Counter[str] = Counter()
        self.redriven_by_id: Counter[str] = Counter()
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
        """The deployed schedule ticks every minute; while the consumer reports, the function goes on by itself."""
        is_listening = bool(self.reports) and self.reports[-1].look_again_seconds < BUSY_SECONDS
        return LISTENING if is_listening else MINUTE - self._world.elapsed % MINUTE

    def tick(self) -> None:
        """One tick of the schedule: a pass, if one is due."""
        if self._rhythm.is_due(self._world.clock.now()):
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
        """One pass over these clients, which may inject faults before they call the world's."""
        now = self._world.clock.now
        tools = make_tools(
            self._deployment,
            sqs=sqs,
            dynamodb=dynamodb,
            cloudwatch=cloudwatch or self._world.cloudwatch,
            journal=self._note,
            clock=now,
            pause=_no_pause,
            rng=self._rng,
            owner=owner or f"pass-{len(self.reports)}",
            workers=self.workers,
            reach=self._world.reach,
            database=self._world.database,
        )
        report = run_pass(tools, settings or self.settings, deadline=now() + PASS_TIME)
        self._rhythm.looked(report, now())
        self.reports.append(report)
        self.times.append(self._world.elapsed)
        if report.circuit_after:
            self.states.append((self._world.elapsed, report.circuit_after))
        return report

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


def _no_pause(_seconds: float) -> None:
    """Virtual time stands still within a pass."""
