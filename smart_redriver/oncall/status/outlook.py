"""The outlook of one source queue.

It has the re-driver's next step and next look, the circuits of causes, and the likely fate of letters that a person
sends back now. Pure: it applies the rules of a pass to the queue as it is seen and to its circuit's item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import KindDown, Passes, Seen, Topic, headline, quoted
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Judged
from smart_redriver.engine.model.causes import COUNTED_FOR, CauseCircuit
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.engine.model.permit import (
    allow,
    cools_until,
    has_cooled_down,
    heeds_live,
    spares_until,
)
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.oncall.terminal.words import ago, span, stamp

#: Status names this many causes; `redrive causes` names all.
MOST_IN_A_LINE = 3


def causes_now(circuit: Circuit, now: datetime) -> list[CauseCircuit]:
    """Return held causes, and those that mostly fail while others succeed: held ones first, then by failures."""
    known = [one for one in circuit.causes if one.holds_letters or _mostly_fails(one, now)]
    return sorted(known, key=lambda one: (not one.is_held, -one.failed, one.cause))


def cause_to_json(one: CauseCircuit) -> dict[str, Any]:
    """A circuit by cause as `--json` shows it."""
    return {
        "cause": one.cause,
        "held_since": stamp(one.held_since),
        "next_canary_at": stamp(_next_canary_at(one)),
        "canary_is_out": one.canary_sent_at is not None,
        "canaries_failed": one.canaries_failed,
    }


def causes_in_words(circuit: Circuit, now: datetime, *, is_idle: bool) -> str:
    """One line with the causes worth mentioning; empty if there are none.

    `is_idle`: the DLQ has no letter that could be a canary.
    """
    known = causes_now(circuit, now)
    told = [
        f"{quoted(one.cause)} {held_in_words(one, now, is_idle=is_idle)}"
        if one.is_held
        else f"{quoted(one.cause)} flowing, {letters(one.failed)} failed while others succeeded"
        for one in known[:MOST_IN_A_LINE]
    ]
    if more := len(known) - len(told):
        told.append(f"{more} more: `redrive causes`")
    return "; ".join(told)


def held_in_words(one: CauseCircuit, now: datetime, *, is_idle: bool = False) -> str:
    """Describe the state of a held cause: "held since 03:12, next canary in 4 min, 6 failed"."""
    at = _next_canary_at(one)
    if is_idle and one.canary_sent_at is None:
        canary = "no letter of it is in the DLQ"
    elif at is None:
        canary = "a canary is out" if one.canary_sent_at else "next canary with the next pass"
    else:
        canary = f"next canary {'in ' + span(at - now) if at > now else 'with the next pass'}"
    failed = f", {one.canaries_failed:,} failed" if one.canaries_failed else ""
    since = f" {since_when(one.held_since, now)}" if one.held_since else ""
    return f"held{since}, {canary}{failed}"


def since_when(moment: datetime, now: datetime) -> str:
    """Say since when, in UTC: "since 03:12" on the same day, else with the date."""
    is_today = moment.date() == now.date()
    return f"since {moment:%H:%M}" if is_today else f"since {moment:%Y-%m-%d %H:%M}"


def _mostly_fails(one: CauseCircuit, now: datetime) -> bool:
    """Whether more failed than succeeded. Counts of letters are no measure: a pass sees all of a cause or only some."""
    is_recent = one.counted_at is not None and now <= one.counted_at + COUNTED_FOR
    return is_recent and one.failed > one.succeeded


def _next_canary_at(one: CauseCircuit) -> datetime | None:
    """Return the time when the next canary may go; None if that is unknown, for example while one is out."""
    return one.cools_until if one.is_held and one.canary_sent_at is None else None


def next_step(
    settings: Settings,
    circuit: Circuit,
    orders: Orders,
    dlq: QueueFacts | None,
    now: datetime,
    *,
    hears_live: bool = True,
) -> tuple[str, datetime | None]:
    """The next step, and from when on if that is known.

    Args:
        orders: the orders of the DLQ's first source queue, which pause all its source queues.
        dlq: None if the DLQ could not be read.
        hears_live: whether passes count live messages at all.

    """
    if settings.mode is not Mode.AUTOMATIC:
        return f"nothing: the setting `mode` is {settings.mode.value}", None
    if orders.pauses(now):
        end = orders.paused_until
        return "paused; goes on by itself" if end else "paused until `redrive resume`", end
    if circuit.pending:
        first = min(circuit.pending, key=lambda one: one.due_at)
        step = f"the verdict on batch {first.id} ({letters(first.size)})"
        return f"{step}, as soon as it is certain", None
    if dlq is not None and not dlq.depth:
        return "nothing: the DLQ is empty", None
    if circuit.state is State.OPEN:
        return _next_trial(settings, circuit, now, hears_live=hears_live)
    permit = allow(circuit, settings, now)
    step = f"redrive up to {letters(permit.limit)} ({permit.reason}) with the next pass"
    if any(one.is_held for one in circuit.causes):
        step += "; of a cause that is held its canary alone"
    return step, None


def _next_trial(
    settings: Settings, circuit: Circuit, now: datetime, *, hears_live: bool
) -> tuple[str, datetime | None]:
    """The canary of an OPEN circuit, and from when on it may go."""
    if not has_cooled_down(circuit, settings, now):
        or_live = "live messages succeed or " if hears_live and heeds_live(circuit, now) else ""
        step = f"a canary, once {or_live}the cool-down is over"
        return step, cools_until(circuit, settings)
    if not hears_live or now >= spares_until(circuit, settings, now):
        return "a canary with the next pass", None
    step = "a canary with the next pass or, while live messages fail, once one of them succeeds"
    return step, None


def looks_every(
    settings: Settings, circuits: Sequence[Circuit], dlq: QueueFacts | None, now: datetime
) -> timedelta:
    """Return the time between two looks: about a minute while there is something to wait for."""
    idle = timedelta(minutes=settings.schedule_minutes)
    if settings.mode is not Mode.AUTOMATIC or (circuits and circuits[0].orders.pauses(now)):
        return idle
    has_letters = dlq is None or dlq.depth > 0
    is_busy = any(
        circuit.pending or (has_letters and circuit.state is not State.CLOSED)
        for circuit in circuits
    )
    return min(idle, timedelta(seconds=BUSY_SECONDS)) if is_busy else idle


def is_known(judged: Judged) -> bool:
    """Whether the batch's time and size are known: the first edition kept neither."""
    return judged.sent_at.timestamp() > 0


