"""The headline: a queue's state, what its letters wait for, until when at the latest, and what to do. Pure.

Status, page, widget, log, `drain` and `causes` begin with it. `seen_of` gathers its input from the circuit, so that a
headline and the decision that it explains rest on the same numbers; `headline` puts them into words. The rules are in
the order of `_RULES`: the first that applies decides. A headline is never green while letters wait for something that
does not come.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.counts import letters, several
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.breaker import refusal_of
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.permit import cools_until, fails_together, heeds_live, spares_until
from smart_redriver.engine.model.rate import PATIENCE

#: If all is well, a letter's outcome is known this long after its send.
OUTCOME_EXPECTED = timedelta(minutes=5)

#: A success speaks for the consumer for this long, and the letters sent in this time show the rate.
LATELY = timedelta(minutes=15)

#: Fewer letters, or a shorter time, show no rate.
_RATE_OF = 10
_RATE_OVER = timedelta(minutes=1)

#: Kinds that a headline names.
_MOST_NAMED = 2


class Colour(str, Enum):
    """The colour of a headline: letters flow or none waits, letters wait, or a person is needed."""

    GREEN = "green"
    NONE = "none"
    YELLOW = "yellow"
    RED = "red"


class Topic(str, Enum):
    """The subject of a headline; docs/runbook.md has a table of them."""

    NOTHING_WAITS = "nothing waits"
    FLOWING = "letters flow"
    STARTING = "starting"
    NO_PASSES = "no pass runs"
    MODE = "mode"
    PAUSED = "paused"
    DOWN = "consumer likely down"
    CANARY = "a canary is out"
    FAILING = "consumer may be down"
    SILENT = "no outcome known"
    CROWDED = "consumer has enough"
    TOGETHER = "batches fail as a whole"
    KINDS = "a cause is down"
    SUSPECTS = "letters that failed"
    STUCK = "letters that can't be parked"
    BLOCKING = "letters that block their groups"
    UNREAD = "source queue that can't be read"
    NOT_KNOWN = "not known"


#: While one of these holds, no letter goes back, or only a few trial letters do.
_KEEPS_ALL = frozenset(
    {
        Topic.NO_PASSES,
        Topic.MODE,
        Topic.PAUSED,
        Topic.DOWN,
        Topic.CANARY,
        Topic.FAILING,
        Topic.SILENT,
        Topic.CROWDED,
        Topic.UNREAD,
    }
)


#: These hold for all queues of a DLQ, or for none.
_HOLD_FOR_ALL = frozenset(
    {
        Topic.NOTHING_WAITS,
        Topic.NOT_KNOWN,
        Topic.UNREAD,
        Topic.NO_PASSES,
        Topic.MODE,
        Topic.PAUSED,
    }
)


class Passes(str, Enum):
    """Whether passes run by themselves, or what is missing."""

    RUN = "run"
    NOT_SCHEDULED = "not scheduled"
    NO_FUNCTION = "no function"
    NO_PROCESS = "no process"


#: Why no pass runs, and what to do.
_WHY_NO_PASSES = {
    Passes.NOT_SCHEDULED: (
        "the schedule is off",
        "`redrive doctor` says why; `redrive run` makes one pass.",
    ),
    Passes.NO_FUNCTION: (
        "the function does not exist",
        "`redrive doctor` names it, and the remedy.",
    ),
    Passes.NO_PROCESS: (
        "no process is at work",
        "Start `redrive run --forever`; `redrive doctor` says since when none is.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDown:
    """Letters that wait together because their kind is down."""

    name: str
    letters: int
    since: datetime | None = None
    next_canary_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The state of one source queue and of the letters that wait for it. None stands for unknown.

    Attributes:
        mode, passes, orders: what may keep passes from acting.
        unread: why the source queue can't be read; empty if it can, or if that is not known. No pass goes on without.
        failed_pass: the call for which the last pass failed, and its code; empty if it did not, or may go on next time.
        backlog: letters in the DLQ. `hidden`: how many of these wait for a time of their own.
        keeps_order: whether letters wait behind others of their group, which no pass counts.
        parked: letters in the parking lot, which wait for a person.
        out, out_since: redriven letters with unknown outcomes, and since when the oldest is out; `out_until`: when
            their outcomes are known at the latest.
        belief_down: P(down), from 0 to 1.
        succeeded, tried, since: outcomes of the letters that were tried last, since the last success.
        succeeded_at: when the last successful batch was sent. `came_back`: if half of its letters or more failed, how
            many of its `of_these`.
        next_canary_at: while OPEN; `canary_at_latest`: if live messages keep failing. `heeds_live`: whether live
            messages show when to try one.
        kinds_down: kinds that wait for their own canary.
        queue, refusal: the code for which the circuit is OPEN, if the queue or target itself refused letters.
        suspects, suspects_until: letters that failed while others succeeded, and when the last of these is tried again.
        stuck: letters that should be parked but that the parking lot does not accept.
        blocking: poison that keeps its message group waiting for a person.
        crowded_since: since when the consumer has had more than it can bear, so that nothing goes.
        fails_together: one letter that fails fails all that the consumer takes with it, so that they go one by one.
        rate_per_second, live_per_second: the rates of letters that go back, and of producers' messages beside them.
        drained_by: when the backlog is gone at this rate; None if all of it is hidden until its time.

    """

    at: datetime
    state: State = State.CLOSED
    mode: Mode = Mode.AUTOMATIC
    passes: Passes = Passes.RUN
    orders: Orders = Orders()
    unread: str = ""
    failed_pass: str = ""
    backlog: int | None = None
    hidden: int = 0
    keeps_order: bool = False
    parked: int = 0
    out: int = 0
    out_since: datetime | None = None
    out_until: datetime | None = None
    belief_down: float | None = None
    succeeded: int = 0
    tried: int = 0
    failed: int = 0
    since: datetime | None = None
    succeeded_at: datetime | None = None
    came_back: int = 0
    of_these: int = 0
    next_canary_at: datetime | None = None
    canary_at_latest: datetime | None = None
    heeds_live: bool = True
    kinds_down: tuple[KindDown, ...] = ()
    queue: str = ""
    refusal: str = ""
    suspects: int = 0
    suspects_until: datetime | None = None
    stuck: int = 0
    blocking: int = 0
    crowded_since: datetime | None = None
    fails_together: bool = False
    rate_per_second: float | None = None
    live_per_second: float | None = None
    drained_by: datetime | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether letters succeeded lately, and none is out for longer than a success takes."""
        at, out_since = self.succeeded_at, self.out_since
        is_late = out_since is not None and self.at > out_since + LATELY
        return at is not None and self.at <= at + LATELY and not is_late

    @property
    def is_moving(self) -> bool:
        """Whether letters are going back now: some are out, or some went and succeeded a moment ago."""
        at = self.succeeded_at
        has_just = at is not None and self.at <= at + OUTCOME_EXPECTED
        return bool(self.out or self.rate_per_second or has_just)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The first sentence for a person.

    Attributes:
        text: what is seen.
        waits_for: what the letters wait for; empty if none waits. `until`: when that comes at the latest.
        then: what to do.

    """

    topic: Topic
    colour: Colour
    text: str
    waits_for: str = ""
    until: datetime | None = None
    then: str = ""

    @property
    def lets_flow(self) -> bool:
        """Whether letters go back now if nothing else keeps them."""
        return self.topic not in _KEEPS_ALL

    @property
    def is_about(self) -> tuple[object, ...]:
        """What a headline is about: two headlines that differ in this are different, whatever they count."""
        return self.topic, self.waits_for, self.until

    def sentence(self, now: datetime) -> str:
        """One line that says what is seen and what the letters wait for."""
        if not self.waits_for:
            return self.text
        return f"{self.text} {self.waits_for}{_latest(self.until, now)}."

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Return the headline for `--json`, the log and the page's API."""
        return {
            "topic": self.topic.value,
            "colour": self.colour.value,
            "text": self.sentence(now),
            "until": f"{self.until:%Y-%m-%dT%H:%M:%SZ}" if self.until else None,
            "then": self.then,
        }


