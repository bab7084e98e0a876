"""For people, before anything is deployed: `python -m redrive.postgres doctor --database FILE.json`.

doctor             tables, columns, rights, what may keep or hide rows, indexes, TLS; exit code 1 where a pass could not work

Once it is deployed, `redrive doctor` says the same and more. `python -m redrive.postgres.migration` prints the SQL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    from redrive.aws.clients import client
    from redrive.postgres.credentials import open_database
    from redrive.postgres.database import Database
    from redrive.postgres.doctor import examine
except ImportError as missing:
    sys.exit(f"{missing}: install smart-redriver[oncall,postgres], the package with these extras.")
from redrive.core.outcomes import printable
from redrive.databases import JobsDatabase
from redrive.errors import CallFailed, SettingsError


def main(argv: Sequence[str] | None = None) -> int:
    """Look, and tell. Returns 0, 1 where something is not well, 2 where it could not be asked."""
    asked = _parser().parse_args(argv)
    try:
        place = JobsDatabase.parse(asked.database.read_text())
        database = open_database(place, client)
        try:
            return _doctor(database)
        finally:
            database.close()
    except (CallFailed, OSError, SettingsError, UnicodeError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 2


def _doctor(database: Database) -> int:
    findings = examine(database)
    for one in findings:
        mark = "ok  " if one.is_well else "FAIL" if one.is_needed else "warn"
        _say(f"{mark}  {one.what}" + ("" if one.is_well else f": {one.advice}"))
    return int(any(not one.is_well and one.is_needed for one in findings))


def _say(text: str) -> None:
    sys.stdout.write(" ".join(printable(text).split("\n")) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m redrive.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    doctor = verbs.add_parser("doctor")
    doctor.add_argument("--database", type=Path, required=True, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
