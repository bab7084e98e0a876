"""The protocol by which letters move, as a state machine.

    off ──take the lease──► look ──receive, read the ledger──► met ──► mark ──► decide ─┐
     ▲                       │ ▲                                                        │
     └──give the lease back──┘ └── delete ◄── record ◄── send ◄── announce (FIFO) ◄─────┘

A state holds the messages and where each of them is, the state table, the lease, and two workers: two passes, or a pass
and a person. A step is one call with one ending: done, refused, done but its answer lost, or done twice. The world
takes the other steps: a worker dies, time passes, the consumer tries a message, the table is lost.

**The judgement is free.** Whatever its record says, a letter may go, be parked or stay, and the checker tries each. So
the promises hold for every judgement, today's and any later one. The model forces only what the ledger forces, see
`_choices`.

**The ledger is the real one**: `proof.ledger` calls the code that the function runs. The model itself describes only
what is outside of that code: SQS, DynamoDB, targets, time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from itertools import product
from typing import NamedTuple

from proof import ledger
from proof.ledger import NONE, Held, Message, Table
from smart_redriver.engine.reports.outcomes import Result
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
    Renew,
)
from smart_redriver.engine.triage.ordered import Fate, known_fate

#: Ticks of a worker's life, which the lease covers. In the last one a worker begins nothing new.
LIFE = 2

#: Promises about steps. A state remembers which of them were broken.
REPEATED = "a known send is repeated"
OVERTAKEN = "a letter overtakes an earlier one of its group"
UNACCOUNTED = "a letter leaves and nobody can account for it"


class Kind(Enum):
    """The kind of letters in a world, and where they go."""

    STANDARD = "standard"
    FIFO = "FIFO"
    TARGETS = "targets"
    POSTGRES = "Postgres"


class Mistake(Enum):
    """A protocol that is wrong on purpose: the checker has to find it."""

    DELETE_BEFORE_SEND = "delete before send"
    DELETE_BEFORE_RECORD = "delete before record"
    SHORT_LEASE = "a lease shorter than a pass"
    ANYBODY_GIVES_BACK = "the lease given back by another's hand"
    NO_SALT = "deduplication ids without a salt"
    DISCARD_BEFORE_MARK = "a returned copy discarded before its return is noted"
    REDRIVE_BEFORE_PARK = "the next of a group sent before the one ahead has left"


class Trick(Enum):
    """A trick that the world may play on the protocol. Each time it uses up one of the world's faults."""

    LOST_TABLE = "the table is lost"
    OLD_TABLE = "an old table is restored"
    LATE_CALL = "a dead worker's call is carried out later"
    SLEEP = "the person's machine sleeps beyond its lease"
    REPORTS = "a report, true or forged"
    OLD_ROW = "a row is restored from a backup"


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """The world that is explored.

    Attributes:
        messages: the most messages that there ever are; after that nothing more is sent.
        redrives: how often a letter is redriven at most.
        faults: how often a call is refused, loses its answer or is repeated, or the world plays a trick.
        carries_metadata: messages have room for their metadata; if not, the ledger keeps it.

    """

    name: str
    kind: Kind = Kind.STANDARD
    letters: int = 1
    messages: int = 3
    redrives: int = 2
    faults: int = 1
    workers: tuple[str, str] = ("pass", "pass")
    tricks: frozenset[Trick] = frozenset()
    carries_metadata: bool = True
    mistake: Mistake | None = None

    @property
    def renews(self) -> bool:
        """Whether a letter can be sent to the DLQ once more, to restart its retention: `ports.renewing`."""
        return self.kind in (Kind.STANDARD, Kind.TARGETS) and self.carries_metadata

    @property
    def is_fifo(self) -> bool:
        """Whether letters keep their order and, when they are sent on, their place."""
        return self.kind is Kind.FIFO


class Worker(NamedTuple):
    """A pass or a person: the step that comes next, the ticks until it is killed, and what it has in hand."""

    doing: str = "off"
    left: int = 0
    hand: tuple[Held, ...] = ()