def seen_of(
    circuit: Circuit | None,
    settings: Settings | None,
    now: datetime,
    *,
    dlq: QueueFacts | None,
    lot: QueueFacts | None = None,
    orders: Orders | None = None,
    passes: Passes = Passes.RUN,
    unread: str = "",
    failed_pass: str = "",
    hears_live: bool = True,
) -> Seen:
    """Gather what the circuit, the queue and people's orders show.

    `orders`: the DLQ's first source queue's. `hears_live`: whether passes count live messages at all.
    """
    seen = Seen(
        at=now,
        mode=settings.mode if settings else Mode.AUTOMATIC,
        passes=passes,
        unread=unread,
        failed_pass=failed_pass,
        backlog=dlq.depth if dlq else None,
        hidden=dlq.hidden if dlq else 0,
        keeps_order=dlq is not None and dlq.is_fifo,
        parked=lot.depth if lot else 0,
    )
    if circuit is None:
        return seen
    seen = replace(seen, orders=circuit.orders if orders is None else orders)
    seen = _with_circuit(seen, circuit, settings, now)
    if hears_live:
        return seen
    return replace(seen, heeds_live=False, canary_at_latest=seen.next_canary_at)


def _with_circuit(seen: Seen, circuit: Circuit, settings: Settings | None, now: datetime) -> Seen:
    tried = _tried(circuit)
    came_back, of_these = _mixture_of(circuit)
    rate = _rate(circuit, now)
    return replace(
        seen,
        state=circuit.state,
        out=circuit.unknown,
        out_since=_out_since(circuit),
        out_until=max((one.due_at for one in circuit.pending), default=None),
        succeeded=tried.succeeded,
        tried=tried.tried,
        failed=tried.failed,
        since=tried.since,
        succeeded_at=tried.succeeded_at,
        came_back=came_back,
        of_these=of_these,
        queue=circuit.queue,
        next_canary_at=_next_canary_at(circuit, settings),
        canary_at_latest=_canary_at_latest(circuit, settings, now),
        heeds_live=heeds_live(circuit, now),
        kinds_down=tuple(_kinds(circuit)),
        refusal=refusal_of(circuit),
        suspects=circuit.suspects_waiting(now),
        suspects_until=max(
            (at for one in circuit.held_suspects if (at := one.until) > now), default=None
        ),
        stuck=circuit.stuck,
        blocking=circuit.blocking,
        crowded_since=circuit.rate.congested_since if circuit.rate else None,
        fails_together=fails_together(circuit),
        rate_per_second=rate,
        live_per_second=circuit.rate.live if circuit.rate else None,
        drained_by=_drained_by(seen, rate),
    )


