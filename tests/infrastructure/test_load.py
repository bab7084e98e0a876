"""More queues than a stack can have, from one list, in the stacks that they name:
no template breaks a limit of CloudFormation, IAM or Lambda.

Two stacks are full, and a third has some; `make bench ARGS=load` synthesizes two hundred queues.

By all that can be asked for: keys, a network, on-call policies, every alarm, several sources on a DLQ.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smart_redriver.cdk.queue_clashes import MAX_QUEUES
from smart_redriver.oncall.deployment.places import read_outputs
from stacks.accounts import make_stacks, read_homes
from tests.infrastructure.adopted import entry, key_arn, queue_arn, shared_entry
from tests.infrastructure.conftest import STRICT, make_app

QUEUES = 2 * MAX_QUEUES + 5

#: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MAX_RESOURCES, MAX_OUTPUTS, MAX_PARAMETERS, MAX_TEMPLATE_BYTES = 500, 200, 200, 1_000_000
#: Of a stack and those nested in it, which one operation may make.
MAX_RESOURCES_TOGETHER = 2_500
#: What an output may hold is not written down; as long as a parameter it may surely be.
MAX_OUTPUT_BYTES = 4_096
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
MAX_INLINE_POLICIES, MAX_MANAGED_POLICY = 10_240, 6_144
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
MAX_ENVIRONMENT_BYTES = 4_096
#: As long as the ARN of a queue with a name of 80 characters; references are to nothing longer.
LONGEST = "x" * 120

Templates = dict[str, dict[str, Any]]


def listed(index: int) -> dict[str, Any]:
    """A queue with a name as long as people give them, and a stack once the first is full."""
    name = f"a-queue-with-a-rather-long-name-{index}"
    keys = {"source_key_arn": key_arn(1), "dead_letter_key_arn": key_arn(2)}
    team = index // MAX_QUEUES
    where = {"stack": f"team-{team}"} if team else {}
    dlq = queue_arn(f"{name}-dlq")
    if index % 2:
        return entry(f"queue-{index}", source_arn=queue_arn(name), dead_letter_arn=dlq, **keys, **where)  # fmt: skip
    return shared_entry(f"queue-{index}", name, f"{name}-too", dead_letter_arn=dlq, **keys, **where)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is to be deployed. What cdk-nag says of it is another test's, of fewer queues."""
    asked = {name: value for name, value in STRICT.items() if name != "vpc_security_group_ids"}
    app = make_app(
        queues=[listed(index) for index in range(QUEUES)], oncall_policies="true", **asked
    )
    make_stacks(app, read_homes(app.node))
    return Path(app.synth().directory)


@pytest.fixture(scope="module")
def templates(folder: Path) -> Templates:
    return {one.name: json.loads(one.read_text()) for one in folder.glob("*.template.json")}


def stacks_of(templates: Templates) -> Templates:
    """Those that are deployed by themselves."""
    return {name: one for name, one in templates.items() if ".nested." not in name}


def test_every_queue_is_in_one_of_the_stacks_and_the_first_names_them(
    templates: Templates,
) -> None:
    stacks = stacks_of(templates)
    queues = [name for one in stacks.values() for name in one["Outputs"] if "Queue" in name]
    first = stacks["SmartRedriver.template.json"]["Outputs"]
    teams = [f"SmartRedriver-team-{number}" for number in range(1, 3)]

    assert sorted(stacks) == sorted(f"{name}.template.json" for name in ("SmartRedriver", *teams))
    assert sorted(queues) == sorted(f"Queue{index}Redriver" for index in range(QUEUES))
    assert first["RedriverStacks"]["Value"] == " ".join(["SmartRedriver", *teams])
    assert sum("RedriverStacks" in one["Outputs"] for one in stacks.values()) == 1


def test_no_template_is_more_than_cloudformation_takes(folder: Path, templates: Templates) -> None:
    for name, template in templates.items():
        assert (folder / name).stat().st_size <= MAX_TEMPLATE_BYTES
        assert len(template["Resources"]) <= MAX_RESOURCES, name
        assert len(template.get("Outputs", {})) <= MAX_OUTPUTS
        assert len(template.get("Parameters", {})) <= MAX_PARAMETERS


def test_a_stack_and_those_nested_in_it_fit_one_operation(templates: Templates) -> None:
    nested = max(len(one["Resources"]) for name, one in templates.items() if ".nested." in name)

    for template in stacks_of(templates).values():
        kinds = [one["Type"] for one in template["Resources"].values()]
        together = len(kinds) + nested * kinds.count("AWS::CloudFormation::Stack")
        assert together <= MAX_RESOURCES_TOGETHER


def test_what_an_output_says_is_no_longer_than_a_parameter_may_be(templates: Templates) -> None:
    for template in stacks_of(templates).values():
        for output in template["Outputs"].values():
            assert len(written(output["Value"])) <= MAX_OUTPUT_BYTES


def test_outputs_are_taken_apart_to_what_the_command_reads(templates: Templates) -> None:
    for template in stacks_of(templates).values():
        outputs = {name: written(one["Value"]) for name, one in template["Outputs"].items()}
        read = read_outputs(outputs)

        sources = [name for name in read if name.endswith("SourceQueueUrl")]
        assert len(sources) == sum(name.endswith("Redriver") for name in outputs)


def test_policies_are_no_longer_than_iam_takes(templates: Templates) -> None:
    inline: dict[str, int] = {}
    for name, resource in resources(templates, "AWS::IAM::Policy"):
        for role in resource["Roles"]:
            key = f"{name} {role}"
            inline[key] = inline.get(key, 0) + len(written(resource["PolicyDocument"]))
    managed = [
        len(written(one["PolicyDocument"]))
        for _, one in resources(templates, "AWS::IAM::ManagedPolicy")
    ]

    # Each function has a role of its own, and all schedules of a stack have one together.
    assert len(inline) == QUEUES + len(stacks_of(templates))
    assert max(inline.values()) <= MAX_INLINE_POLICIES
    assert len(managed) > QUEUES
    assert max(managed) <= MAX_MANAGED_POLICY


def test_environments_are_no_longer_than_lambda_takes(templates: Templates) -> None:
    functions = [one for _, one in resources(templates, "AWS::Lambda::Function")]

    assert len(functions) == QUEUES
    for one in functions:
        variables = one["Environment"]["Variables"]
        size = sum(len(name) + len(written(value)) for name, value in variables.items())
        assert size <= MAX_ENVIRONMENT_BYTES


def resources(templates: Templates, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Properties of all resources of this type, and the template that each is in."""
    for name, template in templates.items():
        for resource in template["Resources"].values():
            if resource["Type"] == kind:
                yield name, resource["Properties"]


def written(value: Any) -> str:
    """A value as a deployment writes it, with the longest that a reference may stand for."""
    if isinstance(value, dict):
        if set(value) <= {"Ref", "Fn::GetAtt", "Fn::ImportValue"}:
            return "aws" if value.get("Ref") == "AWS::Partition" else LONGEST
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return str(separator).join(map(written, parts))
        if "Fn::If" in value:
            return max(map(written, value["Fn::If"][1:]), key=len)
        inner = ",".join(f'"{name}":{quoted(one)}' for name, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(map(quoted, value))}]"
    return str(value)


def quoted(value: Any) -> str:
    text = written(value)
    return text if text.startswith(("{", "[")) else f'"{text}"'
