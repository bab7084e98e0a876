"""A desk for each test."""

from __future__ import annotations

import pytest

from tests.oncall.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
