"""TLS to the database, on a real Postgres that speaks it: who is trusted, who is refused and why,
and how one proves who one is.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from psycopg import sql

from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.doctor.examination import examine
from smart_redriver.postgres.engine.credentials import Connector
from smart_redriver.postgres.engine.database import NO_CONNECTION, Connection, Database
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.migration import ROLE
from tests.postgres.bench import Bench
from tests.postgres.certificates import Authority
from tests.postgres.conftest import prepare
from tests.postgres.tls_server import HOST, TlsServer, running_tls

OURS, STRANGER = Authority("ours"), Authority("stranger")
GOOD = OURS.sign(HOST)

_SESSIONS = sql.SQL(
    "select s.ssl, s.version from pg_stat_ssl s join pg_stat_activity using (pid) where usename = %(role)s"
)


class Secrets:
    """Secrets Manager. `password` is what it holds; `asked` counts."""

    def __init__(self, password: str = "first") -> None:
        self.password = password
        self.asked = 0

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803
        self.asked += 1
        return {"SecretString": json.dumps({"username": ROLE, "password": self.password})}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    with running_tls(OURS.file(tmp_path_factory.mktemp("ours")), GOOD) as one:
        prepare(one)
        yield one


@pytest.fixture
def server(running: TlsServer) -> TlsServer:
    """As it ought to be: with a certificate of ours, and the role's password is the first."""
    running.show(GOOD)
    running.give_password(ROLE, "first")
    return running


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def database(server: TlsServer, secrets: Secrets) -> Iterator[Database]:
    with opened(server.place("template"), secrets) as one:
        yield one


@contextmanager
def opened(place: JobsDatabase, client: Any) -> Iterator[Database]:
    database = Database(place, connector(place, client))
    try:
        yield database
    finally:
        database.close()


def connector(place: JobsDatabase, client: Any) -> Callable[[], Connection]:
    return Connector(place, lambda _: client)


def ask(database: Database, question: str = "select current_user::text") -> Any:
    ((answer,),) = database.run("Ask", sql.SQL("{}").format(sql.SQL(question)), {})
    return answer


def refusal(place: JobsDatabase, client: Any) -> str:
    """Why nobody is let in, as a pass reports it."""
    with opened(place, client) as database, pytest.raises(CallFailed) as failed:
        ask(database)
    assert (failed.value.call, failed.value.code) == ("Ask", NO_CONNECTION)
    return failed.value.detail


# -- who is trusted -------------------------------------------------------------------------------


def test_letters_are_redriven_and_their_outcomes_heard_over_verified_tls(
    server: TlsServer, secrets: Secrets
) -> None:
    server.create("whole", template="template")
    with Bench(server, "whole") as bench:
        bench.database = bench.open(place=bench.place, connect=connector(bench.place, secrets))
        bench.die("good", "bad")

        first = bench.run_pass(base_delay_seconds=0)
        bench.work(lambda payload: "Boom" if payload == "bad" else None)
        bench.clock.advance(60)
        second = bench.run_pass(base_delay_seconds=0)

        sessions = bench.owner.execute(_SESSIONS, {"role": ROLE}).fetchall()
        assert (bench.place.sslmode, bench.place.host) == ("verify-full", HOST)
        assert (first.redriven, first.faults, second.faults) == (2, {}, {})
        assert (second.heard["succeeded"], second.heard["failed"]) == (1, 1)
        assert bench.done == {"good": 1}
        assert sessions
        assert {one for one, _ in sessions} == {True}


def test_a_file_of_several_authorities_is_read_to_its_end(
    server: TlsServer, secrets: Secrets, tmp_path: Path
) -> None:
    """As RDS's is, with more than a hundred of them."""
    bundle = OURS.file(tmp_path, *(Authority(f"region {number}") for number in range(120)))

    with opened(server.place("template", sslrootcert=str(bundle)), secrets) as database:
        assert ask(database) == ROLE


def test_the_doctor_finds_tls_and_all_else_well(database: Database) -> None:
    findings = examine(database)

    assert any("TLS" in one.what for one in findings)
    assert [one.what for one in findings if one.is_needed and not one.is_well] == []


# -- who is refused -------------------------------------------------------------------------------


def test_a_certificate_that_another_authority_signed_is_refused(
    server: TlsServer, secrets: Secrets
) -> None:
    server.show(STRANGER.sign(HOST))

    told = refusal(server.place("template"), secrets)

    assert told == (
        f"The certificate of {HOST}:{server.port} is not trusted by the authorities in {server.authorities}: "
        "unable to get local issuer certificate"
    )


