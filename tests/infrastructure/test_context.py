"""What a person may write after ``cdk -c``, and what they are told when it is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.errors import SettingsError
from redrive.settings import Mode
from stacks.settings import parse_context

ROOT = Path(__file__).resolve().parents[2]
CDK_JSON = json.loads((ROOT / "cdk.json").read_text())


def run_app(outdir: Path, **context) -> subprocess.CompletedProcess[str]:
    """Run app.py as the CDK command line does."""
    context = {**CDK_JSON["context"], "aws:cdk:bundling-stacks": [], **context}
    env = {**os.environ, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(outdir)}
    return subprocess.run(
        [sys.executable, str(ROOT / "app.py")],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


def faults_of(values: dict) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_context(values)
    return [str(fault) for fault in caught.value.faults]


def test_the_flags_of_the_cdk_are_no_settings_of_ours():
    context = parse_context(
        {
            **CDK_JSON["context"],
            "aws:cdk:bundling-stacks": [],
            "availability-zones:account=1:region=x": ["a"],
            "@aws-cdk/x:max_atempts": 1,
            "stage": "prod",
        }
    )

    assert context == parse_context({})


def test_context_values_become_settings():
    context = parse_context({"max_attempts": "3", "mode": "paused", "retain": "false"})

    assert context.settings.max_attempts == 3
    assert context.settings.mode is Mode.PAUSED
    assert context.retain is False


def test_everything_is_retained_unless_said_otherwise():
    assert parse_context({}).retain is True


def test_a_misspelt_key_is_refused_with_the_nearest_name():
    assert faults_of({"max_atempts": "3"}) == [
        "max_atempts: saw '3', accepted is the name max_attempts (no setting is called max_atempts)"
    ]
    assert "the name retain" in faults_of({"retian": "false"})[0]


def test_wrong_values_and_misspelt_keys_are_told_together():
    faults = faults_of({"max_attempts": "0", "retain": "no", "cool_down": "5", "mode": "off"})

    assert [fault.split(":")[0] for fault in faults] == [
        "mode",
        "max_attempts",
        "retain",
        "cool_down",
    ]


def test_a_wrong_setting_ends_the_app_with_one_message_and_no_traceback(tmp_path):
    done = run_app(tmp_path / "out", max_attempts="0", max_atempts="3")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "2 fault(s) in the settings:",
        "  max_attempts: saw '0', accepted is a whole number from 1 to 100 "
        "(strikes before a letter is parked)",
        "  max_atempts: saw '3', accepted is the name max_attempts "
        "(no setting is called max_atempts)",
    ]


def test_the_app_synthesizes_without_findings_and_without_credentials(tmp_path):
    done = run_app(tmp_path / "out", mode="paused", with_sample_consumer="true")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "SmartRedriver.template.json").exists()
    assert findings(tmp_path / "out") == []


def test_every_recommended_flag_is_set():
    assert CDK_JSON["context"]["@aws-cdk/core:validateAgainstDefaultRules"] is True
    assert len(CDK_JSON["context"]) == 89


def findings(outdir: Path) -> list:
    report = json.loads((outdir / "validation-report.json").read_text())
    return [violation for plugin in report["pluginReports"] for violation in plugin["violations"]]
