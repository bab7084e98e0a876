"""`redrive status` and `redrive watch`: one screen in plain words."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.accounts import look_around, look_here, overview_screen
from smart_redriver.oncall.status.gathering import take_snapshots
from smart_redriver.oncall.status.page import facts_of
from smart_redriver.oncall.status.snapshot import Snapshot
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import folded, printable
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.terminal.words import stamp

_WIDTH = 12
#: Up to this many queues get a page each.
MOST_PAGES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The extent of the output. `homes` names accounts and Regions, which get only an overview."""

    links: bool = False
    full_names: bool = False
    overview: bool = False
    homes: tuple[str, ...] = ()


def status(session: Session, shown: Shown) -> Exit:
    """Print one snapshot of each queue, or all at a glance if they would fill more than a screen.

    Raises CallFailed and Refused.
    """
    if shown.overview or shown.homes:
        return overview(session, shown.homes)
    queues = session.each_queue()
    if len(queues) > MOST_PAGES and not session.terminal.is_json:
        return overview(session)
    snapshots = take_snapshots(queues)
    _tell(session.terminal, _pages(session.terminal, snapshots, shown), _to_json(snapshots))
    return _exit([one.was_read for one in snapshots])


def _exit(was_read: Sequence[Sequence[bool]]) -> Exit:
    """The exit code of a look at queues, by whether the DLQ and the circuits of each could be read."""
    if all(map(all, was_read)):
        return Exit.DONE
    return Exit.PARTLY if any(map(any, was_read)) else Exit.REFUSED


def overview(session: Session, homes: Sequence[str] = ()) -> Exit:
    """Print all queues at a glance, in several homes if they are named. Raises CallFailed, Refused and Misused.

    A home that can't be reached is reported in one line. The others are still looked at.
    """
    found = look_around(session, homes) if homes else [look_here(session)]
    told = {"homes": [one.to_json() for one in found]}
    _tell(session.terminal, overview_screen(session.terminal, found), told)
    return _exit([read for home in found for read in home.was_read])


def watch(
    session: Session, shown: Shown, *, every_seconds: float, times: int | None = None
) -> Exit:
    """Print it again and again until Ctrl-C, or `times` times. Raises CallFailed and Refused."""
    queues = session.each_queue()
    at_a_glance = len(queues) > MOST_PAGES and not session.terminal.is_json
    with suppress(KeyboardInterrupt), _show(session.terminal) as show:
        for count in itertools.count(1):
            if at_a_glance:
                show(overview_screen(session.terminal, [look_here(session)]), None)
            else:
                snapshots = take_snapshots(queues)
                show(_pages(session.terminal, snapshots, shown), _to_json(snapshots))
            if count == times:
                break
            session.sleep(every_seconds)
    return Exit.DONE


@contextmanager
def _show(terminal: Terminal) -> Iterator[Callable[[str, Any], None]]:
    """Show screens: on a terminal, each replaces the last one; elsewhere, it follows the last one."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=terminal.out)
    if terminal.is_json or not console.is_terminal:
        yield partial(_tell, terminal)
        return
    with Live(console=console, auto_refresh=False, screen=True) as live:
        yield lambda screen, _: live.update(Text.from_ansi(terminal.spare(screen)), refresh=True)


def _tell(terminal: Terminal, screen: str, value: Any) -> None:
    terminal.result(value)
    terminal.say(screen)


def _to_json(snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    return {"queues": [one.to_json() for one in snapshots]}


def _pages(terminal: Terminal, snapshots: Sequence[Snapshot], shown: Shown) -> str:
    return "\n\n".join("\n".join(screen(terminal, one, shown)) for one in snapshots)


def screen(terminal: Terminal, snapshot: Snapshot, shown: Shown) -> Iterator[str]:
    """A snapshot as lines, as wide as the terminal is."""
    yield f"{snapshot.name}, {stamp(snapshot.at)}"
    yield ""
    for fact in facts_of(snapshot, with_full_names=shown.full_names):
        head = f"{fact.name + ':' if fact.name else '':<{_WIDTH}} "
        first, *more = _wrapped(terminal, printable(fact.text))
        yield head + terminal.paint(first, fact.tone)
        for line in more:
            yield " " * len(head) + terminal.paint(line, fact.tone)
    unread: defaultdict[str, list[str]] = defaultdict(list)
    for what, why in snapshot.unknown.items():
        unread[why].append(what)
    for why, some in unread.items():
        yield f"{'Not read:':<{_WIDTH}} {', '.join(some)} ({why})"
    if shown.links:
        yield ""
        for what, address in snapshot.links.items():
            yield f"{what}: {address}"


def _wrapped(terminal: Terminal, text: str) -> list[str]:
    """The text in lines that fit beside the names; one line if there is no limit."""
    spared = terminal.spare(text)
    if terminal.columns is None:
        return [spared]
    return folded(spared, terminal.columns - _WIDTH - 1).split("\n")


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `status`."""
    shown = Shown(
        links=given["links"],
        full_names=session.terminal.spared_stack is None,
        overview=given["overview"],
        homes=tuple(given.get("home", ())),
    )
    return status(session, shown)


def act_live(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `watch`."""
    shown = Shown(links=given["links"], full_names=session.terminal.spared_stack is None)
    return watch(session, shown, every_seconds=given["every"], times=given.get("times"))