def _drained_by(seen: Seen, rate: float | None) -> datetime | None:
    """Return when the backlog is gone at this rate. Letters that are hidden until their time don't go at it."""
    if not rate or not seen.backlog or seen.hidden >= seen.backlog:
        return None
    return seen.at + timedelta(seconds=seen.backlog / rate)


def _out_since(circuit: Circuit) -> datetime | None:
    """Return the time when the oldest batch with unknown outcomes was sent."""
    # A canary of a held cause shows only how its cause is, which has its own sentence.
    is_held = any(one.is_held for one in circuit.causes)
    unknown = [one for one in circuit.pending if not one.known and (one.unblemished or not is_held)]
    return min((one.sent_at for one in unknown), default=None)


def _next_canary_at(circuit: Circuit, settings: Settings | None) -> datetime | None:
    """Return the time when an OPEN circuit may try a canary. After a person opened it, only the settings know."""
    if circuit.state is not State.OPEN:
        return None
    return cools_until(circuit, settings) if settings else circuit.cools_until


def _canary_at_latest(
    circuit: Circuit, settings: Settings | None, now: datetime
) -> datetime | None:
    """Return the time when an OPEN circuit tries a canary although live messages fail."""
    if circuit.state is not State.OPEN or settings is None:
        return None
    return max(cools_until(circuit, settings), spares_until(circuit, settings, now))


@dataclass(slots=True, kw_only=True)
class _Tried:
    """Outcomes of the letters that were tried last, see `Seen`."""

    tried: int = 0
    succeeded: int = 0
    failed: int = 0
    since: datetime | None = None
    succeeded_at: datetime | None = None

    def add_pending(self, batch: Batch) -> bool:
        """Count a batch that is out. Return False, and do not count it, if it succeeded and later ones failed."""
        succeeded = batch.heard.succeeded
        if succeeded and self.failed:
            self.succeeded_at = batch.sent_at
            return False
        if of_these := max(batch.unblemished, succeeded):
            self.add(of_these, max(batch.returned, batch.heard.failed), batch.sent_at)
            self.succeeded += succeeded
        if succeeded:
            self.succeeded_at = self.succeeded_at or batch.sent_at
        return True

    def add(self, size: int, failed: int, sent_at: datetime) -> None:
        self.tried += size
        self.failed += failed
        self.since = min(self.since or sent_at, sent_at)


def _newest_first(circuit: Circuit) -> list[Batch]:
    return sorted(circuit.pending, key=lambda one: one.sent_at, reverse=True)


