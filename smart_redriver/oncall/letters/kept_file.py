"""Reads a file of letters that `export`, `delete` or `edit` wrote: of this stack's queue, or of one that is named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from smart_redriver.oncall.letters.jsonlines import Kept, letter_from_json
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.words import letters, listed


class KeptFile:
    """A file of letters, for the queue of a session. `others` are queues whose letters are to become this one's."""

    def __init__(self, session: Session, path: Path, others: Sequence[str] = ()) -> None:
        self.path = path
        self._session = session
        self._others = frozenset(others)
        self._own_arns = {source.name: source.facts().arn for source in session.sources}

    def check(self) -> int:
        """Read the whole of it; how many letters it has.

        Raises Refused for a line that can't be read, and for letters of a queue that is neither this one nor named.
        """
        count, strangers = 0, Counter[str]()
        for kept in read_lines(self.path):
            count += 1
            if self._is_strange(kept) and kept.queue not in self._others:
                strangers[_whose(kept)] += 1
        if strangers:
            raise Refused(self._refusal(strangers))
        return count

    def __iter__(self) -> Iterator[Kept]:
        """Its letters, those of other queues as this queue's. Raises Refused."""
        for kept in read_lines(self.path):
            yield self._adopted(kept) if self._is_strange(kept) else kept

    def _is_strange(self, kept: Kept) -> bool:
        """Whether it is of a queue of another name, or of the same name in another account or Region."""
        if kept.letter.source_arn is not None:
            return kept.letter.source_arn not in self._own_arns.values()
        return kept.queue is not None and kept.queue not in self._own_arns

    def _adopted(self, kept: Kept) -> Kept:
        source, trail = self._session.source, kept.letter.trail
        letter = replace(
            kept.letter,
            source_arn=self._own_arns[source],
            trail=replace(trail, queue=source) if trail else None,
        )
        return replace(kept, letter=letter, queue=source)

    def _refusal(self, strangers: Counter[str]) -> str:
        told = listed([f"{letters(count)} of {whose}" for whose, count in strangers.most_common()])
        names = " ".join(
            f"--from-queue {name}" for name in sorted({one.split(" ")[0] for one in strangers})
        )
        own = listed(self._session.place.sources)
        return f"{self.path} has {told}, and this is {own}. Nothing was changed. If they are to become its letters, say {names}."


def read_lines(path: Path) -> Iterator[Kept]:
    """The letters of a file, one at a time. Raises Refused naming the line that is wrong."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield letter_from_json(json.loads(line))
                except (ValueError, RecursionError) as fault:
                    raise Refused(
                        f"{path}, line {number}: {fault}. Nothing was changed by this line or after it."
                    ) from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise Refused(f"{path} can't be read: {fault}.") from fault


def _whose(kept: Kept) -> str:
    arn = kept.letter.source_arn
    return f"{kept.queue} ({arn})" if arn else str(kept.queue)
