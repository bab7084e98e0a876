"""Reads the CDK context: the settings of the function, and what only the app needs to know.

A key that is not listed here is refused: ``-c modee=dry_run`` would deploy a re-driver that acts. The permissions
boundary and tags are for every stack of this app. Another app has ``PermissionsBoundary.of`` and ``Tags.of``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Node

from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import MAX_QUEUES_WITH_WIDGET
from smart_redriver.cdk.queue_entry import (
    ANY_STACK,
    QUEUES,
    STACK,
    STACK_NAME,
    Adopted,
    above_the_queues,
    read_adopted_queues,
)
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.config.kinds import YES_OR_NO, Kind, misspelt, read_fields, setting
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault, SettingsError

_POLICY_ARN = re.compile(r"arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[\w+=,.@/-]+")
#: Characters that tags of most services may have. `aws:` is AWS's own.
#: https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html
_TAG_KEY = re.compile(r"(?!aws:)[\w .:/=+@-]{1,128}", re.IGNORECASE)
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{0,256}")
_MAX_TAGS = 50

Tags = tuple[tuple[str, str], ...]


def _policy_arn() -> Kind[str]:
    def parse(value: Any) -> str:
        if value != "" and not _POLICY_ARN.fullmatch(str(value)):
            raise ValueError
        return str(value)

    return Kind(parse, "the ARN of a managed policy")


def _tags() -> Kind[Tags]:
    def parse(value: Any) -> Tags:
        # A table where it comes from cdk.json, one text where it comes from `-c`.
        pairs = value.items() if isinstance(value, Mapping) else _pairs(str(value))
        tags = tuple(sorted((str(key).strip(), str(one).strip()) for key, one in pairs))
        if len(tags) > _MAX_TAGS or len({key for key, _ in tags}) < len(tags):
            raise ValueError
        if not all(_TAG_KEY.fullmatch(key) and _TAG_VALUE.fullmatch(one) for key, one in tags):
            raise ValueError
        return tags

    return Kind(parse, f"a table, or KEY=VALUE separated by commas, at most {_MAX_TAGS}")


def _pairs(text: str) -> list[tuple[str, str]]:
    """Raises ValueError where a pair has no `=`."""
    pairs = []
    for one in filter(None, map(str.strip, text.split(","))):
        key, equals, value = one.partition("=")
        if not equals:
            raise ValueError
        pairs.append((key, value))
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRules:
    """Every rule with its default."""

    permissions_boundary_arn: str = setting("", _policy_arn(), "of every role that the stack makes")
    tags: Tags = setting((), _tags(), "of everything that can have any")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The rules' names, in the order of the table."""
        return tuple(one.name for one in fields(cls))

    def apply(self, stack: cdk.Stack) -> None:
        """Let all that is in the stack, and in those nested in it, keep the rules."""
        if self.permissions_boundary_arn:
            boundary = iam.ManagedPolicy.from_managed_policy_arn(
                stack, "PermissionsBoundary", self.permissions_boundary_arn
            )
            iam.PermissionsBoundary.of(stack).apply(boundary)
        for key, value in self.tags:
            cdk.Tags.of(stack).add(key, value)


#: How the CDK's keys begin: its feature flags, its switches, and what its look-ups remember (cdk.context.json).
#: https://docs.aws.amazon.com/cdk/v2/guide/featureflags.html, and `ContextProvider` of aws-cdk 2.275.
_OF_THE_CDK = (
    "@aws-cdk/",
    "@aws-cdk-containers/",
    "aws:cdk:",
    "aws-cdk:",
    "ami:",
    "availability-zones:",
    "cc-api-provider:",
    "endpoint-service-availability-zones:",
    "hosted-zone:",
    "key-provider:",
    "load-balancer:",
    "load-balancer-listener:",
    "plugin:",
    "security-group:",
    "ssm:",
    "vpc-provider:",
)
#: Keys that the CDK's command line writes without a namespace.
_OF_ITS_COMMAND = ("cdk-migrate", "cli-telemetry")


def unknown_keys(values: Mapping[str, Any], names: Iterable[str]) -> list[Fault]:
    """A fault for each key that is neither one of ``names`` nor the CDK's,
    with the nearest name or else all of them.
    """
    known = tuple(names)
    strange = [key for key in values if key not in known and not _is_of_the_cdk(key)]
    near = misspelt(strange, known)
    accepted = {key: f"the name {name}" for key, name in near.items()}
    every = f"one of {', '.join(sorted(known))}, or a key of the CDK"
    return [
        Fault(
            setting=key,
            seen=values[key],
            accepted=f"{accepted.get(key, every)} (no setting is called {key})",
        )
        for key in strange
    ]


def _is_of_the_cdk(key: str) -> bool:
    return key.startswith(_OF_THE_CDK) or key in _OF_ITS_COMMAND


__all__ = ["NAME", "Context", "SettingsError", "parse_context", "read_context"]

#: The name of the first stack in an account and Region; the names of those beside it begin with it.
NAME = "SmartRedriver"
#: Whether queues, table and logs outlive the stack. Not a setting: the function never sees it.
RETAIN = "retain"
#: Whether the state table can't be deleted at all; as ``retain`` says where it is not given.
DELETION_PROTECTION = "deletion_protection"
#: Whether CloudFormation refuses to delete the stack. Not by default: what a first deployment that failed leaves
#: has to be deleted before it is tried again.
TERMINATION_PROTECTION = "termination_protection"
#: Whether there are managed policies for the people who run the `redrive` command.
ONCALL_POLICIES = "oncall_policies"
#: Whether the queues that the stack makes are FIFO. Those that it adopts say so by their names.
FIFO = "fifo"

