"""What the owners of queues and keys that this app does not own may have to add to their policies."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

#: CloudFormation shortens the stack's name in the names that it makes up, to fit 64 characters.
_NAME_KEPT = 24

_FOREWORD = """\
Statements for the policies of queues and keys that are not this stack's own. In the re-driver's own account \
they are needed only where a policy leaves nothing to IAM: a key policy without the account's own statement, \
or a queue policy that denies."""


def tell_owners(
    scope: Construct,
    queues: Iterable[tuple[sqs.IQueue, Iterable[str]]],
    keys: Iterable[tuple[kms.IKey, Iterable[str]]],
) -> None:
    """Let synth print, as JSON to paste, what the owners of foreign queues and keys must allow."""
    statements = {
        queue.queue_arn: _statement(scope, queue, actions, queue.queue_arn, {})
        for queue, actions in queues
        if _is_foreign(queue)
    }
    for key, actions in keys:
        if _is_foreign(key):
            through_sqs = {
                "StringEquals": {"kms:ViaService": f"sqs.{key.env.region}.amazonaws.com"}
            }
            # In a key policy `*` is the key itself.
            statements[key.key_arn] = _statement(scope, key, actions, "*", through_sqs)
    if statements:
        text = json.dumps(cdk.Stack.of(scope).resolve(statements), indent=2)
        cdk.Annotations.of(scope).add_info_v2("smart-redriver:owners", f"{_FOREWORD}\n{text}")


def _is_foreign(resource: cdk.IResource) -> bool:
    return not cdk.Resource.is_owned_resource(resource)


def _statement(
    scope: Construct,
    resource: cdk.IResource,
    actions: Iterable[str],
    policy_resource: str,
    conditions: Mapping[str, Any],
) -> dict[str, Any]:
    """An Allow for the roles of this stack, whose full names only a deployment knows."""
    stack = cdk.Stack.of(scope)
    account = resource.env.account if cdk.Token.is_unresolved(stack.account) else stack.account
    roles = f"arn:{stack.partition}:iam::{account}:role/{stack.stack_name[:_NAME_KEPT]}-*"
    return {
        "Sid": "SmartRedriver",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{stack.partition}:iam::{account}:root"},
        "Action": sorted(actions),
        "Resource": policy_resource,
        "Condition": {"ArnLike": {"aws:PrincipalArn": roles}, **conditions},
    }