def test_a_certificate_that_has_ended_is_refused(server: TlsServer, secrets: Secrets) -> None:
    server.show(OURS.sign(HOST, ended=True))

    assert refusal(server.place("template"), secrets).endswith(": certificate has expired")


def test_a_certificate_of_another_host_is_refused(server: TlsServer, secrets: Secrets) -> None:
    server.show(OURS.sign("db.example.com"))

    assert refusal(server.place("template"), secrets).endswith(
        f'server certificate for "db.example.com" does not match host name "{HOST}"'
    )


def test_a_server_without_tls_is_refused(server: TlsServer, secrets: Secrets) -> None:
    server.show(None)

    assert refusal(server.place("template"), secrets).endswith(
        "server does not support SSL, but SSL was required"
    )


class Listener:
    """One who answers every connection with the same byte, and notes all that it is sent."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._listen)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._door.close()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            with caller:
                said = caller.recv(8)
                caller.sendall(self._answer)
                while more := caller.recv(4096):
                    said += more
                self.heard.append(said)


def test_one_who_offers_plain_text_alone_is_told_nothing(
    server: TlsServer, secrets: Secrets
) -> None:
    """Somebody between who answers that there is no TLS: neither name nor password is sent."""
    with Listener(b"N") as between:
        told = refusal(server.place("template", port=between.port), secrets)

    assert told.endswith("server does not support SSL, but SSL was required")
    assert between.heard == [struct.pack("!ii", 8, 80_877_103)]


def test_one_whose_certificate_can_not_be_asked_for_again_is_refused_all_the_same(
    server: TlsServer, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second question is for the reason alone. Here it goes to one who hangs up."""
    server.show(STRANGER.sign(HOST))
    monkeypatch.setattr(socket, "create_connection", _gone)

    assert refusal(server.place("template"), secrets).endswith(": certificate verify failed")


def _gone(*_: object) -> socket.socket:
    raise ConnectionResetError


def test_a_private_authority_is_not_known_to_the_machine(
    server: TlsServer, secrets: Secrets
) -> None:
    told = refusal(server.place("template", sslrootcert="system"), secrets)

    assert told.startswith(
        f"The certificate of {HOST}:{server.port} is not signed by an authority that psycopg"
    )
    assert "PGSSLROOTCERT" in told


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "it has no certificates in PEM"),
        (b"<html>404</html>", "it has no certificates in PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "it has no certificates in PEM"),
    ],
    ids=["missing", "empty", "a page", "broken"],
)  # fmt: skip
def test_authorities_that_can_not_be_read_are_a_sentence(
    server: TlsServer, secrets: Secrets, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "authorities.pem"
    if content is not None:
        path.write_bytes(content)

    told = refusal(server.place("template", sslrootcert=str(path)), secrets)

    assert told == f"The authorities that sign for {HOST} can't be read from {path}: {reason}"


def test_a_folder_of_authorities_is_a_sentence_too(
    server: TlsServer, secrets: Secrets, tmp_path: Path
) -> None:
    told = refusal(server.place("template", sslrootcert=str(tmp_path)), secrets)

    assert told.endswith(f"can't be read from {tmp_path}: Is a directory")


# -- what stands around ---------------------------------------------------------------------------

WEAKER = {
    "mode": {"PGSSLMODE": "disable"},
    "kerberos": {"PGGSSENCMODE": "require"},
    "options": {"PGOPTIONS": "-c search_path=elsewhere"},
    "old protocol": {"PGSSLMINPROTOCOLVERSION": "TLSv1"},
    "service": {"PGSERVICE": "weak"},
    "authorities": {"PGSSLROOTCERT": "stranger"},
    "password": {"PGPASSWORD": "another", "PGUSER": "postgres"},
}
SERVICE = """\
[weak]
sslmode=disable
gssencmode=require
options=-c search_path=elsewhere
ssl_min_protocol_version=TLSv1
sslrootcert=/nowhere
user=postgres
port=1
"""


@pytest.fixture(params=WEAKER.values(), ids=list(WEAKER))
def surround(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """From its call on, what a person's environment says, or the file of services in their home."""

    def begin() -> None:
        (tmp_path / ".pg_service.conf").write_text(SERVICE)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / ".pg_service.conf"))
        stranger = str(STRANGER.file(tmp_path))
        for name, value in request.param.items():
            monkeypatch.setenv(name, stranger if value == "stranger" else value)

    return begin


