"""Times, ages and generated names in plain words.

`SmartRedriver-QueuesDeadLetterA4947A69-1X2Y3Z` is QueuesDeadLetter in the template; people see DeadLetter. The stack's
own source queue has the stack's id in its name; people see Source. Standard library and counts only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from smart_redriver.engine.counts import letters
from smart_redriver.oncall.terminal.exits import Misused

_LONGEST = timedelta(days=3650)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def span(duration: timedelta) -> str:
    """A duration in its two largest units: "3 h 20 min"."""
    seconds = max(0, int(duration.total_seconds()))
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next((n for n, (amount, _) in enumerate(parts) if amount), len(parts) - 1)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount) or (
        "0 s"
    )


def ago(moment: datetime, now: datetime) -> str:
    """Say how long ago a moment was, or how far ahead it is."""
    return f"{span(now - moment)} ago" if moment <= now else f"in {span(moment - now)}"


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, to the second."""
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def await_a_verdict(count: int) -> str:
    """Say how many letters are out with an unknown outcome."""
    return f"{letters(count)} {'awaits' if count == 1 else 'await'} a verdict"


def listed(names: Sequence[str]) -> str:
    """Names as a person lists them: "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def parse_span(text: str) -> timedelta:
    """A duration such as 90s, 20m, 2h, 1d or 1h30m. Raises Misused."""
    parts = re.findall(r"(\d+)([smhdw])", text.strip().lower())
    if not parts or "".join(amount + unit for amount, unit in parts) != text.strip().lower():
        raise Misused(f"{text!r} is not a duration. Write for example 90s, 20m, 2h, 1d or 1h30m.")
    seconds = sum(int(amount) * _SECONDS[unit] for amount, unit in parts)
    if seconds > _LONGEST.total_seconds():
        raise Misused(f"{text!r} is longer than ten years.")
    return timedelta(seconds=seconds)


def parse_lasting(text: str) -> timedelta:
    """Parse a duration as `parse_span` does, but refuse zero. Raises Misused."""
    lasting = parse_span(text)
    if not lasting:
        raise Misused(f"{text!r} is no time at all. Write for example 20m, or 2h.")
    return lasting


def parse_moment(text: str, now: datetime) -> datetime:
    """A moment: a duration before now, or ISO 8601 (UTC if it names no zone). Raises Misused."""
    if re.fullmatch(r"(\d+[smhdw])+", text.strip().lower()):
        return now - parse_span(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Misused(
            f"{text!r} is not a point in time. Write for example 2h, 3d or 2026-11-20T17:00:00Z."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def cut(text: str, most: int) -> str:
    """The text, or the beginning of a text of more than `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


#: The character before a name shows whether it is part of something longer, such as an ARN or an address.
_ALONE = r"(?<![\w:/.-])"
_HASHES = r"[0-9A-F]{8}-[A-Za-z0-9]+(?![\w-])"
_STACK_ID = "-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12))
#: See `smart_redriver.cdk.queues`, which makes it.
_OWN_SOURCE = re.compile(rf"{_ALONE}\w+-(Source)-{_STACK_ID}(?![\w-])")


def shortened(text: str, stack: str) -> str:
    """The text with the names generated for `stack` shortened. ARNs and addresses stay."""
    return _OWN_SOURCE.sub(r"\1", _made_in(stack).sub(r"\1", text))


@cache
def _made_in(stack: str) -> re.Pattern[str]:
    return re.compile(rf"{_ALONE}{re.escape(stack)}-(?:Queues)?([A-Za-z]\w*?){_HASHES}")
