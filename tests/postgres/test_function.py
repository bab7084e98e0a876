"""The deployed function on Postgres: cold start, a pass, its metric, and how it proves who it is."""

import importlib
import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.postgres.engine.connection import LATEST, added_lately
from smart_redriver.postgres.engine.credentials import Connector
from smart_redriver.postgres.engine.place import JobsDatabase
from tests.postgres.bench import QUEUE, TABLE

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-x"


@dataclass(frozen=True, kw_only=True)
class Context:
    function_name: str = "redrive"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:redrive"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 240_000


@pytest.fixture
def handler(bench, monkeypatch):
    place = bench.server.place(bench.name, user="smart_redriver")
    deployment = Deployment.at(place, queue_name=QUEUE, table_name=TABLE)
    for name, value in (deployment.to_env() | Settings().to_env()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.delitem(sys.modules, "redrive.handler", raising=False)
    module = importlib.import_module("redrive.handler")
    monkeypatch.setattr(module, "dynamodb", bench.dynamodb)
    monkeypatch.setattr(module, "_now", bench.clock.now)
    monkeypatch.setattr(module.time, "sleep", bench.clock.advance)
    yield module
    module.connection.close()
    monkeypatch.delitem(sys.modules, "redrive.handler", raising=False)


def test_an_invocation_redrives_letters_and_tells_how_many_are_new(bench, handler, capsys):
    bench.die(*range(3))
    handler.logger.registered_handler.setStream(io.StringIO())

    report = handler.lambda_handler({}, Context())

    assert (report["queue"], report["redriven"], report["faults"]) == (QUEUE, 3, {})
    lines = [json.loads(one) for one in capsys.readouterr().out.splitlines() if one[:1] == "{"]
    told = [one for one in lines if "DeadLettersAdded" in one]
    assert (told[0]["QueueName"], told[0]["DeadLettersAdded"]) == (QUEUE, [0.0])


def test_only_what_has_died_lately_counts_as_growth(bench):
    bench.die("old")
    bench.clock.advance(301)
    bench.die(*range(5))

    assert added_lately(bench.database, bench.clock.now()) == 5


def test_growth_beyond_what_is_looked_at_is_as_bad_as_that(bench):
    bench.owner.execute(
        "insert into jobs_dlq (payload, failed_at) select '1', %s from generate_series(1, 3000)",
        (bench.clock.now(),),
    )

    assert added_lately(bench.database, bench.clock.now()) == LATEST


def test_a_deployment_on_postgres_is_read_as_it_was_written():
    place = JobsDatabase.of({"host": "db.example.com", "dbname": "app", "secret": SECRET})
    deployment = Deployment.at(place, queue_name="orders", table_name="state")

    read = Deployment.from_env(deployment.to_env())

    assert read == deployment
    assert (read.origin, read.source_urls, read.source_names) == (Origin.POSTGRES, (), ("orders",))


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ({"QUEUE_NAME": ""}, "QUEUE_NAME"),
        ({"QUEUE_NAME": "orders.jobs"}, "QUEUE_NAME"),
        ({"DYNAMODB_TABLE_NAME": ""}, "DYNAMODB_TABLE_NAME"),
        ({"DATABASE": ""}, "DATABASE"),
        ({"DATABASE": '{"dbname": "d", "user": "u"}'}, "DATABASE host"),
    ],
)
def test_what_a_deployment_on_postgres_lacks_is_told(missing, named):
    env = {
        "ORIGIN": "postgres",
        "QUEUE_NAME": "orders",
        "DYNAMODB_TABLE_NAME": "state",
        "DATABASE": '{"host": "h", "dbname": "d", "user": "u"}',
    }

    with pytest.raises(SettingsError) as refused:
        Deployment.from_env(env | missing)

    assert [one.setting for one in refused.value.faults] == [named]


class Asked:
    """psycopg's connect and boto3's clients, and what they were asked."""

    def __init__(self, *passwords: str) -> None:
        self.passwords = list(passwords)
        self.connected: list[Any] = []
        self.refuses: set[str] = set()

    def connect(self, **given):
        self.connected.append(given)
        if given["password"] in self.refuses:
            raise psycopg.OperationalError("password authentication failed")
        return object()

    def client(self, _service):
        return self

    def get_secret_value(self, SecretId):  # noqa: N803
        assert SecretId == SECRET
        return {"SecretString": json.dumps({"username": "u", "password": self.passwords.pop(0)})}

    def generate_db_auth_token(self, **given):
        return "token for {DBUsername} at {DBHostname}:{Port}".format(**given)


def connector(monkeypatch, asked, **given) -> Connector:
    monkeypatch.setattr(psycopg, "connect", asked.connect)
    place = JobsDatabase.of({"host": "db.example.com", "dbname": "app", **given})
    return Connector(place, asked.client)


def test_a_secret_is_read_once_and_its_password_goes_over_verified_tls(monkeypatch):
    asked = Asked("first")
    connect = connector(monkeypatch, asked, secret=SECRET)

    connect(), connect()

    assert [(one["user"], one["password"], one["sslmode"]) for one in asked.connected] == [
        ("u", "first", "verify-full")
    ] * 2
    assert all(one["sslrootcert"] == "system" and one["autocommit"] for one in asked.connected)


def test_a_password_that_was_rotated_is_read_again(monkeypatch):
    asked = Asked("first", "second")
    connect = connector(monkeypatch, asked, secret=SECRET)
    connect()
    asked.refuses.add("first")

    connect()

    assert [one["password"] for one in asked.connected] == ["first", "first", "second"]


def test_iam_signs_for_each_connection(monkeypatch):
    asked = Asked()
    connect = connector(monkeypatch, asked, user="redriver")

    connect()

    assert asked.connected[0]["password"] == "token for redriver at db.example.com:5432"


def test_a_secret_that_is_none_is_a_failed_call_that_quotes_nothing(monkeypatch):
    asked = Asked()
    asked.get_secret_value = lambda SecretId: {"SecretString": "hunter2"}  # type: ignore[method-assign]  # noqa: N803

    with pytest.raises(CallFailed) as failed:
        connector(monkeypatch, asked, secret=SECRET)()

    assert failed.value.code == "NotASecret"
    assert "hunter2" not in str(failed.value)