class State(NamedTuple):
    """One state of the world.

    Attributes:
        done: letters that the consumer finished, or that a person deleted.
        table: the item under each message's id.
        holder, lasts: who holds the lease, and for how many more ticks.
        late: a dead worker's call that may still be carried out, and the worker's number.
        backup: an earlier copy of the table.
        swallows: the sends that a FIFO queue remembers for five minutes, each with the message that it became.
        broken: promises that a step broke.

    """

    messages: tuple[Message, ...]
    dlq: tuple[int, ...]
    table: Table
    faults: int
    source: tuple[int, ...] = ()
    lot: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    holder: int = NONE
    lasts: int = 0
    workers: tuple[Worker, Worker] = (Worker(), Worker())
    late: tuple[Worker, int] | None = None
    backup: Table | None = None
    swallows: tuple[tuple[tuple[int, int, int, bool], int], ...] = ()
    broken: frozenset[str] = frozenset()

    def with_worker(self, number: int, worker: Worker) -> State:
        """This state with another worker at this number."""
        return self._replace(
            workers=(worker, self.workers[1]) if number == 0 else (self.workers[0], worker)
        )

    def without_fault(self) -> State:
        """This state with one fault fewer to come."""
        return self._replace(faults=self.faults - 1)

    def with_done(self, letter: int) -> State:
        """This state once a letter is done."""
        return (
            self if letter in self.done else self._replace(done=tuple(sorted({*self.done, letter})))
        )


Steps = Iterator[tuple[str, State]]


def initial(world: World) -> State:
    """Every letter is in the DLQ for the first time."""
    letters = tuple(range(world.letters))
    return State(
        tuple(Message(one) for one in letters), letters, (NONE,) * len(letters), world.faults
    )


def steps(world: World, s: State) -> list[tuple[str, State]]:
    """Every step that can come next, with its name."""
    return [*_of_the_world(world, s), *_of_a_worker(world, s, 0), *_of_a_worker(world, s, 1)]


# What the world does.


def _of_the_world(world: World, s: State) -> Steps:
    for message in s.source[:1] if world.is_fifo else s.source:
        yield from _consumer_tries(world, s, message)
    if s.lasts or any(one.doing != "off" for one in s.workers):
        # A person's command ends its shift in time, unless the machine sleeps.
        is_late = any(
            one.left == 1 and who == "person"
            for one, who in zip(s.workers, world.workers, strict=True)
        )
        if not is_late:
            yield "tick", _after_a_tick(world, s)
        elif s.faults and Trick.SLEEP in world.tricks:
            yield Trick.SLEEP.value, _after_a_tick(world, s.without_fault())
    if s.late is not None:
        yield f"late: {s.late[0].doing}", _after_late_call(world, s, *s.late)
    if s.swallows:
        yield "five minutes pass", s._replace(swallows=())
    if s.faults:
        yield from _tricks(world, s.without_fault())


def _consumer_tries(world: World, s: State, message: int) -> Steps:
    letter = s.messages[message].letter
    gone = s._replace(source=_without(s.source, message))
    failed = gone._replace(dlq=_arrived(world, s.dlq, message))
    yield f"consumer: m{message} succeeds", gone.with_done(letter)
    yield f"consumer: m{message} fails", failed
    if s.faults:
        stays = failed.with_done(letter).without_fault()
        yield f"consumer: m{message} succeeds and is not deleted", stays


def _after_a_tick(world: World, s: State) -> State:
    lasts = max(0, s.lasts - 1)
    for number, worker in enumerate(s.workers):
        if worker.doing == "off":
            continue
        if worker.left <= 1 and world.workers[number] == "pass":  # Lambda kills it
            s = _with_call_in_flight(world, s, number).with_worker(number, Worker())
        else:
            s = s.with_worker(number, worker._replace(left=max(0, worker.left - 1)))
    return s._replace(lasts=lasts, holder=s.holder if lasts else NONE)


