"""Many queues at a glance, in several accounts and Regions, each with the caller's credentials for it.

Facts that AWS returns for many queues in one call are asked once; the rest is asked side by side. AWS allows some
fifteen calls a second to Lambda's API and the log, so the status of one queue alone shows what only those know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from smart_redriver.engine.aws import items
from smart_redriver.engine.aws.state_table import TableBatches
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.counts import several
from smart_redriver.engine.errors import RedriverError
from smart_redriver.engine.headline import Headline, Passes, Topic, headline, seen_of, worst
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.oncall.deployment.aws import Answer, Asking
from smart_redriver.oncall.deployment.places import Place
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.alarms import split_name
from smart_redriver.oncall.status.passes import find_passes, source_facts, unread_by
from smart_redriver.oncall.terminal.exits import Refused, explain
from smart_redriver.oncall.terminal.table import printable, table
from smart_redriver.oncall.terminal.terminal import Terminal, Tone
from smart_redriver.oncall.terminal.words import span, stamp

#: The number of connections that a client has.
_WIDTH = 32
_UNREADABLE = "UnreadableCircuit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One DLQ now. `circuits` has the readable circuits of its sources by name; None if no pass has written one yet.

    `name` is for people. `unread` has the source queues that don't exist, `unheard` the sources whose live messages no
    pass counts. `unknown` says why something is not known.
    """

    queue: str
    name: str
    at: datetime
    circuits: Mapping[str, Circuit | None] = field(default_factory=dict)
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    mode: str | None = None
    passes: Passes = Passes.RUN
    unread: Mapping[str, str] = field(default_factory=dict)
    unheard: frozenset[str] = frozenset()
    alarms: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def opened(self) -> list[Circuit]:
        """The circuits that are not CLOSED."""
        return [one for one in self.circuits.values() if one and one.state is not State.CLOSED]

    @property
    def was_read(self) -> list[bool]:
        """Whether the DLQ could be read, and each circuit."""
        faults = _circuit_faults(self)
        return [self.dlq is not None, *(True for _ in self.circuits), *(False for _ in faults)]

    @property
    def is_paused(self) -> bool:
        """Whether people have paused it now. The first source's circuit keeps the pause."""
        first = self.circuits.get(self.queue)
        return first is not None and first.orders.pauses(self.at)

    @property
    def headline(self) -> Headline | None:
        """The most urgent of its sources' headlines; None if no circuit could be read."""
        first = self.circuits.get(self.queue)
        orders = first.orders if first else Orders()
        mode = Mode(self.mode) if self.mode in set(Mode) else Mode.AUTOMATIC
        seen = {
            name: seen_of(
                one,
                None,
                self.at,
                dlq=self.dlq,
                lot=self.parking_lot,
                orders=orders,
                hears_live=name not in self.unheard,
            )
            for name, one in self.circuits.items()
        }
        told = {
            name: headline(
                replace(one, mode=mode, passes=self.passes, unread=self.unread.get(name, ""))
            )
            for name, one in seen.items()
        }
        return worst(told) if told else None

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing about it that a person would want to know."""
        depths = [facts.depth if facts else 0 for facts in (self.dlq, self.parking_lot)]
        acts = self.mode in (None, Mode.AUTOMATIC.value) and self.passes is Passes.RUN
        return acts and not (
            self.opened or self.is_paused or self.alarms or self.unknown or any(depths)
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "circuits": [
                {
                    "queue": name,
                    "state": (one.state if one else State.CLOSED).value,
                    "since": stamp(one.changed_at) if one else None,
                }
                for name, one in self.circuits.items()
            ],
            "depths": {
                "dead_letters": self.dlq.depth if self.dlq else None,
                "parked": self.parking_lot.depth if self.parking_lot else None,
            },
            "paused": self.is_paused,
            "mode": self.mode,
            "alarms": list(self.alarms),
            "headline": self.headline.to_json(self.at) if self.headline else None,
            "quiet": self.is_quiet,
            "unknown": dict(self.unknown),
        }


def take_glances(sessions: Sequence[Session]) -> list[Glance]:
    """Look at the queues of these sessions, which share their clients.

    A value that can't be read is reported as unknown. Raises CallFailed if a client can't be made.
    """
    first = sessions[0]
    for service in ("sqs", "dynamodb", "cloudwatch"):  # botocore builds them one after another
        first.aws.client(service)
    with Asking(_WIDTH) as ask:
        ringing = ask(partial(_ringing, first))
        circuits = [ask(partial(_circuits_of_glances, *one)) for one in _by_table(sessions)]
        rest = [
            (
                ask(partial(_depth_of_glances, one, dlq=True)),
                ask(partial(_depth_of_glances, one, dlq=False)),
                ask(partial(find_passes, one)),
            )
            for one in sessions
        ]
        dlqs = [dlq() for dlq, _, _ in rest]
        sources = [
            {name: ask(look) for name, look in _looks_at_sources(one, dlq.value).items()}
            for one, dlq in zip(sessions, dlqs, strict=True)
        ]
        known = _Known(ringing(), [wait() for wait in circuits])
        now = first.clock()
        return [
            known.glance(
                one, now, dlq, lot(), passes(), {name: wait() for name, wait in some.items()}
            )
            for one, dlq, (_, lot, passes), some in zip(sessions, dlqs, rest, sources, strict=True)
        ]


def _looks_at_sources(
    session: Session, dlq: QueueFacts | None
) -> dict[str, Callable[[], QueueFacts]]:
    """How to look at the source queues that letters wait for. Targets can't be asked."""
    if dlq is None or not dlq.depth or session.place.deployment.targets:
        return {}
    return {
        name: partial(source_facts, session, number)
        for number, name in enumerate(session.place.sources)
    }


