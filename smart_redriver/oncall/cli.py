"""The `redrive` command line, made from the verbs' declarations: options, help, examples and exit codes.

Every command has the options that name a stack and queue. A command ends with an exit code, never with a traceback.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from inspect import Parameter, Signature
from keyword import iskeyword
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from smart_redriver.oncall.terminal.exits import UNCHANGED, Exit, Misused
from smart_redriver.oncall.verbs.declarations import VERBS, Verb
from smart_redriver.oncall.verbs.options import Kind, Option, Side

if TYPE_CHECKING:
    from smart_redriver.engine.triage.ledger import Entry
    from smart_redriver.oncall.deployment.session import Session


#: Opens the session of a half-typed command, given Click's context.
Open = Callable[[Any], "Session"]
#: The candidates that begin with the text typed so far.
Offer = Callable[[Any, str], list[str]]


def offers(open_for: Open) -> dict[str, Offer]:
    """Candidates for completion, by the names of options and arguments."""
    ids = _offering(open_for, lambda one: (entry.original_id for entry in _entries(one)))
    return {
        "ids": ids,
        "message_id": ids,
        "cause": _offering(open_for, _causes),
        "parked_as": _reasons,
        "queue": _offering(open_for, lambda one: (each.place.queue for each in one.each_queue())),
    }


def _offering(open_for: Open, find: Callable[[Session], Iterable[str]]) -> Offer:
    def offer(ctx: Any, incomplete: str) -> list[str]:
        try:
            found = sorted(set(find(open_for(ctx))))
        except Exception:
            return []
        return [one for one in found if one.lower().startswith(incomplete.lower())]

    return offer


def _entries(session: Session) -> Iterable[Entry]:
    """The first page of the stuck letters. The modules that read it are loaded when they are asked."""
    stuck: Callable[..., Iterable[Entry]] = resolve_name(
        "smart_redriver.oncall.letters.ledger_scan:stuck_entries"
    )
    return stuck(session, may_go_on=lambda: False)


def _causes(session: Session) -> Iterable[str]:
    return (one.cause for one in _entries(session) if one.cause)


def _reasons(ctx: Any, incomplete: str) -> list[str]:
    """Reasons to park letters. Needs no call."""
    del ctx
    reasons: tuple[str, ...] = resolve_name("smart_redriver.oncall.letters.presentation:REASONS")
    return [one for one in reasons if one.startswith(incomplete.upper())]


DEFAULT_STACK = "SmartRedriver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The values of the options that all commands share."""

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


#: Opens a command's session. A test has its own.
OpenSession = Callable[[Asked], "Session"]


def open_session(asked: Asked) -> Session:
    """The session of a person at a terminal, with the credentials of their environment."""
    from smart_redriver.oncall.deployment.aws import Aws, Caller, Connect, connect_as
    from smart_redriver.oncall.deployment.deployment_file import FileConnect, is_file
    from smart_redriver.oncall.deployment.session import Session
    from smart_redriver.oncall.terminal.terminal import Terminal

    connect: Connect = connect_as(
        Caller(profile=asked.profile, region=asked.region, endpoint_url=asked.endpoint_url)
    )
    if is_file(asked.stack):
        connect = FileConnect(Path(asked.stack), connect)
    return Session(
        aws=Aws(connect),
        terminal=Terminal(
            is_json=asked.json, assume_yes=asked.yes, spared_stack=asked.spared_stack
        ),
        stack=asked.stack,
        queue=asked.queue,
    )


def _session_for(ctx: Any) -> Session:
    """The session of a command that is half typed."""
    shared = ("stack", "queue", "profile", "region", "endpoint_url")
    said = {name: ctx.params[name] for name in shared if ctx.params.get(name) is not None}
    opener: OpenSession = ctx.obj or open_session
    return opener(Asked(**said))


_OFFERS = offers(_session_for)
_shared = typer.Typer(add_completion=False)


@_shared.command()
def _looking(
    stack: Annotated[
        str, typer.Option(help="The stack that was deployed, or the file of a process.")
    ] = DEFAULT_STACK,
    queue: Annotated[
        str | None,
        typer.Option(
            help="One of the stack's or DLQ's queues, if there are several.",
            autocompletion=_OFFERS["queue"],
        ),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="AWS profile.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS Region.")] = None,
    endpoint_url: Annotated[
        str | None, typer.Option(help="Address of an emulator, instead of AWS.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="The result as JSON on standard output.")
    ] = False,
    full_names: Annotated[
        bool, typer.Option("--full-names", help="Show generated names in full.")
    ] = False,
) -> None:
    """Declare the options that every command shares; only their declaration is used."""