def _tried(circuit: Circuit) -> _Tried:
    """The letters tried since the last batch that succeeded.

    Suspects and canaries of a cause are expected to fail: until they succeed, they say nothing about the consumer. Nor
    do failures from before the circuit was closed, by canaries or by a person who fixed the consumer.
    """
    found = _Tried()
    if not all(found.add_pending(batch) for batch in _newest_first(circuit)):
        return found
    is_closed = circuit.state is State.CLOSED
    for judged in reversed(circuit.judged):
        if judged.verdict is Verdict.SUCCESS:
            found.succeeded_at = max(found.succeeded_at or judged.sent_at, judged.sent_at)
            return found
        if not judged.was_alone and not (is_closed and judged.generation < circuit.generation):
            found.add(judged.size, judged.seen_again, judged.sent_at)
    return found


def _mixture_of(circuit: Circuit) -> tuple[int, int]:
    """The failed letters and the size of the last telling batch, if at least half failed while others succeeded.

    Without one that tells, the last success counts.
    """
    for batch in _newest_first(circuit):
        failed, succeeded = max(batch.returned, batch.heard.failed), batch.heard.succeeded
        if failed or succeeded:
            return (failed, failed + succeeded) if 0 < succeeded <= failed else (0, 0)
    last = next((one for one in reversed(circuit.judged) if one.verdict is Verdict.SUCCESS), None)
    if last is None or not last.seen_again or 2 * last.seen_again < last.size:
        return 0, 0
    # Live messages that vouch for the consumer say nothing about letters; a quiet queue's mixture is in the letters'
    # record.
    is_vouched = last.is_strike and not 0 < circuit.fared.succeeded <= circuit.fared.failed
    return (0, 0) if is_vouched else (last.seen_again, last.size)


def _rate(circuit: Circuit, now: datetime) -> float | None:
    """Letters a second that went lately and are not back; None if too few have gone to tell."""
    sent = [(one.sent_at, one.size - one.seen_again) for one in circuit.judged]
    sent += [(one.sent_at, one.size - one.seen_again) for one in circuit.pending]
    lately = [(at, size) for at, size in sent if now - LATELY <= at]
    sizes = sum(size for _, size in lately)
    lasts = now - min((at for at, _ in lately), default=now)
    if sizes < _RATE_OF or lasts < _RATE_OVER:
        return None
    return sizes / lasts.total_seconds()


def _kinds(circuit: Circuit) -> Iterable[KindDown]:
    for one in circuit.causes:
        if one.holds_letters:
            at = None if one.canary_sent_at else one.cools_until
            yield KindDown(
                name=one.cause, letters=one.letters, since=one.held_since, next_canary_at=at
            )


def headline(seen: Seen) -> Headline:
    """The headline of what is seen."""
    return next(found for rule in _RULES if (found := rule(seen)))


def worst(headlines: Mapping[str, Headline]) -> Headline:
    """The headline that needs a person most; with several source queues, it names its own unless all say the same.

    The letters that it counts may belong to any of them, so it says how the others are if only some are kept.
    """
    order = list(Colour)
    name = max(headlines, key=lambda one: order.index(headlines[one].colour))
    found = headlines[name]
    holds_for_all = found.topic in _HOLD_FOR_ALL
    if len(headlines) == 1 or (holds_for_all and {found} == set(headlines.values())):
        return found
    counts_all = not holds_for_all or found.topic is Topic.UNREAD
    beside = f" {_neighbours(name, headlines)}" if counts_all else ""
    named = found.text if found.text.startswith(f"{name} ") else f"{name}: {found.text}"
    return replace(found, text=f"{named}{beside}")


def _neighbours(name: str, headlines: Mapping[str, Headline]) -> str:
    """The state of the queues that share a DLQ with this one, if it can differ from this one's."""
    others = {other: told for other, told in headlines.items() if other != name}
    if headlines[name].topic in _HOLD_FOR_ALL:
        return f"It shares the DLQ with {next(iter(others)) if len(others) == 1 else f'{len(others)} others'}."
    flowing = sum(one.lets_flow for one in others.values())
    if len(others) == 1:
        (other,) = others
        return f"It shares the DLQ with {other}, which {'lets letters go' if flowing else 'waits, too'}."
    lets = "lets" if flowing == 1 else "let"
    return f"It shares the DLQ with {len(others)} others, of which {flowing or 'none'} {lets} letters go."


