"""Makes the Lambda functions of this app: small role, JSON logs, arm64, and its place in a VPC."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from smart_redriver.cdk.bundling import ARCHITECTURE, LOCK_FILE, RUNTIME, Sources, package_code
from smart_redriver.cdk.safeguards import Safeguards

#: AWS's managed policy for this, AWSLambdaVPCAccessExecutionRole, without its permissions for logs.
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
_CONNECT = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
_SHARED_ID = "SmartRedriverHttpsOut"
_HTTPS = 443


def let_lambda_connect(role: iam.Role) -> None:
    """Let Lambda make network interfaces on behalf of ``role``, but not the function's own code.

    Lambda checks beforehand that the role may delete any network interface, not only an existing one.
    """
    stack = cdk.Stack.of(role)
    functions = stack.format_arn(
        service="lambda",
        resource="function",
        resource_name="*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    role.add_to_policy(iam.PolicyStatement(actions=list(_CONNECT), resources=["*"]))
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=list(_CONNECT),
            resources=["*"],
            # Set on calls by a function's code, but not on those by Lambda itself.
            # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
            conditions={"ArnLike": {"lambda:SourceFunctionArn": functions}},
        )
    )


def connect(function: lambda_.Function, safeguards: Safeguards) -> None:
    """Put the function into the network in ``safeguards``.

    Lambda needs only ids. The CDK's own VPC construct would also need zones and routes.
    """
    groups = safeguards.vpc_security_group_ids or (_https_out(function, safeguards.vpc_id),)
    resource = cast("lambda_.CfnFunction", function.node.default_child)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(safeguards.vpc_subnet_ids), security_group_ids=list(groups)
    )


def _https_out(scope: Construct, vpc_id: str) -> str:
    """The stack's one security group for a VPC: HTTPS out, nothing in."""
    stack = cdk.Stack.of(scope)
    made = [
        one
        for one in stack.node.children
        if isinstance(one, ec2.CfnSecurityGroup) and one.node.id.startswith(_SHARED_ID)
    ]
    if there := [one for one in made if one.vpc_id == vpc_id]:
        return there[0].attr_group_id
    group = ec2.CfnSecurityGroup(
        stack,
        f"{_SHARED_ID}{len(made) + 1 if made else ''}",
        vpc_id=vpc_id,
        group_description="Functions of the smart re-driver: HTTPS to AWS, nothing in",
        security_group_egress=[
            ec2.CfnSecurityGroup.EgressProperty(
                ip_protocol="tcp",
                from_port=_HTTPS,
                to_port=_HTTPS,
                cidr_ip="0.0.0.0/0",
                description="To the endpoints of AWS",
            )
        ],
    )
    return group.attr_group_id


def python_function(
    scope: Construct,
    *,
    package: Path,
    handler: str,
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
    """Create ``Logs``, ``Role`` and ``Function`` in ``scope`` for a package, given by its folder.

    ``handler`` is the dotted name of the module that has ``lambda_handler``. ``beside`` has other code of this project
    by its place in the bundle. ``place`` is the package's own place, if that is not the top. ``lock_file`` has its
    dependencies.

    An asynchronous invocation is not retried, and kept for a minute, the minimum that AWS allows: the schedule's next
    tick is the retry, and a queue of old ticks is useless.
    """
    key = safeguards.key(scope, "FunctionKey")
    log_group = logs.LogGroup(
        scope,
        "Logs",
        retention=safeguards.log_retention,
        encryption_key=key,
        removal_policy=removal_policy,
    )
    # The CDK's default role may write to every log group of the account.
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log_group.grant_write(role)
    if safeguards.vpc_id:
        let_lambda_connect(role)
    function = lambda_.Function(
        scope,
        "Function",
        description=description,
        code=package_code(scope, package, beside, place, lock_file),
        handler=f"{handler}.lambda_handler",
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
