"""What `make release` makes: the same bytes from the same sources, and files that work by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from smart_redriver import __version__
from smart_redriver.cdk import Settings
from tests.package.installed import ROOT

PROGRAMS = ("python", "template", "docs")
VERSIONED = f"smart-redriver-{__version__}"


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    path = os.pathsep.join([str(ROOT / "node_modules" / ".bin"), os.environ["PATH"]])
    done = subprocess.run(
        [str(one) for one in command],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def release(folder: Path, *names: str, **variables: str) -> dict[str, bytes]:
    for name in names:
        run(ROOT, sys.executable, ROOT / "packages" / name / "build.py", folder, **variables)
    return {one.name: one.read_bytes() for one in folder.iterdir()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    release(folder, *PROGRAMS, "cdk_typescript")
    return folder


@pytest.fixture(scope="module")
def template(dist: Path) -> dict[str, Any]:
    return json.loads((dist / f"{VERSIONED}.template.json").read_text())


def test_every_folder_of_packages_with_a_program_is_built_by_the_release() -> None:
    assert "\tfor one in packages/*/build.py; do" in (ROOT / "Makefile").read_text()


def test_two_builds_give_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = release(tmp_path / "again", *PROGRAMS, TZ="Asia/Tokyo")
    finally:
        os.umask(before)

    assert len(again) == 6
    for name, content in again.items():
        assert (dist / name).read_bytes() == content, name


def test_the_wheel_installs_no_top_level_name_but_ours_and_has_its_licence(dist: Path) -> None:
    [wheel] = dist.glob("smart_redriver-*.whl")
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        [metadata] = (packed.read(one).decode() for one in names if one.endswith("/METADATA"))

    tops = {name.split("/")[0] for name in names}
    assert tops == {"smart_redriver", f"smart_redriver-{__version__}.dist-info"}
    assert "smart_redriver/py.typed" in names
    assert f"Version: {__version__}\n" in metadata
    assert "License-Expression: MIT-0" in metadata
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_the_sdist_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    [sdist], [wheel] = dist.glob("*.tar.gz"), dist.glob("smart_redriver-*.whl")
    run(tmp_path, "tar", "--extract", "--no-same-owner", "--file", sdist)
    [source] = tmp_path.iterdir()
    program = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"

    run(source, sys.executable, "-c", program, tmp_path)

    [again] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as first, ZipFile(again) as second:
        files = {name for name in first.namelist() if not name.endswith("/RECORD")}
        assert files <= set(second.namelist())
        assert all(first.read(name) == second.read(name) for name in files)


def test_the_bill_of_materials_names_all_that_the_lock_pins(dist: Path) -> None:
    told = json.loads((dist / f"{VERSIONED}.cdx.json").read_text())
    lock = (ROOT / "requirements" / "lambda.lock").read_text()

    pins = {line.split()[0] for line in lock.splitlines() if "==" in line}
    assert {f"{one['name']}=={one['version']}" for one in told["components"]} == pins
    assert all(one["properties"] for one in told["components"])


def test_the_template_wants_queues_and_a_place_for_the_code_and_nothing_else(
    template: dict[str, Any],
) -> None:
    needed = [name for name, one in template["Parameters"].items() if "Default" not in one]

    assert needed == ["SourceQueueArn", "DeadLetterQueueArn", "CodeBucket"]
    assert "BootstrapVersion" not in template["Parameters"]
    assert "cdk-" not in json.dumps(template)


def test_no_name_in_the_template_stands_in_the_way_of_a_second_stack(
    template: dict[str, Any],
) -> None:
    """Both composites had the name of the stack in which the template is built: a second one was refused."""
    names = {
        logical_id: json.dumps(value)
        for logical_id, one in template["Resources"].items()
        for name, value in one["Properties"].items()
        if name in {"AlarmName", "QueueName", "TableName", "RoleName", "TopicName", "LogGroupName"}
    }

    alarms = [one for one in names if "Monitoring" in one]
    assert len(alarms) == len(names) == 11
    for name in names.values():
        assert "SourceQueueArn" in name
        assert '{"Ref": "AWS::StackName"}' in name
        assert "SmartRedriver" not in name
    rules = [one["Properties"].get("AlarmRule") for one in template["Resources"].values()]
    assert "SmartRedriver-" not in json.dumps(rules)


def test_each_alarm_of_the_template_links_to_the_runbook_that_the_deployment_names(
    template: dict[str, Any],
) -> None:
    told = [one["Properties"].get("AlarmDescription") for one in template["Resources"].values()]

    described = [json.dumps(one) for one in told if one]
    assert len(described) == 11
    assert all('{"Ref": "RunbookUrl"}, "#' in one for one in described)


def test_the_templates_settings_are_the_functions(template: dict[str, Any]) -> None:
    [function] = [
        one["Properties"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
    ]
    variables = function["Environment"]["Variables"]
    given = {
        name: one["Ref"]
        for name, one in variables.items()
        if isinstance(one, dict) and one.get("Ref") in template["Parameters"]
    }

    defaults = {name: template["Parameters"][ref]["Default"] for name, ref in given.items()}
    assert len(defaults) >= 14
    assert defaults.items() <= Settings().to_env().items()
    assert function["MemorySize"] == {"Ref": "MemoryMib"}
    assert function["Code"] == {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": "CodeKey"}}


def test_who_has_no_clone_gets_the_pages(dist: Path) -> None:
    with ZipFile(dist / f"{VERSIONED}-docs.zip") as packed:
        names = {one.partition("/")[2] for one in packed.namelist()}

    pages = {one.relative_to(ROOT).as_posix() for one in (ROOT / "docs").rglob("*.md")}
    assert pages | {"README.md", "CHANGELOG.md", "examples/typescript/app.ts"} <= names


def test_the_zip_holds_the_function(dist: Path) -> None:
    with ZipFile(dist / f"{VERSIONED}.zip") as packed:
        names = set(packed.namelist())
        modes = {one.external_attr >> 16 for one in packed.infolist()}

    assert {"redrive/handler.py", "smart_redriver/engine/wiring.py", "boto3/__init__.py"} <= names
    assert modes == {0o644}


def test_cfn_lint_finds_nothing_in_the_template_but_the_cdks_style(dist: Path) -> None:
    lint = Path(sys.executable).parent / "cfn-lint"
    command = [
        lint,
        "--ignore-checks",
        "W3005",
        "--regions",
        "us-east-1",
        "eu-west-1",
        "--template",
    ]

    assert run(dist, *command, dist / f"{VERSIONED}.template.json") == ""  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def synthesized(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The example in TypeScript with the package as npm installs it."""
    folder = tmp_path_factory.mktemp("shop")
    place = str(ROOT / "packages" / "cdk_typescript")
    program = (
        f"import sys; sys.path.insert(0, {place!r}); "
        "import build, pathlib; build.link_cdk(pathlib.Path('node_modules'))"
    )
    run(folder, sys.executable, "-c", program)
    [packed] = dist.glob("smart-redriver-cdk-*.tgz")
    run(folder, "tar", "--extract", "--no-same-owner", "--file", packed)
    (folder / "package").rename(folder / "node_modules" / "smart-redriver-cdk")
    (folder / "app.ts").write_text((ROOT / "examples" / "typescript" / "app.ts").read_text())
    tsc = ROOT / "node_modules" / "typescript" / "bin" / "tsc"
    options = ("--strict", "--skipLibCheck", "--target", "ES2022", "--module", "commonjs")
    run(folder, "node", tsc, *options, "app.ts")
    run(folder, "node", "app.js", CDK_OUTDIR=str(folder / "out"))
    return json.loads((folder / "out" / "Shop.template.json").read_text())


