"""Counts what was tried, so that the summary of a run says how much was proven."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.cases import Cases

TRIED = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TRIED] = Counter()


@pytest.fixture
def cases(pytestconfig: pytest.Config) -> Cases:
    """Where a test puts its cases; at its end it asserts that none of them is `wrong`."""
    return Cases(pytestconfig.stash[TRIED])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for kind, count in config.stash[TRIED].items():
        terminalreporter.write_line(f"{kind} tried: {count:,}")
