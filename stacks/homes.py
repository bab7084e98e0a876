"""Several accounts and Regions from one app: a list of queues is a home, and each home has a stack of its own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from constructs import Construct, Node

from redrive.errors import Fault, SettingsError
from smart_redriver.cdk.adopted_queues import QUEUES
from stacks.redriver_stack import NAME, RedriverStack, make_stack
from stacks.settings import Context, parse_context


def read_homes(node: Node) -> tuple[Context, ...]:
    """The context of each list in ``queues``; the one and only where there is one list, or none.

    Raises SettingsError listing the faults of all of them, with the file that each is in.
    """
    return parse_homes(node.get_all_context())


def parse_homes(values: Mapping[str, Any]) -> tuple[Context, ...]:
    """Like ``read_homes``, from a plain mapping."""
    files = _files(values.get(QUEUES))
    if len(files) < 2:
        return (parse_context(values),)
    homes: dict[str, Context] = {}
    faults = _one_file_twice(files)
    for file in dict.fromkeys(files):
        try:
            homes[file] = parse_context({**values, QUEUES: file})
        except SettingsError as error:
            faults += (replace(one, setting=f"{file}: {one.setting}") for one in error.faults)
    faults += _one_home_twice(homes)
    if faults:
        raise SettingsError(faults)
    return tuple(homes.values())


def make_stacks(scope: Construct, homes: Sequence[Context]) -> list[RedriverStack]:
    """A stack for each home, all of one name; in the app their ids tell them apart."""
    if len(homes) == 1:
        return [make_stack(scope, homes[0])]
    return [
        make_stack(scope, home, construct_id=f"{NAME}-{'-'.join(_place(home))}") for home in homes
    ]


def _files(given: object) -> list[str]:
    """The paths of a text separated by commas, or of a list of texts."""
    listed = given.split(",") if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return []
    return [one.strip() for one in listed if one.strip()]


def _one_file_twice(files: Sequence[str]) -> list[Fault]:
    return [
        Fault(setting=QUEUES, seen=file, accepted="each list once")
        for file, times in Counter(files).items()
        if times > 1
    ]


def _one_home_twice(homes: Mapping[str, Context]) -> list[Fault]:
    first: dict[tuple[str, str], str] = {}
    faults = []
    for file, home in homes.items():
        other = first.setdefault(_place(home), file)
        if other != file:
            accepted = f"a list for another account or Region than {other}"
            faults.append(Fault(setting=QUEUES, seen=file, accepted=accepted))
    return faults


def _place(home: Context) -> tuple[str, str]:
    """Region and account."""
    queue = home.queues[0]
    return queue.region, queue.account
