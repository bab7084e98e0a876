"""Walks from an alarm to its topic, the topic's policy and its key's policy, as CloudWatch and SNS would.

Works on all templates of an app at once, so that an alarm in a nested stack finds the topic of its parent.
"""

import copy
import fnmatch
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from bench.synthesized import CDK_JSON
from stacks.redriver_stack import make_stack
from stacks.settings import read_context

ACCOUNT, REGION = "111122223333", "eu-west-1"
_PSEUDO = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION, "AWS::Partition": "aws"}
_CLOUDWATCH = "cloudwatch.amazonaws.com"

Resources = Mapping[str, Any]


ADOPTED = [
    {
        "name": name,
        "source_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}",
        "dead_letter_arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}-dead",
    }
    for name in ("orders", "refunds")
]


def synthesize(**context: Any) -> dict[str, Any]:
    """All resources of the app for these context keys."""
    flags = json.loads(CDK_JSON.read_text())["context"]
    app = cdk.App(context={**flags, "aws:cdk:bundling-stacks": [], **context})
    return all_resources(make_stack(app, read_context(app.node)))


def all_resources(stack: cdk.Stack) -> dict[str, Any]:
    """The resources of a stack and of those nested in it, all references resolved.

    A topic is referred to as its logical id; what a nested stack is passed as a parameter is resolved.
    """
    template = Template.from_stack(stack).to_json()
    resources = {name: resolve(one, {}) for name, one in template["Resources"].items()}
    for nested in (one for one in stack.node.find_all() if isinstance(one, cdk.NestedStack)):
        [passed] = [
            resource["Properties"].get("Parameters", {})
            for name, resource in resources.items()
            if name == stack.resolve(nested.nested_stack_resource.logical_id)
        ]
        of_nested = Template.from_stack(nested).to_json()
        for name, one in of_nested["Resources"].items():
            resources[f"{nested.node.path}/{name}"] = resolve(one, passed)
    return resources


def resolve(value: Any, names: Mapping[str, Any]) -> Any:
    """A template's value as plain text and lists; a reference is the logical id of what it refers to."""
    if isinstance(value, list):
        return [resolve(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return names.get(value["Ref"], _PSEUDO.get(value["Ref"], value["Ref"]))
    if set(value) == {"Fn::GetAtt"}:
        return value["Fn::GetAtt"][0]
    if set(value) == {"Fn::Join"}:
        separator, parts = value["Fn::Join"]
        return separator.join(str(resolve(part, names)) for part in parts)
    return {key: resolve(one, names) for key, one in value.items()}


def alarms(resources: Resources) -> dict[str, Any]:
    """Every alarm, by its logical id."""
    kinds = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] in kinds}


def faults(resources: Resources) -> Iterator[str]:
    """Why alarms would reach nobody, or a topic would take what it should not; none if all is well."""
    for alarm, properties in alarms(resources).items():
        arn = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{alarm}"
        for topic in (*properties.get("AlarmActions", ()), *properties.get("OKActions", ())):
            for fault in _faults_of_topic(resources, topic, arn):
                yield f"{alarm}: {fault}"


def _faults_of_topic(resources: Resources, topic: str, alarm_arn: str) -> Iterator[str]:
    found = resources.get(topic)
    if found is None or found["Type"] != "AWS::SNS::Topic":
        yield f"{topic} is no topic"
        return
    policies = [
        one["Properties"]["PolicyDocument"]
        for one in resources.values()
        if one["Type"] == "AWS::SNS::TopicPolicy" and topic in one["Properties"]["Topics"]
    ]
    statements = [one for policy in policies for one in policy["Statement"]]
    if not _allowed(statements, "sns:Publish", topic, alarm_arn):
        yield f"the policy of {topic} does not let CloudWatch publish"
    if _allowed(statements, "sns:Publish", topic, alarm_arn, account="999999999999"):
        yield f"the policy of {topic} lets other accounts publish"
    if not any(_denies_plain_http(one) for one in statements):
        yield f"{topic} takes requests without TLS"
    key = resources.get(found["Properties"].get("KmsMasterKeyId", ""))
    if key is None:
        yield f"{topic} is not encrypted with a key of the stack"
        return
    of_key = key["Properties"]["KeyPolicy"]["Statement"]
    # SNS makes a data key for each message, in CloudWatch's name.
    for action in ("kms:GenerateDataKey", "kms:Decrypt"):
        if not _allowed(of_key, action, "*", alarm_arn):
            yield f"the key of {topic} does not let CloudWatch use {action}"


def _allowed(
    statements: list[dict[str, Any]],
    action: str,
    resource: str,
    alarm_arn: str,
    account: str = ACCOUNT,
) -> bool:
    context = {
        "aws:SourceAccount": account,
        "aws:SourceArn": alarm_arn,
        "aws:SecureTransport": "true",
    }
    effects = {
        statement["Effect"]
        for statement in statements
        if _is_about_cloudwatch(statement["Principal"])
        and any(fnmatch.fnmatchcase(action, one) for one in _list(statement["Action"]))
        and any(fnmatch.fnmatchcase(resource, one) for one in _list(statement["Resource"]))
        and _holds(statement.get("Condition", {}), context)
    }
    return effects == {"Allow"}


def _is_about_cloudwatch(principal: Any) -> bool:
    return principal == "*" or _CLOUDWATCH in _list(principal.get("Service", []))


def _holds(condition: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    # Only the operators in use; another one is a KeyError.
    matches: dict[str, Callable[[str, str], bool]] = {
        "StringEquals": str.__eq__,
        "Bool": str.__eq__,
        "ArnLike": fnmatch.fnmatchcase,
    }
    return all(
        any(matches[operator](context[key], wanted) for wanted in _list(values))
        for operator, tests in condition.items()
        for key, values in tests.items()
    )


def _denies_plain_http(statement: Mapping[str, Any]) -> bool:
    return (
        statement["Effect"] == "Deny"
        and statement["Principal"] == "*"
        and "sns:Publish" in _list(statement["Action"])
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def without_statements_for_cloudwatch(resources: Resources, kind: str) -> dict[str, Any]:
    """The same resources, with what a policy of this kind grants to CloudWatch taken away."""
    changed = copy.deepcopy(dict(resources))
    for one in changed.values():
        if one["Type"] == kind:
            document = one["Properties"].get("PolicyDocument") or one["Properties"]["KeyPolicy"]
            document["Statement"] = [
                statement
                for statement in document["Statement"]
                if statement["Principal"] != {"Service": _CLOUDWATCH}
            ]
    return changed
