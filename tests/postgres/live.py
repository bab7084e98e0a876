"""Producers and workers on the tables of a bench, and looks at what becomes of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg

from smart_redriver.engine.model.evidence import LiveOutcome, live_outcome
from smart_redriver.engine.model.queue_metrics import PERIOD, Account, QueueMetrics
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.queue_metrics import JobMetricsReader
from smart_redriver.postgres.engine.source import JobsSource
from tests.postgres.bench import QUEUE, Bench


class Live:
    """A minute passes before each look; from `began` on, jobs are heard of."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.owner: psycopg.Connection[Any] = bench.owner
        self.metrics_reader = JobMetricsReader(bench.database, bench.clock.now)
        self.look()
        self.began: datetime = bench.clock.now()

    def look(self, times: int = 1, *, minutes: float = 1) -> None:
        """Let time pass, and Postgres add up its counters; then look."""
        for _ in range(times):
            self.bench.clock.advance(60 * minutes)
            self.owner.execute("select pg_stat_force_next_flush()")
            self.metrics_reader.look()

    def metrics(self) -> QueueMetrics:
        """What is known by now; the metrics are a look behind, and what is left is told for two minutes."""
        self.look(3)
        return self.metrics_reader.since(self.began, self.bench.clock.now(), QUEUE)

    def account(self) -> Account:
        """What became of all jobs since the first look; at the end of the minutes that metrics have."""
        account = self.metrics().account(self.began)
        assert account is not None
        return account

    @property
    def outcome(self) -> LiveOutcome:
        """As the circuit would see it."""
        return live_outcome(self.metrics(), self.began - PERIOD)

    # Who works there.

    def add(self, count: int = 1, *, after_minutes: float = 0) -> list[int]:
        """Jobs of a producer; their ids."""
        rows = self.bench.rows(
            "insert into jobs (payload, run_after) select '1', %s + %s * interval '1 minute' from generate_series(1, "
            "%s)"
            " returning id",
            self.bench.clock.now(),
            after_minutes,
            count,
        )
        return [job for (job,) in rows]

    def lock(self, jobs: Sequence[int]) -> None:
        self.owner.execute(
            "update jobs set locked_at = %s, attempts = attempts + 1 where id = any(%s)",
            (self.bench.clock.now(), jobs),
        )

    def unlock(self, jobs: Sequence[int]) -> None:
        """A try has failed, and the next is to come."""
        self.owner.execute("update jobs set locked_at = null where id = any(%s)", (jobs,))

    def done(self, jobs: Sequence[int]) -> None:
        self.owner.execute("delete from jobs where id = any(%s)", (jobs,))

    def die(self, jobs: Sequence[int], error: str = "Boom") -> None:
        self.owner.execute(
            "with dead as (delete from jobs where id = any(%s) returning *) insert into jobs_dlq (original_id, payload,"
            " attempts, error_class, failed_at) select id, payload, attempts, %s, %s from dead",
            (jobs, error, self.bench.clock.now()),
        )

    def work(self, count: int) -> None:
        """Jobs that come, are locked and done before anybody looks."""
        jobs = self.add(count)
        self.lock(jobs)
        self.done(jobs)

    @contextmanager
    def rolled_back(self):
        with self.owner.transaction(force_rollback=True):
            yield

    # What a pass does.

    def redrive(self, *, parks: bool = False) -> int:
        """Move every letter; how many there were."""
        clock = self.bench.clock.now
        letters = DeadLetters(self.bench.database, clock).receive(
            100, hidden_for=self.bench.place.time_to_fail
        )
        outgoing = self.bench.outgoing(letters)
        move = ParkingLot(self.bench.database, clock).park
        if not parks:
            move = JobsSource(self.bench.database, QUEUE, clock).deliver
        return len(move(outgoing).new_ids)