def _with_call_in_flight(world: World, s: State, number: int) -> State:
    """The state in which a killed worker's call may be carried out later."""
    worker = s.workers[number]
    if Trick.LATE_CALL not in world.tricks or s.late is not None or not s.faults:
        return s
    if worker.doing not in ("look", "send", "record", "delete"):
        return s
    return s.without_fault()._replace(late=(worker, number))


def _after_late_call(world: World, s: State, worker: Worker, number: int) -> State:
    s = s._replace(late=None)
    if worker.doing == "look":
        return _given_back(world, s, number)
    turn, _ = _turn(worker.hand)
    match worker.doing:
        case "send":
            has_room = len(s.messages) + len(turn) <= world.messages
            return _sent(world, s, turn)[0] if has_room else s
        case "record":
            return _with_records(world, s, turn)
        case _:
            return _deleted(world, s, turn)


def _tricks(world: World, s: State) -> Steps:
    """Yield the events that happen by themselves. Each costs one fault."""
    tricks = world.tricks
    if Trick.LOST_TABLE in tricks:
        yield Trick.LOST_TABLE.value, s._replace(table=(NONE,) * len(s.table))
    if Trick.OLD_TABLE in tricks and s.backup is None:
        yield "a backup of the table is made", s._replace(backup=s.table)
    elif Trick.OLD_TABLE in tricks and s.backup is not None:
        older = (*s.backup, *(NONE,) * (len(s.table) - len(s.backup)))
        yield Trick.OLD_TABLE.value, s._replace(table=older)
    if Trick.OLD_ROW in tricks:
        for one in range(world.letters):
            if one not in s.dlq:
                yield Trick.OLD_ROW.value, s._replace(dlq=_arrived(world, s.dlq, one))
    if Trick.REPORTS in tricks:
        for (message, of), result in product(enumerate(s.messages), Result):
            for key, code in ledger.heard(message, of, result, s.table):
                told = s._replace(table=_put(s.table, key, code))
                yield f"report: m{message} {result.value}", told


# What a worker does.


def _of_a_worker(world: World, s: State, number: int) -> Steps:
    worker, who = s.workers[number], f"{world.workers[number]} {number}"
    if worker.doing == "off":
        if s.holder == NONE:
            yield f"{who} takes the lease", _with_lease(world, s, number)
        return
    yield f"{who} dies", s.with_worker(number, Worker())
    for label, after in _STEPS[worker.doing](world, s, number):
        yield f"{who} {label}", after


def _with_lease(world: World, s: State, number: int) -> State:
    """`StateStore.acquire_lease`: granted if no one holds the lease or it has expired. Each worker is its own owner."""
    lasts = LIFE - 1 if world.mistake is Mistake.SHORT_LEASE else LIFE
    if s.late is not None and s.late[1] == number:
        s = s._replace(late=(s.late[0], NONE))
    return s._replace(holder=number, lasts=lasts).with_worker(number, Worker("look", LIFE))


def _given_back(world: World, s: State, number: int) -> State:
    """`StateStore.release_lease`: only the holder gives the lease back."""
    if s.holder == number or world.mistake is Mistake.ANYBODY_GIVES_BACK:
        return s._replace(holder=NONE, lasts=0)
    return s


def _look(world: World, s: State, number: int) -> Steps:
    worker = s.workers[number]
    yield "gives the lease back", _given_back(world, s, number).with_worker(number, Worker())
    if worker.left <= 1:
        return  # no worker begins anything after the deadline: `Outflow.decide`, `Guard._read`, `Work._work`
    for received in _receives(world, s):
        messages = tuple((one, s.messages[one]) for one in received)
        hand = ledger.recognised(messages, s.table, world.is_fifo)
        met = s.with_worker(number, worker._replace(doing="met", hand=hand))
        yield f"receives {', '.join(f'm{one}' for one in received)}", met


