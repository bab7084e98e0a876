"""A function's bundle, started in a Python of its own, with nothing beside it."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from smart_redriver.cdk.bundling import bundle


def start(
    sources: Mapping[str, Path], folder: Path, script: str, variables: Mapping[str, str]
) -> tuple[str, Path]:
    """What `script` prints, which is told the bundle by its argument, and where the bundle is."""
    bundled = folder / "bundle"
    bundle(sources, bundled)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, bundled],
        env=dict(variables), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, bundled
