"""For all tests: which of them share a process, and how much was proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cases import Cases

HERE = Path(__file__).parent

#: Tests below these share what takes long to make, a deployment or a template, so they run in one process.
TOGETHER = ("e2e/adoption", "e2e", "emulator", "infrastructure", "monitoring", "package")

_TRIED = "tried: "


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(HERE).as_posix()
        folder = next((folder for folder in TOGETHER if path.startswith(f"{folder}/")), None)
        if folder is not None:
            # Each file of e2e has a deployment of its own.
            item.add_marker(pytest.mark.xdist_group(path if folder == "e2e" else folder))


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
