"""The outcomes of redriven jobs, in the form of a consumer's reports: the database shows each one.

A job that is gone has succeeded, and a job that is back in the DLQ has failed. The outcome of one that is still there
is unknown; if it waits for another try, the tries before have failed. All is read in one snapshot, so that a worker's
move between the tables, if it is one transaction, is never half seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.reports.outcomes import (
    VERSION,
    DeliveryOutcome,
    OutcomeMessage,
    Result,
    report_fields,
)
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.engine.dead_letters import BEFORE_ALL
from smart_redriver.postgres.engine.letters import cause_of, first_line, job_id

#: Outcomes in one report. A report has at most a thousand, each of less than a kilobyte.
AT_ONCE = 500

#: How long to remember a job that has succeeded. If a worker deleted it before it wrote the letter, in two
#: transactions, the letter is still known, and it was no success.
REMEMBERED = timedelta(hours=1)


class Outcomes:
    """Hands out outcomes, and forgets those that were processed.

    `queue` is the source's name. `at_each_look` is called when a pass begins to ask, for code that must look as often.
    """

    def __init__(
        self,
        database: Database,
        queue: str,
        clock: Callable[[], datetime],
        at_each_look: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._clock = clock
        self._at_each_look = at_each_look
        self._after = BEFORE_ALL

    def receive(self, *, hidden_for: timedelta) -> list[OutcomeMessage]:  # noqa: ARG002
        """The next report with what is known now; none at the end. Raises CallFailed."""
        if self._after == BEFORE_ALL:
            self._at_each_look()
        parameters = {"after": self._after, "limit": AT_ONCE, "now": self._clock()}
        read = self._database.statements.read_outcomes
        rows = self._database.run("ReadOutcomes", read, parameters)
        if not rows:
            self._after = BEFORE_ALL
            return []
        self._after = rows[-1][0]
        settled = [[job, letter, tries, metadata] for job, metadata, letter, _, _, tries in rows]
        told = [report_fields(self._outcome(row)) for row in rows]
        return [
            OutcomeMessage(
                message_id=f"outcomes-{rows[0][0]}-{rows[-1][0]}",
                receipt_handle=json.dumps(settled),
                body=json.dumps({"version": VERSION, "outcomes": told}),
                sent_at=self._clock(),
            )
        ]

    def delete(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Note that outcomes were processed. Returns faults for those that could not be noted."""
        now, faults = self._clock(), []
        known = self._database.statements
        for one in reports:
            settled = json.loads(one.receipt_handle)
            jobs, letters, tries, metadata = map(list, zip(*settled, strict=True))
            parameters = {
                "jobs": jobs,
                "letters": letters,
                "tries": tries,
                "trails": metadata,
                "now": now,
            }
            try:
                self._database.run("SettleJobs", known.settle, parameters)
            except CallFailed as failed:
                faults.append(EntryFault.of(failed, one.message_id))
        try:
            before = {"before": now - REMEMBERED}
            self._database.run("ForgetJobs", known.forget_settled, before)
        except CallFailed as failed:
            faults.append(EntryFault.of(failed, "outcomes"))
        return faults

    def release(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:  # noqa: ARG002
        """Start again: outcomes that were not processed come again."""
        self._after = BEFORE_ALL
        return []

    def _outcome(self, row: tuple[Any, ...]) -> DeliveryOutcome:
        job, text, letter, error_class, message, tries = row
        told = DeliveryOutcome(
            queue=self._queue,
            message_id=job_id(job),
            original_id=job_id(job),
            result=Result.SUCCEEDED,
        )
        most = self._database.place.tries
        if letter is not None:
            told = self._failed(told, most, error_class, message)
        elif tries is not None:
            # It is there, so that none of them was the last, whatever the configuration says of how many there are.
            told = self._failed(told, min(tries, most - 1), error_class, message)
        try:
            metadata = RedriveMetadata.decode(text)
        except ValueError:  # whoever wrote into our table: it is nobody's that we know
            return told
        return replace(
            told,
            message_id=job_id(job, metadata.redrive_count * bool(self._database.place.library)),
            original_id=metadata.original_id,
            batch=metadata.batch,
            generation=metadata.generation,
        )

    def _failed(
        self, told: DeliveryOutcome, tries: int, error_class: str | None, message: str | None
    ) -> DeliveryOutcome:
        is_last = tries >= self._database.place.tries
        return replace(
            told,
            result=Result.FAILED,
            receive_count=tries,
            error_class=cause_of(error_class, message),
            first_line=first_line(message) or None,
            permanent=is_last and error_class in self._database.place.permanent,
        )
