"""A worker queue in Postgres whose re-driver is deployed: database by TLS, secret, network, workers,
and time that passes.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from demo.event_log import Event
from demo.stack import DeployedStack
from emulator import cdk
from emulator.environments import ROOT
from emulator.process import LocalAws
from examples.postgres_worker.worker import Worker
from smart_redriver.oncall.deployment.places import read_outputs
from smart_redriver.postgres.migration import ROLE, migration_of
from tests.e2e.oncall_command import OnCall
from tests.oncall.ran import Ran
from tests.postgres.libraries import RIVER
from tests.postgres.tls_server import HOST, TlsServer

Connection = psycopg.Connection[Any]

DBNAME = "template"
ORDERS = range(1, 13)
#: It fails once more after the outage, of what no others fail of.
LATE = 3
BAD = {"order": "none"}
#: Nothing ever took longer; a story that does is told as it ended.
_PATIENCE_MINUTES = 60
#: Jobs of a library, in its one table beside those of the team, and what is the re-driver's own there.
CHARGES = 3
_OF_LIBRARY = {
    "profile": "river",
    "parked": "river_parked",
    "held": "river_held",
    "redriven": "river_redriven",
}
_RIVER_DIES = """
insert into river_job (kind, max_attempts, attempt, state, finalized_at, errors)
select 'charge', 1, 1, 'discarded', %s, array['{"error": "nobody answers"}'::jsonb] from generate_series(1, %s)
"""
_RIVER_WORKS = """
update river_job set attempt = attempt + 1, finalized_at = %s, state = %s::river_job_state
where state in ('available', 'scheduled') and scheduled_at <= %s
"""
_RETURNED = "select from jobs_redriven where returned_as is not null"
_UNHEARD = (
    "select from jobs_redriven where settled_at is null union all"
    " select from river_redriven where settled_at is null"
)
_MINUTE = 60.0
_BETWEEN_WORK = 10.0

#: MiniStack puts no function into a network, and asks nobody whether there is one.
_NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "vpc_subnet_ids": ["subnet-0123456789abcdef0"],
    "vpc_security_group_ids": ["sg-0123456789abcdef0"],
}
_SETTINGS = {
    "base_delay_seconds": 0,
    "max_delay_seconds": 60,
    "initial_window": 5,
    "cool_down_seconds": 60,
    "verdict_grace_seconds": 0,
}


class OutageError(Exception):
    """What every order fails of while it lasts."""


class BadOrder(Exception):  # noqa: N818 - a name as teams have them
    """What no retry heals."""


class World:
    """`log` is the function's; `is_down` and `takes_bad` are the workers'."""

    #: The class of what is permanent, as the kit calls it.
    permanent = f"{BadOrder.__module__}.{BadOrder.__name__}"

    def __init__(self, aws: LocalAws, server: TlsServer, owner: Connection) -> None:
        self.aws, self.server, self.owner = aws, server, owner
        self.is_down, self.takes_bad = True, False
        self.log: list[Event] = []
        self.during_outage: dict[str, Counter[str]] = {}
        self.after: dict[str, Counter[str]] = {}
        self._late_failures = 0
        self.owner.execute("create table booked (payload jsonb)")
        self.owner.execute(RIVER)
        migration = migration_of(server.place(DBNAME, **_OF_LIBRARY))
        for part in (migration.tables, migration.grants, migration.index):
            self.owner.execute(part)
        cdk.prepare(aws)
        self.folder = aws.work_dir / "deployment"
        self.folder.mkdir()
        told = read_outputs(self._deploy())
        outputs = {name.removeprefix("Orders"): value for name, value in told.items()}
        self.stack = DeployedStack(aws, outputs)
        self._on_call = OnCall(self.stack)
        self._worker = Worker(self.owner, self._handle, clock=self.stack.now)

    def _deploy(self) -> dict[str, str]:
        """As people do, by a list; with psycopg built for this machine."""
        listed = self.folder / "queues.toml"
        listed.write_text(self._toml())
        told = json.loads((ROOT / "cdk.json").read_text())
        program = Path(__file__).with_name("app_for_here.py")
        (self.folder / "cdk.json").write_text(
            json.dumps({**told, "app": f"{sys.executable} {program}"})
        )
        return cdk.deploy(self.aws, self.folder, {"queues": str(listed)}, self.folder)

    def _toml(self) -> str:
        entry = {
            "origin": "postgres",
            "authorities": str(self.server.authorities),
            **_NETWORK,
            **_SETTINGS,
        }
        database = {
            "host": HOST,
            "port": self.server.port,
            "dbname": DBNAME,
            "secret": self._keep_secret(),
            "permanent": [self.permanent],
            "max_attempts": 1,
            "time_to_fail_seconds": 60,
        }
        queues = {"orders": database, "charges": database | _OF_LIBRARY}
        return "\n".join(
            line
            for name, its in queues.items()
            for line in (
                *("[[queues]]", *_lines({"name": name, **entry})),
                *("[queues.database]", *_lines(its), ""),
            )
        )

    def _keep_secret(self) -> str:
        """Give the role a password that Secrets Manager alone knows; the ARN."""
        password = secrets.token_hex()
        self.server.give_password(ROLE, password)
        told = {"username": ROLE, "password": password}
        made = self.aws.client("secretsmanager").create_secret(
            Name="redriver", SecretString=json.dumps(told)
        )
        return str(made["ARN"])

    # -- the story ------------------------------------------------------------------------------

    def fail(self) -> None:
        """Let all jobs die, until passes have parked the bad one and heard of others that they sent back in vain.

        How many minutes that takes, the machine decides: a function that starts slowly is late for them.
        """
        with self.owner.cursor() as cursor:
            cursor.executemany(
                "insert into jobs (payload, max_attempts) values (%s, 1)",
                [(Jsonb(one),) for one in (*({"order": n} for n in ORDERS), BAD)],
            )
        self.owner.execute(_RIVER_DIES, (self.stack.now(), CHARGES))
        self.work()
        for _ in range(_PATIENCE_MINUTES):
            self.live()
            if self.payloads("jobs_parked") and self.rows(_RETURNED):
                break
        self.during_outage = self.places()

    def recover(self) -> None:
        """From now on orders can be done."""
        self.is_down = False

    def drain(self) -> None:
        """Let passes and the worker take turns until no letter waits and all is heard of."""
        for _ in range(_PATIENCE_MINUTES):
            self.live()
            if not self.waiting() and not self.rows(_UNHEARD):
                break
        self.live()
        self.after = self.places()
        self.log += self.stack.redriver_log.fresh()

    def live(self) -> None:
        """Let a minute pass; the worker takes each job within ten seconds."""
        for _ in range(round(_MINUTE / _BETWEEN_WORK)):
            self.aws.pass_time(_BETWEEN_WORK)
            self.work()

    def work(self) -> None:
        """Let the worker take all jobs whose turn it is."""
        while self._worker.work():
            pass
        now = self.stack.now()
        self.owner.execute(_RIVER_WORKS, (now, "discarded" if self.is_down else "completed", now))

    def _handle(self, payload: Any, connection: Connection) -> None:
        if payload == BAD and not self.takes_bad:
            raise BadOrder("an order without a number")
        if self.is_down:
            raise OutageError("nobody answers")
        if payload == {"order": LATE} and not self._late_failures:
            self._late_failures += 1
            raise TimeoutError("too late")
        connection.execute("insert into booked values (%s)", (Jsonb(payload),))

    # -- what there is --------------------------------------------------------------------------

    def redrive(self, *arguments: str, **environment: str) -> Ran:
        """Type `redrive`, with the file of authorities that people have."""
        have = {"PGSSLROOTCERT": str(self.server.authorities)}
        return self._on_call(*arguments, **{**have, **environment})

    def waiting(self) -> int:
        """Jobs and letters that are neither done nor parked."""
        of_library = self.rows("select from river_job where state <> 'completed'")
        return len(of_library) + sum(len(self.payloads(table)) for table in ("jobs", "jobs_dlq"))

    def payloads(self, table: str) -> list[Any]:
        return [one for (one,) in self.rows(f"select payload from {table}")]

    def places(self) -> dict[str, Counter[str]]:
        """Each table with what is in it, `booked` being what is done; those with nothing are left out."""
        tables = ("jobs", "jobs_dlq", "jobs_parked", "booked")
        there = {one: Counter(map(json.dumps, self.payloads(one))) for one in tables}
        return {one: found for one, found in there.items() if found}

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.owner.execute(statement).fetchall()

    def heard(self) -> Counter[str]:
        """What passes heard of redriven jobs, all together."""
        passes = [one.fields for one in self.log if one.name == "pass.finished"]
        return sum((Counter(one["heard"]) for one in passes), Counter[str]())


def _lines(fields: dict[str, Any]) -> list[str]:
    """JSON's texts, numbers and lists are TOML's, too."""
    return [f"{key} = {json.dumps(one)}" for key, one in fields.items()]
