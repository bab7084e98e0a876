"""The managed policies for worker queues against the calls that the command makes: nothing missing, nothing more."""

import pytest
from aws_cdk.assertions import Template

from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import jobs_entry
from tests.infrastructure.conftest import make_app
from tests.oncall.test_policies import ACTIONS, FREE
from tests.postgres.desk import PostgresDesk

LOOKS = [
    ["status"],
    ["status", "--overview"],
    ["causes"],
    ["letters"],
    ["letters", "--held"],
    ["parked"],
    ["show", "dlq-4"],
    ["logs"],
    ["history"],
    ["doctor"],
    ["run", "--dry-run"],
    ["export", "kept.jsonl", "--from-dlq"],
]
CHANGES = [
    ["park", "dlq-1", "--yes"],
    ["replay", "--all", "--yes"],
    ["replay", "dlq-2", "--from-dlq", "--yes"],
    ["pause", "--reason", "x", "--yes"],
    ["resume", "--yes"],
    ["run", "--yes"],
    ["delete", "--all", "--from-dlq", "--yes"],
]
#: Of the console's charts, see `test_console`; of the database's own connection, a network and keys, which no desk has.
BEYOND = {
    "cloudwatch:GetMetricData",
    "secretsmanager:GetSecretValue",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcEndpoints",
    "kms:GetKeyPolicy",
}


@pytest.fixture(scope="module")
def allowed() -> dict[str, set[str]]:
    app = make_app(oncall_policies="true", queues=[jobs_entry("jobs")])
    template = Template.from_stack(make_stack(app, read_context(app.node)))
    found: dict[str, set[str]] = {"Viewer": set(), "Operator": set()}
    for name, policy in template.find_resources("AWS::IAM::ManagedPolicy").items():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions = statement["Action"]
            kind = "Viewer" if "Viewer" in name else "Operator"
            found[kind].update([actions] if isinstance(actions, str) else actions)
    return found


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    desk = PostgresDesk(bench)
    desk.alarms.in_alarm.append("orders CircuitOpen")
    return desk


def asked_of_aws(desk) -> set[str]:
    return {ACTIONS.get(action, action) for action, _ in desk.asked} - FREE


def test_whoever_looks_may_make_all_of_its_calls_and_no_others(desk, bench, allowed):
    bench.die(1, 2)
    desk("run", "--yes")
    bench.die(3, 4)
    desk("park", "dlq-3", "--yes")
    desk.asked.clear()

    codes = [desk(*words).code for words in LOOKS]

    assert codes == [0] * len(LOOKS)
    asked = asked_of_aws(desk)
    assert asked - allowed["Viewer"] == set()
    assert allowed["Viewer"] - asked - BEYOND == set()


def test_whoever_changes_may_make_all_of_its_calls_with_both(desk, bench, allowed):
    bench.die(1, 2, 3)

    codes = [desk(*words, answer="1").code for words in CHANGES]

    assert codes[:-1] == [0] * (len(CHANGES) - 1)
    asked = asked_of_aws(desk)
    assert asked - allowed["Viewer"] - allowed["Operator"] == set()
    assert allowed["Operator"] - allowed["Viewer"] - asked == set()
