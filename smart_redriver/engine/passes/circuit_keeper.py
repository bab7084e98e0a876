"""The circuit of one source queue, as the pass has it in memory and as the state table has it; and the queue's lease.

A process keeps its lease between its passes, and a person can ask for it:

    person    lease? refused, so ask ── lease? refused, ask again ─────── lease? granted
    process   ── pass ── wait ── pass ── is it asked for? gives the lease back, and waits ── ...

A request is a lease of its own, in the name of the person's command. It ends by itself, so that a command that was
killed asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import RedriverError
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, Lease, State
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.passes.executor import Event
from smart_redriver.engine.passes.ports import Memory

#: How long a request for the lease lasts. Commands repeat it every two seconds.
ASKED_FOR = timedelta(seconds=10)

#: How long a process leaves the queue alone when asked, which is longer than a command waits before it tries again.
GIVES_WAY_FOR = timedelta(seconds=5)


class LostRace(RedriverError):  # noqa: N818 - named after what happened
    """Raised when somebody else has changed the circuit since this pass read it."""


class CircuitKeeper:
    """Reads the circuit and writes it under its version. `states` and `events` list its changes, in order."""

    def __init__(
        self, memory: Memory, queue: str, settings: Settings, clock: Callable[[], datetime]
    ) -> None:
        self._memory = memory
        self._queue = queue
        self._settings = settings
        self._clock = clock
        self.states: list[str] = []
        self.events: list[Event] = []
        self.load()

    @property
    def version(self) -> int:
        """The version that the table has, as far as this pass knows."""
        return self._saved.version

    def load(self) -> None:
        """Read the circuit, or make a new one if there is none yet. Raises CallFailed."""
        loaded = self._memory.load_circuit()
        self.circuit = self._saved = loaded or breaker.new_circuit(
            self._queue, self._settings, self._clock()
        )
        self._note_state()

    def load_hint(self) -> Hint | None:
        """Return the last hint about the consumer while the circuit is OPEN, when it can matter. Raises CallFailed."""
        return self._memory.load_hint() if self.circuit.state is State.OPEN else None

    def change(self, circuit: Circuit) -> None:
        """Go on with `circuit`, which is written later."""
        if circuit.state is not self.circuit.state:
            name = f"circuit.{circuit.state.value.lower()}"
            fields = {
                "queue": self._queue,
                "before": self.circuit.state.value,
                "reason": circuit.reason,
            }
            self.events.append((name, fields))
        self.circuit = circuit
        self._note_state()

    def save(self, circuit: Circuit) -> None:
        """Write `circuit` and go on with it. Raises CallFailed, and LostRace with nothing written."""
        written = self._memory.save_circuit(circuit)
        if written is None:
            raise LostRace("the circuit was changed by another pass or a person")
        self.change(written)
        self._saved = written

    def commit(self, change: Callable[[Circuit], Circuit]) -> None:
        """Apply `change` to the circuit, and write it if it differs. Raises CallFailed and LostRace.

        If a person forced the circuit meanwhile, theirs stands, and `change` is applied to it.
        """
        changed = change(self.circuit)
        if changed == self._saved:
            return
        try:
            self.save(changed)
        except LostRace:
            self.load()
            self.save(change(self.circuit))

    def _note_state(self) -> None:
        state = self.circuit.state.value
        if not self.states or self.states[-1] != state:
            self.states.append(state)


class LeaseKeeper:
    """Takes the lease once, and gives it back only if it took it."""

    def __init__(self, memory: Memory, lease: Lease) -> None:
        self._memory = memory
        self._lease = lease
        self._is_held = False

    def take(self, now: datetime) -> bool:
        """Whether the lease is ours now. Raises CallFailed."""
        self._is_held = self._is_held or self._memory.acquire_lease(self._lease, now)
        return self._is_held

    def give_back(self) -> None:
        """Give the lease back. Raises CallFailed: then it expires by itself."""
        if self._is_held:
            self._is_held = False
            self._memory.release_lease(self._lease)


def ask_for_next_turn(memory: Memory, queue: str, owner: str, now: datetime) -> None:
    """Ask the process that holds the queue's lease to give it back after its pass. Raises CallFailed."""
    _requests(memory, queue).acquire_lease(Lease(owner=owner, expires_at=now + ASKED_FOR), now)


def is_next_turn_asked_for(memory: Memory, queue: str, owner: str, now: datetime) -> bool:
    """Whether a person waits for the queue's lease. Raises CallFailed."""
    over_at_once = Lease(owner=owner, expires_at=now)
    return not _requests(memory, queue).acquire_lease(over_at_once, now)


def _requests(memory: Memory, queue: str) -> Memory:
    """The memory in which a queue's requests are leases: no queue's name has a "#"."""
    return memory.of(f"{queue}#next")
