"""A scenario with changes: what a person wishes on top of it, if that is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from simulator.conditions import Conditions
from simulator.consumers import (
    Beyond,
    Consumer,
    Downstream,
    Reports,
    Validity,
    down_until,
    flapping,
    healthy,
)
from simulator.limits import Limits
from simulator.scenarios import Scenario
from simulator.scenarios.scenario import Outage
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import SERVED, Origin


class ImpossibleError(ValueError):
    """Raised if wishes contradict each other or the scenario. The message is a sentence for the person who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Changes to the scenario; None leaves it as it is.

    Attributes:
        letters, poison: at the start.
        down_hours: the outage from the start; 0 for none.
        partial: share of the letters that need the downstream that is down; the rest succeed.
        off_hours: how long the consumer polls nothing.
        flapping: minutes up, minutes down.
        receive_failures: share of deliveries that fail by chance.
        whole_batches: one failed message fails its batch; False leaves the scenario as it is.
        consumer_backoff, consumer_delay: seconds that the consumer hides a failed message, and that it takes for one.
        live_per_minute, live_poison_per_minute: messages that producers send.
        visibility_timeout, count_lag, metrics_lag: seconds.
        max_receive_count, count_noise: receives, and messages.
        watch_hours: when the scenario ends, whatever is left.
        reports: the consumers have the kit, and report; False leaves the scenario as it is.
        permanent: they also mark poison as permanent. That needs the kit: it implies `reports`.
        fifo: the queues are FIFO queues; False leaves the scenario as it is.
        groups: message groups of FIFO queues.
        origin: what fills the DLQ.
        capacity: messages a second that the consumer can handle, including live ones.
        beyond: what happens beyond that: wait, fail, collapse, fall.
        broken_kind, broken_hours: the share of the messages, including live ones, that fails, and for how long.
        valid_hours: messages older than this always fail.

    """

    letters: int | None = None
    poison: int | None = None
    down_hours: float | None = None
    partial: float | None = None
    off_hours: float | None = None
    flapping: tuple[float, float] | None = None
    receive_failures: float | None = None
    whole_batches: bool = False
    consumer_backoff: int | None = None
    consumer_delay: int | None = None
    live_per_minute: float | None = None
    live_poison_per_minute: float | None = None
    visibility_timeout: int | None = None
    max_receive_count: int | None = None
    count_lag: float | None = None
    count_noise: int | None = None
    metrics_lag: float | None = None
    watch_hours: float | None = None
    reports: bool = False
    permanent: bool = False
    fifo: bool = False
    groups: int | None = None
    origin: str | None = None
    capacity: float | None = None
    beyond: str | None = None
    broken_kind: float | None = None
    broken_hours: float | None = None
    valid_hours: float | None = None


#: Seconds between tries of an asynchronous invocation, if the source queue stands for another origin.
OF_A_FUNCTION = 90

#: How finely time moves if a consumer has a capacity: capacities are per second.
FINE = timedelta(seconds=1)

#: The scenario from which a person's own world begins.
OWN = Scenario(name="own", title="a world of one's own", letters=200, until=hours(96))


def vary(scenario: Scenario, wishes: Wishes, settings: Settings) -> Scenario:
    """The scenario as wished for. It keeps its limits only if nothing differs. Raises ImpossibleError."""
    if wishes == Wishes() and settings == scenario.settings:
        return scenario
    varied = _with_letters(scenario, wishes)
    varied = replace(
        varied,
        title=scenario.title if scenario is OWN else f"{scenario.title}; changed by options",
        settings=settings,
        conditions=_conditions(scenario.conditions, wishes),
        traffic=_traffic(scenario.traffic, wishes),
        consumer=_consumer(scenario, wishes),
        limits=Limits(repeats=True, parks_good=True, leaves_some=True),
    )
    is_borne = wishes.capacity is not None
    varied = replace(varied, step=FINE if is_borne else scenario.step)
    other = max(wishes.off_hours or 0, wishes.broken_hours or 0)
    varied = _with_calm(varied, _outage(scenario, wishes), hours(other))
    _check(varied)
    if wishes.reports or wishes.permanent:
        varied = _reporting(varied, wishes)
    if wishes.watch_hours is not None:
        varied = replace(varied, until=hours(wishes.watch_hours))
    return varied


def _with_letters(scenario: Scenario, wishes: Wishes) -> Scenario:
    letters = scenario.letters if wishes.letters is None else wishes.letters
    poison = scenario.poison if wishes.poison is None else wishes.poison
    if wishes.letters is not None and wishes.poison is None and scenario.poison == scenario.letters:
        poison = letters  # of a scenario with nothing but poison
    if poison > letters:
        message = f"{poison} poison pills can't be among {letters} letters."
        raise ImpossibleError(message)
    return replace(scenario, letters=letters, poison=poison)


def _conditions(conditions: Conditions, wishes: Wishes) -> Conditions:
    wished = {
        "visibility_timeout": wishes.visibility_timeout,
        "max_receive_count": wishes.max_receive_count,
        "count_lag_seconds": wishes.count_lag,
        "count_noise": wishes.count_noise,
        "metrics_lag_seconds": wishes.metrics_lag,
        "fifo": wishes.fifo or None,
        "groups": wishes.groups,
        "origin": wishes.origin and Origin(wishes.origin),
    }
    if wishes.groups is not None and not (wishes.fifo or conditions.fifo):
        message = "--groups are of FIFO queues: add --fifo."
        raise ImpossibleError(message)
    given = {name: value for name, value in wished.items() if value is not None}
    if SERVED[Origin(wishes.origin or Origin.SQS)]:
        given = {"visibility_timeout": OF_A_FUNCTION} | given
    return replace(conditions, **given)  # type: ignore[arg-type]  # each has its field's type


def _traffic(traffic: LiveTraffic | None, wishes: Wishes) -> LiveTraffic | None:
    wished = {
        "per_minute": wishes.live_per_minute,
        "poison_per_minute": wishes.live_poison_per_minute,
    }
    given = {name: value for name, value in wished.items() if value is not None}
    return replace(traffic or LiveTraffic(), **given) if given else traffic  # type: ignore[arg-type]


def _consumer(scenario: Scenario, wishes: Wishes) -> Callable[[int], Consumer]:
    usual = scenario.consumer(0)
    changes = {
        "failure_probability": wishes.receive_failures,
        "backoff_seconds": wishes.consumer_backoff,
        "processing_seconds": wishes.consumer_delay,
        "whole_batches": wishes.whole_batches or None,
        "capacity_per_second": wishes.capacity,
        "beyond": wishes.beyond and Beyond(wishes.beyond),
        "validity": wishes.valid_hours and Validity(lasts=hours(wishes.valid_hours)),
        "downstream": _broken_kind(scenario, wishes),
        "polls": None if wishes.off_hours is None else down_until(hours(wishes.off_hours)),
    }
    if wishes.flapping is not None:
        if wishes.down_hours is not None or scenario.outage or usual.health is not healthy:
            message = "A consumer that flaps can't be down for good as well: tell one of the two."
            raise ImpossibleError(message)
        up, down = wishes.flapping
        changes["health"] = flapping(minutes(up), minutes(down))
    given = {name: value for name, value in changes.items() if value is not None}
    return lambda seed: replace(scenario.consumer(seed), **given)  # type: ignore[arg-type]


def _broken_kind(scenario: Scenario, wishes: Wishes) -> Downstream | None:
    share, lasts = wishes.broken_kind, wishes.broken_hours
    if share is None and lasts is None:
        return None
    if share is None or lasts is None:
        message = (
            "--broken-kind says how many messages fail, --broken-hours for how long: tell both."
        )
        raise ImpossibleError(message)
    outage = scenario.outage
    if wishes.partial is not None or (outage and outage.share < 1):
        message = (
            "--broken-kind: some of the letters need what is down already, by --partial or the scenario; tell one of "
            "the two."
        )
        raise ImpossibleError(message)
    return Downstream(health=down_until(hours(lasts)), share=share, live_share=share)


def _reporting(scenario: Scenario, wishes: Wishes) -> Scenario:
    usual = scenario.consumer(0).reports or Reports()
    return scenario.reporting(replace(usual, permanent=usual.permanent or wishes.permanent))


def _outage(scenario: Scenario, wishes: Wishes) -> Outage | None:
    if wishes.down_hours is None and wishes.partial is None:
        return scenario.outage
    if wishes.down_hours is not None and scenario.consumer(0).health is not healthy:
        message = f"The consumer of scenario {scenario.name} is up and down by itself: --down-hours can't be added."
        raise ImpossibleError(message)
    before = scenario.outage or Outage(lasts=timedelta())
    lasts = before.lasts if wishes.down_hours is None else hours(wishes.down_hours)
    if wishes.partial is None:
        return replace(before, lasts=lasts)
    if not lasts:
        message = "--partial needs an outage: add --down-hours, or take a scenario that has one."
        raise ImpossibleError(message)
    return replace(before, lasts=lasts, share=wishes.partial)


def _with_calm(scenario: Scenario, outage: Outage | None, off: timedelta) -> Scenario:
    """The scenario with this outage, watched for as long after it as it was after its own."""
    before = scenario.outage.lasts if scenario.outage else timedelta()
    base = timedelta() if scenario.calm_at == before else scenario.calm_at
    calm_at = max(base, outage.lasts if outage else timedelta(), off)
    later = calm_at - scenario.calm_at
    return replace(
        scenario,
        outage=outage,
        calm_at=calm_at,
        until=scenario.until + later,
        lasts=max(timedelta(), scenario.lasts + later) if scenario.lasts else timedelta(),
    )


def _check(scenario: Scenario) -> None:
    _check_capacity(scenario)
    visibility = scenario.conditions.visibility_timeout
    delay = scenario.consumer(0).processing_seconds
    if delay >= visibility:
        message = (
            f"A consumer that takes {delay} s for a message needs a visibility timeout above that, not {visibility} "
            "s."
        )
        raise ImpossibleError(message)
    if scenario.conditions.fifo and scenario.consumer(0).whole_batches:
        message = (
            "The simulated consumer of FIFO queues reports the failed ones of a batch: leave out --whole-batches or "
            "--fifo."
        )
        raise ImpossibleError(message)
    if scenario.conditions.origin is not Origin.SQS:
        _check_origin(scenario)


def _check_capacity(scenario: Scenario) -> None:
    consumer, traffic = scenario.consumer(0), scenario.traffic or LiveTraffic()
    if not consumer.capacity_per_second:
        if consumer.beyond is not Beyond.WAIT:
            message = "--beyond says what happens beyond what the consumer bears: add --capacity."
            raise ImpossibleError(message)
        return
    live = (traffic.per_minute + traffic.poison_per_minute) / 60
    if live >= consumer.capacity_per_second:
        message = (
            f"Producers send {live:g} messages a second, and the consumer bears {consumer.capacity_per_second:g}: "
            "nothing is left for letters."
        )
        raise ImpossibleError(message)


def _check_origin(scenario: Scenario) -> None:
    origin, consumer = scenario.conditions.origin, scenario.consumer(0)
    has_none = {
        "order within message groups": scenario.conditions.fifo,
        "second source queue": scenario.neighbour,
        "consumer that makes messages of letters": consumer.splits,
        "consumer that reports": consumer.reports,
        "consumer with a capacity": consumer.capacity_per_second and origin is not Origin.KAFKA,
        "consumer that takes its time": consumer.processing_seconds,
        "consumer that fails whole batches": consumer.whole_batches,
        "bad wire between the pass and its queues": scenario.mishaps,
    }
    for what, is_asked in has_none.items():
        if is_asked:
            message = f"--origin {origin.value}: its simulated world has no {what}."
            raise ImpossibleError(message)
