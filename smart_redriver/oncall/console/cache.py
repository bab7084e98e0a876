"""The page's memory while people look: one person's sessions, the ledger's stuck letters, and a terminal that collects
a verb's result.

The ledger is read once for all requests within a few seconds. Otherwise each part of a page that updates itself would
scan the whole ledger every time.
"""

from __future__ import annotations

import io
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import Any

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.places import Place, choose_places
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.ledger_scan import stuck_entries
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal

#: How long an answer is shown: this time or, if longer, this multiple of the time that it took to read.
_SECONDS = 5.0
_TIMES_ITS_READING = 10
#: How long the next pages of a search come from the same look.
_SEARCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Read:
    """Entries without their history, the newest first, and the time when they were read."""

    at: datetime
    entries: tuple[Entry, ...]

    def parked(self) -> list[Entry]:
        """Return entries of letters in the parking lot."""
        return [one for one in self.entries if one.status is Status.PARKED]

    def dead(self) -> list[Entry]:
        """Return entries of letters in the DLQ, or on their way there."""
        return [one for one in self.entries if one.status is not Status.PARKED]


@dataclass(slots=True)
class _Kept:
    read: Read
    fresh_until: float


class LedgerCache:
    """Entries from each queue's ledger, and results of searches in bodies."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._searches: dict[tuple[str, object], tuple[float, list[Entry]]] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        #: How often it had to forget: a read that was under way then may be out of date.
        self._changes = 0

    def of(self, session: Session) -> Read:
        """The stuck letters of a queue, as they were a moment ago. Raises CallFailed."""
        queue = session.place.queue
        with self._locks[queue]:  # others wait, and then use this read
            kept = self._kept.get(queue)
            if kept is None or time.monotonic() >= kept.fresh_until:
                began, changes = time.monotonic(), self._changes
                read = _read(session)
                took = time.monotonic() - began
                lasts = max(_SECONDS, took * _TIMES_ITS_READING)
                if changes != self._changes:
                    return read
                kept = self._kept[queue] = _Kept(read, time.monotonic() + lasts)
            return kept.read

    def search(self, queue: str, wanted: object, find: Callable[[], list[Entry]]) -> list[Entry]:
        """Search, or return the result of a moment ago, because looking at letters costs receives."""
        with self._locks[f"search {queue}"]:
            until, found = self._searches.get((queue, wanted), (0.0, []))
            if time.monotonic() >= until:
                changes = self._changes
                found = find()
                if changes == self._changes:
                    self._searches = {
                        (queue, wanted): (time.monotonic() + _SEARCH_SECONDS, found)
                    }  # only the last result: it may be large
            return found

    def forget(self, queue: str) -> None:
        """Read again next time, because something was changed."""
        self._changes += 1
        self._kept.pop(queue, None)
        self._searches.clear()


def _read(session: Session) -> Read:
    now = session.clock()
    entries = [replace(one, history=()) for one in stuck_entries(session)]
    entries.sort(key=place_in_line, reverse=True)
    return Read(now, tuple(entries))


def moment_of(entry: Entry) -> datetime:
    """Return the time when the letter came to its place, as far as the ledger knows."""
    return entry.parked_at or entry.first_seen


def place_in_line(entry: Entry) -> tuple[datetime, str]:
    """The sort key of letters. A list can continue after a place, even if letters came or went meanwhile."""
    return moment_of(entry), entry.original_id


@dataclass(kw_only=True)
class Notepad(Terminal):
    """The lines that a verb prints while it looks."""

    out: Any = field(default_factory=io.StringIO)
    err: Any = field(default_factory=io.StringIO)
    value: Any = None
    said: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        """Keep text for people."""
        self.said.append(self.spare(text))

    def plan(self, text: str) -> None:
        """Keep the text: a look has no plan, but may state its cost."""
        self.say(text)

    def warn(self, text: str) -> None:
        """Keep what went wrong or was skipped."""
        self.warnings.append(self.spare(text))

    def result(self, value: Any) -> None:
        """Keep the result."""
        self.value = value

    def confirm(self, question: str, *, expected: str = "yes", other: str | None = None) -> bool:
        """Refuse, because a look asks nothing."""
        del expected, other
        raise Refused(f"{question} Nobody is asked here. Nothing was changed.")


#: Outputs of a stack change only with a deployment.
_KNOWN_FOR_SECONDS = 30.0
#: Error codes of AWS or botocore for credentials that another login would fix.
LOGIN_HELPS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
        "ProfileNotFound",
    }
)


class Sessions:
    """Opens a session for each request, modelled on the command's own."""

    def __init__(self, first: Session) -> None:
        self._first = first
        self._aws = first.aws
        self._places: tuple[Place, ...] = ()
        self._known_until = 0.0
        self._lock = Lock()

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return self._first.stack

    def all(self, terminal: Terminal) -> list[Session]:
        """A session for each queue. Raises CallFailed and Refused."""
        return [self._session(place, terminal) for place in self._all_places()]

    def of(self, queue: str, terminal: Terminal) -> Session:
        """The session for one queue. Raises CallFailed, and Refused for a queue that the stack does not have.

        The page names source queues, and the list of queues may have another queue under such a name.
        """
        known = self._all_places()
        places = [one for one in known if queue in one.sources] or choose_places(known, queue)
        return replace(self._session(places[0], terminal), queue=queue)

    def forget(self, fault: Exception) -> None:
        """After a failure, look again for what may have changed: the stack, or the person's login."""
        with self._lock:
            self._known_until = 0.0
            if isinstance(fault, CallFailed) and fault.code in LOGIN_HELPS:
                self._aws = self._aws.logged_in_anew()

    def _session(self, place: Place, terminal: Terminal) -> Session:
        return replace(
            self._first, aws=self._aws.counting_anew(), terminal=terminal, known_place=place
        )

    def _all_places(self) -> tuple[Place, ...]:
        with self._lock:
            if time.monotonic() >= self._known_until:
                found = replace(self._first, aws=self._aws.counting_anew()).each_queue()
                self._places = tuple(one.place for one in found)
                self._known_until = time.monotonic() + _KNOWN_FOR_SECONDS
            return self._places
