"""Speed and cost of a pass: calls and dollars by API, letters a second by latency, what grows with the letters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

from bench.engine_run import Run, run
from bench.prices import LOG_GB, MILLION, dollars_by_api, lambda_dollars
from bench.request import Request
from bench.results import Results, Table

OURS, PUBLISHED, EVENT_SOURCE, BARE = (
    "smart re-driver",
    "published pattern",
    "event source",
    "bare calls",
)

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
NATIVE_LETTERS_PER_SECOND = 500
#: Without a price of its own, it is billed as what it does: a receive, a send and a delete of ten at best.
NATIVE_CALLS_PER_LETTER = 0.3

LATENCIES = (0.0, 0.005, 0.010, 0.020)
SIZES = (1_000, 10_000, 100_000)
#: A processor that others share is now fast, now slow: so many runs of both, in turn, and the median of their ratios.
REPEATS = 3
#: Bytes of a line about a letter in the log.
LOG_LINE_BYTES = 330


def bench(request: Request) -> None:
    """Measure, show, leave."""
    results = Results(name="engine", title="Speed and cost of a pass")
    letters = 2_000 if request.is_quick else 20_000
    _cost(
        request,
        results,
        [run(OURS, letters, 0.010), run(PUBLISHED, 100, 0), run(EVENT_SOURCE, 2_000, 0)],
    )
    _speed(request, results, letters)
    _growth(request, results)
    if request.out:
        plot = "engine.png"
        _draw(request.out / plot, results)
        results.plots.append(plot)
    results.leave(request)


def _cost(request: Request, results: Results, runs: list[Run]) -> None:
    rows = []
    figures = {}
    for one in runs:
        share = MILLION / one.letters
        dollars = {
            name: price * share for name, price in dollars_by_api(one.calls, one.entries).items()
        }
        function = lambda_dollars(one.seconds) * share
        total = sum(dollars.values()) + function
        apis = ", ".join(
            f"{name} {one.calls[name] / one.letters:.3g}"
            for name in sorted(one.calls, key=lambda name: -one.calls[name])
            if one.calls[name] * 1_000 >= one.letters
        )
        rows.append([one.policy, f"{one.calls_per_letter:.3f}", f"${total:.2f}", apis])
        figures[one.policy] = {
            "calls_per_letter": one.calls_per_letter,
            "dollars_per_million": total,
            "dollars_by_api": dollars | {"Lambda": function},
        }
    native = NATIVE_CALLS_PER_LETTER * 0.4
    rows.append(["native move", f"{NATIVE_CALLS_PER_LETTER} (assumed)", f"${native:.2f}", ""])
    figures["native move"] = {"dollars_per_million": native, "calls_per_letter": 0.3}
    results.figures["cost"] = figures
    log = LOG_LINE_BYTES * MILLION / 1e9 * LOG_GB
    results.show(
        request,
        Table(
            title="Calls a letter, and dollars for a million",
            headings=("policy", "calls a letter", "a million letters", "by API, calls a letter"),
            rows=rows,
            note=f"Counted from boto3's requests; Lambda at 512 MB, arm64, for the time at 10 ms a call (the rivals: at 0 ms). Our log line a letter adds ${log:.2f}.",
        ),
    )


def _speed(request: Request, results: Results, letters: int) -> None:
    rows = []
    figures = []
    for latency in LATENCIES:
        repeats = 1 if request.is_quick else REPEATS
        pairs = [(run(OURS, letters, latency), run(BARE, letters, latency)) for _ in range(repeats)]
        ours, bare = (_median(list(runs)) for runs in zip(*pairs, strict=True))
        of_bare = median(one.letters_per_second / other.letters_per_second for one, other in pairs)
        of_work = median(other.cpu_seconds / one.cpu_seconds for one, other in pairs)
        published = run(PUBLISHED, 100, latency)
        rows.append(
            [
                f"{latency * 1000:.0f} ms",
                f"{ours.letters_per_second:,.0f}",
                f"{bare.letters_per_second:,.0f}",
                f"{published.letters_per_second:,.0f}",
                f"{of_bare:.2f}",
                f"{of_work:.2f}",
                f"{ours.letters_per_second / published.letters_per_second:,.0f}",
                f"{ours.letters_per_second / NATIVE_LETTERS_PER_SECOND:.1f}",
                f"{100 * ours.cpu_seconds / ours.seconds:.0f} %",
            ]
        )
        figures += [asdict(one) for one in (ours, bare, published)]
    results.figures["speed"] = figures
    results.show(
        request,
        Table(
            title="Letters a second in one pass, by what a call takes",
            headings=(
                "a call takes",
                "ours",
                "bare calls",
                "published",
                "ours / bare",
                "by processor time",
                "ours / published",
                "ours / native",
                "processor",
            ),
            rows=rows,
            note="Bare calls: receive, send and delete of ten with 32 threads (0.3 calls a letter). The native move does 500 a second. Processor: share of one, as Python uses only one.",
        ),
    )


def _growth(request: Request, results: Results) -> None:
    runs = [run(OURS, size, 0) for size in (SIZES[:2] if request.is_quick else SIZES)]
    results.figures["growth"] = [asdict(one) for one in runs]
    results.show(
        request,
        Table(
            title="What grows with the number of letters",
            headings=("letters", "µs a letter", "calls a letter", "peak memory", "out of order"),
            rows=[
                [
                    f"{one.letters:,}",
                    f"{one.seconds / one.letters * 1e6:.0f}",
                    f"{one.calls_per_letter:.3f}",
                    f"{one.peak_mib:.0f} MiB",
                    str(one.violations),
                ]
                for one in runs
            ],
            note="At 0 ms a call. Out of order: recorded before it was sent, or deleted before it was recorded.",
        ),
    )


def _draw(path: Path, results: Results) -> None:
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    for policy, colour in ((BARE, "#9aa5b1"), (OURS, "#1f3a5f"), (PUBLISHED, "#c8553d")):
        runs = [one for one in results.figures["speed"] if one["policy"] == policy]
        axes.plot(
            [one["latency"] * 1000 for one in runs],
            [one["letters"] / one["seconds"] for one in runs],
            marker="o",
            color=colour,
            label=policy,
        )
    axes.axhline(NATIVE_LETTERS_PER_SECOND, color="#5a8f5a", linestyle="--", label="native move")
    axes.set(yscale="log", xlabel="milliseconds that a call takes", ylabel="letters a second")
    axes.legend(frameon=False, ncols=2)
    figure.savefig(path, dpi=110)


def _median(runs: list[Run]) -> Run:
    return sorted(runs, key=lambda one: one.seconds)[len(runs) // 2]
