"""What a person may write after ``cdk -c``, and what they are told when it is wrong."""

import pytest

from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import SettingsError
from stacks.settings import parse_context
from tests.infrastructure.app_process import CDK_JSON, UNBUNDLED, findings, run_app

A_QUEUE_WITH_NO_SUCH_PROPERTY = """
import aws_cdk as cdk
app = cdk.App()
cdk.CfnResource(cdk.Stack(app, "Wrong"), "Queue", type="AWS::SQS::Queue", properties={"Depth": 5})
app.synth()
"""


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
            "cli-telemetry": False,
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


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("maxAttempts", "max_attempts"),
        ("MAX_ATTEMPTS", "max_attempts"),
        ("max-attempts", "max_attempts"),
        ("failure_treshold", "failure_threshold"),
        ("cool_down", "cool_down_seconds"),
        ("queue", "queues"),
        ("alarm", "alarms"),
        ("paging_email", "paging_emails"),
        ("deletion-protection", "deletion_protection"),
    ],
)
def test_a_slip_of_the_hand_is_taken_for_the_setting_it_comes_close_to(key, name):
    [fault] = faults_of({key: "1"})

    assert f"the name {name} " in fault


@pytest.mark.parametrize("value", ["dry_run", "automatic"])
@pytest.mark.parametrize("key", ["modee", "modes", "mod", "mode ", "Mode", "m"])
def test_a_re_driver_that_was_meant_to_be_dry_is_not_deployed_to_act(key, value):
    """A key that nobody knows changes nothing, and the default acts."""
    [fault] = faults_of({key: value})

    assert fault.startswith(f"{key}: saw '{value}', accepted is ")


@pytest.mark.parametrize(
    "key",
    [
        "alarm_email",
        "failure_mode",
        "log_retention",
        "max_capacity",
        "model",
        "node",
        "queue_name",
        "rate",
        "retention",
        "schedule",
        "stage",
        "topic_arn",
        "acme:stage",
        "acme/stage",
    ],
)
def test_no_key_passes_that_is_neither_ours_nor_the_cdks(key):
    [fault] = faults_of({key: "1"})

    assert f"no setting is called {key}" in fault


def test_every_look_up_that_the_cdk_remembers_is_its_own():
    providers = [
        "ami",
        "availability-zones",
        "cc-api-provider",
        "endpoint-service-availability-zones",
        "hosted-zone",
        "key-provider",
        "load-balancer",
        "load-balancer-listener",
        "plugin",
        "security-group",
        "ssm",
        "vpc-provider",
    ]
    remembered = {f"{one}:account=111122223333:region=eu-west-1": "x" for one in providers}

    assert parse_context(remembered) == parse_context({})


def test_no_setting_is_taken_for_a_slip_of_another():
    names = {*Settings.names(), *MonitoringSettings.names(), "retain"}
    names |= {"deletion_protection", "termination_protection", "oncall_policies"}
    with pytest.raises(SettingsError) as caught:
        parse_context(dict.fromkeys(names, "no such value"))

    assert all("no setting is called" not in fault.accepted for fault in caught.value.faults)


def test_wrong_values_and_misspelt_keys_are_told_together():
    faults = faults_of({"max_attempts": "0", "retain": "no", "cool_down": "5", "mode": "off"})

    assert [fault.split(":")[0] for fault in faults] == [
        "mode",
        "max_attempts",
        "retain",
        "cool_down",
    ]


def test_a_wrong_setting_ends_the_app_with_one_message_and_no_traceback(tmp_path):
    done = run_app(tmp_path / "out", UNBUNDLED | {"max_attempts": "0", "max_atempts": "3"})

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "2 fault(s) in the settings:",
        "  max_attempts: saw '0', accepted is a whole number from 1 to 100 "
        "(strikes before a letter is parked)",
        "  max_atempts: saw '3', accepted is the name max_attempts "
        "(no setting is called max_atempts)",
    ]


def test_the_app_synthesizes_without_findings_and_without_credentials(tmp_path):
    done = run_app(tmp_path / "out", UNBUNDLED | {"mode": "paused", "with_sample_consumer": "true"})

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "SmartRedriver.template.json").exists()
    assert findings(tmp_path / "out") == []


def test_the_flags_let_the_cdk_refuse_a_template_by_its_own_rules(tmp_path):
    """So that the app above is known to have been looked at."""
    done = run_app(tmp_path / "out", {}, code=A_QUEUE_WITH_NO_SUCH_PROPERTY)

    assert done.returncode != 0
    assert "Depth" in done.stderr


def test_every_recommended_flag_is_set():
    assert CDK_JSON["context"]["@aws-cdk/core:validateAgainstDefaultRules"] is True
    assert len(CDK_JSON["context"]) == 89
