"""Builds the plain CloudFormation template and its function's zip: `python packages/template/build.py FOLDER`.

For those without the CDK: one standard queue and its DLQ, which exist, by parameters. The same sources give the same
bytes.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from smart_redriver import __version__
from smart_redriver.cdk import MonitoringSettings, Settings, SmartRedriver
from smart_redriver.cdk.invocations import heard, tell_recovery
from smart_redriver.engine.config.recovery import ALARM_ARN

NAME = f"smart-redriver-{__version__}"
#: The earliest time that a zip file can name.
_DATE = (1980, 1, 1, 0, 0, 0)
#: Alarms and graphs are made by these at synth; queues that exist have their own; or no function reads them.
_FIXED = {
    "schedule_minutes",
    "cool_down_seconds",
    "max_cool_down_seconds",
    "verdict_grace_seconds",
    "source_visibility_timeout_seconds",
    "max_receive_count",
    "with_sample_consumer",
    "fifo_poison",
    "recovery_alarms",
}
#: Where an alarm is, as the construct says it in a stack of this id: stack and construct, which end in a hash.
_PLACE = re.compile(r"SmartRedriver-[A-Za-z]+-[0-9A-F]{8}")
#: Whose alarm it is, in an alarm that all queues of a stack share: here there is one.
_OF_ALL = re.compile(r"^SmartRedriver(?= [A-Z])|(?<= )any of SmartRedriver(?=\.)")
#: Where alarms link to, which the person who deploys knows.
_RUNBOOK = re.compile(r"docs/runbook\.md(?=#)")
#: A list of texts, or an object that is one reference.
_SHORT = re.compile(
    r'\[\n *"[^"\\]*"(?:,\n *"[^"\\]*")*\n *\]|\{\n *"(?:Ref|Condition)": "[^"\\]*"\n *\}'
)
_STACK = {"Ref": "AWS::StackName"}
_QUEUE = {"Fn::Select": [5, {"Fn::Split": [":", {"Ref": "SourceQueueArn"}]}]}
_ANY_QUEUE = r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}"
_ANY_KEYS = r"|arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[0-9a-f-]+"
#: A parameter's pattern names no groups.
_ANY_ALARM = "|" + re.sub(r"\(\?P<[a-z]+>", "(", ALARM_ARN.pattern)
_ANY_ADDRESS = r"|[^@\s,]+@[^@\s,]+\.[^@\s,]+"


class PlainStack(cdk.Stack):
    """A re-driver whose queues, keys, settings and people are parameters."""

    def __init__(self, scope: cdk.App) -> None:
        super().__init__(
            scope,
            "SmartRedriver",
            description=f"Smart re-driver {__version__}: redrives the dead letters of one SQS queue",
            synthesizer=cdk.DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
        )
        source = self._queue("Source", "whose failed messages go to the DLQ")
        dead_letters = self._queue("DeadLetter", "the DLQ, which nothing else consumes")
        redriver = SmartRedriver(
            self, "Redriver", source_queue=source, dead_letter_queue=dead_letters
        )
        self._let_settings_in(redriver.function)
        self._let_recovery_be_heard(redriver, source.queue_name)
        mode = cast("cdk.CfnParameter", self.node.find_child("Mode")).value_as_string
        if redriver.output:
            redriver.output.value = self.to_json_string({**redriver.places, "RedriveMode": mode})
        self._let_keys_in(redriver.function)
        if redriver.topics:
            self._tell("Warning", redriver.topics.warning)
            self._tell("Paging", redriver.topics.paging)
        runbook = MonitoringSettings().runbook_url
        self._parameter("RunbookUrl", "where alarms link to: a copy of this page", default=runbook)
        self._take_code_from_a_bucket(redriver.function)

    def _queue(self, name: str, meaning: str) -> sqs.IQueue:
        arn = self._parameter(f"{name}QueueArn", meaning, allowed_pattern=_ANY_QUEUE)
        return sqs.Queue.from_queue_arn(self, name, arn.value_as_string)

    def _parameter(self, name: str, description: str, **more: Any) -> cdk.CfnParameter:
        return cdk.CfnParameter(
            self, name, **{"type": "String", "description": description, **more}
        )

    def _let_settings_in(self, function: lambda_.Function) -> None:
        resource = cast("lambda_.CfnFunction", function.node.default_child)
        for one in fields(Settings):
            if one.name in _FIXED:
                continue
            kind, default = one.metadata["kind"], one.default
            choices = list(type(default)) if isinstance(default, Enum) else []
            options = {"allowed_values": [each.value for each in choices]} if choices else {}
            parameter = self._parameter(
                _in_capitals(one.name),
                f"{one.metadata['meaning']} ({kind.accepted})",
                default=Settings().to_env()[one.name.upper()],
                **options,
            )
            if one.name == "memory_mib":
                parameter.type = "Number"
                resource.add_property_override("MemorySize", {"Ref": parameter.logical_id})
            function.add_environment(one.name.upper(), parameter.value_as_string)

    def _let_recovery_be_heard(self, redriver: SmartRedriver, queue_name: str) -> None:
        downstream = cast("cdk.CfnParameter", self.node.find_child("Downstream"))
        alarms = self._parameter(
            "RecoveryAlarms",
            "ARNs of alarms of the consumer's: back to OK, each sends a canary at once",
            type="CommaDelimitedList",
            default="",
            allowed_pattern=_ANY_ALARM,
        )
        rule = cast("events.CfnRule", redriver.node.find_child("Recovery"))
        # Without alarms the list has one empty text, which no event has among its resources.
        recovered = [queue_name, downstream.value_as_string]
        rule.event_pattern = heard(recovered, alarms.value_as_list)
        is_shared = self._is_given("HasDownstream", downstream)
        self._grant(redriver.function, "TellDownstream", tell_recovery(self), is_shared)

    def _let_keys_in(self, function: lambda_.Function) -> None:
        keys = self._parameter(
            "KeyArn",
            "the KMS key of both queues, where they have one that a customer manages",
            default="",
            allowed_pattern=_ANY_KEYS,
        )
        statement = iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[keys.value_as_string],
            conditions={"StringEquals": {"kms:ViaService": f"sqs.{self.region}.amazonaws.com"}},
        )
        self._grant(function, "QueueKey", statement, self._is_given("HasKey", keys))

    def _grant(
        self,
        function: lambda_.Function,
        name: str,
        statement: iam.PolicyStatement,
        condition: cdk.CfnCondition,
    ) -> None:
        policy = iam.CfnPolicy(
            self,
            name,
            policy_name=name,
            policy_document=iam.PolicyDocument(statements=[statement]),
            roles=[cast("iam.Role", function.role).role_name],
        )
        policy.cfn_options.condition = condition

    def _tell(self, name: str, topic: sns.ITopic) -> None:
        address = self._parameter(
            f"{name}Email",
            f"e-mail address subscribed to the {name.lower()} topic; empty for none",
            default="",
            allowed_pattern=_ANY_ADDRESS,
        )
        subscription = sns.CfnSubscription(
            self,
            f"{name}Mail",
            topic_arn=topic.topic_arn,
            protocol="email",
            endpoint=address.value_as_string,
        )
        subscription.cfn_options.condition = self._is_given(f"Has{name}Email", address)

    def _is_given(self, name: str, parameter: cdk.CfnParameter) -> cdk.CfnCondition:
        is_empty = cdk.Fn.condition_equals(parameter.value_as_string, "")
        return cdk.CfnCondition(self, name, expression=cdk.Fn.condition_not(is_empty))

    def _take_code_from_a_bucket(self, function: lambda_.Function) -> None:
        bucket = self._parameter("CodeBucket", "the bucket, of this Region, that holds the zip")
        key = self._parameter("CodeKey", "the zip's key in it", default=f"{NAME}.zip")
        resource = cast("lambda_.CfnFunction", function.node.default_child)
        code = {"S3Bucket": {"Ref": bucket.logical_id}, "S3Key": {"Ref": key.logical_id}}
        resource.add_property_override("Code", code)


def _in_capitals(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def build(folder: Path) -> tuple[Path, Path]:
    """Write template and zip into `folder`; their paths, the template's first. Raises BundlingError."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as outdir:
        app = cdk.App(outdir=outdir, analytics_reporting=False, tree_metadata=False)
        PlainStack(app)
        assembly = Path(app.synth().directory)
        template = json.loads((assembly / "SmartRedriver.template.json").read_text())
        [asset] = [one for one in assembly.iterdir() if one.name.startswith("asset.")]
        plain, packed = folder / f"{NAME}.template.json", folder / f"{NAME}.zip"
        _name_alarms(template)
        plain.write_text(_in_few_lines(json.dumps(_in_order(template), indent=1)) + "\n")
        _pack(asset, packed)
    return plain, packed


