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

#: The first rate, in letters a second, if live traffic has shown nothing. A higher one beside a few live messages: they
#: show how the consumer does, and hardly any could suffer. And the share of live traffic that letters may add to it.
FIRST = 1.0
FIRST_BESIDE_FEW = 1.5
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

#: A consumer that goes down at no more than this rate, in letters a second, does so by itself.
BY_ITSELF = 1.5

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

#: A congestion that is over within this time costs little. The rate comes near the one that was too high as much more
#: rarely as congestions lasted longer, except for the first: an outage may look like one.
CHEAP = timedelta(minutes=1)

#: Producers' messages of this many minutes show how many come a second.
LIVE_MINUTES = 5

#: At one look the rate grows as if at most this much time had passed since the last one.
LONGEST_STEP = timedelta(minutes=1)

#: How far ahead letters are dealt out, and how soon looks follow each other, while letters wait for the rate. Letters
#: are dealt out only a little beyond the next look, because sent letters can't be called back.
AHEAD = timedelta(seconds=15)
LOOKS_EVERY = timedelta(seconds=10)
#: How far ahead if the schedule makes the next look. If a consumer goes up and down, what follows a success is the one
#: batch until it is down: it may be this much longer, up to this share of the time for which the consumer is up.
AHEAD_OF_SCHEDULE = timedelta(minutes=1)
LONGER = 2
SHARE_OF_UP = 0.4

#: This long after the last letter was dealt out, what the queue holds is not ours.
CLEARED = timedelta(minutes=5)

#: If letters can't be delayed, the next look follows this soon. As many letters go at once as were due since the last
#: look, unless that was long ago.
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
        spent: seconds for which congestions lasted beyond what is cheap, while the rate that was borne is remembered.
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
    spent: float = 0.0
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

    @property
    def remembered(self) -> timedelta:
        """For how long the rate that was borne is remembered: for longer if it was costly to learn."""
        return REMEMBERED * max(1.0, self.spent / PATIENCE.total_seconds())

    @property
    def slowness(self) -> float:
        """How many times more slowly than usual the rate creeps."""
        return max(1.0, (timedelta(seconds=self.spent) - PATIENCE) / CHEAP)


def owed_since(before: Rate | None, now: datetime) -> datetime | None:
    """Return since when letters that can't be delayed are owed their seconds: since the last look, unless it is old."""
    if before is None or now - before.looked_at > LONGEST_AT_ONCE:
        return None
    return before.looked_at


def ahead_at_once(
    rate: Rate, since: datetime, *, paced_until: datetime | None, handful: int
) -> timedelta:
    """Return how far ahead letters go if they can't be delayed.

    No letter goes ahead of its second, because the next look is a second away. If hardly any live messages show how the
    consumer does, a handful of letters goes together after a pause, so that they can be compared. None does once some
    rate was too high.

    Args:
        since: since when letters are owed their seconds; now if they are owed none.
        paced_until: up to when the rate is used up.
        handful: how many letters may go together.

    """
    is_in_use = paced_until is not None and paced_until > since
    if not rate.is_quiet or rate.borne is not None or is_in_use:
        return timedelta()
    return timedelta(seconds=handful / rate.per_second)


def used_up_until(
    paced_until: datetime | None, before: Rate | None, rate: Rate | None, now: datetime
) -> datetime | None:
    """Return up to when the rate is used up by letters that went together, ahead of their seconds.

    They are so many letters, and take less time of a rate that has grown since.
    """
    if paced_until is None or before is None or rate is None or paced_until <= now:
        return paced_until
    return now + (paced_until - now) * min(1.0, before.per_second / rate.per_second)


