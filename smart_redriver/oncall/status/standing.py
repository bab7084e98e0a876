"""The state that a person is about to change: pauses, circuits, and what others changed within the last hour.

Every plan shows it. A change to a circuit is conditional on the circuit's version and recorded in the audit trail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.headline import (
    Headline,
    Seen,
    Topic,
    headline,
    pause_in_words,
    seen_of,
    short_name,
    worst,
)
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.oncall.audit.trail import Change, changes_of, recorded, trail_of
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.passes import find_passes, unread_sources
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, stamp

#: A pass writes the circuit twice, so a change that comes in between reads it again.
_TRIES = 5

CircuitChange = Callable[[Circuit, datetime], Circuit]


def load_circuit(session: Session, queue: str) -> Circuit:
    """The circuit of a source queue now, or as the first pass will make it. Raises CallFailed and Refused."""
    found = session.store.of(queue).load_circuit()
    return found or breaker.new_circuit(queue, session.settings, session.clock())


def seen_by_source(
    session: Session,
    circuits: Mapping[str, Circuit | None],
    dlq: QueueFacts | None,
    lot: QueueFacts | None = None,
) -> dict[str, Seen]:
    """The state of each source queue, as its headline needs it. Without `lot`, parked letters do not count.

    Raises CallFailed and Refused.
    """
    first = circuits.get(session.place.queue)
    orders = first.orders if first else Orders()
    now, passes = session.clock(), find_passes(session)
    unread = unread_sources(session, dlq)
    return {
        name: seen_of(
            one,
            session.settings,
            now,
            dlq=dlq,
            lot=lot,
            orders=orders,
            passes=passes,
            unread=unread.get(name, ""),
            hears_live=session.place.hears_live(name),
        )
        for name, one in circuits.items()
    }


def headlines_of(
    session: Session,
    circuits: Mapping[str, Circuit | None],
    dlq: QueueFacts | None,
    lot: QueueFacts | None = None,
) -> dict[str, Headline]:
    """The headline of each source queue. Raises CallFailed and Refused."""
    seen = seen_by_source(session, circuits, dlq, lot)
    return {name: headline(one) for name, one in seen.items()}


def change_circuit(session: Session, queue: str, change: CircuitChange) -> Circuit:
    """Apply a change to a source queue's circuit, even if others write it, too. Raises CallFailed and Refused."""
    store = session.store.of(queue)
    for _ in range(_TRIES):
        circuit = load_circuit(session, queue)
        if written := store.save_circuit(change(circuit, session.clock())):
            return written
    raise Refused("The circuit is being changed by others all the time. Run it again in a moment.")


def change_and_tell(
    session: Session, queue: str, what: str, reason: str, change: CircuitChange, done: str
) -> Exit:
    """Record the change, apply it, and say `done`. Raises CallFailed and Refused."""
    with recorded(session, what, reason):
        circuit = change_circuit(session, queue, change)
    return tell_circuit(session, circuit, done)


def tell_circuit(session: Session, circuit: Circuit, done: str) -> Exit:
    """Say `done`, and give programs the circuit as it is now."""
    is_paused = circuit.orders.pauses(session.clock())
    session.terminal.say(done)
    session.terminal.result(
        {
            "queue": circuit.queue,
            "circuit": circuit.state.value,
            "paused": is_paused,
            "paused_until": stamp(circuit.orders.paused_until) if is_paused else None,
        }
    )
    return Exit.DONE


