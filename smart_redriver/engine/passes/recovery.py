"""Notes hints that a consumer is well again, and tells its neighbours once its circuit has closed.

An event is a hint. It is noted for each circuit that it is about and that is not CLOSED, and the next pass sends one
canary for it (`model.permit`). It closes no circuit, and a lost hint costs time but no letter. It has its own item, so
that it survives while a pass works on the circuit.
"""

from __future__ import annotations

from typing import Protocol

from smart_redriver.engine.config.recovery import Recovery
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.model.permit import HINTED_EVERY, Hint
from smart_redriver.engine.passes.ports import Source, Tools
from smart_redriver.engine.report import Report


class Neighbours(Protocol):
    """The queues that share a downstream."""

    def tell(self, downstream: str, *, by: str) -> None: ...


def hear(recovery: Recovery, tools: Tools, settings: Settings) -> bool:
    """Note the hint if it can matter, and return whether a pass must follow at once.

    No pass follows if no circuit waits, or within a minute of the last hint: the schedule's next tick looks instead.
    """
    if settings.mode is not Mode.AUTOMATIC:
        return False
    try:
        news = [_note(recovery, tools, one.name) for one in _concerned(recovery, tools, settings)]
    except CallFailed as failed:
        tools.tell_failed(failed)
        return True
    return any(news)


def _concerned(recovery: Recovery, tools: Tools, settings: Settings) -> list[Source]:
    return [one for one in tools.sources if recovery.is_of(one.name, settings.downstream)]


def _note(recovery: Recovery, tools: Tools, queue: str) -> bool:
    """Note the hint for one queue, and return whether it is news. Raises CallFailed."""
    memory = tools.memory if queue == tools.sources[0].name else tools.memory.of(queue)
    circuit, now = memory.load_circuit(), tools.clock()
    if circuit is None or circuit.state is State.CLOSED:
        return False
    before = memory.save_hint(Hint(at=now, by=recovery.by))
    tools.journal("recovery.heard", queue=queue, by=recovery.by)
    return before is None or now >= before.at + HINTED_EVERY


def tell(report: Report, tools: Tools, settings: Settings, neighbours: Neighbours) -> None:
    """Tell the queues that share the downstream about each circuit that the pass has closed."""
    for queue in report.closed_queues if settings.downstream else ():
        try:
            neighbours.tell(settings.downstream, by=f"{queue}, which shares {settings.downstream},")
        except CallFailed as failed:
            tools.tell_failed(failed)
