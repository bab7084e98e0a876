"""The table that workers take jobs from: what letters go back to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from redrive.core.letter import Trail
from redrive.core.outgoing import Outgoing, Sent
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.core.queue_facts import QueueFacts
from redrive.errors import DatabaseLost, EntryFault
from redrive.postgres.batches import Batches, by_table
from redrive.postgres.database import Database
from redrive.postgres.dead_letters import COUNTED, LARGEST
from redrive.postgres.letters import Handle, job_id
from redrive.postgres.trial import takes_another

_CALL = "RedriveLetters"

#: What the table took so lately speaks for it. It may change at any moment, and this object outlives a pass.
_LATELY = timedelta(minutes=1)


class JobsSource:
    """A table of jobs, with its workers. `name` is what circuit and trails call it.

    It carries trails: beside the jobs, in a table of ours. Nothing is added to a job.
    """

    settles_at_once = False
    carries_trails = True
    #: A job can wait for any time. What waits longer than this waits as a letter, where a pass can think better of it.
    longest_delay = MAX_SQS_DELAY

    def __init__(self, database: Database, name: str, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._took_some_at: datetime | None = None
        self.name = name

    def facts(self) -> QueueFacts:
        """How many jobs there are. Raises CallFailed."""
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
        """Make each letter a job again: delete, insert and note of the trail are one transaction.

        Who asks again, since an answer was lost, is told the same. Nothing is read of a payload: it arrives unchanged.
        A letter that the table does not take, and takes others, is bounced; a table that takes nobody has refused.
        """
        sent = Sent()
        for some in by_table(outgoing):
            batches = Batches(_CALL, self._deliver)
            batches.run(some)
            sent.add(batches.sent)
            sent.add(self._judged(some, batches))
        return sent

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:  # noqa: ARG002
        """From a job's first try to its move to the DLQ, as the configuration has it."""
        return facts.visibility_timeout

    def owns(self, source_arn: str | None, trail: Trail | None) -> bool:  # noqa: ARG002
        """Every letter of the table is of this queue."""
        return True

    def _judged(self, some: Sequence[Outgoing], batches: Batches) -> Sent:
        """What it means for letters that they were refused: whether that was their own fault, others tell.

        Where these can't be asked, the next pass tries again.
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
            "trails": [one.trail.encode() for one in some],
            "left_jobs": [one.job for one in handles],
            "now": now,
        }
        statement = known.redrive_parked if handles[0].is_parked else known.redrive_dead
        rows = self._database.run(_CALL, statement, parameters)
        return {row: job_id(job) for row, job in rows}
