"""The CDK side that others import: the construct `SmartRedriver` and its parts.

The function's own `redrive.settings` decides at synth what it will accept at cold start.
"""

from pathlib import Path

import redrive

#: The folder that holds the functions' packages: the import root of everything deployed.
LAMBDAS = Path(redrive.__file__).resolve().parent.parent
