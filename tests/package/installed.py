"""The wheel of this project in an environment of its own, as somebody else's project has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

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


def install(wheel: Path, folder: Path, *, extra: str | None = None) -> Environment:
    """The wheel in a new environment, with what the extra brings and no package more."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
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
    if extra:
        wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for name in _closure(wanted["optional-dependencies"][extra]):
            _link(name, folder)
    return Environment(folder)


def _closure(requirements: Iterable[str]) -> set[str]:
    """The names of the distributions that these requirements come to, as this environment has them."""
    found: set[str] = set()
    asked = [Requirement(one) for one in requirements]
    while asked:
        wanted = asked.pop()
        if wanted.name not in found:
            found.add(wanted.name)
            further = map(Requirement, distribution(wanted.name).requires or ())
            asked += [one for one in further if not one.marker or one.marker.evaluate()]
    return found


def _link(name: str, folder: Path) -> None:
    """Let the environment in ``folder`` have a distribution of this one: packages, metadata, programs."""
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    here = Path(sysconfig.get_path("purelib"))
    for path in distribution(name).files or ():
        if path.parts[0] == "..":
            ours, theirs = here / path, folder / "bin" / path.name
        else:
            ours, theirs = here / path.parts[0], site / path.parts[0]
        if not theirs.exists():
            theirs.symlink_to(ours.resolve())
