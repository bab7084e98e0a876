"""What is right by itself in a list of adopted queues, and wrong beside another queue."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from redrive.core.queue_facts import is_fifo
from redrive.errors import Fault

_PLACE = r":(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):"
#: A FIFO queue's suffix counts towards the 80 characters of a name.
_NAME = r"(?:[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)"
QUEUE_ARN = re.compile(rf"arn:aws[a-z-]*:sqs{_PLACE}{_NAME}")
KEY_ARN = re.compile(rf"arn:aws[a-z-]*:kms{_PLACE}key/(?:mrk-[0-9a-f]{{32}}|[0-9a-f-]{{36}})")

_QUEUES = ("dead_letter_arn", "source_arn")
_KEYS = ("source_key_arn", "dead_letter_key_arn", "parking_lot_key_arn")


class _Named(NamedTuple):
    """A value somewhere in the list."""

    place: str
    value: str


def clashes(list_name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Names and queues given twice, queues and keys of different places, FIFO queues beside others in an entry.

    ``list_name`` begins each place.
    """
    names = _values(list_name, entries, "name")
    queues = [named for key in _QUEUES for named in _values(list_name, entries, key)]
    keys = [named for key in _KEYS for named in _values(list_name, entries, key)]
    yield from _twice(names, _same_name, "a name that no other queue has")
    yield from _twice(
        queues, str, "a queue that is listed once (sources that share a DLQ are one entry)"
    )
    yield from _elsewhere(queues, keys)
    for index, entry in enumerate(entries):
        yield from _of_two_kinds(f"{list_name}[{index}]", entry)


def _values(list_name: str, entries: Sequence[Mapping[str, Any]], key: str) -> Iterator[_Named]:
    for index, entry in enumerate(entries):
        yield from _values_of(f"{list_name}[{index}]", entry, key)


def _values_of(entry_place: str, entry: Mapping[str, Any], key: str) -> Iterator[_Named]:
    value, place = entry.get(key), f"{entry_place}.{key}"
    if isinstance(value, str):
        yield _Named(place, value)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if isinstance(one, str):
                yield _Named(f"{place}[{number}]", one)


def _of_two_kinds(place: str, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """SQS moves messages from a FIFO queue to a FIFO queue only, and order is kept from end to end or not at all."""
    dead_letters = list(_values_of(place, entry, "dead_letter_arn"))
    for one in _values_of(place, entry, "source_arn"):
        if dead_letters and is_fifo(one.value) != is_fifo(dead_letters[0].value):
            kind = "a FIFO queue" if is_fifo(dead_letters[0].value) else "a standard queue"
            accepted = f"{kind}, as its dead_letter_arn is"
            yield Fault(setting=one.place, seen=one.value, accepted=accepted)


def _twice(values: Iterable[_Named], same: Callable[[str], str], accepted: str) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for one in values:
        place = first.setdefault(same(one.value), one.place)
        if place != one.place:
            yield Fault(setting=one.place, seen=one.value, accepted=f"{accepted}, see {place}")


def _same_name(name: str) -> str:
    return name.replace("-", "").lower()


def _elsewhere(queues: Iterable[_Named], keys: Iterable[_Named]) -> Iterator[Fault]:
    """A stack, its function and its queues are of one account and Region, and keys of that Region."""
    homes = [(one, match) for one in queues if (match := QUEUE_ARN.fullmatch(one.value))]
    if not homes:
        return
    home = homes[0][1]
    for one, match in homes:
        if match.group("region", "account") != home.group("region", "account"):
            where = f"{home['region']}/{home['account']}"
            yield Fault(setting=one.place, seen=one.value, accepted=f"a queue in {where}")
    for one in keys:
        key = KEY_ARN.fullmatch(one.value)
        if key and key["region"] != home["region"]:
            yield Fault(setting=one.place, seen=one.value, accepted=f"a key of {home['region']}")
