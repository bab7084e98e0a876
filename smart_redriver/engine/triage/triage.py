"""The decision about one letter. All decisions about letters are made here and nowhere else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY, MAX_VISIBILITY
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import is_mixed
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
from smart_redriver.engine.triage.retention import is_expiring

#: A letter with enough strikes is tried this often until its last chance: an outage of what it needs may be over.
TRIES_BEFORE_LAST_CHANCE = 8
#: The pauses after tries alone are shorter by up to this share, see `_pause_between_tries`.
SOONER = 0.3
GOLDEN_RATIO = 0.618034

#: After this many times `max_attempts` redrives, a suspect with fewer strikes is tried as rarely: it has been alone.
IN_VAIN = 2

#: One strike can be bad luck, or the first sign of an outage. A letter that failed twice while others succeeded is
#: parked at its last chance even if no message is left to compare it with.
STRIKES_THAT_CONVICT = 2

#: If many messages fail while others succeed, one kind may be broken, which takes people longer to fix than an outage:
#: the time to the last chance is multiplied by this.
PATIENCE_IN_A_MIX = 2

#: A suspect that succeeded speaks for suspects that are left alone for this many times `last_chance_seconds`: an outage
#: that began after its success can last longer than the time to their last chance.
LUCK_LASTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The facts about the queues that triage needs.

    Attributes:
        destinations: where letters can go back to, by ARN or URL, with the largest message that each accepts, in bytes.
        home: the destination of a letter that does not say where it came from.
        retention: how long the DLQ keeps a message from its first send on.
        margin: the least time to expiry at which a letter may stay in the DLQ.
        time_to_fail: from a message's first receive to its move to the DLQ.
        is_fifo: the queues keep messages of a group in order.
        can_renew: a letter can be sent to the DLQ once more, for a new clock.
        longest_delay: how long a sent letter can be kept from its consumer.
        ahead: how long before its turn within the rate a letter may be admitted.
        is_source_empty: the source queue shows no message at all.

    """

    destinations: Mapping[str, int]
    home: str
    retention: timedelta
    margin: timedelta
    time_to_fail: timedelta
    is_fifo: bool = False
    can_renew: bool = False
    is_source_empty: bool = False
    longest_delay: timedelta = MAX_SQS_DELAY
    ahead: timedelta = MAX_SQS_DELAY


def triage(
    case: Case, circuit: Circuit, terms: Terms, settings: Settings, now: datetime, roll: float
) -> Decision:
    """Decide about one letter, as if the circuit's permit were unlimited.

    Args:
        roll: uniform in [0, 1), for the backoff's jitter.

    """
    if case.is_replaced:
        return Discard()
    strikes = case.strikes(circuit)
    if reason := _reason_to_park(case, strikes, circuit, terms, settings, now):
        return Park(reason=reason, strikes=strikes)
    if circuit.pending_batch(case.batch):
        return hold_unless_expiring(case, strikes, HoldReason.AWAITING_VERDICT, terms, now)
    is_doubtful = strikes == 0 and case.is_doubtful(circuit)
    attempts = _attempts(case, strikes, is_doubtful=is_doubtful)
    not_before, why = _earliest(case, strikes, attempts, circuit, terms, settings, now, roll)
    delay = max(not_before - now, timedelta())
    if delay > terms.longest_delay:
        until = not_before - (terms.longest_delay if why is HoldReason.BACKOFF else timedelta())
        return hold_unless_expiring(
            case, strikes, why, terms, now, until=until, not_before=not_before
        )
    return Redrive(
        destination=case.source_arn or terms.home,
        delay=delay,
        strikes=strikes,
        is_doubtful=is_doubtful,
        is_expiring=is_expiring(case.letter, terms.retention, terms.margin, now),
    )


