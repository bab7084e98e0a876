"""A widget for a queue's dashboard that shows what `redrive status` and `redrive causes` do,
by a function that only reads.
"""

from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

import smart_redriver
from smart_redriver.cdk.acknowledged import accept_widget
from smart_redriver.cdk.key_use import DECRYPT, KeyUse
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings

_OURS = Path(smart_redriver.__file__).resolve().parent
#: Its own place in the bundle, as it is imported here.
PLACE = "smart_redriver/widget"
WIDGET = _OURS / "widget"
#: What it shares with the re-driver and the command: how a queue's state is read, and how it is said.
SHARED = {
    **{
        f"smart_redriver/{place}": _OURS / place
        for place in (
            "__init__.py",
            "engine",
            "oncall/__init__.py",
            "oncall/letters",
            "oncall/audit",
            "oncall/deployment",
            "oncall/status",
            "oncall/terminal",
        )
    },
}

#: One look is a few calls, and a scan of at most 25 pages.
_LONGEST_LOOK = cdk.Duration.seconds(30)
#: Lambda's share of a processor grows with it, and a person waits.
_MEMORY_MIB = 512
_HEIGHT = 9

_MEASURE = ("sqs:GetQueueAttributes",)
_READ_TABLE = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan")


class DashboardWidget(Construct):
    """``function`` looks at one queue's re-driver, and changes nothing;
    ``widget`` shows on a dashboard what it answers.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        settings: Settings,
        queues: tuple[sqs.IQueue, ...],
        table: dynamodb.ITableV2,
        safeguards: Safeguards,
        removal_policy: cdk.RemovalPolicy,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack_name = {"STACK_NAME": cdk.Stack.of(table).stack_name}
        self.function = python_function(
            self,
            package=WIDGET,
            place=PLACE,
            handler="smart_redriver.widget.handler",
            beside=SHARED,
            description="Shows the status of a dead-letter queue on its dashboard; reads only",
            memory_mib=_MEMORY_MIB,
            timeout=_LONGEST_LOOK,
            environment=deployment.to_env() | settings.to_env() | stack_name,
            removal_policy=removal_policy,
            # Everybody who looks at the dashboard invokes it: what is reserved for passes would not do.
            safeguards=replace(safeguards, reserved_concurrency=0),
        )
        accept_widget(self, self.function, safeguards)
        for queue in queues:
            queue.grant(self.function, *_MEASURE)
        table.grant(self.function, *_READ_TABLE)
        if table.encryption_key:
            self._use(table.encryption_key, "dynamodb")
        if key:
            self._use(key, "lambda")
        self.widget = cloudwatch.CustomWidget(
            function_arn=self.function.function_arn,
            title="How it stands",
            width=24,
            height=_HEIGHT,
            update_on_refresh=True,
            update_on_resize=False,
            update_on_time_range_change=False,
        )

    def _use(self, key: kms.IKey, service: str) -> None:
        use = KeyUse(key=key, service=service, actions=DECRYPT)
        self.function.add_to_role_policy(use.statement(self))
