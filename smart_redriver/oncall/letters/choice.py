"""The letters that a command selects: by id, by what they contain, by time, by cause, and by `--where`.

A letter's cause is what its consumer reported, else an error attribute, else the shape of its body. `--where` is a
JMESPath expression over a body. In JMESPath, 'DE' is text and "DE" is the name of a field. `country == "DE"` compares
two fields, and matches letters that have neither because null equals null. Such an expression is therefore refused.
https://jmespath.org/specification.html#identifiers
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.reports.outcomes import error_of
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import parse_moment

_FIELDS = ("field", "subexpression", "index_expression")
#: JMESPath functions that take the text to look for as their second argument.
_TEXT_SEARCHES = ("contains", "starts_with", "ends_with")

#: Raised for a body that is not JSON or is nested deeper than Python reads, and where an expression does not fit what
#: it found: JMESPath reports it, or compares text with a number, or rounds 1e999.
_UNFIT = (ValueError, RecursionError, TypeError, ArithmeticError)

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """A compiled expression, and what a person has to know about it before they say yes."""

    search: Callable[[Any], Any]
    warning: str = ""

    def lets_through(self, body: str) -> bool:
        """Whether the expression is true for a body. A body that is not JSON does not match."""
        try:
            return bool(self.search(json.loads(body)))
        except _UNFIT:
            return False


def read_where(expression: str) -> Where:
    """Compile an expression. Raises Misused for an invalid one, or for a quoted field name where text was meant."""
    import jmespath

    try:
        compiled = jmespath.compile(expression)
        quoted = _quoted_names(expression)
    # ValueError: JMESPath's own errors, and Python's about a number of thousands of digits.
    except (ValueError, RecursionError) as fault:
        reason = str(fault).splitlines()[0].rstrip(".:")
        raise Misused(
            f"--where {expression!r} is not a JMESPath expression: {reason}. Try for example "
            "--where \"customer.country == 'DE'\"."
        ) from fault
    for name in _selected_texts(compiled.parsed, quoted):
        raise Misused(
            f'--where {expression!r}: in JMESPath "{name}" names a field, so this would compare two fields '
            f"and match letters that have neither. For text write '{name}', for a number `{name}`; "
            f'for the field write @."{name}".'
        )
    compared = list(_fields_compared(compiled.parsed))
    warning = (
        "two fields of the body are compared; letters that have neither match" if compared else ""
    )
    return Where(search=compiled.search, warning=warning)


def _quoted_names(expression: str) -> Set[str]:
    from jmespath.lexer import Lexer

    return {
        token["value"]
        for token in Lexer().tokenize(expression)
        if token["type"] == "quoted_identifier"
    }


def _selected_texts(node: Node, quoted: Set[str]) -> Iterator[str]:
    """Find quoted names where people mean text: compared with another field, or as the text to look for."""
    for one in _nodes(node):
        children = one["children"]
        if one["type"] == "comparator":
            literal = any(child["type"] == "literal" for child in children)
            suspects = [] if literal else children
        elif one["type"] == "function_expression" and one["value"] in _TEXT_SEARCHES:
            suspects = children[1:]
        else:
            continue
        for child in suspects:
            if child["type"] == "field" and child["value"] in quoted:
                yield child["value"]


def _fields_compared(node: Node) -> Iterator[Node]:
    for one in _nodes(node):
        if one["type"] == "comparator" and all(
            child["type"] in _FIELDS for child in one["children"]
        ):
            yield one


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, Mapping):
        yield node
        for child in node.get("children", ()):
            yield from _nodes(child)


_KEYS_SHOWN = 6
_TYPES = {
    dict: "object",
    list: "array",
    str: "text",
    bool: "yes/no",
    int: "number",
    float: "number",
}


def cause_in_hand(case: Case) -> str:
    """Return the cause of a letter in hand: from the report, else the message, else the shape of its body."""
    return (reported_cause(case.entry) if case.entry else "") or cause_of(case.letter)


def reported_cause(entry: Entry) -> str:
    """Return the cause of a letter that the ledger has; empty if it has none."""
    known = entry.cause or (entry.error if entry.status is Status.PARKED else None)
    return printable(known) if known else ""


def cause_of(letter: Letter) -> str:
    """The error, or the outline of the body, that letters of one kind share, on one line."""
    error = error_of(letter.attributes)
    return printable(error) if error else shape_of(letter.body)


def shape_of(body: str) -> str:
    """The outline of a body: the keys of a JSON object, else what it is."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "text, no JSON"
    if not isinstance(value, dict):
        return f"JSON {_TYPES.get(type(value), 'null')}"
    keys = sorted(value)
    more = ", ..." if len(keys) > _KEYS_SHOWN else ""
    return printable(f"JSON {{{', '.join(keys[:_KEYS_SHOWN])}{more}}}")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The conditions on letters. Filters that are not set let everything through.

    Attributes:
        contains: text that the body contains.
        where: a JMESPath expression that is true for the body, read as JSON.
        since, until: first seen (in the DLQ) or parked (in the parking lot) at or after `since`, and before `until`.
        reason: why the letter was parked. error: text within what the consumer said.
        cause: text within the class of the error that the consumer reported, or else within the cause that
            `redrive letters` groups by. For a parked letter, what the ledger knows comes first.

    """

    contains: str | None = None
    where: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None
    error: str | None = None
    cause: str | None = None

    @property
    def is_empty(self) -> bool:
        wanted = (self.since, self.until, self.reason, self.error, self.cause)
        return not (self.needs_body or any(wanted))

    @property
    def needs_body(self) -> bool:
        """Whether the ledger alone can't decide about any letter."""
        return self.contains is not None or self.where is not None

    def needs_body_of(self, entry: Entry) -> bool:
        """Whether the ledger alone can't decide about this parked letter.

        If nothing was reported, the cause comes from the body.
        """
        return self.needs_body or (self.cause is not None and not reported_cause(entry))

    def lets_entry_through(self, entry: Entry) -> bool:
        """Whether a parked letter matches, as far as the ledger can tell."""
        return (
            (not reported_cause(entry) or self._lets_cause_through(reported_cause(entry)))
            and self._lets_moment_through(entry.parked_at or entry.first_seen)
            and (self.reason is None or entry.park_reason == self.reason.upper())
            and (self.error is None or self.error.lower() in (entry.error or "").lower())
        )

    def lets_through(self, case: Case) -> bool:
        """Whether a letter in hand matches."""
        if case.entry is not None and case.entry.status is Status.PARKED:
            is_let = self.lets_entry_through(case.entry)
        else:
            is_let = self._lets_dead_letter_through(case)
        return (
            is_let
            and self._lets_cause_through(cause_in_hand(case))
            and self._lets_body_through(case.letter)
        )

    def _lets_dead_letter_through(self, case: Case) -> bool:
        """Whether a letter that is not known to be parked matches: what its consumer said is on the letter itself."""
        first_seen = case.entry.first_seen if case.entry else case.letter.sent_at
        error = error_of(case.letter.attributes) or ""
        return (
            self.reason is None
            and self._lets_moment_through(first_seen)
            and (self.error is None or self.error.lower() in error.lower())
        )

    def _lets_moment_through(self, moment: datetime) -> bool:
        return (self.since is None or moment >= self.since) and (
            self.until is None or moment < self.until
        )

    def _lets_cause_through(self, cause: str) -> bool:
        return self.cause is None or self.cause.lower() in cause.lower()

    def _lets_body_through(self, letter: Letter) -> bool:
        if self.contains is not None and self.contains not in letter.body:
            return False
        return self.compiled is None or self.compiled.lets_through(letter.body)

    @cached_property
    def compiled(self) -> Where | None:
        """The expression of `where`. Raises Misused."""
        return None if self.where is None else read_where(self.where)

    def in_words(self) -> str:
        """The filter in words."""
        parts = [
            f"containing {self.contains!r}" if self.contains else "",
            f"where {self.where}" if self.where else "",
            f"since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else "",
            f"until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else "",
            f"parked as {self.reason.upper()}" if self.reason else "",
            f"with error {self.error!r}" if self.error else "",
            f"of cause {self.cause!r}" if self.cause else "",
        ]
        return ", ".join(part for part in parts if part)


