"""The topics of alarms: one for warnings, one for pages."""

import functools
from collections.abc import Iterator, Mapping
from typing import cast
from weakref import WeakKeyDictionary

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct, IConstruct

from smart_redriver.cdk.acknowledged import accept_topics
from smart_redriver.cdk.arguments import check_resources, check_topics, checked_monitoring, is_away
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.engine.errors import Fault, SettingsError


class Topics(Construct):
    """``warning`` and ``paging``, to which this account's CloudWatch alarms may publish.

    Neither an alarm nor its action gets permissions automatically. An alarm that may not publish to its topic, or may
    not use the topic's key, goes off and reaches nobody. ``warning`` and ``paging`` get both here if the app owns them.
    The owner of a topic given by its ARN has to grant both, and so has the owner of a ``key`` that is not the app's.
    From ``monitoring``, only the recipients count here. Raises SettingsError listing every fault of it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        monitoring: MonitoringSettings | None = None,
        key: kms.IKey | None = None,
        warning: sns.ITopic | None = None,
        paging: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack, topics = cdk.Stack.of(self), {"warning": warning, "paging": paging}
        check_topics(topics)
        check_resources({}, {"key": key}, {})
        monitoring = checked_monitoring(monitoring or MonitoringSettings())
        if faults := [*_elsewhere(stack, monitoring), *_unfit(stack, topics)]:
            raise SettingsError(faults)
        self.people = monitoring.people
        self._given_key = key
        self.warning = warning or self._topic("Warning", monitoring.warning_topic_arn)
        self.paging = paging or self._topic("Paging", monitoring.paging_topic_arn)
        if self.paging.topic_arn == self.warning.topic_arn:
            self.paging = self.warning
        for topic in (self.warning, self.paging):
            # This changes nothing for a topic that the app does not own.
            topic.grant_publish(_alarms_of_this_account(self))
        self._subscribe(self.warning, "Warning", monitoring.warning_emails)
        self._subscribe(self.paging, "Paging", monitoring.paging_emails)
        self.has_warnings = False
        if monitoring.warning_emails and self.warning is not self.paging:
            cdk.Aspects.of(self).add(_WarningsExpected(self))
        accept_topics(self)

    def expect_warnings(self) -> sns.ITopic:
        """The topic ``warning``, for an alarm of a re-driver."""
        self.has_warnings = True
        return self.warning

    @functools.cached_property
    def _key(self) -> kms.IKey:
        # CloudWatch can't get access to SNS's own key (alias/aws/sns), so the topics share this one.
        return self._given_key or kms.Key(
            self,
            "Key",
            description="Alarms of the smart re-driver on their way to people",
            enable_key_rotation=True,
            # It encrypts nothing that outlives its delivery.
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )

    def _topic(self, construct_id: str, existing_arn: str) -> sns.ITopic:
        if existing_arn:
            return sns.Topic.from_topic_arn(self, construct_id, existing_arn)
        return sns.Topic(self, construct_id, master_key=self._key, enforce_ssl=True)

    def _subscribe(self, topic: sns.ITopic, name: str, emails: tuple[str, ...]) -> None:
        for address in emails:
            # Both may be one topic, which others of the app may have subscribed to. SNS has one subscription for each.
            if topic.node.try_find_child(address) is None:
                topic.add_subscription(subscriptions.EmailSubscription(address))
        # Anyone with the address of a PagerDuty integration can page, so it is never in the template.
        endpoint = self._endpoint(name)
        is_given = cdk.CfnCondition(
            self,
            f"{name}HttpsEndpointIsGiven",
            expression=cdk.Fn.condition_not(cdk.Fn.condition_equals(endpoint.value_as_string, "")),
        )
        subscription = sns.CfnSubscription(
            self,
            f"{name}Https",
            topic_arn=topic.topic_arn,
            protocol="https",
            endpoint=endpoint.value_as_string,
        )
        subscription.cfn_options.condition = is_given

    def _endpoint(self, name: str) -> cdk.CfnParameter:
        """The parameter of the stack of the topics. A nested stack gets its value from the stack that people deploy."""
        stack = cdk.Stack.of(self)
        innermost = endpoint = self._parameter(stack, name)
        while stack.nested_stack_parent:
            above = self._parameter(stack.nested_stack_parent, name)
            nested = cast("cdk.NestedStack", stack)
            nested.set_parameter(stack.resolve(endpoint.logical_id), above.value_as_string)
            stack, endpoint = stack.nested_stack_parent, above
        return innermost

    def _parameter(self, stack: cdk.Stack, name: str) -> cdk.CfnParameter:
        # The parameter for the stack's first topics has a plain name. Names of others begin with their place.
        scope: Construct = stack
        parameter = f"{name}HttpsEndpoint"
        if stack.node.try_find_child(parameter):
            place = self.node.path.removeprefix(f"{stack.node.path}/").replace("/", "-")
            is_here = stack is cdk.Stack.of(self)
            scope, parameter = (self, parameter) if is_here else (stack, f"{place}-{parameter}")
        return cdk.CfnParameter(
            scope,
            parameter,
            type="String",
            default="",
            # Passed on by hand: a parameter that the CDK makes to pass a value on would show it.
            no_echo=True,
            allowed_pattern="^(https://.+)?$",
            description=f"HTTPS address subscribed to the {name.lower()} topic; empty for none",
        )


@jsii.implements(cdk.IAspect)
class _WarningsExpected:
    """Makes synth warn of addresses that get nothing. Only then is it known which alarms the re-drivers have."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def visit(self, node: IConstruct) -> None:
        if node.node.path == self._topics.node.path and not self._topics.has_warnings:
            text = (
                "warning_emails are told nothing: with alarms=paging there is no alarm that warns. Set alarms=all, "
                "or leave them out."
            )
            cdk.Annotations.of(node).add_warning_v2("smart-redriver:warning-emails", text)