def _receives(world: World, s: State) -> Iterator[tuple[int, ...]]:
    """Messages that can be received together: the front part of a FIFO queue's group, or any messages of other queues.

    A standard queue may hand a message out to two workers at once. Only the lease keeps workers apart.
    """
    if world.is_fifo:
        yield from (s.dlq[:end] for end in range(1, len(s.dlq) + 1))
    else:
        yield from ((one,) for one in s.dlq)
        if len(s.dlq) > 1:
            yield s.dlq
    yield from ((one,) for one in s.lot)


def _met(world: World, s: State, number: int) -> Steps:
    """`Holding.mark_returns`: marks returns; in a FIFO queue, before anything is decided."""
    worker = s.workers[number]
    hand, marks = ledger.with_marks(worker.hand, world.is_fifo)
    marks_some = bool(marks) and world.workers[number] == "pass" and worker.hand[0].message in s.dlq
    if marks_some:
        told = _written(s, marks)
        yield "marks", told.with_worker(number, worker._replace(doing="marked", hand=hand))
        if s.faults:
            yield "marks, refused", _looks_again(s.without_fault(), number)
            yield "marks, answer lost", _looks_again(told.without_fault(), number)
    is_bound_to = world.is_fifo and world.mistake is not Mistake.DISCARD_BEFORE_MARK
    if not (marks_some and is_bound_to):
        yield from _marked(world, s, number)


def _marked(world: World, s: State, number: int) -> Steps:
    hand = s.workers[number].hand
    here, copies = ledger.without_returned_copies(hand, world.is_fifo)
    is_parked = hand[0].message in s.lot
    has_room = len(s.messages) < world.messages
    for decided in _decisions(world, world.workers[number], here, is_parked, has_room):
        words = ", ".join(f"{one.what} m{one.message}" for one in (*copies, *decided))
        yield f"decides: {words or 'stay'}", _next(world, s, number, (*copies, *decided))


@cache
def _decisions(
    world: World, who: str, hand: tuple[Held, ...], is_parked: bool, has_room: bool
) -> tuple[tuple[Held, ...], ...]:
    """All possible decisions on the letters in hand. Letters that are left out stay."""
    cases = [ledger.case_of(one, world.is_fifo) for one in hand]
    if is_parked or who == "person":
        return tuple(_by_themselves(world, who, hand, cases, is_parked, has_room))
    found = []
    for chosen in product(*(_choices(world, case, has_room) for case in cases)):
        decided: list[tuple[Case, Decision]] = list(zip(cases, chosen, strict=True))
        if world.is_fifo:
            decided = ledger.in_their_order(decided)
        words = {case.message_id: type(what).__name__.lower() for case, what in decided}
        words = {one: word for one, word in words.items() if word != "hold"}
        found.append(_as_decided(hand, words))
    return tuple(dict.fromkeys(found))


def _choices(world: World, case: Case, has_room: bool) -> Iterator[Decision]:
    """Possible decisions on a letter in the DLQ: all but those that the ledger forbids (`triage`, `ordered.fate`)."""
    fate = known_fate(case.entry) if case.is_kept and case.entry else None
    is_presumed = case.is_kept and fate is None
    if case.is_replaced or fate is Fate.DONE:
        yield Discard()
        return
    yield Hold(reason=HoldReason.BACKOFF, until=ledger.NOW, strikes=0)
    if is_presumed:
        yield Discard()
    if has_room:
        yield Park(reason=ParkReason.EXPIRING, strikes=0)
    if has_room and world.renews:
        yield Renew(strikes=0)
    if has_room and case.redrives < world.redrives:
        yield Redrive(destination="", delay=timedelta(), strikes=0)


def _by_themselves(
    world: World,
    who: str,
    hand: tuple[Held, ...],
    cases: Sequence[Case],
    is_parked: bool,
    has_room: bool,
) -> Iterator[tuple[Held, ...]]:
    """Acts of a person on letters, and of a pass on parked ones. Letters that are out of reach stay: `out_of_reach`."""
    discards = {one.message_id: "discard" for one in cases if one.is_replaced}
    free = [one for one in cases if not one.is_replaced and not one.is_kept]
    may_replay = all(one.redrives < world.redrives for one in free)
    if who == "pass":
        words = ["park"] if has_room else []  # renewed: sent to the parking lot once more
    else:
        sends = (["replay"] if may_replay else []) + ([] if is_parked else ["park"])
        words = ["delete", *(sends if has_room else [])]
    yield _as_decided(hand, discards)
    for word in words if free else ():
        yield _as_decided(hand, discards | {one.message_id: word for one in free})


