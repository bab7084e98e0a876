"""A scenario, and how a policy plays it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from simulator.consumers import Consumer, Downstream, Reports, down_until
from simulator.limits import Limits
from simulator.measures import Measures, measure
from simulator.mishaps import BadWire, Mishaps
from simulator.nobody import Nobody
from simulator.person import Order, give
from simulator.smart_policy import Hint, SmartPolicy
from simulator.sources import LiveTraffic, Source
from simulator.target_world import TargetWorld
from simulator.world import Conditions, Policy, World, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import SERVED

#: How long the policy goes on after everything has come to rest, to decide what it still has to decide.
AFTERMATH = minutes(30)

#: Makes a policy for one world; the number seeds its jitter.
PolicyMaker = Callable[[World, int], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The consumer is down from the start, or only something that some of the messages need.

    Attributes:
        lasts: until when.
        share: of the letters that it affects, from 0 to 1.
        live_share: of the live messages, if it does not affect all letters.

    """

    lasts: timedelta
    share: float = 1.0
    live_share: float = 0.0

    def befall(self, consumer: Consumer) -> Consumer:
        """The consumer in this outage."""
        health = down_until(self.lasts)
        if self.share >= 1:
            return replace(consumer, health=health)
        downstream = Downstream(health=health, share=self.share, live_share=self.live_share)
        return replace(consumer, downstream=downstream)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A second source queue that shares the DLQ, and its dead letters at the start."""

    source: Source
    letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A scenario that a policy has played to the end."""

    world: World
    policy: Policy
    measures: Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One world, how long to watch it, and what must hold.

    Attributes:
        name: the row's number in the design, plus what tells its variants apart; for the command, tables and test ids.
        letters, poison: dead letters at the start, and how many of them are poison pills.
        left: how long before the letters' expiry in the DLQ the world begins.
        consumer: by the seed; `outage` befalls it.
        foreign: letters in the DLQ that came from a queue that no one knows.
        held: how many of the dead letters someone else has received, and for how many seconds they keep them.
        burst: live messages that wait in the source queue before the first pass.
        settings: ours.
        orders: what a person orders, and when.
        hints: when and how someone says that the consumer is well again.
        mishaps: what happens to the passes.
        calm_at: from when the consumer is well for good and no new poison comes; the time to drain counts from here.
        seeds: how many seeds, counted from 0, make the scenario's runs.
        lasts: how long it is watched even if nothing waits anywhere.
        until: when it ends, whatever is left.
        aftermath: how long it goes on after everything has come to rest.
        step: how finely time moves.
        make_world: makes the world; by default one of SQS queues.

    """

    name: str
    title: str
    letters: int
    poison: int = 0
    left: timedelta | None = None
    consumer: Callable[[int], Consumer] = lambda _: Consumer()
    outage: Outage | None = None
    traffic: LiveTraffic | None = None
    neighbour: Neighbour | None = None
    foreign: int = 0
    held: tuple[int, int] | None = None
    burst: int = 0
    conditions: Conditions = field(default_factory=Conditions)
    settings: Settings = field(default_factory=Settings)
    orders: tuple[tuple[timedelta, Order], ...] = ()
    hints: tuple[tuple[timedelta, Hint], ...] = ()
    mishaps: Mishaps | None = None
    calm_at: timedelta = timedelta()
    lasts: timedelta = timedelta()
    until: timedelta
    aftermath: timedelta = AFTERMATH
    step: timedelta = timedelta(seconds=10)
    seeds: int = 5
    limits: Limits = field(default_factory=Limits)
    make_world: Callable[..., World] = World

    def world(self, seed: int) -> World:
        """The world of this scenario, its letters in the DLQ."""
        consumer = self.consumer(seed)
        kind = TargetWorld if SERVED[self.conditions.origin] else self.make_world
        world = kind(
            seed=seed,
            consumer=self.outage.befall(consumer) if self.outage else consumer,
            traffic=self.traffic,
            neighbours=[self.neighbour.source] if self.neighbour else (),
            step=self.step,
            conditions=self.conditions,
        )
        if self.neighbour:
            world.dead_letters(self.neighbour.letters, of=self.neighbour.source.name)
        world.dead_letters(self.letters, poison=self.poison, left=self.left)
        if self.foreign:
            world.foreign_letters(self.foreign)
        if self.held:
            world.hold(*self.held)
        for number in range(self.burst):
            world.send(f"burst-{number}")
        return world

    def play(self, world: World, policy: Policy) -> None:
        """Let the policy work until nothing waits any more, and a little longer."""
        world.run(
            policy,
            until=self.until,
            stop=lambda: world.elapsed >= self.lasts and world.is_settled,
        )
        world.run(policy, until=min(world.elapsed + self.aftermath, self.until))

    def played(
        self, seed: int, make: PolicyMaker | None = None, *, watches_live: bool = False
    ) -> Played:
        """A world of this scenario, played by the policy that `make` makes: by default ours, with `settings`.

        `watches_live` also measures what it costs producers' messages, by playing the world a second time without a
        policy. If the limits need that, it happens anyway.
        """
        world = self.world(seed)
        wire = BadWire(world, self.mishaps, seed) if self.mishaps else None
        policy = (make or self.ours)(world, seed)
        self._announce_orders(world, policy)
        self.play(world, wire.under(policy) if wire else policy)
        untouched = None
        if watches_live or self.limits.is_about_live:
            untouched = self.world(seed)
            untouched.run(Nobody(), until=world.elapsed)
        measures = measure(world, policy, self.calm_at, untouched)
        if untouched is not None:
            untouched.close()
        return Played(world=world, policy=policy, measures=measures)

    def ours(self, world: World, seed: int) -> Policy:
        """Our policy with the scenario's settings."""
        return SmartPolicy(world, self.settings, seed=seed)

    def reporting(self, how: Reports | None = None) -> Scenario:
        """This scenario, with the kit at all its consumers. Its name and limits stay the same."""
        reports, neighbour = how or Reports(), self.neighbour
        if neighbour:
            consumer = replace(neighbour.source.consumer, reports=reports)
            neighbour = replace(neighbour, source=replace(neighbour.source, consumer=consumer))
        return replace(
            self,
            consumer=lambda seed: replace(self.consumer(seed), reports=reports),
            neighbour=neighbour,
        )

    def _announce_orders(self, world: World, policy: Policy) -> None:
        if isinstance(policy, SmartPolicy):  # nobody gives a rival orders
            for moment, order in self.orders:
                world.later(moment, partial(give, order, policy, world))
            for moment, hint in self.hints:
                world.later(moment, partial(policy.hear, hint))
