"""Counts what was tried, so that the summary of a run says how much was proven."""

from collections import Counter

import pytest

TRIED = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TRIED] = Counter()


@pytest.fixture
def tried(pytestconfig: pytest.Config) -> Counter[str]:
    """How many cases were tried, by what they are called in the summary."""
    return pytestconfig.stash[TRIED]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for what, count in config.stash[TRIED].items():
        terminalreporter.write_line(f"{what}: {count:,}")
