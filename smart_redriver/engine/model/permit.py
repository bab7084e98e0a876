"""How many letters a pass may redrive now: what each state of the circuit lets through, and until when. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.verdict import GROWTH_WHERE_SHOWN

#: From the third to this canary in a row, each has `canary_size` letters more.
LAST_TELLING_CANARY = 6

#: A success speaks for the next batch for this long: its evidence is already some minutes old.
FRESH = timedelta(minutes=3)

#: A batch is in doubt when nothing has been known about it for this long: a probe may go beside it.
DOUBT = timedelta(minutes=5)

#: A consumer that flaps is trusted for this share of the time for which it was last up. Later batches are likely to
#: meet its next bad phase.
TRUSTED_SHARE = 0.75

#: A consumer that flaps is up for longer than last time if it has been up for this many times as long: verdicts are
#: given once a minute, so that times of the same length can differ by a minute or two.
OUTLIVED = 1.5

#: Batches that may be out at a time, however few letters each has: the circuit's item holds them at 300 bytes each, and
#: an item has 400 KB at most. A trickle of letters makes a batch each minute, and its verdicts may take a day.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MOST_PENDING = 500

#: If this many full batches in a row failed right after a success, the consumer flaps.
FLAPS_THAT_SHOW = 2

#: While a consumer that flaps is down for no longer than before, its cool-down grows up to this one in a row. A longer
#: one would miss the next time up.
LONGEST_WHILE_FLAPPING = 3

#: If letters together failed this often, each time right before one alone succeeded, the consumer fails all that it
#: takes at once. If the circuit has opened more often than this in a row, that may be the reason, too.
FAILED_TOGETHER = 2

#: When this many letters have succeeded alone, `TOGETHER` go together again, as many as a Lambda function takes at once
#: by default. Each further failure doubles the wait.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
ALONE_FIRST = 5
TOGETHER = 10

#: A mix that was shown holds for this share of `last_chance_seconds`: two tries of a suspect.
MIX_LASTS = 0.25

#: A consumer that has reported within this time is assumed to report on letters that are sent now.
REPORTS_EXPECTED = timedelta(hours=24)

#: After a letter that was reported as succeeded comes back, reported successes do not count for this long.
DISBELIEF = timedelta(hours=1)

#: For this long after letters were sent or the last report was read, it is worth listening every few seconds.
LISTENING = timedelta(minutes=1)


#: However many hints come, the canaries that they trigger are this far apart.
HINTED_EVERY = timedelta(minutes=1)

#: A hint that found no letter to try is forgotten after this: letters that fail later say more.
HINT_LASTS = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A claim that the consumer is well again: `by` says who made it. It may not be true."""

    at: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """How many letters a pass may redrive, and why not more. A trial is small, and waits for no backoff.

    `is_hinted`: the canary goes early because a hint says that the consumer is well again. `is_apart`: its letters go
    one by one, because the consumer may fail all messages that it takes at once.
    """

    limit: int
    reason: str
    is_canary: bool = False
    is_probe: bool = False
    is_hinted: bool = False
    is_apart: bool = False

    @property
    def is_trial(self) -> bool:
        """Whether it is sent to see how the consumer is, before more follows."""
        return self.is_canary or self.is_probe


def cool_down(
    consecutive_opens: int, settings: Settings, roll: float, *, may_flap: bool = False
) -> timedelta:
    """How long the circuit stays OPEN: it doubles with every consecutive opening up to the maximum, with jitter.

    Args:
        consecutive_opens: 1 for the first.
        roll: uniform in [0, 1). A quarter of the time is left to chance.
        may_flap: a batch failed right after a success. Half of the time is left to chance, so that canaries can't fall
            into step with a consumer that goes up and down.

    """
    doublings = min(max(0, consecutive_opens - 1), 32)
    seconds = min(settings.cool_down_seconds * 2**doublings, settings.max_cool_down_seconds)
    chance = 0.5 if may_flap else 0.25
    return timedelta(seconds=round(seconds * (1 - chance + chance * roll)))


