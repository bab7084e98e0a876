"""What Postgres's own counters of a table prove. Pure.

It counts rows that were inserted, updated and deleted, whether the transaction was committed or rolled back; but the
changes since the last ANALYZE are those of committed transactions alone. So what was changed for good, less all inserts
and updates that were so much as tried, are deletes that were committed, at least. What a session has done is added as
a whole, within seconds. https://www.postgresql.org/docs/current/monitoring-stats.html
"""

from __future__ import annotations

from dataclasses import dataclass


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
