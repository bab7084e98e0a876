"""The rate, in letters a second, at which the consumer gets letters: learned from what its queue holds. Pure.

By Little's law (https://doi.org/10.1287/opre.9.3.383), the messages that a queue holds, waiting or in flight, divided by
those that arrive a second are the seconds that one spends in it. A consumer that is given more than it bears shows it
there within a minute, long before anything dies: messages wait, or their failed tries hide them.

    clear, and the rate was used ─► a quarter more in ten seconds, a hundredth once some rate was too much
    congested ─► nothing goes until that is over ─► a share of what was borne before
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import sqrt

from smart_redriver.engine.messages.queue_facts import QueueFacts

#: Producers' messages a second: so few are not worth a slower redrive.
HARDLY_LIVE = 1.0

#: Letters a second at first, where live traffic has shown nothing; and the share of it that may come on top.
FIRST = 1.0
SHARE_OF_LIVE = 0.1

#: It never falls below; beside hardly any live messages not below the first, as failures of the letters alone look alike.
LEAST = 0.05

#: The rate grows by so much in ten seconds, as counts are about as old, and at most so much in a look. Where the consumer
#: has reported of all that came to it, up to the last part of a second, it is known to bear the rate: it grows faster.
GROWTH = 1.5
GROWTH_IN_TEN_SECONDS = 1.25
HEARD_WITHIN = 0.3

#: A rate that is too much shows after so long: what was borne is the rate before.
SHOWS_WITHIN = timedelta(seconds=30)

#: Once a rate was too much, it goes on with a share of what was borne, and creeps: so much in ten seconds, slower where
#: it comes near to that. A consumer that is fully used has messages fail or wait by chance, and it is found each time.
#: Letters that fail alone cost no live message: beside hardly any of these it may find the limit sooner.
SHARE_OF_BORNE = 0.65
NEAR = 0.75
CREEP = 1.01
CREEP_NEAR = 1.003
CREEP_ALONE = 1.02

#: A message waits, or is in flight, for twice as long as usual and so many seconds more: the consumer has too much. So
#: many messages more are chance, or counts that are wrong.
SURPLUS_WAIT = 3.0
SURPLUS_IN_FLIGHT = 1.0
SURPLUS_MESSAGES = 5
#: A congestion is over when such a share of this surplus is left: what failed comes back at once.
SHARE_THAT_ENDS = 0.5
#: So few deaths within seconds, where these are seen, are chance.
SURPLUS_DEATHS = 1

#: Letters fail more than usual where their share is larger by so much, and by so many standard deviations. Of letters
#: that were tried before, a share counts at each look, and too few tell nothing.
SURPLUS_FAILING = 0.15
DEVIATIONS = 2.0
REMEMBERED_SHARE = 0.8
FEWEST_TO_TELL = 10

#: The rate that was borne before a congestion is forgotten after this: consumers are scaled.
REMEMBERED = timedelta(hours=2)

#: A queue that stays full for so long although nothing goes there is not full of our letters.
PATIENCE = timedelta(minutes=10)

#: Producers' messages of so many minutes say how many come a second.
LIVE_MINUTES = 5

#: It grows no further at a look, however long ago the last one was.
LONGEST_STEP = timedelta(minutes=1)

#: While letters wait for the rate, looks follow each other so soon. Letters are dealt out until the next one, and little
#: further: what has been sent can't be called back.
AHEAD = timedelta(seconds=15)
LOOKS_EVERY = timedelta(seconds=10)
#: The same where the next look is the schedule's.
AHEAD_OF_SCHEDULE = timedelta(minutes=1)

#: So long after the last letter was dealt out, what the queue holds is not ours.
CLEARED = timedelta(minutes=5)

#: Where letters can't be delayed, the next look follows so soon, and as many go at once as until then, or as since the
#: last look, if that is no pause.
AHEAD_AT_ONCE = timedelta(seconds=1)
LONGEST_AT_ONCE = timedelta(seconds=10)

#: So many seconds of letters have to have been dealt out since the last look for it to tell of the rate; where looks are
#: closer, such a share of the time: a pass takes some of it.
TELLING = timedelta(seconds=10)
TELLING_SHARE = 0.5


#: Batches that were judged: when each was sent, how many of its letters without strikes failed, and how many were tried.
Outcomes = Sequence[tuple[datetime, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Letters a second that go to one source queue.

    Attributes:
        looked_at: when the queue was looked at last.
        before, marked, marked_at: the rate of half a minute ago or longer, and since when there is another.
        borne, borne_at: the most that was borne before the last congestion, and when that was.
        congested_since: nothing goes since then.
        usual_wait, usual_in_flight: seconds that a message waits and is in flight while few of ours are there.
        live: producers' messages a second.
        without_ours: messages that the queue held when nothing of ours was there.
        tried, failed: letters without strikes whose outcome was told soon after they went, older ones as a part of one.
        usual_failing: the least share of them that failed since the last congestion; None while too few were tried.

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
        """Whether hardly any producer's message is there that could suffer."""
        return self.live <= HARDLY_LIVE

    @property
    def is_congested(self) -> bool:
        """Whether the consumer has more than it bears."""
        return self.congested_since is not None


