"""Checks that a worker queue's database has what a pass needs, with the function's credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from smart_redriver.engine.errors import DatabaseLost
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.access import check_calls
from smart_redriver.oncall.doctor.alarms import check_alarms
from smart_redriver.oncall.doctor.checkup import Check
from smart_redriver.oncall.doctor.findings import Finding, good, unknown, wrong
from smart_redriver.oncall.doctor.network import check_network
from smart_redriver.oncall.doctor.passes import check_passes, check_state
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.oncall.databases import Databases
from smart_redriver.postgres.oncall.tables import Tables

if TYPE_CHECKING:
    from smart_redriver.postgres.doctor.table_checks import Finding as DatabaseFinding

_READ_SECRET = ("secretsmanager:GetSecretValue",)


def check_database(session: Session) -> Iterator[Finding]:
    """Look at tables, columns, rights, indexes and TLS. Raises CallFailed and Refused."""
    letter_store = session.letter_store
    assert isinstance(letter_store, Tables), "made by this backend"  # noqa: S101 - a mistake of ours
    try:
        database = letter_store.database
        from smart_redriver.postgres.doctor.examination import examine

        found = examine(database)
    except (Refused, DatabaseLost) as failed:
        # No policy of AWS helps against it.
        yield unknown(
            f"The database could not be checked: {failed}",
            "See that its role can log in from here, and run it again (docs/postgres.md).",
        )
        return
    yield from _as_told(found)


def preview(session: Session, text: str, library: str | None) -> Iterator[Finding]:
    """Check a database that may not be deployed yet, for a library if one is named. Begins with the migration's grants.

    Raises SettingsError and CallFailed.
    """
    place = JobsDatabase.parse_as(text, library)
    database = session.connections.of(Databases).of(place, session.aws.client)
    from smart_redriver.postgres.doctor.examination import examine
    from smart_redriver.postgres.doctor.profile_checks import granted

    for one in granted(place):
        yield good(f"The migration grants: {one}")
    try:
        yield from _as_told(examine(database))
    except Refused as refused:
        yield wrong(str(refused), "Run the migration, and see that its role can connect from here.")


def _as_told(found: Iterable[DatabaseFinding]) -> Iterator[Finding]:
    for one in found:
        if one.is_well:
            yield good(f"The database: {one.what}.")
        elif one.is_needed:
            yield wrong(
                f"Not true of the database: {one.what}.", f"{one.advice} (docs/postgres.md)."
            )
        else:
            yield unknown(
                f"Not true of the database, though passes work: {one.what}.",
                f"{one.advice} (docs/postgres.md).",
            )


def check_access(session: Session) -> Iterator[Finding]:
    """Check a pass's calls to AWS. `check_database` checks its rights in the database. Raises CallFailed."""
    place = session.place.deployment.location
    assert isinstance(place, JobsDatabase), "read by this backend"  # noqa: S101 - a mistake of ours
    yield from check_calls(session, [(place.secret, _READ_SECRET)] if place.secret else [])


#: The checks for letters that are rows.
CHECKS: Mapping[str, Check] = {
    "database": check_database,
    "state table": check_state,
    "passes": check_passes,
    "access": check_access,
    "network": check_network,
    "alarms": check_alarms,
}
