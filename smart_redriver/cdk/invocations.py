"""What invokes a re-driver: a schedule each minute, and a rule on the default bus when its consumer is well again."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from smart_redriver.cdk.acknowledged import acknowledge
from smart_redriver.engine.config.recovery import (
    ALARM_DETAIL_TYPE,
    ALARM_SOURCE,
    DETAIL_TYPE,
    OK,
    RECOVERED,
    SOURCE,
    elsewhere,
)
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault

#: A later hint would only say what a canary has already shown.
_LATEST_SECONDS = 300
_LOST = "A hint: where it is lost, the next canary goes at its own time, and no letter is."


def hear_recovery(
    scope: Construct, function: lambda_.Function, queues: Iterable[str], settings: Settings
) -> None:
    """Make ``Recovery`` in ``scope``: a rule for recoveries of ``queues``, of their shared downstream, and of alarms.

    A function that shares a downstream may tell others about a recovery.
    """
    shared = [settings.downstream] if settings.downstream else []
    # `events.Rule` has no `$or`, and a second rule would use two more of the 500 resources that a stack may have.
    rule = events.CfnRule(
        scope,
        "Recovery",
        description="A consumer may be well again: the smart re-driver tries a letter",
        event_pattern=heard([*queues, *shared], settings.recovery_alarms),
        targets=[
            events.CfnRule.TargetProperty(
                arn=function.function_arn,
                id="Function",
                retry_policy=events.CfnRule.RetryPolicyProperty(
                    maximum_retry_attempts=2, maximum_event_age_in_seconds=_LATEST_SECONDS
                ),
            )
        ],
    )
    acknowledge(rule, {"Serverless-EventBusDLQ": _LOST})
    function.add_permission(
        "Recovery",
        principal=iam.ServicePrincipal("events.amazonaws.com"),
        source_arn=rule.attr_arn,
    )
    if shared:
        function.add_to_role_policy(tell_recovery(scope))


def heard(recovered: Sequence[str], alarms: Sequence[str]) -> dict[str, Any]:
    """The pattern for events that one of these names has recovered, or that one of these alarms is OK again."""
    told = {"source": [SOURCE], "detail-type": [DETAIL_TYPE], "detail": {RECOVERED: [*recovered]}}
    is_ok = {
        "source": [ALARM_SOURCE],
        "detail-type": [ALARM_DETAIL_TYPE],
        "resources": [*alarms],
        "detail": {"state": {"value": [OK]}},
    }
    return {"$or": [told, is_ok]} if alarms else told


def tell_recovery(scope: Construct) -> iam.PolicyStatement:
    """The right to send recovery events, and no other events."""
    bus = cdk.Stack.of(scope).format_arn(
        service="events", resource="event-bus", resource_name="default"
    )
    only = {"StringEquals": {"events:source": SOURCE, "events:detail-type": DETAIL_TYPE}}
    return iam.PolicyStatement(actions=["events:PutEvents"], resources=[bus], conditions=only)


def alarms_elsewhere(scope: Construct, settings: object) -> Iterator[Fault]:
    """Yield faults of alarms whose changes no rule in the stack can receive."""
    if not isinstance(settings, Settings):
        return
    stack = cdk.Stack.of(scope)
    region, account = (
        None if cdk.Token.is_unresolved(one) else one for one in (stack.region, stack.account)
    )
    yield from elsewhere(settings.recovery_alarms, region, account)


#: The schedule only ticks. The function knows whether anything is due, and how often to look at an idle queue.
_TICK_EVERY = cdk.Duration.minutes(1)

_roles: WeakKeyDictionary[cdk.Stack, iam.Role] = WeakKeyDictionary()


def schedule_ticks(scope: Construct, function: lambda_.IFunction) -> None:
    """Make ``Schedule`` in ``scope``. All schedules of a stack share one role."""
    role = _role(cdk.Stack.of(scope))
    invoke = iam.PolicyStatement(
        actions=["lambda:InvokeFunction"], resources=[function.function_arn]
    )
    role.add_to_policy(invoke)
    target = targets.LambdaInvoke(
        function,
        input=scheduler.ScheduleTargetInput.from_object({"scheduled": True}),
        # A tick that could not be delivered is too late. By default it would be retried for a day.
        retry_attempts=0,
        max_event_age=_TICK_EVERY,
        # Otherwise the CDK adds the function's versions and aliases, but there are none.
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
    """The role of the stack's schedules, made at first use."""
    if stack not in _roles:
        # Scheduler assumes the role on behalf of a schedule's group, not of the schedule.
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
