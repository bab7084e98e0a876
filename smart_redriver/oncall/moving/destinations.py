"""The source queues that letters go back to by hand, each with its facts as a command begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redrive.aws.sources import SqsSource, owner_of
from redrive.core.case import Case
from redrive.passes.apply import Destination


class Destinations:
    """Where letters belong. Raises CallFailed where a queue can't be asked for its facts."""

    def __init__(self, sources: Sequence[SqsSource]) -> None:
        self._sources = sources
        self._by_name = {
            source.name: Destination(source=source, facts=source.facts()) for source in sources
        }

    def of(self, case: Case) -> Destination | None:
        """Where a letter belongs; None for one of a queue that is not served."""
        owner = owner_of(self._sources, source_arn=case.source_arn, trail=case.letter.trail)
        return self._by_name[owner.name] if owner else None

    def each_with(self, cases: Sequence[Case]) -> Iterator[tuple[Destination, list[Case]]]:
        """The destinations that some of the letters belong to, with these."""
        for destination in self._by_name.values():
            if some := [case for case in cases if self.of(case) is destination]:
                yield destination, some


def why_not_served(case: Case) -> str:
    """Why a letter without a destination goes nowhere."""
    return f"it belongs to another queue, {(case.source_arn or '').rpartition(':')[2]}"
