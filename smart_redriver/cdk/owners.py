"""Policy statements that owners of queues and keys outside this app may have to add, and that keys of it get."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.key_use import KeyUse
from smart_redriver.engine.config.targets import Target, TargetKind

#: CloudFormation shortens the stack's name in generated names, to fit 64 characters.
_NAME_KEPT = 24

#: Targets whose policy accepts such a statement. A function's policy can't have a condition on the caller's role.
_WITH_POLICIES = (TargetKind.QUEUE, TargetKind.TOPIC)

_FOREWORD = """\
Statements for the policies of queues and keys that are not this stack's own. In the re-driver's own account \
they are needed only where a policy leaves nothing to IAM: a key policy without the account's own statement, \
or a queue policy that denies."""


def tell_owners(
    scope: Construct,
    queues: Iterable[tuple[sqs.IQueue, Iterable[str]]],
    keys: Iterable[KeyUse],
    calls: Iterable[tuple[Target, Iterable[str]]] = (),
) -> None:
    """Make synth print, as JSON to paste, what the owners of foreign queues, topics and keys must allow.

    The app's own keys allow it from here on, if they leave nothing to IAM.
    """
    keys = list(keys)
    for key, own in _by_key(use for use in keys if not _is_foreign(use.key)):
        _let_in(scope, key, own)
    statements = {
        queue.queue_arn: _statement(scope, queue.env.account, actions, queue.queue_arn, {})
        for queue, actions in queues
        if _is_foreign(queue)
    }
    statements |= {
        target.place: _statement(scope, target.place.split(":")[4], actions, target.place, {})
        for target, actions in calls
        if _has_foreign_policy(target)
    }
    for key, foreign in _by_key(use for use in keys if _is_foreign(use.key)):
        statements[key.key_arn] = _of_key(scope, key, foreign)
    if statements:
        text = json.dumps(_to_paste(scope, statements), indent=2)
        told = f"{_FOREWORD}{_left_open(text)}\n{text}"
        cdk.Annotations.of(scope).add_info_v2("smart-redriver:owners", told)


def _has_foreign_policy(target: Target) -> bool:
    # What the app makes itself is in the stack's account, where IAM alone decides.
    return target.kind in _WITH_POLICIES and not cdk.Token.is_unresolved(target.place)


def _by_key(uses: Iterable[KeyUse]) -> Iterator[tuple[kms.IKey, list[KeyUse]]]:
    """Each key with all its uses."""
    found: dict[str, list[KeyUse]] = {}
    for use in uses:
        found.setdefault(use.key.key_arn, []).append(use)
    for of_one in found.values():
        yield of_one[0].key, of_one


def _of_key(scope: Construct, key: kms.IKey, uses: Sequence[KeyUse]) -> dict[str, Any]:
    """One statement for a key, with all its uses."""
    actions = {action for use in uses for action in use.actions}
    services = [use.via(scope) for use in uses]
    via = {"kms:ViaService": services if len(services) > 1 else services[0]}
    # In a key policy, `*` means the key itself.
    return _statement(scope, key.env.account, actions, "*", {"StringEquals": via})


def _let_in(scope: Construct, key: kms.IKey, uses: Sequence[KeyUse]) -> None:
    """Allow the roles of this stack in the policy of a key of the app, unless it leaves the uses to IAM.

    Roles are known by their names alone, and the place by CloudFormation's own variables: a reference to this stack
    from the key's could make the stacks depend on each other.
    """
    left_to_iam = list(_left_to_iam(key))
    actions = {action for use in uses for action in use.actions}
    if all(any(fnmatchcase(one, pattern) for pattern in left_to_iam) for one in actions):
        return
    here = {
        "AWS::Partition": cdk.Aws.PARTITION,
        "AWS::Region": cdk.Aws.REGION,
        "AWS::AccountId": cdk.Aws.ACCOUNT_ID,
    }
    statement = _spelt(cdk.Stack.of(scope).resolve(_of_key(scope, key, uses)), here)
    del statement["Sid"]  # another re-driver's statement has the same
    key.add_to_resource_policy(iam.PolicyStatement.from_json(statement))


def _left_to_iam(key: kms.IKey) -> Iterator[str]:
    """The actions that the policy of a key of the app lets IAM allow in its account, as far as it is written.

    None of a key from `kms.Key.from_cfn_key`: the CDK keeps such a policy as it was first read, and loses what is added
    later.
    """
    if _is_from_resource(key):
        return
    stack = cdk.Stack.of(key)
    policy = _spelt(stack.resolve(cast("kms.CfnKey", key.node.default_child).key_policy), {})
    account = _spelt(stack.resolve(stack.account), {})
    for one in policy["Statement"] if policy else ():
        is_account = any(
            who == account or who.endswith(f"::{account}:root") for who in _principals(one)
        )
        if is_account and one["Effect"] == "Allow" and "Condition" not in one:
            yield from _listed(one.get("Action"))


def _principals(statement: Mapping[str, Any]) -> list[str]:
    of_each_kind = statement.get("Principal")
    return _listed(of_each_kind.get("AWS")) if isinstance(of_each_kind, dict) else []


