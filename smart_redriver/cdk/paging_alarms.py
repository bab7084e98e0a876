"""The alarms that page: letters pile up, letters are about to be lost, or the re-driver is unwell."""

from collections.abc import Sequence
from typing import cast
from weakref import WeakKeyDictionary

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from smart_redriver.cdk.alarms import (
    LEVEL,
    NEWEST_LOOK,
    TICK,
    Advice,
    AlarmMaker,
    Comparison,
    Evaluation,
    Missing,
    longer_than,
    minutes,
    numbered,
    outage_before_paging,
    place_of,
    tell,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import VISIBLE, QueueMetrics, math
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.config.settings import Settings

_FIVE_MINUTES = cdk.Duration.minutes(5)
#: A burst is remembered until its letters are many or too old. Otherwise it would page twice.
_BURST = Evaluation(seconds=300, periods=3, breaching=1)
#: If the canary is the only letter, the DLQ is empty for a quarter of an hour: at most one such period.
_TRIAL_SECONDS = 600


class PileUpAlarms:
    """Makes ``alarms``, with a circuit's for each source queue. They notify nobody by themselves."""

    def __init__(
        self,
        make: AlarmMaker,
        metrics: Sequence[QueueMetrics],
        *,
        settings: Settings,
        monitoring: MonitoringSettings,
    ) -> None:
        self._make = make
        self._metrics = metrics[0]
        self._settings = settings
        self._monitoring = monitoring
        self.alarms = [self._many(), self._growing(), self._old()]
        self.alarms += [self._circuit_open(one, number) for number, one in enumerate(metrics, 1)]

    def _many(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_paging
        return self._make.alarm(
            "DeadLettersMany",
            self._metrics.dead_letters(VISIBLE, "Maximum", cdk.Duration.seconds(LEVEL.seconds)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            LEVEL,
            Advice(
                meaning=f"More than {limit} dead letters wait.",
                first="`redrive status` says what they wait for, until when at the latest, and what to do.",
                section="dead-letters-many",
            ),
        )

    def _growing(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_growth
        return self._make.alarm(
            "DeadLettersGrowing",
            math(
                "DIFF(visible + hidden)",
                _FIVE_MINUTES,
                label="New dead letters in 5 minutes",
                **self._metrics.depth(_FIVE_MINUTES),
            ),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            limit,
            _BURST,
            Advice(
                meaning=f"{limit} or more dead letters came within five minutes.",
                first="look for a deployment or an outage; `redrive letters --since 15m` shows what came.",
                section="dead-letters-growing",
            ),
        )

    def _old(self) -> cloudwatch.Alarm:
        """Make the alarm on old letters from our own metric: SQS's omits letters that were received three times.

        SQS also does not know which letters wait for a known moment.
        """
        limit = self._monitoring.alarm_dead_letters_age_seconds
        return self._make.alarm(
            "DeadLettersOld",
            self._metrics.own(
                own.OLDEST_WAITING_AGE, "Maximum", cdk.Duration.seconds(NEWEST_LOOK.seconds)
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            NEWEST_LOOK,
            Advice(
                meaning=f"A dead letter has waited for more than {limit} seconds.",
                first="`redrive status` says what letters wait for, `redrive letters --held` what each does.",
                section="dead-letters-old",
            ),
            missing=Missing.IGNORE,
        )

    def _circuit_open(self, metrics: QueueMetrics, number: int) -> cloudwatch.Alarm:
        """Make the alarm on a circuit that is never CLOSED while letters wait: an outage alternates OPEN and HALF_OPEN.

        Over an empty DLQ, the circuit stays OPEN for ever, and nobody needs to know.
        """
        cool_downs = self._monitoring.alarm_open_cool_downs
        time_to_fail = metrics.watched.time_to_fail
        outage = outage_before_paging(self._settings, cool_downs, time_to_fail)
        evaluation = longer_than(outage, period=_TRIAL_SECONDS)
        how_long = f"longer than cool-down {cool_downs}"
        if outage >= evaluation.seconds * evaluation.breaching:
            how_long = (
                f"a day, the longest that CloudWatch looks back (cool-down {cool_downs} ends later)"
            )
        period = cdk.Duration.seconds(evaluation.seconds)
        return self._make.alarm(
            numbered("CircuitOpen", number),
            math(
                "IF(letters > 0, circuit, 0)",
                period,
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=metrics.own(own.CIRCUIT_STATE, "Minimum", period),
                letters=self._metrics.own(own.DEAD_LETTERS, "Maximum", period),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            evaluation,
            Advice(
                meaning=f"Consumer likely down: the circuit has not closed for {how_long}. "
                "Letters wait until a canary succeeds.",
                first="fix the consumer, letters then go back by themselves; if it is well, "
                f"run `redrive close --queue {metrics.queue_name} --reason ...`. `redrive status` says when the next "
                "canary goes.",
                section="circuit-open",
            ),
            missing=Missing.IGNORE,
            queue_name=metrics.queue_name,
        )


#: For a figure that is rarely updated: it is remembered for a day.
_DAILY_LOOK = Evaluation(seconds=3600, periods=24, breaching=1)

#: The function's own metrics that these alarms use. It emits only these if nothing else uses its metrics.
OWN = (
    own.CIRCUIT_STATE,
    own.DEAD_LETTERS,
    own.LEAST_LIFE_LEFT,
    own.OLDEST_WAITING_AGE,
    own.PASSES_FAILED,
)


#: CloudWatch's limits for a composite: the number of alarms, and the characters of its rule.
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html
_MOST_CHILDREN, _LONGEST_RULE = 100, 10_240

_PILE_UP = Advice(
    meaning="Dead letters pile up faster than they can go back.",
    first="see in `redrive status --overview` which queues ring; `redrive status --queue NAME` says what "
    "letters wait for, until when at the latest, and what to do.",
    section="letters-pile-up",
)
_UNWELL = Advice(
    meaning="A re-driver fails or does not run; dead letters stay where they are.",
    first="see in `redrive status --overview` which queues ring, run `redrive doctor`, then `redrive logs`.",
    section="redriver-unwell",
)


def make_paging_alarms(
    make: AlarmMaker,
    metrics: Sequence[QueueMetrics],
    *,
    settings: Settings,
    monitoring: MonitoringSettings,
    topic: sns.ITopic,
) -> None:
    """Make two composites that all queues of the stack share, and the alarm on expiry.

    The latter is alone, because it must never be lost among the others. ``metrics`` belong to the source queues that
    share the DLQ, in their order.
    """
    incidents = {
        "LettersPileUp": (
            _PILE_UP,
            PileUpAlarms(make, metrics, settings=settings, monitoring=monitoring).alarms,
        ),
        "RedriverUnwell": (
            _UNWELL,
            UnwellAlarms(make, metrics[0], monitoring=monitoring).alarms,
        ),
    }
    for kind, (advice, alarms) in incidents.items():
        for alarm in alarms:
            name = make.names[alarm.node.id]
            _page(alarm, kind, name, topic).take(alarm, name, advice, monitoring.runbook_url)
    _near_expiry(make, metrics[0], percent=monitoring.alarm_expiry_percent, topic=topic)


class _Page(Construct):
    """One page when the first alarm of a stack's queues goes off, and no second one while any of them lasts.

    An outage that thirty queues share is one incident. Queues with another topic have their own page.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, kind: str, topic: sns.ITopic
    ) -> None:
        super().__init__(scope, construct_id)
        self._kind = kind
        self._topic = topic
        self._rule = _Rule()
        self._composite: cloudwatch.CompositeAlarm | None = None

    def has_room(self, name: str) -> bool:
        """Whether one more alarm fits into its rule."""
        return self._rule.has_room(name)

    def take(self, alarm: cloudwatch.Alarm, name: str, advice: Advice, runbook_url: str) -> None:
        """Make it ring for one more alarm. Its text comes from the first one's monitoring."""
        if self._composite is None:
            self._composite = self._made(advice, runbook_url)
        self._rule.names.append(name)
        self._composite.node.add_dependency(alarm)

    def _made(self, advice: Advice, runbook_url: str) -> cloudwatch.CompositeAlarm:
        stack_name = cdk.Stack.of(self).stack_name
        says = f"{stack_name} {self._kind} "
        composite = cloudwatch.CompositeAlarm(
            self,
            "Resource",
            composite_alarm_name=says + place_of(self, says),
            alarm_rule=cloudwatch.AlarmRule.from_string(cdk.Lazy.string(self._rule)),
            alarm_description=advice.text(runbook_url, f"any of {stack_name}"),
        )
        tell(composite, self._topic)
        return composite


@jsii.implements(cdk.IStableStringProducer)
class _Rule:
    """ALARM(...) OR ALARM(...), with the alarms' names, so that a nested stack does not have to export ARNs."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def produce(self) -> str:
        return " OR ".join(map(_is_ringing, self.names))

    def has_room(self, name: str) -> bool:
        length = sum(_length(one) for one in (*self.names, name))
        return len(self.names) < _MOST_CHILDREN and length <= _LONGEST_RULE


def _is_ringing(name: str) -> str:
    return f'ALARM("{name}")'


def _length(name: str) -> int:
    """Return the length of a name, or the longest possible if only the deployment knows a queue's name."""
    return (
        len(_is_ringing("")) + len(" OR ") + (255 if cdk.Token.is_unresolved(name) else len(name))
    )


_pages: WeakKeyDictionary[cdk.Stack, dict[tuple[str, sns.ITopic], list[_Page]]] = (
    WeakKeyDictionary()
)


def _page(alarm: cloudwatch.Alarm, kind: str, name: str, topic: sns.ITopic) -> _Page:
    """The stack's page for an alarm with this topic. It makes another one if none has room."""
    stack = cdk.Stack.of(alarm)
    while stack.nested_stack_parent:
        stack = stack.nested_stack_parent
    of_stack = _pages.setdefault(stack, {})
    there = of_stack.setdefault((kind, topic), [])
    if not there or not there[-1].has_room(name):
        number = sum(len(pages) for (one, _), pages in of_stack.items() if one == kind) + 1
        there.append(
            _Page(stack, numbered(f"SmartRedriverMonitoring{kind}", number), kind=kind, topic=topic)
        )
    return there[-1]


def _near_expiry(
    make: AlarmMaker, metrics: QueueMetrics, *, percent: float, topic: sns.ITopic
) -> None:
    period = cdk.Duration.seconds(_DAILY_LOOK.seconds)
    make.alarm(
        "LettersNearExpiry",
        metrics.own(own.LEAST_LIFE_LEFT, "Minimum", period),
        Comparison.LESS_THAN_THRESHOLD,
        percent,
        _DAILY_LOOK,
        Advice(
            meaning=f"SQS deletes a dead letter for good before another {percent:g} % of what the DLQ keeps are over.",
            first="see with `redrive parked --parked-as EXPIRING` that it got to the parking lot, then decide.",
            section="letters-near-expiry",
        ),
        topic=topic,
    )


_MINUTE = cdk.Duration.seconds(TICK)
#: A first deployment may be silent until its first ticks are recorded. Later silence pages.
_WARM_UP_MINUTES = 60


class UnwellAlarms:
    """Makes ``alarms``, which notify nobody by themselves."""

    def __init__(
        self, make: AlarmMaker, metrics: QueueMetrics, *, monitoring: MonitoringSettings
    ) -> None:
        self._make = make
        self._metrics = metrics
        self._monitoring = monitoring
        self.alarms = [self._errors(), self._throttles(), self._failed_passes(), self._silent()]

    def _errors(self) -> cloudwatch.Alarm:
        """Make the alarm on repeated crashes: after one, the next invocation looks again, and no person is needed."""
        return self._function_fault(
            "RedriverErrors",
            "Errors",
            minutes(2, of=15),
            Advice(
                meaning="The re-driver crashed or ran out of time, 2 times in 15 minutes.",
                first="read the traceback or the refused settings at the end of `redrive logs`.",
                section="redriver-errors",
            ),
        )

    def _throttles(self) -> cloudwatch.Alarm:
        """Make the alarm on repeated throttles: after one, the next invocation is a minute away."""
        return self._function_fault(
            "RedriverThrottled",
            "Throttles",
            minutes(3, of=15),
            Advice(
                meaning="Lambda refuses to start passes: the account's concurrency is used up.",
                first="see in CloudWatch's ConcurrentExecutions which function takes it all, and limit that.",
                section="redriver-throttled",
            ),
        )

    def _function_fault(
        self, construct_id: str, name: str, evaluation: Evaluation, advice: Advice
    ) -> cloudwatch.Alarm:
        return self._make.alarm(
            construct_id,
            self._metrics.redriver(name, "Sum", _MINUTE),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            advice,
        )

    def _failed_passes(self) -> cloudwatch.Alarm:
        """Make the alarm on repeated refusals: after one or two, the next ticks try again."""
        evaluation = minutes(3, of=15)
        return self._make.alarm(
            "PassesFailed",
            self._metrics.own(own.PASSES_FAILED, "Sum", _MINUTE),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            Advice(
                meaning="AWS refused a call that passes can't do without, 3 times in 15 minutes.",
                first="run `redrive doctor`, which tries each call and names the remedy.",
                section="passes-failed",
            ),
        )

    def _silent(self) -> cloudwatch.Alarm:
        silent = self._monitoring.alarm_silent_minutes
        evaluation = minutes(silent, of=silent)
        alarm = self._make.alarm(
            "RedriverSilent",
            self._metrics.redriver("Invocations", "Sum", _MINUTE),
            Comparison.LESS_THAN_THRESHOLD,
            1,
            evaluation,
            Advice(
                meaning=f"The function has not been invoked for {silent} minutes.",
                first="run `redrive doctor`, which says whether the schedule is enabled and may invoke the function.",
                section="redriver-silent",
            ),
            missing=Missing.BREACHING,
        )
        # The L2 construct does not have it yet.
        of_cloudformation = cast("cloudwatch.CfnAlarm", alarm.node.default_child)
        of_cloudformation.warm_up_configuration = cloudwatch.CfnAlarm.WarmUpConfigurationProperty(
            warm_up_period_duration_in_minutes=_WARM_UP_MINUTES,
            only_start_evaluating_after_warm_up_period_ends=False,
        )
        return alarm
