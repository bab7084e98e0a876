"""The rate, in letters a second, at which the consumer gets letters, learned from what its queue holds. Pure.

By Little's law (https://doi.org/10.1287/opre.9.3.383), a message spends this many seconds in a queue: the messages that
the queue holds, waiting or in flight, divided by those that arrive a second. A consumer that gets more than it can
handle shows it there within a minute, long before anything dies: messages wait, or are hidden after failed tries.

    clear, and the rate was used ─► a quarter more in ten seconds, a hundredth once some rate was too high
    congested ─► nothing goes until that is over ─► a share of what was borne before
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import sqrt

from smart_redriver.engine.messages.queue_facts import QueueFacts

#: Producers' messages a second. Up to this many are not worth a slower redrive.
HARDLY_LIVE = 1.0

#: The first rate, in letters a second, if live traffic has shown nothing; and the share of live traffic that letters
#: may add to it.
FIRST = 1.0
SHARE_OF_LIVE = 0.1

#: The rate never falls below this. With hardly any live messages it never falls below the first rate: failures of the
#: letters alone look the same.
LEAST = 0.05

#: The most that the rate grows at one look, and its growth in ten seconds: counts are about that old. If the consumer
#: has reported on all letters that reached it, except those of the last part of a second, it is known to handle the
#: rate, and the rate grows faster.
GROWTH = 1.5
GROWTH_IN_TEN_SECONDS = 1.25
HEARD_WITHIN = 0.3

#: A rate that is too high shows within this time: the rate before that was borne.
SHOWS_WITHIN = timedelta(seconds=30)

#: After a rate was too high, letters go on at a share of the rate that was borne, and it creeps up: by this much in ten
#: seconds, slower near the rate that was borne. At a fully used consumer, messages fail or wait by chance, which shows
#: the limit each time. With hardly any live messages, the rate comes near it as fast as at first: letters that fail
#: alone cost nobody anything. Beyond, it creeps there, too, because a consumer that falls over costs minutes.
SHARE_OF_BORNE = 0.65
NEAR = 0.75
CREEP = 1.01
CREEP_NEAR = 1.003

#: A consumer that goes up and down at no more than this rate does so by itself.
BY_ITSELF = 3.0

#: The consumer has too much if a message waits, or is in flight, for twice as long as usual plus this many seconds.
#: This many more messages are chance, or wrong counts.
SURPLUS_WAIT = 3.0
SURPLUS_IN_FLIGHT = 1.0
SURPLUS_MESSAGES = 5
#: A congestion is over when this share of the surplus is left: failed messages come back all at once.
SHARE_THAT_ENDS = 0.5
#: Up to this many deaths within seconds, where they can be seen, are chance.
SURPLUS_DEATHS = 1

#: Letters fail more than usual if the share that fails is larger by this much, plus this many standard deviations. Each
#: look weights letters that were tried before by this share. Too few letters show nothing.
SURPLUS_FAILING = 0.15
DEVIATIONS = 2.0
REMEMBERED_SHARE = 0.8
FEWEST_TO_TELL = 10

#: The rate that was borne before a congestion is forgotten after this time, because consumers are scaled.
REMEMBERED = timedelta(hours=2)

#: A queue that stays full for this long although nothing is sent there is not full of our letters.
PATIENCE = timedelta(minutes=10)

#: Producers' messages of this many minutes show how many come a second.
LIVE_MINUTES = 5

#: At one look the rate grows as if at most this much time had passed since the last one.
LONGEST_STEP = timedelta(minutes=1)

#: How far ahead letters are dealt out, and how soon looks follow each other, while letters wait for the rate. Letters
#: are dealt out only a little beyond the next look, because sent letters can't be called back.
AHEAD = timedelta(seconds=15)
LOOKS_EVERY = timedelta(seconds=10)
#: How far ahead if the schedule makes the next look.
AHEAD_OF_SCHEDULE = timedelta(minutes=1)

#: This long after the last letter was dealt out, what the queue holds is not ours.
CLEARED = timedelta(minutes=5)

#: If letters can't be delayed, the next look follows this soon. As many letters go at once as are due until then, or as
#: were due since the last look, unless that was long ago.
AHEAD_AT_ONCE = timedelta(seconds=1)
LONGEST_AT_ONCE = timedelta(seconds=10)

#: A look shows something about the rate only if this many seconds of letters were dealt out since the last look. If
#: looks are closer, this share of the time is enough: a pass takes some of it.
TELLING = timedelta(seconds=10)
TELLING_SHARE = 0.5


#: Batches with a verdict: when each was sent, how many of its letters without strikes failed, and how many were tried.
Outcomes = Sequence[tuple[datetime, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Letters a second that go to one source queue.

    Attributes:
        looked_at: when the queue was last looked at.
        before, marked, marked_at: the rate at the mark before the last, the rate at the last mark, and when that was.
            Marks are at least half a minute apart.
        borne, borne_at: the most that was borne before the last congestion, and when that was.
        congested_since: since when no letters go because of a congestion.
        usual_wait, usual_in_flight: seconds that a message waits and is in flight while few of our letters are there.
        live: producers' messages a second.
        without_ours: messages that the queue held when none of our letters were there.
        tried, failed: letters without strikes whose outcome was known soon after they went. Older ones count in part.
        usual_failing: the smallest share of them that failed since the last congestion; None while too few were tried.

    """

    per_second: float
    looked_at: datetime
    before: float = 0.0
    marked: float = 0.0
    marked_at: datetime | None = None
    borne: float | None = None
    borne_at: datetime | None = None
    congested_since: datetime | None = None
    usual_wait: float = 0.0
    usual_in_flight: float = 0.0
    live: float = 0.0
    without_ours: int = 0
    tried: float = 0.0
    failed: float = 0.0
    usual_failing: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether there are hardly any producers' messages that could suffer."""
        return self.live <= HARDLY_LIVE

    @property
    def is_congested(self) -> bool:
        """Whether the consumer has more than it can handle."""
        return self.congested_since is not None


