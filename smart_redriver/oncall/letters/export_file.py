"""Files of letters, one line of JSON each, with binary attributes included.

A file is on the disk before anything happens to its letters. An import reads it back.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import IO, Any
from uuid import UUID, uuid5

from smart_redriver.engine.config.targets import queue_name
from smart_redriver.engine.counts import letters
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Attribute, Letter, RedriveMetadata, Unfit
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.words import listed

VERSION = 1

_NO_LETTERS = "is not a file of letters, as `redrive export` and `redrive delete` write it"
_UNCHANGED = "Nothing was changed by this line or after it."

#: The namespace of the ids of copies. The same letter gets the same id, so that it is imported once.
_COPIES = UUID("8f0f3c5e-6d6e-4f6b-9a6e-0f7f5b8f3c1d")

#: Characters of a parking reason. The ledger keeps the reason, and the re-driver's own reasons are shorter.
_LONGEST_REASON = 500


def letter_to_json(case: Case, queue: str) -> dict[str, Any]:
    """Everything that the message is, and what the ledger knows of it."""
    letter, entry = case.letter, case.known(queue)
    return {
        "version": VERSION,
        "queue": queue,
        "message_id": letter.message_id,
        "original_id": letter.original_id,
        "sent_at": letter.sent_at.isoformat(),
        "body": letter.body,
        "attributes": attributes_to_json(letter.attributes),
        "group_id": letter.group_id,
        "trace_header": letter.trace_header,
        "source_arn": entry.source_arn,
        "trail": letter.metadata.encode() if letter.metadata else None,
        "first_seen": entry.first_seen.isoformat(),
        "redrive_count": entry.redrive_count,
        "strikes": entry.strikes,
        "reason": entry.park_reason,
        "error": entry.error,
        **({"unfit": letter.unfit.value} if letter.unfit else {}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A letter of a file.

    Attributes:
        queue: the name of the source queue that it belonged to.
        kept_by: the name of the queue whose command wrote it.
        reason: why it had been parked.
        copy: a letter that was another queue's, under an id that it has in no other queue.

    """

    letter: Letter
    queue: str | None
    kept_by: str | None
    reason: str | None
    copy: Letter | None = None


def letter_from_json(fields: Any) -> Kept:
    """The letter of one line. Raises ValueError saying what is wrong."""
    if not isinstance(fields, dict):
        raise ValueError("each line must be one JSON object")  # noqa: TRY004 - one kind of fault for all
    if fields.get("version") != VERSION:
        raise ValueError(f"version {fields.get('version')!r} is not known, {VERSION} is")
    try:
        metadata = _text_or_none(fields, "trail")
        letter = Letter(
            message_id=_text(fields, "message_id"),
            receipt_handle="",
            body=_text(fields, "body", least=0),  # a row may have an empty payload, or none
            attributes=attributes_from_json(fields.get("attributes") or {}),
            sent_at=_moment(_text(fields, "sent_at")),
            group_id=_text_or_none(fields, "group_id"),
            trace_header=_text_or_none(fields, "trace_header"),
            source_arn=_text_or_none(fields, "source_arn"),
            metadata=RedriveMetadata.decode(metadata) if metadata else None,
            unfit=Unfit(fields["unfit"]) if fields.get("unfit") else None,
        )
    except KeyError as fault:
        raise ValueError(f"{fault.args[0]} is missing") from fault
    reason = _text_or_none(fields, "reason")
    if len(reason or "") > _LONGEST_REASON:
        raise ValueError(f"reason is longer than {_LONGEST_REASON} characters")
    told = _text_or_none(fields, "queue")
    return Kept(letter=letter, queue=_source_queue(letter, told), kept_by=told, reason=reason)


def _source_queue(letter: Letter, told: str | None) -> str | None:
    """The queue's name as SQS gives it; for a target, the name in the file, which includes its kind."""
    if letter.source_arn is None or (told is not None and ":" in told):
        return told
    return queue_name(letter.source_arn)


def attributes_to_json(attributes: Mapping[str, Attribute]) -> dict[str, dict[str, str]]:
    """Message attributes with their exact DataType; binary values in base64."""
    return {name: _attribute_to_json(value) for name, value in attributes.items()}


def attributes_from_json(plain: Any) -> dict[str, Attribute]:
    """The inverse of `attributes_to_json`. Raises ValueError naming the attribute that is wrong."""
    if not isinstance(plain, dict):
        raise ValueError("attributes are an object of objects")  # noqa: TRY004 - one kind of fault for all
    return {
        _encodable(name, "the name of an attribute"): _attribute_from_json(name, value)
        for name, value in plain.items()
    }


def _attribute_to_json(attribute: Attribute) -> dict[str, str]:
    plain = {"DataType": str(attribute["DataType"])}
    if "BinaryValue" in attribute:
        plain["BinaryBase64"] = base64.b64encode(attribute["BinaryValue"]).decode()
    else:
        plain["StringValue"] = str(attribute.get("StringValue", ""))
    return plain


