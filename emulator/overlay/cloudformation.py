"""CloudFormation: properties that MiniStack drops, and resource types that it refuses.

An unknown type or property makes a whole deployment fail. A dropped property goes unnoticed, and the deployed stack
then differs from the template.
"""

from collections.abc import Callable
from typing import Any

from ministack.services import cloudwatch, dynamodb, eventbridge, lambda_svc, sqs
from ministack.services.cloudformation import _stacks, provisioners

from .patching import wrap

_Properties = dict[str, Any]

#: Resources whose name is unique in an account: the property with the name, the function that creates the resource, and
#: whether the name is taken.
_NAMED: dict[str, tuple[str, str, Callable[[str], bool]]] = {
    "AWS::CloudWatch::Alarm": (
        "AlarmName",
        "_cw_metric_alarm_create",
        lambda name: name in cloudwatch._alarms or name in cloudwatch._composite_alarms,
    ),
    "AWS::SQS::Queue": ("QueueName", "_sqs_create", lambda name: name in sqs._queue_name_to_url),
    "AWS::Lambda::Function": (
        "FunctionName",
        "_lambda_create",
        lambda name: name in lambda_svc._functions,
    ),
    "AWS::Events::Rule": (
        "Name",
        "_eb_rule_create",
        lambda name: eventbridge._rule_key(name, "default") in eventbridge._rules,
    ),
}


def install() -> None:
    _refuse_taken_names()
    _after_provisioning("AWS::Lambda::Function", _reserve_concurrency)
    _after_provisioning("AWS::DynamoDB::Table", _enable_ttl)
    _after_provisioning("AWS::DynamoDB::GlobalTable", _enable_ttl)
    _after_provisioning("AWS::DynamoDB::GlobalTable", _encrypt)
    _keep_global_tables_that_change()
    _keep_what_alarms_evaluate()
    _keep_attributes_in_nested_stacks()
    _roll_nested_stacks_back()
    _delete_alarms_of_composites()
    provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::CompositeAlarm"] = {
        "create": _create_composite_alarm,
        "update": _update_composite_alarm,
        "update_with_logical_id": True,
        "delete": _delete_composite_alarm,
    }


def _after_provisioning(kind: str, apply: Callable[[str, _Properties], None]) -> None:
    """Call `apply(physical id, properties)` whenever a resource is created or updated."""
    handlers = provisioners._RESOURCE_HANDLERS[kind]
    create, update = handlers["create"], handlers["update"]

    def create_and_apply(logical_id: str, properties: _Properties, stack: str) -> Any:
        result = create(logical_id, properties, stack)
        apply(_physical_id(result), properties)
        return result

    def update_and_apply(
        physical_id: str, old: _Properties, new: _Properties, *args: Any, **kwargs: Any
    ) -> Any:
        result = update(physical_id, old, new, *args, **kwargs)
        apply(_physical_id(result), new)
        return result

    handlers.update(create=create_and_apply, update=update_and_apply)


def _physical_id(result: Any) -> str:
    return str(result[0] if isinstance(result, tuple) else result)


def _reserve_concurrency(function: str, properties: _Properties) -> None:
    reserved = properties.get("ReservedConcurrentExecutions")
    if record := lambda_svc._functions.get(function):
        record["concurrency"] = None if reserved is None else int(reserved)


def _enable_ttl(table: str, properties: _Properties) -> None:
    if specification := properties.get("TimeToLiveSpecification"):
        enabled = str(specification.get("Enabled", True)).lower() == "true"
        request = {
            "TableName": table,
            "TimeToLiveSpecification": {
                "Enabled": enabled,
                "AttributeName": specification["AttributeName"],
            },
        }
        dynamodb._update_ttl(request)


def _encrypt(table: str, properties: _Properties) -> None:
    """Let a global table have the key of its replica. MiniStack names an alias that does not exist, or no key."""
    replicas = (one.get("SSESpecification", {}) for one in properties.get("Replicas", ()))
    key = next((one["KMSMasterKeyId"] for one in replicas if "KMSMasterKeyId" in one), None)
    dynamodb._tables[table]["SSEDescription"] = key and {
        "Status": "ENABLED",
        "SSEType": "KMS",
        "KMSMasterKeyArn": key,
    }


def _keep_global_tables_that_change() -> None:
    """Keep global tables through updates.

    An update comes without the logical id, and a name made up without it would be another table's.
    """

    @wrap(provisioners, "_ddb_update")
    def update(
        change: Any,
        physical_id: str,
        old: _Properties,
        new: _Properties,
        stack: str,
        logical_id: str | None = None,
    ) -> Any:
        made_up = physical_id.removeprefix(f"{stack}-").rpartition("-")[0]
        return change(physical_id, old, new, stack, logical_id or made_up)