def test_the_typescript_example_has_the_templates_resources_and_its_two_queues(
    template: dict[str, Any], synthesized: dict[str, Any]
) -> None:
    """Without those that a deployment without key and addresses has not either."""
    not_asked_for = {"HasKey", "HasDownstream", "HasWarningEmail", "HasPagingEmail"}
    ours = Counter(
        one["Type"]
        for one in template["Resources"].values()
        if one.get("Condition") not in not_asked_for
    )
    theirs = Counter(one["Type"] for one in synthesized["Resources"].values())

    assert theirs == ours + Counter({"AWS::SQS::Queue": 2})


def test_the_typescript_example_leaves_to_the_deployment_what_may_be_secret_and_nothing_else(
    synthesized: dict[str, Any],
) -> None:
    kept = [name for name in synthesized["Parameters"] if name != "BootstrapVersion"]

    assert all("HttpsEndpoint" in one for one in (*kept, *synthesized["Conditions"]))


def test_the_typescript_example_says_its_settings_and_tells_the_command(
    synthesized: dict[str, Any],
) -> None:
    [function] = [
        one["Properties"]
        for one in synthesized["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
    ]
    variables = function["Environment"]["Variables"]

    assert (variables["MODE"], variables["MAX_ATTEMPTS"]) == ("dry_run", "3")
    assert variables["LAST_CHANCE_SECONDS"] == "43200"
    assert "OrdersRedriver" in synthesized["Outputs"]
    assert "Fn::Sub" in json.dumps(function["Code"]["S3Bucket"])
