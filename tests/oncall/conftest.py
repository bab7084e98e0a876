"""A desk for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oncall.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk in a folder of its own: `edit` and `delete` keep originals where they are called."""
    monkeypatch.chdir(tmp_path)
    return Desk()
