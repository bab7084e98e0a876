"""Which letters a command is about: by id, by what they contain, by when and why. Pure but for JMESPath."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from redrive.core.case import Case
from redrive.core.cause import error_of
from redrive.core.ledger import Entry
from redrive.core.letter import Letter
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.terminal.words import parse_since


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What letters have to be like. Filters that are not set let everything through.

    Attributes:
        contains: text that the body contains.
        where: a JMESPath expression that is true of the body, read as JSON.
        since: first seen (in the DLQ) or parked (in the parking lot) at this moment or later.
        reason: why the letter was parked. error: text within what the consumer said.
        cause: text within the class of the error that the consumer reported, or said on the message.

    """

    contains: str | None = None
    where: str | None = None
    since: datetime | None = None
    reason: str | None = None
    error: str | None = None
    cause: str | None = None

    @property
    def is_empty(self) -> bool:
        return not any((self.contains, self.where, self.since, self.reason, self.error, self.cause))

    @property
    def needs_body(self) -> bool:
        """Whether the ledger alone can't tell."""
        return self.contains is not None or self.where is not None

    def lets_entry_through(self, entry: Entry) -> bool:
        """Whether a parked letter passes, as far as the ledger can tell."""
        return self._lets_ledger_through(entry) and self._lets_cause_through(entry, None)

    def _lets_ledger_through(self, entry: Entry) -> bool:
        return (
            (self.since is None or (entry.parked_at or entry.first_seen) >= self.since)
            and (self.reason is None or entry.park_reason == self.reason.upper())
            and (self.error is None or self.error.lower() in (entry.error or "").lower())
        )

    def lets_through(self, case: Case) -> bool:
        """Whether a letter in hand passes."""
        if case.entry is not None and not self._lets_ledger_through(case.entry):
            return False
        if not self._lets_cause_through(case.entry, case.letter):
            return False
        if case.entry is None:
            if self.reason is not None or self.error is not None:
                return False
            if self.since is not None and case.letter.sent_at < self.since:
                return False
        return self._lets_body_through(case.letter)

    def _lets_cause_through(self, entry: Entry | None, letter: Letter | None) -> bool:
        if self.cause is None:
            return True
        told = (entry.cause or entry.error) if entry is not None else None
        said = error_of(letter.attributes) if letter is not None else None
        return self.cause.lower() in (told or said or "").lower()

    def _lets_body_through(self, letter: Letter) -> bool:
        if self.contains is not None and self.contains not in letter.body:
            return False
        if self._expression is None:
            return True
        try:
            return bool(self._expression.search(json.loads(letter.body)))
        except ValueError:  # no JSON, or the expression does not fit what it found
            return False

    @cached_property
    def _expression(self) -> Any:
        if self.where is None:
            return None
        import jmespath
        from jmespath.exceptions import JMESPathError

        try:
            return jmespath.compile(self.where)
        except JMESPathError as fault:
            reason = str(fault).splitlines()[0]
            raise Misused(
                f"--where {self.where!r} is no JMESPath expression: {reason}. Try for example "
                "--where \"customer.country == 'DE'\"."
            ) from fault

    def in_words(self) -> str:
        """The filter in words."""
        parts = [
            f"containing {self.contains!r}" if self.contains else "",
            f"where {self.where}" if self.where else "",
            f"since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else "",
            f"parked as {self.reason.upper()}" if self.reason else "",
            f"with error {self.error!r}" if self.error else "",
            f"of cause {self.cause!r}" if self.cause else "",
        ]
        return ", ".join(part for part in parts if part)


def read_filter(
    now: datetime,
    *,
    contains: str | None = None,
    where: str | None = None,
    since: str | None = None,
    parked_as: str | None = None,
    error: str | None = None,
    cause: str | None = None,
) -> Filter:
    """The filter that a command's options describe. Raises Misused."""
    moment = parse_since(since, now) if since else None
    read = Filter(
        contains=contains, where=where, since=moment, reason=parked_as, error=error, cause=cause
    )
    _ = read._expression
    return read


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Letters by id, or all that a filter lets through."""

    ids: frozenset[str] = frozenset()
    filter: Filter = field(default_factory=Filter)

    def takes(self, case: Case) -> bool:
        """Whether a letter in hand is meant, by its current or original id."""
        if self.ids and not self.ids & {case.message_id, case.original_id}:
            return False
        return self.filter.lets_through(case)

    def takes_entry(self, entry: Entry) -> bool:
        """Whether a parked letter may be meant, as far as the ledger can tell."""
        if self.ids and not self.ids & {entry.current_id, entry.original_id}:
            return False
        return self.filter.lets_entry_through(entry)

    def in_words(self) -> str:
        """The choice in words."""
        named = f"named {', '.join(sorted(self.ids))}" if self.ids else ""
        return ", ".join(part for part in (named, self.filter.in_words()) if part) or "all"


def choose(ids: Sequence[str], given: Filter, *, is_all: bool) -> Choice:
    """What a changing command is about; nothing at all is never taken for everything. Raises Misused."""
    if not ids and given.is_empty and not is_all:
        raise Misused("Say which letters: their ids, a filter such as --contains, or --all.")
    if ids and is_all:
        raise Misused("Give ids or --all, not both.")
    return Choice(ids=frozenset(ids), filter=given)
