"""Producers that send in bursts, and are silent for most of the time: an hourly job beside a poison pill."""

from datetime import timedelta

from simulator.consumers import Consumer
from simulator.smart_policy import SmartPolicy
from simulator.world import World, hours, minutes

BURSTS = 10
MESSAGES = 50


def test_an_hourly_job_that_succeeds_closes_the_circuit_that_a_lone_pill_opened() -> None:
    """The pill is alone whenever it is tried, but for the minutes after a burst:
    the canary that goes then is vouched for.
    """
    world = World(seed=0, consumer=Consumer())
    for hour in range(BURSTS):
        world.later(hours(hour), lambda: _send_burst(world))
    world.later(minutes(1), lambda: world.send("pill", is_poison=True))
    policy = SmartPolicy(world)

    world.run(policy, until=hours(BURSTS))

    assert policy.was_ever_open
    assert _time_open(policy) < hours(1)
    assert policy.states[-1][1] == "CLOSED"
    assert not world.parked()
    assert len(world.deliveries.done) == BURSTS * MESSAGES


def _send_burst(world: World) -> None:
    for _ in range(MESSAGES):
        world.send(f"live-{len(world.sent)}")


def _time_open(policy: SmartPolicy) -> timedelta:
    open_for = timedelta()
    for (at, state), (until, _) in zip(policy.states, policy.states[1:], strict=False):
        open_for += until - at if state != "CLOSED" else timedelta()
    return open_for
