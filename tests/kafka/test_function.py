"""The function beside MSK: the deployed wiring over a log in memory."""

from collections import Counter
from contextlib import closing
from datetime import timedelta
from itertools import count, islice
from random import Random

import pytest

from smart_redriver.engine.config.deployment import Deployment, read_environment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.passes.redrive_pass import run_invocation
from smart_redriver.engine.wiring import connect, make_tools
from tests.kafka.bench import TABLE, Bench


def test_what_synth_writes_makes_passes_that_redrive(monkeypatch):
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(12)))
    container = Container(bench, monkeypatch)

    for _ in range(8):
        container.invoke()
        bench.clock.advance(60)

    assert Counter(bench.done) == Counter(b"m%d" % n for n in range(12))
    assert not bench.waiting


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_container_that_begins_anew_hears_at_once_of_what_was_out(monkeypatch, order):
    """It waited for time to decide, up to four minutes: a function left no note of what was out."""
    bench = Bench(order=order)
    bench.die("a", "b", "c")
    Container(bench, monkeypatch).invoke(passes=1)
    bench.work()
    bench.clock.advance(60)
    began = len(bench.events)

    Container(bench, monkeypatch).invoke(passes=1)

    judged = [fields for event, fields in bench.events[began:] if event == "batch.judged"]
    assert [one["reason"] for one in judged] == ["3 of 3 succeeded"]


def test_a_container_without_the_lease_leaves_the_note_of_the_one_at_work(monkeypatch):
    bench = Bench()
    bench.die("a", "b", "c")
    container = Container(bench, monkeypatch)
    container.invoke(passes=1)
    noted = bench.memory().of("#out").load_pass()
    bench.work()
    bench.clock.advance(1)
    held = Lease(owner="another", expires_at=bench.clock.now() + timedelta(minutes=3))
    bench.memory().acquire_lease(held, bench.clock.now())

    container.invoke(passes=1)

    assert noted is not None
    assert len(noted[1]["out"]) == 3
    assert bench.memory().of("#out").load_pass() == noted


class Container:
    """The deployed function's wiring, for as long as Lambda keeps its container."""

    def __init__(self, bench, monkeypatch) -> None:
        monkeypatch.setattr(
            "smart_redriver.kafka.engine.client.KafkaLog", lambda _place: Closable(bench)
        )
        environment = Deployment.at(bench.place, queue_name="orders", table_name=TABLE).to_env()
        ours = Settings(initial_window=20, base_delay_seconds=0).to_env()
        self.bench = bench
        self.settings, self.deployment = read_environment(environment | ours)
        self.connection = connect(self.deployment, self.settings)
        self.owners = count()

    def invoke(self, passes=None) -> None:
        bench = self.bench
        tools = make_tools(
            self.connection,
            self.deployment,
            dynamodb=bench.dynamodb,
            journal=lambda event, /, **fields: bench.events.append((event, fields)),
            clock=bench.clock.now,
            rng=Random(1),
            owner=f"invocation {next(self.owners)} of {id(self)}",
            workers=self.connection.workers,
        )
        deadline = bench.clock.now() + timedelta(minutes=2)
        made = run_invocation(tools, self.settings, deadline=deadline, pause=bench.clock.advance)
        with closing(made):
            for _ in islice(made, passes):
                self.connection.after_pass(tools, {})
                if passes is None:
                    bench.work()


class Closable:
    def __init__(self, bench) -> None:
        self._log = bench.log

    def __getattr__(self, name):
        return getattr(self._log, name)

    def close(self) -> None:
        pass