#: Every key of the app. The CDK's own are in `context_keys`.
KNOWN = (
    *Settings.names(),
    *MonitoringSettings.names(),
    *Safeguards.names(),
    *AccountRules.names(),
    RETAIN,
    DELETION_PROTECTION,
    TERMINATION_PROTECTION,
    ONCALL_POLICIES,
    FIFO,
    QUEUES,
    STACK,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A person's decisions for this deployment."""

    settings: Settings
    retain: bool
    monitoring: MonitoringSettings = MonitoringSettings()
    safeguards: Safeguards = Safeguards()
    rules: AccountRules = AccountRules()
    deletion_protection: bool | None = None
    termination_protection: bool = False
    oncall_policies: bool = False
    fifo: bool = False
    queues: tuple[Adopted, ...] = ()
    stack: str = ""

    @property
    def stack_name(self) -> str:
        """The stack's name, which the command has to know."""
        return "-".join([NAME, *([self.stack] if self.stack else [])])


def read_context(node: Node) -> Context:
    """Read the flat context keys (``cdk deploy -c max_attempts=3``) of an app.

    Raises SettingsError listing all wrong values and unknown keys at once. Only the CDK's own are left alone.
    """
    return parse_context(node.get_all_context())


def parse_context(values: Mapping[str, Any]) -> Context:
    """Like ``read_context``, from a plain mapping. What stands above the queues in their file goes over the rest."""
    values = {**values, **above_the_queues(values.get(QUEUES))}
    faults: list[Fault] = []
    settings = Settings()
    try:
        settings = Settings.parse(values)
    except SettingsError as error:
        faults += error.faults
    switches: dict[str, bool] = {}
    for name in (RETAIN, DELETION_PROTECTION, TERMINATION_PROTECTION, ONCALL_POLICIES, FIFO):
        try:
            if name in values:
                switches[name] = YES_OR_NO.parse(values[name])
        except ValueError:
            faults.append(Fault(setting=name, seen=values[name], accepted=YES_OR_NO.accepted))
    queues: tuple[Adopted, ...] = ()
    try:
        if QUEUES in values:
            queues = read_adopted_queues(values[QUEUES], values, KNOWN)
    except SettingsError as error:
        faults += error.faults
    if QUEUES in values:
        faults += _only_for_made_queues(settings, is_fifo=switches.get(FIFO, False))
    watched, unread = read_fields(MonitoringSettings, values)
    faults += unread
    monitoring = MonitoringSettings(**watched)
    faults += monitoring.faults()
    faults += _too_many_widgets(monitoring, queues)
    safeguards = Safeguards()
    try:
        safeguards = Safeguards.parse(values)
    except SettingsError as error:
        faults += error.faults
    rules, unread = read_fields(AccountRules, values)
    faults += unread
    faults += _unnameable_stack(values.get(STACK, ""))
    faults += _key_elsewhere(safeguards, queues)
    faults += unknown_keys(values, KNOWN)
    if faults:
        raise SettingsError(faults)
    return Context(
        settings=settings,
        retain=switches.get(RETAIN, True),
        monitoring=monitoring,
        safeguards=safeguards,
        rules=AccountRules(**rules),
        deletion_protection=switches.get(DELETION_PROTECTION),
        termination_protection=switches.get(TERMINATION_PROTECTION, False),
        oncall_policies=switches.get(ONCALL_POLICIES, False),
        fifo=switches.get(FIFO, False),
        queues=queues,
        stack=values.get(STACK, ""),
    )


def _unnameable_stack(given: object) -> Iterator[Fault]:
    if given != "" and not (isinstance(given, str) and STACK_NAME.fullmatch(given)):
        yield Fault(setting=STACK, seen=given, accepted=ANY_STACK)


def _too_many_widgets(
    monitoring: MonitoringSettings, queues: tuple[Adopted, ...]
) -> Iterator[Fault]:
    counts = Counter((one.region, one.account, one.stack) for one in queues)
    most = max(counts.values(), default=0)
    if monitoring.dashboard_widget and most > MAX_QUEUES_WITH_WIDGET:
        accepted = (
            f"false in a stack of more than {MAX_QUEUES_WITH_WIDGET} queues, since it may have 500 resources: give "
            "others another `stack`"
        )
        yield Fault(setting="dashboard_widget", seen=f"{most} queues", accepted=accepted)


def _only_for_made_queues(settings: Settings, *, is_fifo: bool) -> Iterator[Fault]:
    if settings.with_sample_consumer:
        accepted = "false, since queues that exist have consumers of their own"
        yield Fault(setting="with_sample_consumer", seen=True, accepted=accepted)
    if is_fifo:
        accepted = "false, since the names of queues that exist say whether they are FIFO"
        yield Fault(setting=FIFO, seen=True, accepted=accepted)


def _key_elsewhere(safeguards: Safeguards, queues: tuple[Adopted, ...]) -> Iterator[Fault]:
    """A key of another Region than the queues': no service there can use it."""
    key = safeguards.encryption_key_arn
    if not key:
        return
    for region in sorted({queue.region for queue in queues} - {key.split(":")[3]}):
        accepted = f"a key of {region}"
        yield Fault(setting="encryption_key_arn", seen=key, accepted=accepted)