def _no_passes(seen: Seen) -> Headline | None:
    if seen.passes is Passes.RUN:
        return None
    why, then = _WHY_NO_PASSES[seen.passes]
    return Headline(
        topic=Topic.NO_PASSES,
        colour=Colour.RED,
        text=f"No pass runs by itself: {why}. {_waiting(seen)}",
        then=then,
    )


def _mode(seen: Seen) -> Headline | None:
    if seen.mode is Mode.AUTOMATIC:
        return None
    what = "Dry run: letters are looked at, and none is redriven."
    if seen.mode is Mode.PAUSED:
        what = "The setting `mode` is paused: nothing is redriven."
    return Headline(
        topic=Topic.MODE,
        colour=Colour.YELLOW if seen.backlog else Colour.NONE,
        text=f"{what} {_waiting(seen)}",
        then="Set `mode` to automatic to let letters go.",
    )


def _paused(seen: Seen) -> Headline | None:
    orders = seen.orders
    if not orders.pauses(seen.at):
        return None
    return Headline(
        topic=Topic.PAUSED,
        colour=Colour.YELLOW,
        text=f"Paused {pause_in_words(orders, seen.at)}. {_waiting(seen)}",
        until=orders.paused_until,
        then="`redrive resume` ends the pause.",
    )


def _not_known(seen: Seen) -> Headline | None:
    if seen.backlog is not None:
        return None
    return Headline(
        topic=Topic.NOT_KNOWN,
        colour=Colour.YELLOW,
        text="Not known: the DLQ could not be read.",
        then="`redrive doctor` says what is missing.",
    )


def _nothing_waits(seen: Seen) -> Headline | None:
    if seen.backlog:
        return None
    if seen.out and not seen.is_fresh:
        return None  # they may come back
    if seen.parked:
        return Headline(
            topic=Topic.NOTHING_WAITS,
            colour=Colour.NONE,
            text=f"The DLQ is empty; {seen.parked:,} parked {'letter waits' if seen.parked == 1 else 'letters wait'} "
            "for a person.",
            then="`redrive parked` groups them, `redrive causes` says why they failed.",
        )
    if seen.state is not State.CLOSED:
        return Headline(
            topic=Topic.NOTHING_WAITS,
            colour=Colour.NONE,
            text="No letter waits. The consumer has not been seen to work since it was down: "
            "the next letter goes as a canary.",
        )
    text = "No letter waits: the DLQ is empty."
    if seen.out:
        text = _only_out(seen)
    return Headline(topic=Topic.NOTHING_WAITS, colour=Colour.GREEN, text=text)


def _unread(seen: Seen) -> Headline | None:
    if not (seen.unread or seen.failed_pass):
        return None
    why = f"The last pass failed: {seen.failed_pass}"
    if seen.unread:
        why = f"The source queue can't be read: {seen.unread}"
    return Headline(
        topic=Topic.UNREAD,
        colour=Colour.YELLOW,
        text=f"{why}. {_waiting(seen)}",
        then="`redrive doctor` says what is missing; letters then go back by themselves.",
    )


def _down(seen: Seen) -> Headline | None:
    if seen.state is not State.OPEN:
        return None
    why = f"Consumer likely down{_belief(seen)}{_shown(seen)}"
    then = (
        "Fix the consumer; letters then go back by themselves. "
        f'Fixed already: `redrive close --queue {seen.queue} --reason "..."`.'
    )
    if seen.refusal:
        why = f"{seen.queue} refuses letters: {seen.refusal}"
        then = "`redrive doctor` says what is missing; letters then go back by themselves."
    return Headline(
        topic=Topic.DOWN,
        colour=Colour.RED,
        text=f"{why}. {_waiting(seen)}",
        waits_for=_next_canary(seen),
        then=then,
    )


def _next_canary(seen: Seen) -> str:
    """Return the time of the next canary. After the cool-down, failing live messages delay it for a while."""
    if seen.next_canary_at and seen.next_canary_at > seen.at:
        or_at_once = ", or at once when a live message succeeds" if seen.heeds_live else ""
        return f"Next canary at {_clock(seen.next_canary_at, seen.at)}{or_at_once}"
    if seen.canary_at_latest and seen.canary_at_latest <= seen.at:
        return "Next canary with the next pass"
    return (
        "Next canary with the next pass, or, while live messages fail, once one of them succeeds"
        f"{_latest(seen.canary_at_latest, seen.at)}"
    )