def ahead_of_schedule(up: timedelta) -> timedelta:
    """Return how far ahead letters go if the schedule makes the next look.

    Args:
        up: for how long a consumer that goes up and down was up; zero if it is not known.

    """
    return min(LONGER * AHEAD_OF_SCHEDULE, max(AHEAD_OF_SCHEDULE, SHARE_OF_UP * up))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known at a look at the source queue.

    Attributes:
        at: when it was.
        facts: the queue's counts.
        live: producers' messages in each of the last minutes; empty if they are not known.
        used: for how much of the time since the last look letters went there at the rate; negative: how long ago they
            ended.
        is_closed: the circuit lets letters flow.
        are_out: letters of ours may be in the queue.
        may_be_too_many: the letters of a batch may have been too many at once.
        flaps: the consumer is known to go up and down, by itself or because of the rate.
        unheard: letters that reached the consumer and that it has not reported on; None if it does not report.
        outcomes: the outcomes of letters since the last look.

    """

    at: datetime
    facts: QueueFacts
    live: Sequence[int]
    used: timedelta
    is_closed: bool
    are_out: bool
    may_be_too_many: bool = False
    flaps: bool = False
    unheard: float | None = None
    outcomes: Outcomes = ()

    @property
    def live_per_second(self) -> float:
        """Producers' messages a second in the second-busiest minute.

        In the busiest minute, messages that died may have been sent all at once.
        """
        return sorted(self.live)[-2] / 60 if len(self.live) > 1 else 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether there are hardly any producers' messages that could suffer."""
        return self.live_per_second <= HARDLY_LIVE

    @property
    def held(self) -> int:
        """Messages in the queue, and messages that just died."""
        return self.facts.visible + self.facts.in_flight + (self.facts.dying or 0)

    @property
    def is_exact(self) -> bool:
        """Whether reports or counts of deaths show the effect of each window before the next one."""
        return self.unheard is not None or self.facts.dying is not None

    @property
    def is_at_risk(self) -> bool:
        """Whether letters may be too many for the consumer once it comes back. Targets without a queue show nothing."""
        has_queue = self.facts.retention > timedelta()
        return not self.is_closed and not self.is_exact and has_queue

    @property
    def needs_rate(self) -> bool:
        """Whether letters could be too many. If looks are seconds apart anyway, a rate costs only seconds."""
        has_counts_of_deaths = self.facts.dying is not None
        may_suffer = self.may_be_too_many or self.is_at_risk or not self.is_quiet
        return may_suffer or has_counts_of_deaths or self.flaps

    @property
    def is_cleared(self) -> bool:
        """Whether letters went so long ago that none of them is in the queue."""
        return self.used <= -CLEARED

    @property
    def ends_rate(self) -> bool:
        """Whether a quiet queue needs no rate any more, if none has been too high.

        On a topic, which always has a rate, an outage may show that the rate was too high.
        """
        is_outage = self.unheard is not None and not self.is_closed and self.facts.dying is None
        is_over = (self.is_cleared or is_outage) and not self.is_at_risk
        return is_over and self.is_quiet and not self.flaps and bool(self.live)

    @property
    def shows_borne(self) -> bool:
        """Whether a batch of some size succeeded, as far as is known.

        If a consumer is up briefly, its canaries are whole batches, and it is down again before the circuit closes.
        """
        return any(not failed and tried >= FEWEST_TO_TELL for _, failed, tried in self.outcomes)

    def is_telling(self, rate: Rate) -> bool:
        """Whether letters went at the rate for long enough to show its effect."""
        return self.used >= min(TELLING, TELLING_SHARE * (self.at - rate.looked_at))

    def may_show(self, rate: Rate) -> bool:
        """Whether the queue may show what the rate did to it.

        The effect shows a while after letters went at the rate. By then the window may be full, and no letters go.
        """
        return self.is_telling(rate) or (rate.marked_at is not None and not self.is_cleared)

    def is_heard_of(self, rate: Rate) -> bool:
        """Whether the consumer has reported on all letters that reached it, except for the very last ones."""
        return self.unheard is not None and self.unheard <= 1 + HEARD_WITHIN * rate.per_second


def felt(rate: Rate | None, look: Look) -> Rate | None:
    """Return the rate after a look at the source queue.

    None if there are hardly any messages that could suffer, and the letters have not suffered either: then verdicts are
    enough.
    """
    if rate is None:
        return _first(look) if look.needs_rate else None
    if look.ends_rate and rate.borne is None:
        return None
    if look.at - rate.looked_at < timedelta(seconds=1):
        return rate
    return replace(_learned(_told(rate, look), look), looked_at=look.at)


def _learned(rate: Rate, look: Look) -> Rate:
    """The rate after what the queue shows of it."""
    arrives = rate.live + (rate.per_second if look.is_telling(rate) else 0.0)
    if _is_crowded(rate, look.facts, arrives):
        return _congested(rate, look, is_ours=look.may_show(rate))
    if rate.is_congested:
        return _gone_on(_paid(rate, look.at))
    if not look.is_closed:
        rate = _gone_on(_blamed(rate, look))
        return _grown(rate, look) if look.shows_borne else rate
    if _fails_more(rate):
        return _congested(rate, look, is_ours=True)
    rate = _with_usual(rate, look, arrives)
    return _grown(rate, look) if look.is_telling(rate) else rate


def _blamed(rate: Rate, look: Look) -> Rate:
    """The rate after the consumer went down, for which it may have been too high. Counts of some time ago can't tell.

    If a consumer falls over within seconds, nothing was borne for long enough. Its growth since the last mark is taken
    back, or it would grow further each time.
    """
    if not look.may_show(rate) or look.facts.dying is None:
        return rate
    if not rate.before:
        return replace(rate, per_second=rate.marked or rate.per_second)
    return _with_borne(rate, look.at)


