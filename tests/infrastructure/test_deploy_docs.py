"""What docs/deploy.md says can be typed is what works, and its policy is the one that synth prints."""

import ast
import json
import os
import re
import subprocess
import tomllib

from smart_redriver.cdk.queue_clashes import MAX_QUEUES
from smart_redriver.engine.triage.retention import SWEEP_LIMIT
from stacks.settings import parse_context
from tests.infrastructure.app_process import ROOT, UNBUNDLED, run_app
from tests.infrastructure.test_adoption import adopt, told_to_owners

DOCS = (ROOT / "docs" / "deploy.md").read_text()
PIPELINE = (ROOT / "examples" / "pipeline.py").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCS, re.DOTALL)
    assert found
    return found[1]


def test_a_dry_run_is_said_to_read_as_many_letters_as_a_sweep():
    assert f"reads up to {SWEEP_LIMIT:,} for those near expiry" in DOCS


def test_the_list_of_queues_is_accepted(tmp_path):
    path = tmp_path / "queues.toml"
    path.write_text(block("toml"))

    orders, refunds = parse_context({"queues": str(path)}).queues

    assert (orders.name, refunds.name) == ("orders", "refunds")
    assert len(refunds.source_arns) == 2
    assert refunds.settings.max_attempts == 3


def test_the_policy_of_the_key_is_the_one_that_synth_prints():
    [orders, *_] = tomllib.loads(block("toml"))["queues"]

    [statements] = told_to_owners(adopt(orders))

    printed = json.dumps(statements[orders["source_key_arn"]])
    printed = re.sub(r"arn:[^:]*AWS::Partition[^:]*:", "arn:aws:", printed)
    assert json.loads(printed) == json.loads(block("json"))


def test_the_pipeline_deploys_a_stack_to_each_home(tmp_path):
    here = tmp_path / "here.toml"
    here.write_text(block("toml"))
    there = tmp_path / "there.toml"
    there.write_text(re.findall(r"```toml\n(# queues-us.*?)```", DOCS, re.DOTALL)[0])

    context = {"queues": f"{here},{there}", "alarms": "paging"}
    done = run_app(tmp_path / "out", UNBUNDLED | context, code=PIPELINE)

    assert done.returncode == 0, done.stderr
    templates = (tmp_path / "out" / "assembly-Production").glob("*.template.json")
    stacks = [one.name for one in templates if "nested" not in one.name]
    assert len(stacks) == 2
    assert (tmp_path / "out" / "RedriverPipeline.template.json").exists()


#: In place of what needs a network: each makes what the real one does.
MAKE = """#!/bin/sh
for one in "$@"; do case $one in
  .venv/.ready) ln -s {root}/.venv .venv ;;
  node_modules/.ready) ln -s {root}/node_modules node_modules ;;
  *) exit 1 ;;
esac; done
"""


def test_the_pipelines_own_commands_synthesize_it_in_a_fresh_clone(tmp_path):
    """`npx cdk synth` alone starts the Python of an environment that nobody has made."""
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    clone.mkdir()
    tools.mkdir()
    made_here = {".venv", "node_modules", "cdk.out", "cdk.json"}
    for one in ROOT.iterdir():
        if one.name not in made_here:
            (clone / one.name).symlink_to(one)
    (clone / "pipeline.py").write_text(PIPELINE)
    (clone / "queues.toml").write_text(block("toml"))
    settings = json.loads((ROOT / "cdk.json").read_text())
    settings["context"] |= UNBUNDLED | {"queues": "queues.toml"}
    (clone / "cdk.json").write_text(json.dumps(settings))
    (tools / "make").write_text(MAKE.format(root=ROOT))
    (tools / "make").chmod(0o755)
    [listed] = re.findall(r"commands=(\[.*?\n    \])", PIPELINE, re.DOTALL)
    build = ast.literal_eval(listed)

    for command in build:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=clone,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    assert (clone / "cdk.out" / "RedriverPipeline.template.json").exists()


def test_the_list_of_many_queues_makes_two_stacks_of_which_the_first_tells(tmp_path):
    path = tmp_path / "queues-many.toml"
    path.write_text(re.findall(r"```toml\n(# queues-many.*?)```", DOCS, re.DOTALL)[0])

    done = run_app(tmp_path / "out", UNBUNDLED | {"queues": str(path), "alarms": "paging"})

    assert done.returncode == 0, done.stderr
    first = json.loads((tmp_path / "out" / "SmartRedriver.template.json").read_text())
    stacks = first["Outputs"]["RedriverStacks"]["Value"].split()
    assert stacks == ["SmartRedriver", "SmartRedriver-shipping"]
    assert (tmp_path / "out" / "SmartRedriver-shipping.template.json").exists()


def test_the_limit_of_a_list_is_the_one_that_is_enforced():
    assert f"| {MAX_QUEUES} queues a stack" in DOCS