def _elsewhere(stack: cdk.Stack, monitoring: MonitoringSettings) -> Iterator[Fault]:
    """Yield faults of topics in a Region other than the alarms': CloudWatch does not accept them.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
    """
    for name in ("warning_topic_arn", "paging_topic_arn"):
        arn: str = getattr(monitoring, name)
        is_known = arn and not cdk.Token.is_unresolved(arn)
        if is_known and is_away(stack, stack.account, arn.split(":")[3]):
            yield Fault(setting=name, seen=arn, accepted=f"a topic of {stack.region}")


def _unfit(stack: cdk.Stack, topics: Mapping[str, sns.ITopic | None]) -> Iterator[Fault]:
    """Yield faults of topics that CloudWatch does not publish to: FIFO topics, and those of another Region."""
    for name, topic in topics.items():
        if topic is None:
            continue
        seen = topic.node.path if cdk.Token.is_unresolved(topic.topic_arn) else topic.topic_arn
        if topic.fifo:
            yield Fault(setting=name, seen=seen, accepted="a standard topic, not a FIFO one")
        if is_away(stack, stack.account, topic.env.region):
            yield Fault(setting=name, seen=seen, accepted=f"a topic of {stack.region}")


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


_topics: WeakKeyDictionary[cdk.Stack, Topics] = WeakKeyDictionary()


def shared_topics(scope: Construct, key: kms.IKey | None, monitoring: MonitoringSettings) -> Topics:
    """The topics of the stack around ``scope``, made at first use with the recipients given then."""
    stack = cdk.Stack.of(scope)
    if stack not in _topics:
        _topics[stack] = Topics(stack, "SmartRedriverTopics", monitoring=monitoring, key=key)
    return _topics[stack]


def unheard(
    scope: Construct, monitoring: MonitoringSettings | None, topics: Topics | None
) -> Iterator[Fault]:
    """Yield faults of topics out of the alarms' reach, and of people in ``monitoring`` whom the topics do not notify.

    Faults of the settings themselves are not reported here.
    """
    stack = cdk.Stack.of(scope)
    there = _topics.get(stack) if topics is None else topics
    if not isinstance(there, Topics):
        return
    if is_away(stack, stack.account, cdk.Stack.of(there).region):
        accepted = f"topics of {stack.region}, where the alarms are"
        yield Fault(setting="topics", seen=there.node.path, accepted=accepted)
    if monitoring is None:
        return
    try:
        people = checked_monitoring(monitoring).people
    except SettingsError:
        return
    if people not in (MonitoringSettings().people, there.people):
        accepted = (
            f"the people of {there.node.path}, or none (all re-drivers of a stack tell the people that its topics "
            "name)"
        )
        yield Fault(setting="monitoring", seen=people, accepted=accepted)
