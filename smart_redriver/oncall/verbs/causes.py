"""`redrive causes`: why letters are stuck according to their consumers, the most frequent cause first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import Headline, worst
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.causes import (
    ByCause,
    CauseGroup,
    as_counted,
    by_cause,
    first_line,
)
from smart_redriver.oncall.letters.ledger_scan import stuck_entries
from smart_redriver.oncall.status.standing import headlines_of
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import stamp

#: People at a terminal at night read no more causes than this.
MOST_SHOWN = 20
#: In a dry run, consumers' reports are not recorded.
_UNHEARD = (
    "In a dry run reports of consumers stay unread: causes here are those of before. They are read once "
    "`mode` is automatic."
)
_HINT = "docs/consumer.md says how consumers report why they fail."


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The causes of one DLQ, as the command prints them."""

    queue: str
    name: str
    at: datetime
    has_neighbours: bool
    dlq: QueueFacts
    known: ByCause
    is_of_ledger: bool
    groups: list[CauseGroup]
    headline: Headline
    mode: Mode

    def to_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "at": stamp(self.at),
            "headline": self.headline.to_json(self.at),
            "letters": sum(one.letters for one in self.groups),
            "groups": [one.to_json(self.at) for one in self.groups],
        }


def causes(session: Session) -> Exit:
    """Count the stuck letters of each selected queue by cause. Raises CallFailed and Refused."""
    pages = [page_of(one, stuck_entries(one)) for one in session.each_queue()]
    session.terminal.result({"queues": [page.to_json() for page in pages]})
    session.terminal.say("\n\n".join("\n".join(_lines(page)) for page in pages))
    return Exit.DONE


def page_of(session: Session, stuck: Iterable[Entry]) -> Page:
    """One DLQ's stuck letters by cause. `stuck` has their ledger entries. Raises CallFailed and Refused."""
    now = session.clock()
    dlq, lot = session.dead_letters.facts(), session.parking_lot.facts()
    counted = session.letter_store.stuck()
    known = by_cause(stuck) if counted is None else as_counted(session.place.queue, counted)
    names = session.place.sources
    if counted is None:
        known.add_unlisted(dead=dlq.depth, parked=lot.depth)
    circuits = {name: session.store.of(name).load_circuit() for name in names}
    headlines = headlines_of(session, circuits, dlq, lot)
    known.know_circuits(circuits, headlines)
    return Page(
        queue=session.place.queue,
        name=session.place.name,
        at=now,
        has_neighbours=len(names) > 1,
        dlq=dlq,
        known=known,
        is_of_ledger=counted is None,
        groups=known.ranked(),
        headline=worst(headlines),
        mode=session.settings.mode,
    )


def _lines(page: Page) -> Iterator[str]:
    yield f"{page.name}, {stamp(page.at)}"
    yield printable(page.headline.sentence(page.at))
    if page.mode is Mode.DRY_RUN and page.is_of_ledger:
        yield _UNHEARD
    if not page.groups:
        yield ""
        yield "No letter is stuck: the DLQ and the parking lot are empty."
        return
    for group in page.groups[:MOST_SHOWN]:
        yield ""
        yield from _group_lines(group, page)
    if len(page.groups) > MOST_SHOWN:
        yield ""
        yield f"... and {len(page.groups) - MOST_SHOWN:,} more: --json has them all."
    if page.is_of_ledger and page.known.in_dlq > page.dlq.depth:
        yield ""
        yield (
            f"The ledger knows {letters(page.known.in_dlq)} of the DLQ, which holds {page.dlq.depth:,}: "
            "others are on their way there, or were taken out by somebody else."
        )


def _group_lines(group: CauseGroup, page: Page) -> Iterator[str]:
    yield printable(group.line(page.at))
    places = [
        f"{count:,} {where}"
        for count, where in ((group.in_dlq, "in the DLQ"), (group.parked, "parked"))
        if count
    ]
    if page.has_neighbours and group.queue:
        places.append(f"of {group.queue}")
    yield f"  {', '.join(places) or 'all of them out'}"
    if state := group.state_in_words(page.at):
        yield f"  {state}"
    if group.example is not None:
        said = first_line(group.example)
        told = group.example.original_id + (f": {said}" if said else "")
        yield f"  such as {printable(told)}"
    if _is_unreported(group) and page.is_of_ledger and page.mode is not Mode.DRY_RUN:
        yield f"  {_HINT}"


def _is_unreported(group: CauseGroup) -> bool:
    """Whether no consumer has reported why these letters fail."""
    return group.cause is None and not group.is_unlisted


def act(session: Session, _given: Mapping[str, Any]) -> Exit:
    """Carry out `causes`."""
    return causes(session)
