"""Deployments by the real CDK command line, each on a local AWS of its own.

One with the sample consumer, on which the demo's story is played once. One with all alarms, but without a consumer
and without its schedule, for passes invoked by hand. And for each file of tests of those on call, one that parks soon.
"""

from collections.abc import Iterator

import pytest

from demo.stack import DeployedStack, deploy
from demo.story import DEPLOYED_WITH, Played, Story
from demo.summary import Summary, add_up
from emulator import cdk
from tests.e2e import synthesized
from tests.e2e.by_hand import ByHand
from tests.e2e.checked_aws import checked_aws
from tests.e2e.oncall_command import OnCall


@pytest.fixture(scope="session")
def stack() -> Iterator[DeployedStack]:
    """As the demo deploys it."""
    with checked_aws() as aws:
        cdk.bootstrap(aws)
        yield deploy(aws, **DEPLOYED_WITH)


@pytest.fixture(scope="session")
def played(stack: DeployedStack) -> Played:
    """The story, played once for all tests that look at it."""
    return Story(stack, watch=lambda _: None).play()


@pytest.fixture(scope="session")
def summary(stack: DeployedStack, played: Played) -> Summary:
    return add_up(played, stack)


@pytest.fixture(scope="session")
def unattended() -> Iterator[DeployedStack]:
    """With all alarms, without a consumer, and no schedule invokes the function."""
    with checked_aws() as aws:
        cdk.prepare(aws)
        stack = synthesized.deploy(aws, schedule_minutes="1440", alarms="all")
        stack.stop_schedule()
        yield stack


@pytest.fixture
def by_hand(unattended: DeployedStack) -> ByHand:
    """The unattended stack with empty queues and an empty state table."""
    hand = ByHand(unattended)
    hand.empty()
    return hand


@pytest.fixture(scope="module")
def on_call() -> Iterator[OnCall]:
    """A stack whose consumer works and reports, and which parks a letter at its first strike: one for each file."""
    with checked_aws() as aws:
        cdk.prepare(aws)
        yield OnCall(
            synthesized.deploy(
                aws,
                with_sample_consumer="true",
                alarms="all",
                dashboard_widget="true",
                max_attempts="1",
                last_chance_seconds="0",
            )
        )
