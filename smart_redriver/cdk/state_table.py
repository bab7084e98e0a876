"""The table that holds circuits, leases and the ledger, for any number of queues."""

from collections.abc import Iterator
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from smart_redriver.cdk.arguments import is_elsewhere
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.errors import Fault

_SHARED_ID = "SmartRedriverState"
_TABLE_ID = "Table"

#: The actions of a pass on items of the table.
KEEP_STATE = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
)


class StateTable(Construct):
    """``table``: key ``PK``, pay per request, restorable to any second of the last 35 days.

    ``deletion_protection`` is on by default, unless ``removal_policy`` says to destroy the table. A protected table is
    retained even if the first deployment fails: CloudFormation can't delete it, so the rollback would fail, too.
    Without a ``key``, the table is encrypted by a key that AWS owns.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal_policy: cdk.RemovalPolicy,
        deletion_protection: bool | None = None,
        key: kms.IKey | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        is_kept = removal_policy != cdk.RemovalPolicy.DESTROY
        if deletion_protection is None:
            deletion_protection = is_kept
        self.table = dynamodb.TableV2(
            self,
            _TABLE_ID,
            partition_key=dynamodb.Attribute(name="PK", type=dynamodb.AttributeType.STRING),
            time_to_live_attribute="TTL",
            billing=dynamodb.Billing.on_demand(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=deletion_protection,
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(key) if key else None,
            removal_policy=(
                cdk.RemovalPolicy.RETAIN if is_kept and deletion_protection else removal_policy
            ),
        )


def shared_state_table(
    scope: Construct, *, removal_policy: cdk.RemovalPolicy, key: kms.IKey | None
) -> dynamodb.ITableV2:
    """The one state table of the stack around ``scope``, made at first use."""
    stack = cdk.Stack.of(scope)
    made = stack.node.try_find_child(_SHARED_ID)
    if made is None:
        return StateTable(stack, _SHARED_ID, removal_policy=removal_policy, key=key).table
    # Found by its place, because jsii may have forgotten that `made` is a StateTable.
    return cast("dynamodb.ITableV2", made.node.find_child(_TABLE_ID))


def without_key(
    scope: Construct, table: dynamodb.ITableV2 | None, safeguards: Safeguards | None
) -> Iterator[Fault]:
    """Yield a fault if ``scope`` asks for a key of another Region, or one that the shared table does not have."""
    stack = cdk.Stack.of(scope)
    made = stack.node.try_find_child(_SHARED_ID)
    # Arguments of another type are faults of their own.
    key_arn = safeguards.encryption_key_arn if isinstance(safeguards, Safeguards) else ""
    if is_elsewhere(key_arn, stack):
        accepted = f"a key of {stack.region}, where the stack is"
        yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)
        return
    if table is not None or not key_arn:
        return
    if made is None:
        if cdk.Token.is_unresolved(stack.region):
            accepted = (
                "nothing in a stack without a Region, as the CDK's table takes no key there: "
                "give the stack an `env`"
            )
            yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)
        return
    shared = cast("dynamodb.ITableV2", made.node.find_child(_TABLE_ID))
    if shared.encryption_key is None or shared.encryption_key.key_arn != key_arn:
        accepted = (
            "the key of the stack's first re-driver, whose table and topics the others share, "
            "or a table of its own"
        )
        yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)
