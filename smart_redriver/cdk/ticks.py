"""What asks a re-driver each minute whether a pass is due."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

#: The schedule only ticks; the function knows whether anything is due, and how often it looks at an idle queue.
_TICK_EVERY = cdk.Duration.minutes(1)


def schedule_ticks(scope: Construct, function: lambda_.IFunction) -> None:
    """Make ``Schedule`` in ``scope``."""
    target = targets.LambdaInvoke(
        function,
        input=scheduler.ScheduleTargetInput.from_object({"scheduled": True}),
        # A tick that could not be delivered is late by now; by default it would be tried for a day.
        retry_attempts=0,
        max_event_age=_TICK_EVERY,
    )
    scheduler.Schedule(
        scope,
        "Schedule",
        description="A tick of the smart re-driver: a pass, if one is due",
        schedule=scheduler.ScheduleExpression.rate(_TICK_EVERY),
        target=target,
    )
