"""The table that workers take jobs from, and that letters go back to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg import sql

from smart_redriver.engine.errors import CallFailed, DatabaseLost, EntryFault
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL, MAX_SQS_DELAY, Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.postgres.engine.database import About, Database, StatementRefused
from smart_redriver.postgres.engine.dead_letters import COUNTED, LARGEST, Batches, by_table, turn_of
from smart_redriver.postgres.engine.letters import Handle, job_id

_CALL = "RedriveLetters"

#: The largest statement: the letters of a round.
MOST_LETTERS = 100

#: How long an accepted letter shows that the table works. It may change at any time, and this object outlives a pass.
_LATELY = timedelta(minutes=1)


class JobsSource:
    """A table of jobs with its workers. `name` is its name in circuit and metadata.

    It carries metadata in a table of ours, beside the jobs. Nothing is added to a job.

    `letters_a_call`: how many letters a statement may move.
    """

    settles_at_once = False
    carries_metadata = True
    #: A job can wait for any time. For a longer wait than this, it stays a letter, and a pass can decide again.
    longest_delay = MAX_SQS_DELAY

    def __init__(self, database: Database, name: str, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._took_some_at: datetime | None = None
        self.letters_a_call = ENTRIES_PER_CALL
        self.name = name

    def facts(self) -> QueueFacts:
        """Return the number of jobs. Raises CallFailed."""
        place, known = self._database.place, self._database.statements
        ((jobs,),) = self._database.run("CountJobs", known.count_jobs, {"most": COUNTED})
        return QueueFacts(
            arn=place.url(place.jobs),
            visible=jobs,
            in_flight=0,
            delayed=0,
            visibility_timeout=place.time_to_fail,
            retention=timedelta(),
            max_message_size=LARGEST,
            max_receive_count=place.tries,
        )

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Make each letter a job again: delete, insert and note of the metadata are one transaction.

        If an answer was lost, the repeated call returns the same. No payload is read, so it arrives unchanged. If the
        table accepts other letters but not this one, the letter is bounced. If the table accepts none, it has refused.
        """
        sent = Sent()
        for some in by_table(outgoing):
            batches = Batches(_CALL, self._deliver)
            batches.run(some)
            sent.add(batches.sent)
            sent.add(self._judged(some, batches))
            self._note_size(
                is_taken=len(batches.sent.new_ids) == len(some) and not batches.sent.healed
            )
        return sent

    def _note_size(self, *, is_taken: bool) -> None:
        """Let statements grow while all their letters are accepted, and halve them otherwise."""
        size = self.letters_a_call * 2 if is_taken else self.letters_a_call // 2
        self.letters_a_call = min(max(size, ENTRIES_PER_CALL), MOST_LETTERS)

    def count_sent(self, batch: int, since: datetime) -> int:
        """Count letters that were redriven in a batch that began then. Raises CallFailed."""
        asked = {"batch": f'"batch":{batch},', "since": since}
        ((sent,),) = self._database.run("CountSent", self._database.statements.count_sent, asked)
        return int(sent)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:  # noqa: ARG002
        """Return the configured time from a job's first try to its move to the DLQ."""
        return facts.visibility_timeout

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool:  # noqa: ARG002
        """Return true: every letter of the table belongs to this queue."""
        return True

    def _judged(self, some: Sequence[Outgoing], batches: Batches) -> Sent:
        """Judge refused letters: other letters show whether the refusal was their own fault.

        If these can't be tried, the next pass tries again.
        """
        sent, now = Sent(), self._clock()
        if batches.sent.new_ids:
            self._took_some_at = now
        has_taken_some = self._took_some_at is not None and now - self._took_some_at < _LATELY
        try:
            is_theirs = bool(batches.refused) and (
                has_taken_some or takes_another(self._database, some, now, lambda: batches.is_over)
            )
        except DatabaseLost as lost:
            sent.faults += [
                EntryFault.of(lost, one.letter.message_id) for one, _ in batches.refused
            ]
            return sent
        for one, why in batches.refused:
            if is_theirs:
                sent.bounced[one.letter.message_id] = why.answer
                sent.healed.append(EntryFault.of(why, one.letter.message_id))
            else:
                sent.faults.append(EntryFault.of(why, one.letter.message_id, is_of_target=True))
        return sent

    def _deliver(self, some: Sequence[Outgoing]) -> dict[int, str]:
        now, known = self._clock(), self._database.statements
        handles = [Handle.of(one.letter) for one in some]
        parameters = {
            "rows": [one.row for one in handles],
            "run_after": [now + one.delay for one in some],
            "trails": [one.metadata.encode() for one in some],
            "left_jobs": [one.job for one in handles],
            "now": now,
        }
        statement = known.redrive_parked if handles[0].is_parked else known.redrive_dead
        return self._moved(some, statement, parameters)

    def _moved(
        self, some: Sequence[Outgoing], statement: sql.Composed, parameters: dict[str, Any]
    ) -> dict[int, str]:
        """Move letters. Returns their ids as jobs, by their rows. Raises CallFailed."""
        rows = self._database.run(_CALL, statement, parameters)
        by_state = bool(self._database.place.library)
        counts = {Handle.of(one.letter).row: one.metadata.redrive_count * by_state for one in some}
        return {row: job_id(job, counts[row]) for row, job in rows}


def takes_another(
    database: Database,
    refused: Sequence[Outgoing],
    now: datetime,
    is_over: Callable[[], bool],
) -> bool:
    """Whether the table would accept any letter but these, which are all from one table. All tries are rolled back.

    It tries at most ten letters from all over their table, different ones each time, and none once `is_over` says so.
    Raises DatabaseLost if this can't be known.
    """
    handles = [Handle.of(one.letter) for one in refused]
    is_parked, known = handles[0].is_parked, database.statements
    others = known.others_parked if is_parked else known.others_dead
    try:
        asked = {"rows": [one.row for one in handles], "turn": turn_of(now)}
        rows = database.run("FindOthers", others, asked)
        if not rows:
            return len(handles) == 1 and _would_take_a_job(database, handles[0], now)
        return any(
            not is_over() and _would_go(database, row, now, is_parked=is_parked) for (row,) in rows
        )
    except DatabaseLost:
        raise
    except CallFailed:
        return False


def _would_take_a_job(database: Database, alone: Handle, now: datetime) -> bool:
    """Whether the table would accept an empty job, so that only the letter itself is at fault. Raises CallFailed."""
    known = database.statements
    delete = known.delete_parked if alone.is_parked else known.delete_dead
    return bool(
        database.rehearse("TryJob", known.try_job, {"now": now})
        and database.rehearse("TryLetter", delete, {"rows": [alone.row]})
    )


def _would_go(database: Database, row: int, now: datetime, *, is_parked: bool) -> bool:
    """Whether the letter would go in. Raises CallFailed if trying other letters could show nothing, either."""
    known = database.statements
    statement = known.redrive_parked if is_parked else known.redrive_dead
    parameters = {"rows": [row], "run_after": [now], "trails": [""], "left_jobs": [None]}
    try:
        return bool(database.rehearse("TryLetter", statement, {**parameters, "now": now}))
    except StatementRefused as why:
        if why.about is About.EVERYBODY:
            raise
        return False
