"""Our policy under watch: its log kept, a witness beside it, and a wire that can be bad."""

from __future__ import annotations

from typing import Any

from fakes.faults import Crash, Wire
from simulator.smart_policy import SmartPolicy
from simulator.world import World
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.report import Report
from tests.faults.witness import Witness


class WatchedRedriver(SmartPolicy):
    """Every tick is a pass, due or not: what a pass must not do it must not do at any time."""

    def __init__(self, world: World, settings: Settings | None = None) -> None:
        super().__init__(world, settings)
        self.journal: list[tuple[str, dict[str, Any]]] = []
        self.witness = Witness(world)
        self._aws = world
        self._passes = 0

    def tick(self) -> None:
        """One pass over a good wire."""
        self.pass_over(Wire())

    def pass_over(self, wire: Wire, settings: Settings | None = None) -> Report | None:
        """One pass, with these settings if they are given; None when it died."""
        self._passes += 1
        self.witness.note_what_the_ledger_knows()
        try:
            return self.run_pass(
                wire.to(self._aws.sqs),
                wire.to(self._aws.dynamodb),
                cloudwatch=wire.to(self._aws.cloudwatch),
                owner=f"invocation-{self._passes}",
                settings=settings,
            )
        except Crash:
            return None

    def _note(self, event: str, /, **fields: Any) -> None:
        super()._note(event, **fields)
        self.journal.append((event, fields))
