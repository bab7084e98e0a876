"""The protocol as a log shows it: what a function may say about letters, one event after another.

    in the DLQ ──letter.redriven──► sent on ──(its copy returns, under another MessageId)
        │ ├──letter.parked, letter.renewed──► sent on
        │ └──letter.bounced, letter.held──► in the DLQ
        └──letter.discarded──► gone: sent on before, a copy that came back, or a letter that is done

A letter of a FIFO queue, or of a DLQ topic in Kafka, keeps its place, and may go again, or be parked, from there. A
copy of it that comes back after that is discarded as sent on, though the log never showed the copy go.

A log does not show the consumer's steps, so these may come at any time. A fault is an event that the log may not show,
whatever happened in the world: a message that goes although the log showed it go before is the repeat that the ledger
prevents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Fields = Mapping[str, Any]

_LEAVES = frozenset({"letter.redriven", "letter.parked", "letter.renewed"})
#: The counts in a report, with the events that each count covers.
_COUNTED = {
    "redriven": ("letter.redriven",),
    "bounced": ("letter.bounced",),
    "parked": ("letter.parked",),
}
#: Calls that may leave a send unrecorded when they fail.
_WRITES = frozenset({"BatchWriteItem"})
#: Reasons to delete a message that was never sent on.
_DISCARDED_UNSENT = frozenset({"SUCCEEDED", "RETURNED_COPY"})


class TraceCheck:
    """Reads the events of one function's log in their order. `faults` are those that the protocol does not allow.

    Args:
        is_disturbed: passes died, the table was lost, or a queue was restored from a backup. Repeats are allowed then.

    """

    def __init__(self, *, is_disturbed: bool = False) -> None:
        self.faults: list[str] = []
        self._is_disturbed = is_disturbed
        self._is_topic = False
        self._told: dict[str, Counter[str]] = defaultdict(Counter)
        self._pending: list[tuple[str, str, Fields]] = []
        self._went: dict[str, str] = {}
        self._letters_sent: set[str] = set()
        self._redrives: dict[str, int] = {}

    def feed(self, event: str, fields: Fields, *, by: str) -> None:
        """Read one event of a pass or invocation, whose id is `by`. Its letters are checked when a report comes."""
        if event == "call.failed" and fields.get("call") in _WRITES:
            self._is_disturbed = True
        if event == "process.started":
            self._is_topic = True
        if event.startswith("letter."):
            self._told[by][event] += 1
            self._pending.append((by, event, fields))
        elif event == "pass.finished":
            self._finished(fields, by)

    def died(self, by: str) -> None:
        """Note that a pass ended without a report. The log may lack its last acts, so repeats are allowed now."""
        self._is_disturbed = True
        self._told.pop(by, None)

    def _finished(self, report: Fields, by: str) -> None:
        self._adds_up(report, self._told.pop(by, Counter()))
        if report.get("mode") == "dry_run":
            self._pending = [one for one in self._pending if one[0] != by]
            return
        keeps = self._is_topic or str(report.get("queue", "")).endswith(".fifo")
        # Passes that are still at work have logged their events, too, in the order in which they happened.
        pending, self._pending = self._pending, []
        for _, event, fields in pending:
            self._letter(event, fields, keeps=keeps)

    def _adds_up(self, report: Fields, told: Counter[str]) -> None:
        for what, events in _COUNTED.items():
            reported = _total(report.get(what, 0))
            if reported != sum(told[event] for event in events):
                self.faults.append(
                    f"a report says {reported} {what}, and the log tells of {dict(told)}"
                )

    def _letter(self, event: str, fields: Fields, *, keeps: bool) -> None:
        message, letter = str(fields["message_id"]), str(fields["original_id"])
        before, reason = self._went.get(message), str(fields.get("reason", ""))
        stays = keeps and before == "letter.redriven"
        if event in _LEAVES and before is not None and not stays:
            self._fault(f"{event} of {message}, which went before ({before})")
        was_sent = before is not None or (keeps and letter in self._letters_sent)
        if event == "letter.discarded" and not was_sent and reason not in _DISCARDED_UNSENT:
            self._fault(f"{message} is discarded ({reason}), and the log never had it go")
        redrives = int(fields.get("redrive_count", 0))
        if redrives < self._redrives.get(letter, 0):
            self._fault(f"{event}: {letter} has {redrives} redrives, and had more before")
        self._redrives[letter] = redrives
        if event in _LEAVES:
            self._went[message] = event
            self._letters_sent.add(letter)

    def _fault(self, text: str) -> None:
        if not self._is_disturbed:
            self.faults.append(text)


def check(events: Iterable[tuple[str, Fields]], *, is_disturbed: bool = False) -> list[str]:
    """Return everything in a log that the protocol does not allow."""
    trace = TraceCheck(is_disturbed=is_disturbed)
    for event, fields in events:
        trace.feed(event, fields, by=str(fields.get("function_request_id", "")))
    return trace.faults


def _total(reported: object) -> int:
    return sum(reported.values()) if isinstance(reported, Mapping) else int(str(reported))