def _name_alarms(template: Mapping[str, Any]) -> None:
    """Name each alarm by the queue and the stack that it is deployed in, or a second stack in the account would
    be refused: the alarms of the first one have the names. Each links to the runbook that the deployment names.
    """
    for resource in template["Resources"].values():
        if resource["Type"] in {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"}:
            properties = resource["Properties"]
            for name in properties.keys() & {"AlarmName", "AlarmRule", "AlarmDescription"}:
                text = _with(_QUEUE, _OF_ALL, _with(_STACK, _PLACE, properties[name]))
                properties[name] = _with({"Ref": "RunbookUrl"}, _RUNBOOK, text)


def _with(reference: Mapping[str, Any], place: re.Pattern[str], text: Any) -> Any:
    """A text, which may be a join, with a reference in each place of it."""
    joined = text["Fn::Join"][1] if isinstance(text, dict) else [text]
    parts: list[Any] = []
    for one in joined:
        if isinstance(one, str):
            first, *others = place.split(one)
            parts += [first, *(part for other in others for part in (reference, other))]
        else:
            parts.append(one)
    parts = [part for part in parts if part]
    return parts[0] if parts == [text] else {"Fn::Join": ["", parts]}


def _in_order(template: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be given comes first in a console's form, and then the settings."""
    parameters: dict[str, Any] = template["Parameters"]
    needed = sorted(parameters, key=lambda name: "Default" in parameters[name])
    return {**template, "Parameters": {name: parameters[name] for name in needed}}


def _in_few_lines(text: str) -> str:
    """References and lists of texts in one line each: a template that is given as such has 51,200 bytes at most.

    A text in JSON has no line break, so that none is touched.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
    """
    return _SHORT.sub(lambda found: re.sub(r"\n *", " ", found[0]), text)


def _pack(source: Path, target: Path) -> None:
    with ZipFile(target, "w", ZIP_DEFLATED) as packed:
        for path in sorted(one for one in source.rglob("*") if one.is_file()):
            info = ZipInfo(path.relative_to(source).as_posix(), _DATE)
            info.external_attr = 0o644 << 16
            info.compress_type = ZIP_DEFLATED
            packed.writestr(info, path.read_bytes())


if __name__ == "__main__":
    for made in build(Path(sys.argv[1])):
        sys.stdout.write(f"{made} {made.stat().st_size}\n")