def _as_decided(hand: tuple[Held, ...], words: dict[str, str]) -> tuple[Held, ...]:
    by_number = {ledger.number_of(one): word for one, word in words.items()}
    return tuple(
        one._replace(what=by_number[one.message]) for one in hand if one.message in by_number
    )


# The calls of one round: `LiveExecutor.carry_out` and `send_back.forward`.

#: Acts on letters, in the order of `LiveExecutor.carry_out`. All calls for one kind of act come before those for the
#: next.
_CALLS = {
    "discard": ("delete",),
    "park": ("send", "record", "delete"),
    "renew": ("send", "record", "delete"),
    "redrive": ("send", "record", "delete"),
    "bounce": ("record",),
    "replay": ("send", "record", "delete"),
    "delete": ("record", "delete"),
}


@cache
def _calls(world: World, what: str) -> tuple[str, ...]:
    calls = _CALLS[what]
    if "send" in calls and world.mistake is Mistake.DELETE_BEFORE_SEND:
        return "delete", "send", "record"
    if "send" in calls and world.mistake is Mistake.DELETE_BEFORE_RECORD:
        return "send", "delete", "record"
    # A letter of a FIFO queue is announced, and keeps its place.
    return ("announce", "send", "record") if world.is_fifo and what == "redrive" else calls


@cache
def _kinds(world: World) -> tuple[str, ...]:
    if world.mistake is Mistake.REDRIVE_BEFORE_PARK:
        return "discard", "redrive", "park"  # in a FIFO queue, where none is renewed
    return tuple(_CALLS)


def _turn(hand: tuple[Held, ...]) -> tuple[tuple[Held, ...], tuple[Held, ...]]:
    """The letters whose turn it is (those with the same decision as the first in hand), and the others."""
    what = hand[0].what
    return tuple(one for one in hand if one.what == what), tuple(
        one for one in hand if one.what != what
    )


def _next(world: World, s: State, number: int, hand: tuple[Held, ...], after: str = "") -> State:
    """Go on with the call after the last one, for the first kind of letters in hand."""
    for what in _kinds(world):
        turn = tuple(one for one in hand if one.what == what)
        if not turn:
            continue
        others = tuple(one for one in hand if one.what != what)
        calls = _calls(world, what)
        later = calls[calls.index(after) + 1 :] if after in calls else calls
        if later:
            doing = Worker(later[0], s.workers[number].left, (*turn, *others))
            return s.with_worker(number, doing)
        hand, after = _let_go(world, s, turn, others), ""
    return _looks_again(s, number)


def _let_go(
    world: World, s: State, turn: tuple[Held, ...], others: tuple[Held, ...]
) -> tuple[Held, ...]:
    """The letters still in hand. Letters behind one that has not left wait: `LiveExecutor._not_behind`."""
    if not world.is_fifo or world.mistake is Mistake.REDRIVE_BEFORE_PARK:
        return others
    if turn[0].what == "redrive":
        return others
    stays = min(
        (s.dlq.index(one.message) for one in turn if one.message in s.dlq), default=len(s.dlq)
    )
    return tuple(
        one for one in others if one.message not in s.dlq or s.dlq.index(one.message) < stays
    )


def _looks_again(s: State, number: int) -> State:
    return s.with_worker(number, Worker("look", s.workers[number].left))