def _attribute_from_json(name: str, value: Any) -> Attribute:
    if not isinstance(value, dict) or not isinstance(value.get("DataType"), str):
        raise ValueError(f"attribute {name} has no DataType")  # noqa: TRY004 - one kind of fault for all
    data_type = _encodable(value["DataType"], f"DataType of attribute {name}")
    if isinstance(encoded := value.get("BinaryBase64"), str):
        try:
            binary = base64.b64decode(encoded, validate=True)
        except ValueError as fault:
            raise ValueError(f"attribute {name}: BinaryBase64 is not base64") from fault
        return {"DataType": data_type, "BinaryValue": binary}
    if isinstance(text := value.get("StringValue"), str):
        return {"DataType": data_type, "StringValue": _encodable(text, f"attribute {name}")}
    raise ValueError(f"attribute {name} has neither StringValue nor BinaryBase64")


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as fault:
        raise ValueError(f"{text!r} is not a point in time") from fault


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name, least=0)


def _text(fields: Mapping[str, Any], name: str, *, least: int = 1) -> str:
    value = fields[name]
    if not isinstance(value, str) or len(value) < least:
        raise ValueError(f"{name} is not text")
    return _encodable(value, name)


def _encodable(text: str, what: str) -> str:
    """Return the text if it can be sent to AWS. JSON can encode half a character, which alone is not text."""
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise ValueError(f"{what} has half a character in it, {text[fault.start]!r}") from fault
    return text


