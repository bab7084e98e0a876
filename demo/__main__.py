"""`python -m demo`: a local AWS, the real `cdk deploy`, the story, and an account that adds up.

Exits 0 when it adds up, 1 when it does not, 2 when there was nothing to play on, 130 on Ctrl-C.
With `--incident` it stops in the middle of one, leaves it to you, and says when it is solved.
"""

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.live import Live
from rich.text import Text

from emulator import cdk
from emulator.driving import LocalAwsError
from emulator.process import REAL, SLOW, LocalAws

from . import elsewhere
from .incidents import INCIDENTS, Incident, Practice, context_of, mend, pages
from .stack import DeployedStack, deploy, deployment_of
from .story import DEPLOYED_WITH, Stage, Story
from .summary import add_up
from .view import PlainView, open_view, print_summary

#: While a person works on an incident: a cool-down of minutes takes half a minute.
_BRISK = 10.0
_POLL_SECONDS = 0.2


def main() -> int:
    """Play the story once; the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the local AWS running")
    parser.add_argument("--incident", choices=INCIDENTS, help="leave this one to you")
    parser.add_argument(
        "story",
        nargs="?",
        choices=("sqs", "postgres", "kafka", "mend"),
        default="sqs",
        help="what the letters are in; `mend` ends an incident as the consumer's owner would",
    )
    asked = parser.parse_args()
    keep, console = asked.keep, Console()
    if asked.story == "postgres":
        return 0 if elsewhere.play_on_postgres(console) else 1
    if asked.story == "kafka":
        return 0 if elsewhere.play_on_kafka(console) else 1
    if asked.story == "mend":
        return _mend(console)
    if asked.incident:
        return _on_local_aws(
            console, _BRISK, lambda aws: _practise(aws, asked.incident, console, keep=keep)
        )
    pace = REAL if keep else SLOW
    return _on_local_aws(console, pace, lambda aws: _tell(aws, console, keep=keep), keep=keep)


def _on_local_aws(
    console: Console, pace: float, play: Callable[[LocalAws], bool], *, keep: bool = False
) -> int:
    """Start it, play, and stop it, unless it is to be kept and nothing went wrong; the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    aws = LocalAws(pace=pace)
    is_kept = False
    try:
        aws.start(ends_with_this_process=not keep)
        is_good = play(aws)
        is_kept = keep
    except KeyboardInterrupt:
        console.print("\nstopped")
        return 128 + signal.SIGINT
    except (LocalAwsError, cdk.CdkError) as fault:
        console.print(str(fault), style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    finally:
        if not is_kept:
            aws.stop()
    return 0 if is_good else 1


def _deploy(aws: LocalAws, console: Console, context: Mapping[str, str]) -> DeployedStack:
    log = cdk.log_of(aws.work_dir, "bootstrap")
    with _timed(console, "cdk bootstrap, on a local AWS", log):
        cdk.bootstrap(aws)
    log = cdk.log_of(deployment_of(aws), "deploy")
    with _timed(console, "cdk deploy, with a consumer that can be made to fail", log):
        return deploy(aws, **context)


def _tell(aws: LocalAws, console: Console, *, keep: bool) -> bool:
    """The story; whether it adds up."""
    stack = _deploy(aws, console, DEPLOYED_WITH)
    with open_view(console) as view:
        played = Story(stack, view.show).play()
    summary = add_up(played, stack)
    print_summary(console, summary)
    if keep:
        _tell_how_to_look_around(stack, console)
    else:
        _say(console, "Now you: make demo INCIDENT=payments, or outage, poison, overload.")
    return not summary.problems


def _practise(aws: LocalAws, name: str, console: Console, *, keep: bool) -> bool:
    """An incident, left to a person; whether it was solved. On a terminal, and if kept, it runs on then."""
    incident = INCIDENTS[name]
    stack = _deploy(aws, console, context_of(incident))
    with open_view(console) as view:
        stage = Stage(stack, view.show)
        practice = Practice(incident, stage)
        is_reached = practice.reach()
    if not is_reached:
        _say(console, "", practice.why_not_reached())
        return False
    end = "Ctrl-C" if console.is_terminal else f"`kill {os.getpid()}`" if keep else None
    _tell_the_incident(stack, console, incident, end)
    stage.chapter = "You are on call"
    stage.watch, stage.pass_minute = PlainView(console).show, lambda: _wait_a_minute(aws)
    began = stack.now()
    for _ in practice.go_on():
        pass
    took = (stack.now() - began) / timedelta(minutes=1)
    _say(
        console,
        "",
        f"Solved after {took:.0f} minutes of the incident's time: nothing waits, and each order was processed, "
        "or deleted by you.",
        f"See `redrive audit` and `redrive history`: it runs on until {end}."
        if end
        else "It ends here: without a terminal nothing runs on. With KEEP=1 it does.",
        f"Next: make demo INCIDENT={_next_of(name)}",
    )
    if end:
        with suppress(KeyboardInterrupt):
            Event().wait()
    return True


def _next_of(name: str) -> str:
    """The incident after this one; after the last the first."""
    names = [*INCIDENTS]
    return names[(names.index(name) + 1) % len(names)]


def _wait_a_minute(aws: LocalAws) -> None:
    """Until a virtual minute has passed by itself."""
    until = aws.clock.now() + 60
    while aws.clock.now() < until:
        time.sleep(_POLL_SECONDS)


def _mend(console: Console) -> int:
    try:
        mend()
    except LookupError as fault:
        _say(console, f"demo: {fault}")
        return 2
    _say(console, "The consumer is well again. The re-driver does not know it yet.")
    return 0


class _Underway:
    """A line about the work under way, for how long, and the last line of its log: on a terminal it moves."""

    def __init__(self, what: str, log: Path) -> None:
        self.what, self._log, self._started = what, log, time.monotonic()

    @property
    def lasts(self) -> str:
        return f"{time.monotonic() - self._started:.0f} s"

    def __rich__(self) -> Text:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        last = text.strip().rpartition("\n")[2]
        return Text(f"{self.what} ... {self.lasts}\n  {last}", no_wrap=True, overflow="ellipsis")


@contextmanager
def _timed(console: Console, what: str, log: Path) -> Iterator[None]:
    underway = _Underway(what, log)
    if console.is_terminal:
        with Live(underway, console=console, transient=True):
            yield
        console.print(f"{what} ...", end=" ", highlight=False)
    else:
        console.print(f"{what} ...", end=" ", highlight=False)
        yield
    console.print(underway.lasts, highlight=False)


def _tell_the_incident(
    stack: DeployedStack, console: Console, incident: Incident, end: str | None
) -> None:
    ringing = pages(stack)
    _say(
        console,
        "",
        f"It is three in the morning. {incident.title}.",
        *(f"  ALARM  {one}" for one in ringing),
        f"Its owner says: {incident.owner}",
        "",
        "In another shell, here (docs/oncall.md, docs/runbook.md):",
        f"  . {shlex.quote(str(stack.aws.write_shell_file()))}",
        "  redrive status      redrive causes      redrive console",
        "Ten minutes pass in one. This one watches until nothing waits, "
        + (f"and runs on; {end} ends it all." if end else "and then ends it all."),
    )


def _tell_how_to_look_around(stack: DeployedStack, console: Console) -> None:
    work_dir = shlex.quote(str(stack.aws.work_dir))
    python = shlex.quote(sys.executable)
    _say(
        console,
        "",
        "Still running, and time passes there as it does here. For `redrive`, `cdk` and any AWS tool, in a shell:",
        f"  . {shlex.quote(str(stack.aws.write_shell_file()))}",
        "Then for example `redrive status`, `redrive parked`, `redrive history`.",
        *(f"  # {name}: {value}" for name, value in stack.outputs.items()),
        f"  # log of the emulator: {stack.aws.log_file}",
        "Let an hour pass, and stop it:",
        f"  {python} -m emulator --work-dir {work_dir} advance 3600",
        f"  kill {stack.aws.pid}; rm -r {work_dir}",
    )


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
