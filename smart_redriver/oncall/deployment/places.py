"""The re-drivers of a stack, by its outputs, and the choice among them.

Each construct writes one output, such as `OrdersRedriver`: a JSON object that `read_outputs` takes apart. This
repository's stack with queues of its own has one output for each value instead, as the previous edition did. Any other
output belongs to the app around the construct.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from smart_redriver.engine.config.backends import BACKENDS, Location, LocationReader, ProcessFile
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target, read_targets
from smart_redriver.engine.errors import CallFailed, SettingsError
from smart_redriver.oncall.deployment.aws import Asking
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.words import shortened

#: Other sources of the same DLQ, separated by spaces; most DLQs have none.
_FURTHER_SOURCES = "FurtherSourceQueueUrls"
#: The origin of a DLQ that SQS does not fill, and hosts of targets at addresses that are not public.
_ORIGIN, _PRIVATE_HOSTS = "RedriveOrigin", "RedrivePrivateHosts"
#: The queue that consumers report to; a stack of the first edition has none.
_OUTCOMES = "OutcomeQueueUrl"
#: The name of such a queue.
_QUEUE = "RedriveQueue"


def deployment_of(
    stack: str, outputs: Mapping[str, str], prefix: str, needed: Callable[[str], str]
) -> Deployment:
    """The deployment that the outputs beginning with `prefix` describe.

    `needed` raises Refused for a missing one.
    """
    location = _told_location(stack, prefix, outputs)
    if location is None:
        return _of_queues(stack, outputs, prefix, needed)
    return Deployment.at(location, queue_name=needed(_QUEUE), table_name=needed("StateTableName"))


def _of_queues(
    stack: str, outputs: Mapping[str, str], prefix: str, needed: Callable[[str], str]
) -> Deployment:
    origin, targets = _told_targets(stack, prefix, outputs)
    source = "" if targets else needed(SOURCE)
    return Deployment(
        queue_name=targets[0].name if targets else source.rpartition("/")[2],
        table_name=needed("StateTableName"),
        dlq_url=needed("DeadLetterQueueUrl"),
        source_queue_url=source,
        parking_lot_url=needed("ParkingLotQueueUrl"),
        further_source_urls=tuple(outputs.get(prefix + _FURTHER_SOURCES, "").split()),
        outcome_queue_url=outputs.get(prefix + _OUTCOMES, ""),
        origin=origin,
        targets=targets,
        private_hosts=tuple(outputs.get(prefix + _PRIVATE_HOSTS, "").split()),
    )


def _told_location(stack: str, prefix: str, outputs: Mapping[str, str]) -> Location | None:
    """Read the place of a queue outside SQS; None for a DLQ in SQS. Raises Refused for an unknown kind."""
    for output, backend in LOCATIONS.items():
        if (told := outputs.get(prefix + output)) is not None:
            reader: LocationReader = backend.load("location")
            try:
                return reader.parse(told)
            except SettingsError as refused:
                raise Refused(f"Stack {stack!r}, output {prefix}{output}: {refused}") from refused
    return None


def _told_targets(
    stack: str, prefix: str, outputs: Mapping[str, str]
) -> tuple[Origin, tuple[Target, ...]]:
    """The origin of a DLQ and its targets; none for SQS. Raises Refused for an origin unknown to this version."""
    told = outputs.get(prefix + TARGETS)
    if told is None:
        return Origin.SQS, ()
    given = outputs.get(prefix + _ORIGIN, "")
    try:
        origin = Origin(given)
    except ValueError:
        known = ", ".join(one.value for one in Origin)
        raise Refused(
            f"Stack {stack!r} says that {given or 'nothing'} fills a DLQ; this version knows {known}."
        ) from None
    targets, faults = read_targets(origin, tuple(told.split()))
    if faults or not targets:
        raise Refused(f"Stack {stack!r}, output {prefix}{TARGETS}: {'; '.join(map(str, faults))}")
    return origin, targets


#: Nobody reads a sentence with two hundred names in it.
_NAMES_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One queue's re-driver: its queues and table, and what else the stack says about it.

    `prefix` begins the names of this queue's own outputs and resources; a stack with one queue has none. `alarms`
    begins the names of its alarms. `process`: the file that configures a process's passes, if no stack is deployed.
    """

    stack: str
    deployment: Deployment
    prefix: str = ""
    function: str | None = None
    log_group: str | None = None
    mode: str | None = None
    warning_topic: str | None = None
    paging_topic: str | None = None
    alarms: str | None = None
    process: ProcessFile | None = None

    @property
    def queue(self) -> str:
        """The name of its first source queue or target, which names its lease and audit trail."""
        return self.deployment.queue_name

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all source queues that share its DLQ, or of its targets, in their order. Each has a circuit."""
        return self.deployment.source_names

    @property
    def origin(self) -> Origin:
        """The origin of its DLQ's letters."""
        return self.deployment.origin

    def target(self, name: str) -> Target | None:
        """The target with this name; None for a source queue."""
        return next((one for one in self.deployment.targets if one.name == name), None)

    def hears_live(self, name: str) -> bool:
        """Whether live messages beside its letters are counted: not where an accepted letter has succeeded.

        Those of a target queue count only if they fail into this very DLQ. Nothing here shows that, so it is not
        promised.
        """
        return self.target(name) is None or self.origin is Origin.LAMBDA

    @property
    def name(self) -> str:
        """The name for people: if several sources or targets share its DLQ, its name in the list of queues."""
        return self.prefix if self.prefix and len(self.sources) > 1 else self.queue

    @property
    def alarms_known_as(self) -> tuple[str, ...]:
        """The beginnings of its alarms' names.

        A stack without this value made its one queue itself, and its alarms' names begin with its own.
        """
        first, *further = self.sources
        return (self.alarms or (first if self.prefix else self.stack), *further)


