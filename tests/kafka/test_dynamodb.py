"""The process and the command with their state in a table of DynamoDB, which moto plays."""

import io
import json
import os
from collections import Counter
from typing import Any

import boto3
import pytest
import time_machine
from moto import mock_aws

from smart_redriver.engine.config.backends import Stopped
from smart_redriver.kafka.process import Configuration
from smart_redriver.oncall.deployment.aws import Aws, Caller, connect_as
from smart_redriver.oncall.deployment.deployment_file import FileConnect
from smart_redriver.oncall.deployment.session import Connections, Session
from smart_redriver.oncall.status.gathering import take_snapshot
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.kafka.bench import Bench
from tests.kafka.desk import FILE, OneCluster

TABLE = "redrive-state"


@pytest.fixture
def table(monkeypatch):
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "x",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        client = boto3.client("dynamodb", "eu-west-1")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


def test_the_process_keeps_its_state_there_and_the_command_finds_it(table, tmp_path, monkeypatch):
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(12)))
    monkeypatch.setattr(
        "smart_redriver.kafka.engine.client.KafkaLog", lambda *_: Closable(bench.log)
    )
    file = tmp_path / "kafka.toml"
    file.write_text(FILE.replace('sqlite = "{state}"', f'dynamodb = "{TABLE}"'))
    out = io.StringIO()
    session = Session(
        aws=Aws(FileConnect(file, connect_as(Caller(region="eu-west-1")))),
        terminal=Terminal(out=out, err=io.StringIO(), assume_yes=True),
        stack=str(file),
        clock=bench.clock.now,
        connections=Connections(OneCluster(bench.log)),
    )

    with time_machine.travel(bench.clock.now(), tick=False) as traveller:
        left = 600.0

        def pause(seconds: float) -> None:
            nonlocal left
            left -= seconds
            traveller.shift(seconds)
            bench.clock.advance(seconds)
            bench.work()
            if left <= 0:
                raise Stopped

        def tell(event: str, /, **_: Any) -> None:
            out.write(json.dumps([event]) + "\n")

        configuration = session.each_queue()[0].place.process
        assert isinstance(configuration, Configuration)
        configuration.run(tell, pause, lambda: False, session.aws.beside_no_file())
        snapshot = take_snapshot(session)

    assert Counter(bench.done) == Counter(b"m%d" % n for n in range(12))
    assert not bench.waiting
    assert snapshot.last_pass is not None
    assert not snapshot.unknown
    keys = {one["PK"]["S"].partition("#")[0] for one in table.scan(TableName=TABLE)["Items"]}
    assert keys >= {"CIRCUIT_BREAKER", "LAST_PASS", "MESSAGE/orders"}, keys


class Closable:
    """The bench's log, as the client's is."""

    def __init__(self, log) -> None:
        self._log = log

    def __getattr__(self, name):
        return getattr(self._log, name)

    def close(self) -> None:
        pass
