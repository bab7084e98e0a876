"""What other people get: the wheel alone, the command, and the construct in an app that knows nothing of this
repository.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.package.installed import ROOT, Environment, build_wheel, install

SHOP = '''
import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from smart_redriver.cdk import Mode, MonitoringSettings, Settings, SmartRedriver


class Orders(cdk.Stack):
    def __init__(self, scope):
        super().__init__(scope, "Orders")
        dead = sqs.Queue(self, "DeadLetters")
        fails_to = sqs.DeadLetterQueue(queue=dead, max_receive_count=5)
        SmartRedriver(
            self, "Redriver",
            source_queue=sqs.Queue(self, "Source", dead_letter_queue=fails_to),
            dead_letter_queue=dead,
            settings=Settings(mode=Mode.DRY_RUN),
            monitoring=MonitoringSettings(alarm_parked_letters=3),
        )
'''  # fmt: skip

APP = """
import aws_cdk as cdk
import core, fakes, redrive
from stacks.orders import Orders

assert {core.OURS, fakes.OURS, redrive.OURS} == {False}
app = cdk.App()
Orders(app)
app.synth()
"""

COLD_START = """
import sys
sys.path += sys.argv[1:]
import redrive.handler
assert callable(redrive.handler.lambda_handler)
print(*{module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}, sep="\\n")
"""


IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, f"{sys.argv[1]}."):
    if not module.name.startswith(tuple(sys.argv[2:])):
        print(importlib.import_module(module.name).__name__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with nothing else."""
    return install(wheel, tmp_path_factory.mktemp("alone") / "venv")


