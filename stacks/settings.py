"""Reads the CDK context: the settings of the function, and what only the app needs to know."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from constructs import Node

from redrive.errors import Fault, SettingsError
from redrive.kinds import YES_OR_NO, read_fields
from redrive.settings import Settings
from smart_redriver.cdk.adopted_queues import (
    QUEUES,
    Adopted,
    above_the_queues,
    read_adopted_queues,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_clashes import MAX_QUEUES_WITH_WIDGET
from smart_redriver.cdk.queue_entry import ANY_STACK, STACK, STACK_NAME
from smart_redriver.cdk.safeguards import Safeguards
from stacks.account_rules import AccountRules
from stacks.context_keys import unknown_keys

__all__ = ["NAME", "Context", "SettingsError", "parse_context", "read_context"]

#: Of the first stack in an account and Region, and what the names of those beside it begin with.
NAME = "SmartRedriver"
#: Whether queues, table and logs outlive the stack. Not a setting: the function never sees it.
RETAIN = "retain"
#: Whether the state table can't be deleted at all; as ``retain`` says where it is not given.
DELETION_PROTECTION = "deletion_protection"
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
    ONCALL_POLICIES,
    FIFO,
    QUEUES,
    STACK,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a person decided for this deployment."""

    settings: Settings
    retain: bool
    monitoring: MonitoringSettings = MonitoringSettings()
    safeguards: Safeguards = Safeguards()
    rules: AccountRules = AccountRules()
    deletion_protection: bool | None = None
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
    for name in (RETAIN, DELETION_PROTECTION, ONCALL_POLICIES, FIFO):
        try:
            if name in values:
                switches[name] = YES_OR_NO.parse(values[name])
        except ValueError:
            faults.append(Fault(setting=name, seen=values[name], accepted=YES_OR_NO.accepted))
    queues: tuple[Adopted, ...] = ()
    try:
        if QUEUES in values:
            queues = read_adopted_queues(values[QUEUES], values)
    except SettingsError as error:
        faults += error.faults
    if QUEUES in values:
        faults += _only_for_made_queues(settings, is_fifo=switches.get(FIFO, False))
    watched, unread = read_fields(MonitoringSettings, values)
    faults += unread
    faults += _widget_without_dashboard(watched)
    faults += _too_many_widgets(watched, queues)
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
        monitoring=MonitoringSettings(**watched),
        safeguards=safeguards,
        rules=AccountRules(**rules),
        deletion_protection=switches.get(DELETION_PROTECTION),
        oncall_policies=switches.get(ONCALL_POLICIES, False),
        fifo=switches.get(FIFO, False),
        queues=queues,
        stack=values.get(STACK, ""),
    )


def _unnameable_stack(given: object) -> Iterator[Fault]:
    if given != "" and not (isinstance(given, str) and STACK_NAME.fullmatch(given)):
        yield Fault(setting=STACK, seen=given, accepted=ANY_STACK)


def _widget_without_dashboard(watched: Mapping[str, Any]) -> Iterator[Fault]:
    if watched["dashboard_widget"] and not MonitoringSettings(**watched).has_widget:
        accepted = "false with alarms=paging, which makes no dashboard"
        yield Fault(setting="dashboard_widget", seen=True, accepted=accepted)


def _too_many_widgets(watched: Mapping[str, Any], queues: tuple[Adopted, ...]) -> Iterator[Fault]:
    counts = Counter((one.region, one.account, one.stack) for one in queues)
    most = max(counts.values(), default=0)
    if watched["dashboard_widget"] and most > MAX_QUEUES_WITH_WIDGET:
        accepted = f"false in a stack of more than {MAX_QUEUES_WITH_WIDGET} queues, since it may have 500 resources: give others another `stack`"
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
