"""The CDK side: what is deployed, and how it is wired.

The function's own ``redrive.settings`` decides at synth what it will accept at cold start, so
``lambdas/``, the import root of everything deployed, is an import root here as well.
"""

import sys
from pathlib import Path

LAMBDAS = Path(__file__).resolve().parent.parent / "lambdas"

if str(LAMBDAS) not in sys.path:
    # Last, so that nothing in there can hide a module of the standard library or of the CDK.
    sys.path.append(str(LAMBDAS))
