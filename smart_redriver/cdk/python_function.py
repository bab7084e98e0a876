"""One Lambda function of this app, as every one of them is made: small role, JSON logs, arm64."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from smart_redriver.cdk.bundling import ARCHITECTURE, LOCK_FILE, RUNTIME, Sources, package_code
from smart_redriver.cdk.network import connect, let_lambda_connect
from smart_redriver.cdk.safeguards import Safeguards


def python_function(
    scope: Construct,
    *,
    package: Path,
    description: str,
    memory_mib: int,
    timeout: cdk.Duration,
    environment: Mapping[str, str],
    removal_policy: cdk.RemovalPolicy,
    safeguards: Safeguards,
    beside: Sources = MappingProxyType({}),
    place: str | None = None,
    lock_file: Path = LOCK_FILE,
) -> lambda_.Function:
    """Create ``Logs``, ``Role`` and ``Function`` in ``scope`` for the ``lambda_handler`` of a package, given by its folder.

    ``beside`` is other code of ours, by where it has to be in the bundle; ``place`` where the package
    itself has to be, if that is not at the top; ``lock_file`` what it depends on.

    An asynchronous invocation is not retried and not kept for more than a minute, the least that
    AWS allows: the next tick of the schedule is the retry, and a queue of old ticks is of no use.
    """
    key = safeguards.key(scope, "FunctionKey")
    log_group = logs.LogGroup(
        scope,
        "Logs",
        retention=safeguards.log_retention,
        encryption_key=key,
        removal_policy=removal_policy,
    )
    # The role that the CDK makes by itself may write to every log group of the account.
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log_group.grant_write(role)
    if safeguards.vpc_id:
        let_lambda_connect(role)
    function = lambda_.Function(
        scope,
        "Function",
        description=description,
        code=package_code(scope, package, beside, place, lock_file),
        handler=f"{(place or package.name).replace('/', '.')}.handler.lambda_handler",
        runtime=RUNTIME,
        architecture=ARCHITECTURE,
        memory_size=memory_mib,
        timeout=timeout,
        environment=dict(environment),
        environment_encryption=key,
        role=role,
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        retry_attempts=0,
        max_event_age=cdk.Duration.seconds(60),
        reserved_concurrent_executions=safeguards.reserved_concurrency or None,
    )
    if safeguards.vpc_id:
        connect(function, safeguards)
    return function
