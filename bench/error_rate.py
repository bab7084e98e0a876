"""How often a good letter is parked as a poison pill, and what it takes to park a pill sooner.

The engine can't tell a good letter from a pill until it succeeds, and then it is done. So a good letter is parked if it fails by chance
in as many tries in a row as a pill gets, and how many that are the real pass says, beside messages that fail by the same chance.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from bench.request import Request
from bench.results import Results, Table
from simulator.conditions import Conditions
from simulator.consumers import Consumer
from simulator.smart_policy import SmartPolicy
from simulator.sources import LiveTraffic
from simulator.world import DLQ, World, hours, minutes
from smart_redriver.engine.config.settings import Settings

#: A good letter fails in so many of its tries, as live messages do.
CHANCE = 0.1
LETTERS = 1_000_000
#: At most so many of the good letters may be parked as poison.
ALLOWED = 1e-4
CONFIDENCE = 0.95

_GOOD, _PILLS = 60, 20
_LIVE_PER_MINUTE = 6
_ATTEMPTS, _LAST_CHANCES = (1, 2, 3, 4, 5, 8), (0, 3_600, 21_600)
_SEEDS = 3
_USUAL = Settings()
#: A smaller rate is drawn as this: none of a million was parked.
_LEAST_DRAWN = 1e-14
_COLOURS = ("#c8553d", "#9aa5b1", "#1f3a5f")
#: Wald's test has what it takes after so many failures in a row: each says log(1 / CHANCE).
WALD = math.ceil(math.log(ALLOWED) / math.log(CHANCE))

NOTE = f"""\
A pill's tries and times come from real passes in worlds of {_GOOD} good letters, {_PILLS} pills and {_LIVE_PER_MINUTE} live messages a minute, without reports. Each of the {LETTERS:,}
good letters gets as many tries as a random pill, and fails each with a chance of {CHANCE:g}. The bounds are Clopper and Pearson's, at {CONFIDENCE:.0%}.
Wald's test, the quickest at {ALLOWED:g}, would park a pill at failure {WALD}, but can't recognize an outage.

The ring marks the defaults: {_USUAL.max_attempts} strikes, a last chance after {_USUAL.last_chance_seconds / 3_600:g} h. The dashed line is the required {ALLOWED:g}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pill:
    """One poison pill that was parked: when each of its tries was sent, and when it was parked."""

    tries: tuple[timedelta, ...]
    parked: timedelta


class _Watched(SmartPolicy):
    """Our policy, which notes when each letter goes where."""

    def __init__(self, world: World, settings: Settings, seed: int) -> None:
        super().__init__(world, settings, seed=seed)
        self.tries: defaultdict[str, list[timedelta]] = defaultdict(list)
        self.parked: dict[str, timedelta] = {}
        self._watched = world

    def _note(self, event: str, /, **fields: Any) -> None:
        super()._note(event, **fields)
        if event == "letter.redriven":
            self.tries[fields["original_id"]].append(self._watched.elapsed)
        elif event == "letter.parked":
            self.parked[fields["original_id"]] = self._watched.elapsed


def bench(request: Request) -> None:
    """Play, draw, show, leave."""
    results = Results(name="error-rate", title="Good letters that are parked as poison")
    seeds = 1 if request.is_quick else _SEEDS
    few = [(_USUAL.max_attempts, _USUAL.last_chance_seconds)]
    every = few if request.is_quick else [(n, last) for last in _LAST_CHANCES for n in _ATTEMPTS]
    rows = []
    for attempts, last_chance in every:
        settings = replace(_USUAL, max_attempts=attempts, last_chance_seconds=last_chance)
        pills = [pill for seed in range(seeds) for pill in pills_of(settings, seed)]
        figures = _figures(pills)
        results.figures[f"{attempts}:{last_chance}"] = figures
        rows.append([f"{attempts}", f"{last_chance / 3_600:g} h", *_cells(figures)])
    title = f"{LETTERS:,} good letters that fail by chance one time in ten"
    headings = ("`max_attempts`", "last chance", "tries of a pill", "parked", "expected", "bounds")
    times = ("median time to park a pill", f"to its try {WALD}")
    table = Table(title=title, headings=(*headings, *times), rows=rows, note=NOTE)
    results.show(request, table)
    if request.out:
        request.out.mkdir(parents=True, exist_ok=True)
        results.plots.append("error-rate.png")
        _draw(request.out / results.plots[-1], results.figures)
    results.leave(request)


