"""One entry for a Postgres table in a list of queues: `origin = "postgres"`, and every fault with its place."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from constructs import Construct

from smart_redriver.cdk.backend import AdoptedElsewhere, Around
from smart_redriver.cdk.queue_clashes import HOME
from smart_redriver.cdk.queue_entry import (
    ANY_NAME,
    ANY_STACK,
    NAME,
    OWN_SETTINGS,
    STACK,
    STACK_NAME,
    EntryInNetwork,
    table_in,
)
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import SettingsError
from smart_redriver.postgres.cdk.redriver import PostgresRedriver, jobs_faults
from smart_redriver.postgres.engine.place import JobsDatabase

_RESOURCE_ID = re.compile(r"(db|cluster)-[A-Za-z0-9]{1,64}")
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_SECRET_ARN = re.compile(rf"arn:aws[a-z-]*:secretsmanager{HOME}secret:")
_ACCOUNT = re.compile(r"[0-9]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedJobs(AdoptedElsewhere):
    """A worker queue in a database, and the settings of its re-driver. Its circuit has the same ``name``."""

    database: JobsDatabase
    authorities: Path | None = None
    database_resource_id: str = "*"

    @property
    def places(self) -> tuple[str, ...]:
        """See `AdoptedElsewhere`."""
        return (*self.database.places, self.name)

    def redriver(self, scope: Construct, **around: Unpack[Around]) -> PostgresRedriver:
        """See `AdoptedElsewhere`."""
        return PostgresRedriver(
            scope,
            "Redriver",
            name=self.name,
            database=self.database,
            safeguards=self.safeguards,
            authorities=self.authorities,
            database_resource_id=self.database_resource_id,
            settings=self.settings,
            **around,
        )


class JobsEntry(EntryInNetwork):
    """One entry while it is read. ``faults`` fills meanwhile."""

    places = (
        "name",
        STACK,
        "origin",
        "database",
        "authorities",
        "database_resource_id",
        "region",
        "account",
        *EntryInNetwork.network,
    )

    resources_key, resources_called = "database", "tables"

    @staticmethod
    def home(entry: Mapping[str, Any]) -> tuple[str, str]:
        """Region and account of its secret, or else those in the entry."""
        given = str(entry.get("region", "")), str(entry.get("account", ""))
        return _home_of_secret(entry) or given

    @staticmethod
    def resources(entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The tables, including ours, if the database can be read from the entry."""
        try:
            return JobsDatabase.of(table_in(entry, "database")).places
        except SettingsError:
            return ()

    def read(self, global_values: Mapping[str, Any]) -> AdoptedJobs | None:  # type: ignore[override]
        """The queue; None if something is wrong with it. Its settings take precedence over the global ones."""
        self._refuse_unknown_keys()
        name = self._one("name", NAME, ANY_NAME)
        stack = self._one(STACK, STACK_NAME, ANY_STACK, is_needed=False)
        database = self._database()
        safeguards = self._safeguards(global_values)
        if name and database and safeguards is not None:
            self._add_faults_of(name, database, safeguards)
        region, account = self._home()
        resource_id = self._one(
            "database_resource_id",
            _RESOURCE_ID,
            "the resource id of the instance or cluster, db-... or cluster-...",
            is_needed=False,
        )
        authorities = self._authorities()
        settings = self._settings(Settings, OWN_SETTINGS, global_values)
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

    def _add_faults_of(self, name: str, database: JobsDatabase, safeguards: Safeguards) -> None:
        for fault in jobs_faults(name, database, safeguards):
            key = (
                f"database.{fault.setting}"
                if fault.setting in ("sslmode", "secret")
                else fault.setting
            )
            self._add(key, fault.seen, fault.accepted)

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

    def _home(self) -> tuple[str, str]:
        """Region and account from the secret's ARN. With IAM authentication, the entry has to give them."""
        is_given = isinstance(self._entry.get("database"), Mapping)
        is_needed = is_given and _home_of_secret(self._entry) is None
        needed = "where no secret's ARN says it"
        self._one("region", _REGION, f"the Region of the database, {needed}", is_needed=is_needed)
        account = f"the 12 digits of its AWS account as a text, {needed}"
        self._one("account", _ACCOUNT, account, is_needed=is_needed)
        return self.home(self._entry)

    def _authorities(self) -> Path | None:
        given = self._entry.get("authorities")
        if given is None:
            return None
        with suppress(OSError, ValueError):  # too long for a path, or not one
            if isinstance(given, str) and Path(given).is_file():
                return Path(given)
        self._add("authorities", given, "the path of a file of certificates, such as RDS's bundle")
        return None


def _home_of_secret(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Region and account of a database's secret; None without a secret."""
    match = _SECRET_ARN.match(str(table_in(entry, "database").get("secret")))
    return (match["region"], match["account"]) if match else None
