"""A desk for each test, and the count of the crash points that were tried."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.cases import Cases
from tests.oncall.desk import Desk

TRIED = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TRIED] = Counter()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def cases(pytestconfig: pytest.Config) -> Cases:
    """Where a test puts its cases; at its end it asserts that none of them is `wrong`."""
    return Cases(pytestconfig.stash[TRIED])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for kind, count in config.stash[TRIED].items():
        terminalreporter.write_line(f"{kind} tried: {count:,}")
