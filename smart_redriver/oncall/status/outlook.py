"""What the re-driver will do next with one source queue, and when it looks again. Pure:
as the rules of a pass have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Judged
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.permit import allow, cools_until, has_cooled_down, spares_until
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.oncall.terminal.words import letters


def next_step(
    settings: Settings, circuit: Circuit, orders: Orders, dlq: QueueFacts | None, now: datetime
) -> tuple[str, datetime | None]:
    """What comes next, and from when on where that is known.

    Args:
        orders: those of the DLQ's first source queue, which pause all of them.
        dlq: None where it could not be asked.

    """
    if settings.mode is not Mode.AUTOMATIC:
        return f"nothing: the setting `mode` is {settings.mode.value}", None
    if orders.pauses(now):
        end = orders.paused_until
        return "paused; goes on by itself" if end else "paused until `redrive resume`", end
    if circuit.pending:
        first = min(circuit.pending, key=lambda one: one.due_at)
        step = f"the verdict on batch {first.id} ({letters(first.size)})"
        return f"{step}, as soon as it is certain", None
    if dlq is not None and not dlq.depth:
        return "nothing: the DLQ is empty", None
    if circuit.state is State.OPEN:
        if not has_cooled_down(circuit, settings, now):
            step = "a canary, once live messages succeed or the cool-down is over"
            return step, cools_until(circuit, settings)
        if now >= spares_until(circuit, settings):
            return "a canary with the next pass", None
        step = "a canary with the next pass or, while live messages fail, once one of them succeeds"
        return step, None
    permit = allow(circuit, settings, now)
    return f"redrive up to {letters(permit.limit)} ({permit.reason}) with the next pass", None


def looks_every(
    settings: Settings, circuits: Sequence[Circuit], dlq: QueueFacts | None, now: datetime
) -> timedelta:
    """How long the re-driver waits between two looks: about a minute while there is something to wait for."""
    idle = timedelta(minutes=settings.schedule_minutes)
    if settings.mode is not Mode.AUTOMATIC or (circuits and circuits[0].orders.pauses(now)):
        return idle
    has_letters = dlq is None or dlq.depth > 0
    is_busy = any(
        circuit.pending or (has_letters and circuit.state is not State.CLOSED)
        for circuit in circuits
    )
    return min(idle, timedelta(seconds=BUSY_SECONDS)) if is_busy else idle


def is_known(judged: Judged) -> bool:
    """Whether it is known when the batch was sent, and how large it was: the first edition kept neither."""
    return judged.sent_at.timestamp() > 0


def last_canary(circuit: Circuit) -> Judged | None:
    """The canary that was judged last, as far back as the last change of the circuit's state tells."""
    generation = circuit.generation
    if circuit.state is not State.HALF_OPEN:
        generation -= (
            1  # an OPEN circuit sends none: what was judged before this state, HALF_OPEN had sent
        )
        if circuit.reason.startswith("forced") or (
            circuit.state is State.OPEN and circuit.consecutive_opens < 2
        ):
            return None
    return next((one for one in reversed(circuit.judged) if one.generation == generation), None)
