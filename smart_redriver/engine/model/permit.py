"""How many letters a pass may redrive now: what each state of the circuit lets through, and until when. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.verdict import GROWTH_WHERE_VOUCHED

#: A verdict of success speaks for the next batch for so long: what it rests on is some minutes old already.
FRESH = timedelta(minutes=3)

#: A batch of which nothing is known for so long is in doubt: a probe may go beside it.
DOUBT = timedelta(minutes=5)

#: Where the consumer flaps, it is trusted for so much of the time for which it was up the last time. What follows
#: later is likely to meet its next bad phase, and smaller by so much.
TRUSTED_SHARE = 0.6
LATE_SHARE = 4

#: Batches that may be out at a time, however few letters each has: they are in the circuit's item, 300 bytes each, and
#: an item has 400 KB at most. Of a trickle whose verdicts take a day, a batch goes each minute.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MOST_PENDING = 500

#: So many full batches in a row that failed right after a success show that the consumer is up and down.
FLAPS_THAT_SHOW = 2


#: Where a mix was shown, it holds for such a share of `last_chance_seconds`: two tries of a suspect.
MIX_LASTS = 0.25

#: A consumer that has reported within this reports, it is taken, of what is sent to it now.
REPORTS_EXPECTED = timedelta(hours=24)

#: Where a letter came back that had been reported as succeeded, reported successes count for nothing for so long.
DISBELIEF = timedelta(hours=1)

#: So long after letters were sent, or the last report was read, it is worth listening every few seconds.
LISTENING = timedelta(minutes=1)


#: However many hints come, canaries go for them so far apart.
HINTED_EVERY = timedelta(minutes=1)

#: A hint that found no letter to try it with is forgotten after this: what dies later says more.
HINT_LASTS = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Somebody says that the consumer is well again: `by` names them. It may not be true."""

    at: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """How many letters a pass may redrive, and why not more. A trial is small, and goes without delay.

    `is_hinted`: it is a canary that goes before its time, because somebody says that the consumer is well again.
    """

    limit: int
    reason: str
    is_canary: bool = False
    is_probe: bool = False
    is_hinted: bool = False

    @property
    def is_trial(self) -> bool:
        """Whether it is sent to see how the consumer is, before more follows."""
        return self.is_canary or self.is_probe


def cool_down(consecutive_opens: int, settings: Settings, roll: float) -> timedelta:
    """How long the circuit stays OPEN: doubles with every consecutive opening up to the maximum, and is jittered.

    Args:
        consecutive_opens: 1 for the first.
        roll: uniform in [0, 1). A quarter of the time is left to chance, so that it can't fall into step with
            a consumer that flaps.

    """
    doublings = min(max(0, consecutive_opens - 1), 32)
    seconds = min(settings.cool_down_seconds * 2**doublings, settings.max_cool_down_seconds)
    return timedelta(seconds=round(seconds * (0.75 + roll / 4)))


