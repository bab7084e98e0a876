"""The story where letters are in no queue of SQS, and hours pass in seconds.

On a worker queue in Postgres, a real server with real transactions; or on a topic of Kafka, a log in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from rich.console import Console

from emulator.postgres import running_postgres
from simulator.kafka_world import KafkaWorld
from simulator.measures import Measures, measure
from simulator.postgres_world import PostgresWorld
from simulator.scenarios.scenario import Outage, Scenario
from simulator.smart_policy import SmartPolicy
from simulator.sources import LiveTraffic
from simulator.world import World, hours, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.report import Report

LETTERS, POISON = 300, 3
DOWN_FOR = minutes(45)

STORY = Scenario(
    name="story",
    title="300 dead letters, 3 of them poison, and consumers that are down for 45 more minutes",
    letters=LETTERS,
    poison=POISON,
    outage=Outage(lasts=DOWN_FOR),
    traffic=LiveTraffic(per_minute=2),
    settings=Settings(max_attempts=2, last_chance_seconds=600),
    calm_at=DOWN_FOR,
    until=hours(80),
)


def play_on_postgres(console: Console) -> bool:
    """Tell it of jobs; whether it ended well."""
    with running_postgres() as server:
        return _play(console, partial(PostgresWorld, server=server))


def play_on_kafka(console: Console) -> bool:
    """Tell it of records; whether it ended well."""
    return _play(console, KafkaWorld)


def _play(console: Console, make_world: Callable[..., World]) -> bool:
    console.print(STORY.title, highlight=False)
    world = replace(STORY, make_world=make_world).world(1)
    try:
        policy = SmartPolicy(world, STORY.settings, seed=1)
        STORY.play(world, _Told(policy, world, console))
        return _tell_end(measure(world, policy, STORY.calm_at), world, policy, console)
    finally:
        world.close()


class _Told:
    """The policy, with a line for each pass that did or learned something."""

    def __init__(self, policy: SmartPolicy, world: World, console: Console) -> None:
        self._policy = policy
        self._world = world
        self._console = console
        self._was_up = False

    @property
    def every(self) -> timedelta:
        return self._policy.every

    def tick(self) -> None:
        """One tick of the schedule, told."""
        is_up = not self._world.is_out(self._world.elapsed)
        if is_up and not self._was_up:
            self._say("the consumers are well again", "bold")
        self._was_up = is_up
        before = len(self._policy.reports)
        self._policy.tick()
        for report in self._policy.reports[before:]:
            if line := _line(report):
                self._say(line)

    def _say(self, line: str, style: str = "") -> None:
        at = int(self._world.elapsed.total_seconds()) // 60
        self._console.print(f"{at // 60:3}:{at % 60:02}  {line}", style=style, highlight=False)


def _line(report: Report) -> str:
    """The acts of a pass and the reports that it heard; empty for one that only looked."""
    parts = []
    if report.heard:
        parts.append("heard: " + ", ".join(f"{n} {what}" for what, n in report.heard.items()))
    if report.redriven:
        parts.append(f"{report.redriven} redriven")
    parts += [f"{n} parked, {why}" for why, n in report.parked.items()]
    if report.circuit_before != report.circuit_after:
        parts.append(f"circuit {report.circuit_after}")
    return "; ".join(parts)


def _tell_end(told: Measures, world: World, policy: SmartPolicy, console: Console) -> bool:
    reasons: Counter[str] = sum((Counter(one.parked) for one in policy.reports), Counter())
    dead = len(world.letters)
    done = len((world.letters - world.poison) & world.deliveries.done.keys())
    console.print(
        f"\nof {dead} letters {done} are done, {told.parked_rightly} poison pills are parked "
        f"({', '.join(f'{n} {why}' for why, n in reasons.items()) or 'none'}), {told.at_large} wait; "
        f"{told.lost} lost, {told.repeated} repeated, {told.parked_wrongly} parked that were good; "
        f"{told.redriven_in_outage} sent back while the consumers were down",
        highlight=False,
    )
    return not (told.lost or told.repeated or told.parked_wrongly) and done == dead - POISON
