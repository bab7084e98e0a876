"""The audit trail: who changed what, when and why. It is in the state table, beside what they changed.

One item holds one day of one queue, `AUDIT#<queue>#<date>`, and a command appends to it. The table has no sort key, so
an item for each command could only be found by a scan of the whole ledger. By day, a month is one BatchGetItem, and
an append costs no more than the few kilobytes of its day. A full day continues in another item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.headline import short_name
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.words import ago, cut

if TYPE_CHECKING:
    from smart_redriver.oncall.deployment.session import Session

#: A line has about 300 bytes and at most a few KB. An item can have 400 KB.
LINES_PER_ITEM = 100
#: Days that one BatchGetItem reads.
DAYS_PER_READ = 100
KEPT = timedelta(days=400)
_LONGEST_TEXT = 1000
#: A change may name hundreds of letters. The rest of its line is for the outcome, and for the file of kept letters.
_LONGEST_CHANGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The beginning or the end of a change. Both carry the change's id; lines of older versions have none."""

    at: datetime
    who: str
    what: str
    why: str = ""
    change_id: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the change as `redrive history --json` prints it."""
        return {
            "at": f"{self.at:%Y-%m-%dT%H:%M:%SZ}",
            "who": self.who,
            "what": self.what,
            "why": self.why,
        }


def trail_of(session: Session) -> AuditTrail:
    """The trail of the session's queue."""
    deployment = session.place.deployment
    queue = deployment.called(deployment.queue_name)
    return AuditTrail(session.aws.dynamodb, deployment.table_name, queue)


class AuditTrail:
    """The trail of one queue."""

    def __init__(self, dynamodb: Any, table: str, queue: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._queue = queue

    def write(self, line: Line) -> None:
        """Append a line. Raises CallFailed."""
        sequel = 0
        while not self._append(line, sequel):
            sequel += 1

    def read(self, today: date, days: int) -> list[Line]:
        """The lines of the last `days` days, oldest first. Raises CallFailed."""
        dates = [today - timedelta(days=back) for back in range(days)]
        found: list[Line] = []
        for start in range(0, days, DAYS_PER_READ):
            wanted = [(one, 0) for one in dates[start : start + DAYS_PER_READ]]
            while wanted:
                full = []
                for day, sequel, lines in self._items(wanted):
                    found += lines
                    if len(lines) >= LINES_PER_ITEM:
                        full.append((day, sequel + 1))
                wanted = full
        return sorted(found, key=lambda line: line.at)

    def read_since(self, start: datetime, now: datetime) -> list[Line]:
        """The lines of the day of `start` and of all days since, oldest first. Raises CallFailed."""
        return self.read(now.date(), 1 + (now.date() - start.date()).days)

    def _append(self, line: Line, sequel: int) -> bool:
        """Append to the day's item of this number; False when it is full."""
        texts = {"Who": line.who, "What": line.what, "Why": line.why, "Change": line.change_id}
        entry = {name: {"S": text[:_LONGEST_TEXT]} for name, text in texts.items()}
        entry["At"] = {"S": line.at.isoformat()}
        try:
            with naming("UpdateItem"):
                self._dynamodb.update_item(
                    TableName=self._table,
                    Key=self._key(line.at.date(), sequel),
                    UpdateExpression="SET #lines = list_append(if_not_exists(#lines, :none), :line), "
                    "#ttl = :ttl",
                    ConditionExpression="attribute_not_exists(#lines) OR size(#lines) < :full",
                    ExpressionAttributeNames={"#lines": "Lines", "#ttl": "TTL"},
                    ExpressionAttributeValues={
                        ":none": {"L": []},
                        ":line": {"L": [{"M": entry}]},
                        ":full": {"N": str(LINES_PER_ITEM)},
                        ":ttl": {"N": str(int((line.at + KEPT).timestamp()))},
                    },
                )
        except CallFailed as failed:
            if failed.code == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def _items(self, wanted: list[tuple[date, int]]) -> Iterator[tuple[date, int, list[Line]]]:
        by_key = {self._key(day, sequel)["PK"]["S"]: (day, sequel) for day, sequel in wanted}
        keys = [{"PK": {"S": key}} for key in by_key]
        while keys:
            with naming("BatchGetItem"):
                answer = self._dynamodb.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
                )
            for item in answer["Responses"].get(self._table, ()):
                yield *by_key[item["PK"]["S"]], [_line(one["M"]) for one in item["Lines"]["L"]]
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])

    def _key(self, day: date, sequel: int) -> dict[str, dict[str, str]]:
        return {
            "PK": {"S": f"AUDIT#{self._queue}#{day.isoformat()}" + (f"#{sequel}" if sequel else "")}
        }


