"""The schedule that asks a re-driver each minute whether a pass is due."""

from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

#: The schedule only ticks; the function knows whether anything is due, and how often it looks at an idle queue.
_TICK_EVERY = cdk.Duration.minutes(1)

_roles: WeakKeyDictionary[cdk.Stack, iam.Role] = WeakKeyDictionary()


def schedule_ticks(scope: Construct, function: lambda_.IFunction) -> None:
    """Make ``Schedule`` in ``scope``; all schedules of a stack have one role."""
    role = _role(cdk.Stack.of(scope))
    invoke = iam.PolicyStatement(
        actions=["lambda:InvokeFunction"], resources=[function.function_arn]
    )
    role.add_to_policy(invoke)
    target = targets.LambdaInvoke(
        function,
        input=scheduler.ScheduleTargetInput.from_object({"scheduled": True}),
        # A tick that could not be delivered is late by now; by default it would be tried for a day.
        retry_attempts=0,
        max_event_age=_TICK_EVERY,
        # By itself it adds the versions and aliases of the function, of which there are none.
        role=role.without_policy_updates(),
    )
    scheduler.Schedule(
        scope,
        "Schedule",
        description="A tick of the smart re-driver: a pass, if one is due",
        schedule=scheduler.ScheduleExpression.rate(_TICK_EVERY),
        target=target,
    )


def _role(stack: cdk.Stack) -> iam.Role:
    """The role of the stack's schedules, made when it is first asked for."""
    if stack not in _roles:
        # Scheduler asks in the name of a schedule's group, not of the schedule.
        # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
        group = stack.format_arn(
            service="scheduler", resource="schedule-group", resource_name="default"
        )
        _roles[stack] = iam.Role(
            stack,
            "SmartRedriverSchedules",
            description="Invokes the re-drivers of this stack each minute",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group}
                },
            ),
        )
    return _roles[stack]