def _canary_is_out(seen: Seen) -> Headline | None:
    if seen.state is not State.HALF_OPEN:
        return None
    if not seen.out:
        return Headline(
            topic=Topic.CANARY,
            colour=Colour.YELLOW,
            text=f"Consumer was down. {_waiting(seen)}",
            waits_for="The next canary goes with the next pass",
        )
    size = f" of {letters(seen.out)}" if seen.out > 1 else ""
    return Headline(
        topic=Topic.CANARY,
        colour=Colour.YELLOW,
        text=f"Consumer was down; a canary{size} is out{_since(seen.out_since, seen.at)}. {_waiting(seen)}",
        waits_for="The canary's outcome is awaited",
        until=seen.out_until,
        then="Nothing: if the canary succeeds, the others follow.",
    )


def _failing(seen: Seen) -> Headline | None:
    is_believed = seen.belief_down is not None and seen.belief_down >= 1 / 2
    has_failed = seen.failed and not seen.succeeded and 2 * seen.failed >= seen.tried
    if not (is_believed or has_failed):
        return None
    return Headline(
        topic=Topic.FAILING,
        colour=Colour.RED,
        text=f"Consumer may be down{_belief(seen)}{_shown(seen)}. {_waiting(seen)}",
        waits_for="Few letters are tried until some succeed" if seen.backlog else "",
        then="Look at the consumer; `redrive causes` says what it reported.",
    )


def _silent(seen: Seen) -> Headline | None:
    """Letters are out for longer than a success takes: nothing shows yet that the consumer is up."""
    since = seen.out_since
    if since is None or seen.is_fresh:
        return None
    out = f"{letters(seen.out)} {_are(seen.out)} out{_since(since, seen.at)}"
    awaited = "The outcome of those that are out is awaited"
    if seen.at <= since + OUTCOME_EXPECTED:
        return Headline(
            topic=Topic.STARTING,
            colour=Colour.NONE,
            text=f"{out}, and {'its' if seen.out == 1 else 'their'} outcome is not due yet. {_waiting(seen)}",
            waits_for=awaited,
            until=seen.out_until,
        )
    return Headline(
        topic=Topic.SILENT,
        colour=Colour.YELLOW,
        text=f"Consumer not seen to work: {out}, and none of them is known to have succeeded. {_waiting(seen)}",
        waits_for=awaited,
        until=seen.out_until,
        then="Look whether the consumer runs.",
    )


def _stuck(seen: Seen) -> Headline | None:
    if not seen.stuck or not seen.backlog:
        return None
    it_is = "it is" if seen.stuck == 1 else "they are"
    return Headline(
        topic=Topic.STUCK,
        colour=Colour.RED,
        text=f"{_most(seen.stuck, seen)} can't be parked: {it_is} too large for the parking lot, or refused by it.",
        then="Let the parking lot take larger messages; `letter.stuck` in the log names the letter and the fault.",
    )


def _blocking(seen: Seen) -> Headline | None:
    if not seen.blocking or not seen.backlog:
        return None
    block = "blocks its message group" if seen.blocking == 1 else "block their message groups"
    return Headline(
        topic=Topic.BLOCKING,
        colour=Colour.RED,
        text=f"{letters(seen.blocking)} {block} until a person acts. {_waiting(seen)}",
        then="`redrive run --dry-run` names what is held as BLOCKED; `redrive park ID` lets its group go on.",
    )


def _crowded(seen: Seen) -> Headline | None:
    since = seen.crowded_since
    if since is None or not seen.backlog or seen.state is not State.CLOSED:
        return None
    beside = f" beside {_pace(seen.live_per_second)} live" if seen.live_per_second else ""
    return Headline(
        topic=Topic.CROWDED,
        colour=Colour.YELLOW,
        text=f"Consumer is at capacity{beside}{_since(since, seen.at)}. {_waiting(seen)}",
        waits_for="Letters go on once its queue holds no more than usual",
        until=since + PATIENCE,
    )


def _together(seen: Seen) -> Headline | None:
    if not seen.fails_together or not seen.backlog or seen.state is not State.CLOSED:
        return None
    return Headline(
        topic=Topic.TOGETHER,
        colour=Colour.YELLOW,
        text=f"Consumer fails whole batches if one message fails. {_waiting(seen)}",
        waits_for="Letters go back one by one",
        then="Let the consumer report which of a batch failed (`ReportBatchItemFailures`).",
    )


