"""`redrive console` in a process of its own, as a person starts and ends it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def console(environment: Mapping[str, str], folder: Path, *options: str) -> Iterator[str]:
    """Its address, token included, while entered. Files that it keeps go to `folder`."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "smart_redriver.oncall", "console", *options],
        env=dict(environment),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None  # noqa: S101
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "it printed no address"  # noqa: S101
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0, f"it ended with {process.returncode}"  # noqa: S101
