"""A dry run: decide about a few letters, apply nothing, release them. Looking is not free on SQS."""

from __future__ import annotations

from redrive.core.breaker import Permit
from redrive.core.circuit import Circuit
from redrive.passes.decider import Decider
from redrive.passes.tools import HIDDEN_MARGIN, Workplace

#: Letters that a dry run looks at.
DRY_RUN_LIMIT = 10


def dry_run(place: Workplace, circuit: Circuit, permit: Permit) -> None:
    """Write into the report what a pass would do with the first letters of the DLQ. Raises CallFailed."""
    now = place.tools.clock()
    rounds = place.rounds()
    decider = Decider(
        place.terms,
        place.settings,
        room=permit.limit,
        rate=place.settings.max_rate,
        rng=place.tools.rng,
    )
    examined = rounds.gather(DRY_RUN_LIMIT, hidden_for=HIDDEN_MARGIN)
    for one, decision in decider.decide(examined, circuit, now):
        place.report.saw_letter(one.letter.sent_at, place.dlq.retention, now)
        place.report.decisions.append(
            {
                "message_id": one.letter.message_id,
                "original_id": one.letter.original_id,
                "decision": type(decision).__name__.lower(),
                "reason": getattr(decision.reason, "value", decision.reason),
            }
        )
    rounds.release(examined)