def _depth_of_glances(session: Session, *, dlq: bool) -> QueueFacts:
    return (session.dead_letters if dlq else session.parking_lot).facts()


def _by_table(sessions: Iterable[Session]) -> Iterable[tuple[Session, str, dict[str, str]]]:
    """Yield each state table with a session, and its source queues by the names that the table uses."""
    queues: defaultdict[str, dict[str, str]] = defaultdict(dict)
    of: dict[str, Session] = {}
    for one in sessions:
        table = one.place.deployment.table_name
        of.setdefault(table, one)
        queues[table] |= {one.place.deployment.called(name): name for name in one.place.sources}
    return [(of[table], table, names) for table, names in queues.items()]


def _circuits_of_glances(
    session: Session, table: str, queues: Mapping[str, str]
) -> dict[str, Circuit | str]:
    """The circuits by the table's names of their queues, or why one can't be read. Raises CallFailed."""
    found: dict[str, Circuit | str] = {}
    keys = {items.circuit_key(called)["PK"]["S"]: called for called in queues}
    batches = TableBatches(session.aws.dynamodb, table, pause=session.sleep)
    for item in batches.get([{"PK": {"S": key}} for key in keys]):
        called = keys[item["PK"]["S"]]
        try:
            found[called] = items.circuit_from_item(queues[called], item)
        except (KeyError, ValueError, TypeError):
            found[called] = _UNREADABLE
    return found


