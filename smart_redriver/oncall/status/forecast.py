"""What is expected of letters that a person sends back now, and what became of those that went. Pure.

All of it is taken from what is seen of a queue, and from its circuit's item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from smart_redriver.engine.headline import Seen, Topic, headline
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.oncall.status.causes import since_when
from smart_redriver.oncall.terminal.words import ago, letters

#: A headline about one of these says that letters fail.
_FAIL = frozenset({Topic.DOWN, Topic.FAILING, Topic.CANARY})


def forecast(
    seen: Mapping[str, Seen], circuits: Iterable[Circuit], groups: Mapping[str, int]
) -> Iterator[str]:
    """Sentences on what to expect of letters that are sent now. `groups`: how many there are, by their cause."""
    for name, one in seen.items():
        of = f" of {name}" if len(seen) > 1 else ""
        yield f"Expected{of}: {_expected(one)}"
        for kind in one.kinds_down:
            if count := groups.get(kind.name):
                since = f" {since_when(kind.since, one.at)}" if kind.since else ""
                yield f"Expected: the {letters(count)} of {kind.name} fail again, as that is down{since}."
    at = max(one.at for one in seen.values())
    for circuit in circuits:
        for cause in circuit.causes:
            if cause.cause in groups and cause.succeeded and cause.counted_at:
                told = f"{cause.succeeded:,}, counted {ago(cause.counted_at, at)}"
                yield f"Letters of {cause.cause} that succeeded after they had failed: {told}."


def _expected(seen: Seen) -> str:
    topic = headline(seen).topic
    if topic in _FAIL:
        return f"they fail again, as long as this holds: {topic.value}."
    last = f"letters sent {ago(seen.succeeded_at, seen.at)}" if seen.succeeded_at else ""
    if seen.is_fresh:
        return f"they succeed, as did {last}."
    if last:
        return f"not known. The last that are known to have succeeded are {last}."
    return "not known. No letter is known to have succeeded."


def gone_since(circuits: Iterable[Circuit], since: datetime) -> int:
    """How many of the letters that passes sent since then are not known to be back, as far as circuits remember."""
    return sum(
        sum(one.size - one.seen_again for one in circuit.judged if one.sent_at >= since)
        + sum(one.size - one.seen_again for one in circuit.pending if one.sent_at >= since)
        for circuit in circuits
    )


def became_of(circuits: Iterable[Circuit], since: datetime) -> str:
    """A sentence on the letters that passes sent since then; empty where none was sent."""
    sent = back = unknown = 0
    for circuit in circuits:
        for judged in circuit.judged:
            if judged.sent_at >= since:
                sent, back = sent + judged.size, back + judged.seen_again
        for batch in circuit.pending:
            if batch.sent_at >= since:
                sent, back = sent + batch.size, back + max(batch.seen_again, batch.heard.failed)
                unknown += batch.unknown
    if not sent:
        return ""
    done = max(0, sent - back - unknown)
    parts = [f"{done:,} succeeded" if done else "", f"{back:,} failed again" if back else ""]
    parts += [f"of {unknown:,} nothing is known yet" if unknown else ""]
    return f"{letters(sent)} sent back: {', '.join(part for part in parts if part)}."
