"""For all tests: which of them share a process, and how much was proven."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from emulator.cdk import KEPT_ZIPS
from tests.faults.cases import Cases

HERE = Path(__file__).parent

#: Tests that share what takes long to make, a deployment or templates, and so run in one process: those of a folder
#: or file named here together, else file by file below these folders.
TOGETHER = {
    "e2e/adoption": "e2e/adoption",
    "e2e/test_by_hand.py": "unattended",
    "e2e/test_paging.py": "unattended",
    "e2e/test_story.py": "story",
    "e2e/test_reports.py": "story",
    "emulator": "emulator",
}
BY_FILE = ("browser", "e2e", "infrastructure", "monitoring", "package")

#: Here all tests that look at the same run share a process, and so the run: it goes by their parameter, seed aside.
BY_RUN = "scenarios/"

#: What runs first, so that no process is left alone with something long at the end: the largest pieces.
FIRST = (
    "e2e/adoption",
    "e2e/test_faults.py",
    "scenarios/test_capacity_and_kinds.py",
    "scenarios",
    "e2e",
    "infrastructure/test_bundling.py",
    "infrastructure/test_adoption.py",
    "emulator",
    "faults/test_properties.py",
    "infrastructure",
    "monitoring",
    "package",
    "engine",
    "faults",
)

_TRIED = "tried: "

#: The CDK's own check of a template takes half of the time of a synth. All kinds of templates are checked by it in
#: `infrastructure/test_checkers.py` and by each app in a process of its own there, so the others need not be.
os.environ["CDK_VALIDATION"] = "false"


#: A deployment writes 3,000 small files, which takes a quarter of its time on a disk. Where there is room for them,
#: temporary files are kept in memory: 3 GB of them, beside 6 GB of the tests. A TMPDIR that is given stays as it is.
IN_MEMORY, ROOM = Path("/dev/shm"), 12 << 30


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all is collected: nothing of it is dropped
    if "TMPDIR" in os.environ or not _has_room(IN_MEMORY):
        return
    for left in IN_MEMORY.glob("redriver-*-*"):  # by a run that was killed
        if not Path("/proc", left.name.split("-")[1]).exists():
            shutil.rmtree(left, ignore_errors=True)
    # Short: sockets are in it.
    scratch = tempfile.mkdtemp(prefix=f"redriver-{os.getpid()}-", dir=IN_MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    Path(scratch).chmod(0o711)  # a server of Postgres runs as another user
    zips = Path(scratch) / "zips"
    zips.mkdir()
    os.environ[KEPT_ZIPS] = str(zips)
    config.add_cleanup(lambda: shutil.rmtree(scratch, ignore_errors=True))


def _has_room(folder: Path) -> bool:
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    memory = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    available = int(memory[1]) << 10 if memory else 0
    return min(available, shutil.disk_usage(folder).free) > ROOM


class Scheduler(LoadScopeScheduling):
    """Hands out groups. xdist's own marks for them get lost on the way to pytest 9.2's node ids."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.removeprefix(f"{HERE.name}/").partition("::")
        if path.startswith(BY_RUN) and "[" in name:
            run = name.partition("[")[2].rstrip("]")
            return BY_RUN + run.partition("-seed")[0]
        return _group(path) or nodeid


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors: a fifth of the time a test waits for what another process does."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(_path(item)))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays to the end, and what a test makes and drops in between.

    Simulated worlds are many small objects: an eighth of their time went into looking through them again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).as_posix()


def _group(path: str) -> str | None:
    together = next((group for place, group in TOGETHER.items() if _is_in(path, place)), None)
    return together or (path if path.startswith(tuple(f"{one}/" for one in BY_FILE)) else None)


def _rank(path: str) -> int:
    return next((rank for rank, place in enumerate(FIRST) if _is_in(path, place)), len(FIRST))


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


@pytest.fixture(scope="module", autouse=True)
def no_event_loop_stays() -> Iterator[None]:
    """One that a file leaves running would fail whatever file comes next and needs its own."""
    yield
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Iterator[Cases]:
    """Where a test puts its cases; at its end it asserts that none of them is `wrong`."""
    cases = Cases()
    yield cases
    counts = [(_TRIED + kind, count) for kind, count in cases.tried.items()]
    request.node.user_properties.extend(counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tried: Counter[str] = Counter()
    for report in terminalreporter.getreports(""):
        if report.when == "teardown":
            for name, count in report.user_properties:
                if name.startswith(_TRIED):
                    tried[name.removeprefix(_TRIED)] += count
    for kind, count in tried.items():
        terminalreporter.write_line(f"{kind} tried: {count:,}")