def _keep_what_alarms_evaluate() -> None:
    @wrap(provisioners, "_cw_metric_alarm_record")
    def record(describe: Any, name: str, properties: _Properties) -> Any:
        """Keep `Metrics` and `WarmUpConfiguration`; `alarms` evaluates them."""
        queries = properties.get("Metrics")
        placeholder = {"Metrics": None, "MetricName": "(metric math)", "Namespace": "(metric math)"}
        described = describe(name, {**properties, **placeholder} if queries else properties)
        kept = {key: properties.get(key) for key in ("Metrics", "WarmUpConfiguration")}
        return {**described, **kept}


def _keep_attributes_in_nested_stacks() -> None:
    """Keep the attributes of nested stacks' resources.

    A nested stack's update forgets the attributes of unchanged resources, and `Fn::GetAtt` then fails.
    """
    known: dict[tuple[str, str | None], dict[str, str]] = {}

    @wrap(provisioners, "_provision_resource")
    def provision(
        create: Any, kind: str, logical_id: str, properties: _Properties, stack: str, *args: Any
    ) -> Any:
        physical_id, attributes = create(kind, logical_id, properties, stack, *args)
        known[stack, logical_id] = attributes
        return physical_id, attributes

    @wrap(provisioners, "_update_resource")
    def update(
        change: Any,
        kind: str,
        physical_id: str,
        old: _Properties,
        new: _Properties,
        stack: str,
        logical_id: str | None = None,
        old_attributes: dict[str, str] | None = None,
    ) -> Any:
        remembered = old_attributes or known.get((stack, logical_id))
        physical_id, attributes = change(kind, physical_id, old, new, stack, logical_id, remembered)
        known[stack, logical_id] = attributes
        return physical_id, attributes


def _roll_nested_stacks_back() -> None:
    """A nested stack that can't be created leaves nothing. In MiniStack it leaves what came before the failure."""

    @wrap(provisioners, "_cfn_nested_stack_create")
    def create(make: Any, logical_id: str, properties: _Properties, stack: str) -> Any:
        before = set(_stacks)
        try:
            return make(logical_id, properties, stack)
        except Exception:
            for child in set(_stacks) - before:
                provisioners._cfn_nested_stack_delete(child, {})
            raise

    provisioners._RESOURCE_HANDLERS["AWS::CloudFormation::Stack"]["create"] = create


def _delete_alarms_of_composites() -> None:
    """A nested stack deletes alarms after its parent's composite has forgotten them; in MiniStack, before that."""

    @wrap(provisioners, "_cw_metric_alarm_delete")
    def delete(_refuse: Any, name: str, _properties: _Properties) -> None:
        cloudwatch.cloudformation_delete_metric_alarm(name)

    provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::Alarm"]["delete"] = delete


def _refuse_taken_names() -> None:
    """CloudFormation creates nothing under a taken name. MiniStack overwrites the resource that has the name.

    A replacement is created before its predecessor is deleted, so this applies to replaced resources, too.
    """
    for kind, (name_property, function, is_taken) in _NAMED.items():

        @wrap(provisioners, function)
        def create(
            make: Any,
            logical_id: str,
            properties: _Properties,
            stack: str,
            name_property: str = name_property,
            is_taken: Callable[[str], bool] = is_taken,
        ) -> Any:
            _refuse_if_taken(properties.get(name_property), is_taken)
            return make(logical_id, properties, stack)

        provisioners._RESOURCE_HANDLERS[kind]["create"] = create


def _refuse_if_taken(name: str | None, is_taken: Callable[[str], bool]) -> None:
    if name and is_taken(name):
        raise ValueError(f"{name} already exists")


def _create_composite_alarm(
    logical_id: str, properties: _Properties, stack: str
) -> tuple[str, dict[str, str]]:
    _refuse_if_taken(properties.get("AlarmName"), _NAMED["AWS::CloudWatch::Alarm"][2])
    return _put_composite_alarm(logical_id, properties, stack)


def _put_composite_alarm(
    logical_id: str, properties: _Properties, stack: str
) -> tuple[str, dict[str, str]]:
    name = properties.get("AlarmName") or provisioners._physical_name(
        stack, logical_id, max_len=255
    )
    request = {k: v for k, v in {**properties, "AlarmName": name}.items() if k != "Tags"}
    status, _headers, body = cloudwatch._put_composite_alarm({}, request, False, True)
    if status >= 400:
        raise ValueError(body)
    return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}


def _delete_composite_alarm(name: str, _properties: _Properties) -> None:
    cloudwatch._composite_alarms.pop(name, None)


def _update_composite_alarm(
    name: str, old: _Properties, new: _Properties, stack: str, logical_id: str = ""
) -> tuple[str, dict[str, str]]:
    """Update in place, unless the name changes: then create a new alarm before the old one is deleted."""
    replaced: tuple[str, dict[str, str]] | None = provisioners._rename_replacement(
        name,
        old,
        new,
        stack,
        logical_id,
        new.get("AlarmName") or name,
        name,
        _create_composite_alarm,
        _delete_composite_alarm,
    )
    return replaced or _put_composite_alarm(logical_id, {**new, "AlarmName": name}, stack)