def ahead_at_once(
    before: Rate | None, rate: Rate, now: datetime, *, paced_until: datetime | None, handful: int
) -> timedelta:
    """Return how far ahead letters go if they can't be delayed.

    If hardly any live messages show how the consumer does, a handful of letters goes together, so that they can be
    compared.

    Args:
        before: the rate of the last look.
        paced_until: up to when that rate is used up.

    """
    since = now - before.looked_at if before is not None else AHEAD_AT_ONCE
    ahead = since if AHEAD_AT_ONCE < since <= LONGEST_AT_ONCE else AHEAD_AT_ONCE
    is_used_up = paced_until is not None and paced_until > now
    if not rate.is_quiet or is_used_up:
        return ahead
    return max(ahead, timedelta(seconds=handful / rate.per_second))


def felt(
    rate: Rate | None,
    facts: QueueFacts,
    now: datetime,
    *,
    live: Sequence[int],
    used: timedelta,
    is_closed: bool,
    are_out: bool,
    were_too_many: bool = False,
    comes_back: bool = False,
    flaps: bool = False,
    unheard: float | None = None,
    outcomes: Outcomes = (),
) -> Rate | None:
    """The rate after a look at the source queue.

    Args:
        facts: the queue's counts.
        live: producers' messages in each of the last minutes; empty if they are not known.
        used: for how much of the time since the last look letters went there at the rate.
        is_closed: the circuit lets letters flow.
        are_out: letters of ours may be in the queue.
        were_too_many: some letters of a batch succeeded and many failed, as if they had been too many at once.
        comes_back: the consumer was down until now, and the next letters may be too many for it.
        flaps: the consumer is known to go up and down, by itself or because of the rate.
        unheard: letters that reached the consumer and that it has not reported on; None if it does not report.
        outcomes: the outcomes of letters since the last look.

    Returns None if there are hardly any messages that could suffer, and the letters have not suffered either: then
    verdicts are enough.

    """
    is_quiet = _live_per_second(live) <= HARDLY_LIVE
    is_unseen = unheard is None and facts.dying is None
    if is_quiet and flaps and is_unseen and not _may_be_too_fast(rate):
        # The queue of a consumer that is down looks full, too: letters would wait, and nobody would gain by it.
        return None
    # A consumer that reports shows the effect of each window before the next one.
    is_at_risk = comes_back and is_unseen
    if rate is None:
        # If looks are seconds apart anyway, a rate costs only seconds.
        begins = were_too_many or is_at_risk or not is_quiet or facts.dying is not None
        return _first(live, 0 if are_out else _held(facts), now) if begins else None
    use = _Use(used, since_last_look=now - rate.looked_at, unheard=unheard)
    # On a topic, which always has a rate, an outage may show that the rate was too high.
    is_outage = unheard is not None and not is_closed and facts.dying is None
    is_over = (use.is_cleared or is_outage) and not is_at_risk
    if is_quiet and live and rate.borne is None and is_over:
        return None
    if use.since_last_look < timedelta(seconds=1):
        return rate
    rate = _with_outcomes(_told(rate, live, now), outcomes, now)
    return _learned(rate, facts, now, use, is_closed=is_closed)


