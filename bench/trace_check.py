"""Replays logs of runs against the protocol: `python -m bench.trace_check [--disturbed] LOG ...`.

A log is the events of one function as it writes them to CloudWatch Logs, oldest first: a JSON object a line, with its name as `message`.
`redrive run --forever` writes the name as `event`. What `aws logs tail` puts before it, and lines that are none, are passed over.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proof.trace import check


def main(arguments: Sequence[str]) -> int:
    """Check these files, and say what the protocol does not allow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    parser.add_argument(
        "--disturbed",
        action="store_true",
        help="passes died, the table was lost, or a queue was restored: repeats are allowed",
    )
    options = parser.parse_args(arguments)
    is_good = True
    for path in options.logs:
        events = list(_events(path.read_text()))
        faults = check(events, is_disturbed=options.disturbed)
        is_good &= not faults
        print(f"{path}: {len(events):,} events, {len(faults)} that the protocol does not allow")
        print("".join(f"  {fault}\n" for fault in faults), end="")
    return 0 if is_good else 1


def _events(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in text.splitlines():
        _, brace, rest = line.partition("{")
        try:
            fields = json.loads(brace + rest)
        except ValueError:
            continue
        if isinstance(fields, dict) and (name := fields.get("message", fields.get("event"))):
            yield str(name), fields


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
