"""Our app as it is, but psycopg's libraries are those of the machine and Python on which the local AWS runs
functions.
"""

import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import app
from smart_redriver.cdk import bundling

bundling._PLATFORM = f"{platform.machine()}-manylinux_2_28"
bundling._PYTHON_VERSION = ".".join(platform.python_version_tuple()[:2])

app.main()
