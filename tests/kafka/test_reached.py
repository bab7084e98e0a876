"""Brokers that do not answer: a sentence, soon, however many questions a command has, and an exit code that says so."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.client import KafkaLog
from smart_redriver.kafka.engine.credentials import OwnAccount
from smart_redriver.kafka.oncall import topics
from smart_redriver.kafka.oncall.topics import Clusters
from smart_redriver.oncall.deployment.aws import Aws
from smart_redriver.oncall.deployment.deployment_file import FileConnect
from smart_redriver.oncall.deployment.session import Connections
from smart_redriver.oncall.terminal.exits import Refused
from tests.kafka.bench import Bench
from tests.kafka.conftest import place_at
from tests.kafka.desk import FILE, KafkaDesk
from tests.kafka.test_credentials import SECRET, Secrets


@pytest.fixture
def nowhere(monkeypatch) -> Iterator[str]:
    """An address at which nobody listens, and little patience."""
    monkeypatch.setattr(topics, "PATIENCE", 0.3)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def desk(tmp_path, nowhere, monkeypatch):
    desk = KafkaDesk(Bench(), tmp_path)
    desk.file.write_text(desk.file.read_text().replace("broker:9092", nowhere))
    session = desk.session

    def without_the_bench(*given, **more):
        found = session(*given, **more)
        found.connections = Connections(Clusters())
        return found

    monkeypatch.setattr(desk, "session", without_the_bench)
    return desk


@pytest.fixture
def waits(monkeypatch):
    """How often an answer was waited for."""
    found, reach = [], KafkaLog.reach

    def noted(log, patience):
        found.append(patience)
        reach(log, patience)

    monkeypatch.setattr(KafkaLog, "reach", noted)
    return found


def test_status_waits_once_says_why_and_ends_with_3(desk, nowhere, waits):
    ran = desk("status")

    assert ran.code == 3
    assert waits == [0.3]
    assert ran.out.count(f"No broker of {nowhere} has answered within") == 1
    assert "Connection refused" in ran.out
    assert "Circuit:     CLOSED" in ran.out


@pytest.mark.parametrize("command", [("letters",), ("replay", "--all", "--yes"), ("doctor",)])
def test_what_needs_the_brokers_fails_with_a_sentence(desk, nowhere, waits, command):
    ran = desk(*command)

    assert ran.code == 1
    assert f"No broker of {nowhere} has answered within" in ran.said
    assert len(waits) == 1


def test_brokers_that_are_back_are_found_by_a_console_that_stays(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    answers = iter([CallFailed("DescribeCluster", "NoAnswer", "down"), None])

    def reach(_log, _patience):
        if answer := next(answers):
            raise answer

    monkeypatch.setattr(KafkaLog, "reach", reach)
    clusters, place = Clusters(), place_at("127.0.0.1:1")
    for now[0] in (0.0, topics.PATIENCE - 1):
        with pytest.raises(Refused, match="down"):
            clusters.of(place, OwnAccount())
    now[0] = topics.PATIENCE + 1

    assert isinstance(clusters.of(place, OwnAccount()), KafkaLog)
    clusters.close()


def test_each_cluster_is_reached_as_the_session_is_logged_in_there_whatever_its_queues_are_called(
    monkeypatch, tmp_path
):
    """Two homes with a queue of one name shared the first one's cluster, reached with the environment's credentials."""
    monkeypatch.setattr(KafkaLog, "reach", lambda *_: None)
    clusters = Clusters()
    logs, asked = [], []
    for number in range(2):
        file = tmp_path / f"{number}.toml"
        place = place_at(f"127.0.0.1:{number + 1}", secret=SECRET)
        client = Secrets(json.dumps({"username": "me", "password": f"{number}"}))
        text = FILE.format(state=tmp_path / "state").replace(
            'servers = "broker:9092"', f'servers = "{place.servers}"\nsecret = "{SECRET}"'
        )
        file.write_text(text)

        def connect(service, number=number, client=client):
            asked.append((number, service))
            return client

        logs.append(clusters.of(place, Aws(FileConnect(file, connect))))
    clusters.close()

    assert logs[0] is not logs[1]
    assert asked == [(0, "secretsmanager"), (1, "secretsmanager")]
