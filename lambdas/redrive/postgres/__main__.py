"""For people: `python -m redrive.postgres doctor|groups|show|replay --database FILE.json`.

doctor             tables, columns, rights, indexes, TLS; exit code 1 where a pass could not work
groups             letters by class of error, the most frequent first
show ID            one letter: payload, error, stack trace
replay ID          send one letter back; --validate COMMAND first gives its payload to a program of yours
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from redrive.aws.clients import client
from redrive.core.outcomes import printable
from redrive.databases import JobsDatabase
from redrive.errors import CallFailed, SettingsError
from redrive.postgres import by_hand
from redrive.postgres.credentials import open_database
from redrive.postgres.database import Database
from redrive.postgres.doctor import examine

#: Seconds that a program of the team's has for one payload.
_VALIDATES_WITHIN = 60


def main(argv: Sequence[str] | None = None) -> int:
    """Do what is asked. Returns 0, 1 where something is not well, 2 where it could not be asked."""
    asked = _parser().parse_args(argv)
    try:
        place = JobsDatabase.parse(asked.database.read_text())
        database = open_database(place, client)
        try:
            return int(_VERBS[asked.verb](database, asked))
        finally:
            database.close()
    except (CallFailed, OSError, SettingsError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 2


def _now() -> datetime:
    return datetime.now(UTC)


def _doctor(database: Database, _: argparse.Namespace) -> int:
    findings = examine(database)
    for one in findings:
        mark = "ok  " if one.is_well else "FAIL" if one.is_needed else "warn"
        _say(f"{mark}  {one.what}" + ("" if one.is_well else f": {one.advice}"))
    return int(any(not one.is_well and one.is_needed for one in findings))


def _groups(database: Database, _: argparse.Namespace) -> int:
    for one in by_hand.groups(database):
        since = f"{one.first:%Y-%m-%d %H:%M}" if one.first else "-"
        _say(f"{one.letters:>9,}  {one.error_class or '(no class)'}  since {since}  {one.sample}")
    return 0


def _show(database: Database, asked: argparse.Namespace) -> int:
    letter = by_hand.find(database, asked.id, _now)
    if letter is None:
        return _not_there(asked.id)
    _say(f"{letter.message_id}  died {letter.sent_at:%Y-%m-%d %H:%M:%S} UTC")
    for name, value in letter.attributes.items():
        _say(f"{name}: {value['StringValue']}", lines=True)
    _say(letter.body, lines=True)
    return 0


def _replay(database: Database, asked: argparse.Namespace) -> int:
    letter = by_hand.find(database, asked.id, _now)
    if letter is None:
        return _not_there(asked.id)
    if asked.validate and (refused := _refused(asked.validate, letter.body)):
        _say(f"{letter.message_id} stays: {refused}")
        return 1
    sent = by_hand.replay(database, letter, asked.queue, _now)
    for fault in sent.faults:
        _say(f"{letter.message_id} stays: {fault.code}: {fault.detail}")
    for new_id in sent.new_ids.values():
        _say(f"{letter.message_id} is {new_id} now")
    return int(bool(sent.faults))


def _refused(command: str, payload: str) -> str:
    """Why the team's program takes no such payload; empty where it does."""
    try:
        done = subprocess.run(  # noqa: S603 - whoever types it may run it
            shlex.split(command),
            input=payload,
            text=True,
            capture_output=True,
            timeout=_VALIDATES_WITHIN,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as failed:
        return str(failed)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def _not_there(letter_id: str) -> int:
    _say(f"no letter {letter_id}: an id is a row's number, with dlq- or parked- before it")
    return 1


def _say(text: str, *, lines: bool = False) -> None:
    text = printable(text)
    sys.stdout.write((text if lines else " ".join(text.split("\n"))) + "\n")


_VERBS = {"doctor": _doctor, "groups": _groups, "show": _show, "replay": _replay}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m redrive.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in _VERBS:
        verb = verbs.add_parser(name)
        verb.add_argument("--database", type=Path, required=True, metavar="FILE")
        if name in ("show", "replay"):
            verb.add_argument("id")
        if name == "replay":
            verb.add_argument("--queue", required=True, help="what the re-driver calls the queue")
            verb.add_argument("--validate", metavar="COMMAND")
    return parser


if __name__ == "__main__":
    sys.exit(main())