def pills_of(settings: Settings, seed: int) -> list[Pill]:
    """The pills of one world that were parked: when each was tried, and when it was parked."""
    consumer = Consumer(failure_probability=CHANCE)
    traffic = LiveTraffic(per_minute=_LIVE_PER_MINUTE)
    once = Conditions(max_receive_count=1)
    world = World(seed=seed, consumer=consumer, traffic=traffic, conditions=once, step=minutes(1))
    policy = _Watched(world, settings, seed)
    world.dead_letters(_GOOD + _PILLS, poison=_PILLS)
    dead = world.sqs.inspect.messages(DLQ)
    pills = {one.message_id for one in dead if one.body in world.poison}
    began = world.elapsed
    world.run(policy, until=began + hours(48), stop=lambda: pills <= policy.parked.keys())
    return [
        Pill(tries=tuple(at - began for at in policy.tries[one]), parked=policy.parked[one] - began)
        for one in sorted(pills & policy.parked.keys())
    ]


def clopper_pearson(hits: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The bounds of a share of which `hits` of so many were seen.

    C. Clopper and E. Pearson, The use of confidence or fiducial limits, Biometrika 26, 1934.
    """
    tail = (1 - confidence) / 2
    low = _share_at(hits - 1, of, 1 - tail) if hits else 0.0
    return low, _share_at(hits, of, tail) if hits < of else 1.0


def _share_at(most: int, of: int, probability: float) -> float:
    """The share at which no more than `most` of so many are hits with this probability."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(most, of, middle) > probability else (low, middle)
    return (low + high) / 2


def _at_most(most: int, of: int, share: float) -> float:
    """The binomial distribution's sum up to `most`, from there downwards: what is far away adds nothing."""
    mean = of * share
    log = math.lgamma(of + 1) - math.lgamma(most + 1) - math.lgamma(of - most + 1)
    term = math.exp(log + most * math.log(share) + (of - most) * math.log1p(-share))
    if most >= mean and term < 1e-300:
        return 1.0
    total, number = 0.0, most
    while number >= 0 and term > total * 1e-16:
        total += term
        term *= number * (1 - share) / ((of - number + 1) * share)
        number -= 1
    return min(1.0, total)


def _figures(pills: Sequence[Pill]) -> dict[str, float]:
    tries = [len(one.tries) for one in pills]
    rng = Random(len(pills))
    parked = sum(rng.random() < CHANCE**count for count in rng.choices(tries, k=LETTERS))
    low, high = clopper_pearson(parked, LETTERS)
    wald = [one.tries[WALD - 1] for one in pills if len(one.tries) >= WALD]
    return {
        "pills": len(pills),
        "tries_least": min(tries),
        "tries_most": max(tries),
        "parked": parked,
        "expected": sum(CHANCE**count for count in tries) / len(tries),
        "low": low,
        "high": high,
        "park_minutes": median(one.parked / minutes(1) for one in pills),
        "wald_minutes": median(at / minutes(1) for at in wald) if wald else math.nan,
    }


def _draw(path: Path, figures: Mapping[str, Mapping[str, float]]) -> None:
    """The share that is parked, with its bounds, over the time that it takes to park a pill: a curve for each last chance."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for last_chance, colour in zip(_LAST_CHANCES, _COLOURS, strict=True):
        of = [figures[f"{attempts}:{last_chance}"] for attempts in _ATTEMPTS]
        times, shares = [one["park_minutes"] for one in of], [one["expected"] for one in of]
        label = f"last chance {last_chance / 3_600:g} h"
        axes.plot(times, shares, marker="o", markersize=4, color=colour, label=label)
        axes.vlines(
            times,
            [max(one["low"], _LEAST_DRAWN) for one in of],
            [one["high"] for one in of],
            color=colour,
        )
    usual = figures[f"{_USUAL.max_attempts}:{_USUAL.last_chance_seconds}"]
    axes.plot(
        [usual["park_minutes"]],
        [usual["expected"]],
        marker="o",
        markersize=12,
        fillstyle="none",
        linestyle="none",
        color="black",
        label="defaults",
    )
    axes.axhline(ALLOWED, color="black", linestyle="--", linewidth=1)
    axes.set(yscale="log", ylim=(_LEAST_DRAWN, 1), xlim=(0, None))
    axes.set(xlabel="median minutes to park a pill", ylabel="good letters parked, share")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


def _cells(figures: dict[str, float]) -> list[str]:
    wald = figures["wald_minutes"]
    return [
        f"{figures['tries_least']:.0f} to {figures['tries_most']:.0f}",
        f"{figures['parked']:,.0f}",
        f"{figures['expected']:.2g}",
        f"{figures['low']:.2g} to {figures['high']:.2g}",
        f"{figures['park_minutes']:,.0f} min",
        "" if math.isnan(wald) else f"{wald:,.0f} min",
    ]
