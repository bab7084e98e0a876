"""The re-drivers of a stack, by its outputs, and which of them is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from redrive.deployment import Deployment
from redrive.targets import Origin, Target
from smart_redriver.oncall.stack.asking import Asking
from smart_redriver.oncall.stack.deployed import SOURCE, deployment_of
from smart_redriver.oncall.stack.outputs import (
    DATABASE,
    TARGETS,
    beside,
    find_outputs,
    read_outputs,
)
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.names import shortened

#: A sentence with two hundred names in it is read by nobody.
_NAMES_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One queue's re-driver: its queues and table, and what else the stack says of it.

    `prefix` is what the stack puts before the names of this queue's own outputs and resources; a stack of one
    queue has none.
    """

    stack: str
    deployment: Deployment
    prefix: str = ""
    function: str | None = None
    log_group: str | None = None
    mode: str | None = None
    warning_topic: str | None = None
    paging_topic: str | None = None

    @property
    def queue(self) -> str:
        """The name of its first source queue or target, by which lease and audit trail know it."""
        return self.deployment.queue_name

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all source queues that share its DLQ, or of its targets, the first one first: each has a circuit."""
        return self.deployment.source_names

    @property
    def origin(self) -> Origin:
        """What fills its DLQ."""
        return self.deployment.origin

    def target(self, name: str) -> Target | None:
        """The target of this name; None for a source queue."""
        return next((one for one in self.deployment.targets if one.name == name), None)

    @property
    def alarms_known_as(self) -> tuple[str, ...]:
        """What the names of its alarms begin with. A stack of one queue made that queue, and gave them its own name."""
        first, *further = self.sources
        return (first if self.prefix else self.stack, *further)


def find_places(
    cloudformation: Any, stack: str, where: Callable[[], str], warn: Callable[[str], None]
) -> tuple[Place, ...]:
    """The re-driver of each queue of `stack`, and of the stacks that it tells of, by name.

    What can't be read of the others is told by `warn`. Raises Refused, saying `where` there is no such stack, and CallFailed.
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
        for ends in (SOURCE, TARGETS, DATABASE)
        for key in outputs
        if key.endswith(ends)
    )
    if not prefixes:
        raise Refused(
            f"Stack {stack!r} has no output {SOURCE}: it is no smart re-driver. Name yours with --stack."
        )
    return tuple(_place(stack, outputs, prefix) for prefix in prefixes)


def choose_places(places: Sequence[Place], queue: str | None) -> tuple[Place, ...]:
    """Those that `queue` names: by the name in the list of queues or by a source queue's; all for None.

    Raises Refused when it names none.
    """
    if queue is None:
        return tuple(places)
    wanted = _plain(queue)
    meant = tuple(
        one for one in places if wanted in {_plain(name) for name in (one.prefix, *_spoken(one))}
    )
    if not meant:
        raise Refused(
            f"Stack {places[0].stack!r} serves no queue {queue!r}. It serves: {_names(places)}."
        )
    return meant


def choose_place(places: Sequence[Place], queue: str | None) -> Place:
    """The one that `queue` names; the only one for None. Raises Refused when none or several could be meant."""
    meant = choose_places(places, queue)
    if len(meant) > 1:
        raise Refused(
            f"Stack {places[0].stack!r} serves several queues. Choose one with --queue: {_names(places)}."
        )
    return meant[0]


def choose_source(place: Place, queue: str | None) -> str:
    """The source queue of `place` that `queue` names; the only one, if it has one. Raises Refused otherwise."""
    wanted = _plain(queue or "")
    meant = [
        name
        for name in place.sources
        if wanted in {_plain(name), _plain(shortened(name, place.stack))} or len(place.sources) == 1
    ]
    if not meant:
        raise Refused(
            f"Several {'targets' if place.deployment.targets else 'queues'} share this DLQ, each with a circuit of its own. "
            f"Choose one with --queue: {', '.join(place.sources)}."
        )
    return meant[0]


def _spoken(place: Place) -> list[str]:
    """The names of its source queues, in full and as people are shown them."""
    return [*place.sources, *(shortened(name, place.stack) for name in place.sources)]


def _plain(name: str) -> str:
    """The stack writes `my-orders` as MyOrders."""
    return name.replace("-", "").lower()


def _names(places: Sequence[Place]) -> str:
    names = [place.prefix or place.queue for place in places]
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
        warning_topic=output("WarningTopicArn"),
        paging_topic=output("PagingTopicArn"),
    )
