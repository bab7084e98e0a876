"""The table that holds circuits, leases and the ledger, for any number of queues."""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct


class StateTable(Construct):
    """``table``: key ``PK``, paid by request, restorable to any second of the last 35 days."""

    def __init__(
        self, scope: Construct, construct_id: str, *, removal_policy: cdk.RemovalPolicy
    ) -> None:
        super().__init__(scope, construct_id)
        self.table = dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.STRING),
            time_to_live_attribute="TTL",
            billing=dynamodb.Billing.on_demand(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=removal_policy == cdk.RemovalPolicy.RETAIN,
            removal_policy=removal_policy,
        )
