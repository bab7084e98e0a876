"""Starts the `redrive` command, or says what to install for it. Standard library only, until that is known."""

from __future__ import annotations

import sys
from importlib.util import find_spec

#: What the extra `oncall` brings, by the names that are imported.
_NEEDED = ("boto3", "jmespath", "rich", "typer")


def main() -> None:
    """Run the command that was typed, and exit."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        sys.exit(
            f"redrive needs {', '.join(missing)}: install smart-redriver[oncall], the package with this extra."
        )
    from smart_redriver.oncall.cli import app

    try:
        app(prog_name="redrive")
    except OSError as fault:  # of help and completion; commands tell their own
        sys.exit(f"redrive could not write: {fault.strerror}.")


if __name__ == "__main__":
    main()
