"""A run, played when the first test asks for it, and a check of every log that is written meanwhile."""

from collections.abc import Iterator

import pytest

from proof.trace import TraceCheck
from simulator import smart_policy
from tests.scenarios.runs import Run, play


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Run:
    scenario, seed = request.param
    return play(scenario, seed)


@pytest.fixture(autouse=True)
def logs_are_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of each policy that is made, in this test's worlds or in a run that others look at, too."""
    made: list[TraceCheck] = []

    def one_more() -> TraceCheck:
        made.append(TraceCheck())
        return made[-1]

    monkeypatch.setattr(smart_policy, "TraceCheck", one_more)
    yield
    assert [fault for one in made for fault in one.faults] == []