def ahead_at_once(
    before: Rate | None, rate: Rate, now: datetime, *, paced_until: datetime | None, handful: int
) -> timedelta:
    """Return how far ahead letters go that can't be delayed.

    Where hardly a live message tells of the consumer, a handful goes together, so that they can be compared.

    Args:
        before: the rate of the last look.
        paced_until: up to when it is used up.

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
        facts: its counts.
        live: producers' messages in each of the last minutes; empty where they are not known.
        used: how long letters went there at the rate, of the time since the last look.
        is_closed: the circuit lets letters flow.
        are_out: letters of ours may be in the queue.
        were_too_many: some letters of a batch succeeded and many failed, as if they had been too many at once.
        comes_back: the consumer was down until now, and the next letters may be too many for it.
        flaps: the consumer is known to be up and down.
        unheard: letters that have come to the consumer, of which it has reported nothing; None where it does not report.
        outcomes: what became of letters since the last look.

    Returns None where hardly a message is there that could suffer, and the letters have not either: then verdicts are
    enough.

    """
    is_quiet = _live_per_second(live) <= HARDLY_LIVE
    is_unseen = unheard is None and facts.dying is None
    if is_quiet and flaps and is_unseen:
        # A consumer that is down looks full, too: its letters would wait for nobody's sake.
        return None
    # Where it reports, that tells of each window before the next one.
    is_at_risk = comes_back and is_unseen
    if rate is None:
        # Where looks are seconds apart anyway, a rate costs no more than seconds.
        begins = were_too_many or is_at_risk or not is_quiet or facts.dying is not None
        return _first(live, 0 if are_out else _held(facts), now) if begins else None
    use = _Use(used, since_last_look=now - rate.looked_at, unheard=unheard)
    is_outage = unheard is not None and not is_closed
    is_over = (use.is_cleared or is_outage) and not is_at_risk
    if is_quiet and live and rate.borne is None and is_over:
        return None
    if use.since_last_look < timedelta(seconds=1):
        return rate
    rate = _with_outcomes(_told(rate, live, now), outcomes, now)
    return _learned(rate, facts, now, use, is_closed=is_closed)


@dataclass(frozen=True, slots=True)
class _Use:
    """How long letters went at a rate, of the time since the last look; negative: how long ago they ended."""

    lasted: timedelta
    since_last_look: timedelta
    unheard: float | None = None

    def is_heard_of(self, rate: Rate) -> bool:
        """Whether the consumer has reported of all letters that have come to it, but for the very last ones."""
        return self.unheard is not None and self.unheard <= 1 + HEARD_WITHIN * rate.per_second

    @property
    def is_telling(self) -> bool:
        """Whether letters went at the rate for long enough to tell of it."""
        return self.lasted >= min(TELLING, TELLING_SHARE * self.since_last_look)

    @property
    def is_cleared(self) -> bool:
        """Whether they went so long ago that none of them is in the queue."""
        return self.lasted <= -CLEARED

    def may_show(self, rate: Rate) -> bool:
        """Whether the queue may show what the rate did to it.

        A rate shows a while after letters went at it. By then the window may be full, and nothing goes.
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
        # It may have been too much for a consumer that is down since.
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
    """Producers' messages a second: in the busiest minute but one, in which what died may have been sent all at once."""
    return sorted(live)[-2] / 60 if len(live) > 1 else 0.0


def _begins(live: float) -> float:
    return max(FIRST, SHARE_OF_LIVE * live)


def _held(facts: QueueFacts) -> int:
    return facts.visible + facts.in_flight + (facts.dying or 0)


