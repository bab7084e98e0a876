"""CloudWatch metrics of one pass, in the embedded metric format (EMF): log lines that CloudWatch reads.

Each name costs money in every hour in which it appears, once for each queue. So there is one dimension, and zero counts
are left out: an idle queue has only the metrics marked `always`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.report import Outcome, Report

NAMESPACE = "SmartRedriver"
#: The only dimension: a source queue's name.
QUEUE = "QueueName"
#: A second dimension, only for `LettersParked`, in addition to its sum over all reasons.
REASON = "Reason"

#: Names of the metrics to emit, separated by commas; all if the variable is missing.
KEPT_VARIABLE = "METRICS_KEPT"

#: HALF_OPEN lies between the two, so that a band over time shows how far the circuit is open.
STATE_VALUES = {State.CLOSED.value: 0.0, State.HALF_OPEN.value: 0.5, State.OPEN.value: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Name and unit as alarms and dashboards use them. `always`: in every pass, zero or not."""

    name: str
    unit: MetricUnit = MetricUnit.Count
    always: bool = False


LETTERS_EXAMINED = Metric(name="LettersExamined")
LETTERS_REDRIVEN = Metric(name="LettersRedriven")
LETTERS_RETURNED = Metric(name="LettersReturned")
LETTERS_PARKED = Metric(name="LettersParked", always=True)
LETTERS_HELD = Metric(name="LettersHeld")
LETTERS_FAILED = Metric(name="LettersFailed")
CIRCUIT_STATE = Metric(name="CircuitState", unit=MetricUnit.NoUnit, always=True)
WINDOW = Metric(name="Window", always=True)
VERDICTS_SUCCESS = Metric(name="VerdictsSuccess")
VERDICTS_FAILURE = Metric(name="VerdictsFailure")
VERDICTS_NO_EVIDENCE = Metric(name="VerdictsNoEvidence")
OLDEST_LETTER_AGE = Metric(name="OldestLetterAge", unit=MetricUnit.Seconds)
LEAST_LIFE_LEFT = Metric(name="LeastLifeLeft", unit=MetricUnit.Percent)
OLDEST_WAITING_AGE = Metric(name="OldestWaitingAge", unit=MetricUnit.Seconds, always=True)
SUSPECTS_WAITING = Metric(name="SuspectsWaiting", always=True)
DEAD_LETTERS = Metric(name="DeadLetters", always=True)
PARKED_LETTERS = Metric(name="ParkedLetters", always=True)
PASS_DURATION = Metric(name="PassDuration", unit=MetricUnit.Seconds, always=True)
PASSES_FAILED = Metric(name="PassesFailed", always=True)

ALL = tuple(found for found in globals().values() if isinstance(found, Metric))


class Everything:
    """Contains every name."""

    def __contains__(self, _name: object) -> bool:
        return True


def kept_metrics(environment: Mapping[str, str]) -> Container[str]:
    """The names of the metrics to emit, from the function's environment."""
    named = environment.get(KEPT_VARIABLE)
    return Everything() if named is None else frozenset(named.split(","))


def emit(
    report: Report, kept: Container[str], called: Callable[[str], str] = lambda queue: queue
) -> None:
    """Write the metrics of a pass to the log: one line for each source queue, and one for each reason for parking.

    `called`: see `Deployment.called`.
    """
    for queue, points in values(report).items():
        write(points, kept, **{QUEUE: called(queue)})
    for reason, letters in _parked(report).items():
        write({LETTERS_PARKED: [letters]}, kept, **{QUEUE: called(report.queue), REASON: reason})


def values(report: Report) -> dict[str, dict[Metric, list[float]]]:
    """The values in a report, by source queue and metric. A gauge that the pass could not read is left out, not zero.

    Each circuit's state, window and verdicts are under its own queue's name, and all other values under the first
    one's.
    """
    points = {report.queue: _worth_telling(_of_the_dlq(report))}
    for circuit in report.circuits:
        points.setdefault(circuit["queue"], {}).update(_of_circuit(report, circuit))
    return points


def _worth_telling(points: Mapping[Metric, list[float]]) -> dict[Metric, list[float]]:
    return {
        metric: numbers
        for metric, numbers in points.items()
        if numbers and (metric.always or any(numbers))
    }


def _of_circuit(report: Report, circuit: Mapping[str, Any]) -> dict[Metric, list[float]]:
    verdicts = [one["verdict"] for one in report.verdicts if one["queue"] == circuit["queue"]]
    points: dict[Metric, list[float]] = {
        CIRCUIT_STATE: [STATE_VALUES[state] for state in circuit["states"]],
        WINDOW: [circuit["window"]],
    }
    if verdicts:
        # Success and failure are emitted together; otherwise a share of them could not be computed.
        points[VERDICTS_SUCCESS] = [verdicts.count(Verdict.SUCCESS.value)]
        points[VERDICTS_FAILURE] = [verdicts.count(Verdict.FAILURE.value)]
    return points | _worth_telling(
        {VERDICTS_NO_EVIDENCE: [verdicts.count(Verdict.NO_EVIDENCE.value)]}
    )


def _of_the_dlq(report: Report) -> dict[Metric, list[float]]:
    return {
        LETTERS_EXAMINED: [report.examined],
        LETTERS_REDRIVEN: [0 if report.is_dry else report.redriven],
        LETTERS_RETURNED: [report.returned],
        LETTERS_PARKED: [sum(_parked(report).values())],
        LETTERS_HELD: [report.held.total()],
        LETTERS_FAILED: [report.failed],
        OLDEST_LETTER_AGE: _known(report.oldest_letter_seconds),
        LEAST_LIFE_LEFT: _known(report.least_percent_left),
        OLDEST_WAITING_AGE: _known(report.oldest_waiting_seconds),
        SUSPECTS_WAITING: _known(report.suspects_waiting),
        DEAD_LETTERS: _known(report.depth),
        PARKED_LETTERS: _known(report.parked_depth),
        PASS_DURATION: [report.duration_seconds],
        PASSES_FAILED: [report.outcome is Outcome.FAILED],
    }


def _parked(report: Report) -> Mapping[str, int]:
    """Letters that the pass parked, by reason; a dry run parks none."""
    return {} if report.is_dry else report.parked


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def write(points: Mapping[Metric, list[float]], kept: Container[str], **dimensions: str) -> None:
    """Write one line: these metrics, if they are kept, under these dimensions."""
    # An empty service: one from the environment would become a dimension that no alarm asks for.
    document = EphemeralMetrics(namespace=NAMESPACE, service="")
    for name, value in dimensions.items():
        document.add_dimension(name, value)
    for metric, numbers in points.items():
        for number in numbers if metric.name in kept else ():
            document.add_metric(metric.name, metric.unit, number)
    if document.metric_set:
        document.flush_metrics()
