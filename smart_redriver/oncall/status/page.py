"""A snapshot as facts in plain words, as `redrive status` shows it on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.counts import letters, several
from smart_redriver.engine.headline import Colour, Headline, Passes, pause_in_words, short_name
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.oncall.deployment.message_store import KINDS
from smart_redriver.oncall.status.outlook import causes_in_words, is_known, last_canary
from smart_redriver.oncall.status.passes import acts_in_words
from smart_redriver.oncall.status.snapshot import Snapshot, SourceNow
from smart_redriver.oncall.terminal.terminal import Tone
from smart_redriver.oncall.terminal.words import ago, await_a_verdict, span, stamp

#: Only the headline has a colour: a circuit may be CLOSED while letters wait for something that does not come.
_TONES = {Colour.GREEN: Tone.GOOD, Colour.YELLOW: Tone.CAREFUL, Colour.RED: Tone.BAD}
_UNKNOWN = "not known"


class _Words(NamedTuple):
    """The word for one counted message, and the word for hidden ones."""

    one: str
    hidden: str


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: its subject (empty if it continues the line above), its text and its tone."""

    name: str
    text: str
    tone: Tone | None = None


def facts_of(now: Snapshot, *, with_full_names: bool) -> Iterator[Fact]:
    """The facts, the most important first."""
    if now.headline:
        yield from _headline(now.headline, now.at)
    if now.origin is not Origin.SQS:
        yield Fact("Filled by", BACKENDS[now.origin].filled_by)
    for source in now.sources:
        if source.target:
            yield Fact("Target", f"{source.name}, {KINDS[source.target.kind]}")
        else:
            yield Fact("Source", f"{source.name}, {_depth(source.facts, _of_source(now))}")
        if source.circuit:
            yield from _circuit(source.circuit, source, now)
            if causes := causes_in_words(source.circuit, now.at, is_idle=_is_empty(now.dlq)):
                yield Fact("Causes", causes, Tone.CAREFUL)
    yield from _orders(now)
    yield from _depths(now)
    yield Fact("Last pass", _last_pass(now))
    if "last change" not in now.unknown:
        change = now.last_change
        yield Fact("Last change", change.told(now.at) if change else "none in the last seven days")
    yield from _alarms(now, with_full_names=with_full_names)


def _headline(first: Headline, now: datetime) -> Iterator[Fact]:
    yield Fact("Now", first.sentence(now), _TONES.get(first.colour))
    if first.then:
        yield Fact("Do", first.then)


def _is_empty(dlq: QueueFacts | None) -> bool:
    return dlq is not None and not dlq.depth


def _circuit(circuit: Circuit, source: SourceNow, now: Snapshot) -> Iterator[Fact]:
    meaning = _held(now) or _meaning(circuit)
    yield Fact("Circuit", f"{circuit.state.value}, {meaning}" if meaning else circuit.state.value)
    yield Fact("", f"since {ago(circuit.changed_at, now.at)}: {circuit.reason}")
    if source.next_step:
        yield Fact("Next", source.next_step + _when(source.next_at, now.at))
    if source.draining_until:
        by = short_name(circuit.orders.by)
        yield Fact("Draining", f"until {stamp(source.draining_until)}, by {by}")
    yield Fact("Out", _out(circuit))
    for batch in circuit.pending:
        line = f"batch {batch.id}: {letters(batch.size)}, {batch.seen_again} returned"
        if done := batch.heard.succeeded + batch.heard.parked:
            line += f", {done:,} {'accepted' if source.target else 'reported as done'}"
        if batch.due_at > now.at:
            line += f"; if all fail, they will be back {ago(batch.due_at, now.at)}"
        yield Fact("", line)
    if canary := last_canary(circuit):
        when, size = "at an unknown time", "size unknown"
        if is_known(canary):
            when, size = ago(canary.sent_at, now.at), letters(canary.size)
        told = f"{canary.verdict.value}, sent {when} as batch {canary.id} ({size})"
        yield Fact("Last canary", told)


def _meaning(circuit: Circuit) -> str:
    if circuit.state is State.HALF_OPEN:
        out = "a canary is out, everything else waits"
        return out if circuit.pending else "the next letter goes as a canary"
    return "nothing is redriven" if circuit.state is State.OPEN else ""


