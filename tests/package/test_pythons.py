"""The wheel in an empty environment of each Python on the PATH or of pyenv, with each extra alone, from the index."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from smart_redriver import __version__
from smart_redriver.cdk.bundling import find_uv
from tests.package.installed import build_wheel

#: What each extra is for, as little of it as shows that all of it is there.
EXTRAS = {
    "cdk": "import smart_redriver.cdk",
    "oncall": "import smart_redriver.oncall.verbs.run, typer",
    "console": "import smart_redriver.oncall.console.app",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def uv(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [find_uv(), *map(str, arguments)]
    by_pyenv = map(str, Path.home().glob(".pyenv/versions/*/bin"))
    path = os.pathsep.join([os.environ["PATH"], *by_pyenv])
    env = {**os.environ, "PATH": path, "UV_PYTHON_DOWNLOADS": "never"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


#: The oldest and the newest with each extra, those in between with one: the rest is enumeration.
VERSIONS = ["3.11", "3.12", "3.13", "3.14"]
EACH = [(version, extra) for version in (VERSIONS[0], VERSIONS[-1]) for extra in EXTRAS]
EACH += [(version, "oncall") for version in VERSIONS[1:-1]]
REST = [
    pytest.param(version, extra, marks=pytest.mark.enumeration)
    for version in VERSIONS
    for extra in EXTRAS
    if (version, extra) not in EACH
]


@pytest.mark.parametrize(("version", "extra"), [*EACH, *REST])
def test_the_wheel_works_on(version: str, extra: str, wheel: Path, tmp_path: Path) -> None:
    found = uv("python", "find", "--no-project", "--system", version)
    if found.returncode:
        pytest.skip(f"this machine has no Python {version}")
    made = uv("venv", "--quiet", "--python", found.stdout.strip(), tmp_path / "venv")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "venv" / "bin" / "python"

    installed = uv("pip", "install", "--quiet", "--python", python, f"{wheel}[{extra}]")
    assert installed.returncode == 0, installed.stderr

    program = f"{EXTRAS[extra]}; import smart_redriver; print(smart_redriver.__version__)"
    done = subprocess.run([python, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip().endswith(__version__), done.stderr
