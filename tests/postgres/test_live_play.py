"""Whole days in which live jobs could be misread: what would fool the reader costs no letter, and nobody a strike."""

from functools import partial

import pytest

from simulator.conditions import Conditions
from simulator.consumers import Consumer, down_until
from simulator.postgres_world import PostgresWorld
from simulator.scenarios import Scenario
from simulator.scenarios.scenario import Outage
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes

#: Longer than a suspect is given until its last chance.
LONG = hours(7)


class RollsBack(PostgresWorld):
    """Producers and workers that begin a lot, and roll back all of it."""

    def _tick(self, policy, elapsed):
        with self._owner.transaction(force_rollback=True):
            self._owner.execute("insert into jobs (payload) select '1' from generate_series(1, 20)")
            self._owner.execute("update jobs set attempts = attempts + 1, locked_at = now()")
            self._owner.execute("delete from jobs")
        super()._tick(policy, elapsed)


def played(own, kind=PostgresWorld, **scenario):
    made = Scenario(
        name="own",
        title="",
        until=hours(40),
        step=minutes(0.5),
        make_world=partial(kind, server=own),
        **{"letters": 5, **scenario},
    )
    done = made.played(0)
    done.world.close()
    return done


@pytest.mark.parametrize("live_per_minute", [0, 1])
def test_an_outage_in_which_everything_is_rolled_back_is_an_outage(own, live_per_minute):
    done = played(
        own,
        RollsBack,
        outage=Outage(lasts=LONG),
        traffic=LiveTraffic(per_minute=live_per_minute),
        calm_at=LONG,
    )

    measures = done.measures
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)
    assert done.policy.was_ever_open
    assert measures.drained_after_minutes <= 45


def test_workers_that_are_off_convict_nobody(own):
    done = played(
        own,
        RollsBack,
        consumer=lambda _: Consumer(polls=down_until(LONG)),
        traffic=LiveTraffic(per_minute=1),
        calm_at=LONG,
    )

    measures = done.measures
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)
    assert measures.drained_after_minutes <= 45


def test_jobs_that_take_ten_minutes_are_waited_for(own):
    done = played(
        own,
        letters=40,
        consumer=lambda _: Consumer(processing_seconds=600),
        conditions=Conditions(visibility_timeout=900),
        traffic=LiveTraffic(per_minute=1),
    )

    measures = done.measures
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)
    assert measures.drained_after_minutes <= 60
    assert not done.policy.was_ever_open


def test_pills_that_are_tried_five_times_are_parked_beside_jobs_that_succeed(own):
    done = played(
        own,
        poison=5,
        consumer=lambda _: Consumer(backoff_seconds=120),
        conditions=Conditions(max_receive_count=5),
        traffic=LiveTraffic(per_minute=2),
    )

    measures = done.measures
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)
    assert measures.parked_rightly == 5
    assert measures.poison_parked_after_minutes <= 9 * 60


def test_a_producer_that_sends_in_bursts_keeps_no_letter_from_flowing(own):
    done = played(
        own,
        letters=60,
        burst=3_000,
        consumer=lambda _: Consumer(capacity_per_second=5),
        traffic=LiveTraffic(per_minute=1),
    )

    measures = done.measures
    assert (measures.lost, measures.repeated, measures.parked_wrongly) == (0, 0, 0)
    assert measures.drained_after_minutes <= 60
    assert not done.policy.was_ever_open
