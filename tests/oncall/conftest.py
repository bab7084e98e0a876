"""A desk for each test.

Docstrings here and in `tests/browser` quote wrong answers that the command gave in an incident: keep these tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oncall.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk in a folder of its own: `edit` and `delete` keep originals where they are called.

    In the end the log of its passes has to be one of the protocol.
    """
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    yield desk
    assert desk.redriver.trace.faults == []
