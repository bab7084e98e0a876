"""A function's bundle, started in a Python of its own: beside it only what Lambda has by itself."""

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from smart_redriver.cdk.bundling import bundle

#: What Lambda has beside the bundle.
RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six.py")


def start(
    sources: Mapping[str, Path], folder: Path, script: str, variables: Mapping[str, str]
) -> tuple[str, Path]:
    """What `script` prints, which is told bundle and runtime by its arguments, and where the bundle is."""
    bundled, runtime = folder / "bundle", folder / "runtime"
    bundle(sources, bundled)
    runtime.mkdir()
    for name in RUNTIME:
        (runtime / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, bundled, runtime],
        env=dict(variables), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, bundled
