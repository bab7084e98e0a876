"""The widget's page: the facts of `redrive status` and the groups of `redrive causes`, as far as queues and table tell.

Letters and consumers are strangers: all text is made printable, cut and escaped here, in `_text`, and nowhere else is
HTML made of it. CloudWatch takes scripts out of it once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.counts import letters
from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.causes import ByCause, CauseGroup, by_cause
from smart_redriver.oncall.letters.ledger_scan import stuck_entries
from smart_redriver.oncall.status.gathering import NOT_ASKED, glance
from smart_redriver.oncall.status.page import facts_of
from smart_redriver.oncall.status.snapshot import Snapshot
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import Tone
from smart_redriver.oncall.terminal.words import ago, cut, stamp

MOST_CAUSES = 10
_LONGEST_TEXT = 200
#: A headline is told in full.
_LONGEST_FACT = 400
#: A page of a scan is 1 MB, some 2,000 letters, and a tenth of a second. A dashboard asks again each minute, or
#: oftener.
MOST_PAGES = 25
#: The fact that only the log of the function knows, which this one may not read; the dashboard has a graph of it.
_OF_THE_LOG = "Last pass"


@dataclass(slots=True)
class _Patience:
    """Lets a scan go on for so many pages, and knows whether it wanted more."""

    pages: int
    is_over: bool = False

    def __call__(self) -> bool:
        self.pages -= 1
        self.is_over = self.pages <= 0
        return not self.is_over


def page_of(session: Session, settings: Settings) -> str:
    """The whole page as HTML."""
    now = glance(session, settings)
    return "\n".join([_table(_facts(session, now)), *_causes(session, now)])


def _facts(session: Session, now: Snapshot) -> Iterator[Sequence[str]]:
    for fact in facts_of(now, with_full_names=False):
        if fact.name != _OF_THE_LOG:
            text = _text(session.terminal.spare(fact.text), _LONGEST_FACT)
            is_loud = fact.tone in (Tone.BAD, Tone.CAREFUL)
            yield _text(fact.name), f"<b>{text}</b>" if is_loud else text
    if sent := _last_send(now):
        yield "Last redrive", _text(sent)
    for what, why in now.unknown.items():
        if why != NOT_ASKED:
            yield "Not read", _text(session.terminal.spare(f"{what} ({why})"))
    yield "As of", _text(str(stamp(now.at)))


def _last_send(now: Snapshot) -> str:
    """Return the time of the last redrive, as far as the circuits remember."""
    moments = [one.circuit.last_attempt_at for one in now.sources if one.circuit]
    known = [moment for moment in moments if moment]
    return ago(max(known), now.at) if known else ""


def _causes(session: Session, now: Snapshot) -> Iterator[str]:
    patience = _Patience(MOST_PAGES)
    try:
        known = by_cause(stuck_entries(session, may_go_on=patience))
    except CallFailed as failed:
        yield _paragraph(f"Causes were not read ({failed.in_short}).")
        return
    if not patience.is_over:
        _add_unlisted(known, now)
    headlines = {one.name: one.headline for one in now.sources if one.headline}
    known.know_circuits({one.name: one.circuit for one in now.sources}, headlines)
    groups = known.ranked()
    if groups:
        titles = ("Letters", "Cause", "In the DLQ", "Parked", "State")
        yield _table([_row(session, one, now) for one in groups[:MOST_CAUSES]], titles)
    else:
        yield _paragraph("No letter is stuck.")
    if more := len(groups) - MOST_CAUSES:
        yield _paragraph(f"{more:,} more: `redrive causes`.") if more > 0 else ""
    if patience.is_over:
        read = letters(known.in_dlq + known.parked)
        yield _paragraph(f"Of a large ledger {read} were counted; `redrive causes` counts all.")


def _add_unlisted(known: ByCause, now: Snapshot) -> None:
    if now.dlq and now.parking_lot:
        known.add_unlisted(dead=now.dlq.depth, parked=now.parking_lot.depth)


def _row(session: Session, group: CauseGroup, now: Snapshot) -> Sequence[str]:
    cause = group.name
    if len(now.sources) > 1 and group.queue:
        cause += f" ({session.terminal.spare(group.queue)})"
    counts = (f"{count:,}" for count in (group.in_dlq, group.parked))
    return f"{group.letters:,}", _text(cause), *counts, _text(group.state_in_words(now.at))


def _table(
    rows: Iterator[Sequence[str]] | Sequence[Sequence[str]], titles: Sequence[str] = ()
) -> str:
    """Rows of HTML under titles; without titles the first cell of each row is its title."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "\n".join(f"<tr>{_cells(row, has_title=not titles)}</tr>" for row in rows)
    return f"<table>\n{f'<tr>{head}</tr>' if head else ''}{body}\n</table>"


def _cells(row: Sequence[str], *, has_title: bool) -> str:
    kinds = ("th" if has_title else "td", *("td" for _ in row[1:]))
    return "".join(f"<{kind}>{cell}</{kind}>" for kind, cell in zip(kinds, row, strict=True))


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _text(text: str, longest: int = _LONGEST_TEXT) -> str:
    return escape(cut(printable(text), longest))
