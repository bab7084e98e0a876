"""Starts the `redrive` command, or says what to install for it. Until then it uses only the standard library."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

#: The packages of the extra `oncall`, by the names that are imported.
_NEEDED = ("boto3", "jmespath", "rich", "typer")


def main() -> None:
    """Run the command that was typed, and exit."""
    _open_streams()
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        sys.exit(
            f"redrive needs {', '.join(missing)}: install smart-redriver[oncall], the package with this extra."
        )
    from smart_redriver.oncall.cli import app

    try:
        app(prog_name="redrive")
    except OSError as fault:  # from help and completion; commands report their own
        sys.exit(f"redrive could not write: {fault.strerror}.")


def _open_streams() -> None:
    """Reopen the standard streams that the caller has closed (`>&-`), before any file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - for as long as the process lives


if __name__ == "__main__":
    main()
