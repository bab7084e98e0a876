"""Play one scenario on the real pass, in virtual time: `python -m bench.play --scenario 3 --seed 7 --json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.play_options import Asked, parse
from simulator.limits import breaches_of_run
from simulator.measures import Measures
from simulator.scenarios import ROWS, Played, Scenario
from simulator.scenarios.matrix import MATRIX
from simulator.world import World

Figures = dict[str, Any]

#: The fields that name a run, beside its figures.
_OF_A_RUN = ("scenario", "title", "policy", "seed")

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
DEDUPLICATION_WINDOW = timedelta(minutes=5)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the options say. Returns 0; options that can't be end it with 2 and a sentence (SystemExit)."""
    asked = parse(sys.argv[1:] if argv is None else argv)
    if asked.lists:
        _list(as_json=asked.json)
        return 0
    runs = _runs(asked)
    if asked.beside:
        _compare(asked, [runs, _runs(asked.beside)])
    elif not asked.json:
        _show(asked.scenario, _columns(runs))
    elif len(runs) == 1:
        print(json.dumps(runs[0]))
    else:
        print(
            json.dumps(
                {**_same(runs), "seeds": list(asked.seeds), "mean": mean(runs), "runs": runs}
            )
        )
    return 0


def _runs(asked: Asked) -> list[Figures]:
    with _place(asked) as scenario:
        return [_run(asked, scenario, seed) for seed in asked.seeds]


def _compare(asked: Asked, played: Sequence[Sequence[Figures]]) -> None:
    """Each policy's figures beside the other's; their means, of several seeds."""
    columns = {
        runs[0]["policy"]: _figures_alone(runs[0] if len(runs) == 1 else {**runs[0], **mean(runs)})
        for runs in played
    }
    if not asked.json:
        _show(asked.scenario, columns)
        return
    first = asked.scenario
    told = {"scenario": first.name, "title": first.title, "seeds": list(asked.seeds)}
    print(json.dumps(told | {"compared": columns}))


def _figures_alone(run: Figures) -> Figures:
    return {name: value for name, value in run.items() if name not in _OF_A_RUN}


@contextmanager
def _place(asked: Asked) -> Iterator[Scenario]:
    """The scenario where it is to be played: in memory, or on a Postgres that runs for as long."""
    if asked.origin == "kafka":
        from simulator.kafka_world import KafkaWorld

        yield replace(asked.scenario, make_world=KafkaWorld)
        return
    if asked.origin != "postgres":
        yield asked.scenario
        return
    from emulator.postgres import running_postgres
    from simulator.postgres_world import PostgresWorld

    with running_postgres() as server:
        yield replace(asked.scenario, make_world=partial(PostgresWorld, server=server))


def _run(asked: Asked, scenario: Scenario, seed: int) -> Figures:
    is_live = scenario.traffic is not None and scenario.traffic.per_minute > 0
    played = scenario.played(seed, asked.policy, watches_live=is_live)
    try:
        return figures(asked, played, seed)
    finally:
        played.world.close()


def figures(asked: Asked, played: Played, seed: int) -> Figures:
    """One run as the fixed interface has it, and what else helps. None is a figure that the policy has not."""
    run = played.measures
    circuit = asdict(run.circuit) if run.circuit else {}
    told = asdict(run)
    del told["circuit"], told["live"]
    return {
        "scenario": asked.scenario.name,
        "title": asked.scenario.title,
        "policy": asked.policy_name,
        "seed": seed,
        **told,
        "opened": circuit.get("opened"),
        "opened_after_minutes": circuit.get("opened_after_minutes"),
        "redriven_before_open": circuit.get("redriven_before_open"),
        "closed_after_minutes": circuit.get("closed_after_minutes"),
        "final_state": circuit.get("final_state"),
        "virtual_hours": round(played.world.elapsed.total_seconds() / 3600, 2),
        **_live(run),
        **_order(played.world),
        "breaches": _breaches(asked, run),
    }


def _live(run: Measures) -> Figures:
    """The cost of redriving for producers' messages: nothing where there are none."""
    live = run.live
    return {
        "live_died": live.died if live else 0,
        "live_died_after_recovery": live.died_after_recovery if live else 0,
        "live_wait_p99_seconds": live.wait_p99_seconds if live else 0.0,
    }


def _order(world: World) -> Figures:
    """Letters of FIFO queues that came before an earlier one of their group: done, or tried; and done twice too soon."""
    if not world.conditions.fifo:
        return {}
    return {
        "overtakings": len(world.order.overtakings(world.letters)),
        "tried_past": len(world.order.tried_past(world.letters)),
        "repeated_within_window": len(world.order.repeats(DEDUPLICATION_WINDOW)),
    }


def mean(runs: Sequence[Figures]) -> dict[str, float | None]:
    """The mean of every figure that is a number in all runs; None for one that some run has not."""
    return {
        name: fmean(run[name] for run in runs)
        if all(run[name] is not None for run in runs)
        else None
        for name, value in runs[0].items()
        if name != "seed" and _is_number_somewhere(name, runs)
    }


def _is_number_somewhere(name: str, runs: Sequence[Figures]) -> bool:
    return any(
        isinstance(run[name], int | float) and not isinstance(run[name], bool) for run in runs
    )


def _same(runs: Sequence[Figures]) -> Figures:
    return {name: runs[0][name] for name in ("scenario", "title", "policy")}


def _breaches(asked: Asked, run: Measures) -> list[str] | None:
    """The limits of its scenario that the run broke; None for a scenario that was changed, which has none."""
    return list(breaches_of_run(asked.scenario.limits, run)) if asked.is_as_designed else None


def _columns(runs: Sequence[Figures]) -> dict[str, Figures]:
    columns: dict[str, Figures] = {f"seed {run['seed']}": run for run in runs}
    return columns if len(runs) == 1 else columns | {"mean": mean(runs)}


def _show(scenario: Scenario, columns: Mapping[str, Figures]) -> None:
    table = Table(title=f"{scenario.name}. {scenario.title}", title_justify="left")
    table.add_column("figure")
    for heading in columns:
        table.add_column(heading, justify="right")
    for name in next(iter(columns.values())):
        if name not in ("scenario", "title", "seed"):
            table.add_row(
                name.replace("_", " "),
                *(_cell(column.get(name, "")) for column in columns.values()),
            )
    Console().print(table)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case list():
            return "; ".join(value) or "none"
        case _:
            return str(value)


def _list(*, as_json: bool) -> None:
    titles = {scenario.name: scenario.title for scenario in (*ROWS, *MATRIX)}
    if as_json:
        print(json.dumps(titles))
        return
    for name, title in titles.items():
        print(f"{name:20} {title}")


if __name__ == "__main__":
    sys.exit(main())
