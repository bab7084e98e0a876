"""Existing queues: what is granted on them and their keys, and what their owners are told to add."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk.queue_clashes import MAX_QUEUES, MAX_QUEUES_WITH_WIDGET, MAX_SOURCES
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import FOR_MADE_QUEUES, Settings
from smart_redriver.oncall.deployment.places import read_outputs, read_places
from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import entry, fifo_entry, key_arn, queue_arn, shared_entry
from tests.infrastructure.app_process import UNBUNDLED, findings, run_app
from tests.infrastructure.conftest import STRICT, make_app

SOURCE_KEY, DLQ_KEY, LOT_KEY = key_arn(1), key_arn(2), key_arn(3)
FOREIGN_KEY = key_arn(4, account="444455556666")

ENCRYPTED = entry("orders", source_key_arn=SOURCE_KEY, dead_letter_key_arn=DLQ_KEY)
SHARED = shared_entry("refunds", "refunds", "returns", max_attempts=3)
PLAIN = entry("mails")


def adopt(*entries: dict, **context: object) -> cdk.Stack:
    app = make_app(queues=list(entries), **context)
    return make_stack(app, read_context(app.node))


@pytest.fixture(scope="module")
def three() -> cdk.Stack:
    return adopt(ENCRYPTED, SHARED, PLAIN)


@pytest.fixture(scope="module")
def template(three) -> Template:
    return Template.from_stack(three)


def function_of(template: Template, prefix: str) -> dict:
    return template.to_json()["Resources"][told(template)[f"{prefix}RedriveFunctionName"]][
        "Properties"
    ]


def told(template: Template) -> dict[str, str]:
    """What a deployment's outputs say, as the command reads them; logical ids for what they refer to."""
    outputs = template.to_json()["Outputs"]
    return read_outputs({name: _joined(output["Value"]) for name, output in outputs.items()})


def granted(template: Template, prefix: str) -> dict[str, set[str]]:
    """Actions of a queue's function by the ARN, or the logical id, of the resource."""
    role = function_of(template, prefix)["Role"]["Fn::GetAtt"][0]
    found: dict[str, set[str]] = {}
    for policy in template.find_resources("AWS::IAM::Policy").values():
        if policy["Properties"]["Roles"] == [{"Ref": role}]:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                for resource in listed(statement["Resource"]):
                    where = resource if isinstance(resource, str) else resource["Fn::GetAtt"][0]
                    found.setdefault(where, set()).update(listed(statement["Action"]))
    return found


def listed(one_or_several):
    return one_or_several if isinstance(one_or_several, list) else [one_or_several]


def test_no_queue_is_made_but_the_parking_lots_and_the_outcome_queues(template):
    made = template.find_resources("AWS::SQS::Queue")

    assert len(made) == 6
    assert sum("RedriverParkingLot" in logical_id for logical_id in made) == 3
    assert sum("RedriverOutcomes" in logical_id for logical_id in made) == 3
    assert {queue["DeletionPolicy"] for queue in made.values()} == {"RetainExceptOnCreate"}
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 1)
    template.resource_count_is("AWS::SNS::Topic", 2)


def test_a_function_may_do_what_a_pass_does_on_its_own_queues_and_nothing_on_others(template):
    found = granted(template, "Refunds")

    send = {"sqs:SendMessage", "sqs:GetQueueAttributes"}
    assert found[queue_arn("refunds")] == found[queue_arn("returns")] == send
    assert found[queue_arn("refunds-dlq")] == {
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:ChangeMessageVisibility",
        "sqs:GetQueueAttributes",
        "sqs:ListMessageMoveTasks",
        "sqs:SendMessage",  # letters near their expiry are renewed
    }
    named = {where for where in found if where.startswith("arn:")}
    assert named == {queue_arn(name) for name in ("refunds", "returns", "refunds-dlq")}
    assert not [where for where in found if "Orders" in where or "Mails" in where]


def test_a_function_may_use_the_keys_of_its_queues_and_for_what_each_is_needed(template):
    found = granted(template, "Orders")

    # Sending encrypts. The parking lot takes the DLQ's key, and is sent to.
    assert found[SOURCE_KEY] == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert found[DLQ_KEY] == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert not [where for where in granted(template, "Mails") if ":kms:" in where]


