"""The wheel of this project in an environment of its own, as somebody else's project has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from smart_redriver.cdk.bundling import find_uv

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("smart_redriver", "lambdas/redrive", "requirements", "pyproject.toml", "README.md")


def build_wheel(folder: Path) -> Path:
    """The wheel, built from a copy, so that nothing that was built before gets into it."""
    source = folder / "source"
    for name in _SOURCES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, target, symlinks=True, ignore=leave)
        else:
            shutil.copy(ROOT / name, target)
    _uv("build", "--wheel", "--no-build-isolation", "--out-dir", str(folder), str(source))
    [wheel] = folder.glob("*.whl")
    return wheel


def _uv(*arguments: str) -> None:
    options = ("--quiet", "--offline", "--python", sys.executable)
    done = subprocess.run(
        [find_uv(), *arguments, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in ``folder``."""

    folder: Path

    def run(
        self, program: str, *arguments: str, cwd: Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment with Node at hand, and nothing of this repository on any path."""
        ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        node = ROOT / "node_modules" / ".bin"
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=cwd,
            env={**ours, "PATH": f"{node}:/usr/bin:/bin", **variables},
            capture_output=True,
            text=True,
            check=False,
        )


def install(wheel: Path, folder: Path, *, with_extras: bool) -> Environment:
    """The wheel in a new environment. What its extras bring is the development environment's, but for its own copy of this project."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    target = sysconfig.get_path("purelib", vars={"base": str(folder)})
    done = subprocess.run(
        [
            find_uv(),
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--python",
            folder,
            wheel,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if with_extras:
        # Of a folder that is named here, Python reads no further .pth files: the editable install stays out.
        (Path(target) / "extras.pth").write_text(sysconfig.get_path("purelib"))
    return Environment(folder)
