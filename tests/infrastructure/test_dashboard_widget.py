"""The dashboard's widget in the template, and its function from its own bundle: off by default,
and able to read alone.
"""

import json

import pytest
from aws_cdk.assertions import Template

from smart_redriver.cdk.bundling import bundle
from smart_redriver.cdk.dashboard import PLACE, SHARED, WIDGET
from smart_redriver.cdk.queue_clashes import MAX_QUEUES_WITH_WIDGET
from smart_redriver.engine.errors import SettingsError
from stacks.redriver_stack import make_stack
from stacks.settings import parse_context, read_context
from tests.infrastructure.adopted import entry, key_arn
from tests.infrastructure.app_process import ROOT
from tests.infrastructure.cold_start import start
from tests.infrastructure.conftest import STRICT, make_app, synthesize

READS = {
    "sqs:GetQueueAttributes",
    "dynamodb:GetItem",
    "dynamodb:BatchGetItem",
    "dynamodb:Scan",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
}
#: What Lambda has beside the bundle, and what it needs.
COLD_START = """
import sys
sys.path += sys.argv[1:]
import smart_redriver.widget.handler
print(smart_redriver.widget.handler.lambda_handler({"describe": True}, None))
print(smart_redriver.widget.handler.lambda_handler({"widgetContext": {"dashboardName": "x"}}, None))
print(*{module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}, sep="\\n")
"""


@pytest.fixture(scope="module")
def with_widget() -> Template:
    return synthesize(alarms="all", dashboard_widget="true")


def actions(template: Template, role: str = "Widget") -> set[str]:
    """All that policies of such a role allow."""
    found: set[str] = set()
    for name, policy in template.find_resources("AWS::IAM::Policy").items():
        if f"{role}RoleDefaultPolicy" in name:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow":
                    listed = statement["Action"]
                    found |= set(listed if isinstance(listed, list) else [listed])
    return found


@pytest.fixture(scope="module")
def template() -> Template:
    """With all that is watched, and without the widget."""
    return synthesize(alarms="all")


def widgets(template: Template) -> list[dict]:
    [dashboard] = template.find_resources("AWS::CloudWatch::Dashboard").values()
    # What only a deployment knows stands for itself.
    body = dashboard["Properties"]["DashboardBody"]["Fn::Join"][1]
    text = "".join(
        one if isinstance(one, str) else json.dumps(one)[1:-1].replace('"', "'") for one in body
    )
    return json.loads(text)["widgets"]


def test_off_by_default_and_the_template_is_as_without_the_setting(template):
    assert template.to_json() == synthesize(alarms="all", dashboard_widget="false").to_json()
    assert not [name for name in template.to_json()["Resources"] if "Widget" in name]
    assert [one for one in widgets(template) if one["type"] == "custom"] == []


def test_with_it_nothing_that_was_there_changes_but_the_dashboard(template, with_widget):
    before, after = (one.to_json()["Resources"] for one in (template, with_widget))

    changed = [name for name in before if after[name] != before[name]]

    assert [before[name]["Type"] for name in changed] == ["AWS::CloudWatch::Dashboard"]
    assert all("RedriverWidget" in name for name in set(after) - set(before))


def test_the_widget_calls_its_own_function_and_is_the_first_answer_on_the_dashboard(with_widget):
    [custom] = [one for one in widgets(with_widget) if one["type"] == "custom"]
    [name] = [
        name for name in with_widget.find_resources("AWS::Lambda::Function") if "Widget" in name
    ]

    assert name in custom["properties"]["endpoint"]
    assert widgets(with_widget)[2] == custom
    assert custom["properties"]["updateOn"]["refresh"]


def test_its_function_may_read_and_nothing_else(with_widget):
    assert actions(with_widget) == READS