def test_nothing_in_the_environment_weakens_the_connection(
    server: TlsServer, secrets: Secrets, surround: Callable[[], None]
) -> None:
    surround()

    with connector(server.place("template"), secrets)() as connection:
        told = connection.info.get_parameters()
        rows = connection.execute(
            "select ssl, version, current_user::text, current_setting('search_path')"
            " from pg_stat_ssl where pid = pg_backend_pid()"
        ).fetchall()

    assert rows == [(True, "TLSv1.3", ROLE, '"$user", public')]
    assert told["sslmode"] == "verify-full"
    # What is libpq's own default is not told.
    assert told.get("gssencmode", "disable") == "disable"
    assert told.get("ssl_min_protocol_version", "TLSv1.2") == "TLSv1.2"
    assert told["sslrootcert"] == str(server.authorities)


def test_nor_does_it_let_a_stranger_in(
    server: TlsServer, secrets: Secrets, surround: Callable[[], None]
) -> None:
    server.show(STRANGER.sign(HOST))
    surround()

    assert refusal(server.place("template"), secrets).endswith(
        ": unable to get local issuer certificate"
    )


def test_where_the_configuration_names_no_authorities_a_person_may(
    server: TlsServer, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = server.place("template", sslrootcert="system")
    monkeypatch.setenv("PGSSLROOTCERT", str(server.authorities))

    with opened(place, secrets) as database:
        assert ask(database) == ROLE
    server.show(STRANGER.sign(HOST))
    assert f"not trusted by the authorities in {server.authorities}" in refusal(place, secrets)


def test_through_a_tunnel_the_certificate_is_that_of_the_host_in_the_configuration(
    server: TlsServer, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.show(OURS.sign("db.example.com"))
    place = server.place("template", host="db.example.com")
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")

    with opened(place, secrets) as database:
        assert ask(database) == ROLE
    monkeypatch.delenv("PGHOSTADDR")
    server.show(OURS.sign("db.example.com", ended=True))
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")
    assert refusal(place, secrets).endswith(": certificate has expired")


# -- how one proves who one is --------------------------------------------------------------------


def test_a_password_that_was_rotated_is_read_anew_and_the_pass_goes_on(
    server: TlsServer, secrets: Secrets, database: Database
) -> None:
    assert ask(database) == ROLE
    server.give_password(ROLE, "second")
    secrets.password = "second"
    assert (ask(database), secrets.asked) == (ROLE, 1)

    database.close()

    assert (ask(database), secrets.asked) == (ROLE, 2)


def test_a_password_that_is_wrong_is_not_quoted(server: TlsServer) -> None:
    told = refusal(server.place("template"), Secrets("hunter2"))

    assert told.endswith(f'password authentication failed for user "{ROLE}"')
    assert "hunter2" not in told


class Signer:
    """RDS: boto3's own signer, whose latest token alone is the role's password."""

    def __init__(self, server: TlsServer) -> None:
        self._server = server
        self._rds = boto3.client(
            "rds", region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        self.tokens: list[str] = []

    def generate_db_auth_token(self, **given: Any) -> str:
        # Two of one second are alike.
        token = f"{self._rds.generate_db_auth_token(**given)}&n={len(self.tokens)}"
        self._server.give_password(ROLE, token)
        self.tokens.append(token)
        return token


def test_a_token_of_iam_is_the_password_of_one_connection(server: TlsServer) -> None:
    """RDS asks for it in clear text, within TLS."""
    server.show(GOOD, method="password")
    signer = Signer(server)
    with opened(server.place("template", secret="", user=ROLE), signer) as database:
        first = ask(database)
        again = ask(database)
        database.close()
        second = ask(database)

    assert (first, again, second) == (ROLE, ROLE, ROLE)
    assert len(signer.tokens) == 2
    assert signer.tokens[0].startswith(f"{HOST}:{server.port}/?Action=connect&DBUser={ROLE}&")


def test_a_token_is_sent_to_nobody_who_is_not_trusted(server: TlsServer) -> None:
    """Signing needs no network; what is signed must not get to a stranger who asks for it in clear text."""
    server.show(STRANGER.sign(HOST), method="password")

    told = refusal(server.place("template", secret="", user=ROLE), Signer(server))

    assert told.endswith(": unable to get local issuer certificate")
    assert "X-Amz" not in told
