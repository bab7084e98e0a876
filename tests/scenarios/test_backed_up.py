"""Row 7: while the source queue is backed up, no verdict comes before the redriven letters were tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.consumers import Consumer, down_until, up_until
from simulator.scenarios import BACKED_UP, BURST_CAPACITY, Scenario
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, World, hours, minutes

BEHIND_A_BURST = BACKED_UP

#: Nobody polls for 20 minutes, and what waits then is worked off as fast as it comes.
UNTIL_SOMEBODY_POLLS = replace(
    BACKED_UP, burst=0, consumer=lambda _: Consumer(polls=down_until(minutes(20)))
)

#: The letters wait behind the burst for a consumer that breaks down just before it is their turn.
UNTIL_IT_IS_DOWN = replace(
    BACKED_UP,
    consumer=lambda _: Consumer(health=up_until(minutes(15)), capacity_per_second=BURST_CAPACITY),
    until=hours(3),
)


class Watched:
    """Our re-driver, and after every pass a look at what the judged letters went through by then."""

    def __init__(self, world: World, seed: int) -> None:
        self.policy = SmartPolicy(world, seed=seed)
        self.every = self.policy.every
        self.verdicts = 0
        self.judged_untried: list[str] = []
        self._world = world
        self._bodies: dict[str, str] = {}
        self._batches: dict[int, set[str]] = {}

    def tick(self) -> None:
        # What waited before the letters may have become letters, too.
        self._bodies |= {one.message_id: one.body for one in self._world.sqs.inspect.messages(DLQ)}
        before = self.policy.redriven_by_id.copy()
        self.policy.tick()
        for verdict in self.policy.reports[-1].verdicts:
            self.verdicts += 1
            tried = self._world.deliveries.tried
            self.judged_untried += [
                body for body in self._batches[verdict["batch"]] if not tried[body]
            ]
        if sent := self.policy.redriven_by_id - before:
            circuit = self.policy.circuit
            assert circuit is not None
            self._batches[circuit.pending[-1].id] = {self._bodies[one] for one in sent}


@pytest.mark.parametrize("seed", range(BACKED_UP.seeds))
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(BEHIND_A_BURST, id="behind-a-burst"),
        pytest.param(UNTIL_SOMEBODY_POLLS, id="until-somebody-polls"),
        pytest.param(UNTIL_IT_IS_DOWN, id="until-it-is-down"),
    ],
)
def test_row_7_no_verdict_comes_before_the_letters_were_tried(
    scenario: Scenario, seed: int
) -> None:
    world = scenario.world(seed)
    watched = Watched(world, seed)

    scenario.play(world, watched)

    assert watched.verdicts
    assert watched.judged_untried == []


def test_the_source_stays_backed_up_for_twenty_minutes() -> None:
    """Else the tests above would prove nothing."""
    world = BEHIND_A_BURST.world(0)

    world.run(Watched(world, 0), until=minutes(19))

    assert not world.letters & world.deliveries.done.keys()
