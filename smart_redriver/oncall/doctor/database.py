"""Whether the database of a worker queue is as a pass needs it, looked at with the credentials that the function has."""

from __future__ import annotations

from collections.abc import Iterator

from smart_redriver.oncall.doctor.findings import Finding, good, unknown, wrong
from smart_redriver.oncall.stack.session import Session


def check_database(session: Session) -> Iterator[Finding]:
    """Look at tables, columns, rights, indexes and TLS. Raises CallFailed and Refused."""
    database = session.lodging.database
    from redrive.postgres.doctor import examine

    for one in examine(database):
        if one.is_well:
            yield good(f"The database: {one.what}.")
        elif one.is_needed:
            yield wrong(f"Not so in the database: {one.what}.", f"{one.advice} (docs/postgres.md).")
        else:
            yield unknown(
                f"Not so in the database, though passes work: {one.what}.",
                f"{one.advice} (docs/postgres.md).",
            )