def _announce(world: World, s: State, number: int) -> Steps:
    """`LiveExecutor._announced`: writes an entry, with a salt, for a letter of a FIFO queue before it is sent."""
    turn, others = _turn(s.workers[number].hand)
    # Two first entries of one letter never have the same time: a table was lost in between.
    salt = 0 if world.mistake is Mistake.NO_SALT else 1 + s.faults
    fresh = tuple(ledger.announced(one, salt) if ledger.lacks_entry(one) else one for one in turn)
    written = [new for new, old in zip(fresh, turn, strict=True) if new != old]
    told = _written(s, written)
    yield "announces", _next(world, told, number, (*fresh, *others), "announce")
    if s.faults and written:
        yield "announces, refused", _looks_again(s.without_fault(), number)
        yield "announces, answer lost", _looks_again(told.without_fault(), number)


def _send(world: World, s: State, number: int) -> Steps:
    turn, others = _turn(s.workers[number].hand)
    s = _checked(world, s, turn)
    done, sent = _sent(world, s, turn)
    if len(done.messages) > world.messages:
        return
    yield "sends", _next(world, done, number, (*sent, *others), "send")
    if world.kind is Kind.TARGETS and turn[0].what == "redrive":
        bounced = tuple(one._replace(what="bounce", new=one.message) for one in turn)
        yield "sends, its target fails", _next(world, s, number, (*bounced, *others))
    if not s.faults:
        return
    s, done = s.without_fault(), done.without_fault()
    yield "sends, refused", _not_sent(world, s, number, turn, others)
    yield "sends, answer lost", _not_sent(world, done, number, turn, others)
    if len(turn) > 1:
        part, some = _sent(world, s, turn[:1])
        yield "sends, others refused", _next(world, part, number, (*some, *others), "send")
    twice, sent = _sent(world, done, turn)
    if world.kind is Kind.STANDARD and len(twice.messages) <= world.messages:
        yield "sends, twice", _next(world, twice, number, (*sent, *others), "send")


def _not_sent(
    world: World, s: State, number: int, turn: tuple[Held, ...], others: tuple[Held, ...]
) -> State:
    """As far as the worker knows, nothing was accepted: the letters stay."""
    return _next(world, s, number, _let_go(world, s, turn, others))


def _checked(world: World, s: State, turn: Sequence[Held]) -> State:
    """The state with the promises that sending these letters breaks."""
    for one in turn:
        if _is_replaced(s, one):
            s = s._replace(broken=s.broken | {REPEATED})
        before = s.dlq[: s.dlq.index(one.message)] if one.message in s.dlq else ()
        earlier = [other for other in before if s.messages[other].letter < one.letter]
        if world.is_fifo and one.what == "redrive" and any(not _is_sent(s, m) for m in earlier):
            s = s._replace(broken=s.broken | {OVERTAKEN})
    return s


def _is_sent(s: State, message: int) -> bool:
    of = s.messages[message]
    return _is_replaced(s, Held(message, of.letter, of.metadata, NONE))


def _is_replaced(s: State, one: Held) -> bool:
    entry = ledger.entry_of(s.table[ledger.key_of(one)])
    return entry is not None and entry.has_replaced(ledger.id_of(one.message))


def _sent(world: World, s: State, turn: Sequence[Held]) -> tuple[State, tuple[Held, ...]]:
    """The destination has accepted the letters. In Postgres they leave their table in the same transaction."""
    sent = []
    for one in turn:
        key = ledger.deduplication_key(one) if world.is_fifo else None
        new = dict(s.swallows).get(key, len(s.messages)) if key else len(s.messages)
        sent.append(one._replace(new=new))
        if new < len(s.messages):
            continue
        metadata = ledger.metadata_after(one, new) if world.carries_metadata else NONE
        s = s._replace(
            messages=(*s.messages, Message(one.letter, metadata)), table=(*s.table, NONE)
        )
        if one.what == "park":
            s = s._replace(lot=(*s.lot, new))
        elif one.what == "renew":
            s = s._replace(dlq=_arrived(world, s.dlq, new))
        elif world.kind is Kind.TARGETS:
            s = s.with_done(one.letter)
        else:
            s = s._replace(source=(*s.source, new))
        if key:
            s = s._replace(swallows=(*s.swallows, (key, new)))
        if world.kind is Kind.POSTGRES:
            s = _gone(s, one.message)
    return s, tuple(sent)


