"""The one fixture: a run, played when the first test asks for it."""

import pytest

from tests.scenarios.runs import Run, play


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    scenario, seed = request.param
    return play(scenario, seed)
