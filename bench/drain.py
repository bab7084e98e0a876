"""A million letters after an outage, in virtual time: how long until the last one is done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bench.request import Request
from bench.results import Results, Table
from simulator.consumers import Consumer
from simulator.smart_policy import SmartPolicy
from simulator.world import World
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Orders

LETTERS = 1_000_000
LETTERS_WHEN_QUICK = 20_000

#: A consumer that recovers by the time of the first pass, and then takes all it is given.
STEP = timedelta(seconds=30)

#: The order of `redrive drain --window 100000 --rate 1000`.
DRAIN_WINDOW, DRAIN_RATE = 100_000, 1000.0


def bench(request: Request) -> None:
    """Play both, show, leave."""
    letters = LETTERS_WHEN_QUICK if request.is_quick else LETTERS
    played = {}
    for what, drains in (("default settings", False), ("`redrive drain`", True)):
        with request.console.status(f"{letters:,} letters, {what}"):
            played[what] = play(letters, drains=drains)
    publish(request, letters, played)


def publish(request: Request, letters: int, played: Mapping[str, Mapping[str, Any]]) -> None:
    """Show and leave what was played, by the settings that it was played with."""
    results = Results(name="drain", title="A million letters after an outage")
    results.figures |= played
    rows = [
        [
            what,
            f"{figures['hours']:.1f} h",
            str(figures["passes"]),
            f"{figures['largest_window']:,}",
            f"{figures['lost']}",
            f"{figures['repeated']}",
            f"{figures['real_seconds']:.0f} s",
        ]
        for what, figures in played.items()
    ]
    results.show(
        request,
        Table(
            title=f"{letters:,} letters in the DLQ, the consumer is well again, one Lambda",
            headings=(
                "settings",
                "drained after",
                "passes",
                "largest window",
                "lost",
                "repeated",
                "simulated in",
            ),
            rows=rows,
            note=f"Virtual time. The default rate of 100 letters a second alone makes it 2.8 h; the order to drain allows {DRAIN_RATE:,.0f}.",
        ),
    )
    results.leave(request)


def play(letters: int, *, drains: bool) -> dict[str, Any]:
    """Play one of them, and say how it went."""
    began = time.perf_counter()
    world = World(seed=0, consumer=Consumer(), step=STEP)
    world.dead_letters(letters)
    settings = Settings()
    if drains:
        settings = replace(settings, max_window=DRAIN_WINDOW)
    policy = SmartPolicy(world, settings)
    if drains:
        now = world.clock.now()
        orders = Orders(
            drain_until=now + timedelta(days=30),
            drain_window=DRAIN_WINDOW,
            drain_rate=DRAIN_RATE,
            by="bench",
        )
        circuit = breaker.new_circuit("orders", settings, now)
        policy.store.save_circuit(breaker.order(circuit, orders, now))
    world.run(policy, until=timedelta(days=30), stop=lambda: world.is_drained)
    return {
        "letters": letters,
        "hours": world.elapsed / timedelta(hours=1),
        "passes": len(policy.reports),
        "largest_window": max(report.window or 0 for report in policy.reports),
        "lost": len(world.lost()),
        "repeated": sum(count - 1 for count in world.deliveries.done.values()),
        "real_seconds": time.perf_counter() - began,
    }
