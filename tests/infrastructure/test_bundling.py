"""The real bundle: what is in it, and that it is the same bytes every time.

Needs what a deployment needs: uv, and its cache or a package index.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from smart_redriver.cdk import bundling
from smart_redriver.cdk.bundling import BundlingError, bundle, find_uv
from smart_redriver.cdk.redriver import ENGINE, ENGINE_PLACE, ENTRY
from stacks.sample_consumer import KIT
from tests.infrastructure.app_process import ROOT, run_app
from tests.infrastructure.cold_start import start

LAMBDAS = ROOT / "lambdas"
POSTGRES_LOCK_FILE = ROOT / "smart_redriver" / "postgres" / "cdk" / "lambda.lock"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def bundled(tmp_path_factory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("bundle")
    bundle({ENGINE_PLACE: ENGINE, **ENTRY}, output)
    return contents(output)


def test_the_bundle_has_the_package_powertools_and_the_boto3_of_the_lock(bundled):
    top = {name.split("/")[0] for name in bundled}

    assert {"redrive", "aws_lambda_powertools", "jmespath", "boto3", "botocore"} <= top
    assert "consumer" not in top
    locked = re.search(r"^botocore==(\S+)", bundling.LOCK_FILE.read_text(), re.MULTILINE)
    assert locked is not None
    assert f'__version__ = "{locked[1]}"'.encode() in bundled["botocore/__init__.py"].replace(b"'", b'"')  # fmt: skip
    assert not [name for name in bundled if name.startswith("smart_redriver/postgres/")]
    assert "smart_redriver/engine/config/settings.py" in bundled


def test_the_bundle_describes_the_services_that_are_called_and_serves_no_page(bundled):
    services = {name.split("/")[2] for name in bundled if re.match("botocore/data/[^/]+/", name)}

    assert services == set(bundling._SERVICES)
    assert not [name for name in bundled if "swagger_ui/" in name]
    assert "botocore/data/endpoints.json" in bundled
    assert sum(map(len, bundled.values())) < 20_000_000


def test_every_service_that_a_function_opens_a_client_of_is_described(bundled, tmp_path):
    """By the bundle's own botocore, in a Python that has no other."""
    for name, content in bundled.items():
        if not name.startswith(("smart_redriver", "redrive")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
    opened = {
        found[1]
        for folder in ("smart_redriver/engine", "smart_redriver/postgres", "smart_redriver/widget", "lambdas")
        for path in (ROOT / folder).rglob("*.py")
        for found in re.finditer(r'client\(\s*"([a-z0-9]+)"', path.read_text())
    }  # fmt: skip
    assert {"sqs", "dynamodb", "cloudwatch"} <= opened
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import boto3\n" + "".join(
        f"boto3.client({one!r}, 'eu-west-1')\n" for one in (*sorted(opened), *bundling._SERVICES)
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def test_the_bundle_holds_every_module_of_the_function(bundled):
    sources = {str(path.relative_to(ROOT)) for path in ENGINE.rglob("*.py")}

    assert sources <= set(bundled)
    assert "redrive/handler.py" in bundled


def test_the_bundle_for_postgres_has_psycopg_with_its_libraries_the_authorities_and_no_tests(
    tmp_path,
):
    authorities = tmp_path / "global-bundle.pem"
    authorities.write_text("certificates")
    sources = {"redrive": LAMBDAS / "redrive", "database-ca.pem": authorities}

    bundle(sources, tmp_path / "bundle", POSTGRES_LOCK_FILE)

    bundled = contents(tmp_path / "bundle")
    # An ELF file names its machine in the 19th byte: 183 is AArch64.
    libraries = {name: text[18] for name, text in bundled.items() if text[:4] == b"\x7fELF"}
    assert {"psycopg_binary/_psycopg.cpython-314-aarch64-linux-gnu.so"} <= set(libraries)
    assert [name for name in libraries if name.startswith("psycopg_binary.libs/libpq-")]
    assert set(libraries.values()) == {183}
    assert bundled["database-ca.pem"] == b"certificates"
    assert "psycopg/__init__.py" in bundled
    assert not [name for name in bundled if "tests" in Path(name).parts]


def test_the_bundle_has_no_caches_and_no_notes_of_the_installer(bundled):
    names = [Path(name) for name in bundled]

    assert not [name for name in names if "__pycache__" in name.parts or name.suffix == ".pyc"]
    assert not {"RECORD", "INSTALLER", "direct_url.json", ".lock"} & {name.name for name in names}
    assert not [name for name, text in bundled.items() if str(ROOT).encode() in text]


def test_bundled_files_can_be_read_by_everyone_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        bundle({"consumer": LAMBDAS / "consumer"}, tmp_path)
    finally:
        os.umask(before)

    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o644, 0o755}
    assert (tmp_path / "consumer" / "handler.py").exists()


