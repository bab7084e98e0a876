"""One entry of a list of queues that is a table of Postgres: `origin = "postgres"`, and every fault with its place."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redrive.databases import JobsDatabase
from redrive.errors import SettingsError
from redrive.settings import Settings
from redrive.targets import Origin
from smart_redriver.cdk.postgres_redriver import jobs_faults, output_prefix
from smart_redriver.cdk.queue_clashes import home_of_secret, jobs_home
from smart_redriver.cdk.queue_entry import ANY_NAME, ANY_STACK, NAME, STACK, STACK_NAME, QueueEntry
from smart_redriver.cdk.safeguards import Safeguards

#: An entry's own, over those of the deployment: the network of its database.
_NETWORK = ("vpc_id", "vpc_subnet_ids", "vpc_security_group_ids")
_RESOURCE_ID = re.compile(r"(db|cluster)-[A-Za-z0-9]{1,64}")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_ACCOUNT = re.compile(r"[0-9]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedJobs:
    """A worker queue in a database, and the settings of its re-driver; ``name`` is what its circuit is called, too."""

    name: str
    stack: str = ""
    region: str
    account: str
    database: JobsDatabase
    safeguards: Safeguards
    authorities: Path | None = None
    database_resource_id: str = "*"
    settings: Settings = field(default_factory=Settings)

    @property
    def id(self) -> str:
        """The name as the id of its construct, and what the names of its outputs begin with."""
        return output_prefix(self.name)

    @property
    def places(self) -> tuple[str, ...]:
        """What may be there once in an account and Region."""
        return (*self.database.places, self.name)


class JobsEntry(QueueEntry):
    """One entry while it is read; ``faults`` fills meanwhile."""

    places = (
        "name",
        STACK,
        "origin",
        "database",
        "authorities",
        "database_resource_id",
        "region",
        "account",
        *_NETWORK,
    )

    def read(self, global_values: Mapping[str, Any]) -> AdoptedJobs | None:  # type: ignore[override]
        """The queue; None where something is wrong with it. Its settings go over the global ones."""
        self._refuse_unknown_keys()
        name = self._one("name", NAME, ANY_NAME)
        stack = self._one(STACK, STACK_NAME, ANY_STACK, is_needed=False)
        database = self._database()
        safeguards = self._safeguards(global_values)
        if name and database and safeguards is not None:
            for fault in jobs_faults(name, database, safeguards):
                key = "database.sslmode" if fault.setting == "sslmode" else fault.setting
                self._add(key, fault.seen, fault.accepted)
        region, account = self._home()
        resource_id = self._one(
            "database_resource_id",
            _RESOURCE_ID,
            "the resource id of the instance or cluster, db-... or cluster-...",
            is_needed=False,
        )
        authorities = self._authorities()
        settings = self._settings(global_values)
        if self.faults or not (name and database and settings and safeguards is not None):
            return None
        return AdoptedJobs(
            name=name,
            stack=stack or str(global_values.get(STACK, "")),
            region=region,
            account=account,
            database=database,
            safeguards=safeguards,
            authorities=authorities,
            database_resource_id=resource_id or "*",
            settings=settings,
        )

    def _database(self) -> JobsDatabase | None:
        given = self._entry.get("database")
        if not isinstance(given, Mapping):
            accepted = "a table with host, dbname, and secret or user (docs/postgres.md)"
            self._add("database", given, accepted)
            return None
        try:
            return JobsDatabase.of(given)
        except SettingsError as error:
            for fault in error.faults:
                name = fault.setting.partition(" ")[2]
                self._add(f"database.{name}", fault.seen, fault.accepted)
            return None

    def _safeguards(self, global_values: Mapping[str, Any]) -> Safeguards | None:
        own = {name: self._entry[name] for name in _NETWORK if name in self._entry}
        try:
            return Safeguards.parse({**global_values, **own})
        except SettingsError as error:
            for fault in error.faults:
                if fault.setting in own:  # what is wrong with a global value is told once
                    self._add(fault.setting, fault.seen, fault.accepted)
            return None

    def _home(self) -> tuple[str, str]:
        """Region and account, which a secret's ARN says; with IAM authentication they have to be given."""
        is_given = isinstance(self._entry.get("database"), Mapping)
        is_needed = is_given and home_of_secret(self._entry) is None
        needed = "where no secret's ARN says it"
        self._one("region", _REGION, f"the Region of the database, {needed}", is_needed=is_needed)
        account = f"the 12 digits of its AWS account as a text, {needed}"
        self._one("account", _ACCOUNT, account, is_needed=is_needed)
        return jobs_home(self._entry)

    def _authorities(self) -> Path | None:
        given = self._entry.get("authorities")
        if given is None:
            return None
        with suppress(OSError, ValueError):  # too long for a path, or none
            if isinstance(given, str) and Path(given).is_file():
                return Path(given)
        self._add("authorities", given, "the path of a file of certificates, such as RDS's bundle")
        return None


def is_jobs(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a table of Postgres."""
    return bool(entry.get("origin") == Origin.POSTGRES.value)