def _line(entry: dict[str, dict[str, str]]) -> Line:
    return Line(
        at=datetime.fromisoformat(entry["At"]["S"]),
        who=entry["Who"]["S"],
        what=entry["What"]["S"],
        why=entry["Why"]["S"],
        change_id=entry.get("Change", {}).get("S", ""),
    )


#: The end of the line for the beginning of a change, see `recorded`.
BEGUN = ": begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change by a person. `outcome` is None while it is under way, and for ever if its command died."""

    at: datetime
    who: str
    what: str
    why: str = ""
    outcome: str | None = None
    change_id: str = ""

    def in_words(self) -> str:
        """What was changed, how it ended, and why."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.what}: {self.outcome or 'begun, no end recorded'}{why}"

    def told(self, now: datetime) -> str:
        """When, who, and what."""
        return f"{ago(self.at, now)}, {short_name(self.who)}: {self.in_words()}"


def changes_of(lines: Iterable[Line]) -> list[Change]:
    """The changes in these lines, in the order in which they began."""
    found: list[Change] = []
    for line in lines:
        if line.what.endswith(BEGUN):
            what = line.what.removesuffix(BEGUN)
            begun = Change(
                at=line.at, who=line.who, what=what, why=line.why, change_id=line.change_id
            )
            found.append(begun)
        elif (place := _begin_of(line, found)) is not None:
            outcome = line.what.removeprefix(f"{found[place].what}: ")
            found[place] = replace(found[place], outcome=outcome)
        else:
            what, _, outcome = line.what.rpartition(": ")
            found.append(Change(at=line.at, who=line.who, what=what, why=line.why, outcome=outcome))
    return found


def _begin_of(line: Line, found: list[Change]) -> int | None:
    """The position of the first change that this line can end. An id belongs to one change."""
    for place, one in enumerate(found):
        is_same = (one.change_id, one.who, one.why) == (line.change_id, line.who, line.why)
        if one.outcome is None and is_same and line.what.startswith(f"{one.what}: "):
            return place
    return None


def record(session: Session, what: str, why: str, change_id: str) -> None:
    """Write one line of the audit trail. Raises CallFailed, so that no unrecorded change begins."""
    line = Line(at=session.clock(), who=session.who, what=what, why=why, change_id=change_id)
    trail_of(session).write(line)


@contextmanager
def recorded(session: Session, what: str, why: str) -> Iterator[list[str]]:
    """Record the beginning of a change, and its end by the texts put into the list. A crash leaves the beginning."""
    change_id = uuid4().hex
    what = cut(what, _LONGEST_CHANGE)
    record(session, f"{what}{BEGUN}", why, change_id)
    session.terminal.has_begun = True
    ended: list[str] = []
    try:
        yield ended
    except BaseException as fault:
        if isinstance(fault, Exception):
            how = f"ended by {type(fault).__name__}: {fault}"
            _record_end(session, f"{what}: {how}", why, change_id)
        raise
    _record_end(session, f"{what}: {'; '.join(ended) or 'done'}", why, change_id)


def _record_end(session: Session, what: str, why: str, change_id: str) -> None:
    try:
        record(session, what, why, change_id)
    except CallFailed as failed:
        session.terminal.warn(
            f"How it ended could not be written to the audit trail: {failed.code}."
        )
