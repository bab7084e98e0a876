"""What a shell offers while a command is typed: ids, causes, reasons and queues.

Asked for at each press of Tab: of the ledger one page is read, and whatever keeps it from being read offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smart_redriver.engine.triage.ledger import Entry
    from smart_redriver.oncall.deployment.session import Session

#: How a half-typed command, as Click has it, comes by its session.
Open = Callable[[Any], "Session"]
#: The candidates that begin with the text typed so far.
Offer = Callable[[Any, str], list[str]]


def offers(open_for: Open) -> dict[str, Offer]:
    """Candidates for completion, by the names of options and arguments."""
    ids = _offering(open_for, lambda one: (entry.original_id for entry in _entries(one)))
    return {
        "ids": ids,
        "message_id": ids,
        "cause": _offering(open_for, _causes),
        "parked_as": _reasons,
        "queue": _offering(open_for, lambda one: (each.place.queue for each in one.each_queue())),
    }


def _offering(open_for: Open, find: Callable[[Session], Iterable[str]]) -> Offer:
    def offer(ctx: Any, incomplete: str) -> list[str]:
        try:
            found = sorted(set(find(open_for(ctx))))
        except Exception:
            return []
        return [one for one in found if one.lower().startswith(incomplete.lower())]

    return offer


def _entries(session: Session) -> Iterable[Entry]:
    """The first page of the stuck letters. The modules that read it are loaded when they are asked."""
    stuck: Callable[..., Iterable[Entry]] = resolve_name(
        "smart_redriver.oncall.letters.ledger_scan:stuck_entries"
    )
    return stuck(session, may_go_on=lambda: False)


def _causes(session: Session) -> Iterable[str]:
    return (one.cause for one in _entries(session) if one.cause)


def _reasons(ctx: Any, incomplete: str) -> list[str]:
    """Reasons to park letters; nothing is asked for them."""
    del ctx
    reasons: tuple[str, ...] = resolve_name("smart_redriver.oncall.letters.presentation:REASONS")
    return [one for one in reasons if one.startswith(incomplete.upper())]
