"""Finds entries in a list of adopted queues that are valid by themselves but clash with another entry."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aws_cdk.region_info import RegionInfo

from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.config.targets import Origin, Target, is_fifo
from smart_redriver.engine.errors import Fault

#: Region and account in an ARN.
HOME = r":(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):"
#: A queue's name has at most 80 characters. A FIFO queue's suffix counts towards them.
_NAME = r"(?:[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)"
QUEUE_ARN = re.compile(rf"arn:aws[a-z-]*:sqs{HOME}{_NAME}")
KEY_ARN = re.compile(rf"arn:aws[a-z-]*:kms{HOME}key/(?:mrk-[0-9a-f]{{32}}|[0-9a-f-]{{36}})")
_ANY_ARN = re.compile(rf"arn:aws[a-z-]*:[a-z]+{HOME}")

_QUEUES = ("dead_letter_arn", "source_arn")
_KEYS = ("source_key_arn", "dead_letter_key_arn", "parking_lot_key_arn")


#: As many queues as fit into the 500 resources of a stack: each has fifteen or sixteen, in a VPC with on-call policies.
#: The next limit, 2,500 resources in one operation with nested stacks, is far off: a queue has nineteen alarms.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MAX_QUEUES = 30
#: A queue's widget adds five resources.
MAX_QUEUES_WITH_WIDGET = 23

#: The most source queues in a DLQ's redrive allow policy. Their URLs share the 4 KB of the function's environment.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
MAX_SOURCES = 10


def partition_faults(place: str, arn: str) -> Iterator[Fault]:
    """Yield a fault of an ARN with a partition that is known not to be its Region's. Other texts have none."""
    home = _ANY_ARN.match(arn)
    partition = RegionInfo.get(home["region"]).partition if home else None
    if home and partition and not arn.startswith(f"arn:{partition}:"):
        accepted = f"an ARN in the partition {partition}, as {home['region']} is"
        yield Fault(setting=place, seen=arn, accepted=accepted)


