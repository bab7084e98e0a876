"""Runs app.py in a process of its own, as the CDK command line does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CDK_JSON = json.loads((ROOT / "cdk.json").read_text())

#: Context that lets a synth do without uv and its packages.
UNBUNDLED: dict[str, Any] = {"aws:cdk:bundling-stacks": []}


def run_app(
    outdir: Path, context: dict[str, Any], *, code: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Synthesize into ``outdir`` with the flags of cdk.json and ``context``: app.py, or the app in ``code``."""
    # jsii runs the first `node` of the PATH: the pinned one, wherever these tests are started from.
    path = os.pathsep.join([str(ROOT / "node_modules" / ".bin"), os.environ["PATH"]])
    env = {
        **os.environ,
        "PATH": path,
        "CDK_CONTEXT_JSON": json.dumps({**CDK_JSON["context"], **context}),
        "CDK_OUTDIR": str(outdir),
        "CDK_VALIDATION": "true",
        **environment,
    }
    return subprocess.run(
        [sys.executable, *(["-c", code] if code else [str(ROOT / "app.py")])],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


def findings(outdir: Path) -> list[Any]:
    """What the validation of the templates found, by the rules of cdk-nag and of the CDK itself."""
    report = json.loads((outdir / "validation-report.json").read_text())
    return [violation for plugin in report["pluginReports"] for violation in plugin["violations"]]
