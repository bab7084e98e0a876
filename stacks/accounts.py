"""Several accounts, Regions and stacks from one app: where its queues are, each re-driver is,
in the stack that its queue names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from constructs import Construct, Node

from smart_redriver.cdk.queue_entry import QUEUES, STACK, Adopted
from smart_redriver.engine.errors import Fault, SettingsError
from stacks.redriver_stack import RedriverStack, make_stack
from stacks.settings import NAME, Context, parse_context

#: Region and account; nothing for a stack that may be deployed anywhere.
_Place = tuple[str, ...]


def read_homes(node: Node) -> tuple[Context, ...]:
    """A context for each stack: of the queues of one list, account and Region that name the same stack.

    Raises SettingsError listing the faults of all lists, where there are several with the file that each is in.
    """
    return parse_homes(node.get_all_context())


def parse_homes(values: Mapping[str, Any]) -> tuple[Context, ...]:
    """Like ``read_homes``, from a plain mapping."""
    files = _files(values.get(QUEUES))
    faults = _one_file_twice(files)
    found: list[tuple[str, Context]] = []
    for file in dict.fromkeys(files):
        try:
            listed = parse_context({**values, QUEUES: file})
            found += ((file, one) for one in _split(listed))
        except SettingsError as error:
            faults += (replace(one, setting=f"{file}: {one.setting}") for one in error.faults)
    homes = [one for _, one in found] if files else list(_split(parse_context(values)))
    faults += [*_one_stack_twice(found), *_same_names(found), *_first_ones_missing(homes)]
    if faults:
        raise SettingsError(faults)
    return tuple(homes)


def make_stacks(scope: Construct, homes: Sequence[Context]) -> list[RedriverStack]:
    """A stack for each home; in the app their ids tell those of one name apart."""
    are_apart = len({_place(one) for one in homes}) > 1
    return [
        make_stack(
            scope,
            home,
            construct_id="-".join([home.stack_name, *(_place(home) if are_apart else ())]),
            beside=[one.stack_name for one in homes if _place(one) == _place(home)],
        )
        for home in homes
    ]


def _files(given: object) -> list[str]:
    """The paths of a text separated by commas, or of a list of texts; none where there is only one."""
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return []
    paths = [one.strip() for one in listed if one.strip()]
    return paths if len(paths) > 1 else []


def _one_file_twice(files: Sequence[str]) -> list[Fault]:
    return [
        Fault(setting=QUEUES, seen=file, accepted="each list once")
        for file, times in Counter(files).items()
        if times > 1
    ]


def _split(context: Context) -> Iterator[Context]:
    """The context once for each stack that its queues need."""
    groups: dict[tuple[_Place, str], list[Adopted]] = {}
    for queue in context.queues:
        groups.setdefault(((queue.region, queue.account), queue.stack), []).append(queue)
    for (_, stack), queues in groups.items():
        yield replace(context, queues=tuple(queues), stack=stack)
    if not groups:
        yield context


def _one_stack_twice(found: Sequence[tuple[str, Context]]) -> Iterator[Fault]:
    """Two lists for one stack: each would take the other's queues out of it."""
    first: dict[tuple[_Place, str], str] = {}
    for file, home in found:
        other = first.setdefault((_place(home), home.stack), file)
        if other != file:
            accepted = f"a list for another account, Region or `{STACK}` than {other}"
            yield Fault(setting=QUEUES, seen=file, accepted=accepted)


def _same_names(found: Sequence[tuple[str, Context]]) -> Iterator[Fault]:
    """A fault for each name or queue that two lists for one account and Region have: it may be there once."""
    first: dict[tuple[_Place, str], str] = {}
    for file, home in found:
        for queue in home.queues:
            for seen in (queue.id.lower(), *queue.places):
                other = first.setdefault((_place(home), seen), file)
                if other != file:
                    accepted = f"a name and queues that {other} has not"
                    yield Fault(setting=f"{file}: {QUEUES}", seen=queue.name, accepted=accepted)
                    break


def _first_ones_missing(homes: Sequence[Context]) -> Iterator[Fault]:
    """Several stacks in one place, none of them the one that the command asks for the others."""
    for place in dict.fromkeys(map(_place, homes)):
        stacks = [one.stack for one in homes if _place(one) == place]
        if len(stacks) > 1 and "" not in stacks:
            accepted = f"some queues of {'/'.join(place)} without one, since `redrive` finds the others by {NAME}"
            yield Fault(setting=STACK, seen=stacks, accepted=accepted)


def _place(home: Context) -> _Place:
    return (home.queues[0].region, home.queues[0].account) if home.queues else ()
