"""`redrive status` and `redrive watch`: one screen in plain words."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

from redrive.core.circuit import Circuit, State
from redrive.core.queue_facts import QueueFacts
from smart_redriver.oncall.stack.causes import causes_in_words
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.snapshot import Snapshot, SourceNow, take_snapshot
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, letters, span, stamp

_MEANING = {
    State.CLOSED: "letters flow",
    State.OPEN: "nothing is redriven",
    State.HALF_OPEN: "a canary is out, everything else waits",
}
_WIDTH = 12
_UNKNOWN = "not known"


def status(session: Session) -> Exit:
    """Print one snapshot of each queue. Raises CallFailed and Refused."""
    _tell(session, [take_snapshot(one) for one in session.each_queue()])
    return Exit.DONE


def _tell(session: Session, snapshots: Sequence[Snapshot]) -> None:
    session.terminal.result({"queues": [one.to_json() for one in snapshots]})
    session.terminal.say(_pages(snapshots))


def watch(session: Session, *, every_seconds: float, times: int | None = None) -> Exit:
    """The same, again and again until Ctrl-C, or `times` times. Raises CallFailed and Refused."""
    queues = session.each_queue()
    with suppress(KeyboardInterrupt), _show(session) as show:
        for count in itertools.count(1):
            show([take_snapshot(one) for one in queues])
            if count == times:
                break
            session.sleep(every_seconds)
    return Exit.DONE


@contextmanager
def _show(session: Session) -> Iterator[Callable[[Sequence[Snapshot]], None]]:
    """On a terminal each screen takes the last one's place; elsewhere one follows the other."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=session.terminal.out)
    if session.terminal.is_json or not console.is_terminal:
        yield lambda snapshots: _tell(session, snapshots)
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        yield lambda snapshots: live.update(Text(_pages(snapshots)), refresh=True)


def _pages(snapshots: Sequence[Snapshot]) -> str:
    return "\n\n".join("\n".join(screen(one)) for one in snapshots)


def screen(snapshot: Snapshot) -> Iterator[str]:
    """A snapshot as lines."""
    yield f"{snapshot.queue}, {stamp(snapshot.at)}"
    yield ""
    for name, fact in _facts(snapshot):
        yield f"{name + ':' if name else '':<{_WIDTH}} {printable(fact)}"
    for what, why in snapshot.unknown.items():
        yield f"{'Not read:':<{_WIDTH}} {what} ({why})"


def _facts(now: Snapshot) -> Iterator[tuple[str, str]]:
    for source in now.sources:
        yield "Source", f"{source.name}, {_depth(source.facts)}"
        if source.circuit:
            yield from _circuit(source.circuit, source, now.at)
            if causes := causes_in_words(source.circuit, now.at):
                yield "Causes", causes
    if now.looks_every:
        yield "Next look", f"within {span(now.looks_every)}"
    if now.orders.pauses(now.at):
        yield "Paused", f"by {now.orders.by}: {now.orders.reason or 'no reason given'}"
    oldest = f", the oldest there for {span(now.oldest)}" if now.oldest else ""
    yield "DLQ", _depth(now.dlq) + (oldest if now.dlq and now.dlq.depth else "")
    yield "Parking lot", _depth(now.parking_lot) + _wait(now.parking_lot)
    if now.least_to_expiry is not None and now.dlq and now.dlq.depth:
        yield (
            "Expiry",
            f"the first letter of the DLQ expires in {span(now.least_to_expiry)} at the least",
        )
    yield "Last pass", _last_pass(now)
    if "alarms" not in now.unknown:
        for number, alarm in enumerate(now.alarms or ["none"]):
            yield "" if number else "Alarms", alarm


def _circuit(circuit: Circuit, source: SourceNow, now: datetime) -> Iterator[tuple[str, str]]:
    yield "Circuit", f"{circuit.state.value}, {_MEANING[circuit.state]}"
    yield "", f"since {ago(circuit.changed_at, now)}: {circuit.reason}"
    if source.next_step:
        yield "Next", source.next_step + _when(source.next_at, now)
    if circuit.orders.drains(now) and circuit.orders.drain_until:
        yield "Draining", f"until {stamp(circuit.orders.drain_until)}, by {circuit.orders.by}"
    yield "Window", f"{letters(circuit.window)} may await a verdict, {circuit.outstanding:,} do"
    for batch in circuit.pending:
        line = f"batch {batch.id}: {letters(batch.size)}, {batch.seen_again} returned"
        if batch.due_at > now:
            line += f"; were all to fail, they would be back {ago(batch.due_at, now)}"
        yield "", line


def _when(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    return f", {ago(moment, now) if moment > now else 'with the next pass'}"


def _depth(facts: QueueFacts | None) -> str:
    if facts is None:
        return _UNKNOWN
    parts = [f"{facts.in_flight:,} in flight" if facts.in_flight else ""]
    parts += [f"{facts.delayed:,} delayed" if facts.delayed else ""]
    details = ", ".join(part for part in parts if part)
    messages = "message" if facts.depth == 1 else "messages"
    return f"{facts.depth:,} {messages}" + (f" ({details})" if details else "")


def _wait(facts: QueueFacts | None) -> str:
    return ", which wait for a person: `redrive parked`" if facts and facts.depth else ""


def _last_pass(now: Snapshot) -> str:
    if now.last_pass is None:
        return _UNKNOWN if "last pass" in now.unknown else "none in the last day: `redrive doctor`"
    report = now.last_pass.report
    parked = sum(report.get("parked", {}).values())
    return (
        f"{ago(now.last_pass.at, now.at)}, {report.get('outcome')}: {report.get('redriven', 0)} redriven, "
        f"{parked} parked, {report.get('returned', 0)} returned"
        + (f"; {report['reason']}" if report.get("reason") else "")
    )
