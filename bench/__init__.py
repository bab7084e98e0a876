"""Benchmarks: `python -m bench` runs them all, `python -m bench NAME` one.

Each is a module with a `run(request)` that measures, prints to `request.console`, and leaves its results in
`request.out`. A new one is such a module and a line in `__main__.BENCHMARKS`.
"""

import sys
from pathlib import Path

# The re-driver's import root, as it is in the Lambda; child processes pass by here too.
_LAMBDAS = str(Path(__file__).resolve().parents[1] / "lambdas")
if _LAMBDAS not in sys.path:
    sys.path.insert(0, _LAMBDAS)