def hold_unless_expiring(
    case: Case,
    strikes: int,
    reason: HoldReason,
    terms: Terms,
    now: datetime,
    *,
    until: datetime | None = None,
    not_before: datetime | None = None,
) -> Hold | Park | Renew:
    """Hold a letter that does not go in this pass; save it if it could expire meanwhile.

    Args:
        until: the letter is hidden until then; None releases it at once.
        not_before: see `Hold`.

    """
    if is_expiring(case.letter, terms.retention, terms.margin, now):
        return saved(case, strikes, terms)
    latest = min(
        now + MAX_VISIBILITY - timedelta(minutes=1),
        case.letter.sent_at + terms.retention - terms.margin,
    )
    return Hold(
        reason=reason, until=min(until or now, latest), strikes=strikes, not_before=not_before
    )


def saved(case: Case, strikes: int, terms: Terms) -> Park | Renew:
    """Give a letter near its expiry a new clock: in the DLQ if possible, or else in the parking lot."""
    if (case.source_arn or terms.home) not in terms.destinations:
        return Park(reason=ParkReason.UNKNOWN_SOURCE, strikes=strikes)
    if terms.can_renew and case.letter.unfit is None:
        return Renew(strikes=strikes)
    return Park(reason=ParkReason.EXPIRING, strikes=strikes)


def _reason_to_park(
    case: Case, strikes: int, circuit: Circuit, terms: Terms, settings: Settings, now: datetime
) -> ParkReason | None:
    if case.letter.unfit is not None:
        return ParkReason(case.letter.unfit.value)
    destination = case.source_arn or terms.home
    if destination not in terms.destinations:
        return ParkReason.UNKNOWN_SOURCE
    if case.letter.size > terms.destinations[destination]:
        return ParkReason.UNDELIVERABLE
    if case.entry is not None and case.entry.is_permanent:
        return ParkReason.PERMANENT
    if _has_had_its_last_chance(case, strikes, circuit, settings):
        return ParkReason.MAX_ATTEMPTS
    first = case.entry.first_redrive if case.entry else None
    if first is not None and now >= first + timedelta(seconds=settings.give_up_seconds):
        return ParkReason.GAVE_UP
    return None


def _has_had_its_last_chance(
    case: Case, strikes: int, circuit: Circuit, settings: Settings
) -> bool:
    """Whether a suspect came back from a try that was late enough to be its last.

    Two strikes are enough if it failed alone, on a quiet queue. No try alone is its last while suspects have succeeded
    lately.
    """
    entry = case.entry
    if entry is None:
        return False
    first_strike = entry.first_strike
    if settings.last_chance_seconds and (
        first_strike is None
        or case.last_try is None
        or case.last_try < first_strike + _last_chance(case.last_try, circuit, settings)
    ):
        return False
    was_alone = case.was_alone(circuit)
    if was_alone and _may_be_chance(case, circuit, settings):
        return False
    is_convicted = was_alone and strikes >= STRIKES_THAT_CONVICT
    return strikes >= settings.max_attempts or (
        is_convicted and case.redrives >= settings.max_attempts
    )


def _last_chance(last_try: datetime, circuit: Circuit, settings: Settings) -> timedelta:
    """How long after its first strike a letter that was last tried at `last_try` has its last chance."""
    last_chance = timedelta(seconds=settings.last_chance_seconds)
    return last_chance * (PATIENCE_IN_A_MIX if is_mixed(circuit, last_try, settings) else 1)


def _may_be_chance(case: Case, circuit: Circuit, settings: Settings) -> bool:
    """Whether suspects succeeded so recently that its strikes may be bad luck, and its last failures an outage."""
    lately = LUCK_LASTS * timedelta(seconds=settings.last_chance_seconds)
    shown = circuit.suspect_succeeded_at
    return shown is not None and case.last_try is not None and case.last_try < shown + lately


