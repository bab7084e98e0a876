"""Processes consumers' reports: outcomes for the ledger and for the batches that wait for a verdict.

    receive 10 ─► read ledger ─► hear ─► write ledger ─► receive 10 ─► ... ─► write circuit ─► delete all

A report that the circuit does not have is not deleted, and comes again. By the circuit's version, the ledger knows
whether a report was counted already. So a crash anywhere neither loses reports about a batch nor counts them twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.passes.executor import Effects
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import Reports
from smart_redriver.engine.reports.outcomes import OutcomeMessage, parse_outcomes
from smart_redriver.engine.reports.processing import (
    ProcessedReports,
    ReceivedOutcome,
    process_reports,
    with_kept_metadata,
)
from smart_redriver.engine.triage.ledger import Entry

#: The most that one look processes, reports and outcomes together, and for how long. Further reports wait for the next
#: look, so that a consumer that sends endless or empty reports keeps no letter from going.
MOST_AT_ONCE = 10_000
LONGEST = timedelta(seconds=30)


class Listener:
    """The reports of one pass. `peek` costs nothing if there are none; `listen` needs the lease."""

    def __init__(self, state: PassState) -> None:
        self._state = state
        self._in_hand: list[OutcomeMessage] = []
        self._taken: list[OutcomeMessage] = []
        #: Original ids of letters that this pass has reports on: its circuit counts them, written or not.
        self._heard: set[str] = set()

    @property
    def has_reports(self) -> bool:
        """Whether reports have been received."""
        return bool(self._in_hand)

    def peek(self) -> None:
        """Receive the first few reports."""
        if self._state.tools.reports is not None:
            self._in_hand = self._received(self._state.tools.reports)

    def listen(self) -> None:
        """Process reports until none are left, or enough. A failed call ends it: the reports come again."""
        reports, state = self._state.tools.reports, self._state
        heard: Counter[str] = Counter()
        read, until = 0, min(state.deadline, state.tools.clock() + LONGEST)
        while reports is not None and self._in_hand:
            try:
                heard += self._take_in(self._in_hand, state.tools.clock())
            except CallFailed as failed:
                state.failed(failed)
                state.has_unread_reports = True
                break
            read += len(self._in_hand)
            self._in_hand = []
            if heard.total() + read >= MOST_AT_ONCE or state.tools.clock() >= until:
                state.has_unread_reports = True
                break
            self._in_hand = self._received(reports)
        state.heard += heard
        if heard:
            state.tools.journal("outcomes.heard", **heard)

    def forget(self) -> bool:
        """Delete the processed reports, once the circuit is written. False if none could be deleted."""
        if not self._taken or self._state.tools.reports is None or self._state.is_dry:
            return True
        taken, self._taken = self._taken, []
        faults = self._state.tools.reports.delete(taken)
        self._note(faults)
        return len(faults) < len(taken)

    def release(self) -> None:
        """Make reports that were received but not deleted visible again."""
        left, self._in_hand, self._taken = [*self._in_hand, *self._taken], [], []
        if left and self._state.tools.reports is not None:
            self._note(self._state.tools.reports.release(left))

    def _note(self, faults: list[EntryFault]) -> None:
        effects = Effects()
        effects.saw(faults)
        self._state.did(effects)

    def _received(self, reports: Reports) -> list[OutcomeMessage]:
        try:
            return reports.receive(hidden_for=self._state.hidden_for())
        except CallFailed as failed:
            self._state.failed(failed)
            return []

    def _take_in(self, some: list[OutcomeMessage], now: datetime) -> Counter[str]:
        """Process some reports, and return what counts. Raises CallFailed."""
        received, unreadable = _unpacked(some)
        processed = self._process(received)
        memory = self._state.tools.memory
        if kept := timedelta(days=self._state.settings.failure_details_days):
            memory.write_failures(list(processed.details.values()), now + kept)
        memory.write_ledger(list(processed.entries.values()), [], now)
        self._taken += [replace(one, body="") for one in some]
        for context in self._state.contexts:
            context.heard(processed, now)
        return processed.counts + unreadable

    def _process(self, received: list[ReceivedOutcome]) -> ProcessedReports:
        state = self._state
        receives = {context.source.name: context.max_receives() for context in state.contexts}
        received, known = self._looked_up(received, receives)
        canaries = {
            one.canary_id
            for context in state.contexts
            for one in context.circuit.causes
            if one.canary_id is not None
        }
        counted = self._counted(known)
        processed = process_reports(received, counted, receives, canaries)
        for key, entry in processed.entries.items():
            if key in counted and (version := self._version(entry)) is not None:
                processed.entries[key] = entry.heard(counted[key], version)
        self._heard.update(processed.entries)
        return processed

    def _counted(self, known: dict[str, Entry]) -> dict[str, Entry]:
        """The letters as the circuits count them: an earlier pass may have died between its two writes."""
        return {
            key: entry
            if key in self._heard or (version := self._version(entry)) is None
            else entry.uncounted(version)
            for key, entry in known.items()
        }

    def _version(self, entry: Entry) -> int | None:
        """The version of the circuit that counts the letter; None if the letter is in no batch of ours."""
        contexts = (
            context for context in self._state.contexts if context.source.name == entry.queue
        )
        context = next(contexts, None) if entry.batch is not None else None
        return context.keeper.version if context else None

    def _looked_up(
        self, received: list[ReceivedOutcome], queues: Collection[str]
    ) -> tuple[list[ReceivedOutcome], dict[str, Entry]]:
        """The outcomes by their letters' original ids, and the ledger's entries for these. Raises CallFailed."""
        memory = self._state.tools.memory
        ids = [one.outcome.original_id for one in received if one.outcome.queue in queues]
        if not ids:
            return received, {}
        known = memory.read_ledger(ids)
        received = (
            [with_kept_metadata(one, known.metadata) for one in received]
            if known.metadata
            else received
        )
        further = {one.outcome.original_id for one in received}.difference(ids)
        return received, known.entries | (memory.read_ledger(further).entries if further else {})


def _unpacked(reports: list[OutcomeMessage]) -> tuple[list[ReceivedOutcome], Counter[str]]:
    """Return the outcomes in reports, and counts of what could not be read, by reason."""
    received: list[ReceivedOutcome] = []
    unreadable: Counter[str] = Counter()
    for one in reports:
        parsed = parse_outcomes(one.body)
        received += [
            ReceivedOutcome(outcome=outcome, at=one.sent_at) for outcome in parsed.outcomes
        ]
        unreadable.update({f"unreadable: {fault}": n for fault, n in parsed.faults.items()})
    return received, unreadable
