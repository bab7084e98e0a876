"""The table that holds circuits, leases and the ledger, for any number of queues."""

from collections.abc import Iterator
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from smart_redriver.cdk.arguments import is_away, is_elsewhere
from smart_redriver.cdk.safeguards import Safeguards, is_alias
from smart_redriver.engine.errors import Fault

_SHARED_ID = "SmartRedriverState"
_TABLE_ID = "Table"
_REMOVALS = (
    cdk.RemovalPolicy.RETAIN,
    cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    cdk.RemovalPolicy.DESTROY,
)

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


def table_faults(
    scope: Construct,
    table: dynamodb.ITableV2 | None,
    safeguards: Safeguards | None,
    removal_policy: cdk.RemovalPolicy,
) -> Iterator[Fault]:
    """Yield faults of the table given, or of what ``scope`` asks of the one that it makes or shares.

    Nothing shared is changed for a second re-driver: its key and removal policy would be ignored.
    """
    stack = cdk.Stack.of(scope)
    if removal_policy not in _REMOVALS:
        # Only databases have snapshots.
        accepted = " or ".join(f"RemovalPolicy.{one.name}" for one in _REMOVALS)
        yield Fault(setting="removal_policy", seen=removal_policy, accepted=accepted)
    # Arguments of another type are faults of their own.
    key_arn = safeguards.encryption_key_arn if isinstance(safeguards, Safeguards) else ""
    key_arn = key_arn if isinstance(key_arn, str) else ""
    if is_elsewhere(key_arn, stack):
        accepted = f"a key of {stack.region}, where the stack is"
        yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)
    elif table is not None:
        yield from _unfit(stack, table)
    elif made := stack.node.try_find_child(_SHARED_ID):
        yield from _unlike(made, key_arn, removal_policy)
    elif key_arn and cdk.Token.is_unresolved(stack.region):
        accepted = (
            "nothing in a stack without a Region, as the CDK's table takes no key there: "
            "give the stack an `env`"
        )
        yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)


def _unlike(made: IConstruct, key_arn: str, removal_policy: cdk.RemovalPolicy) -> Iterator[Fault]:
    """Yield a fault for a key or removal policy that the shared table does not have."""
    shared = cast("dynamodb.ITableV2", made.node.find_child(_TABLE_ID))
    if key_arn and (shared.encryption_key is None or shared.encryption_key.key_arn != key_arn):
        accepted = (
            "the key of the stack's first re-driver, whose table and topics the others share, "
            "or a table of its own"
        )
        yield Fault(setting="encryption_key_arn", seen=key_arn, accepted=accepted)
    resource = cast("cdk.CfnResource", shared.node.default_child)
    is_kept = resource.cfn_options.deletion_policy != cdk.CfnDeletionPolicy.DELETE
    if is_kept != (removal_policy != cdk.RemovalPolicy.DESTROY):
        accepted = (
            f"{'RETAIN' if is_kept else 'DESTROY'} as the stack's first re-driver has, whose table "
            "the others share, or a table of its own (`table`)"
        )
        yield Fault(setting="removal_policy", seen=removal_policy, accepted=accepted)


def _unfit(stack: cdk.Stack, table: dynamodb.ITableV2) -> Iterator[Fault]:
    """Yield faults of a given table. An app can't know the keys of a table that it does not make."""
    # The older `dynamodb.Table` has no id. `isinstance` doesn't work on the CDK's interfaces.
    if not hasattr(table, "table_id"):
        accepted = "a table: a `dynamodb.TableV2`, or `TableV2.from_table_arn` makes one"
        yield Fault(setting="table", seen=table, accepted=accepted)
        return
    if is_away(stack, table.env.account, table.env.region):
        # The function and the command know a table by its name.
        accepted = "a table where the stack is, in its account and Region"
        yield Fault(setting="table", seen=table.table_arn, accepted=accepted)
    if table.encryption_key is not None and is_alias(table.encryption_key):
        accepted = "a table with its key, and not with an alias of it"
        yield Fault(setting="table", seen=table.encryption_key.node.path, accepted=accepted)
    if cdk.Resource.is_owned_resource(table):
        yield from _unfit_for_items(stack, table)


def _unfit_for_items(stack: cdk.Stack, table: dynamodb.ITableV2) -> Iterator[Fault]:
    """Yield faults of a table of the app: one that could keep no items or never expire them."""
    resource = cast("dynamodb.CfnGlobalTable", table.node.default_child)
    types = {
        one["attributeName"]: one["attributeType"]
        for one in stack.resolve(resource.attribute_definitions)
    }
    keys = [
        (one.get("attributeName"), one.get("keyType")) for one in stack.resolve(resource.key_schema)
    ]
    if keys != [("PK", "HASH")] or types["PK"] != "S":
        seen = ", ".join(f"{name} ({types.get(name)})" for name, _ in keys)
        yield Fault(setting="table", seen=seen, accepted="a table whose one key is the string PK")
    expiry = stack.resolve(resource.time_to_live_specification) or {}
    if expiry.get("attributeName") != "TTL":
        accepted = "a table whose `time_to_live_attribute` is TTL"
        yield Fault(setting="table", seen=expiry.get("attributeName"), accepted=accepted)
