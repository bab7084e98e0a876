"""Builds the construct for TypeScript as npm installs it: `python packages/cdk_typescript/build.py FOLDER`.

It wraps the plain template. The CDK that it is compiled against is the one that the Python library carries.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from smart_redriver import __version__

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_TOOLS = _ROOT / "node_modules"
#: What npm calls the CDK's packages, and the Python packages that carry them.
_LIBRARIES = {
    "aws-cdk-lib": "aws-cdk-lib",
    "constructs": "constructs",
    "@aws-cdk/cloud-assembly-schema": "aws-cdk.cloud-assembly-schema",
    "@aws-cdk/asset-awscli-v1": "aws-cdk.asset-awscli-v1",
    "@aws-cdk/asset-node-proxy-agent-v6": "aws-cdk.asset-node-proxy-agent-v6",
}
#: What another construct wants of the template, by the ends of the paths in the Python construct.
_NAMES = {
    "function": ("AWS::Lambda::Function", "RedriverFunction"),
    "parkingLot": ("AWS::SQS::Queue", "RedriverParkingLot"),
    "outcomeQueue": ("AWS::SQS::Queue", "RedriverOutcomes"),
}


def build(folder: Path) -> Path:
    """Write the package into `folder`; its path. Raises CalledProcessError where a tool fails."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "package"
        shutil.copytree(_HERE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        shutil.copy(_ROOT / "LICENSE", source)
        _add_template(source / "template")
        manifest = json.loads((source / "package.json").read_text())
        manifest["version"] = __version__
        (source / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
        link_cdk(Path(place) / "node_modules")
        _run(source, "node", _TOOLS / "typescript" / "bin" / "tsc", "--project", "tsconfig.json")
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        # npm writes no times into a package, but one of 1985.
        _run(source, "npm", "pack", "--offline", "--pack-destination", place)
        [packed] = Path(place).glob("*.tgz")
        return Path(shutil.copyfile(packed, folder / packed.name))


def link_cdk(modules: Path) -> None:
    """Let Node find, in the folder `modules`, the CDK of the Python library."""
    for name, carried_by in _LIBRARIES.items():
        carrier = distribution(carried_by)
        [archive] = (
            Path(str(carrier.locate_file(one)))
            for one in carrier.files or ()
            if one.name.endswith(".jsii.tgz")
        )
        _unpack(archive, modules)
        (modules / name).parent.mkdir(exist_ok=True)
        (modules / "package").rename(modules / name)


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a trusted .tgz into `folder`. The filters of tarfile came with Python 3.11.4; Debian 12 has 3.11.2."""
    folder.mkdir(parents=True, exist_ok=True)
    _run(folder, "tar", "--extract", "--no-same-owner", "--file", archive)


def _add_template(target: Path) -> None:
    program = _ROOT / "packages" / "template" / "build.py"
    built = target / "built"
    _run(_ROOT, sys.executable, program, built)
    [template], [code] = built.glob("*.template.json"), built.glob("*.zip")
    template.rename(target / "template.json")
    code.rename(target / "function.zip")
    built.rmdir()
    resources: dict[str, Any] = json.loads((target / "template.json").read_text())["Resources"]
    names = {
        wanted: next(one for one, made in resources.items() if made["Type"] == kind and one.startswith(begins))
        for wanted, (kind, begins) in _NAMES.items()
    }  # fmt: skip
    (target / "names.json").write_text(json.dumps(names) + "\n")


def _run(place: Path, *command: str | Path) -> None:
    # Every word of the command is ours.
    done = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    made = build(Path(sys.argv[1]))
    sys.stdout.write(f"{made} {made.stat().st_size}\n")
