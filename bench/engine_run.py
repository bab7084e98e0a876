"""One measured run in a process of its own, so that its peak memory is its own: `python -m bench.engine_run`."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.engine_policies import POLICIES
from fakes.stand_in import BODY, StandIn
from smart_redriver.engine.wiring import set_up_collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The figures of one run.

    Attributes:
        latency: seconds that each AWS call took on top of botocore's work.
        seconds: by the clock. `cpu_seconds`: of the processor, all threads together.
        peak_mib: the most memory that the process held.
        violations: letters recorded before they were sent, or deleted before they were recorded.

    """

    policy: str
    letters: int
    latency: float
    seconds: float
    cpu_seconds: float
    peak_mib: float
    calls: dict[str, int]
    entries: dict[str, int]
    violations: int

    @property
    def letters_per_second(self) -> float:
        """Throughput."""
        return self.letters / self.seconds

    @property
    def calls_per_letter(self) -> float:
        """AWS calls of all kinds."""
        return sum(self.calls.values()) / self.letters


def run(
    policy: str, letters: int, latency: float, *, body_bytes: int = 0, is_wide: bool = False
) -> Run:
    """Measure in a fresh interpreter.

    Args:
        body_bytes: how many each letter's body has; 0 for the stand-in's own.
        is_wide: one character of the body is such that Python takes four bytes for each of them.

    """
    job = {
        "policy": policy,
        "letters": letters,
        "latency": latency,
        "body": _body(body_bytes, is_wide=is_wide),
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.engine_run"],
        input=json.dumps(job),
        env=os.environ
        | {
            "AWS_ACCESS_KEY_ID": "example",
            "AWS_SECRET_ACCESS_KEY": "example",
            "AWS_DEFAULT_REGION": "eu-west-1",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Run(**json.loads(done.stdout))


def _measure(policy: str, letters: int, latency: float, body: str) -> Run:
    set_up_collector()
    aws = StandIn(letters, latency=latency, body=body)
    began, cpu_began = time.perf_counter(), time.process_time()
    POLICIES[policy](aws, letters)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    if aws.done < letters and aws.checks_order:
        raise RuntimeError(f"{policy}: {aws.done} of {letters} letters went all their way")
    return Run(
        policy=policy,
        letters=letters,
        latency=latency,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        peak_mib=peak_mib(),
        calls=dict(aws.seen.calls),
        entries=dict(aws.seen.entries),
        violations=aws.seen.violations,
    )


def _body(size: int, *, is_wide: bool) -> str:
    if not size:
        return BODY
    return "\N{POSTBOX}" + "x" * (size - 4) if is_wide else "x" * size


def peak_mib() -> float:
    """The peak of this process since it began; `ru_maxrss` would tell that of its parent, where that is larger."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(**json.load(sys.stdin)))))
