"""Many queues on one screen: those that somebody may have to look at, the worst first, and how many are quiet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from redrive.core.circuit import State
from redrive.core.queue_facts import QueueFacts
from redrive.settings import Mode
from smart_redriver.oncall.stack.glances import Glance
from smart_redriver.oncall.stack.homes import Home
from smart_redriver.oncall.terminal.table import printable, table
from smart_redriver.oncall.terminal.terminal import Terminal, Tone
from smart_redriver.oncall.terminal.words import span

_TITLES = ("Queue", "Circuit", "DLQ", "Parked", "Alarms and more")
_WORST_FIRST = (State.OPEN, State.HALF_OPEN)


def overview_screen(terminal: Terminal, homes: Sequence[Home]) -> str:
    """The overview as lines, as wide as the terminal is."""
    lines = [line for home in homes for line in _home(terminal, home)]
    there = ", with its home's --profile and --region" if any(one.name for one in homes) else ""
    lines.append(f"One queue's page: `redrive status --queue NAME`{there}.")
    return "\n".join(lines)


def _home(terminal: Terminal, home: Home) -> Iterator[str]:
    where = f"{home.name} ({home.region})" if home.region else home.name
    heading = f"{where}: " if home.name else ""
    if home.fault:
        yield terminal.paint(f"{heading}not reached. {printable(home.fault)}", Tone.BAD)
        yield ""
        return
    loud = sorted((one for one in home.glances if not one.is_quiet), key=_urgency)
    yield heading + _sums(home.glances)
    if loud:
        rows = [_row(terminal, one) for one in loud]
        yield table(_TITLES, rows, right={2, 3}, columns=terminal.columns)
    if quiet := len(home.glances) - len(loud):
        yield f"{quiet} {'is' if quiet == 1 else 'are'} quiet: CLOSED, no letters, no alarm."
    yield ""


def _urgency(one: Glance) -> tuple[object, ...]:
    """What sorts before what: a person's page, circuits, what is not known, then letters."""
    states = [_WORST_FIRST.index(circuit.state) for circuit in one.opened]
    return (
        not one.alarms,
        min(states, default=len(_WORST_FIRST)),
        not one.unknown,
        -_depth(one.parking_lot) - _depth(one.dlq),
        one.queue,
    )


def _row(terminal: Terminal, one: Glance) -> tuple[str, str, str, str, str]:
    return (
        terminal.spare(one.queue),
        ", ".join(_circuits(one)) or ("not known" if _circuit_faults(one) else "CLOSED"),
        _told(one.dlq),
        _told(one.parking_lot),
        "; ".join(_notes(one)),
    )


def _circuits(one: Glance) -> Iterator[str]:
    for circuit in one.opened:
        of = f" ({circuit.queue})" if len(one.circuits) > 1 else ""
        yield f"{circuit.state.value} for {span(one.at - circuit.changed_at)}{of}"


def _circuit_faults(one: Glance) -> list[str]:
    return [what for what in one.unknown if what.startswith("circuit")]


def _notes(one: Glance) -> Iterator[str]:
    yield from one.alarms
    if one.is_paused:
        yield "paused"
    if one.mode not in (None, Mode.AUTOMATIC.value):
        yield f"mode {one.mode}"
    for what, why in one.unknown.items():
        yield f"{what} not read ({why})"


def _sums(glances: Sequence[Glance]) -> str:
    counts = {
        "with an alarm": _count(bool(one.alarms) for one in glances),
        "not CLOSED": _count(bool(one.opened) for one in glances),
        "paused": _count(one.is_paused for one in glances),
        "not read in full": _count(bool(one.unknown) for one in glances),
        "dead letters": sum(_depth(one.dlq) for one in glances),
        "parked letters": sum(_depth(one.parking_lot) for one in glances),
    }
    queues = f"{len(glances):,} queue{'' if len(glances) == 1 else 's'}"
    return ", ".join([queues, *(f"{count:,} {what}" for what, count in counts.items() if count)])


def _count(flags: Iterable[bool]) -> int:
    return sum(flags)


def _depth(facts: QueueFacts | None) -> int:
    return facts.depth if facts else 0


def _told(facts: QueueFacts | None) -> str:
    return f"{facts.depth:,}" if facts else "?"
