"""Whether the function's role allows each call that a pass makes, and whether the keys that it needs are in use.

IAM's own simulator answers, so nothing is sent or received for it. It does not know the policies of queues and keys
that belong to other accounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redrive.errors import CallFailed
from redrive.queue_names import queue_name
from smart_redriver.oncall.doctor.findings import Finding, check, good, unknown, wrong
from smart_redriver.oncall.doctor.queues import attributes_of
from smart_redriver.oncall.doctor.target_calls import calls_of
from smart_redriver.oncall.stack.session import Session

#: AWS can't restrict metrics to a resource.
_ALL_METRICS = "*"
_SEND = ("sqs:SendMessage", "sqs:GetQueueAttributes")
_TAKE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_TAKE_DEAD = (*_TAKE, "sqs:ChangeMessageVisibility", "sqs:ListMessageMoveTasks")
_HEAR = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
_READ_SECRET = ("secretsmanager:GetSecretValue",)
_WITNESS = ("cloudwatch:GetMetricData",)
_KEEP = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
)


def check_access(session: Session) -> Iterator[Finding]:
    """Ask for every call of a pass. Raises CallFailed."""
    deployment = session.place.deployment
    dlq = attributes_of(session, deployment.dlq_url)
    lot = attributes_of(session, deployment.parking_lot_url)
    sources = [attributes_of(session, url) for url in deployment.source_urls]
    table = session.aws.dynamodb.describe_table(TableName=deployment.table_name)["Table"]
    needs: list[tuple[str, tuple[str, ...]]] = [
        *((source["QueueArn"], _SEND) for source in sources),
        (dlq["QueueArn"], _TAKE_DEAD),
        (lot["QueueArn"], (*_SEND, *_TAKE)),
        (table["TableArn"], _KEEP),
        (_ALL_METRICS, _WITNESS),
    ]
    outcomes = [attributes_of(session, url) for url in (deployment.outcome_queue_url,) if url]
    needs += [(outcome["QueueArn"], _HEAR) for outcome in outcomes]
    needs += [(one.place, calls) for one, calls in calls_of(deployment)]
    role = session.function_configuration["Role"]
    for arn, actions in needs:
        yield _ask(session, role, arn, actions)
    keys = {str(one.get("KmsMasterKeyId") or "") for one in (*sources, dlq, lot, *outcomes)} - {""}
    if table_key := table.get("SSEDescription", {}).get("KMSMasterKeyArn"):
        keys.add(table_key)
    for key in sorted(keys):
        yield check_key(session, key)


def check_access_of_tables(session: Session) -> Iterator[Finding]:
    """The same for a table of Postgres: what the database lets it do is told by `check_database`. Raises CallFailed."""
    deployment = session.place.deployment
    table = session.aws.dynamodb.describe_table(TableName=deployment.table_name)["Table"]
    needs: list[tuple[str, tuple[str, ...]]] = [(table["TableArn"], _KEEP)]
    if deployment.database and deployment.database.secret:
        needs.append((deployment.database.secret, _READ_SECRET))
    role = session.function_configuration["Role"]
    for arn, actions in needs:
        yield _ask(session, role, arn, actions)
    if key := table.get("SSEDescription", {}).get("KMSMasterKeyArn"):
        yield check_key(session, key)


def _ask(session: Session, role: str, arn: str, actions: tuple[str, ...]) -> Finding:
    name = "CloudWatch" if arn == _ALL_METRICS else queue_name(arn).rpartition("/")[2]
    try:
        answer: dict[str, Any] = session.aws.client("iam").simulate_principal_policy(
            PolicySourceArn=role, ActionNames=list(dict.fromkeys(actions)), ResourceArns=[arn]
        )
    except CallFailed as failed:
        return unknown(
            f"What the function may do with {name} could not be asked: {failed.code}.",
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
    """Whether a key is in use."""
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