class EntryReader(Protocol):
    """Reads an entry of the list, for one kind of queue. `faults` fills meanwhile.

    Attributes:
        resources_key: the key in the entry for the resources that it takes for itself.
        resources_called: what to call these resources.

    """

    faults: list[Fault]
    resources_key: str
    resources_called: str

    def __init__(
        self, place: str, entry: Mapping[str, Any], of_the_stack: Container[str]
    ) -> None: ...
    def read(self, global_values: Mapping[str, Any]) -> Any:
        """Read the entry. Its settings take precedence over the global ones. Returns None if something is wrong."""
        ...

    @staticmethod
    def home(entry: Mapping[str, Any]) -> tuple[str, str]:
        """Region and account; empty texts if they can't be read."""
        ...

    @staticmethod
    def resources(entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The resources that no other entry may have; empty if the entry can't be read."""
        ...


def reader_of(entry: Mapping[str, Any]) -> type[EntryReader]:
    """The reader for an entry's kind; that of queues for an unknown kind."""
    given = entry.get("origin")
    origin = next((one for one in Origin if one.value == given), Origin.SQS)
    reader: type[EntryReader] = BACKENDS[origin].load("entry")
    return reader


def is_in_sqs(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has a DLQ in SQS, with any origin."""
    return reader_of(entry) is BACKENDS[Origin.SQS].load("entry")


class _Named(NamedTuple):
    """A value in the list, with its place, and the Region and account of its entry."""

    place: str
    value: str
    home: tuple[str, str]


def clashes(
    list_name: str, entries: Sequence[Mapping[str, Any]], default_stack: str = ""
) -> Iterator[Fault]:
    """Yield faults between entries and within them.

    These are names and queues that are given twice, queues and keys in different places, FIFO and standard queues in
    one entry, and more queues than a stack can hold. ``list_name`` begins each fault's place. ``default_stack`` has the
    queues that name no other stack.
    """
    names = _values(list_name, entries, "name")
    queues = [named for key in _QUEUES for named in _values(list_name, entries, key)]
    keys = [named for key in _KEYS for named in _values(list_name, entries, key)]
    yield from _twice(names, _same_name, "a name that no other queue has")
    yield from _twice(
        queues, _same_queue, "a queue that is listed once (sources that share a DLQ are one entry)"
    )
    targets = list(_targets(list_name, entries))
    accepted = "a target that is listed once (let what fails to it share a DLQ)"
    yield from _twice((one for one, _ in targets), _same_target, accepted)
    yield from _into_a_dlq(targets, queues)
    yield from _shared_resources(list_name, entries)
    yield from _one_circuit_twice(list_name, entries)
    yield from _elsewhere(queues, keys)
    for index, entry in enumerate(entries):
        yield from _of_two_kinds(f"{list_name}[{index}]", entry)
    yield from _too_many(list_name, entries, default_stack)


def _home(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Region and account of its DLQ; empty if they can't be read, which is reported elsewhere."""
    return reader_of(entry).home(entry)


def _values(list_name: str, entries: Sequence[Mapping[str, Any]], key: str) -> Iterator[_Named]:
    for index, entry in enumerate(entries):
        yield from _values_of(f"{list_name}[{index}]", entry, key)


def _values_of(entry_place: str, entry: Mapping[str, Any], key: str) -> Iterator[_Named]:
    value, home, place = entry.get(key), _home(entry), f"{entry_place}.{key}"
    if isinstance(value, str):
        yield _Named(place, value, home)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if isinstance(one, str):
                yield _Named(f"{place}[{number}]", one, home)


def _shared_resources(list_name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield a fault for each resource, such as a table, that two entries share: both would take the same letters."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        reader = reader_of(entry)
        key = reader.resources_key
        for one in reader.resources(entry):
            if (other := first.setdefault(one, index)) != index:
                accepted = (
                    f"{reader.resources_called} of one entry alone, see {list_name}[{other}].{key}"
                )
                yield Fault(setting=f"{list_name}[{index}].{key}", seen=one, accepted=accepted)


def _one_circuit_twice(list_name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield a fault for a queue outside SQS with the name of a source queue in another entry.

    Circuits, metrics and alarms use that name.
    """
    sources = {
        (one.value.rpartition(":")[2], one.home): one.place
        for index, entry in enumerate(entries)
        if is_in_sqs(entry)
        for one in _values_of(f"{list_name}[{index}]", entry, "source_arn")
    }
    for index, entry in enumerate(entries):
        if not is_in_sqs(entry) and (other := sources.get((str(entry.get("name")), _home(entry)))):
            accepted = f"a name that no source queue has, see {other}"
            place = f"{list_name}[{index}].name"
            yield Fault(setting=place, seen=entry["name"], accepted=accepted)


def _targets(
    list_name: str, entries: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[_Named, Target]]:
    """Yield the targets that can be read. Others are faults of their entry, and so is a target that it has twice."""
    for index, entry in enumerate(entries):
        seen: set[str] = set()
        for one in _values_of(f"{list_name}[{index}]", entry, "targets"):
            try:
                target = Target.parse(one.value)
            except ValueError:
                continue
            if target.name not in seen:
                seen.add(target.name)
                yield one, target


def _into_a_dlq(
    targets: Iterable[tuple[_Named, Target]], queues: Sequence[_Named]
) -> Iterator[Fault]:
    """Yield a fault for each target that is another entry's DLQ: letters would go round in circles."""
    dlqs = {one.value: one.place for one in queues if one.place.endswith(".dead_letter_arn")}
    for named, target in targets:
        dlq = dlqs.get(target.place, "")
        if dlq and dlq.partition(".")[0] != named.place.partition(".")[0]:
            accepted = f"a queue that is no DLQ, see {dlq}"
            yield Fault(setting=named.place, seen=named.value, accepted=accepted)


def _of_two_kinds(place: str, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults of mixed kinds: SQS moves FIFO messages only to FIFO queues, and order is kept end to end or not."""
    dead_letters = list(_values_of(place, entry, "dead_letter_arn"))
    for one in _values_of(place, entry, "source_arn"):
        if dead_letters and is_fifo(one.value) != is_fifo(dead_letters[0].value):
            kind = "a FIFO queue" if is_fifo(dead_letters[0].value) else "a standard queue"
            accepted = f"{kind}, as its dead_letter_arn is"
            yield Fault(setting=one.place, seen=one.value, accepted=accepted)


def _twice(
    values: Iterable[_Named], same: Callable[[_Named], Any], accepted: str
) -> Iterator[Fault]:
    first: dict[Any, str] = {}
    for one in values:
        place = first.setdefault(same(one), one.place)
        if place != one.place:
            yield Fault(setting=one.place, seen=one.value, accepted=f"{accepted}, see {place}")


def _same_name(one: _Named) -> tuple[str, tuple[str, str]]:
    """A name must be unique in a Region and account, in all stacks: the command knows a queue only by its name."""
    return one.value.replace("-", "").lower(), one.home


def _same_queue(one: _Named) -> str:
    return one.value


def _same_target(one: _Named) -> tuple[str, tuple[str, str]]:
    """A target's name must be unique, because circuits, metrics and alarms use it."""
    return Target.parse(one.value).name, one.home


def _elsewhere(queues: Iterable[_Named], keys: Iterable[_Named]) -> Iterator[Fault]:
    """Yield faults of queues outside the function's account or Region, and of keys outside that Region.

    A queue or key in another partition than its Region is nowhere.
    """
    for one in queues:
        yield from partition_faults(one.place, one.value)
        match = QUEUE_ARN.fullmatch(one.value)
        if match and one.home[0] and match.group("region", "account") != one.home:
            where = "/".join(one.home)
            yield Fault(setting=one.place, seen=one.value, accepted=f"a queue in {where}")
    for one in keys:
        yield from partition_faults(one.place, one.value)
        key = KEY_ARN.fullmatch(one.value)
        if key and one.home[0] and key["region"] != one.home[0]:
            yield Fault(setting=one.place, seen=one.value, accepted=f"a key of {one.home[0]}")


def _too_many(
    list_name: str, entries: Sequence[Mapping[str, Any]], default_stack: str
) -> Iterator[Fault]:
    counts = Counter((_home(one), str(one.get("stack", default_stack))) for one in entries)
    for (_, stack), count in counts.items():
        if count > MAX_QUEUES:
            of = f" {stack!r}" if stack else ""
            accepted = (
                f"at most {MAX_QUEUES} in the stack{of}, since it may have 500 resources: "
                "give others another `stack`"
            )
            yield Fault(setting=list_name, seen=count, accepted=accepted)