COLD_START = """
import sys
sys.path += sys.argv[1:]
import consumer.handler
assert consumer.handler.processor.reporter.is_on
print(*{module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}, sep="\\n")
"""


def test_the_example_consumer_starts_from_its_bundle_with_the_kit_in_it(tmp_path):
    variables = {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "IDEMPOTENCY_TABLE_NAME": "idempotency",
        "CONTROL_TABLE_NAME": "control",
        "OUTCOME_QUEUE_URL": "https://sqs/outcomes",
        "PARKING_LOT_URL": "https://sqs/parking-lot",
    }

    said, bundled = start(
        {"consumer": LAMBDAS / "consumer", **KIT}, tmp_path, COLD_START, variables
    )

    loaded = {path for path in said.splitlines() if path.startswith(str(bundled))}
    ours = {Path(path).relative_to(bundled).as_posix() for path in loaded}
    assert "smart_redriver/consumer/powertools.py" in ours
    assert not [path for path in said.splitlines() if path.startswith(str(ROOT / "smart"))]


def test_the_kit_in_a_bundle_is_the_kit_and_no_more(tmp_path):
    bundle({"consumer": LAMBDAS / "consumer", **KIT}, tmp_path)

    ours = {name for name in contents(tmp_path) if name.startswith("smart_redriver/")}
    assert ours == {
        f"smart_redriver/consumer/{path.name}"
        for path in (ROOT / "smart_redriver" / "consumer").iterdir()
        if path.is_file()
    }


def synth_in_its_own_process(outdir: Path, **environment: str) -> dict[str, str]:
    """Templates and asset manifests by name, as one whole synth with bundling writes them."""
    asked = {"with_sample_consumer": "true", "alarms": "all", "dashboard_widget": "true"}
    done = run_app(outdir, asked, **environment)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text() for path in outdir.glob("SmartRedriver.*.json")}


def test_two_synths_in_two_processes_and_places_give_the_same_template_and_asset_hashes(tmp_path):
    written = []
    # One of two equal templates has to be validated.
    for place, validation in (("one", "true"), ("two", "false")):
        (tmp_path / place).mkdir()
        outdir = tmp_path / place / "out"
        written.append(synth_in_its_own_process(outdir, CDK_VALIDATION=validation))

    assert written[0] == written[1]
    template = json.loads(written[0]["SmartRedriver.template.json"])
    keys = [
        found["Properties"]["Code"]["S3Key"]
        for found in template["Resources"].values()
        if found["Type"] == "AWS::Lambda::Function"
    ]
    assert len(set(keys)) == 3
    for key in keys:
        assert (tmp_path / "one" / "out" / f"asset.{Path(key).stem}").is_dir()


def test_without_uv_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BundlingError, match=r"uv is needed .* -m pip install uv$"):
        find_uv()


def test_a_uv_on_the_path_will_do_where_this_python_has_none(monkeypatch, tmp_path):
    (tmp_path / "uv").write_text("#!/bin/sh")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_uv() == str(tmp_path / "uv")


def test_the_lock_of_an_installed_construct_is_the_one_of_the_repository():
    assert bundling.LOCK_FILE.is_symlink()
    assert bundling.LOCK_FILE.resolve() == ROOT / "requirements" / "lambda.lock"


def test_what_uv_could_not_install_is_told_in_its_own_words(tmp_path, monkeypatch):
    missing = tmp_path / "no-such.lock"
    monkeypatch.setattr(bundling, "LOCK_FILE", missing)

    with pytest.raises(BundlingError, match=r"uv could not install no-such\.lock"):
        bundle({"redrive": LAMBDAS / "redrive"}, tmp_path / "out")


def test_a_synth_that_can_not_bundle_ends_with_one_message_and_no_traceback(tmp_path):
    nothing_to_install_from = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "empty")}

    done = run_app(tmp_path / "out", {}, **nothing_to_install_from)

    assert done.returncode == 1
    message, *reasons = done.stderr.splitlines()
    assert message == "uv could not install lambda.lock, which the functions need:"
    assert any("aws-lambda-powertools" in reason for reason in reasons)
    assert "Traceback" not in done.stderr
    assert "jsii" not in done.stderr.lower()


def test_two_bundles_of_one_folder_have_what_each_depends_on():
    app = cdk.App()
    stack = cdk.Stack(app, "Both")
    for name, lock_file in (("Sqs", bundling.LOCK_FILE), ("Jobs", POSTGRES_LOCK_FILE)):
        code = bundling.package_code(stack, LAMBDAS / "redrive", lock_file=lock_file)
        lambda_.Function(
            stack,
            name,
            code=code,
            handler="redrive.handler.lambda_handler",
            runtime=bundling.RUNTIME,
        )

    assets = [one for one in Path(app.synth().directory).iterdir() if one.name.startswith("asset.")]

    assert sorted((one / "psycopg").is_dir() for one in assets) == [False, True]
    assert all((one / "redrive" / "handler.py").is_file() for one in assets)
