"""Look around by hand: `python -m emulator up`, `advance SECONDS`, `down`.

`up` stays in the foreground until Ctrl-C or `down`; the others find it by its work directory.
"""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import threading
from pathlib import Path

from .driving import LocalAwsError, pass_time
from .process import REAL, LocalAws

_WORK_DIR = Path(tempfile.gettempdir()) / f"local-aws-{os.getuid()}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    parser.add_argument("--work-dir", type=Path, default=_WORK_DIR)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start a local AWS and show how to reach it")
    advance = commands.add_parser("advance", help="let virtual time pass")
    advance.add_argument("seconds", type=float)
    commands.add_parser("down", help="stop it")
    arguments = parser.parse_args()
    try:
        if arguments.command == "up":
            _up(arguments.work_dir)
        elif arguments.command == "advance":
            pass_time(arguments.work_dir, arguments.seconds)
        else:
            os.kill(int((arguments.work_dir / "pid").read_text()), signal.SIGTERM)
    except (LocalAwsError, FileNotFoundError, ProcessLookupError) as fault:
        sys.exit(f"emulator: {fault}")


def _up(work_dir: Path) -> None:
    ended = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: ended.set())
    with LocalAws(work_dir=work_dir, pace=REAL) as aws:
        pid_file = work_dir / "pid"
        pid_file.write_text(str(os.getpid()))
        print("In another shell, for `redrive`, `cdk` and any AWS tool:")
        print(f"  . {shlex.quote(str(aws.write_shell_file()))}")
        print(f"Log: {aws.log_file}. `python -m emulator advance 3600` lets an hour pass;")
        print("`python -m emulator down` stops it.", flush=True)
        ended.wait()
        pid_file.unlink()


if __name__ == "__main__":
    main()
