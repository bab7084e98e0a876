"""Plots of scenario 3: what ours does, and what the consumer sees of each policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.timeline import Timeline, timeline
from simulator.scenarios import LONG_OUTAGE
from simulator.smart_policy import SmartPolicy

HOUR = timedelta(hours=1)
RECOVERY = LONG_OUTAGE.calm_at / HOUR
#: Hours that are worth seeing of a policy that takes days.
HOURS_SHOWN = 5

STATE_COLOURS = {"CLOSED": "#cdeac0", "HALF_OPEN": "#fff0b3", "OPEN": "#f6c1c0"}
INK = "#1f3a5f"


def draw_outage(path: Path) -> None:
    """State, window, depth and deliveries over time, of one run with our policy."""
    world = LONG_OUTAGE.world(0)
    policy = SmartPolicy(world, seed=0)
    LONG_OUTAGE.play(world, policy)
    past = timeline(world)
    times = [at / HOUR for at in policy.times]

    figure = Figure(figsize=(10, 7.5), layout="constrained")
    window, depth, deliveries = figure.subplots(3, 1, sharex=True)
    window.step(times, [report.window for report in policy.reports], where="post", color=INK)
    window.set(yscale="log", ylabel="window\n(letters)")
    depth.plot(_hours(past.dlq_depth), past.dlq_depth, color=INK)
    depth.set(ylabel="letters\nin the DLQ", ylim=(0, None))
    _draw_deliveries(deliveries, past)
    deliveries.set(yscale="symlog", ylabel="deliveries\na minute", ylim=(0, None))
    deliveries.set(xlabel="hours", xlim=(0, times[-1]))
    for axes in (window, depth, deliveries):
        for since, until, state in _spans(policy):
            axes.axvspan(since, until, color=STATE_COLOURS[state], linewidth=0, zorder=0)
        axes.axvline(RECOVERY, color="black", linestyle="--", linewidth=1)
    figure.suptitle("Scenario 3: 10,000 letters, the consumer recovers after 2 h (dashed line)")
    keys = [Patch(color=colour, label=state) for state, colour in STATE_COLOURS.items()]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
    save(figure, path)


def draw_policies(path: Path, timelines: Mapping[str, Timeline]) -> None:
    """Deliveries a minute, a panel for each policy."""
    figure = Figure(figsize=(10, 1.7 * len(timelines)), layout="constrained")
    panels: Any = figure.subplots(len(timelines), 1, sharex=True, sharey=True, squeeze=False)
    peak = max(max(past.deliveries) for past in timelines.values())
    for axes, (policy, past) in zip(panels[:, 0], timelines.items(), strict=True):
        _draw_deliveries(axes, past)
        axes.axvspan(0, RECOVERY, color=STATE_COLOURS["OPEN"], linewidth=0, zorder=0)
        axes.set(yscale="symlog", xlim=(0, HOURS_SHOWN), ylim=(0, 2 * peak))
        axes.set_yticks([0, 10, 1_000, 100_000])
        axes.set_title(policy, loc="left", fontsize=10)
    figure.supxlabel("hours; the consumer is down until the red ends", fontsize=10)
    figure.supylabel("deliveries a minute", fontsize=10)
    save(figure, path)


def _spans(policy: SmartPolicy) -> Iterator[tuple[float, float, str]]:
    """From when to when the circuit was in which state, in hours."""
    changes = [
        (at / HOUR, state)
        for number, (at, state) in enumerate(policy.states)
        if number == 0 or policy.states[number - 1][1] != state
    ]
    ends = [at for at, _ in changes[1:]] + [policy.times[-1] / HOUR]
    for (since, state), until in zip(changes, ends, strict=True):
        yield since, until, state


def _draw_deliveries(axes: Axes, past: Timeline) -> None:
    # One filled path: a line for each minute would be a file ten times as large.
    counts = past.deliveries[: HOURS_SHOWN * 60]
    axes.stairs(counts, [*_hours(counts), len(counts) / 60], fill=True, color=INK)


def _hours(by_minute: list[int]) -> list[float]:
    return [minute / 60 for minute in range(len(by_minute))]


def save(figure: Figure, path: Path) -> None:
    """Save it so that the same run draws the same file."""
    with mpl.rc_context({"svg.hashsalt": path.name}):
        figure.savefig(path, metadata={"Date": None})