class KeptFile:
    """A file of letters for the queue of a session. Letters of the queues in `others` become letters of this queue."""

    def __init__(self, session: Session, path: Path, others: Collection[str] = ()) -> None:
        self.path = path
        self._session = session
        self._others = frozenset(others)
        self._own_arns = {source.name: source.facts().arn for source in session.sources}

    def check(self) -> int:
        """Read the whole file and return its number of letters.

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
        """Yield the file's letters; those of other queues become this queue's. Raises Refused."""
        for kept in read_lines(self.path):
            yield self._adopted(kept) if self._is_strange(kept) else kept

    def is_another(self, kept: Kept) -> bool:
        """Whether another queue's command wrote it. This queue's may have written letters that it does not serve."""
        if kept.queue in self._own_arns and self._is_strange(kept):
            return True  # of a queue of the same name in another account or Region
        return kept.kept_by not in (None, self._session.place.queue, *self._own_arns)

    def _is_strange(self, kept: Kept) -> bool:
        """Whether it belongs to a queue with another name, or with the same name in another account or Region."""
        if kept.letter.source_arn is not None:
            return kept.letter.source_arn not in self._own_arns.values()
        return kept.queue is not None and kept.queue not in self._own_arns

    def _adopted(self, kept: Kept) -> Kept:
        source, metadata = self._session.source, kept.letter.metadata
        letter = replace(
            kept.letter,
            source_arn=self._own_arns[source],
            metadata=replace(metadata, queue=source) if metadata else None,
        )
        if self._session.letter_store.keeps_rows:
            return replace(kept, letter=letter, queue=source)
        # Queues of a stack share a ledger. Under its own id, the letter in the other DLQ would count as sent on.
        whose = kept.letter.source_arn or kept.queue
        own_id = str(uuid5(_COPIES, f"{whose} {letter.original_id}"))
        copy = replace(
            letter,
            message_id=own_id,
            metadata=replace(letter.metadata, original_id=own_id) if letter.metadata else None,
        )
        return replace(kept, letter=letter, queue=source, copy=copy)

    def _refusal(self, strangers: Counter[str]) -> str:
        told = listed([f"{letters(count)} of {whose}" for whose, count in strangers.most_common()])
        names = " ".join(
            f"--from-queue {name}" for name in sorted({one.split(" ")[0] for one in strangers})
        )
        own = listed(self._session.place.sources)
        return (
            f"{self.path} has {told}, and this is {own}. Nothing was changed. To accept them as its letters, use "
            f"`redrive import` with {names}."
        )


def read_lines(path: Path) -> Iterator[Kept]:
    """The letters of a file, one at a time. Raises Refused naming the line that is wrong."""
    if path.exists() and not path.is_file():  # a pipe (`<(zcat ...)`) can be read only once
        raise Refused(f"{path} is not a regular file. Name one.")
    try:
        # Some editors begin a file with a mark of its encoding.
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    # Not JSON's own fault: a number of more digits than Python reads.
                    read = json.loads(line)
                except (ValueError, RecursionError) as fault:
                    raise Refused(
                        f"{path} {_NO_LETTERS}: line {number} is not JSON. {_UNCHANGED}"
                    ) from fault
                try:
                    yield letter_from_json(read)
                except ValueError as fault:
                    raise Refused(f"{path}, line {number}: {fault}. {_UNCHANGED}") from fault
    except OSError as fault:
        raise Refused(f"{path} can't be read: {fault.strerror}.") from fault
    except UnicodeDecodeError as fault:
        raise Refused(f"{path} {_NO_LETTERS}: it is not text.") from fault


def _whose(kept: Kept) -> str:
    arn = kept.letter.source_arn
    return f"{kept.queue} ({arn})" if arn else str(kept.queue)


class ExportFile:
    """Writes letters to `path` as JSON lines, readable by its owner only: bodies hold customers' data.

    With `is_continued`, an existing file of this queue's letters is appended to, so that an interrupted command goes on
    in the same file. No other existing file is ever written to.
    """

    def __init__(self, session: Session, path: Path, *, is_continued: bool = True) -> None:
        self._session = session
        self._path = path
        self._is_continued = is_continued
        self._lock = Lock()
        self._written = 0
        self._is_new = False
        self._file: IO[bytes] | None = None

    def __enter__(self) -> ExportFile:
        """Open the file. Raises Refused if that is not possible, and CallFailed."""
        try:
            self._file = self._open()
            self._claim(self._file.fileno())
            self._check_what_is_there()
            os.fchmod(self._file.fileno(), 0o600)
        except OSError as fault:
            self._close()
            raise Refused(
                f"{self._path} can't be written: {fault.strerror}. Name another file."
            ) from fault
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file. Remove it if it was created here and nothing was written to it."""
        if self._is_new and not self._written:
            with suppress(OSError):
                self._path.unlink()
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> IO[bytes]:
        """Open it without a buffer, so that nothing is left to be written after a fault."""
        try:
            opened = self._path.open("xb", buffering=0)
        except FileExistsError:
            if not self._path.is_file():  # opening a pipe would wait for its reader
                raise Refused(f"{self._path} is not a regular file. Name another.") from None
            return self._path.open("ab", buffering=0)
        self._is_new = True
        return opened

    def _claim(self, descriptor: int) -> None:
        """Lock out other commands until the file is closed. Raises Refused if one of them has it.

        The command that created a file and wrote nothing removes it; what another had written would be lost with it.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_removed = os.fstat(descriptor).st_nlink == 0
        except BlockingIOError:
            is_removed = True
        if is_removed:
            self._is_new = False
            raise Refused(f"{self._path} is being written by another command. Name another file.")

    def _check_what_is_there(self) -> None:
        """Raise Refused unless the file is empty, or is continued and holds this queue's letters. Raises CallFailed."""
        if self._path.stat().st_size == 0:
            return
        if not self._is_continued:
            raise Refused(f"{self._path} already exists. Name another file, or remove it.")
        kept_file = KeptFile(self._session, self._path)
        try:
            other = next((one for one in read_lines(self._path) if kept_file.is_another(one)), None)
        except Refused as fault:
            raise Refused(
                f"{self._path} exists and is not a file of letters. Name another."
            ) from fault
        if other is not None:
            raise Refused(
                f"{self._path} has letters of another queue, {_whose(other)}. Name another file."
            )
        with self._path.open("rb") as there:
            there.seek(-1, os.SEEK_END)
            # An editor may have left it off. The next letter would be on the same line.
            if there.read() != b"\n":
                self._append(b"\n")

    def write(self, cases: Iterable[Case]) -> int:
        """Write letters, wait until they are on the disk, and return how many. Raises Refused."""
        lines = [
            json.dumps(letter_to_json(case, self._session.name_of(case)), ensure_ascii=False)
            for case in cases
        ]
        with self._lock:
            self._append("".join(f"{line}\n" for line in lines).encode())
            self._written += len(lines)
        return len(lines)

    def _append(self, text: bytes) -> None:
        """Write all of it, or nothing: half a line would spoil the file for the letters before it."""
        assert self._file is not None, "written to before it was opened"  # noqa: S101 - a mistake of ours
        before = os.fstat(self._file.fileno()).st_size
        try:
            left = memoryview(text)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as fault:
            with suppress(OSError):
                self._file.truncate(before)
            raise Refused(f"{self._path} could not be written: {fault.strerror}.") from fault

    def told(self) -> list[str]:
        """Say where the letters are kept now; nothing if none was written."""
        return [f"kept in {self._path}"] if self._written else []


def to_be_kept(
    session: Session, cases: Sequence[Case], *, dlq: bool
) -> tuple[list[Case], list[EntryFault]]:
    """Letters with everything needed to bring them back, and faults of those that can't be read.

    Letters that have gone meanwhile are left out. Raises CallFailed and Refused.
    """
    letters, unread = session.letter_store.keep([case.letter for case in cases], dlq=dlq)
    kept = {one.message_id: one for one in letters}
    return [
        replace(case, letter=kept[case.message_id]) for case in cases if case.message_id in kept
    ], unread