def _told(rate: Rate, live: Sequence[int], now: datetime) -> Rate:
    """The rate with what is known of live messages now, and without what is too long ago."""
    if rate.borne_at is not None and now > rate.borne_at + REMEMBERED:
        rate = replace(rate, borne=None, borne_at=None)
    return replace(rate, looked_at=now, live=_live_per_second(live) if live else rate.live)


def _is_crowded(rate: Rate, facts: QueueFacts, arrives: float) -> bool:
    """Whether more messages wait or are in flight than usual, of so many that arrive a second."""
    share = SHARE_THAT_ENDS if rate.is_congested else 1.0
    usual = 2 * rate.without_ours
    waits = arrives * SURPLUS_WAIT
    if rate.is_quiet:
        # All that is dealt out ahead may wait, as some consumers poll at intervals: hardly anybody waits behind it.
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
    """The rate with what became of letters that went at about this rate."""
    since = max(now - SHOWS_WITHIN, rate.borne_at or now - SHOWS_WITHIN)
    fresh = [(failed, tried) for sent_at, failed, tried in outcomes if sent_at >= since]
    failed = REMEMBERED_SHARE * rate.failed + sum(one for one, _ in fresh)
    tried = REMEMBERED_SHARE * rate.tried + sum(one for _, one in fresh)
    usual = rate.usual_failing
    if tried >= FEWEST_TO_TELL:
        usual = min(failed / tried, 1.0 if usual is None else usual)
    return replace(rate, failed=failed, tried=tried, usual_failing=usual)


def _fails_more(rate: Rate) -> bool:
    """Whether more of the letters fail than at a lower rate: of poison, as many do at any."""
    usual = rate.usual_failing
    if usual is None or rate.tried < FEWEST_TO_TELL:
        return False
    likely = max(usual, 1 / rate.tried)
    chance = DEVIATIONS * sqrt(likely * (1 - likely) / rate.tried)
    return rate.failed / rate.tried > usual + SURPLUS_FAILING + chance


def _with_usual(rate: Rate, facts: QueueFacts, arrives: float, *, is_cleared: bool) -> Rate:
    """The rate with what is learned of the queue while few of our letters are there, or none."""
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
    """The rate to go on with after a congestion, or an outage: a share of what was borne."""
    goes_on = rate.per_second
    if rate.borne is not None:
        least = FIRST if rate.is_quiet else LEAST
        goes_on = max(least, SHARE_OF_BORNE * rate.borne)
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


def _growth(rate: Rate, use: _Use) -> float:
    """What the rate is multiplied by after a look."""
    if rate.borne is None:
        growth = GROWTH if use.is_heard_of(rate) else GROWTH_IN_TEN_SECONDS
    else:
        growth = _creep(rate, rate.borne)
    most: float = growth ** (min(use.since_last_look, LONGEST_STEP) / LOOKS_EVERY)
    return min(GROWTH, most)


def _creep(rate: Rate, borne: float) -> float:
    """The growth in ten seconds once a rate was too much; beyond what was borne, that was more than it seemed."""
    is_far = rate.per_second < NEAR * borne
    if rate.is_quiet:
        return GROWTH_IN_TEN_SECONDS if is_far else CREEP_ALONE
    return CREEP if is_far or rate.per_second >= borne else CREEP_NEAR


def _grown(rate: Rate, use: _Use, now: datetime) -> Rate:
    most = rate.per_second * _growth(rate, use)
    if rate.marked_at is None or now >= rate.marked_at + SHOWS_WITHIN:
        rate = replace(rate, before=rate.marked, marked=rate.per_second, marked_at=now)
    return replace(rate, per_second=most)


def _with_borne(rate: Rate, now: datetime) -> Rate:
    """The rate with what was borne: less than what was too much, and than what went where it did not grow since then."""
    borne = sqrt(rate.before * rate.per_second) or SHARE_OF_BORNE * rate.per_second
    return replace(rate, borne=borne, borne_at=now)


def _congested(rate: Rate, now: datetime, *, held: int, is_ours: bool) -> Rate:
    if rate.congested_since is None:
        if is_ours:
            rate = _with_borne(rate, now)
        return replace(rate, congested_since=now)
    if now < rate.congested_since + PATIENCE:
        return rate
    # Nothing went since, and it is still there: it is not ours.
    return replace(
        rate,
        congested_since=None,
        per_second=min(_begins(rate.live), rate.per_second),
        without_ours=held,
    )
