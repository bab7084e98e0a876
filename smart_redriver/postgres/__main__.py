"""For people, before anything is deployed: `python -m smart_redriver.postgres doctor --database FILE.json`.

doctor             tables, columns, rights, what may keep or hide rows, indexes, TLS;
exit code 1 where a pass could not work

Once it is deployed, `redrive doctor` says the same and more.
`python -m smart_redriver.postgres.migration` prints the SQL.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

try:
    from smart_redriver.engine.aws.clients import client
    from smart_redriver.postgres.doctor.examination import examine
    from smart_redriver.postgres.doctor.profile_checks import granted
    from smart_redriver.postgres.engine.credentials import open_database
    from smart_redriver.postgres.engine.database import Database
except ImportError as missing:
    sys.exit(f"{missing}: install smart-redriver[oncall,postgres], the package with these extras.")
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.engine.reports.outcomes import printable
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.profiles import OWN, PROFILES


def main(argv: Sequence[str] | None = None) -> int:
    """Look, and tell. Returns 0, 1 where something is not well, 2 where it could not be asked."""
    asked = _parser().parse_args(argv)
    try:
        place = JobsDatabase.parse_as(asked.database.read_text(), asked.profile)
        database = open_database(place, client)
        try:
            return _doctor(database)
        finally:
            database.close()
    except (CallFailed, OSError, SettingsError, UnicodeError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 2


def _doctor(database: Database) -> int:
    if database.place.library is not None:
        _say("The migration grants:")
        for grant in granted(database.place):
            _say(f"      {grant}")
    findings = examine(database)
    for one in findings:
        mark = "ok  " if one.is_well else "FAIL" if one.is_needed else "warn"
        _say(f"{mark}  {one.what}" + ("" if one.is_well else f": {one.advice}"))
    return int(any(not one.is_well and one.is_needed for one in findings))


def _say(text: str) -> None:
    sys.stdout.write(" ".join(printable(text).split("\n")) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m smart_redriver.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    doctor = verbs.add_parser("doctor")
    doctor.add_argument("--database", type=Path, required=True, metavar="FILE")
    doctor.add_argument("--profile", choices=[OWN, *PROFILES], help="whose tables these are")
    return parser


if __name__ == "__main__":
    sys.exit(main())