def _may_be_too_fast(rate: Rate | None) -> bool:
    """Whether a consumer may go down because of the rate."""
    return rate is not None and (rate.borne or 0.0) > BY_ITSELF


@dataclass(frozen=True, slots=True)
class _Use:
    """For how much of the time since the last look letters went at a rate; negative: how long ago they ended."""

    lasted: timedelta
    since_last_look: timedelta
    unheard: float | None = None

    def is_heard_of(self, rate: Rate) -> bool:
        """Whether the consumer has reported on all letters that reached it, except for the very last ones."""
        return self.unheard is not None and self.unheard <= 1 + HEARD_WITHIN * rate.per_second

    @property
    def is_telling(self) -> bool:
        """Whether letters went at the rate for long enough to show its effect."""
        return self.lasted >= min(TELLING, TELLING_SHARE * self.since_last_look)

    @property
    def is_cleared(self) -> bool:
        """Whether letters went so long ago that none of them is in the queue."""
        return self.lasted <= -CLEARED

    def may_show(self, rate: Rate) -> bool:
        """Whether the queue may show what the rate did to it.

        The effect shows a while after letters went at the rate. By then the window may be full, and no letters go.
        """
        return self.is_telling or (rate.marked_at is not None and not self.is_cleared)


def _learned(rate: Rate, facts: QueueFacts, now: datetime, use: _Use, *, is_closed: bool) -> Rate:
    """The rate after what the queue shows of it."""
    arrives = rate.live + (rate.per_second if use.is_telling else 0.0)
    if _is_crowded(rate, facts, arrives):
        is_ours = is_closed and use.may_show(rate)
        return _congested(rate, now, held=_held(facts), is_ours=is_ours)
    if is_closed and not rate.is_congested and _fails_more(rate):
        return _congested(rate, now, held=_held(facts), is_ours=True)
    if not is_closed and use.may_show(rate) and rate.before and facts.dying is not None:
        # The rate may have been too high for a consumer that went down since.
        return _gone_on(_with_borne(rate, now))
    if rate.is_congested or not is_closed:
        return _gone_on(rate)
    rate = _with_usual(rate, facts, arrives, is_cleared=use.is_cleared)
    return _grown(rate, use, now) if use.is_telling else rate


def _first(live: Sequence[int], without_ours: int, now: datetime) -> Rate:
    """The rate to begin with."""
    per_second = _live_per_second(live)
    return Rate(
        per_second=_begins(per_second),
        looked_at=now,
        live=per_second,
        without_ours=without_ours,
    )


def _live_per_second(live: Sequence[int]) -> float:
    """Producers' messages a second in the second-busiest minute.

    In the busiest minute, messages that died may have been sent all at once.
    """
    return sorted(live)[-2] / 60 if len(live) > 1 else 0.0


def _begins(live: float) -> float:
    return max(FIRST, SHARE_OF_LIVE * live)


def _held(facts: QueueFacts) -> int:
    return facts.visible + facts.in_flight + (facts.dying or 0)


def _told(rate: Rate, live: Sequence[int], now: datetime) -> Rate:
    """The rate with what is now known about live messages, and without what is too old."""
    if rate.borne_at is not None and now > rate.borne_at + REMEMBERED:
        rate = replace(rate, borne=None, borne_at=None)
    return replace(rate, looked_at=now, live=_live_per_second(live) if live else rate.live)


def _is_crowded(rate: Rate, facts: QueueFacts, arrives: float) -> bool:
    """Whether more messages than usual wait or are in flight, for this many arrivals a second."""
    share = SHARE_THAT_ENDS if rate.is_congested else 1.0
    usual = 2 * rate.without_ours
    waits = arrives * SURPLUS_WAIT
    if rate.is_quiet:
        # All letters dealt out ahead may wait, as some consumers poll at intervals. Hardly any live message waits
        # behind them.
        waits = rate.per_second * AHEAD.total_seconds()
    waits = share * (SURPLUS_MESSAGES + waits) + 2 * arrives * rate.usual_wait
    in_flight = (
        share * (SURPLUS_MESSAGES + arrives * SURPLUS_IN_FLIGHT)
        + 2 * arrives * rate.usual_in_flight
    )
    dies = SURPLUS_DEATHS + usual
    return (
        facts.visible > usual + waits
        or facts.in_flight > usual + in_flight
        or (facts.dying or 0) > dies
    )


