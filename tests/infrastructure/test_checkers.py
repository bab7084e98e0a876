"""What a reviewer's checkers say of the templates: nothing that is not accepted with a reason,
and nothing accepted for nothing.

cdk-nag runs at each synth, and fails it. cfn-lint and checkov read the templates that come out, here of seven kinds.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.redriver_stack import add_checks, make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import (
    by_iam,
    entry,
    fifo_entry,
    jobs_entry,
    key_arn,
    shared_entry,
)
from tests.infrastructure.app_process import UNBUNDLED, findings
from tests.infrastructure.conftest import FLAGS, ROOT, STRICT, check_by_the_cdk
from tests.infrastructure.test_origins import EVERY

CHECKOV = ROOT / ".venv-checkov" / "bin" / "checkov"
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "everything": {
        "with_sample_consumer": "true",
        "oncall_policies": "true",
        "alarms": "all",
        "dashboard_widget": "true",
    },
    "fifo": {"fifo": "true", "with_sample_consumer": "true", "oncall_policies": "true"},
    "adopted": {
        "oncall_policies": "true",
        "alarms": "all",
        "dashboard_widget": "true",
        "queues": [
            entry("orders", source_key_arn=key_arn(1), dead_letter_key_arn=key_arn(2)),
            shared_entry("refunds", "refunds", "returns"),
            fifo_entry("bookings", "bookings", "cancellations"),
        ],
    },
    "origins": STRICT
    | {"oncall_policies": "true", "alarms": "all", "dashboard_widget": "true", "queues": EVERY},
    "jobs": {"oncall_policies": "true", "queues": [jobs_entry("jobs"), by_iam("mails-late")]},
    "strict": STRICT
    | {
        "with_sample_consumer": "true",
        "oncall_policies": "true",
        "alarms": "all",
        "dashboard_widget": "true",
    },
}
#: Beside that of a key: what a rule says may differ by Region.
REGIONS = ["us-east-1", "eu-west-1"]

#: Of the one template that is shown as it is.
AS_GIVEN = "as-given.template.json"
#: Rule and resource.
Finding = tuple[str, str]


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of templates for each kind, cdk-nag's report beside them."""
    folder = tmp_path_factory.mktemp("checked") / "given"
    for kind, context in KINDS.items():
        app = checked_app(folder / folder_of(kind), **context)
        make_stack(app, read_context(app.node))
        add_checks(app)
        app.synth()
    return folder


def checked_app(outdir: Path, **context: Any) -> cdk.App:
    app = cdk.App(context={**FLAGS, **UNBUNDLED, **context}, outdir=str(outdir))
    check_by_the_cdk(app)
    return app


@pytest.fixture(scope="module")
def shown(assemblies: Path) -> Path:
    """What is shown to checkers: the plain template as it is, the others without what they say to them.

    What they find in those is compared with what those say; that they heed it is seen on the plain one, of which all is
    in another, too.
    """
    folder = assemblies.parent / "shown"
    folder.mkdir()
    for path, template in templates(assemblies):
        if path.parent.name == folder_of("plain"):
            (folder / AS_GIVEN).write_text(json.dumps(template))
            continue
        template.pop("Metadata", None)
        for resource in template["Resources"].values():
            resource.pop("Metadata", None)
        (folder / name_of(path)).write_text(json.dumps(template))
    return folder


def folder_of(kind: str) -> str:
    """Ends in a hyphen: checkov takes 40 letters and slashes in a row for a secret, in a template's own path, too."""
    return f"{kind}-"


def templates(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.rglob("*.template.json")):
        yield path, json.loads(path.read_text())


def name_of(path: Path) -> str:
    """One name for a template of an assembly, in a folder of all of them."""
    return f"{path.parent.name}{path.name}"


@pytest.fixture(scope="module")
def linted(shown: Path) -> dict[str, set[str]]:
    """The rules by which cfn-lint finds anything in a template,
    with all on that it does not call experimental itself.
    """
    command = [
        str(Path(sys.executable).parent / "cfn-lint"), "--format", "json", "--include-checks", "I",
        "--regions", *REGIONS, "--template", *(str(path) for path, _ in templates(shown)),
    ]  # fmt: skip
    # Any finding is a code of its own, by its level.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, set[str]] = {}
    for one in json.loads(done.stdout):
        found.setdefault(Path(one["Filename"]).name, set()).add(one["Rule"]["Id"])
    return found


def test_cdk_nag_and_the_cdk_have_nothing_left_to_find(assemblies):
    assert {kind: findings(assemblies / folder_of(kind)) for kind in KINDS} == {
        kind: [] for kind in KINDS
    }


def test_the_cdk_finds_what_is_not_of_a_queue(tmp_path):
    app = checked_app(tmp_path)
    cdk.CfnResource(
        cdk.Stack(app, "Wrong"), "Queue", type="AWS::SQS::Queue", properties={"Depth": 5}
    )

    with pytest.raises(RuntimeError, match=r"(?s)Depth"):
        app.synth()


def test_cfn_lint_finds_nothing_but_what_it_is_told_to_ignore_and_ignores_that(assemblies, linted):
    ignored = {
        name_of(path): set(template["Metadata"]["cfn-lint"]["config"]["ignore_checks"])
        for path, template in templates(assemblies)
        if path.parent.name != folder_of("plain")
    }

    assert AS_GIVEN not in linted
    assert linted.keys() == ignored.keys()
    assert all(linted[name] <= ignored[name] for name in linted)
    assert set.union(*linted.values()) == set.union(*ignored.values())


@pytest.fixture(scope="module")
def checked(shown: Path) -> dict[str, set[Finding]]:
    """What checkov finds, by template."""
    command = [
        str(CHECKOV), "--framework", "cloudformation", "--skip-download", "--output", "json",
        "--directory", str(shown),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    results = json.loads(done.stdout)["results"]
    assert not results["parsing_errors"]
    found: dict[str, set[Finding]] = {}
    for one in results["failed_checks"]:
        finding = (one["check_id"], one["resource"].rpartition(".")[2])
        found.setdefault(Path(one["file_path"]).name, set()).add(finding)
    return found


def test_checkov_finds_exactly_what_it_is_told_to_skip_for_a_reason_and_skips_that(
    assemblies, checked
):
    skipped: dict[str, set[Finding]] = {}
    for path, template in templates(assemblies):
        for name, resource in template["Resources"].items():
            for one in resource.get("Metadata", {}).get("checkov", {}).get("skip", ()):
                assert len(one["comment"].split()) > 5
                skipped.setdefault(name_of(path), set()).add((one["id"], name))

    assert skipped.pop(folder_of("plain") + "SmartRedriver.template.json")
    assert AS_GIVEN not in checked
    assert checked == skipped


def test_what_a_strict_account_is_left_to_accept_is_short(checked):
    found = checked["strict-SmartRedriver.template.json"]
    accepted = [(rule, resource) for rule, resource in found if resource.startswith("Redriver")]

    assert {rule for rule, _ in accepted} == {
        "CKV_AWS_111",  # network interfaces, which Lambda wants without a resource
        "CKV_AWS_115",  # the dashboard's widget: everybody who looks invokes it
        "CKV_AWS_116",  # no queue of ticks that failed
    }
    [unreserved] = [resource for rule, resource in accepted if rule == "CKV_AWS_115"]
    assert "Widget" in unreserved