@_shared.command()
def _changing(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Declare the additional options of a command that changes something."""


_LOOKING, _CHANGING = (
    command.params
    for command in typer.main.get_command(_shared).commands.values()  # type: ignore[attr-defined]
)


_SHARED_OPTIONS = (*_LOOKING, *_CHANGING)


class Looking(TyperCommand):
    """A command with the shared options. Its function finds the session in ``context.obj`` and returns an `Exit`."""

    shared = tuple(_LOOKING)
    changes = False

    def __init__(self, *given: Any, params: list[Any], **more: Any) -> None:
        super().__init__(*given, params=[*params, *self.shared], **more)

    def invoke(self, ctx: Any) -> Any:
        """Open the session, run the command, end the process with its exit code."""
        typed = [(one, ctx.params[one.name]) for one in self.params]
        asked = Asked(**{one.name: ctx.params.pop(one.name) for one in self.shared})
        ctx.obj = (ctx.obj or open_session)(asked)
        act = super().invoke

        def checked() -> Any:
            _refuse_blank(typed)
            return act(ctx)

        try:
            raise typer.Exit(_ended(ctx.obj, checked, changes=self.changes))
        finally:
            ctx.obj.connections.close()


def _refuse_blank(typed: Iterable[tuple[Any, Any]]) -> None:
    """Refuse texts that say nothing: an unset shell variable would count as an option left out. Raises Misused."""
    for one, value in typed:
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and not text.strip():
                name = one.metavar if one.param_type_name == "argument" else one.opts[0]
                raise Misused(f"{name} {text!r} is empty: leave it out, or give a text.")


class Changing(Looking):
    """A command that changes something. It asks first, unless `--yes` is given."""

    shared = _SHARED_OPTIONS
    changes = True


def _end_of_help(verb: Verb) -> str:
    told = f"With --json: {verb.answer}\n\n" if verb.answer else ""
    return f"{told}\b\n" + "\n".join(["For example:", *(f"  {one}" for one in verb.examples)])


def _ended(session: Session, act: Callable[[], Exit], *, changes: bool) -> int:
    """Act, and return the exit code: that of the result, or that of the fault, which is reported.

    If nobody reads the output any more, as after `| head`, a person who only looks has seen enough; a command that
    `changes` something stopped where it was, perhaps before its first letter.
    """
    code = Exit.REFUSED if changes else Exit.DONE
    try:
        code = act()
        session.terminal.out.flush()
        return code
    except BrokenPipeError:
        _give_up_output()
        return code
    except KeyboardInterrupt:
        done = "What was done stays done: `redrive history` tells."
        changed = done if session.terminal.has_begun else UNCHANGED
        session.terminal.warn(f"\nStopped. {changed}")
        return Exit.REFUSED
    except Exception as fault:  # the last place where a traceback can become a sentence
        from smart_redriver.oncall.terminal.exits import explain

        if isinstance(fault, OSError):
            _give_up_output()
        is_unchanged = changes and not session.terminal.has_begun
        sentence, code = explain(fault, is_unchanged=is_unchanged)
        session.terminal.warn(sentence)
        return code


def _give_up_output() -> None:
    """Discard output that could not be written, or Python would complain once more while it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_TYPES: dict[Kind, Any] = {
    Kind.TEXT: str,
    Kind.NUMBER: float,
    Kind.WHOLE: int,
    Kind.FLAG: bool,
    Kind.TEXTS: list[str],
    Kind.FILE: Path,
}


def add_command(app: typer.Typer, verb: Verb) -> None:
    """Add a verb to the app."""
    options = {_python_name(one): one for one in verb.options_on(Side.COMMAND)}

    def run(context: typer.Context, **typed: Any) -> Exit:
        told = {options[name].name: _plain(value) for name, value in typed.items()}
        given = {name: value for name, value in told.items() if value is not None}
        return verb.run(context.obj, given)

    # Required parameters come first, as in any signature.
    sorted_options = sorted(options.items(), key=lambda one: not one[1].is_needed)
    parameters = [Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [_parameter(name, one) for name, one in sorted_options]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = verb.about + verb.typed
    kind = Changing if verb.changes else Looking
    app.command(verb.name, cls=kind, epilog=_end_of_help(verb))(run)


def _python_name(option: Option) -> str:
    """A name that is not a Python keyword."""
    return f"{option.name}_" if iskeyword(option.name) else option.name


def _parameter(name: str, option: Option) -> Parameter:
    typed: Any = _TYPES[option.kind]
    default: Any = Parameter.empty if option.is_needed else option.default
    if option.choices:
        choices: Any = Enum
        typed = choices(name, {one: one for one in option.choices})
        default = typed(option.default)
    if default is None:
        typed = typed | None
    told: dict[str, Any] = {"help": option.about, "metavar": option.metavar}
    if option.name in _OFFERS:
        told["autocompletion"] = _OFFERS[option.name]
    if option.kind is Kind.FILE:
        told["dir_okay"] = False
    if option.kind in (Kind.NUMBER, Kind.WHOLE):
        told |= {"min": option.least, "max": option.most}
    if option.kind is Kind.NUMBER:
        told["callback"] = _finite
    if option.read is not None:
        told["parser"] = _parser(option.read)
    kind = (
        typer.Argument(**told)
        if option.is_argument
        else typer.Option(option.flags or f"--{option.name.replace('_', '-')}", **told)
    )
    return Parameter(
        name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[typed, kind]
    )


def _parser(read: Callable[[str], str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        try:
            return read(text)
        except Misused as fault:
            raise typer.BadParameter(str(fault)) from None

    return parse


def _finite(value: float | None) -> float | None:
    """Accept only finite numbers: to Python, `inf` and `nan` are numbers, too."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a usable number.")
    return value


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


_ABOUT = """See, understand and act on the dead letters of a deployed smart re-driver.

Only replay, edit, undo, park, delete, import, pause, resume, open, close, drain and run change anything.
They show a plan and ask first. Exit codes: 0 done, 1 refused or failed, 2 usage, 3 partly done.
"""


class Verbs(TyperGroup):
    """All commands. Options come after the command; anyone who types one before it gets a usage error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command. Raises a usage error."""
        shared = {flag for one in _SHARED_OPTIONS for flag in one.opts}
        first = next(iter(args), "").partition("=")[0]
        if first in shared:
            ctx.fail(f"{first} comes after the command: `redrive COMMAND {first} ...`.")
        return super().parse_args(ctx, args)


# Rich makes help prettier and three times as slow.
app = typer.Typer(
    name="redrive",
    cls=Verbs,
    help=_ABOUT,
    epilog="\b\nFor example:\n  redrive status\n  redrive parked\n  redrive replay --all",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(version("smart-redriver"))
        raise typer.Exit


@app.callback()
def _redrive(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


for verb in VERBS:
    add_command(app, verb)
