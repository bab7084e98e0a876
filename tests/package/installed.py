"""The wheel of this project in an environment of its own, as somebody else's project has it."""

from __future__ import annotations

import os
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
_BUILD = ROOT / "packages" / "python" / "build.py"


def build_wheel(folder: Path) -> Path:
    """The wheel, as `make release` builds it."""
    done = subprocess.run(
        [sys.executable, _BUILD, folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("*.whl")
    return wheel


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
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return install_with(wheel, folder, wanted["optional-dependencies"][extra] if extra else ())


def install_with(wheel: Path, folder: Path, requirements: Iterable[str]) -> Environment:
    """The wheel in a new environment, with what these requirements come to and no package more."""
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
    for name in _closure(requirements):
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
