"""A strict account: what its one key encrypts and who may use it, the network, boundary, tags, logs and concurrency."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match, Template

from smart_redriver.cdk import Safeguards, SmartRedriver
from smart_redriver.engine.errors import SettingsError
from stacks.redriver_stack import make_stack
from stacks.settings import parse_context, read_context
from tests.infrastructure.adopted import ACCOUNT, entry, key_arn, queue_arn
from tests.infrastructure.conftest import ROOT, STRICT, make_app

KEY = STRICT["encryption_key_arn"]
FUNCTIONS = {"RedriverFunctionDAE1334E", "SampleConsumerFunctionE376809B"}


@pytest.fixture(scope="module")
def stack() -> cdk.Stack:
    app = make_app(**STRICT, with_sample_consumer="true", oncall_policies="true")
    return make_stack(app, read_context(app.node))


@pytest.fixture(scope="module")
def strict(stack) -> dict:
    return Template.from_stack(stack).to_json()["Resources"]


@pytest.fixture(scope="module")
def adopted() -> dict:
    app = make_app(**STRICT, queues=[entry("orders", dead_letter_key_arn=key_arn(1))])
    return Template.from_stack(make_stack(app, read_context(app.node))).to_json()["Resources"]


def of_kind(resources: dict, kind: str) -> dict[str, dict]:
    return {name: found["Properties"] for name, found in resources.items() if found["Type"] == kind}


def statements(resources: dict, name: str) -> list[dict]:
    [policy] = [one for one in resources if one.startswith(f"{name}RoleDefaultPolicy")]
    return resources[policy]["Properties"]["PolicyDocument"]["Statement"]


def test_the_key_encrypts_all_that_the_stack_makes_and_no_other_key_is_made(strict):
    encrypted_by = {
        "AWS::SQS::Queue": lambda found: found["KmsMasterKeyId"],
        "AWS::SNS::Topic": lambda found: found["KmsMasterKeyId"],
        "AWS::Logs::LogGroup": lambda found: found["KmsKeyId"],
        "AWS::Lambda::Function": lambda found: found["KmsKeyArn"],
        "AWS::DynamoDB::GlobalTable": lambda found: found["Replicas"][0]["SSESpecification"][
            "KMSMasterKeyId"
        ],
    }

    for kind, key_of in encrypted_by.items():
        found = of_kind(strict, kind)
        assert found
        assert {name: key_of(one) for name, one in found.items()} == dict.fromkeys(found, KEY)
    assert not of_kind(strict, "AWS::KMS::Key")


def test_letters_keep_the_key_of_their_queue_and_reports_take_that_of_the_account(adopted):
    queues = of_kind(adopted, "AWS::SQS::Queue")

    keys = {name: found["KmsMasterKeyId"] for name, found in queues.items()}
    assert {name.partition("Redriver")[2][:8]: key for name, key in keys.items()} == {
        "ParkingL": key_arn(1),
        "Outcomes": KEY,
    }


def test_every_grant_on_a_key_is_bound_to_a_service(strict, adopted):
    bound = {"kms:ViaService"}
    for resources in (strict, adopted):
        granted = [
            statement
            for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
            for name, policy in of_kind(resources, kind).items()
            # The CDK's own grant to whoever polls a queue has no condition, and no production has the example.
            if not name.startswith("SampleConsumer")
            for statement in policy["PolicyDocument"]["Statement"]
            if any(action.startswith("kms:") for action in _listed(statement["Action"]))
        ]
        assert granted
        for statement in granted:
            # What asks for facts about a key is called by people themselves.
            if set(_listed(statement["Action"])) <= {"kms:DescribeKey", "kms:GetKeyPolicy"}:
                continue
            assert statement["Condition"]["StringEquals"].keys() == bound, statement


def test_the_function_uses_the_key_through_each_service_as_it_needs_it(strict):
    used = {
        statement["Condition"]["StringEquals"]["kms:ViaService"]: set(_listed(statement["Action"]))
        for statement in statements(strict, "Redriver")
        if statement["Resource"] == KEY
    }

    assert used == {
        "sqs.eu-west-1.amazonaws.com": {"kms:Decrypt", "kms:GenerateDataKey"},
        "lambda.eu-west-1.amazonaws.com": {"kms:Decrypt"},
        "dynamodb.eu-west-1.amazonaws.com": {
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey",
            "kms:ReEncryptFrom",
            "kms:ReEncryptTo",
        },
    }


def _listed(one_or_several):
    return one_or_several if isinstance(one_or_several, list) else [one_or_several]


def test_functions_are_in_the_subnets_behind_one_group_that_lets_https_out_and_nothing_in(strict):
    [(group, found)] = of_kind(strict, "AWS::EC2::SecurityGroup").items()
    networks = {
        name: function["VpcConfig"]
        for name, function in of_kind(strict, "AWS::Lambda::Function").items()
    }

    expected = {
        "SubnetIds": STRICT["vpc_subnet_ids"].split(","),
        "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
    }
    assert networks == dict.fromkeys(FUNCTIONS, expected)
    assert found["VpcId"] == STRICT["vpc_id"]
    assert "SecurityGroupIngress" not in found
    [egress] = found["SecurityGroupEgress"]
    assert (egress["IpProtocol"], egress["FromPort"], egress["ToPort"]) == ("tcp", 443, 443)


def test_lambda_may_connect_the_function_and_the_functions_code_may_not(strict):
    about_ec2 = [
        statement
        for statement in statements(strict, "Redriver")
        if "ec2:CreateNetworkInterface" in statement["Action"]
    ]
    allowed, denied = about_ec2

    ec2 = {action for action in allowed["Action"] if action.startswith("ec2:")}
    assert (allowed["Effect"], denied["Effect"]) == ("Allow", "Deny")
    assert ec2 == set(denied["Action"])
    assert "lambda:SourceFunctionArn" in denied["Condition"]["ArnLike"]


def test_given_security_groups_take_the_place_of_one_of_the_stacks_own(synth):
    groups = ["sg-0123456789abcdef0", "sg-0123456789abcdef1"]

    template = synth(**STRICT | {"vpc_security_group_ids": groups})

    template.resource_count_is("AWS::EC2::SecurityGroup", 0)
    template.has_resource_properties(
        "AWS::Lambda::Function", {"VpcConfig": {"SecurityGroupIds": groups}}
    )


def test_every_role_has_the_boundary(strict, adopted):
    for resources in (strict, adopted):
        roles = of_kind(resources, "AWS::IAM::Role")
        assert len(roles) >= 2
        boundaries = {role.get("PermissionsBoundary") for role in roles.values()}
        assert boundaries == {STRICT["permissions_boundary_arn"]}


def test_what_can_have_tags_has_them(strict):
    tags = [{"Key": "cost-centre", "Value": "42"}, {"Key": "team", "Value": "payments"}]
    for kind in ("SQS::Queue", "SNS::Topic", "Logs::LogGroup", "Lambda::Function", "IAM::Role"):
        for found in of_kind(strict, f"AWS::{kind}").values():
            assert found["Tags"] == tags
    for table in of_kind(strict, "AWS::DynamoDB::GlobalTable").values():
        assert table["Replicas"][0]["Tags"] == tags


def test_logs_are_kept_and_invocations_reserved_as_the_settings_say(strict):
    logs = of_kind(strict, "AWS::Logs::LogGroup").values()
    reserved = {
        name: function.get("ReservedConcurrentExecutions")
        for name, function in of_kind(strict, "AWS::Lambda::Function").items()
    }

    assert {one["RetentionInDays"] for one in logs} == {365}
    # The example consumer is polled by five at once.
    assert reserved == dict.fromkeys(FUNCTIONS, None) | {"RedriverFunctionDAE1334E": 2}


def test_what_is_reserved_for_passes_does_not_limit_who_looks_at_the_dashboard():
    app = make_app(**STRICT, alarms="all", dashboard_widget="true")
    resources = Template.from_stack(make_stack(app, read_context(app.node))).to_json()["Resources"]

    reserved = {
        one["Handler"]: one.get("ReservedConcurrentExecutions")
        for one in of_kind(resources, "AWS::Lambda::Function").values()
    }

    assert reserved["redrive.handler.lambda_handler"] == 2
    assert reserved["smart_redriver.widget.handler.lambda_handler"] is None


def test_the_stack_is_tied_to_the_region_of_its_key(stack):
    assert stack.region == "eu-west-1"


def test_a_strict_stack_keeps_the_logical_ids_of_what_holds_letters(strict, template):
    kinds = ("AWS::SQS::Queue", "AWS::Logs::LogGroup", "AWS::SNS::Topic")
    for kind in kinds:
        assert set(template.find_resources(kind)) <= set(of_kind(strict, kind))
    assert set(template.find_resources("AWS::DynamoDB::GlobalTable")) <= set(
        of_kind(strict, "AWS::DynamoDB::GlobalTable")
    )


def test_the_owner_of_the_key_is_told_what_logs_and_alarms_need_as_the_docs_have_it(stack):
    [told] = Annotations.from_stack(stack).find_info(
        "*", Match.string_like_regexp("encryption key")
    )
    text = str(told.entry.data)
    [(key, printed)] = json.loads(text[text.index("{") : text.rindex("}") + 1]).items()
    docs = (ROOT / "docs" / "security.md").read_text()
    documented = json.loads(docs.partition("```json\n")[2].partition("```")[0])

    assert key == KEY
    as_text = json.dumps(printed).replace("${Token[AWS.AccountId.", "")
    assert {one["Sid"] for one in printed} == {one["Sid"] for one in documented}
    for ours, theirs in zip(printed, documented, strict=True):
        assert ours["Principal"] == theirs["Principal"]
        assert ours["Action"] == theirs["Action"]
        assert ours["Condition"].keys() == theirs["Condition"].keys()
    assert "log-group:SmartRedriver-*" in as_text


def faults_of(**values: object) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        parse_context(values)
    return {fault.setting: fault.accepted for fault in caught.value.faults}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encryption_key_arn", "alias/orders"),
        ("encryption_key_arn", f"arn:aws:kms:eu-west-1:{ACCOUNT}:alias/orders"),
        ("vpc_id", "orders"),
        ("vpc_subnet_ids", "subnet-1"),
        ("vpc_subnet_ids", "subnet-0123456789abcdef0,subnet-0123456789abcdef0"),
        ("vpc_security_group_ids", "sg-0123456789abcdef0, sg-0123456789abcdef0"),
        ("vpc_security_group_ids", "vpc-0123456789abcdef0"),
        ("vpc_security_group_ids", [""]),
        ("permissions_boundary_arn", "boundary"),
        ("permissions_boundary_arn", f"arn:aws:iam::{ACCOUNT}:role/boundary"),
        ("tags", "team"),
        ("tags", "aws:team=payments"),
        ("tags", "team=a,team=b"),
        ("tags", {"team": "<payments>"}),
        ("log_retention_days", "31"),
        ("log_retention_days", "forever"),
        ("reserved_concurrency", "-1"),
        ("reserved_concurrency", "1"),
        ("reserved_concurrency", "101"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(name, value):
    assert name in faults_of(**{name: value})


def test_a_subnet_that_is_named_twice_is_refused_with_a_sentence():
    twice = "subnet-0123456789abcdef0,subnet-0123456789abcdef0"

    faults = faults_of(vpc_id=STRICT["vpc_id"], vpc_subnet_ids=twice)

    assert "at most 16 ids of subnets, each once" in faults["vpc_subnet_ids"]


@pytest.mark.parametrize(
    ("given", "faulty"),
    [
        ({"vpc_id": STRICT["vpc_id"]}, "vpc_subnet_ids"),
        ({"vpc_subnet_ids": STRICT["vpc_subnet_ids"]}, "vpc_subnet_ids"),
        ({"vpc_security_group_ids": "sg-0123456789abcdef0"}, "vpc_security_group_ids"),
    ],
)
def test_half_a_network_is_refused(given, faulty):
    assert faults_of(**given).keys() == {faulty}


def test_a_key_of_another_region_than_the_queues_is_refused():
    elsewhere = KEY.replace("eu-west-1", "us-east-1")

    faults = faults_of(encryption_key_arn=elsewhere, queues=[entry("orders")])

    assert faults == {"encryption_key_arn": "a key of eu-west-1"}


def test_tags_of_a_table_and_of_a_text_are_the_same():
    table = parse_context({"tags": {"team": "payments", "cost-centre": 42}})

    assert parse_context({"tags": STRICT["tags"]}).rules == table.rules


def test_safeguards_of_an_app_of_ones_own_are_checked_like_those_of_the_context():
    with pytest.raises(SettingsError):
        Safeguards.parse({"vpc_subnet_ids": ["subnet-0123456789abcdef0"]})
    assert Safeguards.parse({}) == Safeguards()


@pytest.mark.parametrize("name", [*Safeguards.names(), "permissions_boundary_arn", "tags"])
def test_every_setting_is_in_the_docs(name):
    assert f"| `{name}` |" in (ROOT / "docs" / "security.md").read_text()


def test_each_vpc_of_a_stack_has_its_security_group():
    stack = cdk.Stack(make_app(), "Shop")
    for name, vpc in (("a", "vpc-11111111"), ("b", "vpc-22222222"), ("c", "vpc-11111111")):
        SmartRedriver(
            stack,
            name.upper(),
            source_queue=sqs.Queue.from_queue_arn(stack, f"{name}Source", queue_arn(name)),
            dead_letter_queue=sqs.Queue.from_queue_arn(
                stack, f"{name}Dead", queue_arn(f"{name}-dlq")
            ),
            safeguards=Safeguards(vpc_id=vpc, vpc_subnet_ids=(f"subnet-{vpc[4:]}",)),
        )

    resources = Template.from_stack(stack).to_json()["Resources"]
    vpc_of = {
        name: one["VpcId"] for name, one in of_kind(resources, "AWS::EC2::SecurityGroup").items()
    }
    placed = [
        (
            vpc_of[one["VpcConfig"]["SecurityGroupIds"][0]["Fn::GetAtt"][0]],
            one["VpcConfig"]["SubnetIds"],
        )
        for one in of_kind(resources, "AWS::Lambda::Function").values()
    ]
    assert sorted(placed) == [
        ("vpc-11111111", ["subnet-11111111"]),
        ("vpc-11111111", ["subnet-11111111"]),
        ("vpc-22222222", ["subnet-22222222"]),
    ]
    assert "SmartRedriverHttpsOut" in vpc_of
    assert len(vpc_of) == 2


@pytest.mark.parametrize("first", ["", key_arn(1)])
def test_a_key_that_the_table_shared_by_a_stack_does_not_have_is_refused(first):
    stack = cdk.Stack(make_app(), "Shop", env=cdk.Environment(region="eu-west-1"))

    def redriver(name: str, key: str) -> None:
        SmartRedriver(
            stack,
            name,
            source_queue=sqs.Queue.from_queue_arn(stack, f"{name}Source", queue_arn(name)),
            dead_letter_queue=sqs.Queue.from_queue_arn(
                stack, f"{name}Dead", queue_arn(f"{name}-dlq")
            ),
            safeguards=Safeguards(encryption_key_arn=key),
        )

    redriver("First", first)
    redriver("Same", first)
    redriver("None", "")
    with pytest.raises(SettingsError, match=r"encryption_key_arn.*first re-driver"):
        redriver("Other", key_arn(2))
