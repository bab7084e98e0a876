"""Each incident of the demo is reached, and noticed as solved by what docs/oncall.md says to do."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from demo.incidents import INCIDENTS, Practice, context_of, pages
from demo.stack import DeployedStack
from demo.story import Stage
from emulator import cdk
from emulator.environments import ROOT
from tests.e2e.checked_aws import checked_aws
from tests.e2e.oncall_command import OnCall
from tests.e2e.synthesized import deploy

#: Virtual minutes within which what was done has helped.
_PATIENCE = 120

#: Without the mark that makes an order poison.
WITHOUT_MARK = "sed 's/, \"poison\": true//'"

Deployed = Callable[[Mapping[str, str]], DeployedStack]


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    """A stack for each context that incidents ask for."""
    stacks: dict[tuple[tuple[str, str], ...], DeployedStack] = {}
    with ExitStack() as running:

        def of(context: Mapping[str, str]) -> DeployedStack:
            key = tuple(sorted(context.items()))
            if key not in stacks:
                aws = running.enter_context(checked_aws())
                cdk.prepare(aws)
                stacks[key] = deploy(aws, **context)
            return stacks[key]

        yield of


def mend(on_call: OnCall) -> None:
    subprocess.run(
        [sys.executable, "-m", "demo", "mend"], env=on_call.environment(), cwd=ROOT, check=True
    )


def close_and_drain(on_call: OnCall) -> None:
    mend(on_call)
    for command in (("close", "--reason", "rolled back"), ("drain", "--no-follow")):
        ran = on_call(*command, "--yes")
        assert ran.code == 0, ran.said


def edit_all(on_call: OnCall) -> None:
    ran = on_call("edit", "--all", "--with", WITHOUT_MARK, "--reason", "producer's bug", "--yes")
    assert ran.code == 0, ran.said


#: What the headline says in the middle of it, as a pattern, and what is done.
SOLVED: dict[str, tuple[str, Callable[[OnCall], None]]] = {
    "payments": ("waits? for", mend),
    "outage": ("Consumer likely down", close_and_drain),
    "poison": ("waits? for a person", edit_all),
    "overload": ("", mend),
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_reached_and_noticed_as_solved(
    deployed: Deployed, name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))  # where edited letters are kept
    said, solve = SOLVED[name]
    stack = deployed(context_of(INCIDENTS[name]))
    practice = Practice(INCIDENTS[name], Stage(stack, lambda _: None))
    on_call = OnCall(stack)

    assert practice.reach()
    headline = on_call("status", "--json").json["queues"][0]["headline"]
    told = pages(stack)
    solve(on_call)
    seen = [snapshot for snapshot, _ in zip(practice.go_on(), range(_PATIENCE), strict=False)]

    assert re.search(said, headline["text"])
    assert all("First: " in one for one in told)
    assert len(seen) < _PATIENCE, seen[-1].depths
    assert not seen[-1].depths.dead_letters
