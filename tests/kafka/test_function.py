"""The function beside MSK: the deployed wiring over a log in memory."""

from collections import Counter
from datetime import timedelta
from random import Random

from smart_redriver.engine.config.deployment import Deployment, read_environment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.passes.redrive_pass import run_invocation
from smart_redriver.engine.wiring import connect, make_tools
from tests.kafka.bench import TABLE, Bench


def test_what_synth_writes_makes_passes_that_redrive(monkeypatch):
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(12)))
    monkeypatch.setattr(
        "smart_redriver.kafka.engine.client.KafkaLog", lambda _place: Closable(bench)
    )
    environment = Deployment.at(bench.place, queue_name="orders", table_name=TABLE).to_env()
    settings, deployment = read_environment(environment | Settings(initial_window=20).to_env())
    connection = connect(deployment, settings)

    for number in range(8):
        tools = make_tools(
            connection,
            deployment,
            dynamodb=bench.dynamodb,
            journal=lambda *_, **__: None,
            clock=bench.clock.now,
            rng=Random(number),
            owner=f"invocation {number}",
            workers=connection.workers,
        )
        deadline = bench.clock.now() + timedelta(minutes=2)
        for _ in run_invocation(tools, settings, deadline=deadline, pause=bench.clock.advance):
            connection.after_pass(tools, {})
            bench.work()
        bench.clock.advance(60)
    connection.close()

    assert Counter(bench.done) == Counter(b"m%d" % n for n in range(12))
    assert not bench.waiting


class Closable:
    def __init__(self, bench) -> None:
        self._log = bench.log

    def __getattr__(self, name):
        return getattr(self._log, name)

    def close(self) -> None:
        pass
