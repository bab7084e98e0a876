"""Whatever producers and workers do, the metrics tell of no success that was none,
and miss none where nothing is hidden.
"""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from smart_redriver.postgres.engine.counters import Counters, deleted_at_least
from smart_redriver.postgres.engine.queue_metrics import decode, encode
from tests.postgres.live import Live


class Life:
    """Jobs at random, in two sessions that tell their counters as late as at the next look; `done` really succeeded."""

    def __init__(self, live: Live, seed: int) -> None:
        self.live, self.rng = live, Random(seed)
        self.sessions = [live.bench.server.connect(live.bench.name) for _ in range(2)]
        self.late: set[int] = set()
        self.jobs: list[Any] = []
        self.done, self.died_at_most = 0, 0

    def close(self) -> None:
        for one in self.sessions:
            one.close()

    def minute(self) -> None:
        for _ in range(self.rng.randrange(8)):
            self.rng.choice((self.work, self.work, self.add, self.end, self.roll_back, self.tend))()
        for place, one in enumerate(self.sessions):
            # Nothing is told in the middle of a transaction.
            if place in self.late or self.rng.random() < 0.5:
                one.execute("select pg_stat_force_next_flush()")
                self.late.discard(place)
            else:
                self.late.add(place)
        self.live.bench.clock.advance(60)
        self.live.metrics_reader.look()

    def work(self) -> None:
        self.with_session(lambda live: live.work(self.count))
        self.done += self.count

    def add(self) -> None:
        self.jobs += self.with_session(lambda live: live.add(self.count))

    def end(self) -> None:
        if not self.jobs:
            return
        job = self.jobs.pop(self.rng.randrange(len(self.jobs)))
        if self.rng.random() < 0.5:
            self.with_session(lambda live: (live.lock([job]), live.done([job])))
            self.done += 1
        else:
            self.with_session(lambda live: (live.lock([job]), live.die([job])))
            self.died_at_most += 1

    def roll_back(self) -> None:
        act = self.rng.choice(("work", "add", "done", "die"))
        # A move to the other table that was rolled back counts as one: that makes workers look worse, and never better.
        self.died_at_most += len(self.jobs) if act == "die" else 0

        def tried(live: Live) -> None:
            with live.rolled_back():
                getattr(live, act)(self.jobs if act in ("done", "die") else self.count)

        self.with_session(tried)

    def tend(self) -> None:
        what = self.rng.choice(("analyze jobs", "vacuum jobs", "vacuum analyze jobs", None))
        if what:
            self.live.bench.owner.execute(what)
        else:
            self.live.redrive(parks=True)

    def with_session(self, act):
        self.count = self.rng.randrange(1, 9)
        self.live.owner = self.rng.choice(self.sessions)
        bench, owner = self.live.bench, self.live.bench.owner
        bench.owner = self.live.owner
        try:
            return act(self.live)
        finally:
            bench.owner = owner


@pytest.mark.parametrize("seed", range(10))
def test_no_success_is_told_that_was_none(bench, seed):
    live = Live(bench)
    life = Life(live, seed)
    try:
        for _ in range(25):
            life.minute()
            account = live.metrics_reader.since(live.began, bench.clock.now(), "").account(
                live.began
            )
            assert account is None or account.deleted <= life.done
        live.owner = bench.owner
    finally:
        life.close()

    account = live.account()
    assert life.done / 10 < account.deleted <= life.done
    assert account.moved <= life.died_at_most
    assert account.left == len(life.jobs)


USUAL = Counters(
    epoch="a",
    changed=300,
    inserted=1_000,
    updated=1_000,
    live=10,
    analyzed=5,
    vacuumed=5,
    buried=7,
    can_tell=True,
)


def later(*, epoch: str = USUAL.epoch, can_tell: bool = True, **more: int) -> Counters:
    counted = {name: getattr(USUAL, name) + many for name, many in more.items()}
    return replace(USUAL, epoch=epoch, can_tell=can_tell, **counted)


@pytest.mark.parametrize(
    ("what", "now", "least"),
    [
        ("nothing", later(), 0),
        ("ten jobs done", later(changed=30, inserted=10, updated=10), 10),
        ("ten inserted", later(changed=10, inserted=10, live=10), 0),
        ("ten inserts rolled back", later(inserted=10), 0),
        ("ten done, ten inserts rolled back", later(changed=30, inserted=20, updated=10), 10),
        ("the same, vacuumed", later(changed=30, inserted=20, updated=10, vacuumed=1), 0),
        ("ten done, four updates rolled back", later(changed=30, inserted=10, updated=14), 8),
        ("ten done of those there", later(changed=10, live=-10), 10),
        ("analyzed, then ten done", later(changed=-270, inserted=10, updated=10, analyzed=1), 10),
        ("ten done, then analyzed", later(changed=-300, inserted=10, updated=10, analyzed=1), 0),
    ],
)
def test_what_counters_prove(what, now, least):
    assert deleted_at_least(USUAL, now) == least, what


@pytest.mark.parametrize(
    "changes",
    [{"epoch": "b"}, {"inserted": -1}, {"updated": -1}, {"buried": -1}, {"can_tell": False}],
)
def test_counters_that_began_anew_do_not_go_on(changes):
    assert later(inserted=1).goes_on_from(USUAL)
    assert not later(**changes).goes_on_from(USUAL)


def test_a_look_is_kept_to_the_last_number(bench):
    live = Live(bench)
    live.work(3)
    live.lock(live.add(2))
    live.look(2)

    ((kept,),) = bench.rows("select state from jobs_redriven_looks")

    assert encode(decode(kept)) == kept  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", [None, "", "x", "7", "[]", "{}", '{"at": "x"}', "null", "[" * 9999]
)
def test_what_is_no_look_is_none(text):
    assert decode(text) is None


@pytest.mark.parametrize(
    "changed",
    [{"at": 1e300}, {"jobs": [[1]]}, {"counters": ["a", 1]}, {"proof": [None]}, {"minutes": []}],
)
def test_a_look_with_something_else_in_it_is_none(bench, changed):
    Live(bench)
    ((kept,),) = bench.rows("select state from jobs_redriven_looks")

    assert decode(kept) is not None
    assert decode(json.dumps(json.loads(kept) | changed)) is None


def test_a_job_that_was_seen_to_be_done_is_not_proved_once_more_after_an_analyze(bench):
    """The session that did it is still to tell its counters when the table is analyzed."""
    live = Live(bench)
    jobs = live.add(4)
    live.look()
    with bench.server.connect(bench.name) as session:
        live.owner = session
        live.done(jobs)
        bench.clock.advance(60)
        live.metrics_reader.look()
        bench.owner.execute("analyze jobs")
        session.execute("select pg_stat_force_next_flush()")
        live.owner = bench.owner
        live.work(1)

        assert live.account().deleted == 5