def place_beside(file: str, process: ProcessFile) -> Place:
    """The deployment that a file describes."""
    return Place(
        stack=file,
        deployment=process.deployment,
        mode=process.settings.mode.value,
        process=process,
    )


def find_places(
    cloudformation: Any, stack: str, where: Callable[[], str], warn: Callable[[str], None]
) -> tuple[Place, ...]:
    """The re-driver of each queue of `stack`, and of the stacks that it names, by name.

    If another stack can't be read, `warn` says so. Raises Refused, saying `where` there is no such stack, and
    CallFailed.
    """
    outputs = find_outputs(cloudformation, stack, where)
    others = beside(stack, outputs)
    with Asking() as ask:
        asked = [ask(partial(find_outputs, cloudformation, one, where)) for one in others]
        answers = dict(zip(others, [wait() for wait in asked], strict=True))
    places = list(read_places(stack, outputs))
    for other, answer in answers.items():
        if answer.value is None:
            warn(f"The queues of stack {other!r} are left out. {answer.fault}")
        else:
            places += read_places(other, answer.value)
    return tuple(sorted(places, key=lambda one: one.prefix))


def read_places(stack: str, outputs: Mapping[str, str]) -> tuple[Place, ...]:
    """The places that `outputs` describe, at least one, by name. Raises Refused."""
    outputs = read_outputs(outputs)
    prefixes = sorted(
        key.removesuffix(ends)
        for ends in (SOURCE, TARGETS, *LOCATIONS)
        for key in outputs
        if key.endswith(ends)
    )
    if not prefixes:
        raise Refused(
            f"Stack {stack!r} has no output {SOURCE}, nor one that ends in Redriver: it is not a smart re-driver. "
            "Name yours with --stack."
        )
    return tuple(_place(stack, outputs, prefix) for prefix in prefixes)


def choose_places(places: Sequence[Place], queue: str | None) -> tuple[Place, ...]:
    """Return the places that `queue` names, by the name in the list of queues or a source queue's; all for None.

    A name in the list comes first: one queue may be listed under the name of another. Raises Refused if it names none.
    """
    if queue is None:
        return tuple(places)
    wanted = _plain(queue)
    selection = _listed(places, wanted) or tuple(one for one in places if _called(one, wanted))
    if not selection:
        raise Refused(
            f"Stack {places[0].stack!r} serves no queue {queue!r}. It serves: {_names(places)}."
        )
    return selection


def choose_place(places: Sequence[Place], queue: str | None) -> Place:
    """The place that `queue` names; the only one for None. Raises Refused if none or several match."""
    selection = choose_places(places, queue)
    if len(selection) > 1:
        raise Refused(
            f"Stack {places[0].stack!r} serves several queues. Choose one with --queue: {_names(places)}."
        )
    return selection[0]


def sources_called(places: Sequence[Place], name: str) -> frozenset[str]:
    """The source queues that `name` means by itself, as people see it or in the list of queues; none if there are none.

    As in `choose_places`, a name in the list comes first.
    """
    wanted = _plain(name)
    return frozenset(
        source for one in _listed(places, wanted) for source in one.sources
    ) or frozenset(source for one in places for source in _called(one, wanted))


def choose_source(place: Place, queue: str | None) -> str:
    """The source queue of `place` that `queue` names, or its only one. Raises Refused otherwise."""
    is_alone = len(place.sources) == 1
    selection = place.sources if is_alone else _called(place, _plain(queue or ""))
    if not selection:
        raise Refused(
            f"Several {'targets' if place.deployment.targets else 'queues'} share this DLQ, each with a circuit of "
            f"its own. Choose one with --queue: {', '.join(place.sources)}."
        )
    return selection[0]