def cause_cool_down(canaries: int, settings: Settings, roll: float) -> timedelta:
    """How long letters of one cause wait for their next canary, see `cool_down`.

    A healthy consumer can bear one letter more often than one that is down, so the longest wait is half as long.
    """
    longest = max(1, settings.max_cool_down_seconds // 2)
    return min(cool_down(canaries, settings, roll), timedelta(seconds=longest))


def cools_until(circuit: Circuit, settings: Settings) -> datetime:
    """When an OPEN circuit may try a canary; openings by a person or the first edition have no jitter."""
    drawn = circuit.cools_until
    return drawn or circuit.changed_at + cool_down(circuit.consecutive_opens, settings, 1.0)


def spares_until(circuit: Circuit, settings: Settings, now: datetime) -> datetime:
    """Until when an OPEN circuit that has cooled down tries no canary while live messages fail."""
    if not heeds_live(circuit, now):
        return circuit.changed_at
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
    """How many letters may be redriven now; while the circuit is OPEN, live traffic and a hint count, too."""
    if not fails_together(circuit):
        return _allow(circuit, settings, now, live, hint)
    # Going one by one, several letters of a trial risk no more than one does.
    trial = max(settings.canary_size, settings.initial_window)
    several = replace(settings, canary_size=trial)
    return _one_by_one(circuit, _allow(circuit, several, now, live, hint))


def _one_by_one(circuit: Circuit, permit: Permit) -> Permit:
    """Return the permit for a consumer that fails all that it takes at once.

    There is one batch at a time, so that its letters can be compared. From time to time a few go together, as the
    consumer may have changed.
    """
    if permit.is_trial or not permit.limit:
        return replace(permit, is_apart=True)
    if circuit.pending:
        return replace(permit, limit=0, reason=f"{permit.reason}, one batch at a time, one by one")
    failures, alone = _company(circuit)
    if alone >= ALONE_FIRST * 2 ** (failures - FAILED_TOGETHER):
        return replace(permit, limit=min(permit.limit, TOGETHER))
    return replace(permit, is_apart=True, reason=f"{permit.reason}, one by one")


def fails_together(circuit: Circuit) -> bool:
    """Whether the consumer fails all letters that it takes at once, if one of them fails."""
    return _company(circuit)[0] >= FAILED_TOGETHER


def _company(circuit: Circuit) -> tuple[int, int]:
    """Return how many batches failed right before a letter alone succeeded, and the successes alone since the last.

    A consumer that goes up and down would still be down right after a batch that failed. A batch together that succeeds
    ends the count. If a source can't delay letters, none counts as alone.
    """
    failures = alone = 0
    has_failed = False
    for one in sorted(circuit.judged, key=attrgetter("sent_at")):
        is_success = one.verdict is Verdict.SUCCESS
        if one.is_apart:
            succeeded = one.size - one.seen_again - one.unaccounted if is_success else 0
            alone += max(0, succeeded)
            failures += has_failed and succeeded > 0
            has_failed = False
        elif is_success:
            failures = max(0, failures - 1) if 2 * one.returned >= one.size else 0
            has_failed = False
        elif failures >= FAILED_TOGETHER:
            failures, alone = failures + 1, 0
        elif one.returned > 1:
            alone, has_failed = 0, True
    return failures, alone


def _allow(
    circuit: Circuit,
    settings: Settings,
    now: datetime,
    live: LiveOutcome,
    hint: Hint | None,
) -> Permit:
    match circuit.state:
        case State.CLOSED:
            return _allow_closed(circuit, settings, now)
        case State.OPEN:
            return _allow_open(circuit, settings, now, live, hint)
        case State.HALF_OPEN if circuit.pending:
            return Permit(limit=0, reason="HALF_OPEN, the canary awaits its verdict")
        case _:
            return _canary(circuit, settings, now, _canary_letters(circuit, settings))


def _canary(circuit: Circuit, settings: Settings, now: datetime, limit: int) -> Permit:
    """A canary; if the consumer is known to flap, the one after a success is a whole batch.

    Such a consumer is up for minutes: by the time two small canaries have been judged, it is down again. If it is up so
    briefly that even the second meets it down, the first is the whole batch. If it reports, small ones are judged
    within seconds.
    """
    is_second = circuit.success_count > 0
    may_be_whole = (
        is_flapping(circuit)
        and not expects_reports(circuit, now)
        and not _large_said_nothing(circuit, settings)
    )
    if may_be_whole and is_second is not is_up_briefly(circuit, now):
        limit = min(restart_window(circuit, settings), settings.max_window)
    is_small = settings.canary_size < limit <= settings.initial_window
    is_apart = is_small and circuit.consecutive_opens > FAILED_TOGETHER
    return Permit(limit=limit, reason="a canary", is_canary=True, is_apart=is_apart)


def _large_said_nothing(circuit: Circuit, settings: Settings) -> bool:
    """Whether the last canary was large and showed nothing, as one full of suspects does: nor would the next."""
    return any(
        one.generation == circuit.generation
        and one.verdict is Verdict.NO_EVIDENCE
        and one.size > settings.initial_window
        for one in circuit.judged[-1:]
    )


def _canary_letters(circuit: Circuit, settings: Settings) -> int:
    """Return the size of a small canary that nothing else speaks for.

    A letter alone may fail because it is poison. So if two canaries in a row have failed, the next few grow: if any of
    their letters succeeds, the consumer is up. If all of them fail, too, an outage is far likelier. A canary after a
    success is as large as that one.
    """
    if is_flapping(circuit):
        return settings.canary_size
    if circuit.success_count:
        return max([settings.canary_size, *(one.size for one in circuit.judged[-1:])])
    opens = circuit.consecutive_opens if circuit.consecutive_opens <= LAST_TELLING_CANARY else 1
    grown = min((opens - 1) * settings.canary_size, settings.initial_window)
    return max(settings.canary_size, grown)


def restart_window(circuit: Circuit, settings: Settings) -> int:
    """The window after an outage: half of the last one that was shown to be good, or the initial one.

    If the consumer flaps, the time is wrong and not the window, which may grow.
    """
    if is_flapping(circuit):
        return widened_window(circuit, settings)
    return max(settings.initial_window, circuit.good_window // 2)


def widened_window(circuit: Circuit, settings: Settings) -> int:
    """The window that may follow the last one that was shown to be good; at least the initial one."""
    return max(settings.initial_window, circuit.good_window * GROWTH_WHERE_SHOWN)


def is_flapping(circuit: Circuit) -> bool:
    """Whether the consumer is known to go up and down."""
    return circuit.flaps >= FLAPS_THAT_SHOW


def is_likely_up(circuit: Circuit, now: datetime) -> bool:
    """Whether a flapping consumer will stay up for a while: it has just come up, or was up for longer last time."""
    if not is_flapping(circuit) or circuit.up_since is None:
        return True
    return now - circuit.up_since <= TRUSTED_SHARE * timedelta(seconds=circuit.up_seconds)


def is_up_briefly(circuit: Circuit, now: datetime) -> bool:
    """Whether a flapping consumer is likely to be down again by the time that the source's metrics show a success.

    Unless it reports, whatever follows a success then meets its next bad phase. This time it may be up for longer.
    """
    up = timedelta(seconds=circuit.up_seconds)
    if not is_flapping(circuit) or not up or TRUSTED_SHARE * up > FRESH:
        return False
    return circuit.up_since is None or now - circuit.up_since <= OUTLIVED * up


def failures_beyond(circuit: Circuit) -> int:
    """How many more batches in a row have failed than before any success that is remembered.

    Until then, a consumer that flaps explains it: the time was wrong, and not the size.
    """
    told = [one.verdict for one in circuit.judged if one.verdict is not Verdict.NO_EVIDENCE]
    runs = [len(list(run)) for verdict, run in groupby(told) if verdict is Verdict.FAILURE]
    *earlier, latest = runs or [0]
    return max(0, latest - max(earlier, default=0))


def heeds_live(circuit: Circuit, now: datetime) -> bool:
    """Whether live messages show when to try a canary. What they show is minutes old, as a success is."""
    return not is_up_briefly(circuit, now)


def _is_heeded(hint: Hint, circuit: Circuit, now: datetime) -> bool:
    """Whether a hint is worth a canary: no canary has gone since, nor within the last minute.

    A hint that comes while a canary is out is kept until after it.
    """
    last = circuit.last_attempt_at
    if now > hint.at + HINT_LASTS:
        return False
    return last is None or (hint.at > last and now >= last + HINTED_EVERY)


def _allow_open(
    circuit: Circuit, settings: Settings, now: datetime, live: LiveOutcome, hint: Hint | None
) -> Permit:
    canary = _canary(circuit, settings, now, settings.canary_size)
    if live is LiveOutcome.SUCCEEDS and heeds_live(circuit, now):
        return replace(canary, reason="a canary, as live messages succeed")
    has_cooled = has_cooled_down(circuit, settings, now)
    if hint is not None and _is_heeded(hint, circuit, now):
        reason = f"a canary, as {hint.by} says that the consumer is well"
        return replace(canary, reason=reason, is_hinted=not has_cooled)
    if not has_cooled:
        ends = cools_until(circuit, settings)
        return Permit(limit=0, reason=f"OPEN, cooling down until {ends:%Y-%m-%dT%H:%M:%SZ}")
    # Live messages can fail for reasons of their own: they delay canaries, but do not forbid them.
    if live is LiveOutcome.FAILS and now < spares_until(circuit, settings, now):
        return Permit(limit=0, reason="OPEN, live messages still fail")
    return _canary(circuit, settings, now, _canary_letters(circuit, settings))


def _allow_closed(circuit: Circuit, settings: Settings, now: datetime) -> Permit:
    """The window; after a failure one batch at a time, and only a probe unless a success is fresh.

    With a flapping consumer, a window that just grew runs into the next bad phase. A probe meets that phase with one
    letter instead.
    """
    if len(circuit.pending) >= MOST_PENDING:
        return Permit(limit=0, reason=f"{MOST_PENDING} batches await a verdict")
    window = min(circuit.window, settings.max_window)
    reason = f"window {window}"
    probe = Permit(limit=settings.canary_size, reason=reason, is_probe=True)
    limit = max(0, window - circuit.outstanding)
    free = Permit(limit=limit, reason=reason if limit else f"{reason}, all of it out")
    is_late = is_up_briefly(circuit, now) and not expects_reports(circuit, now)
    is_trusted = circuit.is_shaken and _is_fresh(circuit, now) is not is_late
    if is_trusted and all(one.is_probe for one in circuit.pending):
        # If verdicts are slower than probes, some are always out: they must not hold back the batch they prepare.
        return replace(free, limit=free.limit or window)
    if circuit.pending and _is_in_doubt(circuit, settings, now):
        return replace(probe, reason=f"{reason}, nothing known of what is out: a probe")
    return _one_at_a_time(circuit, free, probe) if circuit.is_shaken else free


def _one_at_a_time(circuit: Circuit, free: Permit, probe: Permit) -> Permit:
    """After a failure: a probe, or a batch as small; while a batch is out, only the rest of it."""
    if circuit.pending:
        has_only_probes_out = all(one.is_probe for one in circuit.pending)
        if circuit.rate is not None and free.limit and not has_only_probes_out:
            return free  # letters that the rate held back: together they are one batch
        reason = f"{probe.reason}, one batch at a time after a failure"
        return Permit(limit=0, reason=reason)
    if free.limit <= probe.limit:
        return free
    return replace(probe, reason="a probe, as a batch failed lately")


def _is_fresh(circuit: Circuit, now: datetime) -> bool:
    """Whether the last verdict was a success, so recent that a full batch may follow."""
    return circuit.probed_at is not None and now - circuit.probed_at <= FRESH


def _is_in_doubt(circuit: Circuit, settings: Settings, now: datetime) -> bool:
    """Whether it is time, but nothing is known about the batches that are out: each further one adds evidence."""
    is_full = circuit.outstanding >= min(circuit.window, settings.max_window) or circuit.is_shaken
    return (
        is_full
        and len(circuit.pending) < settings.failure_threshold
        and all(not one.seen_again and now >= one.tried_by + DOUBT for one in circuit.pending)
    )


def is_mixed(circuit: Circuit, at: datetime, settings: Settings) -> bool:
    """Whether many messages fail while others succeed, as far as is known: one kind of message may be broken.

    The last finding holds while suspects are tried a few times.
    """
    lasts = timedelta(seconds=settings.last_chance_seconds) * MIX_LASTS
    return circuit.mixed_at is not None and at <= circuit.mixed_at + lasts


def believes_successes(circuit: Circuit, now: datetime) -> bool:
    """Whether reported successes count; they don't if the consumer reports before it deletes, and then fails to."""
    return circuit.contradicted_at is None or now > circuit.contradicted_at + DISBELIEF


def expects_reports(circuit: Circuit, now: datetime) -> bool:
    """Whether the consumer reports on what it is sent, as far as is known."""
    return circuit.heard_at is not None and now <= circuit.heard_at + REPORTS_EXPECTED


def is_worth_listening(circuit: Circuit, now: datetime) -> bool:
    """Whether reports on letters that are out can be expected within seconds."""
    heard_at = circuit.heard_at
    if not circuit.pending or heard_at is None or not expects_reports(circuit, now):
        return False
    soon = now + LISTENING
    tried_at = [min(now, one.tried_by) for one in circuit.pending if one.first_try_at <= soon]
    return now <= max(heard_at, *tried_at) + LISTENING if tried_at else False