def _kind_down(seen: Seen) -> Headline | None:
    if not seen.kinds_down or not seen.backlog:
        return None
    first, *_ = kinds = sorted(seen.kinds_down, key=lambda one: -one.letters)
    names = _short_names(kinds)
    flows = seen.is_fresh and 0 < sum(one.letters for one in kinds) < seen.backlog
    return Headline(
        topic=Topic.KINDS,
        colour=Colour.YELLOW,
        text=f"{'Healthy; ' if flows else ''}{_most_waited_for(kinds, names, seen)}.",
        waits_for=_next_canary_of_kind(first, "it" if len(kinds) == 1 else names[first.name], seen),
        then="Fix what they need: `redrive causes`. They follow by themselves once a canary succeeds.",
    )


def _most_waited_for(kinds: Sequence[KindDown], names: Mapping[str, str], seen: Seen) -> str:
    """The kinds with the most waiting letters, by their `names`, and how many more kinds are down."""
    named = [
        f"{_most_and_those_behind(one.letters, seen)} for {names[one.name]}, down"
        f"{_since(one.since, seen.at)}"
        for one in kinds[:_MOST_NAMED]
        if one.letters
    ]
    unnamed = len(kinds) - max(1, len(named))
    more = f", {several(unnamed, 'more cause')}" if unnamed else ""
    told = "; ".join(named) or _not_looked_at(kinds[0], names[kinds[0].name], seen)
    return f"{told}{more}"


def _next_canary_of_kind(kind: KindDown, name: str, seen: Seen) -> str:
    if kind.next_canary_at is None:
        return "A canary of it is out"
    return f"Next canary of {name} {_canary(kind.next_canary_at, seen.at)}"


def _short_names(kinds: Iterable[KindDown]) -> dict[str, str]:
    """The short name of each cause for a sentence, by its name: the class of its error, if no other has the same."""
    classes = {one.name: re.split(r" in |: ", one.name)[0] for one in kinds}
    alike = Counter(classes.values())
    return {name: quoted(short if alike[short] == 1 else name) for name, short in classes.items()}


def _not_looked_at(kind: KindDown, name: str, seen: Seen) -> str:
    """Letters came after a pass that found none of this kind in the DLQ: they may be of this kind."""
    backlog = seen.backlog or 0
    return (
        f"{letters(backlog)} {_wait(backlog)} for the next pass to look at {_them(backlog)}; "
        f"{name} is down{_since(kind.since, seen.at)}"
    )


def _suspects_wait(seen: Seen) -> Headline | None:
    if not seen.suspects or seen.suspects < (seen.backlog or 0) - seen.suspects:
        return None
    count = min(seen.suspects, seen.backlog or 0)
    return Headline(
        topic=Topic.SUSPECTS,
        colour=Colour.YELLOW,
        text=f"{letters(count)} failed while others succeeded. {_waiting(seen)}",
        waits_for="Those that failed wait for their next try",
        until=seen.suspects_until,
        then="`redrive causes` and `redrive letters --held` show them.",
    )


def _mixture(seen: Seen) -> Headline | None:
    """Return the headline for letters that succeed while as many come back: no consumer is down."""
    if not seen.came_back or not seen.is_fresh or not seen.backlog:
        return None
    return Headline(
        topic=Topic.SUSPECTS,
        colour=Colour.YELLOW,
        text=f"{seen.came_back:,} of the last {letters(seen.of_these)} failed while others succeeded. {_waiting(seen)}",
        waits_for="Letters that were never tried go first",
        then="`redrive causes` says what they fail of.",
    )


def _flowing(seen: Seen) -> Headline | None:
    if not seen.is_fresh or not seen.is_moving:
        return None
    by = f", drained by {_clock(_up(seen.drained_by), seen.at)}" if seen.drained_by else ""
    if seen.rate_per_second and seen.live_per_second is not None:
        both = _pace(seen.rate_per_second + seen.live_per_second)
        text = (
            f"Consumer bears about {both}, {_pace(seen.live_per_second)} of them live: "
            f"{_pace(seen.rate_per_second)} for letters{by}."
        )
    else:
        pace = f", about {_pace(seen.rate_per_second)}" if seen.rate_per_second else ""
        text = f"Healthy: letters go back{pace}; {seen.backlog or 0:,} left{by}."
    return Headline(topic=Topic.FLOWING, colour=Colour.GREEN, text=text)


def _only_out(seen: Seen) -> str:
    return f"The DLQ is empty; {letters(seen.out)} {_are(seen.out)} out, and may come back."


