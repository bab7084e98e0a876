"""Re-drivers of DLQs that SQS does not fill: grants on exactly the targets, environment, outputs, alarms, checks."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk import SmartRedriver, Targets
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.places import read_places
from tests.infrastructure.adopted import (
    ACCOUNT,
    REGION,
    entry,
    function_arn,
    key_arn,
    origin_entry,
    queue_arn,
    subscription_arn,
)
from tests.infrastructure.app_process import UNBUNDLED, findings, run_app
from tests.infrastructure.conftest import STRICT
from tests.infrastructure.test_adoption import adopt, function_of, granted, listed, told
from tests.infrastructure.test_origin_entries import FUNCTION, MACHINE, STREAM, TOPIC, WEB

DLQ = queue_arn("events-dlq")
TAKE = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:ListMessageMoveTasks",
    "sqs:SendMessage",
}
SEND = {"sqs:GetQueueUrl", "sqs:SendMessage"}
TIMING = {"lambda:GetFunctionConfiguration", "lambda:GetFunctionEventInvokeConfig"}


def of_sns(*targets: str) -> list[str]:
    """Each with a subscription of its own."""
    return [f"{subscription_arn('t', number)}={one}" for number, one in enumerate(targets, 1)]


def template_of(*entries: dict, **context: object) -> Template:
    return Template.from_stack(adopt(*entries, **context))


def named(template: Template, prefix: str = "Events") -> dict[str, set[str]]:
    """Actions by resource, of those that are no resource of the stack itself."""
    return {where: did for where, did in granted(template, prefix).items() if where[:4] == "arn:"}


@pytest.mark.parametrize(
    ("origin", "targets", "calls"),
    [
        (
            "sns",
            of_sns(queue_arn("orders"), FUNCTION, STREAM, WEB),
            {
                queue_arn("orders"): SEND | {"sqs:GetQueueAttributes"},
                FUNCTION: {"lambda:InvokeFunction"},
                STREAM: {"firehose:PutRecord"},
            },
        ),
        (
            "lambda",
            [FUNCTION, f"{function_arn('mails')}:live"],
            {
                FUNCTION: {"lambda:InvokeFunction", *TIMING},
                f"{function_arn('mails')}:live": {"lambda:InvokeFunction", *TIMING},
            },
        ),
        (
            "eventbridge",
            [queue_arn("orders"), FUNCTION, MACHINE, TOPIC],
            {
                queue_arn("orders"): SEND | {"sqs:GetQueueAttributes"},
                FUNCTION: {"lambda:InvokeFunction"},
                MACHINE: {"states:StartExecution"},
                TOPIC: {"sns:Publish"},
            },
        ),
        ("scheduler", [MACHINE], {MACHINE: {"states:StartExecution"}}),
        ("sns", [WEB], {}),
    ],
)
def test_exactly_the_targets_may_be_called_and_nothing_else_is_granted(origin, targets, calls):
    template = template_of(origin_entry("events", origin, *targets))

    assert named(template) == {DLQ: TAKE, **calls}
    assert granted(template, "Events")["*"] == {"cloudwatch:GetMetricData"}


def test_the_function_reads_its_origin_and_targets_back_from_its_environment():
    targets = of_sns(FUNCTION, "https://hooks.internal/a?b=c")
    template = template_of(
        origin_entry("events", "sns", *targets, private_hosts=["hooks.internal"])
    )

    variables = function_of(template, "Events")["Environment"]["Variables"]
    deployment = Deployment.from_env({name: str(value) for name, value in variables.items()})

    assert (variables["ORIGIN"], variables["TARGETS"]) == ("sns", " ".join(targets))
    assert variables["PRIVATE_HOSTS"] == "hooks.internal"
    assert variables["QUEUE_NAME"] == "lambda:orders"
    assert not {"SOURCE_QUEUE_URL", "SOURCE_QUEUE_URLS"} & variables.keys()
    assert deployment.targets == tuple(map(Target.parse, targets))
    assert deployment.source_names == ("lambda:orders", "https://hooks.internal/a")


def test_the_command_finds_origin_and_targets_in_the_outputs():
    targets = of_sns(FUNCTION, "https://hooks.internal/a")
    template = template_of(
        origin_entry("events", "sns", *targets, private_hosts=["hooks.internal"]), entry("orders")
    )

    events, orders = read_places("SmartRedriver", told(template))

    assert (events.prefix, events.origin) == ("Events", Origin.SNS)
    assert [str(one) for one in events.deployment.targets] == targets
    assert events.deployment.private_hosts == ("hooks.internal",)
    assert events.sources == ("lambda:orders", "https://hooks.internal/a")
    assert events.deployment.source_urls == ()
    assert (orders.origin, orders.deployment.targets) == (Origin.SQS, ())


def test_keys_of_target_queues_and_topics_are_used_through_their_service_alone():
    template = template_of(
        origin_entry(
            "events", "eventbridge", FUNCTION, queue_arn("orders"), TOPIC,
            target_key_arn=[key_arn(1), key_arn(2)], dead_letter_key_arn=key_arn(3),
        )
    )  # fmt: skip
    uses = {
        (key, statement["Condition"]["StringEquals"]["kms:ViaService"])
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "kms:Decrypt" in statement["Action"]
        for key in listed(statement["Resource"])
    }

    assert uses == {
        (key_arn(1), f"sqs.{REGION}.amazonaws.com"),
        (key_arn(2), f"sns.{REGION}.amazonaws.com"),
        (key_arn(3), f"sqs.{REGION}.amazonaws.com"),
    }
    assert named(template)[key_arn(2)] == {"kms:Decrypt", "kms:GenerateDataKey"}


def test_the_key_of_a_target_in_another_region_is_used_by_the_service_there():
    far, key = (one.replace(REGION, "us-east-1") for one in (queue_arn("orders"), key_arn(1)))
    template = template_of(
        origin_entry("events", "sns", far, target_key_arn=key), oncall_policies="true"
    )

    written = json.dumps(template.to_json())

    assert named(template)[far] == SEND
    assert written.count('"kms:ViaService": "sqs.us-east-1.amazonaws.com"') == 2
    assert f"sqs.{REGION}.amazonaws.com" not in written


def test_owners_of_target_queues_and_topics_are_told_what_to_add():
    far = queue_arn("orders").replace(ACCOUNT, "444455556666")
    stack = adopt(origin_entry("events", "eventbridge", far, TOPIC, FUNCTION))

    [note] = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("Statements"))
    said = json.loads(note.entry.data.partition("\n")[2].partition(" [ack:")[0])

    assert said.keys() == {far, TOPIC, DLQ}
    assert (said[far]["Action"], said[far]["Resource"]) == (sorted(SEND), far)


def alarms_of(*entries: dict) -> dict[str, Any]:
    """Every alarm by its name without its place: queue and kind."""
    stack = adopt(*entries, alarms="all")
    nested = [one for one in stack.node.find_all() if isinstance(one, cdk.NestedStack)]
    alarms: dict[str, Any] = {}
    for one in nested:
        for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
            for resource in Template.from_stack(one).find_resources(kind).values():
                known = resource["Properties"]
                says, _, _place = known["AlarmName"].rpartition(" ")
                alarms[says] = known
    return alarms


def test_alarms_that_would_read_a_source_queue_are_left_out():
    alarms = alarms_of(origin_entry("events", "sns", *of_sns(FUNCTION, WEB)))

    ours = {name for name in alarms if name.startswith("lambda:orders ")}
    assert "lambda:orders CircuitOpen" in ours
    assert "lambda:orders DeadLettersMany" in ours
    assert {f"{WEB} CircuitOpen", f"{WEB} RedriveNotWorking"} == alarms.keys() - ours
    assert not [name for name in alarms if "SourceQueueOld" in name or "TooManyFailures" in name]
    assert "orders-dlq" not in json.dumps(alarms)


def test_no_alarm_promises_that_live_messages_help_where_none_are_counted():
    alarms = alarms_of(origin_entry("events", "sns", *of_sns(FUNCTION, WEB)))

    assert "until a canary succeeds" in alarms["lambda:orders CircuitOpen"]["AlarmDescription"]
    assert "live message" not in json.dumps(alarms)


def test_functions_whose_invocations_fail_are_measured_by_lambda():
    alarms = alarms_of(origin_entry("events", "lambda", FUNCTION, f"{FUNCTION}:live"))

    alarm = json.dumps(alarms["lambda:orders TooManyFailures"])

    assert alarm.count('"MetricName": "Invocations"') == 1
    assert '"Dimensions": [{"Name": "FunctionName", "Value": "orders"}]' in alarm
    assert not [name for name in alarms if "SourceQueueOld" in name]


def test_the_dashboard_shows_no_source_queue_and_the_functions_of_a_lambda_dlq():
    def dashboard(made: dict) -> str:
        stack = adopt(made, alarms="all")
        [nested] = [one for one in stack.node.find_all() if isinstance(one, cdk.NestedStack)]
        [found] = Template.from_stack(nested).find_resources("AWS::CloudWatch::Dashboard").values()
        return json.dumps(found["Properties"]["DashboardBody"])

    of_lambda = dashboard(origin_entry("events", "lambda", FUNCTION))
    of_events = dashboard(origin_entry("events", "eventbridge", FUNCTION))

    assert "source queue" not in of_lambda + of_events
    assert "Invocations orders" in of_lambda
    assert "Invocations orders" not in of_events


EVERY = [
    origin_entry("events", "eventbridge", queue_arn("a"), function_arn("b"), MACHINE, TOPIC),
    origin_entry("news", "sns", *of_sns(queue_arn("c"), function_arn("d"), STREAM, WEB)),
    origin_entry("jobs", "lambda", function_arn("e")),
    origin_entry("ticks", "scheduler", function_arn("f"), dead_letter_key_arn=key_arn(3)),
    entry("orders"),
]


@pytest.mark.parametrize(
    "context",
    [{}, STRICT | {"alarms": "all", "dashboard_widget": "true", "oncall_policies": "true"}],
    ids=["plain", "strict"],
)
def test_a_stack_of_every_origin_passes_the_checks(tmp_path, context):
    done = run_app(tmp_path, UNBUNDLED | context | {"queues": EVERY})

    assert done.returncode == 0, done.stderr
    assert findings(tmp_path) == []


def policies_of(*entries: dict) -> dict[str, dict[str, set[str]]]:
    """Actions by resource of each on-call policy."""
    template = template_of(*entries, oncall_policies="true")
    found: dict[str, dict[str, set[str]]] = {}
    for name, policy in template.find_resources("AWS::IAM::ManagedPolicy").items():
        if not name.startswith("OnCall"):
            continue
        where = found.setdefault(name.removeprefix("OnCall")[:-8], {})
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            resources, actions = statement["Resource"], statement["Action"]
            assert resources
            for one in resources if isinstance(resources, list) else [resources]:
                if isinstance(one, str):
                    did = actions if isinstance(actions, list) else [actions]
                    where.setdefault(one, set()).update(did)
    return found


def test_whoever_looks_may_ask_and_whoever_changes_may_deliver():
    found = policies_of(
        origin_entry("events", "eventbridge", queue_arn("a"), TOPIC),
        origin_entry("news", "sns", *of_sns(FUNCTION, WEB)),
    )

    assert found["RedriveViewer"].keys() - {"*"} == {
        queue_arn("a"), FUNCTION, DLQ, queue_arn("news-dlq"),
    }  # fmt: skip
    assert found["RedriveViewer"]["*"] >= {
        "sns:GetSubscriptionAttributes",
        "events:ListRuleNamesByTarget",
        "events:ListTargetsByRule",
    }
    assert found["RedriveViewer"][queue_arn("a")] == {"sqs:GetQueueAttributes"}
    assert found["RedriveOperator"][queue_arn("a")] == SEND
    assert found["RedriveOperator"][TOPIC] == {"sns:Publish"}
    assert found["RedriveOperator"][FUNCTION] == {"lambda:InvokeFunction"}
    assert found["RedriveViewer"][FUNCTION] == {"lambda:GetFunctionEventInvokeConfig"}


def test_people_may_not_read_a_target_functions_environment():
    found = policies_of(origin_entry("jobs", "lambda", FUNCTION))

    actions = {one for places in found.values() for one in places.get(FUNCTION, ())}
    assert actions == {"lambda:InvokeFunction", "lambda:GetFunctionEventInvokeConfig"}


def test_a_policy_of_many_targets_fits_what_iam_takes():
    long = [function_arn(f"{'x' * 55}-{number}") for number in range(10)]
    targets = [
        origin_entry(f"e{one}", "lambda", *(f"{arn}-{one}" for arn in long)) for one in range(3)
    ]
    template = template_of(*targets, oncall_policies="true")

    sizes = [
        len(json.dumps(policy["Properties"]["PolicyDocument"]).replace(" ", ""))
        for name, policy in template.find_resources("AWS::IAM::ManagedPolicy").items()
        if name.startswith("OnCall")
    ]
    assert len(sizes) == 6
    assert max(sizes) < 6_144


# In an app of one's own


HOME = cdk.Environment(account=ACCOUNT, region=REGION)


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(context=UNBUNDLED)
    return cdk.Stack(app, "Shop", env=HOME)


def imported(stack: cdk.Stack, name: str = "events-dlq") -> sqs.IQueue:
    return sqs.Queue.from_queue_arn(stack, name, queue_arn(name))


def faults_of(stack: cdk.Stack, **given: Any) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        SmartRedriver(stack, "Redriver", **{"dead_letter_queue": imported(stack), **given})
    return {fault.setting: fault.accepted for fault in caught.value.faults}


def test_an_app_gives_origin_targets_and_their_keys_as_properties(stack):
    own = sqs.Queue(stack, "DeadLetters")
    key = kms.Key(stack, "Key")
    redriver = SmartRedriver(
        stack, "Redriver", dead_letter_queue=own,
        targets=Targets(origin=Origin.SNS, to=[queue_arn("orders")], keys=[key]),
    )  # fmt: skip

    template = Template.from_stack(stack)

    assert redriver.source_queues == ()
    template.has_resource_properties(
        "AWS::Lambda::Function",
        {"Environment": {"Variables": Match.object_like({"ORIGIN": "sns"})}},
    )
    statements = [
        one
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for one in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    sends = [one["Action"] for one in statements if one["Resource"] == queue_arn("orders")]
    assert [set(one) for one in sends] == [SEND | {"sqs:GetQueueAttributes"}]
    assert [one for one in statements if "kms:GenerateDataKey" in one["Action"]]


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ({"origin": "kafka", "to": [FUNCTION]}, {"targets.origin"}),
        ({"origin": "postgres", "to": [FUNCTION]}, {"targets.origin"}),
        ({"origin": "sqs", "to": [FUNCTION]}, {"targets.origin"}),
        ({"origin": "lambda", "to": FUNCTION}, {"targets.to"}),
        ({"origin": "lambda", "to": [None]}, {"targets.to"}),
        ({"origin": "lambda", "to": [FUNCTION], "keys": "a"}, {"targets.keys"}),
        ({"origin": "lambda", "to": [FUNCTION], "keys": ["a"]}, {"targets.keys[0]"}),
        ({"origin": "sns", "to": [WEB], "private_hosts": "a"}, {"targets.private_hosts"}),
        ({"origin": Origin.SNS, "to": []}, {"targets"}),
        ({"origin": Origin.LAMBDA, "to": [WEB]}, {"targets"}),
        ({"origin": Origin.SNS, "to": [queue_arn("events-dlq")]}, {"targets"}),
        ({"origin": Origin.LAMBDA, "to": ["${Token[TOKEN.7]}"]}, {"targets.to"}),
        ({"origin": Origin.LAMBDA, "to": [FUNCTION.replace(REGION, "us-east-1")]},
         {"targets"}),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_synth(stack, given, roles):
    assert roles <= faults_of(stack, targets=Targets(**given)).keys() <= roles | {"targets"}


def test_without_targets_there_is_a_source_queue(stack):
    assert list(faults_of(stack)) == ["source_queue"]


def test_a_source_queue_and_a_fifo_dlq_have_no_place_beside_another_origin(stack):
    faults = faults_of(
        stack,
        dead_letter_queue=imported(stack, "events-dlq.fifo"),
        source_queue=imported(stack, "orders.fifo"),
        targets=Targets(origin=Origin.EVENTBRIDGE, to=[FUNCTION]),
    )

    assert faults["source_queue"].startswith("nothing with origin eventbridge")
    assert faults["dead_letter_queue"].startswith("a standard queue")


def test_an_imported_queue_is_its_arn(stack):
    queue = sqs.Queue.from_queue_arn(stack, "Orders", queue_arn("orders"))

    redriver = SmartRedriver(
        stack,
        "Redriver",
        dead_letter_queue=imported(stack),
        targets=Targets(origin="sns", to=[queue]),
    )

    assert [str(one) for one in redriver.origin_config.targets] == [queue_arn("orders")]


@pytest.mark.parametrize(
    ("keys", "accepted"),
    [
        ([key_arn(1).replace(REGION, "us-east-1")], f"a key of {REGION}, where its target is"),
        ([key_arn(1), key_arn(2)], "one, or one for each of the 1 queues and topics"),
    ],
)
def test_keys_that_do_not_fit_their_targets_are_refused(stack, keys, accepted):
    given = [kms.Key.from_key_arn(stack, f"Key{number}", arn) for number, arn in enumerate(keys)]

    faults = faults_of(stack, targets=Targets(origin="sns", to=[queue_arn("orders")], keys=given))

    assert accepted in faults["target_keys"]


def test_a_key_that_no_target_uses_is_refused(stack):
    key = kms.Key.from_key_arn(stack, "Key", key_arn(1))

    faults = faults_of(stack, targets=Targets(origin="lambda", to=[FUNCTION], keys=[key]))

    assert faults["target_keys"] == "nothing without a queue or a topic among the targets"


def test_an_origin_may_be_a_text(stack):
    dlq = sqs.Queue.from_queue_arn(stack, "Dlq", DLQ)

    made = SmartRedriver(
        stack, "Made", dead_letter_queue=dlq, targets=Targets(origin="lambda", to=[FUNCTION])
    )

    assert made.origin_config.origin is Origin.LAMBDA


def test_a_dlq_and_a_target_are_of_one_construct_in_an_app(stack):
    other = queue_arn("other-dlq")
    queues = [
        sqs.Queue.from_queue_arn(stack, f"Dlq{number}", arn)
        for number, arn in enumerate((DLQ, DLQ, other))
    ]
    SmartRedriver(
        stack, "One", dead_letter_queue=queues[0], targets=Targets(origin="lambda", to=[FUNCTION])
    )

    with pytest.raises(SettingsError) as same_dlq:
        SmartRedriver(
            stack, "Two", dead_letter_queue=queues[1], targets=Targets(origin="sns", to=[WEB])
        )
    with pytest.raises(SettingsError) as same_target:
        SmartRedriver(
            stack,
            "Three",
            dead_letter_queue=queues[2],
            targets=Targets(origin="sns", to=[FUNCTION]),
        )

    [dlq], [target] = same_dlq.value.faults, same_target.value.faults
    assert (dlq.setting, "/One does not have" in dlq.accepted) == ("dead_letter_queue", True)
    assert (target.setting, "/One does not have" in target.accepted) == ("targets", True)


def orders_function(stack: cdk.Stack, **options: Any) -> lambda_.Function:
    return lambda_.Function(
        stack,
        "Orders",
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler="index.handler",
        code=lambda_.Code.from_inline("handler = print"),
        **options,
    )


@pytest.mark.parametrize(
    ("given", "is_warned_of"),
    [
        ("nothing", True),
        ("retries", True),
        ("a dead-letter queue", False),
        ("a destination afterwards", False),
        ("a destination in another stack", False),
    ],
)
def test_a_function_of_the_app_without_a_destination_is_warned_of(stack, given, is_warned_of):
    """Its failed invocations never become letters."""
    dead = sqs.Queue(stack, "Dead", retention_period=cdk.Duration.days(14))
    function = orders_function(
        stack,
        dead_letter_queue=dead if given == "a dead-letter queue" else None,
    )
    targets = Targets(origin="lambda", to=[function, FUNCTION])
    SmartRedriver(stack, "Redriver", dead_letter_queue=dead, targets=targets)
    to_the_dlq = destinations.SqsDestination(dead)
    if given == "retries":
        function.configure_async_invoke(retry_attempts=0)
    elif given == "a destination afterwards":
        function.configure_async_invoke(on_failure=to_the_dlq)
    elif given == "a destination in another stack":
        beside = cdk.Stack(stack.node.root, "Beside", env=HOME)
        lambda_.EventInvokeConfig(beside, "Orders", function=function, on_failure=to_the_dlq)

    found = Annotations.from_stack(stack).find_warning(
        f"/{function.node.path}", Match.string_like_regexp("so none becomes a letter in .*/Dead")
    )

    assert bool(found) == is_warned_of


@pytest.mark.parametrize("invoked", ["function", "version", "alias"])
@pytest.mark.parametrize("has_it", ["nothing", "function", "version", "alias", "config", "all"])
def test_a_destination_is_expected_where_the_function_is_invoked(stack, invoked, has_it):
    """Lambda ignores the destination of an alias if the function is invoked by another name."""
    dead = sqs.Queue(stack, "Dead", retention_period=cdk.Duration.days(14))
    to_the_dlq = destinations.SqsDestination(dead)
    function = orders_function(
        stack,
        dead_letter_queue=dead if has_it == "all" else None,
        on_failure=to_the_dlq if has_it == "function" else None,
        current_version_options=lambda_.VersionOptions(
            on_failure=to_the_dlq if has_it == "version" else None
        ),
    )
    version = function.current_version
    alias = lambda_.Alias(
        stack,
        "Live",
        alias_name="live",
        version=version,
        on_failure=to_the_dlq if has_it == "alias" else None,
    )
    lambda_.Alias(stack, "Other", alias_name="other", version=version, on_failure=to_the_dlq)
    if has_it == "config":
        lambda_.EventInvokeConfig(
            stack, "Config", function=function, qualifier="live", on_failure=to_the_dlq
        )
    target = {"function": function, "version": version, "alias": alias}[invoked]
    targets = Targets(origin="lambda", to=[target])
    SmartRedriver(stack, "Redriver", dead_letter_queue=dead, targets=targets)

    found = Annotations.from_stack(stack).find_warning(
        f"/{target.node.path}", Match.string_like_regexp("so none becomes a letter in .*/Dead")
    )

    is_alias_by_config = (invoked, has_it) == ("alias", "config")
    assert bool(found) == (has_it not in (invoked, "all") and not is_alias_by_config)