def _record(world: World, s: State, number: int) -> Steps:
    """`_Forwarder._record`. If the record is refused, the letters are still deleted, and the log says so.

    A person's `delete` stops then: it records first, so that a message left behind is a copy to discard.
    """
    turn, others = _turn(s.workers[number].hand)
    for one in turn:
        if one.what == "delete":  # the person's file has the letter by now, see `verbs.delete`
            s = s.with_done(one.letter)
    done = _with_records(world, s, turn)
    yield "records", _next(world, done, number, (*turn, *others), "record")
    if not s.faults:
        return
    told = tuple(one._replace(is_told=True) for one in turn)
    for ending, table in (("refused", s), ("answer lost", done)):
        after = table.without_fault()
        if turn[0].what == "delete":
            yield f"records, {ending}", _looks_again(after, number)
        else:
            yield f"records, {ending}", _next(world, after, number, (*told, *others), "record")


def _with_records(world: World, s: State, turn: Sequence[Held]) -> State:
    """The table after copies of letters were accepted: with entries, and with the metadata that copies can't carry."""
    keeps, settles_at_once = world.is_fifo, world.kind is Kind.TARGETS
    entries = [ledger.recorded(one, keeps=keeps, settles_at_once=settles_at_once) for one in turn]
    s = _written(s, entries)
    for one in turn:
        if not world.carries_metadata and one.what in ("redrive", "replay", "park"):
            s = s._replace(table=_put(s.table, one.new, ledger.metadata_after(one, one.new)))
    return s


def _written(s: State, written: Sequence[Held]) -> State:
    """The table with the entries of these letters."""
    for one in written:
        entry = ledger.entry_of(one.entry)
        assert entry is not None  # noqa: S101
        s = s._replace(table=_put(s.table, ledger.number_of(entry.original_id), one.entry))
    return s


def _delete(world: World, s: State, number: int) -> Steps:
    turn, others = _turn(s.workers[number].hand)
    if not all(_is_accounted(s, one) for one in turn):
        s = s._replace(broken=s.broken | {UNACCOUNTED})
    yield "deletes", _next(world, _deleted(world, s, turn), number, (*turn, *others), "delete")
    if s.faults:
        left = s.without_fault()
        yield "deletes, refused", _next(world, left, number, (*turn, *others), "delete")


def _deleted(world: World, s: State, turn: Sequence[Held]) -> State:
    for one in turn:
        # In Postgres, a row that is still there after an accepted send is a letter of its own, and stays.
        if one.what == "delete" or world.kind is not Kind.POSTGRES:
            s = _gone(s, one.message)
    return s


def _is_accounted(s: State, one: Held) -> bool:
    """Whether the ledger says what became of the letter, or the log says that this could not be recorded."""
    entry = ledger.entry_of(s.table[ledger.key_of(one)])
    me = ledger.id_of(one.message)
    if entry is not None and (entry.has_replaced(me) or me in (entry.kept_id, entry.current_id)):
        return True
    is_copy = any(s.messages[m].letter == one.letter for m in s.dlq if m != one.message)
    return one.is_told or (one.what == "discard" and is_copy)


_STEPS: dict[str, Callable[[World, State, int], Steps]] = {
    "look": _look,
    "met": _met,
    "marked": _marked,
    "announce": _announce,
    "send": _send,
    "record": _record,
    "delete": _delete,
}


def _gone(s: State, message: int) -> State:
    return s._replace(dlq=_without(s.dlq, message), lot=_without(s.lot, message))


def _without(messages: tuple[int, ...], message: int) -> tuple[int, ...]:
    return tuple(one for one in messages if one != message)


def _arrived(world: World, dlq: tuple[int, ...], message: int) -> tuple[int, ...]:
    """A message that arrives goes to the end of a FIFO queue; other queues have no order."""
    return (*dlq, message) if world.is_fifo else tuple(sorted((*dlq, message)))


def _put(table: Table, key: int, code: int) -> Table:
    return (*table[:key], code, *table[key + 1 :])
