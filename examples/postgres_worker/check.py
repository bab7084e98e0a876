"""Whether `handle` takes a payload, without doing it: what it writes is rolled back. For `redrive replay --validate`.

    redrive replay --cause BadOrder --from-dlq --validate 'python check.py "host=... dbname=..." orders:handle'

The payload comes on standard input; what is wrong with it goes to standard error, and ends the program with 1. What
`handle` does elsewhere, by calls of its own, no rollback undoes.
"""

from __future__ import annotations

import importlib
import json
import sys

import psycopg


def main() -> None:
    """Try one payload."""
    module, _, name = sys.argv[2].partition(":")
    handle = getattr(importlib.import_module(module), name or "handle")
    payload = json.load(sys.stdin)
    with psycopg.connect(sys.argv[1]) as connection, connection.transaction(force_rollback=True):
        try:
            handle(payload, connection)
        except Exception as fault:
            sys.exit(f"{type(fault).__name__}: {fault}")


if __name__ == "__main__":
    main()