@pytest.mark.parametrize(
    ("queues", "uses"),
    [
        (entry("orders"), {"kms:Decrypt", "kms:GenerateDataKey"}),
        (fifo_entry("orders", "orders"), {"kms:Decrypt"}),
    ],
    ids=["standard", "FIFO"],
)
def test_a_dead_letter_queues_key_encrypts_where_letters_can_be_renewed(queues, uses):
    """In a FIFO queue one would fall behind its group."""
    keys = {"dead_letter_key_arn": DLQ_KEY, "parking_lot_key_arn": LOT_KEY}
    found = granted(Template.from_stack(adopt(queues | keys)), "Orders")

    assert found[DLQ_KEY] == uses
    assert found[LOT_KEY] == {"kms:Decrypt", "kms:GenerateDataKey"}


def test_every_source_has_its_own_key_and_those_without_take_the_last():
    sources = ("refunds", "returns", "swaps")
    stack = adopt(shared_entry("refunds", *sources, source_key_arn=[SOURCE_KEY, DLQ_KEY]))

    found = granted(Template.from_stack(stack), "Refunds")

    assert {where for where in found if ":kms:" in where} == {SOURCE_KEY, DLQ_KEY}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"SqsManagedSseEnabled": True}),
        ({"dead_letter_key_arn": DLQ_KEY}, {"KmsMasterKeyId": DLQ_KEY}),
        ({"dead_letter_key_arn": DLQ_KEY, "parking_lot_key_arn": LOT_KEY},
         {"KmsMasterKeyId": LOT_KEY}),
    ],
)  # fmt: skip
def test_a_parking_lot_is_encrypted_no_less_than_its_dead_letter_queue_and_so_are_reports(
    more, expected
):
    lot, outcomes = (
        Template.from_stack(adopt(entry("orders", **more)))
        .find_resources("AWS::SQS::Queue")
        .values()
    )

    for queue in (lot, outcomes):
        encryption = {key: queue["Properties"].get(key) for key in expected}
        assert encryption == expected


def test_a_function_knows_its_queues_and_its_own_settings(template):
    variables = function_of(template, "Refunds")["Environment"]["Variables"]

    places = {name: _joined(value) for name, value in variables.items()}
    deployment = Deployment.from_env(places)

    assert deployment.queue_name == "refunds"
    sources = [url.rpartition("/")[2] for url in deployment.source_urls]
    assert sources == ["refunds", "returns"]
    assert deployment.dlq_url.endswith("/111122223333/refunds-dlq")
    text = {name: value for name, value in variables.items() if isinstance(value, str)}
    assert Settings.from_env(text).max_attempts == 3
    other = function_of(template, "Mails")["Environment"]["Variables"]
    assert other["MAX_ATTEMPTS"] == "5"


def _joined(value: object) -> str:
    """A value with its references in place of what they refer to, where no condition holds."""
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_joined(part) for part in parts)
        case {"Fn::If": [_, _, otherwise]}:
            return _joined(otherwise)
        case {"Ref": name}:
            return str(name)
    return str(value)


def test_a_queue_has_one_output_and_what_is_shared_one_each(template):
    per_queue = (
        "SourceQueueUrl",
        "DeadLetterQueueUrl",
        "ParkingLotQueueUrl",
        "OutcomeQueueUrl",
        "ReportPolicyArn",
        "RedriveFunctionName",
        "RedriveLogGroupName",
        "RedriveMode",
        "RedriveAlarms",
        "StateTableName",
        "WarningTopicArn",
        "PagingTopicArn",
    )

    assert set(template.to_json()["Outputs"]) == {
        "OrdersRedriver",
        "RefundsRedriver",
        "MailsRedriver",
        "StateTableName",
        "WarningTopicArn",
        "PagingTopicArn",
    }
    assert set(told(template)) == {
        *(f"{name}{output}" for name in ("Orders", "Refunds", "Mails") for output in per_queue),
        "RefundsFurtherSourceQueueUrls",
        "StateTableName",
        "WarningTopicArn",
        "PagingTopicArn",
    }