def _ringing(session: Session) -> dict[str, list[str]]:
    """Short names of the alarms in ALARM in this account and Region, by the part of the name before it.

    Raises CallFailed.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    if session.place.process is not None:
        return found  # a process has no alarms
    request = {"StateValue": "ALARM", "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
    token: str | None = ""
    while token is not None:
        more = {"NextToken": token} if token else {}
        page = session.aws.client("cloudwatch").describe_alarms(**request, **more)
        for one in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
            known_as, short = split_name(one["AlarmName"])
            found[known_as].append(short)
        token = page.get("NextToken")
    return found


class _Known:
    """The answers of the calls that cover all queues."""

    def __init__(
        self, ringing: Answer[dict[str, list[str]]], tables: list[Answer[dict[str, Circuit | str]]]
    ) -> None:
        self._ringing = ringing.value or {}
        self._not_heard = ringing.fault
        self._circuits = {name: one for each in tables for name, one in (each.value or {}).items()}
        self._not_read = next((one.fault for one in tables if one.fault), None)

    def glance(
        self,
        session: Session,
        now: datetime,
        dlq: Answer[QueueFacts],
        lot: Answer[QueueFacts],
        passes: Answer[Passes],
        sources: Mapping[str, Answer[QueueFacts]],
    ) -> Glance:
        place = session.place
        circuits, unread = self._circuits_of(place)
        others = {f"queue {name}": one.fault for name, one in sources.items()} | {
            "DLQ": dlq.fault,
            "parking lot": lot.fault,
            "last pass": passes.fault,
            "alarms": self._not_heard,
        }
        return Glance(
            queue=place.queue,
            name=place.name,
            at=now,
            circuits=circuits,
            dlq=dlq.value,
            parking_lot=lot.value,
            mode=place.mode,
            passes=passes.value or Passes.RUN,
            unread={name: why for name, one in sources.items() if (why := unread_by(one))},
            unheard=frozenset(one for one in place.sources if not place.hears_live(one)),
            alarms=tuple(
                short for name in place.alarms_known_as for short in self._ringing.get(name, ())
            ),
            unknown=unread | {what: why for what, why in others.items() if why},
        )

    def _circuits_of(self, place: Place) -> tuple[dict[str, Circuit | None], dict[str, str]]:
        """The circuits of a place's sources, and why others can't be read."""
        called = place.deployment.called
        read = {name: self._circuits.get(called(name), self._not_read) for name in place.sources}
        return (
            {name: one for name, one in read.items() if not isinstance(one, str)},
            {f"circuit of {name}": one for name, one in read.items() if isinstance(one, str)},
        )


#: Homes to look at in parallel. Each has its own clients and connections.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One account and Region. If it can't be reached, `fault` says why in a sentence, and there are no glances."""

    name: str
    region: str | None = None
    glances: tuple[Glance, ...] = ()
    fault: str | None = None

    @property
    def was_read(self) -> list[list[bool]]:
        """Whether each part of each queue was read. An unreachable home counts as one unread part."""
        return [[False]] if self.fault else [one.was_read for one in self.glances]

    def to_json(self) -> dict[str, Any]:
        return {
            "home": self.name,
            "region": self.region,
            "fault": self.fault,
            "queues": [one.to_json() for one in self.glances],
        }


def look_around(session: Session, homes: Sequence[str]) -> list[Home]:
    """Look at several homes side by side. Raises Misused for a name that does not have a home's form."""
    names = list(dict.fromkeys(homes))
    there = [replace(session, aws=session.aws.elsewhere(one), known_place=None) for one in names]
    with Asking(_AT_ONCE) as ask:
        looks = [ask(partial(_look, name, one)) for name, one in zip(names, there, strict=True)]
        return [home for wait in looks if (home := wait().value)]


def look_here(session: Session) -> Home:
    """The one home that the caller is in. Raises CallFailed and Refused."""
    glances = take_glances(session.each_queue())
    return Home(name="", region=session.aws.region, glances=tuple(glances))


def _look(name: str, session: Session) -> Home:
    try:
        return replace(look_here(session), name=name)
    except (Refused, RedriverError) as fault:
        return Home(name=name, region=session.aws.region, fault=explain(fault)[0])


_TITLES = ("Queue", "Circuit", "DLQ", "Parked", "Alarms and more")
#: Topics that neither the circuit's state nor a pause shows.
_WORTH_A_WORD = frozenset(
    {Topic.NO_PASSES, Topic.FAILING, Topic.SILENT, Topic.KINDS, Topic.SUSPECTS}
)
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
    """The sort key by urgency: a person's page, circuits, unknown values, then letters."""
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
        terminal.spare(one.name),
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
    seen = one.headline
    if seen and seen.topic in _WORTH_A_WORD:
        yield seen.topic.value
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
    }
    depths = {
        "dead letter": sum(_depth(one.dlq) for one in glances),
        "parked letter": sum(_depth(one.parking_lot) for one in glances),
    }
    told = [f"{count:,} {what}" for what, count in counts.items() if count]
    told += [several(count, what) for what, count in depths.items() if count]
    return ", ".join([several(len(glances), "queue"), *told])


def _count(flags: Iterable[bool]) -> int:
    return sum(flags)


def _depth(facts: QueueFacts | None) -> int:
    return facts.depth if facts else 0


def _told(facts: QueueFacts | None) -> str:
    return f"{facts.depth:,}" if facts else "?"