#: Arguments that `read_filter` takes.
_FILTERS = ("contains", "where", "since", "until", "parked_as", "error", "cause")


def read_filter(
    now: datetime,
    *,
    contains: str | None = None,
    where: str | None = None,
    since: str | None = None,
    until: str | None = None,
    parked_as: str | None = None,
    error: str | None = None,
    cause: str | None = None,
) -> Filter:
    """The filter that a command's options describe. Raises Misused."""
    # An unset shell variable leaves it empty: every letter would match, or the filter would count as none.
    texts = {"--contains": contains, "--since": since, "--until": until, "--error": error}
    for option, text in (texts | {"--parked-as": parked_as, "--cause": cause}).items():
        if text is not None and not text.strip():
            raise Misused(f"{option} {text!r} is empty: leave it out, or give a text.")
    read = Filter(
        contains=contains,
        where=where,
        since=parse_moment(since, now) if since else None,
        until=parse_moment(until, now) if until else None,
        reason=parked_as,
        error=error,
        cause=cause,
    )
    if read.since and read.until and read.since >= read.until:
        raise Misused("--until is before --since: no letter can match.")
    _ = read.compiled
    return read


def ids_of(case: Case) -> frozenset[str]:
    """All ids that people may name a letter by."""
    return frozenset((case.original_id, *case.letter.known_as))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Letters by id, or all that a filter lets through."""

    ids: frozenset[str] = frozenset()
    filter: Filter = field(default_factory=Filter)

    @property
    def is_all(self) -> bool:
        """Whether every letter is meant."""
        return not self.ids and self.filter.is_empty

    def is_met_by(self, count: int) -> bool:
        """Whether so many letters are all those that were named."""
        return bool(self.ids) and count == len(self.ids)

    def takes(self, case: Case) -> bool:
        """Whether a letter in hand is meant, by its current or original id."""
        if self.ids and not self.ids & ids_of(case):
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


def filter_of(given: Mapping[str, Any], now: datetime) -> Filter:
    """The filter among what was given to a verb. Raises Misused."""
    return read_filter(now, **{name: given[name] for name in _FILTERS if name in given})


def choice_of(given: Mapping[str, Any], now: datetime) -> Choice:
    """The letters that what was given to a changing verb means. Raises Misused."""
    return choose(given.get("ids", ()), filter_of(given, now), is_all=given.get("all", False))


def choose(ids: Sequence[str], given: Filter, *, is_all: bool) -> Choice:
    """The letters that a changing command is about; no choice never means all letters. Raises Misused."""
    if not ids and given.is_empty and not is_all:
        raise Misused("Say which letters: their ids, a filter such as --contains, or --all.")
    if ids and is_all:
        raise Misused("Give ids or --all, not both.")
    return Choice(ids=frozenset(ids), filter=given)


def choose_one(ids: Sequence[str], given: Filter, *, is_all: bool) -> str:
    """The id of the one letter that is meant. Raises Misused for none, or for more than a person can edit by hand."""
    if len(ids) != 1 or is_all or not given.is_empty:
        raise Misused(
            "The editor takes one letter, named by its id. For several, a filter or --dry-run, add --with CMD."
        )
    return ids[0]