def test_the_command_reads_the_outputs_of_this_stack(template):
    mails, orders, refunds = read_places("SmartRedriver", told(template))

    assert (mails.queue, orders.queue, refunds.sources) == (
        "mails",
        "orders",
        ("refunds", "returns"),
    )
    assert orders.log_group == "AdoptedOrdersRedriverLogs4D890624"
    assert {one.mode for one in (mails, orders, refunds)} == {"automatic"}
    function = function_of(template, "Orders")
    assert function["LoggingConfig"]["LogGroup"] == {"Ref": orders.log_group}


def test_a_deployment_of_adopted_queues_is_tied_to_their_account_and_region(three):
    assert (three.account, three.region) == ("111122223333", "eu-west-1")


def told_to_owners(stack: cdk.Stack) -> list[dict]:
    """The JSON that synth prints, of each re-driver of the stack."""
    told = Annotations.from_stack(stack).find_info("*", Match.string_like_regexp("Statements for"))
    texts = [str(one.entry.data) for one in told]
    return [json.loads(text[text.index("{") : text.rindex("}") + 1]) for text in texts]


def test_synth_tells_the_owners_of_queues_and_keys_what_to_allow_as_json():
    [statements] = told_to_owners(
        adopt(entry("orders", source_key_arn=FOREIGN_KEY, dead_letter_key_arn=DLQ_KEY))
    )

    assert set(statements) == {
        queue_arn("orders"), queue_arn("orders-dlq"), FOREIGN_KEY, DLQ_KEY,
    }  # fmt: skip
    of_queue = statements[queue_arn("orders")]
    assert of_queue["Effect"] == "Allow"
    assert of_queue["Resource"] == queue_arn("orders")
    assert of_queue["Action"] == ["sqs:GetQueueAttributes", "sqs:SendMessage"]
    of_key = statements[FOREIGN_KEY]
    assert of_key["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert of_key["Resource"] == "*"  # in a key policy, the key itself
    assert of_key["Condition"]["StringEquals"] == {"kms:ViaService": "sqs.eu-west-1.amazonaws.com"}


def test_what_owners_are_told_to_allow_is_what_the_function_is_granted():
    stack = adopt(ENCRYPTED)
    found = granted(Template.from_stack(stack), "Orders")

    [statements] = told_to_owners(stack)

    assert {where: set(one["Action"]) for where, one in statements.items()} == {
        where: actions for where, actions in found.items() if where.startswith("arn:")
    }


def test_owners_are_told_to_trust_the_functions_role_and_no_other(three):
    told = told_to_owners(three)

    assert len(told) == 3
    for statements in told:
        for statement in statements.values():
            root = statement["Principal"]["AWS"]
            assert root.endswith(":iam::111122223333:root")
            role = statement["Condition"]["ArnLike"]["aws:PrincipalArn"]
            assert role.endswith(":iam::111122223333:role/SmartRedriver-*")


def test_there_is_nothing_to_tell_about_queues_of_the_stacks_own(synth):
    app = make_app()

    assert told_to_owners(make_stack(app, read_context(app.node))) == []


def test_adopted_queues_synthesize_without_a_finding(tmp_path):
    queues = [ENCRYPTED, SHARED, PLAIN]

    done = run_app(tmp_path / "out", UNBUNDLED | {"queues": queues})

    assert done.returncode == 0, done.stderr
    assert findings(tmp_path / "out") == []


#: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MAX_RESOURCES, MAX_OUTPUTS, MAX_PARAMETERS, MAX_TEMPLATE_BYTES = 500, 200, 200, 1_000_000
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_ENVIRONMENT_BYTES = 4096


@pytest.mark.parametrize(
    ("most", "options"),
    [
        (MAX_QUEUES, {"alarms": "all"}),
        (MAX_QUEUES_WITH_WIDGET, STRICT | {"alarms": "all", "dashboard_widget": "true"}),
    ],
    ids=["as they are", "with widgets in a strict account"],
)
def test_as_many_queues_as_are_accepted_fit_cloudformation_and_lambda(most, options):
    names = [f"a-queue-with-a-rather-long-name-{index}" for index in range(most)]
    queues = [
        shared_entry(
            f"queue-{index}",
            name,
            f"{name}-too",
            source_key_arn=SOURCE_KEY,
            dead_letter_arn=queue_arn(f"{name}-dlq"),
            dead_letter_key_arn=DLQ_KEY,
        )
        for index, name in enumerate(names)
    ]

    app = make_app(queues=queues, **options)
    make_stack(app, read_context(app.node))

    out = Path(app.synth().directory)

    files = [out / "SmartRedriver.template.json", *out.glob("*.nested.template.json")]
    assert len(files) == 1 + most > 20
    for file in files:
        template = json.loads(file.read_text())
        assert file.stat().st_size <= MAX_TEMPLATE_BYTES
        assert len(template["Resources"]) <= MAX_RESOURCES
        assert len(template.get("Outputs", {})) <= MAX_OUTPUTS
        assert len(template.get("Parameters", {})) <= MAX_PARAMETERS
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::Lambda::Function":
                variables = resource["Properties"]["Environment"]["Variables"]
                assert environment_bytes(variables) <= MAX_ENVIRONMENT_BYTES


def test_the_environment_of_as_many_sources_as_are_accepted_fits_lambda():
    sources = [f"{index}".rjust(80, "a") for index in range(MAX_SOURCES)]
    template = Template.from_stack(adopt(shared_entry("many", *sources)))

    variables = function_of(template, "Many")["Environment"]["Variables"]

    assert len(_joined(variables["SOURCE_QUEUE_URLS"]).split()) == MAX_SOURCES - 1
    assert environment_bytes(variables) <= MAX_ENVIRONMENT_BYTES


def environment_bytes(variables: dict) -> int:
    """With what a deployment puts in for references: no name or URL is longer than this."""
    longest = "x" * 160
    return sum(
        len(name) + len(value if isinstance(value, str) else longest + _joined(value))
        for name, value in variables.items()
    )


def test_queues_table_and_logs_keep_their_logical_ids(template):
    # Another id is another resource: the letters would stay behind in the old one.
    kinds = ("AWS::SQS::Queue", "AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup")

    assert {logical_id for kind in kinds for logical_id in template.find_resources(kind)} == {
        "StateTable962DE04C",
        "AdoptedOrdersRedriverParkingLot0AD7894D",
        "AdoptedOrdersRedriverOutcomes7AD18501",
        "AdoptedOrdersRedriverLogs4D890624",
        "AdoptedRefundsRedriverParkingLotB29133A9",
        "AdoptedRefundsRedriverOutcomes6CC0AD82",
        "AdoptedRefundsRedriverLogsF431044E",
        "AdoptedMailsRedriverParkingLot4C1B2AC2",
        "AdoptedMailsRedriverOutcomes8A118EA9",
        "AdoptedMailsRedriverLogsA49CB4DB",
    }


def test_the_schedules_of_a_stack_share_a_role_that_may_invoke_its_functions_and_nothing_else(
    template,
):
    roles = {
        json.dumps(one["Properties"]["Target"]["RoleArn"])
        for one in template.find_resources("AWS::Scheduler::Schedule").values()
    }
    functions = template.find_resources("AWS::Lambda::Function")
    [policy] = [
        one["Properties"]["PolicyDocument"]["Statement"]
        for name, one in template.find_resources("AWS::IAM::Policy").items()
        if name.startswith("SmartRedriverSchedules")
    ]

    assert len(roles) == 1
    [statement] = policy
    allowed = {json.dumps(one) for one in statement["Resource"]}
    assert statement["Action"] == "lambda:InvokeFunction"
    assert allowed == {json.dumps({"Fn::GetAtt": [name, "Arn"]}) for name in functions}


def test_no_function_has_what_only_a_queue_that_the_stack_makes_is_told(template):
    for one in template.find_resources("AWS::Lambda::Function").values():
        variables = one["Properties"]["Environment"]["Variables"]
        assert not variables.keys() & {name.upper() for name in FOR_MADE_QUEUES}
