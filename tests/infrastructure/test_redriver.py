"""The function, its schedule and its permissions: exact, so that each addition is deliberate."""

import json

import pytest
from aws_cdk.assertions import Template

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import FOR_MADE_QUEUES, FOR_SYNTH, Mode, Settings
from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import entry
from tests.infrastructure.conftest import make_app
from tests.infrastructure.privilege_docs import documented

SOURCE = "QueuesSource074CB5B2"
DEAD_LETTER = "QueuesDeadLetterA4947A69"
PARKING_LOT = "QueuesParkingLotF16E5B7E"
OUTCOMES = "RedriverOutcomes79C9044D"
TABLE = "StateTable962DE04C"
FUNCTION = "RedriverFunctionDAE1334E"


def properties(template: Template, logical_id: str) -> dict:
    return template.to_json()["Resources"][logical_id]["Properties"]


def environment(template: Template) -> dict:
    return properties(template, FUNCTION)["Environment"]["Variables"]


def granted(template: Template, role: str) -> dict[str, set[str]]:
    """Actions that the role may do, by the logical id (or the text) of the resource."""
    found: dict[str, set[str]] = {}
    for policy in template.find_resources("AWS::IAM::Policy").values():
        if policy["Properties"]["Roles"] != [{"Ref": role}]:
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            resource, actions = statement["Resource"], statement["Action"]
            where = resource if isinstance(resource, str) else resource["Fn::GetAtt"][0]
            found.setdefault(where, set()).update(
                [actions] if isinstance(actions, str) else actions
            )
    return found


def test_the_function_may_do_exactly_what_a_pass_does(template):
    role = properties(template, FUNCTION)["Role"]["Fn::GetAtt"][0]

    assert granted(template, role) == {
        "RedriverLogsB39EEAEB": {"logs:CreateLogStream", "logs:PutLogEvents"},
        SOURCE: {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        DEAD_LETTER: {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
            "sqs:ListMessageMoveTasks",
            "sqs:SendMessage",
        },
        PARKING_LOT: {
            "sqs:SendMessage",
            "sqs:GetQueueAttributes",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
        },
        OUTCOMES: {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
        },
        TABLE: {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:DeleteItem",
            "dynamodb:BatchGetItem",
            "dynamodb:BatchWriteItem",
        },
        "*": {"cloudwatch:GetMetricData"},
    }


def test_every_action_that_is_granted_is_in_the_docs_with_what_fails_without_it(template):
    """Lambda itself writes the log; tests/faults takes each of the others away."""
    places = {
        SOURCE: "source queue",
        DEAD_LETTER: "DLQ",
        PARKING_LOT: "parking lot",
        OUTCOMES: "outcome queue",
        TABLE: "state table",
        "*": "CloudWatch",
    }
    role = properties(template, FUNCTION)["Role"]["Fn::GetAtt"][0]

    found = granted(template, role)

    assert {(action, places[where]) for where in places for action in found[where]} == set(
        documented()
    )


def test_no_role_has_a_managed_or_inline_policy(sample_template):
    for role in sample_template.find_resources("AWS::IAM::Role").values():
        assert not {"ManagedPolicyArns", "Policies"} & set(role["Properties"])


def test_the_function_has_the_memory_that_its_setting_says(synth):
    assert properties(synth(memory_mib="1769"), FUNCTION)["MemorySize"] == 1769


@pytest.fixture
def adopted_stack():
    app = make_app(queues=[entry("orders"), entry("refunds")])
    return make_stack(app, read_context(app.node))


def test_the_function_runs_as_designed(template):
    function = properties(template, FUNCTION)

    assert function["Handler"] == "redrive.handler.lambda_handler"
    assert function["Runtime"] == "python3.14"
    assert function["Architectures"] == ["arm64"]
    assert function["MemorySize"] == 512
    assert function["LoggingConfig"] == {
        "LogFormat": "JSON",
        "LogGroup": {"Ref": "RedriverLogsB39EEAEB"},
    }
    assert properties(template, "RedriverLogsB39EEAEB")["RetentionInDays"] == 30
    assert "ReservedConcurrentExecutions" not in function
    assert function.get("RecursiveLoop", "Terminate") == "Terminate"


@pytest.mark.parametrize("minutes", ["1", "1440"])
def test_how_long_a_pass_may_take_does_not_depend_on_how_often_an_idle_queue_is_looked_at(
    synth, minutes
):
    template = synth(schedule_minutes=minutes)

    assert properties(template, FUNCTION)["Timeout"] == 240


@pytest.mark.parametrize("minutes", ["1", "5", "1440"])
def test_the_schedule_ticks_every_minute_whatever_the_rhythm_and_never_retries(synth, minutes):
    template = synth(schedule_minutes=minutes)
    [schedule] = template.find_resources("AWS::Scheduler::Schedule").values()

    assert environment(template)["SCHEDULE_MINUTES"] == minutes
    assert schedule["Properties"]["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Properties"]["State"] == "ENABLED"
    target = schedule["Properties"]["Target"]
    assert target["Arn"] == {"Fn::GetAtt": [FUNCTION, "Arn"]}
    assert json.loads(target["Input"]) == {"scheduled": True}
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}


