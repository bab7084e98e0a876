"""`redrive open` and `redrive close`: the circuit, forced by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smart_redriver.engine.model import by_hand
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.standing import change_and_tell, tell_standing
from smart_redriver.oncall.terminal.exits import Exit


def force(session: Session, state: State, reason: str) -> Exit:
    """Open or close one source queue's circuit by hand. Raises CallFailed and Refused."""
    queue = session.source
    if state is State.OPEN:
        effect = "nothing is redriven until the cool-down is over; then canaries decide"
    else:
        effect = "redrives begin with a window of 1, which grows with each batch that succeeds"
    session.terminal.plan(f"Plan: force the circuit of {queue} {state.value}: {effect}.")
    tell_standing(session)
    session.terminal.confirm(f"Force it {state.value}?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        why = session.signed("forced", reason)
        return by_hand.force(circuit, state, why, now)

    return change_and_tell(
        session,
        queue,
        f"force {queue} {state.value}",
        reason,
        change,
        f"The circuit of {queue} is {state.value}.",
    )


def act_open(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared."""
    return force(session, State.OPEN, given["reason"])


def act_close(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared."""
    return force(session, State.CLOSED, given["reason"])
