"""`python -m demo`: a local AWS, the real `cdk deploy`, the story, and an account that adds up.

Exits 0 when it adds up, 1 when it does not, 2 when there was nothing to play on, 130 on Ctrl-C.
"""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from emulator import cdk
from emulator.driving import LocalAwsError
from emulator.process import REAL, SLOW, LocalAws

from . import postgres
from .stack import DeployedStack, deploy
from .story import DEPLOYED_WITH, Story
from .summary import add_up
from .view import open_view, print_summary


def main() -> int:
    """Play the story once; the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the local AWS running")
    parser.add_argument(
        "story",
        nargs="?",
        choices=("sqs", "postgres"),
        default="sqs",
        help="what the letters are in",
    )
    asked = parser.parse_args()
    keep, console = asked.keep, Console()
    if asked.story == "postgres":
        return 0 if postgres.play(console) else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    aws = LocalAws(pace=REAL if keep else SLOW)
    is_kept = False
    try:
        aws.start(ends_with_this_process=not keep)
        stack = _deploy(aws, console)
        is_good = _play(stack, console)
        if keep:
            _tell_how_to_look_around(stack, console)
            is_kept = True
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


def _deploy(aws: LocalAws, console: Console) -> DeployedStack:
    with _timed(console, "cdk bootstrap, on a local AWS"):
        cdk.bootstrap(aws)
    with _timed(console, "cdk deploy, with a consumer that can be made to fail"):
        return deploy(aws, **DEPLOYED_WITH)


def _play(stack: DeployedStack, console: Console) -> bool:
    with open_view(console) as view:
        played = Story(stack, view.show).play()
    summary = add_up(played, stack)
    print_summary(console, summary)
    return not summary.problems


@contextmanager
def _timed(console: Console, what: str) -> Iterator[None]:
    started = time.monotonic()
    console.print(f"{what} ...", end=" ", highlight=False)
    yield
    console.print(f"{time.monotonic() - started:.0f} s", highlight=False)


def _tell_how_to_look_around(stack: DeployedStack, console: Console) -> None:
    work_dir = shlex.quote(str(stack.aws.work_dir))
    python = shlex.quote(sys.executable)
    lines = [
        "",
        "Still running, and time passes there as it does here. For `redrive`, `cdk` and any AWS tool, in a shell:",
        f"  . {shlex.quote(str(stack.aws.write_shell_file()))}",
        "Then for example `redrive status`, `redrive parked`, `redrive history`.",
        *(f"  # {name}: {value}" for name, value in stack.outputs.items()),
        f"  # log of the emulator: {stack.aws.log_file}",
        "Let an hour pass, and stop it:",
        f"  {python} -m emulator --work-dir {work_dir} advance 3600",
        f"  kill {stack.aws.pid}; rm -r {work_dir}",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