def _out(circuit: Circuit) -> str:
    """Letters with unknown outcomes. The next step says how many more may go."""
    told = await_a_verdict(circuit.unknown)
    if settled := circuit.outstanding - circuit.unknown:
        told += f"; for {several(settled, 'other')} the outcome is known"
    if failing := circuit.left_failing:
        told += f"; {letters(failing)} of failed batches are still with the consumer"
    return told


def _held(now: Snapshot) -> str:
    """The reason why letters don't flow, regardless of the circuit's state."""
    if now.is_paused:
        return "but paused: nothing is redriven"
    if now.mode is not None and now.mode is not Mode.AUTOMATIC:
        return f"but the setting `mode` is {now.mode.value}: nothing is redriven"
    if now.passes not in (None, Passes.RUN):
        return "but no pass runs by itself"
    return ""


def _orders(now: Snapshot) -> Iterator[Fact]:
    if now.passes is Passes.NOT_SCHEDULED:
        state = now.schedule or "missing"
        text = f"{state}, so no pass runs by itself: `redrive doctor`"
        yield Fact("Schedule", text, Tone.BAD)
    elif now.passes is Passes.NO_FUNCTION:
        yield Fact("Function", "does not exist, so no pass runs: `redrive doctor`", Tone.BAD)
    elif now.passes is Passes.NO_PROCESS:
        yield Fact("Process", "none is at work: `redrive doctor` says more", Tone.BAD)
    elif now.looks_every:
        yield Fact("Next look", f"within {span(now.looks_every)}")
    if now.is_paused:
        yield Fact("Paused", pause_in_words(now.orders, now.at), Tone.CAREFUL)


def _depths(now: Snapshot) -> Iterator[Fact]:
    has_letters = now.dlq is not None and now.dlq.depth > 0
    age = now.age_of_oldest
    oldest = f", the oldest there for {span(age)}" if age and has_letters else ""
    words = _of_letters(now)
    yield Fact("DLQ", _depth(now.dlq, words) + oldest)
    yield Fact("Parking lot", _depth(now.parking_lot, words) + _wait(now.parking_lot))
    if now.least_to_expiry is not None and has_letters:
        left = span(now.least_to_expiry)
        is_near = now.least_to_expiry < timedelta(days=1)
        text = f"the first letter of the DLQ expires in {left} at the earliest"
        yield Fact("Expiry", text, Tone.BAD if is_near else None)


def _alarms(now: Snapshot, *, with_full_names: bool) -> Iterator[Fact]:
    if "alarms" in now.unknown:
        return
    if now.is_of_process:
        yield Fact("Alarms", "a process has none")
    elif not now.alarms:
        yield Fact("Alarms", "none", Tone.GOOD)
    for number, alarm in enumerate(now.alarms):
        text = f"{alarm.short}: {alarm.meaning}" if alarm.meaning else alarm.short
        yield Fact("" if number else "Alarms", text, Tone.BAD)
        if with_full_names and alarm.name != alarm.short:
            yield Fact("", alarm.name)


def _when(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    return f", {ago(moment, now) if moment > now else 'with the next pass'}"


def _depth(facts: QueueFacts | None, words: _Words) -> str:
    if facts is None:
        return _UNKNOWN
    parts = [f"{facts.in_flight:,} {words.hidden}" if facts.in_flight else ""]
    parts += [f"{facts.delayed:,} delayed" if facts.delayed else ""]
    details = ", ".join(part for part in parts if part)
    return several(facts.depth, words.one) + (f" ({details})" if details else "")


def _of_source(now: Snapshot) -> _Words:
    backend = BACKENDS[now.origin]
    return _Words(backend.message, backend.hidden)


def _of_letters(now: Snapshot) -> _Words:
    backend = BACKENDS[now.origin]
    return _Words(backend.letter, backend.held)


def _wait(facts: QueueFacts | None) -> str:
    if facts is None or not facts.depth:
        return ""
    return f", which {'waits' if facts.depth == 1 else 'wait'} for a person: `redrive parked`"


def _last_pass(now: Snapshot) -> str:
    if now.last_pass is None:
        return _UNKNOWN if "last pass" in now.unknown else "none lately: `redrive doctor`"
    report = now.last_pass.report
    acts = ", ".join(acts_in_words(report)) or "nothing to do to any letter"
    return f"{ago(now.last_pass.at, now.at)}, {report.get('outcome')}: {acts}" + (
        f"; {report['reason']}" if report.get("reason") else ""
    )
