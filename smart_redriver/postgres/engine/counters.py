"""Proofs from Postgres's own counters of a table. Pure.

It counts rows that were inserted, updated and deleted, whether the transaction was committed or rolled back; but the
changes since the last ANALYZE are those of committed transactions alone. So what was changed for good, less all inserts
and updates that were so much as tried, are deletes that were committed, at least. What a session has done is added as
a whole, within seconds. https://www.postgresql.org/docs/current/monitoring-stats.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The counters of the table of jobs at one moment, and of the letters' table the inserts.

    Attributes:
        epoch: differs where they began anew: a restart, a reset, another table.
        changed: rows inserted, updated or deleted by committed transactions since the last ANALYZE.
        inserted, updated: rows, by whatever transactions.
        live: rows that are there; an estimate after VACUUM and ANALYZE, and exactly counted on from it.
        analyzed, vacuumed: how often that was.
        buried: rows inserted into the letters' table.
        can_tell: nothing but deletes looks like one.

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
        """The counters in the order of the attributes. Raises TypeError or ValueError for what are none."""
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
    """Jobs that committed transactions have deleted between two readings, at least.

    Where inserts were rolled back, the rows that are there tell more: each committed insert is one of them, until it is
    deleted. Since a VACUUM they are an estimate, and since an ANALYZE only what came after it is counted.
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
    """Jobs that came to an end with no look to see them."""

    succeeded: int = 0
    failed: int = 0


class Proof(NamedTuple):
    """The proof by counters, beyond what the looks have seen.

    Attributes:
        spare: deletes that were proved at the last look, less all that is known of them otherwise. They count at
            the next: what a worker's session did to the other table may be told a moment later. Below zero it is what
            is known of and not proved yet.
        known_lately: of that, what the last look has shown: a session may tell of it as late as the next.
        unburied: below zero, deaths that were seen and are not in the counters yet.

    """

    spare: int = 0
    known_lately: int = 0
    unburied: int = 0

    def then(
        self, before: Counters, now: Counters, succeeded: int, failed: int
    ) -> tuple[Proof, Unseen]:
        """The proof after a look that has seen so many jobs succeed and fail, and how many there were beyond them."""
        if not now.goes_on_from(before):
            return Proof(known_lately=succeeded), Unseen()
        buried = now.buried - before.buried
        known = buried + succeeded
        # An ANALYZE may have forgotten deletes that were known before: nothing waits for them any longer.
        is_forgotten = now.analyzed != before.analyzed
        spare = (max(-self.known_lately, self.spare) if is_forgotten else self.spare) - known
        unburied = self.unburied + buried - failed
        after = Proof(
            spare=min(0, spare) + deleted_at_least(before, now),
            known_lately=known,
            unburied=min(0, unburied),
        )
        return after, Unseen(succeeded=max(0, spare), failed=max(0, unburied))
