"""The circuits by cause of one source queue, for people: which are worth a line now, and how each stands. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from smart_redriver.engine.model.causes import COUNTED_FOR, CauseCircuit
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.oncall.terminal.words import letters, span, stamp

#: Status names so many, `redrive causes` all.
MOST_IN_A_LINE = 3


def causes_now(circuit: Circuit, now: datetime) -> list[CauseCircuit]:
    """Those that are held, and those that mostly fail while others succeed; the held first, then by their failures."""
    known = [one for one in circuit.causes if one.is_held or _mostly_fails(one, now)]
    return sorted(known, key=lambda one: (not one.is_held, -one.failed, one.cause))


def cause_to_json(one: CauseCircuit) -> dict[str, Any]:
    """A circuit by cause as `--json` shows it."""
    return {
        "cause": one.cause,
        "held_since": stamp(one.held_since),
        "next_canary_at": stamp(_next_canary_at(one)),
        "canary_is_out": one.canary_sent_at is not None,
        "canaries_failed": one.canaries_failed,
    }


def causes_in_words(circuit: Circuit, now: datetime, *, is_idle: bool) -> str:
    """The causes worth a line, in one; empty where there is none. `is_idle`:
    the DLQ has no letter that could be a canary.
    """
    known = causes_now(circuit, now)
    told = [
        f"{one.cause} {held_in_words(one, now, is_idle=is_idle)}"
        if one.is_held
        else f"{one.cause} flowing, {letters(one.failed)} failed while others succeeded"
        for one in known[:MOST_IN_A_LINE]
    ]
    if more := len(known) - len(told):
        told.append(f"{more} more: `redrive causes`")
    return "; ".join(told)


def held_in_words(one: CauseCircuit, now: datetime, *, is_idle: bool = False) -> str:
    """How a held cause stands: "held since 03:12, next canary in 4 min, 6 failed"."""
    at = _next_canary_at(one)
    if is_idle and one.canary_sent_at is None:
        canary = "no letter of it is in the DLQ"
    elif at is None:
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


def _mostly_fails(one: CauseCircuit, now: datetime) -> bool:
    """A pass sees now all letters of a cause and now a few, so they are no measure here; what became of some is."""
    is_recent = one.counted_at is not None and now <= one.counted_at + COUNTED_FOR
    return is_recent and one.failed > one.succeeded


def _next_canary_at(one: CauseCircuit) -> datetime | None:
    """When the next canary may go; None where that is not known, as while one is out."""
    return one.cools_until if one.is_held and one.canary_sent_at is None else None