def test_an_invocation_that_fails_is_not_retried_by_lambda_either(template):
    template.has_resource_properties(
        "AWS::Lambda::EventInvokeConfig",
        {
            "FunctionName": {"Ref": FUNCTION},
            "MaximumRetryAttempts": 0,
            "MaximumEventAgeInSeconds": 60,
        },
    )


def test_the_schedule_may_invoke_this_function_only(template):
    [schedule] = template.find_resources("AWS::Scheduler::Schedule").values()
    role = schedule["Properties"]["Target"]["RoleArn"]["Fn::GetAtt"][0]
    [policy] = [
        found["Properties"]["PolicyDocument"]["Statement"]
        for found in template.find_resources("AWS::IAM::Policy").values()
        if found["Properties"]["Roles"] == [{"Ref": role}]
    ]

    arn = {"Fn::GetAtt": [FUNCTION, "Arn"]}
    assert policy == [
        {
            "Effect": "Allow",
            "Action": "lambda:InvokeFunction",
            "Resource": arn,
        }
    ]


def text_only(variables: dict) -> dict[str, str]:
    return {name: value for name, value in variables.items() if isinstance(value, str)}


def test_the_function_reads_the_default_settings_from_its_environment(template):
    assert Settings.from_env(text_only(environment(template))) == Settings()


def test_the_function_reads_changed_settings_from_its_environment(synth):
    changed = {
        "mode": "paused",
        "schedule_minutes": "7",
        "max_attempts": "3",
        "base_delay_seconds": "0",
        "max_delay_seconds": "43200",
        "initial_window": "2",
        "max_window": "20",
        "max_rate": "0.5",
        "recovery_alarms": "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:orders",
        "downstream": "payments",
        "failure_threshold": "4",
        "success_threshold": "5",
        "failure_rate": "0.25",
        "canary_size": "6",
        "cool_down_seconds": "90",
        "max_cool_down_seconds": "900",
        "verdict_grace_seconds": "31",
        "last_chance_seconds": "7200",
        "give_up_seconds": "7200",
        "fifo_poison": "block",
        "failure_details_days": "3",
        "memory_mib": "256",
        "source_visibility_timeout_seconds": "120",
        "max_receive_count": "8",
        "with_sample_consumer": "true",
    }
    assert set(changed) == set(Settings.names())

    variables = environment(synth(**changed))

    in_no_function = dict.fromkeys((*FOR_MADE_QUEUES, *FOR_SYNTH))
    variables["MODE"] = variables["MODE"]["Fn::If"][2]
    read = Settings.from_env(text_only(variables))
    wanted = Settings.parse({k: v for k, v in changed.items() if k not in in_no_function})
    assert read == wanted
    assert read.mode is Mode.PAUSED
    for name in changed.keys() - in_no_function.keys():
        assert getattr(read, name) != getattr(Settings(), name)


def test_one_parameter_pauses_all_queues_of_a_stack_and_status_sees_it(adopted_stack):
    template = Template.from_stack(adopted_stack).to_json()

    [switch] = [one for name, one in template["Parameters"].items() if name == "PauseAll"]
    modes = [
        one["Properties"]["Environment"]["Variables"]["MODE"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
    ]
    told = [
        json.dumps(one["Value"])
        for name, one in template["Outputs"].items()
        if name.endswith("Redriver")
    ]

    assert (switch["Default"], switch["AllowedValues"]) == ("no", ["no", "yes"])
    assert template["Conditions"]["AllArePaused"] == {"Fn::Equals": [{"Ref": "PauseAll"}, "yes"]}
    assert modes == [{"Fn::If": ["AllArePaused", "paused", "automatic"]}] * 2
    assert all(json.dumps(modes[0]) in one for one in told)
    assert len(told) == 2


def test_a_stack_is_protected_from_termination_where_that_is_asked_for():
    """Not by default: a first deployment that failed is deleted before it is tried again."""
    stacks = {
        asked: make_stack(app, read_context(app.node))
        for asked in ("true", "false")
        for app in [make_app(termination_protection=asked)]
    }

    assert {one: stack.termination_protection for one, stack in stacks.items()} == {
        "true": True,
        "false": False,
    }


def test_the_function_reads_where_its_queues_and_table_are(template):
    variables = {name: as_text(value) for name, value in environment(template).items()}

    assert Deployment.from_env(variables) == Deployment(
        queue_name=as_text({"Fn::GetAtt": [SOURCE, "QueueName"]}),
        table_name=as_text({"Ref": TABLE}),
        dlq_url=as_text({"Ref": DEAD_LETTER}),
        source_queue_url=as_text({"Ref": SOURCE}),
        parking_lot_url=as_text({"Ref": PARKING_LOT}),
        outcome_queue_url=as_text({"Ref": OUTCOMES}),
    )


def as_text(value: str | dict) -> str:
    """What a deployment makes of a reference is text, too."""
    return json.dumps(value)
