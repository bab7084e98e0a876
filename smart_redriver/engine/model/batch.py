"""Batches: the letters redriven by one pass, awaiting a verdict or judged. Data only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

#: Judged batches remembered, so that a letter that returns late can still use its batch's verdict. At one batch in five
#: minutes they cover the last 16 hours, in about 8 KB.
JUDGED_KEPT = 200

#: Causes of failure that are counted for each batch.
CAUSES_KEPT = 10


#: Letters that go one by one are this far apart. A Lambda function whose event source mapping does not report batch
#: item failures fails all ten messages of a batch: a good letter fails each time that it is taken with poison.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
APART = timedelta(seconds=20)


class Verdict(str, Enum):
    """The judgement of a batch: what it showed about the consumer."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    NO_EVIDENCE = "NO_EVIDENCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseCount:
    """Letters that failed for one cause."""

    cause: str
    letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The counts of what the consumer has reported about a batch's letters; each letter counts once.

    Attributes:
        succeeded: letters that the consumer finished.
        failed, suspects_failed: letters that failed at their last receive, without and with strikes.
        parked: letters that the consumer parked itself, as no retry can heal them.
        tries: deliveries that failed, of any of them.
        causes: why letters failed at their first try; the most frequent causes only.

    """

    succeeded: int = 0
    failed: int = 0
    suspects_failed: int = 0
    parked: int = 0
    tries: int = 0
    causes: tuple[CauseCount, ...] = ()

    @property
    def ended(self) -> int:
        """Letters whose end the consumer has reported."""
        return self.succeeded + self.failed + self.suspects_failed + self.parked

    def __add__(self, other: Heard) -> Heard:
        """Both together."""
        causes = Counter({one.cause: one.letters for one in self.causes})
        causes.update({one.cause: one.letters for one in other.causes})
        return Heard(
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            suspects_failed=self.suspects_failed + other.suspects_failed,
            parked=self.parked + other.parked,
            tries=self.tries + other.tries,
            causes=tuple(
                CauseCount(cause=cause, letters=letters)
                for cause, letters in causes.most_common(CAUSES_KEPT)
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The letters redriven by one pass, awaiting a verdict.

    It is registered before the first send with the most letters that it may get (`is_complete` false), so that a pass
    that dies while sending leaves no unknown letters behind. It is completed with what was really sent.

    Attributes:
        size: letters sent, suspects included.
        suspects: how many of these had come back before while others succeeded.
        returned, suspects_returned: returns seen so far, of letters without strikes and of suspects.
        heard: what the consumer has reported about it so far.
        is_probe: sent small on purpose, to see before a full batch follows.
        first_try_at, last_try_at: when the consumer could first see one of its letters, and the last of them.
        due_at: when all have had time to fail.

    """

    id: int
    generation: int
    sent_at: datetime
    first_try_at: datetime
    due_at: datetime
    size: int
    last_try_at: datetime | None = None
    suspects: int = 0
    returned: int = 0
    suspects_returned: int = 0
    heard: Heard = Heard()
    is_probe: bool = False
    is_complete: bool = True

    @property
    def unblemished(self) -> int:
        """Letters in it whose failure would speak against the consumer."""
        return self.size - self.suspects

    @property
    def seen_again(self) -> int:
        """Letters of it that are back in the DLQ, for sure."""
        return min(self.size, self.returned + self.suspects_returned)

    @property
    def known(self) -> int:
        """Letters in it whose outcome is known."""
        heard = self.heard
        back = max(self.seen_again, heard.failed + heard.suspects_failed)
        return min(self.size, back + heard.succeeded + heard.parked)

    @property
    def unknown(self) -> int:
        """Letters in it whose outcome is unknown."""
        return self.size - self.known

    @property
    def can_go_on(self) -> bool:
        """Whether further letters can join it."""
        return self.is_complete and not self.is_probe

    def and_then(self, more: Batch) -> Batch:
        """This batch with letters that joined it."""
        return replace(
            self,
            size=self.size + more.size,
            suspects=self.suspects + more.suspects,
            last_try_at=max(self.tried_by, more.tried_by),
            due_at=max(self.due_at, more.due_at),
        )

    @property
    def is_apart(self) -> bool:
        """Whether its letters went one by one, so that the consumer could take each by itself."""
        seconds = (self.tried_by - self.first_try_at).total_seconds()
        return self.is_complete and seconds >= (self.size - 1) * APART.total_seconds()

    @property
    def tried_by(self) -> datetime:
        """When the consumer could see the last of its letters."""
        return self.last_try_at or self.first_try_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A batch whose verdict is in.

    `is_strike`: a return from it speaks against the letter, because others succeeded at the same time. `was_alone`:
    suspects came back with no other message to compare them with. A success that the batch itself showed is overturned
    when `overturned_at` letters have returned after all (0: never). `sent_at` and `size` tell its letters from
    producers' messages in the source's metrics. `unaccounted`: letters whose outcome was unknown at the verdict and
    that no producer's message could be compared with. `is_whole`: every letter was shown to have succeeded. `is_apart`:
    its letters went one by one.
    """

    id: int
    generation: int
    verdict: Verdict
    is_strike: bool
    was_alone: bool = False
    sent_at: datetime
    size: int = 0
    returned: int = 0
    overturned_at: int = 0
    unaccounted: int = 0
    is_whole: bool = False
    is_apart: bool = False

    @property
    def has_succeeded_as_a_whole(self) -> bool:
        """Whether every letter in it was shown to have succeeded, and none was seen again since."""
        return self.is_whole and not self.seen_again

    @property
    def seen_again(self) -> int:
        """Letters of it that are back in the DLQ, for sure."""
        return min(self.size, self.returned)
