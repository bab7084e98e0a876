"""The audit trail: who changed what, when and why, in the state table beside what they changed.

One item holds one day of one queue, `AUDIT#<queue>#<date>`, and a command appends to it. The table has no sort
key, so that an item for each command could only be found by a scan of the whole ledger. By day, a month is one
BatchGetItem, and an append costs no more than the few kilobytes of its day. A full day goes on in a further item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from redrive.aws.calls import naming
from redrive.errors import CallFailed

#: A line has about 300 bytes and at most a few KB, an item can have 400 KB.
LINES_PER_ITEM = 100
#: What one BatchGetItem reads, in days.
DAYS_PER_READ = 100
KEPT = timedelta(days=400)
_LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One change, or its begin or end."""

    at: datetime
    who: str
    what: str
    why: str = ""

    def to_json(self) -> dict[str, str]:
        """As `redrive history --json` prints it."""
        return {
            "at": f"{self.at:%Y-%m-%dT%H:%M:%SZ}",
            "who": self.who,
            "what": self.what,
            "why": self.why,
        }


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
        texts = {"Who": line.who, "What": line.what, "Why": line.why}
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
    )
