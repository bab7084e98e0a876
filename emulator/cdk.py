"""The real CDK command line against a `LocalAws`.

Its output goes to a log file, and is shown when a command fails.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .environments import ACCOUNT, REGION, ROOT
from .process import LocalAws

_TIMEOUT_SECONDS = 900
_LOOK_EVERY_SECONDS, _LOOKS = 0.1, 9000
_LOG_LINES_SHOWN = 60

#: Names a folder where the zips of assets are kept for the next deployment, by their hash: to make them anew takes a
#: third of a deployment's time.
KEPT_ZIPS = "LOCAL_AWS_KEPT_ZIPS"


class CdkError(Exception):
    """A CDK command failed; the message ends with what it printed."""


def bootstrap(aws: LocalAws) -> None:
    """Prepare the account for `deploy`."""
    _cdk(aws, aws.work_dir, aws.work_dir, "bootstrap", f"aws://{ACCOUNT}/{REGION}")


def prepare(aws: LocalAws) -> None:
    """Do what `bootstrap` does, by the command line's own template: without its start it takes a fifth of the time."""
    template = (
        ROOT / "node_modules" / "aws-cdk" / "lib" / "api" / "bootstrap" / "bootstrap-template.yaml"
    )
    stacks = aws.client("cloudformation")
    stacks.create_stack(
        StackName="CDKToolkit",
        TemplateBody=template.read_text(),
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Parameters=[
            {"ParameterKey": "FileAssetsBucketKmsKeyId", "ParameterValue": "AWS_MANAGED_KEY"}
        ],
    )
    stacks.get_waiter("stack_create_complete").wait(
        StackName="CDKToolkit", WaiterConfig={"Delay": _LOOK_EVERY_SECONDS, "MaxAttempts": _LOOKS}
    )


def deploy(
    aws: LocalAws, app_dir: Path, context: Mapping[str, str], outdir: Path
) -> dict[str, str]:
    """Deploy all stacks of the app in `app_dir`, and return their outputs by name.

    Cloud assembly, outputs and log are left in `outdir`.
    """
    pairs = [f"--context={key}={value}" for key, value in context.items()]
    assembly = (outdir / "cdk.out").absolute()
    return _deploy(aws, app_dir, outdir, *pairs, f"--output={assembly}")


def deploy_assembly(aws: LocalAws, outdir: Path) -> dict[str, str]:
    """Like `deploy`, of the cloud assembly that is in `outdir` already, and without a change set: that is quicker."""
    assembly = f"--app={(outdir / 'cdk.out').absolute()}"
    return _deploy(aws, outdir, outdir, assembly, "--method=direct")


def destroy(aws: LocalAws, outdir: Path) -> None:
    """Remove all stacks of the cloud assembly that `deploy` left in `outdir`."""
    _cdk(aws, outdir, outdir, "destroy", "--all", "--force", f"--app={outdir / 'cdk.out'}")


def log_of(outdir: Path, verb: str) -> Path:
    """The file to which the command's output goes, while it runs and after."""
    return outdir / f"cdk-{verb}.log"


def _deploy(aws: LocalAws, cwd: Path, outdir: Path, *options: str) -> dict[str, str]:
    outputs = outdir / "outputs.json"
    always = ("--all", "--require-approval=never", f"--outputs-file={outputs.absolute()}")
    _share_zips(outdir / "cdk.out" / ".cache")
    _cdk(aws, cwd, outdir, "deploy", *always, *options)
    stacks: dict[str, dict[str, str]] = json.loads(outputs.read_text())
    return {name: value for stack in stacks.values() for name, value in stack.items()}


def _share_zips(kept_by_the_cdk: Path) -> None:
    shared = os.environ.get(KEPT_ZIPS)
    if shared and not kept_by_the_cdk.exists():
        kept_by_the_cdk.parent.mkdir(parents=True, exist_ok=True)
        kept_by_the_cdk.symlink_to(shared)


def _cdk(aws: LocalAws, cwd: Path, outdir: Path, verb: str, *options: str) -> None:
    outdir.mkdir(parents=True, exist_ok=True)
    log_file = log_of(outdir, verb)
    variables = aws.environment() | {
        "CDK_HOME": str(aws.work_dir / "cdk-home"),  # its caches are not the user's concern
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "NO_PROXY": "localhost,127.0.0.1",
    }
    # Looked up here: a command is found through our PATH, not through the PATH that it gets.
    command = shutil.which("cdk", path=variables["PATH"])
    if command is None:
        raise CdkError("no cdk command: is node_modules installed?")
    with log_file.open("w") as log:
        finished = subprocess.run(
            [command, verb, "--ci", "--no-notices", "--no-version-reporting", *options],
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    if finished.returncode:
        tail = "\n".join(log_file.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])
        raise CdkError(f"cdk {verb} failed ({finished.returncode}):\n{tail}")
