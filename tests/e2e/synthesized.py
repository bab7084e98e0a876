"""Deployments of our app by the CDK command line, of what this process has synthesized.

That takes a fifth of the time of app.py in a process of its own, which `test_story.py`, `test_upgrades.py` and
`test_rollback.py` deploy. `test_story.py` compares the two: they are the same.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import aws_cdk

from demo.stack import APP_DIR, DeployedStack, deployment_of
from emulator import cdk
from emulator.process import LocalAws
from stacks.accounts import make_stacks, read_homes

_FLAGS = json.loads((APP_DIR / "cdk.json").read_text())["context"]
#: The command line tells an app this about itself.
_TOLD = {"aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}


def synthesize(outdir: Path, context: Mapping[str, str]) -> None:
    """Write the cloud assembly of our app into `outdir`."""
    app = aws_cdk.App(
        analytics_reporting=False, context={**_FLAGS, **_TOLD, **context}, outdir=str(outdir)
    )
    make_stacks(app, read_homes(app.node))
    app.synth()


def deploy_all(aws: LocalAws, context: Mapping[str, str], outdir: Path) -> dict[str, str]:
    """As `emulator.cdk.deploy` of our app."""
    synthesize(outdir / "cdk.out", context)
    return cdk.deploy_assembly(aws, outdir)


def deploy(aws: LocalAws, **context: str) -> DeployedStack:
    """As `demo.stack.deploy`."""
    return DeployedStack(aws, deploy_all(aws, context, deployment_of(aws)))
