"""Proofs from Postgres's own counters of a table. Pure.

Postgres counts inserted, updated and deleted rows of all transactions, committed or rolled back. But the changes since
the last ANALYZE are only those of committed transactions. So committed changes, minus all inserts and updates that were
even tried, are a lower bound for committed deletes. A session's work is added as a whole, within seconds.
https://www.postgresql.org/docs/current/monitoring-stats.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The counters of the table of jobs at one moment, and the inserts into the letters' table.

    Attributes:
        epoch: changes when the counters start again: a restart, a reset, another table.
        changed: rows inserted, updated or deleted by committed transactions since the last ANALYZE.
        inserted, updated: rows, by any transactions.
        live: existing rows. VACUUM and ANALYZE set an estimate, and changes after that are counted exactly.
        analyzed, vacuumed: how often that happened.
        buried: rows inserted into the letters' table.
        can_tell: nothing except deletes looks like deletes.

    """

    epoch: str
    changed: int
    inserted: int
    updated: int
    live: int
    analyzed: int
    vacuumed: int
    buried: int
    can_tell: bool

    @classmethod
    def of(cls, epoch: str, *numbers: int | bool) -> Self:
        """Make counters from values in the order of the attributes. Raises TypeError or ValueError for others."""
        *counts, can_tell = numbers
        changed, inserted, updated, live, analyzed, vacuumed, buried = map(int, counts)
        return cls(
            epoch=str(epoch),
            changed=changed,
            inserted=inserted,
            updated=updated,
            live=live,
            analyzed=analyzed,
            vacuumed=vacuumed,
            buried=buried,
            can_tell=bool(can_tell),
        )

    def goes_on_from(self, before: Counters) -> bool:
        """Whether both are readings of the same counters, in this order."""
        return (
            self.can_tell
            and self.epoch == before.epoch
            and self.inserted >= before.inserted
            and self.updated >= before.updated
            and self.buried >= before.buried
            and self.analyzed >= before.analyzed
        )


def deleted_at_least(before: Counters, now: Counters) -> int:
    """The least number of jobs that committed transactions deleted between two readings.

    If inserts were rolled back, the existing rows prove more: each committed insert is one of them until it is deleted.
    After a VACUUM they are an estimate, and after an ANALYZE only later changes are counted.
    """
    inserted, updated = now.inserted - before.inserted, now.updated - before.updated
    if now.analyzed != before.analyzed:
        return max(0, now.changed - inserted - updated)
    changed = now.changed - before.changed
    least = changed - inserted - updated
    if now.vacuumed == before.vacuumed:
        least = max(least, (changed - updated - (now.live - before.live)) // 2)
    return max(0, least)


class Unseen(NamedTuple):
    """Jobs that ended between two looks, unseen by either."""

    succeeded: int = 0
    failed: int = 0


class Proof(NamedTuple):
    """The proof by counters, beyond what the looks have seen.

    Attributes:
        spare: deletes that were proved at the last look, minus those that are known otherwise. They count at the next
            look, because a worker session's changes to the other table may show a moment later. A negative number is of
            deletes that are known but not proved yet.
        known_lately: the part of these that the last look showed. A session may report it only by the next look.
        unburied: if negative, deaths that were seen but are not in the counters yet.

    """

    spare: int = 0
    known_lately: int = 0
    unburied: int = 0

    def then(
        self, before: Counters, now: Counters, succeeded: int, failed: int
    ) -> tuple[Proof, Unseen]:
        """The proof after a look that saw so many jobs succeed and fail, and the number of unseen ones."""
        if not now.goes_on_from(before):
            return Proof(known_lately=succeeded), Unseen()
        buried = now.buried - before.buried
        known = buried + succeeded
        # An ANALYZE may have erased deletes that were known before, so stop waiting for them.
        is_forgotten = now.analyzed != before.analyzed
        spare = (max(-self.known_lately, self.spare) if is_forgotten else self.spare) - known
        unburied = self.unburied + buried - failed
        after = Proof(
            spare=min(0, spare) + deleted_at_least(before, now),
            known_lately=known,
            unburied=min(0, unburied),
        )
        return after, Unseen(succeeded=max(0, spare), failed=max(0, unburied))
