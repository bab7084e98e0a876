"""What every command has: the options that say whose queue, and an end with an exit code and no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from smart_redriver.oncall.commands.options import (
    Cause,
    Contains,
    Error,
    ParkedAs,
    Since,
    Until,
    Where,
)
from smart_redriver.oncall.terminal.exits import Exit

if TYPE_CHECKING:
    from smart_redriver.oncall.letters.choice import Filter
    from smart_redriver.oncall.stack.session import Session

DEFAULT_STACK = "SmartRedriver"

#: Where a command's context keeps the filters that were typed.
_FILTERS = "smart_redriver.filters"
#: And whether full names were asked for.
FULL_NAMES = "smart_redriver.full_names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options that all commands share say."""

    stack: str = DEFAULT_STACK
    queue: str | None = None
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    json: bool = False
    full_names: bool = False
    yes: bool = False

    @property
    def spared_stack(self) -> str | None:
        """The stack whose names are shown without their hashes."""
        return None if self.full_names else self.stack


#: How a command comes by its session; a test brings its own.
OpenSession = Callable[[Asked], "Session"]


def open_session(asked: Asked) -> Session:
    """The session of a person at a terminal, with the credentials of their environment."""
    from smart_redriver.oncall.stack.aws import Aws, Caller, connect_as
    from smart_redriver.oncall.stack.session import Session
    from smart_redriver.oncall.terminal.terminal import Terminal

    caller = Caller(profile=asked.profile, region=asked.region, endpoint_url=asked.endpoint_url)
    return Session(
        aws=Aws(connect_as(caller)),
        terminal=Terminal(
            is_json=asked.json, assume_yes=asked.yes, spared_stack=asked.spared_stack
        ),
        stack=asked.stack,
        queue=asked.queue,
    )


_shared = typer.Typer(add_completion=False)


@_shared.command()
def _looking(
    stack: Annotated[str, typer.Option(help="The stack that was deployed.")] = DEFAULT_STACK,
    queue: Annotated[
        str | None,
        typer.Option(help="Which of the stack's queues, or of a DLQ's, if there are several."),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="AWS profile.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS Region.")] = None,
    endpoint_url: Annotated[str | None, typer.Option(help="Where AWS is, for an emulator.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="The result as JSON on standard output.")
    ] = False,
    full_names: Annotated[
        bool, typer.Option("--full-names", help="Names as CloudFormation made them, uncut.")
    ] = False,
) -> None:
    """Declare the options that every command shares; only their declaration is used."""


@_shared.command()
def _changing(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Declare what a command that changes something takes beside them."""


@_shared.command()
def _choosing(
    contains: Contains = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    parked_as: ParkedAs = None,
    error: Error = None,
    cause: Cause = None,
) -> None:
    """Declare the filters that a command about many letters takes."""


_LOOKING, _CHANGING, _CHOOSING = (
    command.params
    for command in typer.main.get_command(_shared).commands.values()  # type: ignore[attr-defined]
)


class Looking(TyperCommand):
    """A command with the shared options. Its function finds the session in ``context.obj`` and returns an `Exit`."""

    shared = tuple(_LOOKING)
    filters: tuple[Any, ...] = ()
    #: How it ends when nobody reads it any more, as after `| head`: who only looked has seen enough.
    unread = Exit.DONE

    def __init__(self, *given: Any, params: list[Any], **more: Any) -> None:
        super().__init__(*given, params=[*params, *self.filters, *self.shared], **more)

    def invoke(self, ctx: Any) -> Any:
        """Open the session, run the command, end the process with its exit code."""
        asked = Asked(**{one.name: ctx.params.pop(one.name) for one in self.shared})
        ctx.obj = (ctx.obj or open_session)(asked)
        ctx.meta[FULL_NAMES] = asked.full_names
        ctx.meta[_FILTERS] = {one.name: ctx.params.pop(one.name) for one in self.filters}
        try:
            raise typer.Exit(_ended(ctx.obj, partial(super().invoke, ctx), self.unread))
        finally:
            ctx.obj.databases.close()


class Changing(Looking):
    """A command that changes something, and asks before it does unless it is told `--yes`."""

    shared = (*_LOOKING, *_CHANGING)
    unread = Exit.REFUSED  # it was broken off where it was, perhaps before its first letter


class LookingAtMany(Looking):
    """A command that takes filters, too: `filter_of` reads them."""

    filters = tuple(_CHOOSING)


class ChangingMany(Changing):
    """A command that takes filters, too: `filter_of` reads them."""

    filters = tuple(_CHOOSING)


def filter_of(context: typer.Context) -> Filter:
    """The letters that the filters let through. Raises Misused."""
    from smart_redriver.oncall.letters.choice import read_filter

    return read_filter(context.obj.clock(), **context.meta[_FILTERS])


def new_file(context: typer.Context, what: str) -> Path:
    """A file for letters, named by what was done to them and when."""
    return Path(f"{what}-{context.obj.clock():%Y%m%dT%H%M%SZ}.jsonl")


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\n" + "\n".join(["For example:", *(f"  {one}" for one in lines)])


def _ended(session: Session, act: Callable[[], Exit], unread: Exit) -> int:
    """The exit code of what was done, or of what kept it from being done, which is told."""
    code = unread
    try:
        code = act()
        session.terminal.out.flush()
        return code
    except BrokenPipeError:
        _give_up_output()
        return code
    except KeyboardInterrupt:
        session.terminal.warn("\nStopped. What was done stays done: `redrive history` tells.")
        return Exit.REFUSED
    except Exception as fault:  # the last place where a traceback can become a sentence
        from smart_redriver.oncall.terminal.failures import explain

        if isinstance(fault, OSError):
            _give_up_output()
        sentence, code = explain(fault)
        session.terminal.warn(sentence)
        return code


def _give_up_output() -> None:
    """Let go of what could not be written, or Python would complain once more while it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
