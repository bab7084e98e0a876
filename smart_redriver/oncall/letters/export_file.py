"""A file of letters that is on the disk before anything happens to the letters in it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import IO

from redrive.core.case import Case
from redrive.errors import EntryFault
from smart_redriver.oncall.letters.jsonlines import letter_to_json
from smart_redriver.oncall.letters.kept_file import read_lines
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused


class ExportFile:
    """Writes letters to `path` as JSON lines, readable by its owner only: bodies hold customers' data.

    `name_of` tells the source queue that a letter belongs to. `is_continued`: a file of letters that is there already is
    added to, so that what was broken off goes on in the same file; nothing else that is there is ever written to.
    """

    def __init__(
        self, path: Path, name_of: Callable[[Case], str], *, is_continued: bool = True
    ) -> None:
        self._path = path
        self._name_of = name_of
        self._is_continued = is_continued
        self._lock = Lock()
        self._written = 0
        self._is_new = False
        self._file: IO[str] | None = None

    def __enter__(self) -> ExportFile:
        """Open the file. Raises Refused where that is not possible."""
        try:
            descriptor = self._open()
            self._claim(descriptor)
            os.fchmod(descriptor, 0o600)
        except OSError as fault:
            raise Refused(
                f"{self._path} can't be written: {fault.strerror}. Name another file."
            ) from fault
        self._file = os.fdopen(descriptor, "a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, and leave none behind that was made for this and that nothing was written to."""
        if self._file is not None:
            if self._is_new and not self._written:
                with suppress(OSError):
                    self._path.unlink()
            self._file.close()

    def _open(self) -> int:
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY)
        except FileExistsError:
            self._check_what_is_there()
            return os.open(self._path, os.O_APPEND | os.O_WRONLY)
        self._is_new = True
        return descriptor

    def _claim(self, descriptor: int) -> None:
        """Keep other commands from it until it is closed. Raises Refused where one of them has it.

        Whoever made it and wrote nothing to it removes it, and what another had written would be gone with it.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_removed = os.fstat(descriptor).st_nlink == 0
        except BlockingIOError:
            is_removed = True
        if is_removed:
            os.close(descriptor)
            raise Refused(f"{self._path} is being written by another command. Name another file.")

    def _check_what_is_there(self) -> None:
        """Raise Refused for all but an empty file, or one of letters where it is continued."""
        if not self._path.is_file():
            raise Refused(f"{self._path} is no regular file. Name another.")
        if self._path.stat().st_size == 0:
            return
        if not self._is_continued:
            raise Refused(f"{self._path} is there already. Name another file, or remove it.")
        try:
            next(read_lines(self._path), None)
        except Refused as fault:
            raise Refused(
                f"{self._path} is there already, and no file of letters. Name another."
            ) from fault

    def write(self, cases: Iterable[Case]) -> int:
        """Write letters, and return when they are on the disk; how many. Raises Refused."""
        lines = [
            json.dumps(letter_to_json(case, self._name_of(case)), ensure_ascii=False) + "\n"
            for case in cases
        ]
        assert self._file is not None, "written to before it was opened"  # noqa: S101 - a mistake of ours
        try:
            with self._lock:
                self._file.writelines(lines)
                self._file.flush()
                os.fsync(self._file.fileno())
                self._written += len(lines)
        except OSError as fault:
            raise Refused(f"{self._path} could not be written: {fault.strerror}.") from fault
        return len(lines)

    def told(self) -> list[str]:
        """Where letters are kept now, in words; nothing where none was written."""
        return [f"kept in {self._path}"] if self._written else []


def to_be_kept(
    session: Session, cases: Sequence[Case], *, dlq: bool
) -> tuple[list[Case], list[EntryFault]]:
    """Letters with all that brings them back, and those of which that can't be read.

    Those that have gone meanwhile are left out. Raises CallFailed and Refused.
    """
    letters, unread = session.lodging.keep([case.letter for case in cases], dlq=dlq)
    kept = {one.message_id: one for one in letters}
    return [
        replace(case, letter=kept[case.message_id]) for case in cases if case.message_id in kept
    ], unread