def _first(look: Look) -> Rate:
    return Rate(
        per_second=_begins(look, look.live_per_second),
        looked_at=look.at,
        live=look.live_per_second,
        without_ours=0 if look.are_out else look.held,
    )


def _begins(look: Look, live: float) -> float:
    """The rate to begin with. If the consumer goes up and down, letters alone may be too many for it."""
    first = FIRST_BESIDE_FEW if 0 < live <= HARDLY_LIVE and not look.flaps else FIRST
    return max(first, SHARE_OF_LIVE * live)


def _told(rate: Rate, look: Look) -> Rate:
    """The rate with what is now known about live messages and letters, and without what is too old.

    The queue never holds fewer messages than those that are not ours. Otherwise, what an outage had left there would
    hide a congestion later.
    """
    if rate.borne_at is not None and look.at > rate.borne_at + rate.remembered:
        rate = _forgotten(rate)
        if look.is_cleared or not look.is_closed:
            # Nothing has shown since that the consumer bears it, and it is the rate that was too high.
            rate = replace(rate, per_second=min(rate.per_second, _begins(look, rate.live)))
    rate = replace(
        rate,
        live=look.live_per_second if look.live else rate.live,
        without_ours=min(rate.without_ours, look.held),
    )
    return _with_outcomes(rate, look.outcomes, look.at)


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


def _with_usual(rate: Rate, look: Look, arrives: float) -> Rate:
    """The rate with what the queue shows while it holds few of our letters, or none."""
    if look.is_cleared:
        rate = replace(rate, without_ours=(rate.without_ours + look.held) // 2)
    if not arrives:
        return rate
    wait, in_flight = look.facts.visible / arrives, look.facts.in_flight / arrives
    if look.is_cleared or (rate.borne is None and rate.per_second <= _begins(look, rate.live)):
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


def _growth(rate: Rate, look: Look) -> float:
    """The factor by which the rate grows after a look."""
    if rate.borne is None:
        growth = GROWTH if look.is_heard_of(rate) else GROWTH_IN_TEN_SECONDS
    else:
        growth = _creep(rate, rate.borne)
    most: float = growth ** (min(look.at - rate.looked_at, LONGEST_STEP) / LOOKS_EVERY)
    return min(GROWTH, most)


def _creep(rate: Rate, borne: float) -> float:
    """The growth in ten seconds after a rate was too high. Beyond `borne`, the consumer handles more than it seemed."""
    if rate.is_quiet and rate.per_second < NEAR * borne:
        return GROWTH_IN_TEN_SECONDS
    is_near = NEAR * borne <= rate.per_second < borne
    crept: float = (CREEP_NEAR if is_near else CREEP) ** (1 / rate.slowness)
    return crept


def _grown(rate: Rate, look: Look) -> Rate:
    now, most = look.at, rate.per_second * _growth(rate, look)
    if rate.marked_at is None or now >= rate.marked_at + SHOWS_WITHIN:
        rate = replace(rate, before=rate.marked, marked=rate.per_second, marked_at=now)
    return replace(rate, per_second=most)


def _with_borne(rate: Rate, now: datetime) -> Rate:
    """The rate with what was borne: between the rate before and the one that was too high, or a share of the latter.

    Nothing if few producers' messages could suffer, and the consumer went down by itself: then the rate grows as at
    first.
    """
    if rate.borne is not None and not rate.before:
        # It has borne nothing since: it isn't over the last congestion, and the rate is not to blame.
        return replace(rate, per_second=max(_least(rate), SHARE_OF_BORNE * rate.per_second))
    if rate.is_quiet and rate.per_second <= BY_ITSELF:
        return _forgotten(rate)
    borne = sqrt(rate.before * rate.per_second) or SHARE_OF_BORNE * rate.per_second
    return replace(rate, borne=borne, borne_at=now)


def _forgotten(rate: Rate) -> Rate:
    """The rate without what congestions have shown."""
    return replace(rate, borne=None, borne_at=None, spent=0.0)


def _paid(rate: Rate, now: datetime) -> Rate:
    """The rate with what a congestion cost that is over."""
    if rate.congested_since is None or rate.borne is None:
        return rate
    lasted = min(now - rate.congested_since, PATIENCE)
    return replace(rate, spent=rate.spent + max(0.0, (lasted - CHEAP).total_seconds()))


def _congested(rate: Rate, look: Look, *, is_ours: bool) -> Rate:
    if rate.congested_since is None:
        if is_ours:
            rate = _with_borne(rate, look.at)
        return replace(rate, congested_since=look.at)
    if look.at < rate.congested_since + PATIENCE:
        return rate
    # No letters went since, and the messages are still there: they are not ours.
    return replace(
        _paid(rate, look.at),
        congested_since=None,
        per_second=min(_begins(look, rate.live), rate.per_second),
        without_ours=look.held,
    )