def _starting(seen: Seen) -> Headline:
    if seen.backlog == 0:
        return Headline(topic=Topic.NOTHING_WAITS, colour=Colour.NONE, text=_only_out(seen))
    if seen.backlog and seen.hidden >= seen.backlog:
        all_of_them = f"All {seen.backlog:,} letters of the DLQ are hidden until their time."
        return Headline(
            topic=Topic.STARTING,
            colour=Colour.YELLOW,
            text=all_of_them
            if seen.backlog > 1
            else "The DLQ's one letter is hidden until its time.",
            then="`redrive letters --held` says until when.",
        )
    if seen.keeps_order and seen.hidden:
        return Headline(
            topic=Topic.STARTING,
            colour=Colour.YELLOW,
            text=f"{_most(seen.hidden, seen)} {_are(seen.hidden)} hidden until "
            f"{'its' if seen.hidden == 1 else 'their'} time; those in order behind {_them(seen.hidden)} wait, too.",
            waits_for="The next pass looks at the others",
            then="`redrive letters --held` says until when.",
        )
    return Headline(
        topic=Topic.STARTING,
        colour=Colour.NONE,
        text=_waiting(seen),
        waits_for=f"The next pass looks at {_them(seen.backlog or 0)}",
    )


_RULES: tuple[Callable[[Seen], Headline | None], ...] = (
    _no_passes,
    _mode,
    _paused,
    _not_known,
    _nothing_waits,
    _unread,
    _down,
    _canary_is_out,
    _failing,
    _stuck,
    _blocking,
    _crowded,
    _together,
    _silent,
    _kind_down,
    _suspects_wait,
    _mixture,
    _flowing,
    _starting,
)


def _waiting(seen: Seen) -> str:
    if seen.backlog is None:
        return "How many letters wait is not known."
    # In order, a letter that is out keeps its place in the DLQ.
    waiting = seen.backlog - min(seen.out, seen.backlog) if seen.keeps_order else seen.backlog
    return f"{letters(waiting)} {_wait(waiting)}." if waiting else "No letter waits."


def _belief(seen: Seen) -> str:
    return "" if seen.belief_down is None else f" ({seen.belief_down:.0%})"


def _shown(seen: Seen) -> str:
    """The results of the last letters, to follow a claim about their consumer."""
    if not seen.tried or seen.since is None:
        return ""
    return f": {seen.succeeded:,} of {letters(seen.tried)} succeeded{_since(seen.since, seen.at)}"


def _most(count: int, seen: Seen) -> str:
    backlog = seen.backlog or 0
    return f"{min(count, backlog):,} of {letters(backlog)}"


def _most_and_those_behind(count: int, seen: Seen) -> str:
    if not seen.keeps_order or count >= (seen.backlog or 0):
        return f"{_most(count, seen)} {_wait(count)}"
    return f"{_most(count, seen)}, and those in order behind {_them(count)}, wait"


def pause_in_words(orders: Orders, now: datetime) -> str:
    """The author, end and reason of a pause, to follow "paused"."""
    by = f"by {short_name(orders.by)} " if orders.by else ""
    until = _clock(orders.paused_until, now) if orders.paused_until else "somebody resumes it"
    why = f': "{orders.reason}"' if orders.reason else ", no reason given"
    return f"{by}until {until}{why}"


def short_name(who: str) -> str:
    """The last part of an ARN, which names the person or the role's session."""
    return who.rpartition("/")[2].rpartition(":")[2]


def quoted(name: str) -> str:
    """A cause's name; quoted if it is more than a word, to set it off from the sentence."""
    return f'"{name}"' if " " in name else name


def _pace(per_second: float) -> str:
    return f"{per_second:.0f} a second" if per_second >= 1 else f"{60 * per_second:.0f} a minute"


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _since(moment: datetime | None, now: datetime) -> str:
    return f" since {_clock(moment, now)}" if moment else ""


def _canary(moment: datetime | None, now: datetime) -> str:
    return f"at {_clock(moment, now)}" if moment and moment > now else "with the next pass"


def _latest(moment: datetime | None, now: datetime) -> str:
    """Say the latest time; nothing for a moment that is past."""
    return f", until {_clock(_up(moment), now)} at the latest" if moment and moment > now else ""


def _up(moment: datetime) -> datetime:
    """Round up to the minute: what happens by a time has happened when a clock shows it."""
    return moment + timedelta(seconds=-moment.second % 60, microseconds=-moment.microsecond)


def _clock(moment: datetime | None, now: datetime) -> str:
    """A moment in UTC: "03:12" of the same day, else with the date."""
    if moment is None:
        return "an unknown time"
    return f"{moment:%H:%M}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M}"