def _with_outcomes(rate: Rate, outcomes: Outcomes, now: datetime) -> Rate:
    """The rate with the outcomes of letters that went at about this rate."""
    since = max(now - SHOWS_WITHIN, rate.borne_at or now - SHOWS_WITHIN)
    fresh = [(failed, tried) for sent_at, failed, tried in outcomes if sent_at >= since]
    failed = REMEMBERED_SHARE * rate.failed + sum(one for one, _ in fresh)
    tried = REMEMBERED_SHARE * rate.tried + sum(one for _, one in fresh)
    usual = rate.usual_failing
    if tried >= FEWEST_TO_TELL:
        usual = min(failed / tried, 1.0 if usual is None else usual)
    return replace(rate, failed=failed, tried=tried, usual_failing=usual)


def _fails_more(rate: Rate) -> bool:
    """Whether more of the letters fail than at a lower rate. Poison pills fail at any rate alike."""
    usual = rate.usual_failing
    if usual is None or rate.tried < FEWEST_TO_TELL:
        return False
    likely = max(usual, 1 / rate.tried)
    chance = DEVIATIONS * sqrt(likely * (1 - likely) / rate.tried)
    return rate.failed / rate.tried > usual + SURPLUS_FAILING + chance


def _with_usual(rate: Rate, facts: QueueFacts, arrives: float, *, is_cleared: bool) -> Rate:
    """The rate with what the queue shows while it holds few of our letters, or none."""
    if is_cleared:
        rate = replace(rate, without_ours=(rate.without_ours + _held(facts)) // 2)
    if not arrives:
        return rate
    wait, in_flight = facts.visible / arrives, facts.in_flight / arrives
    if is_cleared or (rate.borne is None and rate.per_second <= _begins(rate.live)):
        wait, in_flight = (rate.usual_wait + wait) / 2, (rate.usual_in_flight + in_flight) / 2
    else:
        wait, in_flight = min(rate.usual_wait, wait), min(rate.usual_in_flight, in_flight)
    return replace(rate, usual_wait=wait, usual_in_flight=in_flight)


def _gone_on(rate: Rate) -> Rate:
    """The rate to go on with after a congestion or an outage: a share of what was borne."""
    goes_on = rate.per_second
    if rate.borne is not None:
        goes_on = max(_least(rate), SHARE_OF_BORNE * rate.borne)
    return replace(
        rate,
        per_second=min(rate.per_second, goes_on),
        before=0.0,
        marked=0.0,
        marked_at=None,
        congested_since=None,
        tried=0.0,
        failed=0.0,
        usual_failing=None,
    )


def _least(rate: Rate) -> float:
    return FIRST if rate.is_quiet else LEAST


def _growth(rate: Rate, use: _Use) -> float:
    """The factor by which the rate grows after a look."""
    if rate.borne is None:
        growth = GROWTH if use.is_heard_of(rate) else GROWTH_IN_TEN_SECONDS
    else:
        growth = _creep(rate, rate.borne)
    most: float = growth ** (min(use.since_last_look, LONGEST_STEP) / LOOKS_EVERY)
    return min(GROWTH, most)


def _creep(rate: Rate, borne: float) -> float:
    """The growth in ten seconds after a rate was too high. Beyond `borne`, the consumer handles more than it seemed."""
    if NEAR * borne <= rate.per_second < borne:
        return CREEP_NEAR
    is_far = rate.per_second < borne
    return GROWTH_IN_TEN_SECONDS if rate.is_quiet and is_far else CREEP


def _grown(rate: Rate, use: _Use, now: datetime) -> Rate:
    most = rate.per_second * _growth(rate, use)
    if rate.marked_at is None or now >= rate.marked_at + SHOWS_WITHIN:
        rate = replace(rate, before=rate.marked, marked=rate.per_second, marked_at=now)
    return replace(rate, per_second=most)


def _with_borne(rate: Rate, now: datetime) -> Rate:
    """The rate with what was borne: between the rate before and the one that was too high, or a share of the latter."""
    if rate.borne is not None and not rate.before:
        # It has borne nothing since: it isn't over the last congestion, and the rate is not to blame.
        return replace(rate, per_second=max(_least(rate), SHARE_OF_BORNE * rate.per_second))
    borne = sqrt(rate.before * rate.per_second) or SHARE_OF_BORNE * rate.per_second
    return replace(rate, borne=borne, borne_at=now)


def _congested(rate: Rate, now: datetime, *, held: int, is_ours: bool) -> Rate:
    if rate.congested_since is None:
        if is_ours:
            rate = _with_borne(rate, now)
        return replace(rate, congested_since=now)
    if now < rate.congested_since + PATIENCE:
        return rate
    # No letters went since, and the messages are still there: they are not ours.
    return replace(
        rate,
        congested_since=None,
        per_second=min(_begins(rate.live), rate.per_second),
        without_ours=held,
    )
