"""An upgrade replaces nothing that holds letters, state or history, and asks for no name that is taken meanwhile.

CloudFormation replaces a resource that has another logical id, or another value of a property that it can't change.
Which those are its own schemas say; `first_edition.json` is what the first edition's templates had of them (841e543).
"""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.accounts import make_stacks, read_homes
from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import entry, key_arn, shared_entry
from tests.infrastructure.conftest import STRICT, make_app

FIRST: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "first_edition.json").read_text()
)
CONTEXTS: dict[str, dict[str, Any]] = {
    "made": {},
    "adopted": {
        "queues": [
            entry("orders", source_key_arn=key_arn(1), dead_letter_key_arn=key_arn(2)),
            shared_entry("refunds", "refunds", "returns"),
        ]
    },
}
STATEFUL = ("AWS::SQS::Queue", "AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup")
#: What each resource of these kinds is told that can't be changed, beside what the schemas call so.
ALSO = ("KeySchema",)


def fixed(kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    """The properties that have a resource replaced."""
    # Not at the top: it takes five seconds, and every process of a run reads all files of tests.
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-west-1", kind).schema
    names = {path.split("/")[2] for path in schema["createOnlyProperties"]} | set(ALSO)
    return {name: value for name, value in properties.items() if name in names}


@pytest.mark.parametrize("more", [{}, STRICT], ids=["by default", "in a strict account"])
@pytest.mark.parametrize("world", CONTEXTS)
def test_what_holds_letters_and_state_is_the_first_editions_own(world, more):
    app = make_app(**CONTEXTS[world], **more, alarms="paging")  # none of which is stateful
    resources = Template.from_stack(make_stack(app, read_context(app.node))).to_json()["Resources"]

    assert FIRST[world]
    now = {
        name: {"Type": one["Type"], **fixed(one["Type"], one["Properties"])}
        for name, one in resources.items()
        if one["Type"] in STATEFUL
    }
    assert {name: now.get(name) for name in FIRST[world]} == FIRST[world]


def test_the_schemas_know_what_replaces_a_queue_a_table_and_a_log():
    properties = {"QueueName": 1, "TableName": 1, "LogGroupName": 1, "Tags": 1}

    replacing = {kind: list(fixed(kind, properties)) for kind in STATEFUL}

    assert list(replacing.values()) == [["QueueName"], ["TableName"], ["LogGroupName"]]


NAMES = ("AlarmName", "QueueName", "FunctionName", "TableName", "LogGroupName", "DashboardName")


def named(**context: Any) -> dict[tuple[str, str], str]:
    """The names that the app's stacks give to resources, by stack and logical id."""
    app = make_app(**context)
    found = {}
    for home in make_stacks(app, read_homes(app.node)):
        stacks = [one for one in home.node.find_all() if isinstance(one, cdk.Stack)]
        for stack in stacks:
            resources = Template.from_stack(stack).to_json()["Resources"]
            # The logical id of a nested stack is its place in the stack above it.
            place = stack.node.path.replace(home.node.path, home.stack_name, 1)
            for logical_id, one in resources.items():
                for name in NAMES:
                    value = one.get("Properties", {}).get(name)
                    if isinstance(value, str) or "Fn::Join" in (value or ()):
                        found[place, logical_id] = json.dumps(value)
    return found


SHARED = {"queues": [shared_entry("shop", "orders", "refunds", "returns")]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            {"queues": [entry("orders")]},
            {"queues": [{**entry("orders"), "name": "renamed"}]},
        ),
        (
            {"queues": [entry("orders"), entry("refunds")]},
            {"queues": [entry("orders"), {**entry("refunds"), "stack": "b"}]},
        ),
        (
            {"queues": [entry("orders"), entry("refunds")]},
            {
                "queues": [
                    {**entry("refunds"), "name": "orders"},
                    {**entry("orders"), "name": "refunds"},
                ]
            },
        ),
        (SHARED, {"queues": [shared_entry("shop", "orders", "returns")]}),
        (SHARED, {"queues": [shared_entry("shop", "refunds", "orders", "returns")]}),
    ],
    ids=["renamed", "moved", "swapped", "one source less", "another source first"],
)
def test_nothing_is_made_under_a_name_that_is_taken(before, after):
    """CloudFormation creates what is new before it deletes what is gone: a name of both is refused,
    and all is rolled back.
    """
    old, new = named(**before, alarms="all"), named(**after, alarms="all")

    created = [name for place, name in new.items() if old.get(place) != name]

    assert created
    assert set(created) & set(old.values()) == set()
    assert len(set(new.values())) == len(new)
