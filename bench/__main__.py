"""Run benchmarks: `python -m bench [--quick] [--out DIRECTORY] [NAME ...]`."""

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench import (
    ceiling,
    cold_start,
    console,
    drain,
    engine,
    error_rate,
    fifo,
    kafka,
    kafka_scenarios,
    load,
    memory,
    postgres,
    profile,
    recovery,
    reports,
    scenario_matrix,
    scenario_soak,
    scenario_table,
)
from bench.request import Request

BENCHMARKS: dict[str, Callable[[Request], None]] = {
    "scenarios": scenario_table.run,
    "scenario-matrix": scenario_matrix.bench,
    "scenario-soak": scenario_soak.bench,
    "recovery": recovery.bench,
    "engine": engine.bench,
    "error-rate": error_rate.bench,
    "memory": memory.bench,
    "profile": profile.bench,
    "cold-start": cold_start.bench,
    "ceiling": ceiling.bench,
    "drain": drain.bench,
    "reports": reports.bench,
    "console": console.bench,
    "load": load.bench,
    "fifo": fifo.bench,
    "postgres": postgres.bench,
    "kafka": kafka.bench,
    "kafka-scenarios": kafka_scenarios.bench,
}


def main() -> None:
    """Run those that were asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="one seed each, nothing written")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - BENCHMARKS.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    request = Request(
        console=Console(), out=None if arguments.quick else arguments.out, is_quick=arguments.quick
    )
    for name in arguments.names or BENCHMARKS:
        BENCHMARKS[name](request)


if __name__ == "__main__":
    main()
