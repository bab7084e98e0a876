"""Limits that hold in a scenario, as data: the same for the tests and for the benches that play it more often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from simulator.measures import Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The right-hand column of the design's table of scenarios.

    These limits hold for every run unless an attribute here says otherwise: nothing is lost, nothing is done twice, no
    attribute is lost, no good letter is parked, and none is left at large; so do the limits of the circuit. Figures
    limit the mean over the seeds. None means no limit.

    Attributes:
        drained, good_drained, poison_parked: minutes from when the world is well until every dead letter is done or
            rightly parked; until every good one is done; until every poison pill is parked.
        wasted, redriven_in_outage: deliveries to a consumer that is down, and letters sent back during an outage.
        wasted_on_letters: of these deliveries, those of what was a dead letter from the start.
        redriven_before_open: fewer letters than this are redriven.
        opens: whether the circuit is ever OPEN.
        opened_within: minutes.
        closed_within: minutes from when the world is well.
        parked_early: the most good letters that may be parked before their last chance; None if none may be parked at
            all.
        live_died: share of the producers' messages sent meanwhile that may die because of redriving: 0.0001 is one in
            10,000.
        live_wait: the seconds by which redriving may lengthen the wait of 99 of 100 producers' messages.
        falls: how often the consumer may fall over in any run.
        stays_open: whether the circuit may be OPEN at the end.
        repeats, parks_good, leaves_some: whether letters may be done twice; be parked although they are good; be at
            large at the end.

    """

    drained: float | None = None
    good_drained: float | None = None
    poison_parked: float | None = None
    wasted: float | None = None
    wasted_on_letters: float | None = None
    redriven_in_outage: float | None = None
    redriven_before_open: int | None = None
    opens: bool | None = None
    opened_within: float | None = None
    closed_within: float | None = None
    parked_early: int | None = None
    live_died: float | None = None
    live_wait: float | None = None
    falls: int | None = None
    stays_open: bool = True
    repeats: bool = False
    parks_good: bool = False
    leaves_some: bool = False

    @property
    def is_about_live(self) -> bool:
        """Whether a world in which no one redrives has to be played for comparison."""
        return self.live_died is not None or self.live_wait is not None


def breaches_of_run(limits: Limits, run: Measures) -> Iterator[str]:
    """Return the limits that a single run broke, as sentences."""
    counts = {"lost": run.lost, "stripped": run.stripped}
    if not limits.repeats:
        counts["repeated"] = run.repeated
    if not limits.parks_good:
        counts["parked wrongly"] = run.parked_wrongly
    if not limits.leaves_some:
        counts["at large"] = run.at_large
    yield from (f"{count} {what}" for what, count in counts.items() if count)
    if limits.parked_early is not None and run.parked_early > limits.parked_early:
        yield f"{run.parked_early} parked before their last chance, limit {limits.parked_early}"
    if limits.falls is not None and run.falls > limits.falls:
        yield f"fell over {run.falls} times, limit {limits.falls}"
    yield from _breaches_of_live(limits, run)
    yield from _breaches_of_circuit(limits, run)


def _breaches_of_live(limits: Limits, run: Measures) -> Iterator[str]:
    live = run.live
    if live is None:
        return
    if limits.live_died is not None and live.died > limits.live_died * live.sent:
        yield f"{live.died} of {live.sent} live messages died, limit {limits.live_died:g}"
    if limits.live_wait is not None and live.wait_p99_seconds > limits.live_wait:
        yield f"live messages wait {live.wait_p99_seconds:g} s longer (p99), limit {limits.live_wait:g}"


def breaches_of_mean(limits: Limits, runs: Sequence[Measures]) -> Iterator[str]:
    """The limits that the mean over runs broke, as sentences. A run that never got there exceeds any limit."""
    figures = (
        ("drained after", limits.drained, [run.drained_after_minutes for run in runs]),
        (
            "good drained after",
            limits.good_drained,
            [run.good_drained_after_minutes for run in runs],
        ),
        (
            "poison parked after",
            limits.poison_parked,
            [run.poison_parked_after_minutes for run in runs],
        ),
        ("wasted", limits.wasted, [run.wasted for run in runs]),
        (
            "wasted on letters",
            limits.wasted_on_letters,
            [run.wasted_on_letters for run in runs],
        ),
        (
            "redriven in the outage",
            limits.redriven_in_outage,
            [run.redriven_in_outage for run in runs],
        ),
    )
    for what, limit, seen in figures:
        if limit is None:
            continue
        known = [figure for figure in seen if figure is not None]
        if len(known) < len(seen):
            yield f"{what} {limit:g}: never in {len(seen) - len(known)} of {len(seen)} runs"
        elif fmean(known) > limit:
            yield f"{what} {fmean(known):.4g}, limit {limit:g}"


def _breaches_of_circuit(limits: Limits, run: Measures) -> Iterator[str]:
    circuit = run.circuit
    if circuit is None:
        return
    if limits.opens is not None and circuit.opened != limits.opens:
        yield "was OPEN" if circuit.opened else "was never OPEN"
    within = limits.opened_within
    if within is not None and (
        circuit.opened_after_minutes is None or circuit.opened_after_minutes > within
    ):
        yield f"OPEN after {circuit.opened_after_minutes} minutes, limit {within:g}"
    within = limits.closed_within
    if within is not None and (
        circuit.closed_after_minutes is None or circuit.closed_after_minutes > within
    ):
        yield f"CLOSED after {circuit.closed_after_minutes} minutes, limit {within:g}"
    before = limits.redriven_before_open
    if before is not None and (
        circuit.redriven_before_open is None or circuit.redriven_before_open >= before
    ):
        yield f"{circuit.redriven_before_open} letters redriven before OPEN, limit {before}"
    if not limits.stays_open and circuit.final_state == "OPEN":
        yield "OPEN at the end"