def _earliest(
    case: Case,
    strikes: int,
    attempts: int,
    circuit: Circuit,
    terms: Terms,
    settings: Settings,
    now: datetime,
    roll: float,
) -> tuple[datetime, HoldReason]:
    """When the letter may be tried again, and what it waits for until then."""
    entry = case.entry
    if entry is not None and entry.not_before is not None:
        not_before = entry.not_before
    else:
        not_before = failed_at(case, terms, now) + backoff(attempts, roll, settings)
    if not _awaits_its_last_chance(case, strikes, settings):
        return not_before, HoldReason.BACKOFF
    chance = ((entry.first_strike if entry else None) or now) + _last_chance(now, circuit, settings)
    pause = _pause_between_tries(case, circuit, settings)
    patient = failed_at(case, terms, now) + pause
    if chance > not_before:
        # A try shortly before its last chance would only put that off.
        patient = chance if chance < patient + pause / 2 else patient
    elif case.last_try is None or case.last_try < chance:
        return not_before, HoldReason.BACKOFF
    # Otherwise it has had its last chance without a conviction: the tries go on, no more often than before.
    if patient > not_before:
        return patient, HoldReason.LAST_CHANCE
    return not_before, HoldReason.BACKOFF


def _awaits_its_last_chance(case: Case, strikes: int, settings: Settings) -> bool:
    """Whether a suspect lacks one strike at most, or was tried so often in vain that it is tried more rarely."""
    is_nearly_convicted = strikes >= settings.max_attempts - 1
    is_in_vain = case.redrives >= IN_VAIN * settings.max_attempts
    return strikes > 0 and (is_nearly_convicted or is_in_vain)


def _pause_between_tries(case: Case, circuit: Circuit, settings: Settings) -> timedelta:
    """How long a suspect waits until its next try.

    One that was alone must not keep in step with an outage that recurs: its pauses differ. Letters of one batch wait
    equally long. Multiples of the golden ratio are spread evenly, whatever number of them is taken (Knuth, TAOCP 3,
    6.4).
    """
    pause = timedelta(seconds=settings.last_chance_seconds) / TRIES_BEFORE_LAST_CHANCE
    if not case.was_alone(circuit):
        return pause
    return pause * (1 - (case.batch or 0) * GOLDEN_RATIO % 1 * SOONER)


def _attempts(case: Case, strikes: int, *, is_doubtful: bool) -> int:
    """How often the backoff has doubled: with each strike, or with each further failed try of a doubtful letter."""
    return max(strikes, case.redrives - 1) if strikes or is_doubtful else 0


def failed_at(case: Case, terms: Terms, now: datetime) -> datetime:
    """When the letter failed last, as far as is known: SQS does not say when it moved the letter to the DLQ.

    If unknown, it is the first receive or the redrive plus the time in which the queue's settings let a message fail.
    If a consumer changes visibility timeouts, that may take longer; the backoff is then somewhat shorter.
    """
    letter = case.letter
    if letter.failed_at is not None:
        return min(now, max(letter.failed_at, case.last_try or letter.failed_at))
    began = case.last_try or _before_renewal(case) or letter.first_received_at or letter.sent_at
    return min(now, began + terms.time_to_fail)


def _before_renewal(case: Case) -> datetime | None:
    """When a letter that has metadata but was never redriven was first sent: it was renewed since."""
    metadata = case.letter.metadata
    return metadata.first_seen if metadata is not None and not case.redrives else None


def backoff(strikes: int, roll: float, settings: Settings) -> timedelta:
    """How long after its last failure a letter is tried again: `base_delay x 2^strikes`, capped, upper half jittered.

    Args:
        strikes: returns that speak against the letter; one from a failed batch says nothing about it.
        roll: uniform in [0, 1). Half of the delay is sure, so that a letter never goes back at once, and half
            is spread, so that letters that failed together are not tried together ("equal jitter",
            https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

    """
    # 2^40 s is beyond every cap; a larger exponent would only overflow.
    full = min(settings.base_delay_seconds * 2 ** min(strikes, 40), settings.max_delay_seconds)
    return timedelta(seconds=round(full * (0.5 + roll / 2)))
