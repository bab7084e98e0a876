"""A database that the command does not get to, from the machine of whoever types: a sentence,
and nothing of the rest fails.
"""

import json
import sys
from dataclasses import replace

import psycopg
import pytest

from smart_redriver.engine.errors import CallFailed
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.oncall import databases
from smart_redriver.postgres.oncall.databases import Databases
from tests.oncall.fakes import STACK
from tests.postgres.desk import PostgresDesk

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-x"


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    desk = PostgresDesk(bench)
    desk.databases = Databases()
    return desk


def move(desk, **place) -> None:
    """Let the stack say that the database is elsewhere."""
    told = replace(desk.bench.place, **place)
    outputs = json.loads(desk.outputs()["OrdersRedriver"]) | {"RedriveDatabase": told.encode()}
    desk.clients["cloudformation"].stacks[STACK] = {"OrdersRedriver": json.dumps(outputs)}


def test_the_command_connects_as_the_stack_says_and_leaves_no_connection(desk, bench, monkeypatch):
    opened, connect = [], psycopg.connect

    def note(**given):
        opened.append(connect(**given))
        return opened[-1]

    monkeypatch.setattr(psycopg, "connect", note)
    move(desk, user="smart_redriver")
    bench.die("a")

    ran = desk("replay", "dlq-1", "--from-dlq", "--yes")

    assert (ran.code, bench.payloads("jobs")) == (0, ["a"])
    assert opened
    assert all(one.closed for one in opened)


def test_a_database_that_is_not_there_is_a_sentence_and_no_traceback(desk, tmp_path):
    move(desk, host=str(tmp_path))

    shown, sent, status = desk("letters"), desk("replay", "--all", "--yes"), desk("status")

    assert (shown.code, sent.code, status.code) == (1, 1, 3)
    for ran in (shown, sent):
        assert f"at {tmp_path}:5432 can't be used from here: " in ran.err
        assert "Traceback" not in ran.said
    assert "Not read:    DLQ, parking lot, queue orders, oldest letter (" in status.out
    assert "Circuit:     CLOSED" in status.out


def test_without_psycopg_it_is_said_which_extra_brings_it(desk, monkeypatch):
    for name in [one for one in sys.modules if one.startswith("smart_redriver.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    shown, overview = desk("letters"), desk("status", "--overview")

    assert shown.code == 1
    assert "smart-redriver[oncall,postgres]" in shown.err
    assert overview.code == 3
    assert "DLQ not read (" in overview.out


def test_nobody_is_connected_to_without_the_authorities_that_sign_for_it(tmp_path, monkeypatch):
    place = JobsDatabase.of(
        {"host": "db", "dbname": "app", "secret": SECRET, "sslrootcert": "/var/task/ca.pem"}
    )
    monkeypatch.delenv(databases.AUTHORITIES, raising=False)

    with pytest.raises(Refused, match=r"PGSSLROOTCERT=global-bundle\.pem"):
        Databases().of(place, None)  # type: ignore[arg-type]

    here = tmp_path / "ca.pem"
    here.write_text("authorities")
    monkeypatch.setenv(databases.AUTHORITIES, str(here))
    assert Databases().of(place, None).place.sslrootcert == str(here)  # type: ignore[arg-type]


def test_credentials_are_the_callers_own_and_a_refusal_is_told(desk):
    class NoSecrets:
        def get_secret_value(self, **_):
            raise CallFailed("GetSecretValue", "AccessDeniedException")

    desk.clients["secretsmanager"] = NoSecrets()
    move(desk, secret=SECRET, sslmode="verify-full")

    ran = desk("letters")

    assert ran.code == 1
    assert "You may not call GetSecretValue" in ran.err


def test_a_password_is_asked_for_with_the_latest_login(monkeypatch):
    """A console outlives a login: what was opened by the first goes on by the next."""
    asked = []

    class Secrets:
        def __init__(self, name):
            self.name = name

        def get_secret_value(self, **_):
            asked.append(self.name)
            return {"SecretString": json.dumps({"username": "u", "password": self.name})}

    def refuse(**_):
        raise psycopg.OperationalError("no")

    monkeypatch.setattr(psycopg, "connect", refuse)
    place = JobsDatabase.of({"host": "db", "dbname": "app", "secret": SECRET})
    known = Databases()
    for name in ("first", "second"):
        with pytest.raises(Refused):
            known.of(place, lambda _, name=name: Secrets(name))._connect()  # type: ignore[misc]

    assert asked[0] == "first"
    assert asked[-1] == "second"


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"RedriveDatabase": "{}"}, "RedriveDatabase"),
        ({"RedriveQueue": ""}, "has no output OrdersRedriveQueue. Deploy it anew."),
    ],
)
def test_outputs_that_this_version_does_not_know_are_a_sentence(desk, told, sentence):
    outputs = json.loads(desk.outputs()["OrdersRedriver"]) | told
    desk.clients["cloudformation"].stacks[STACK] = {"OrdersRedriver": json.dumps(outputs)}

    ran = desk("status")

    assert ran.code == 1
    assert sentence in ran.err
