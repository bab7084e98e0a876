"""The circuits by cause of one source queue, for people: which are worth a line now, and how each stands. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from redrive.core.causes import COUNTED_FOR, CauseCircuit
from redrive.core.circuit import Circuit
from smart_redriver.oncall.terminal.words import span, stamp


def causes_now(circuit: Circuit, now: datetime) -> list[CauseCircuit]:
    """Those that are held, and those of which letters were seen just now; the held first, then by their letters."""
    known = [
        one
        for one in circuit.causes
        if one.is_held or (one.seen_at is not None and now <= one.seen_at + COUNTED_FOR)
    ]
    return sorted(known, key=lambda one: (not one.is_held, -one.letters, one.cause))


def cause_to_json(one: CauseCircuit) -> dict[str, Any]:
    """A circuit by cause as `--json` shows it."""
    return {
        "cause": one.cause,
        "held_since": stamp(one.held_since),
        "next_canary_at": stamp(_next_canary_at(one)),
        "canary_is_out": one.canary_sent_at is not None,
        "canaries_failed": one.canaries_failed,
    }


def held_in_words(one: CauseCircuit, now: datetime) -> str:
    """How a held cause stands: "held since 03:12, next canary in 4 min, 6 failed"."""
    at = _next_canary_at(one)
    if at is None:
        canary = "a canary is out" if one.canary_sent_at else "next canary with the next pass"
    else:
        canary = f"next canary {'in ' + span(at - now) if at > now else 'with the next pass'}"
    failed = f", {one.canaries_failed:,} failed" if one.canaries_failed else ""
    since = f" {since_when(one.held_since, now)}" if one.held_since else ""
    return f"held{since}, {canary}{failed}"


def since_when(moment: datetime, now: datetime) -> str:
    """Since when, in UTC: "since 03:12" of the same day, else with the date."""
    is_today = moment.date() == now.date()
    return f"since {moment:%H:%M}" if is_today else f"since {moment:%Y-%m-%d %H:%M}"


def _next_canary_at(one: CauseCircuit) -> datetime | None:
    """When the next canary may go; None where that is not known, as while one is out."""
    return one.cools_until if one.is_held and one.canary_sent_at is None else None
