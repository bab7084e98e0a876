"""The consumer kit as others get it: a small wheel and a Lambda layer, the same bytes from the same sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from smart_redriver import __version__
from tests.package.installed import ROOT, Environment, install_with

FOLDER = ROOT / "packages" / "consumer"
BUILD = FOLDER / "build.py"
#: What Lambda has beside a function and its layers, and what it needs.
RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "jmespath", "six.py")

#: Reports a failure to a client of its own, and says which modules of this project it has loaded.
REPORT = """
import json, sys
from importlib.resources import files
from smart_redriver.consumer import Reporter

class Sqs:
    def send_message(self, **request):
        [outcome] = json.loads(request["MessageBody"])["outcomes"]
        print(outcome["error_class"], outcome["first_line"])

message = {"MessageId": "m", "Body": "{}", "Attributes": {}}
reporter = Reporter(outcome_queue_url="https://sqs/1/outcomes", client=Sqs())
try:
    with reporter.message(message, "orders"):
        raise OSError("password=hunter2 is wrong")
except OSError:
    pass
print((files("smart_redriver.consumer") / "outcomes.schema.json").is_file())
print(*sorted(name for name in sys.modules if name.startswith("smart_redriver.") and "consumer" not in name))
"""
REPORTED = ["OSError password=[secret] is wrong", "True", ""]


def build(folder: Path, umask: int) -> tuple[Path, Path]:
    subprocess.run([sys.executable, BUILD, folder], check=True, capture_output=True, umask=umask)
    [wheel], [layer] = folder.glob("*.whl"), folder.glob("*.zip")
    return wheel, layer


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("built"), 0o022)


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel, boto3, and nothing else."""
    wanted = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    return install_with(built[0], tmp_path_factory.mktemp("env") / "venv", wanted["dependencies"])


def test_the_wheel_is_small_and_has_nothing_of_the_re_driver(built: tuple[Path, Path]) -> None:
    with ZipFile(built[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert built[0].stat().st_size < 200_000
    assert all(name.startswith("smart_redriver/consumer/") for name in names)
    assert names == {
        f"smart_redriver/consumer/{path.name}"
        for path in (ROOT / "smart_redriver" / "consumer").iterdir()
        if path.is_file()
    }


def test_the_same_sources_give_the_same_bytes_whoever_builds_them(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    again = build(tmp_path, 0o077)

    assert [one.read_bytes() for one in again] == [one.read_bytes() for one in built]


def test_the_kits_have_the_re_drivers_version(built: tuple[Path, Path]) -> None:
    node = json.loads((ROOT / "packages" / "consumer-node" / "package.json").read_text())

    assert built[0].name.split("-")[1] == node["version"] == __version__


def test_the_oldest_boto3_that_it_takes_knows_all_that_it_asks_of_sqs() -> None:
    """1.34.101 is the first with `MessageSystemAttributeNames`, which a poller's receive needs."""
    wanted = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["dependencies"]

    assert wanted == ["boto3>=1.34.101"]


def test_it_reports_from_an_environment_with_boto3_and_nothing_else(
    installed: Environment, tmp_path: Path
) -> None:
    done = installed.run("python", "-c", REPORT, cwd=tmp_path)

    assert (done.stdout.splitlines(), done.stderr) == (REPORTED, "")


def test_the_layer_works_beside_what_lambda_has_itself(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    opt, runtime = tmp_path / "opt", tmp_path / "runtime"
    runtime.mkdir()
    for name in RUNTIME:
        (runtime / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    with ZipFile(built[1]) as layer:
        layer.extractall(opt)

    done = subprocess.run(
        [sys.executable, "-S", "-c", REPORT],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{opt / 'python'}:{runtime}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout.splitlines(), done.stderr) == (REPORTED, "")
