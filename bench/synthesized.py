"""The stack as it is synthesized, its references replaced by names: what a deployment would make of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from bench.metric_record import FUNCTION
from simulator.world import DLQ, PARKING_LOT, SOURCE
from stacks.redriver_stack import make_stack
from stacks.settings import read_context

CDK_JSON = Path(__file__).resolve().parent.parent / "cdk.json"

OUTCOMES = "outcomes"

#: The outputs that name what a simulated world has, and how it is called there.
_NAMED = {
    "SourceQueueUrl": SOURCE,
    "DeadLetterQueueUrl": DLQ,
    "ParkingLotQueueUrl": PARKING_LOT,
    "OutcomeQueueUrl": OUTCOMES,
    "RedriveFunctionName": FUNCTION,
}


def synthesize(**context: str) -> dict[str, Any]:
    """The template for these context keys, nothing bundled."""
    flags = json.loads(CDK_JSON.read_text())["context"]
    app = cdk.App(context={**flags, "aws:cdk:bundling-stacks": [], **context})
    return dict(Template.from_stack(make_stack(app, read_context(app.node))).to_json())


def of_cloudwatch(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template's alarms and dashboards by logical id. References are replaced: to queues and
    function by their names in a simulated world, to everything else by its logical id.
    """
    names = {
        _logical_id(output["Value"]): _NAMED[name]
        for name, output in template["Outputs"].items()
        if name in _NAMED
    }
    return {
        logical_id: _resolve(resource, names)
        for logical_id, resource in template["Resources"].items()
        if resource["Type"].startswith("AWS::CloudWatch::")
    }


def _logical_id(reference: Mapping[str, Any]) -> str:
    [referred] = reference.values()
    return str(referred[0] if isinstance(referred, list) else referred)


def _resolve(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_resolve(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() <= {"Ref", "Fn::GetAtt"} and value:
        logical_id = _logical_id(value)
        return names.get(logical_id, logical_id)
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(_resolve(parts, names))
    return {key: _resolve(one, names) for key, one in value.items()}
