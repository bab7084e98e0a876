"""What every command has: the options that say whose queue, and an end with an exit code and no traceback."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit

#: A command: its session, then its own arguments and options by name.
Body = Callable[..., Exit]

DEFAULT_STACK = "SmartRedriver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options that all commands share say."""

    stack: str = DEFAULT_STACK
    queue: str | None = None
    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    json: bool = False
    yes: bool = False


#: How a command comes by its session; a test brings its own.
OpenSession = Callable[[Asked], Session]


def open_session(asked: Asked) -> Session:
    """The session of a person at a terminal, with the credentials of their environment."""
    from smart_redriver.oncall.stack.aws import Aws, Caller, connect_as
    from smart_redriver.oncall.terminal.terminal import Terminal

    caller = Caller(profile=asked.profile, region=asked.region, endpoint_url=asked.endpoint_url)
    return Session(
        aws=Aws(connect_as(caller)),
        terminal=Terminal(is_json=asked.json, assume_yes=asked.yes),
        stack=asked.stack,
        queue=asked.queue,
    )


def command(
    app: typer.Typer, *examples: str, name: str | None = None, changes: bool = False
) -> Callable[[Body], Body]:
    """Make `body` a command of `app`; one that `changes` something can be told `--yes`."""
    epilog = "\b\n" + "\n".join(["For example:", *(f"  {one}" for one in examples)])

    def register(body: Body) -> Body:
        def run(context: typer.Context, **given: Any) -> None:
            asked = Asked(**{one: given.pop(one) for one in Asked.__slots__ if one in given})
            session = (context.obj or open_session)(asked)
            raise typer.Exit(_ended(session, partial(body, session, **given)))

        parameters = list(_parameters(body, changes=changes))
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by Typer
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = body.__doc__
        app.command(name or body.__name__, epilog=epilog)(run)
        return body

    return register


def _ended(session: Session, act: Callable[[], Exit]) -> int:
    """The exit code of what was done, or of what kept it from being done, which is told."""
    try:
        return act()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except KeyboardInterrupt:
        session.terminal.warn("\nStopped. What was done stays done: `redrive history` tells.")
        return Exit.REFUSED
    except Exception as fault:  # the last place where a traceback can become a sentence
        from smart_redriver.oncall.terminal.failures import explain

        sentence, code = explain(fault)
        session.terminal.warn(sentence)
        return code


def _parameters(body: Body, *, changes: bool) -> Iterator[inspect.Parameter]:
    """The command's own parameters, then the shared ones."""
    yield _parameter("context", typer.Context, inspect.Parameter.empty)
    _, *own = inspect.signature(body, eval_str=True).parameters.values()
    for one in own:
        yield one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    shared = _SHARED | (_YES if changes else {})
    for name, annotation in shared.items():
        yield _parameter(name, annotation, getattr(_DEFAULTS, name))


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


_DEFAULTS = Asked()
_SHARED: dict[str, Any] = {
    "stack": Annotated[str, typer.Option(help="The stack that was deployed.")],
    "queue": Annotated[
        str | None, typer.Option(help="Which of the stack's queues, if it has several.")
    ],
    "profile": Annotated[str | None, typer.Option(help="AWS profile.")],
    "region": Annotated[str | None, typer.Option(help="AWS Region.")],
    "endpoint_url": Annotated[str | None, typer.Option(help="Where AWS is, for an emulator.")],
    "json": Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")],
}
_YES: dict[str, Any] = {"yes": Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]}
