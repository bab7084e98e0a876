"""The request for a benchmark, and the circumstances that its results name."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

COMMAND = "make bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a benchmark.

    Attributes:
        out: where results are left; None to leave none.
        is_quick: as little as shows that it works.

    """

    console: Console
    out: Path | None
    is_quick: bool = False


def machine() -> dict[str, str]:
    """The machine as far as results depend on it; nothing that names it."""
    return {
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory_bytes() / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
