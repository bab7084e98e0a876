"""Checks that the function's role allows each call that a pass makes, and that the keys it needs are enabled.

The checks ask IAM's policy simulator, so they send and receive nothing. The simulator does not know the policies of
queues and keys in other accounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.recovery import DETAIL_TYPE, SOURCE
from smart_redriver.engine.config.targets import Origin, Target, TargetKind, is_fifo, queue_name
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.targets.target_source import arn_beside
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong
from smart_redriver.oncall.doctor.queues import attributes_of

_DELIVER: Mapping[TargetKind, tuple[str, ...]] = {
    TargetKind.QUEUE: ("sqs:GetQueueUrl", "sqs:SendMessage"),
    TargetKind.FUNCTION: ("lambda:InvokeFunction",),
    TargetKind.DELIVERY_STREAM: ("firehose:PutRecord",),
    TargetKind.STATE_MACHINE: ("states:StartExecution",),
    TargetKind.TOPIC: ("sns:Publish",),
}
_TIMING = ("lambda:GetFunctionConfiguration", "lambda:GetFunctionEventInvokeConfig")
#: To see whether a queue's own failed messages go to the DLQ, which is then in its account and Region.
_ASK_QUEUE = ("sqs:GetQueueAttributes",)
#: The last word of the name of each service's VPC endpoint.
ENDPOINTS = {
    TargetKind.FUNCTION: "lambda",
    TargetKind.DELIVERY_STREAM: "kinesis-firehose",
    TargetKind.STATE_MACHINE: "states",
    TargetKind.TOPIC: "sns",
}


def calls_of(deployment: Deployment) -> Iterator[tuple[Target, tuple[str, ...]]]:
    """Yield each target in AWS, with the actions on it that the function's role must allow."""
    for target in deployment.targets:
        if calls := _DELIVER.get(target.kind):
            if deployment.origin is Origin.LAMBDA:
                calls += _TIMING
            if target.kind is TargetKind.QUEUE and arn_beside(target.place, deployment.dlq_url):
                calls += _ASK_QUEUE
            yield target, calls


def endpoints_of(deployment: Deployment) -> list[str]:
    """The services that deliver to targets, apart from those of every pass."""
    kinds = {one.kind for one in deployment.targets}
    return [service for kind, service in ENDPOINTS.items() if kind in kinds]


#: Access to metrics can't be restricted to a resource.
_ALL_METRICS = "*"
_SEND = ("sqs:SendMessage", "sqs:GetQueueAttributes")
_TAKE = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
)
_TAKE_DEAD = (*_TAKE, "sqs:ListMessageMoveTasks")
#: Letters near their expiry are sent to the DLQ once more; in a FIFO queue they would fall behind their groups.
_RENEW = ("sqs:SendMessage",)
_HEAR = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_WITNESS = ("cloudwatch:GetMetricData",)
_TELL = ("events:PutEvents",)
_NAMES: Mapping[tuple[str, ...], str] = {
    _WITNESS: "CloudWatch",
    _TELL: "the event bus, on which it tells others of a recovery",
}
_KEEP = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
)


def check_access(session: Session) -> Iterator[Finding]:
    """Check every call of a pass. Raises CallFailed."""
    deployment = session.place.deployment
    dlq = attributes_of(session, deployment.dlq_url)
    lot = attributes_of(session, deployment.parking_lot_url)
    sources = [attributes_of(session, url) for url in deployment.source_urls]
    needs: list[tuple[str, tuple[str, ...]]] = [
        *((source["QueueArn"], _SEND) for source in sources),
        (dlq["QueueArn"], _TAKE_DEAD if is_fifo(dlq["QueueArn"]) else (*_TAKE_DEAD, *_RENEW)),
        (lot["QueueArn"], (*_SEND, *_TAKE)),
        (_ALL_METRICS, _WITNESS),
    ]
    outcomes = [attributes_of(session, url) for url in (deployment.outcome_queue_url,) if url]
    needs += [(outcome["QueueArn"], _HEAR) for outcome in outcomes]
    needs += [(one.place, calls) for one, calls in calls_of(deployment)]
    keys = {str(one.get("KmsMasterKeyId") or "") for one in (*sources, dlq, lot, *outcomes)}
    yield from check_calls(session, needs, keys)


def check_calls(
    session: Session, needs: Iterable[tuple[str, tuple[str, ...]]], keys: Iterable[str] = ()
) -> Iterator[Finding]:
    """Check the calls to the state table, its key and others. Raises CallFailed.

    Args:
        needs: resource ARNs with their actions.
        keys: KMS keys, by id, alias or ARN; an empty one stands for none.

    """
    table = session.aws.dynamodb.describe_table(TableName=session.place.deployment.table_name)[
        "Table"
    ]
    role = session.function_configuration["Role"]
    for arn, actions in (*needs, (table["TableArn"], _KEEP)):
        yield _ask(session, role, arn, actions)
    yield from _check_telling(session, role)
    table_key = str(table.get("SSEDescription", {}).get("KMSMasterKeyArn") or "")
    for key in sorted({*keys, table_key} - {""}):
        yield check_key(session, key)


def _check_telling(session: Session, role: str) -> Iterator[Finding]:
    """Check the call that tells others about a recovery, if the queue has a shared downstream."""
    if not session.settings.downstream:
        return
    _, partition, _, region, account, *_ = session.function_configuration["FunctionArn"].split(":")
    bus = f"arn:{partition}:events:{region}:{account}:event-bus/default"
    yield _ask(
        session, role, bus, _TELL, {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}
    )


def _ask(
    session: Session,
    role: str,
    arn: str,
    actions: tuple[str, ...],
    context: Mapping[str, str] = MappingProxyType({}),
) -> Finding:
    name = _NAMES.get(actions) or queue_name(arn).rpartition("/")[2]
    try:
        answer: dict[str, Any] = session.aws.client("iam").simulate_principal_policy(
            PolicySourceArn=role,
            ActionNames=list(dict.fromkeys(actions)),
            ResourceArns=[arn],
            ContextEntries=[
                {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                for key, value in context.items()
            ],
        )
    except CallFailed as failed:
        return unknown(
            f"The function's rights on {name} could not be checked: {failed.code}.",
            "Looking needs iam:SimulatePrincipalPolicy; the last pass tells what was refused, too.",
        )
    denied = [
        one["EvalActionName"]
        for one in answer["EvaluationResults"]
        if one["EvalDecision"] != "allowed"
    ]
    return check(
        not denied,
        f"The function may do what it needs with {name}.",
        f"The function may not call {', '.join(denied)} on {name}.",
        "Deploy the stack anew; a policy that somebody attached to the role may also deny it.",
    )


def check_key(session: Session, key: str) -> Finding:
    """Whether a key is enabled."""
    try:
        described = session.aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]
    except CallFailed as failed:
        return unknown(
            f"The key {key} could not be looked at: {failed.code}.",
            "Ask its owner whether it is enabled.",
        )
    if described["KeyState"] == "Enabled":
        return good(f"The key {key} is enabled.")
    return wrong(
        f"The key {key} is {described['KeyState']}: its queues can't be read or written.",
        "Enable the key, or cancel its deletion.",
    )
