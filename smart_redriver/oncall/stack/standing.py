"""How things stand when somebody is about to change them: pauses, circuits, and what others did within the hour.

Every plan shows it, and what would go against it is asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.circuit import Circuit, Orders, State
from smart_redriver.oncall.stack.changes import Change, changes_of, short_name
from smart_redriver.oncall.stack.circuit import load_circuit
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, stamp

LATELY = timedelta(hours=1)
#: The option that answers beforehand.
INSIST = "--even-though-paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds for a DLQ now. `circuits` are those of its source queues, `changes` others', of the last hour."""

    at: datetime
    circuits: tuple[Circuit, ...]
    changes: tuple[Change, ...]

    @property
    def orders(self) -> Orders:
        """What people ordered for all of them: it is kept with the first one's circuit."""
        return self.circuits[0].orders

    @property
    def is_paused(self) -> bool:
        return self.orders.pauses(self.at)

    def pause_in_words(self) -> str:
        """Who paused it, until when and why."""
        until = stamp(self.orders.paused_until) or "somebody resumes it"
        why = self.orders.reason or "no reason given"
        return f"Paused until {until} by {short_name(self.orders.by)}: {why}"

    def lines(self) -> Iterator[str]:
        """As lines of a plan."""
        for one in self.circuits:
            since = f", since {ago(one.changed_at, self.at)}: {one.reason}"
            yield f"The circuit of {one.queue} is {one.state.value}{'' if one.state is State.CLOSED else since}."
        if self.is_paused:
            yield f"{self.pause_in_words()}."
        if self.orders.drains(self.at):
            yield f"Draining until {stamp(self.orders.drain_until)}, by {short_name(self.orders.by)}."
        for change in self.changes:
            yield f"Within the last hour: {change.told(self.at)}."

    def against_sending(self) -> list[str]:
        """What speaks against sending letters past the re-driver."""
        paused = [f"{self.pause_in_words()}."] if self.is_paused else []
        return paused + [
            f"The circuit of {one.queue} is {one.state.value}: its consumer has not been shown to be well."
            for one in self.circuits
            if one.state is not State.CLOSED
        ]


def take_standing(session: Session) -> Standing:
    """Read it. Raises CallFailed and Refused."""
    now = session.clock()
    lines = session.audit.read_since(now - LATELY, now)
    changes = (
        one for one in changes_of(lines) if one.at >= now - LATELY and one.who != session.who
    )
    circuits = (load_circuit(session, name) for name in session.place.sources)
    return Standing(at=now, circuits=tuple(circuits), changes=tuple(changes))


def tell_standing(session: Session) -> Standing:
    """Read it, and show it below a plan. Raises CallFailed and Refused."""
    standing = take_standing(session)
    show_standing(session, standing)
    return standing


def show_standing(session: Session, standing: Standing) -> None:
    """Show it below a plan."""
    for line in standing.lines():
        session.terminal.plan(printable(line))


def confirm_against(
    session: Session, question: str, objections: Sequence[str], *, insists: bool
) -> None:
    """Ask, and ask again for each objection, unless the caller insists. Raises Refused."""
    _refuse_unheard(session, objections, insists=insists)
    session.terminal.confirm(question)
    _ask_for_each(session, objections, insists=insists)


def confirm_sending(session: Session, question: str, standing: Standing, *, insists: bool) -> None:
    """Ask before letters go past the re-driver, and again for what speaks against it. Raises CallFailed and Refused.

    A plan is read for minutes, and on a page for a quarter of an hour: what has come to speak against it is asked for, too.
    """
    known = standing.against_sending()
    confirm_against(session, question, known, insists=insists)
    came_up = [one for one in take_standing(session).against_sending() if one not in known]
    _refuse_unheard(session, came_up, insists=insists)
    _ask_for_each(session, [f"Meanwhile: {one}" for one in came_up], insists=insists)


def _refuse_unheard(session: Session, objections: Sequence[str], *, insists: bool) -> None:
    """Refuse where nobody is asked, and so nobody has heard of what speaks against it."""
    if session.terminal.assume_yes and objections and not insists:
        raise Refused(f"{objections[0]} Nothing was changed: say {INSIST}, too, if you mean it.")


def _ask_for_each(session: Session, objections: Sequence[str], *, insists: bool) -> None:
    for objection in () if insists else objections:
        session.terminal.confirm(f"{printable(objection)} All the same?")
