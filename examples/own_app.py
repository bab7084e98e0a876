"""A re-driver for queues that your own CDK app has or, as here, that exist already."""

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs

from smart_redriver.cdk import Mode, Settings, SmartRedriver

app = cdk.App()
stack = cdk.Stack(app, "OrdersRedriver")
arn = "arn:aws:sqs:eu-west-1:111122223333:orders"
orders = sqs.Queue.from_queue_arn(stack, "Orders", arn)
dead = sqs.Queue.from_queue_arn(stack, "DeadLetters", f"{arn}-dlq")
settings = Settings(mode=Mode.DRY_RUN, max_attempts=3)
SmartRedriver(stack, "Redriver", source_queue=orders, dead_letter_queue=dead, settings=settings)
app.synth()