def last_canary(circuit: Circuit) -> Judged | None:
    """The canary that was judged last, as far back as the last change of the circuit's state shows."""
    generation = circuit.generation
    if circuit.state is not State.HALF_OPEN:
        generation -= (
            1  # an OPEN circuit sends no canary: HALF_OPEN sent those that were judged before
        )
        if circuit.reason.startswith("forced") or (
            circuit.state is State.OPEN and circuit.consecutive_opens < 2
        ):
            return None
    return next((one for one in reversed(circuit.judged) if one.generation == generation), None)


#: A headline about one of these says that letters fail.
_FAIL = frozenset({Topic.DOWN, Topic.FAILING, Topic.CANARY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The letters of a plan, for a forecast. A circuit knows nothing of letters that a person sent.

    `groups`: how many letters there are by cause; empty for a whole DLQ, where passes have counted them. `came_back`:
    by queue, when those that were looked at were last sent. `part`: how many were looked at; None for all.
    """

    groups: Mapping[str, int] = field(default_factory=dict)
    came_back: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    part: int | None = None


def forecast(seen: Mapping[str, Seen], circuits: Sequence[Circuit], basis: Basis) -> Iterator[str]:
    """Sentences on what to expect for letters that are sent now."""
    emptied = {one.queue: _emptied(one) for one in circuits}
    for name, one in seen.items():
        kinds = [*one.kinds_down, *emptied.get(name, ())]
        of = f" of {name}" if len(seen) > 1 else ""
        yield from _forecast_of_queue(
            of, one, kinds, basis.groups, _expected(one, basis.came_back.get(name, ()), basis.part)
        )
    at = max(one.at for one in seen.values())
    for cause in (cause for circuit in circuits for cause in circuit.causes):
        if cause.cause in basis.groups and cause.succeeded and cause.counted_at:
            told = f"{cause.succeeded:,}, counted {ago(cause.counted_at, at)}"
            yield f"Letters of {cause.cause} that succeeded after they had failed: {told}."


def _emptied(circuit: Circuit) -> list[KindDown]:
    """Causes that are held although their last letter was parked: no canary shows whether they are up again."""
    held = (one for one in circuit.causes if one.is_held and not one.holds_letters)
    return [KindDown(name=one.cause, letters=0, since=one.held_since) for one in held]


def _forecast_of_queue(
    of: str,
    seen: Seen,
    kinds: Iterable[KindDown],
    groups: Mapping[str, int],
    expected: str,
) -> Iterator[str]:
    all_of_them = sum(groups.values()) if groups else seen.backlog or 0
    of_kinds = {
        kind: groups.get(kind.name) if groups else min(kind.letters, all_of_them) for kind in kinds
    }
    down = {kind: count for kind, count in of_kinds.items() if count}
    if not down or sum(down.values()) < all_of_them:
        yield f"Expected{' of the others' if down else ''}{of}: {expected}"
    for kind, count in down.items():
        yield _forecast_of_kind(kind, count, seen.at)


def _forecast_of_kind(kind: KindDown, count: int, now: datetime) -> str:
    since = f" {since_when(kind.since, now)}" if kind.since else ""
    fail = "fails" if count == 1 else "fail"
    told = f"Expected: the {letters(count)} of {quoted(kind.name)} {fail} again"
    if kind.letters:
        return f"{told}, as that is down{since}."
    return f"{told}, unless that was mended: no canary of it has succeeded{since}."


def _expected(seen: Seen, came_back: Sequence[datetime], part: int | None) -> str:
    # A person's letters go even if something keeps passes from acting.
    unkept = replace(seen, mode=Mode.AUTOMATIC, passes=Passes.RUN, orders=Orders())
    topic = headline(unkept).topic
    if topic is Topic.DOWN and seen.refusal:
        return f"they are refused again, unless that was mended: {seen.refusal}."
    if topic in _FAIL:
        return f"they fail again, as long as this holds: {topic.value}."
    last = f"letters sent {ago(seen.succeeded_at, seen.at)}" if seen.succeeded_at else ""
    if since := [at for at in came_back if seen.succeeded_at and at > seen.succeeded_at]:
        told = _came_back(since, part, seen.at)
        return f"not known. {last.capitalize()} succeeded, but {told}."
    if seen.is_fresh:
        return f"they succeed, as did {last}.{_looked_at(part)}"
    if last:
        return f"not known. The last that are known to have succeeded are {last}."
    return "not known. No letter is known to have succeeded."


def _came_back(sent: Sequence[datetime], part: int | None, now: datetime) -> str:
    of = "these" if part is None else f"the {part:,} looked at"
    were = "were sent since, the last" if len(sent) > 1 else "was sent since,"
    return f"{len(sent):,} of {of} {were} {ago(max(sent), now)}, and came back"


def _looked_at(part: int | None) -> str:
    if part is None:
        return ""
    return f" This rests on {part:,} of these letters."


def gone_since(circuits: Iterable[Circuit], since: datetime, *, keeps_order: bool) -> int:
    """Count letters sent since then that are not known to be in the DLQ, as far as the circuits remember.

    `keeps_order`: a letter keeps its place in the DLQ until its outcome is known.
    """
    known = list(circuits)
    sent = [one for circuit in known for one in circuit.batches if one.sent_at >= since]
    pending = [one for circuit in known for one in circuit.pending if one.sent_at >= since]
    keep_their_place = sum(one.unknown for one in pending) if keeps_order else 0
    return sum(one.size - one.seen_again for one in sent) - keep_their_place


def became_of(circuits: Iterable[Circuit], since: datetime) -> str:
    """A sentence on the letters that passes sent since then; empty if none was sent."""
    sent = back = unknown = 0
    for circuit in circuits:
        for judged in circuit.judged:
            if judged.sent_at >= since:
                sent, back = sent + judged.size, back + judged.seen_again
        for batch in circuit.pending:
            if batch.sent_at >= since:
                sent, back = sent + batch.size, back + max(batch.seen_again, batch.heard.failed)
                unknown += batch.unknown
    if not sent:
        return ""
    done = max(0, sent - back - unknown)
    parts = [f"{done:,} succeeded" if done else "", f"{back:,} failed again" if back else ""]
    parts += [f"of {unknown:,} nothing is known yet" if unknown else ""]
    return f"{letters(sent)} sent back: {', '.join(part for part in parts if part)}."
