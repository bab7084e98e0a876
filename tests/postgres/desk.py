"""One person on call for a worker queue: a real Postgres with its passes in virtual time, and the command."""

from __future__ import annotations

import io
import json
from typing import Any

from fakes.faults import Script, Wire, nothing
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.oncall.cli import Asked, app
from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.deployment.session import Connections, Session
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.postgres.oncall.databases import Databases
from tests.oncall.fakes import (
    FUNCTION,
    FUNCTION_ARN,
    LOG_GROUP,
    STACK,
    FakeAlarms,
    FakeCloudFormation,
    FakeIam,
    FakeKms,
    FakeLogs,
    FakeScheduler,
    FakeSns,
    FakeSts,
    FakeTable,
    OneAtATime,
)
from tests.oncall.ran import Ran
from tests.postgres.bench import TABLE, Bench


class WiredDatabases(Databases):
    """What the command's sessions share; their statements go over a wire, together with the calls to AWS."""

    def __init__(self, bench: Bench, wire: Wire) -> None:
        super().__init__()
        self._bench = bench
        self._wire = wire

    def of(self, place: Any, make_client: Any) -> Any:
        return self._bench.wired(self._wire)

    def close(self) -> None:
        pass


class Function:
    """The deployed function: an invocation is a pass."""

    def __init__(self, bench: Bench, logs: FakeLogs) -> None:
        self.bench = bench
        self.logs = logs
        self.settings = Settings()
        self.network: dict[str, Any] = {}

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        deployment = Deployment.at(self.bench.place, queue_name=self.bench.queue, table_name=TABLE)
        return {
            "Environment": {"Variables": deployment.to_env() | self.settings.to_env()},
            "VpcConfig": self.network,
            "LoggingConfig": {"LogGroup": LOG_GROUP},
            "FunctionArn": FUNCTION_ARN,
            "Role": "arn:aws:iam::123456789012:role/redriver",
            "Timeout": 240,
        }

    def invoke(self, **_: Any) -> dict[str, Any]:
        report = self.bench.run_pass().to_json()
        self.logs.note(report)
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(report).encode())}


class NoMetrics:
    """CloudWatch, with no figure, which notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return {"MetricDataResults": []}


class PostgresDesk:
    """A deployment of one worker queue, `orders` unless the bench says otherwise, in a stack."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        logs = self.logs = FakeLogs(bench.clock)
        self.metrics = NoMetrics()
        self.alarms = FakeAlarms(self.metrics)
        self.function = Function(bench, logs)
        self.clients: dict[str, Any] = {
            "sqs": object(),
            "dynamodb": FakeTable(bench.dynamodb),
            "cloudwatch": self.alarms,
            "cloudformation": FakeCloudFormation({STACK: self.outputs()}),
            "sts": FakeSts(),
            "lambda": self.function,
            "logs": logs,
            "scheduler": FakeScheduler(),
            "iam": FakeIam(),
            "kms": FakeKms(),
            "sns": FakeSns(),
        }
        self.asked: set[tuple[str, str]] = set()
        self.databases: Databases | None = None

    def outputs(self) -> dict[str, str]:
        """What the construct publishes."""
        places = {
            "RedriveDatabase": self.bench.place.encode(),
            "RedriveQueue": self.bench.queue,
            "RedriveFunctionName": FUNCTION,
            "StateTableName": TABLE,
        }
        return {"OrdersRedriver": json.dumps(places)}

    def __call__(self, *arguments: str, answer: str = "", script: Script = nothing) -> Ran:
        """Type `redrive` with these arguments, and `answer` when asked. Raises what the script has happen."""
        terminal = Terminal(
            out=io.StringIO(), err=io.StringIO(), answers=io.StringIO(answer + "\n")
        )
        wire = Wire(script)

        def open_session(asked: Asked) -> Session:
            terminal.is_json, terminal.assume_yes = asked.json, asked.yes
            terminal.spared_stack = asked.spared_stack
            return self.session(wire, terminal, asked)

        try:
            app(list(arguments), prog_name="redrive", obj=open_session)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = terminal.out, terminal.err
        assert isinstance(out, io.StringIO)
        assert isinstance(err, io.StringIO)
        return Ran(code=code, out=out.getvalue(), err=err.getvalue())

    def session(self, wire: Wire, terminal: Terminal, asked: Asked) -> Session:
        return Session(
            aws=Aws(lambda one: OneAtATime(one, wire.to(self.clients[one]), self.asked)),
            terminal=terminal,
            stack=asked.stack,
            queue=asked.queue,
            clock=self.bench.clock.now,
            sleep=self.bench.clock.advance,
            connections=Connections(self.databases or WiredDatabases(self.bench, wire)),
        )

    def park(self, *payloads: Any, error: str = "Boom") -> None:
        """Let letters with these payloads be parked by a person."""
        self.bench.die(*payloads, error=error)
        assert self("park", "--all", "--yes").code == 0