def test_of_keys_it_may_only_have_its_own_environment_and_the_tables_items_decrypted():
    template = synthesize(**STRICT, alarms="all", dashboard_widget="true")

    used = {
        (statement["Action"], json.dumps(statement["Condition"]))
        for name, policy in template.find_resources("AWS::IAM::Policy").items()
        if "WidgetRoleDefaultPolicy" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "kms" in str(statement["Action"])
    }
    assert {action for action, _ in used} == {"kms:Decrypt"}
    services = [one for _, via in used for one in ("lambda", "dynamodb") if one in via]
    assert sorted(services) == ["dynamodb", "lambda"]


def test_adopted_queues_have_one_each():
    app = make_app(
        alarms="all",
        dashboard_widget="true",
        queues=[entry("orders", source_key_arn=key_arn(1)), entry("refunds")],
    )
    stack = make_stack(app, read_context(app.node))
    template = Template.from_stack(stack)
    roles = [f"Adopted{name}RedriverWidget" for name in ("Orders", "Refunds")]
    assert [actions(template, role) for role in roles] == [READS, READS]


def test_an_adopted_queue_without_a_dashboard_has_none():
    app = make_app(
        alarms="all",
        dashboard_widget="true",
        queues=[entry("orders"), entry("refunds", alarms="paging")],
    )
    stack = make_stack(app, read_context(app.node))
    template = Template.from_stack(stack)
    roles = [f"Adopted{name}RedriverWidget" for name in ("Orders", "Refunds")]
    assert [actions(template, role) for role in roles] == [READS, set()]


def test_who_looks_may_have_it_run(with_widget):
    template = synthesize(alarms="all", dashboard_widget="true", oncall_policies="true").to_json()
    resources = template["Resources"]
    [viewer] = [resources[one] for one in resources if one.startswith("OnCallRedriveViewer")]

    invoked = [
        statement["Resource"]["Fn::GetAtt"][0]
        for statement in viewer["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "lambda:InvokeFunction"
    ]
    assert len(invoked) == 1
    assert "Widget" in invoked[0]


def test_a_widget_without_a_dashboard_is_refused():
    with pytest.raises(SettingsError, match=r"dashboard_widget.*makes no dashboard"):
        parse_context({"dashboard_widget": "true", "alarms": "paging"})


def test_the_function_starts_from_its_bundle_says_what_it_is_for_and_answers_where_nothing_can_be_read(
    tmp_path,
):
    queue = "http://127.0.0.1:9/000000000000"
    variables = {
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_MAX_ATTEMPTS": "1",
        "QUEUE_NAME": "orders",
        "DYNAMODB_TABLE_NAME": "state",
        "DLQ_URL": f"{queue}/orders-dead",
        "SOURCE_QUEUE_URL": f"{queue}/orders",
        "PARKING_LOT_URL": f"{queue}/lot",
        "STACK_NAME": "SmartRedriver",
    }

    said, _ = start({PLACE: WIDGET, **SHARED}, tmp_path, COLD_START, variables)

    assert said.startswith("### Smart re-driver")
    assert "<th>Not read</th><td>DLQ (GetQueueAttributes: EndpointConnectionError)</td>" in said
    assert not [path for path in said.splitlines() if path.startswith(str(ROOT / "smart"))]


def test_the_bundle_has_no_verb_and_no_console(tmp_path):
    bundle({PLACE: WIDGET, **SHARED}, tmp_path)

    rooms = {path.name for path in (tmp_path / "smart_redriver" / "oncall").iterdir()}

    assert rooms == {"__init__.py", "audit", "deployment", "letters", "status", "terminal"}
    assert (tmp_path / "smart_redriver" / "widget" / "page.py").exists()


def test_more_queues_than_fit_with_their_widgets_are_refused() -> None:
    queues = [
        {
            "name": f"orders-{index}",
            "source_arn": f"arn:aws:sqs:eu-west-1:111122223333:orders-{index}",
            "dead_letter_arn": f"arn:aws:sqs:eu-west-1:111122223333:orders-{index}-dlq",
        }
        for index in range(MAX_QUEUES_WITH_WIDGET + 1)
    ]

    with pytest.raises(SettingsError, match="false in a stack of more than 23 queues"):
        parse_context({"queues": queues, "dashboard_widget": "true"})
    assert len(parse_context({"queues": queues}).queues) == len(queues)