def _listed(places: Sequence[Place], wanted: str) -> tuple[Place, ...]:
    """The places with this name in the list of queues."""
    return tuple(one for one in places if wanted == _plain(one.prefix))


def _called(place: Place, wanted: str) -> list[str]:
    """Its source queues with this name, in full or as people see it."""
    return [
        name
        for name in place.sources
        if wanted in (_plain(name), _plain(shortened(name, place.stack)))
    ]


def _plain(name: str) -> str:
    """The stack writes `my-orders` as MyOrders."""
    return name.replace("-", "").lower()


def _names(places: Sequence[Place]) -> str:
    names = [name for one in places for name in ([one.prefix] if one.prefix else one.sources)]
    more = len(names) - _NAMES_TOLD
    return ", ".join(names[:_NAMES_TOLD]) + (f" and {more} more" if more > 0 else "")


def _place(stack: str, outputs: Mapping[str, str], prefix: str) -> Place:
    def output(name: str) -> str | None:
        return outputs.get(prefix + name, outputs.get(name))

    def needed(name: str) -> str:
        if value := output(name):
            return value
        raise Refused(f"Stack {stack!r} has no output {prefix}{name}. Deploy it anew.")

    return Place(
        stack=stack,
        deployment=deployment_of(stack, outputs, prefix, needed),
        prefix=prefix,
        function=output("RedriveFunctionName"),
        log_group=output("RedriveLogGroupName"),
        mode=output("RedriveMode"),
        # A re-driver without monitoring has an empty value: its neighbour's topics are not its own.
        warning_topic=output("WarningTopicArn") or None,
        paging_topic=output("PagingTopicArn") or None,
        alarms=output("RedriveAlarms"),
    )


#: The end of the name of a construct's output, after the queue's name.
_OF_A_QUEUE = "Redriver"
#: A field that each object in such an output has. An app's own JSON does not have it.
_MARK = "RedriveFunctionName"
#: All stacks of an app in this account and Region, separated by spaces. The first of several stacks has this output.
_STACKS = "RedriverStacks"
#: The output of a DLQ that SQS fills.
SOURCE = "SourceQueueUrl"
#: The output of a DLQ that SQS does not fill: the targets that its letters go back to.
TARGETS = "RedriveTargets"
#: Where a queue outside of SQS is, by backend.
LOCATIONS = {one.output: one for one in BACKENDS.values() if one.output}


def find_outputs(cloudformation: Any, stack: str, where: Callable[[], str]) -> dict[str, str]:
    """The outputs of `stack`, one for each value.

    Raises Refused, saying `where` there is no such stack, and CallFailed.
    """
    try:
        found = cloudformation.describe_stacks(StackName=stack).get("Stacks")
    except CallFailed as failed:
        if failed.code != "ValidationError":
            raise
        found = []
    if found is None:
        raise Refused("The endpoint is not AWS. Check --endpoint-url and AWS_ENDPOINT_URL.")
    if not found:
        raise Refused(
            f"There is no stack {stack!r} in {where()}. Name yours with --stack, and check --region and --profile."
        )
    (described,) = found
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}
    return read_outputs(outputs)


def read_outputs(outputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs, one for each value: `OrdersSourceQueueUrl` for the value `SourceQueueUrl` of `OrdersRedriver`.

    If a construct wrote such an object, an output `LegacySourceQueueUrl` without `LegacyRedriveFunctionName` belongs to
    the app and names no queue of a re-driver.
    """
    told = {
        key.removesuffix(_OF_A_QUEUE): own
        for key, value in outputs.items()
        if key.endswith(_OF_A_QUEUE) and (own := _object(value))
    }
    if not told:
        return dict(outputs)
    written = {prefix + _OF_A_QUEUE for prefix in told}
    others = {
        key: value
        for key, value in outputs.items()
        if key not in written and not _is_of_the_app(key, outputs)
    }
    return others | {
        prefix + name: value for prefix, own in told.items() for name, value in own.items()
    }


def _is_of_the_app(key: str, outputs: Mapping[str, str]) -> bool:
    ends = next((one for one in (SOURCE, TARGETS, *LOCATIONS) if key.endswith(one)), None)
    return ends is not None and key.removesuffix(ends) + _MARK not in outputs


def beside(stack: str, outputs: Mapping[str, str]) -> tuple[str, ...]:
    """The other stacks of the app in this account and Region. The first stack names them."""
    return tuple(one for one in outputs.get(_STACKS, "").split() if one != stack)


def _object(text: str) -> dict[str, str] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and _MARK in found else None
