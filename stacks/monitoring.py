"""How the re-driver reaches people: one topic for what can wait, one for what must wake somebody."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct


class Monitoring(Construct):
    """``warning_topic`` and ``paging_topic``, to which this account's CloudWatch alarms may publish.

    Neither an alarm nor its action grants itself anything. An alarm that may not publish to its
    topic, or may not use the topic's key, fires and reaches nobody.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        # SNS's own key (alias/aws/sns) can't be opened to CloudWatch, so the topics share this one.
        self._key = kms.Key(
            self,
            "Key",
            description="Alarms of the smart re-driver on their way to people",
            enable_key_rotation=True,
            # Encrypts nothing that outlives its delivery.
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.warning_topic = self._topic("Warning")
        self.paging_topic = self._topic("Paging")

    def _topic(self, construct_id: str) -> sns.Topic:
        topic = sns.Topic(self, construct_id, master_key=self._key, enforce_ssl=True)
        topic.grant_publish(_alarms_of_this_account(self))
        return topic


def _alarms_of_this_account(scope: Construct) -> iam.ServicePrincipal:
    stack = cdk.Stack.of(scope)
    alarms = stack.format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name="*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
    return iam.ServicePrincipal(
        "cloudwatch.amazonaws.com",
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": alarms},
        },
    )
