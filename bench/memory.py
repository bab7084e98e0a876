"""The most memory that a pass takes, by the size of its letters, beside what the function has."""

from __future__ import annotations

from bench.engine import OURS
from bench.engine_run import run
from bench.request import Request
from bench.results import Results, Table
from smart_redriver.engine.aws.clients import WORKERS
from smart_redriver.engine.config.settings import Settings

KIB = 1_024
#: The largest message, less room for the metadata and the other attributes.
LARGEST = 1_023 * KIB
#: Bytes of a letter's body, and how many letters: 24 workers with a hundred each of the two smaller ones.
SIZES = ((KIB, 20_000), (256 * KIB, 2_400), (LARGEST, 600))
#: A call to AWS that moves megabytes takes its time.
LATENCY = 0.010


def bench(request: Request) -> None:
    """Measure, show, leave. Raises RuntimeError where a pass outgrows its function."""
    memory = Settings().memory_mib
    results = Results(name="memory", title="Memory of a pass")
    rows, peaks = [], []
    for size, letters in SIZES:
        for is_wide in (False, True):
            one = run(
                OURS,
                letters // 10 if request.is_quick else letters,
                LATENCY,
                body_bytes=size,
                is_wide=is_wide,
            )
            peaks.append({"bytes": size, "is_wide": is_wide, "peak_mib": one.peak_mib})
            text = "with an emoji in it" if is_wide else "plain"
            rows.append(
                [f"{size // KIB:,} KiB", text, f"{one.letters:,}", f"{one.peak_mib:.0f} MiB"]
            )
    results.figures |= {"memory_mib": memory, "peaks": peaks}
    results.show(
        request,
        Table(
            title=f"Peak memory of a pass in a function of {memory} MiB, {WORKERS} workers",
            headings=("a letter's body", "text", "letters", "peak"),
            rows=rows,
            note="Resident memory of a process with Python, boto3 and the stand-in for AWS, without TLS. With an emoji, Python stores a text with four bytes a character.",
        ),
    )
    results.leave(request)
    if any(one["peak_mib"] >= memory for one in peaks):
        raise RuntimeError(f"a pass takes more than {memory} MiB: {peaks}")
