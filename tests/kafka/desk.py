"""One person on call for a DLQ topic: a log in memory with its passes in virtual time, and the command."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.faults import Wire
from smart_redriver.kafka.oncall.topics import Clusters
from smart_redriver.kafka.sqlite import SqliteTable
from smart_redriver.oncall.cli import Asked, app
from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.deployment.deployment_file import FileConnect
from smart_redriver.oncall.deployment.session import Connections, Session
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.kafka.bench import Bench, WiredLog
from tests.oncall.ran import Ran

FILE = """
[kafka]
name = "orders"
servers = "broker:9092"
consumer_group = "shop"
topics = ["orders"]
dead_letters = "orders.DLT"

[state]
sqlite = "{state}"

[settings]
initial_window = 100
base_delay_seconds = 0
"""


class OneCluster(Clusters):
    """The bench's log, in place of a cluster."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log

    def of(self, place: Any, account: Any) -> Any:
        return self._log


class KafkaDesk:
    """A process's file, with its state in a file beside it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.file = folder / "orders.toml"
        self.state = folder / "state"
        self.file.write_text(FILE.format(state=self.state))
        #: What happens while a command waits.
        self.meanwhile: Callable[[], object] = lambda: None
        self._wire: Wire | None = None
        bench.dynamodb = SqliteTable.open(self.state, bench.clock.time, is_made=True)

    def __call__(
        self, *arguments: str, answer: str = "", log: Any = None, wire: Wire | None = None
    ) -> Ran:
        """Type `redrive` with these arguments, and `answer` when asked; log and state are reached over the wire."""
        if wire:
            log, self._wire = WiredLog(self.bench.log, wire), wire
        terminal = Terminal(
            out=io.StringIO(), err=io.StringIO(), answers=io.StringIO(answer + "\n")
        )

        def open_session(asked: Asked) -> Session:
            terminal.is_json, terminal.assume_yes = asked.json, asked.yes
            return self.session(terminal, log, queue=asked.queue)

        try:
            app([*arguments, "--stack", str(self.file)], prog_name="redrive", obj=open_session)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            self._wire = None
        out, err = terminal.out, terminal.err
        assert isinstance(out, io.StringIO)
        assert isinstance(err, io.StringIO)
        return Ran(code=code, out=out.getvalue(), err=err.getvalue())

    def session(self, terminal: Terminal, log: Any = None, *, queue: str | None = None) -> Session:
        return Session(
            aws=Aws(self._client),
            terminal=terminal,
            stack=str(self.file),
            queue=queue,
            clock=self.bench.clock.now,
            sleep=self._sleep,
            connections=Connections(OneCluster(log or self.bench.log)),
        )

    def _sleep(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.meanwhile()

    def _client(self, service: str) -> Any:
        """The file's own state, in virtual time; nothing else of AWS."""
        if service == "dynamodb" and self.state.exists():
            table = self.bench.dynamodb
            return self._wire.to(table) if self._wire else table
        return FileConnect(self.file, _no_aws)(service)

    def set(self, **settings: Any) -> None:
        """Give settings in the file, which ends with their table."""
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        self.file.write_text("\n".join([self.file.read_text(), *lines]))

    def park(self, *values: str, **more: Any) -> None:
        """Let letters with these values be parked by a person."""
        self.bench.die(*values, **more)
        assert self("park", "--all", "--yes", "--reason", "for now").code == 0


def _no_aws(service: str) -> Any:
    raise AssertionError(f"AWS is asked for {service}")