def _listed(given: str | list[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else given or []


_KEY_FOREWORD = """\
Statements that the policy of the encryption key must have beside the account's own: these services ask \
in their own name."""


#: The keys that are already done, by stack.
_SEEN_TO: WeakKeyDictionary[cdk.Stack, set[str]] = WeakKeyDictionary()


def open_key(scope: Construct, key: kms.IKey) -> None:
    """Allow ``key`` to encrypt log groups of the stack, and topics that alarms publish to.

    This changes the key's policy if the app owns it. Otherwise it tells its owner, once.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html
    """
    stack = cdk.Stack.of(scope)
    seen_to = _SEEN_TO.setdefault(stack, set())
    if key.key_arn in seen_to:
        return
    seen_to.add(key.key_arn)
    place = f"{stack.region}:{stack.account}"
    log_groups = f"arn:{stack.partition}:logs:{place}:log-group:{_named_after(stack)}"
    alarms = f"arn:{stack.partition}:cloudwatch:{place}:alarm:*"
    statements = [
        {
            "Sid": "SmartRedriverLogs",
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{stack.region}.amazonaws.com"},
            "Action": [
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey*",
                "kms:ReEncrypt*",
            ],
            "Resource": "*",
            "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}},
        },
        {
            "Sid": "SmartRedriverAlarms",
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
            "Condition": {
                "ArnLike": {"aws:SourceArn": alarms},
                "StringEquals": {"aws:SourceAccount": stack.account},
            },
        },
    ]
    if not _is_foreign(key):
        for one in statements:
            key.add_to_resource_policy(iam.PolicyStatement.from_json(one))
        return
    text = json.dumps(_to_paste(scope, {key.key_arn: statements}))
    told = f"{_KEY_FOREWORD}{_left_open(text)} {text}"
    cdk.Annotations.of(scope).add_info_v2("smart-redriver:key", told)


def _named_after(stack: cdk.Stack) -> str:
    """The pattern of CloudFormation's generated names in a stack. A nested stack's name begins with its parent's."""
    return f"{outermost(stack).stack_name[:_NAME_KEPT]}-*"


def outermost(scope: Construct) -> cdk.Stack:
    """The stack around ``scope`` that a person deploys."""
    stack = cdk.Stack.of(scope)
    while stack.nested_stack_parent:
        stack = stack.nested_stack_parent
    return stack


def _to_paste(scope: Construct, by_arn: Mapping[str, object]) -> dict[str, Any]:
    """The statements with values in place of tokens. If only a deployment knows one, it is `${Name}`.

    A stack that may be deployed anywhere is where the queues and keys are that it is given: their ARNs say where.
    """
    stack = cdk.Stack.of(scope)
    told = {}
    for arn, statement in by_arn.items():
        partition, region = ("", "") if cdk.Token.is_unresolved(arn) else arn.split(":")[1:4:2]
        known = {"AWS::Partition": partition, "AWS::Region": region}
        told[_spelt(stack.resolve(arn), known)] = _spelt(stack.resolve(statement), known)
    return told


def _spelt(resolved: Any, known: Mapping[str, str]) -> Any:
    """CloudFormation's functions as text, as in `Fn::Sub`."""
    match resolved:
        case {"Ref": name}:
            return known.get(name) or f"${{{name}}}"
        case {"Fn::GetAtt": [*names]}:
            return f"${{{'.'.join(names)}}}"
        case {"Fn::Join": [between, [*parts]]}:
            return between.join(_spelt(one, known) for one in parts)
        case dict() if len(resolved) == 1 and (function := next(iter(resolved))).startswith("Fn::"):
            return f"${{{function} of {json.dumps(resolved[function])}}}"
        case dict():
            return {key: _spelt(one, known) for key, one in resolved.items()}
        case list():
            return [_spelt(one, known) for one in resolved]
    return resolved


def _left_open(text: str) -> str:
    open_ones = " Replace each $ and its braces by the value in the deployment."
    return open_ones if "${" in text else ""


def _is_foreign(resource: cdk.IResource) -> bool:
    return not (cdk.Resource.is_owned_resource(resource) or _is_from_resource(resource))


def _is_from_resource(resource: cdk.IResource) -> bool:
    """Whether it is a key from `kms.Key.from_cfn_key`, whose policy can be changed although the CDK doesn't own it."""
    return isinstance(resource.node.scope, kms.CfnKey)


def _statement(
    scope: Construct,
    owner: str,
    actions: Iterable[str],
    policy_resource: str,
    conditions: Mapping[str, Any],
) -> dict[str, Any]:
    """An Allow statement for the roles of this stack. Only a deployment knows their full names."""
    stack = cdk.Stack.of(scope)
    is_known = not cdk.Token.is_unresolved(owner)
    account = owner if is_known and cdk.Token.is_unresolved(stack.account) else stack.account
    roles = f"arn:{stack.partition}:iam::{account}:role/{_named_after(stack)}"
    return {
        "Sid": "SmartRedriver",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{stack.partition}:iam::{account}:root"},
        "Action": sorted(actions),
        "Resource": policy_resource,
        "Condition": {"ArnLike": {"aws:PrincipalArn": roles}, **conditions},
    }