LATELY = timedelta(hours=1)
#: The option that answers the objections beforehand.
INSIST = "--even-though-paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state of a DLQ now: `circuits` of its source queues, and `changes` by others in the last hour."""

    at: datetime
    circuits: tuple[Circuit, ...]
    seen: Mapping[str, Seen]
    changes: tuple[Change, ...]

    @property
    def headline(self) -> Headline:
        """The most urgent of its sources' headlines."""
        return worst({name: headline(one) for name, one in self.seen.items()})

    @property
    def orders(self) -> Orders:
        """The orders of people for all its source queues. The circuit of the first one keeps them."""
        return self.circuits[0].orders

    @property
    def is_paused(self) -> bool:
        return self.orders.pauses(self.at)

    def pause_in_words(self) -> str:
        """The pause in words, as a sentence."""
        return f"Paused {pause_in_words(self.orders, self.at)}."

    def lines(self) -> Iterator[str]:
        """Yield the lines of a plan."""
        first = self.headline
        yield first.sentence(self.at)
        for one in self.circuits:
            since = f", since {ago(one.changed_at, self.at)}: {one.reason}"
            yield f"The circuit of {one.queue} is {one.state.value}{'' if one.state is State.CLOSED else since}."
        if self.is_paused and first.topic is not Topic.PAUSED:
            yield self.pause_in_words()
        if self.orders.drains(self.at):
            yield f"Draining until {stamp(self.orders.drain_until)}, by {short_name(self.orders.by)}."
        for change in self.changes:
            yield f"Within the last hour: {change.told(self.at)}."

    def against_sending(self, to: Collection[str]) -> list[str]:
        """Reasons against sending letters past the re-driver `to` these source queues; to any if it is empty."""
        paused = [self.pause_in_words()] if self.is_paused else []
        return paused + [
            f"The circuit of {one.queue} is {one.state.value}: its consumer has not been shown to be well."
            for one in self.circuits
            if one.state is not State.CLOSED and (not to or one.queue in to)
        ]


def take_standing(session: Session) -> Standing:
    """Read the standing. Raises CallFailed and Refused."""
    now = session.clock()
    lines = trail_of(session).read_since(now - LATELY, now)
    changes = (
        one for one in changes_of(lines) if one.at >= now - LATELY and one.who != session.who
    )
    circuits = {name: load_circuit(session, name) for name in session.place.sources}
    seen = seen_by_source(session, circuits, _facts_of_dlq(session))
    return Standing(
        at=now,
        circuits=tuple(circuits.values()),
        seen=seen,
        changes=tuple(changes),
    )


def _facts_of_dlq(session: Session) -> QueueFacts | None:
    """The DLQ's facts; None if it can't be read, which the headline says.

    The circuit keeps orders, so people can give them while the queue or its brokers do not answer.
    """
    try:
        return session.dead_letters.facts()
    except (CallFailed, Refused):
        return None


def tell_standing(session: Session) -> Standing:
    """Read the standing, and show it below a plan. Raises CallFailed and Refused."""
    standing = take_standing(session)
    show_standing(session, standing)
    return standing


def show_standing(session: Session, standing: Standing) -> None:
    """Show the standing below a plan."""
    for line in standing.lines():
        session.terminal.plan(printable(line))


def confirm_against(
    session: Session,
    question: str,
    objections: Sequence[str],
    *,
    insists: bool,
    other: str | None = None,
) -> bool:
    """Ask, and ask again for each objection unless the caller insists. Returns whether `other` was the answer.

    Raises Refused.
    """
    _refuse_unheard(session, objections, insists=insists)
    is_other = session.terminal.confirm(question, other=other)
    _ask_for_each(session, objections, insists=insists)
    return is_other


def confirm_sending(
    session: Session,
    question: str,
    standing: Standing,
    *,
    insists: bool,
    to: Collection[str] = (),
    other: str | None = None,
) -> bool:
    """Ask before letters go past the re-driver, and again for each objection. Returns whether `other` was the answer.

    `to`: the source queues that the letters belong to, if all are known: the circuits of others are no objection.
    People read a plan for minutes, and on a page for a quarter of an hour, so objections that arose meanwhile are asked
    about, too. Raises CallFailed and Refused.
    """
    known = standing.against_sending(to)
    is_other = confirm_against(session, question, known, insists=insists, other=other)
    came_up = [one for one in take_standing(session).against_sending(to) if one not in known]
    _refuse_unheard(session, came_up, insists=insists)
    _ask_for_each(session, [f"Meanwhile: {one}" for one in came_up], insists=insists)
    return is_other


def _refuse_unheard(session: Session, objections: Sequence[str], *, insists: bool) -> None:
    """Refuse if nobody is asked, because then nobody has seen the objections."""
    if session.terminal.assume_yes and objections and not insists:
        raise Refused(f"{objections[0]} Nothing was changed. To go ahead, add {INSIST}.")


def _ask_for_each(session: Session, objections: Sequence[str], *, insists: bool) -> None:
    for objection in () if insists else objections:
        session.terminal.confirm(f"{printable(objection)} All the same?")
