"""Files of letters: written to the disk before anything happens to the letters in it, and read back for an import."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import IO

from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.jsonlines import Kept, letter_from_json, letter_to_json
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.words import letters, listed


class KeptFile:
    """A file of letters, for the queue of a session. `others` are queues whose letters are to become this one's."""

    def __init__(self, session: Session, path: Path, others: Sequence[str] = ()) -> None:
        self.path = path
        self._session = session
        self._others = frozenset(others)
        self._own_arns = {source.name: source.facts().arn for source in session.sources}

    def check(self) -> int:
        """Read the whole of it; how many letters it has.

        Raises Refused for a line that can't be read, and for letters of a queue that is neither this one nor named.
        """
        count, strangers = 0, Counter[str]()
        for kept in read_lines(self.path):
            count += 1
            if self._is_strange(kept) and kept.queue not in self._others:
                strangers[_whose(kept)] += 1
        if strangers:
            raise Refused(self._refusal(strangers))
        return count

    def __iter__(self) -> Iterator[Kept]:
        """Its letters, those of other queues as this queue's. Raises Refused."""
        for kept in read_lines(self.path):
            yield self._adopted(kept) if self._is_strange(kept) else kept

    def _is_strange(self, kept: Kept) -> bool:
        """Whether it is of a queue of another name, or of the same name in another account or Region."""
        if kept.letter.source_arn is not None:
            return kept.letter.source_arn not in self._own_arns.values()
        return kept.queue is not None and kept.queue not in self._own_arns

    def _adopted(self, kept: Kept) -> Kept:
        source, trail = self._session.source, kept.letter.trail
        letter = replace(
            kept.letter,
            source_arn=self._own_arns[source],
            trail=replace(trail, queue=source) if trail else None,
        )
        return replace(kept, letter=letter, queue=source)

    def _refusal(self, strangers: Counter[str]) -> str:
        told = listed([f"{letters(count)} of {whose}" for whose, count in strangers.most_common()])
        names = " ".join(
            f"--from-queue {name}" for name in sorted({one.split(" ")[0] for one in strangers})
        )
        own = listed(self._session.place.sources)
        return (
            f"{self.path} has {told}, and this is {own}. Nothing was changed. To accept them as its letters, add "
            f"{names}."
        )


def read_lines(path: Path) -> Iterator[Kept]:
    """The letters of a file, one at a time. Raises Refused naming the line that is wrong."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield letter_from_json(json.loads(line))
                except (ValueError, RecursionError) as fault:
                    raise Refused(
                        f"{path}, line {number}: {fault}. Nothing was changed by this line or after it."
                    ) from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise Refused(f"{path} can't be read: {fault}.") from fault


def _whose(kept: Kept) -> str:
    arn = kept.letter.source_arn
    return f"{kept.queue} ({arn})" if arn else str(kept.queue)


class ExportFile:
    """Writes letters to `path` as JSON lines, readable by its owner only: bodies hold customers' data.

    `name_of` tells the source queue that a letter belongs to. `is_continued`:
    a file of letters that is there already is added to, so that what was broken off goes on in the same file;
    nothing else that is there is ever written to.
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
            raise Refused(f"{self._path} is not a regular file. Name another.")
        if self._path.stat().st_size == 0:
            return
        if not self._is_continued:
            raise Refused(f"{self._path} already exists. Name another file, or remove it.")
        try:
            next(read_lines(self._path), None)
        except Refused as fault:
            raise Refused(
                f"{self._path} exists and is not a file of letters. Name another."
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
    letters, unread = session.letter_store.keep([case.letter for case in cases], dlq=dlq)
    kept = {one.message_id: one for one in letters}
    return [
        replace(case, letter=kept[case.message_id]) for case in cases if case.message_id in kept
    ], unread