def cause_cool_down(canaries: int, settings: Settings, roll: float) -> timedelta:
    """How long letters of one cause wait for their next canary, see `cool_down`.

    A consumer that is well can bear one letter oftener than one that is down: half as long at most.
    """
    longest = max(1, settings.max_cool_down_seconds // 2)
    return min(cool_down(canaries, settings, roll), timedelta(seconds=longest))


def cools_until(circuit: Circuit, settings: Settings) -> datetime:
    """When an OPEN circuit may try a canary; a person's opening, or one of the first edition, drew no jitter."""
    drawn = circuit.cools_until
    return drawn or circuit.changed_at + cool_down(circuit.consecutive_opens, settings, 1.0)


def spares_until(circuit: Circuit, settings: Settings) -> datetime:
    """Until when an OPEN circuit that has cooled down tries no canary while live messages fail."""
    return circuit.changed_at + timedelta(seconds=settings.max_cool_down_seconds)


def has_cooled_down(circuit: Circuit, settings: Settings, now: datetime) -> bool:
    """Whether an OPEN circuit may try a canary."""
    return now >= cools_until(circuit, settings)


def allow(
    circuit: Circuit,
    settings: Settings,
    now: datetime,
    live: LiveOutcome = LiveOutcome.UNSEEN,
    hint: Hint | None = None,
) -> Permit:
    """How many letters may be redriven now, with what live traffic shows and somebody says while the circuit is OPEN."""
    match circuit.state:
        case State.CLOSED:
            return _allow_closed(circuit, settings, now)
        case State.OPEN:
            return _allow_open(circuit, settings, now, live, hint)
        case State.HALF_OPEN if circuit.pending:
            return Permit(limit=0, reason="HALF_OPEN, the canary awaits its verdict")
        case _:
            return Permit(limit=_canary(circuit, settings), reason="a canary", is_canary=True)


def _canary(circuit: Circuit, settings: Settings) -> int:
    """Letters in a canary; the next one after a success is a batch where the consumer is known to flap.

    Such a consumer is up for minutes: when two small canaries have been judged, it is down again.
    """
    if circuit.flaps < FLAPS_THAT_SHOW or circuit.success_count == 0:
        return settings.canary_size
    return min(restart_window(circuit, settings), settings.max_window)


def restart_window(circuit: Circuit, settings: Settings) -> int:
    """The window to go on with after an outage: half of the last one that was shown to be good, or the initial one.

    Where the consumer flaps, it is the time that is wrong, and not the window: that may grow.
    """
    if circuit.flaps < FLAPS_THAT_SHOW:
        return max(settings.initial_window, circuit.good_window // 2)
    return max(settings.initial_window, circuit.good_window * GROWTH_WHERE_VOUCHED)


def is_likely_up(circuit: Circuit, now: datetime) -> bool:
    """Whether a consumer that flaps is up for a while yet: it has just come up, or was up for longer the last time."""
    if circuit.flaps < FLAPS_THAT_SHOW or circuit.success_count == 0 or circuit.up_since is None:
        return True
    return now - circuit.up_since <= TRUSTED_SHARE * timedelta(seconds=circuit.up_seconds)


def _is_heeded(hint: Hint, circuit: Circuit, now: datetime) -> bool:
    """Whether a hint is worth a canary: none has gone since, nor within the last minute.

    One that comes while a canary is out is kept for the time after it.
    """
    last = circuit.last_attempt_at
    if now > hint.at + HINT_LASTS:
        return False
    return last is None or (hint.at > last and now >= last + HINTED_EVERY)


def _allow_open(
    circuit: Circuit, settings: Settings, now: datetime, live: LiveOutcome, hint: Hint | None
) -> Permit:
    canary = Permit(limit=settings.canary_size, reason="a canary", is_canary=True)
    if live is LiveOutcome.SUCCEEDS:
        return replace(canary, reason="a canary, as live messages succeed")
    has_cooled = has_cooled_down(circuit, settings, now)
    if hint is not None and _is_heeded(hint, circuit, now):
        reason = f"a canary, as {hint.by} says that the consumer is well"
        return replace(canary, reason=reason, is_hinted=not has_cooled)
    if not has_cooled:
        ends = cools_until(circuit, settings)
        return Permit(limit=0, reason=f"OPEN, cooling down until {ends:%Y-%m-%dT%H:%M:%SZ}")
    # Live messages can fail for reasons of their own: they spare canaries, they do not forbid them.
    if live is LiveOutcome.FAILS and now < spares_until(circuit, settings):
        return Permit(limit=0, reason="OPEN, live messages still fail")
    return canary


def _allow_closed(circuit: Circuit, settings: Settings, now: datetime) -> Permit:
    """The window; after a failure one batch at a time, and a probe where no success is fresh.

    A consumer that flaps lets a window that just grew run into its next bad phase. A probe meets that phase
    with one letter instead.
    """
    if len(circuit.pending) >= MOST_PENDING:
        return Permit(limit=0, reason=f"{MOST_PENDING} batches await a verdict")
    window = min(circuit.window, settings.max_window)
    if not is_likely_up(circuit, now):
        window = max(settings.canary_size, window // LATE_SHARE)
    reason = f"window {window}"
    probe = Permit(limit=settings.canary_size, reason=reason, is_probe=True)
    limit = max(0, window - circuit.outstanding)
    free = Permit(limit=limit, reason=reason if limit else f"{reason}, all of it out")
    is_trusted = circuit.is_shaken and _is_fresh(circuit, now)
    if is_trusted and all(one.is_probe for one in circuit.pending):
        # Where verdicts are slower than probes, some are always out: they must not keep from going what they were sent for.
        return replace(free, limit=free.limit or window)
    if circuit.pending and _is_in_doubt(circuit, settings, now):
        return replace(probe, reason=f"{reason}, nothing known of what is out: a probe")
    return _one_at_a_time(circuit, free, probe) if circuit.is_shaken else free


def _one_at_a_time(circuit: Circuit, free: Permit, probe: Permit) -> Permit:
    """After a failure: a probe, or a batch that is as small; while batches are out, only what is left of one."""
    if circuit.pending:
        has_only_probes_out = all(one.is_probe for one in circuit.pending)
        if circuit.rate is not None and free.limit and not has_only_probes_out:
            return free  # what the rate held back: together they are one batch
        reason = f"{probe.reason}, one batch at a time after a failure"
        return Permit(limit=0, reason=reason)
    if free.limit <= probe.limit:
        return free
    return replace(probe, reason="a probe, as a batch failed lately")


def _is_fresh(circuit: Circuit, now: datetime) -> bool:
    """Whether the last verdict was a success, and fell so lately that a full batch may follow."""
    return circuit.probed_at is not None and now - circuit.probed_at <= FRESH


def _is_in_doubt(circuit: Circuit, settings: Settings, now: datetime) -> bool:
    """Whether nothing is known of the batches that are out although it is time: each further one adds to the evidence."""
    is_full = circuit.outstanding >= min(circuit.window, settings.max_window) or circuit.is_shaken
    return (
        is_full
        and len(circuit.pending) < settings.failure_threshold
        and all(not one.seen_again and now >= one.tried_by + DOUBT for one in circuit.pending)
    )


def is_mixed(circuit: Circuit, at: datetime, settings: Settings) -> bool:
    """Whether many messages fail beside others that succeed, as far as one knows: a kind of them may be broken.

    It is what was shown last, for as long as suspects are tried a few times.
    """
    lasts = timedelta(seconds=settings.last_chance_seconds) * MIX_LASTS
    return circuit.mixed_at is not None and at <= circuit.mixed_at + lasts


def believes_successes(circuit: Circuit, now: datetime) -> bool:
    """Whether a reported success counts: a consumer that reports before it deletes, and then fails to, is not believed."""
    return circuit.contradicted_at is None or now > circuit.contradicted_at + DISBELIEF


def expects_reports(circuit: Circuit, now: datetime) -> bool:
    """Whether the consumer reports of what is sent to it, as far as one knows."""
    return circuit.heard_at is not None and now <= circuit.heard_at + REPORTS_EXPECTED


def is_worth_listening(circuit: Circuit, now: datetime) -> bool:
    """Whether reports of letters that are out can be expected within seconds."""
    heard_at = circuit.heard_at
    if not circuit.pending or heard_at is None or not expects_reports(circuit, now):
        return False
    soon = now + LISTENING
    tried_at = [min(now, one.tried_by) for one in circuit.pending if one.first_try_at <= soon]
    return now <= max(heard_at, *tried_at) + LISTENING if tried_at else False
