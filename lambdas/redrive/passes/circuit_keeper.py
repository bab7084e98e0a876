"""The circuit as a pass thinks of it, and as the state table has it."""

from __future__ import annotations

from collections.abc import Callable

from redrive.core import breaker
from redrive.core.circuit import Circuit
from redrive.core.report import Report
from redrive.errors import RedriverError
from redrive.passes.tools import Tools
from redrive.settings import Settings


class LostRace(RedriverError):  # noqa: N818 - it is what happened, and nobody's error
    """Raised when the circuit was changed by somebody else since this pass read it."""


class CircuitKeeper:
    """Reads the circuit, tells of its changes, and writes it under its version."""

    def __init__(self, tools: Tools, settings: Settings, report: Report) -> None:
        self._tools = tools
        self._settings = settings
        self._report = report
        self.load()

    @property
    def version(self) -> int:
        """The version that the table has, as far as this pass knows."""
        return self._saved.version

    def load(self) -> None:
        """Read the circuit; a new one where there is none yet. Raises CallFailed."""
        loaded = self._tools.store.load_circuit()
        now = self._tools.clock()
        self.circuit = self._saved = loaded or breaker.new_circuit(
            self._report.queue, self._settings, now
        )
        self._report.saw_circuit(self.circuit)

    def change(self, circuit: Circuit) -> None:
        """Go on with `circuit`, which is written later; a change of state is told at once."""
        if circuit.state is not self.circuit.state:
            self._tools.journal(
                f"circuit.{circuit.state.value.lower()}",
                before=self.circuit.state.value,
                reason=circuit.reason,
            )
        self.circuit = circuit
        self._report.saw_circuit(circuit)

    def save(self, circuit: Circuit) -> None:
        """Write `circuit` and go on with it. Raises CallFailed, and LostRace with nothing written."""
        written = self._tools.store.save_circuit(circuit)
        if written is None:
            raise LostRace("the circuit was changed by another pass or a person")
        self.change(written)
        self._saved = written

    def settle(self, settled: Callable[[Circuit], Circuit]) -> None:
        """Write what the pass has come to, where that changes anything. Raises CallFailed and LostRace.

        When a person forced the circuit meanwhile, theirs stands, and what was sent is noted in it.
        """
        changed = settled(self.circuit)
        if changed == self._saved:
            return
        try:
            self.save(changed)
        except LostRace:
            self.load()
            self.save(settled(self.circuit))