@pytest.fixture(scope="module")
def on_call(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with the extra `oncall` and what that brings."""
    return install(wheel, tmp_path_factory.mktemp("oncall") / "venv", extra="oncall")


@pytest.fixture(scope="module")
def at_the_console(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with the extra `console` and what that brings."""
    return install(wheel, tmp_path_factory.mktemp("console") / "venv", extra="console")


@pytest.fixture(scope="module")
def in_an_app(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package with the extra `cdk` and what that brings."""
    return install(wheel, tmp_path_factory.mktemp("cdk") / "venv", extra="cdk")


@pytest.fixture(scope="module")
def synthesized(in_an_app: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of an app with folders that are called as ours are or were, and the extra `cdk`."""
    folder = shop(tmp_path_factory.mktemp("shop"))
    outdir = folder / "out"
    done = in_an_app.run("python", "app.py", cwd=folder, CDK_OUTDIR=str(outdir))
    assert done.returncode == 0, done.stderr
    return outdir


def shop(folder: Path) -> Path:
    for name in ("core", "fakes", "redrive", "stacks"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("OURS = False\n")
    (folder / "stacks" / "orders.py").write_text(SHOP)
    (folder / "app.py").write_text(APP)
    return folder


@pytest.fixture(scope="module")
def function(synthesized: Path) -> dict:
    """The one function's properties in the template."""
    template = json.loads((synthesized / "Orders.template.json").read_text())
    [function] = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    ]
    return function


@pytest.fixture(scope="module")
def bundle(synthesized: Path, function: dict) -> Path:
    return synthesized / f"asset.{Path(function['Code']['S3Key']).stem}"


def test_without_extras_the_command_says_in_a_sentence_what_to_install(
    alone: Environment, tmp_path: Path
) -> None:
    done = alone.run("redrive", "status", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "redrive needs boto3, jmespath, rich, typer: "
        "install smart-redriver[oncall], the package with this extra."
    ]


def test_without_its_extra_the_construct_says_in_a_sentence_what_to_install(
    alone: Environment, tmp_path: Path
) -> None:
    done = alone.run("python", "-c", "from smart_redriver.cdk import SmartRedriver", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: smart_redriver.cdk needs aws_cdk: "
        "install smart-redriver[cdk], the package with this extra."
    )


def test_the_package_alone_brings_the_settings_and_pulls_in_nothing(
    alone: Environment, tmp_path: Path
) -> None:
    program = (
        "import smart_redriver, importlib.metadata as m\n"
        "from smart_redriver.engine.config.settings import Settings\n"
        "print([one for one in m.requires('smart-redriver') if 'extra' not in one])"
    )
    done = alone.run("python", "-c", program, cwd=tmp_path)

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_with_its_extra_the_command_runs_from_anywhere(
    on_call: Environment, tmp_path: Path
) -> None:
    done = on_call.run("redrive", "--help", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "dead letters of a deployed smart re-driver" in done.stdout


def test_the_extra_brings_all_that_any_module_of_the_command_imports(
    on_call: Environment, tmp_path: Path
) -> None:
    command, console = "smart_redriver.oncall", "smart_redriver.oncall.console."
    done = on_call.run("python", "-c", IMPORT_ALL, command, console, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "smart_redriver.oncall.verbs.run" in done.stdout.split()


def test_without_its_extra_the_console_says_in_a_sentence_what_to_install(
    on_call: Environment, tmp_path: Path
) -> None:
    done = on_call.run("redrive", "console", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "redrive console needs starlette and uvicorn: "
        "install smart-redriver[console], the package with this extra."
    ]


def test_the_consoles_extra_brings_all_that_it_imports_and_its_page(
    at_the_console: Environment, tmp_path: Path
) -> None:
    done = at_the_console.run("python", "-c", IMPORT_ALL, "smart_redriver.oncall", cwd=tmp_path)
    program = (
        "from smart_redriver.oncall.console.app import STATIC\n"
        "print(*(one.relative_to(STATIC) for one in STATIC.rglob('*') if one.is_file()))"
    )
    files = at_the_console.run("python", "-c", program, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "smart_redriver.oncall.console.app" in done.stdout.split()
    static = ROOT / "smart_redriver" / "oncall" / "console" / "static"
    ours = {str(one.relative_to(static)) for one in static.rglob("*") if one.is_file()}
    assert set(files.stdout.split()) == ours, files.stderr


def test_the_construct_reads_its_settings_in_an_app_with_stacks_of_its_own(function: dict) -> None:
    assert function["Handler"] == "redrive.handler.lambda_handler"
    assert function["Environment"]["Variables"]["MODE"] == "dry_run"


NOTHING_TO_INSTALL_FROM = {"UV_OFFLINE": "1", "UV_NO_CONFIG": "1"}


def test_unit_tests_of_an_app_need_no_package_index(in_an_app: Environment, tmp_path: Path) -> None:
    """As docs/deploy.md says, with nothing in uv's cache either."""
    folder, cache = shop(tmp_path), str(tmp_path / "empty")
    given = {**NOTHING_TO_INSTALL_FROM, "UV_CACHE_DIR": cache, "CDK_OUTDIR": str(tmp_path / "out")}
    unbundled = json.dumps({"aws:cdk:bundling-stacks": []})

    refused = in_an_app.run("python", "app.py", cwd=folder, **given)
    done = in_an_app.run("python", "app.py", cwd=folder, CDK_CONTEXT_JSON=unbundled, **given)

    assert "uv could not install lambda.lock" in refused.stderr
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "out" / "Orders.template.json").read_text())
    assert "Redriver" in template["Outputs"]
    assert "aws:cdk:bundling-stacks" in (ROOT / "docs" / "deploy.md").read_text()


TYPED = """
import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from smart_redriver import __version__
from smart_redriver.cdk import Mode, Naming, Safeguards, Settings, SmartRedriver

WRONG = Settings(max_rat=4)


def add(stack: cdk.Stack, orders: sqs.Queue, dead: sqs.Queue) -> SmartRedriver:
    return SmartRedriver(
        stack,
        "Redriver",
        source_queue=orders,
        dead_letter_queue=dead,
        settings=Settings(mode=Mode.DRY_RUN, max_rate=4),
        naming=Naming(known_as=f"orders-{__version__}"),
        safeguards=Safeguards.of(encryption_key=kms.Key(stack, "Key")),
        monitoring=None,
    )
"""


def test_mypy_sees_a_misspelt_setting_in_a_strangers_app_and_nothing_else(
    in_an_app: Environment, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(TYPED)
    python = in_an_app.folder / "bin" / "python"
    if (known := ROOT / ".mypy_cache").is_dir():
        # From `make lint`. mypy keeps what it knows of files with the same content: the CDK alone takes it a minute.
        shutil.copytree(known, tmp_path / known.name)

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "app.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert 'Unexpected keyword argument "max_rat" for "Settings"' in done.stdout, done.stderr
    assert "Found 1 error" in done.stdout


def test_the_bundle_of_an_installed_construct_has_every_module_of_the_function(
    bundle: Path,
) -> None:
    bundled = {path.relative_to(bundle) for path in (bundle / "smart_redriver").rglob("*.py")}
    engine = (ROOT / "smart_redriver" / "engine").rglob("*.py")

    assert bundled == {Path("smart_redriver/__init__.py")} | {
        path.relative_to(ROOT) for path in engine
    }
    assert (bundle / "redrive" / "handler.py").is_file()


def test_the_function_starts_from_its_bundle_alone(bundle: Path, function: dict) -> None:
    variables = {
        name: value if isinstance(value, str) else f"https://sqs.eu-west-1.amazonaws.com/1/{name}"
        for name, value in function["Environment"]["Variables"].items()
    }

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", COLD_START, bundle],
        env={**variables, "AWS_DEFAULT_REGION": "eu-west-1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines())
    standard = sysconfig.get_path("stdlib")
    places = (str(bundle), standard, sysconfig.get_path("platstdlib"))
    assert {path for path in loaded if not path.startswith(places)} == set()
    assert str(bundle / "smart_redriver" / "engine" / "config" / "settings.py") in loaded
