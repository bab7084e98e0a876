"""CloudWatch metrics of one pass, in the embedded metric format (EMF): log lines that CloudWatch reads.

Each name costs money in every hour in which it appears, once for each queue. So there is one dimension, and
what happened to no letter is not told: an idle queue has the metrics marked `always` and no others.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from redrive.core.batch import Verdict
from redrive.core.circuit import State
from redrive.core.report import Outcome, Report

NAMESPACE = "SmartRedriver"
#: The only dimension: the source queue's name.
QUEUE = "QueueName"
#: A second one, of `LettersParked` alone, on top of its sum over all reasons.
REASON = "Reason"

#: Names of the metrics to emit, separated by commas; all where the variable is missing.
KEPT_VARIABLE = "METRICS_KEPT"

#: HALF_OPEN lies between the two, so that a band over time shows how far the circuit is open.
STATE_VALUES = {State.CLOSED.value: 0.0, State.HALF_OPEN.value: 0.5, State.OPEN.value: 1.0}


class Unit(str, Enum):
    """What a metric counts, as CloudWatch calls it."""

    Count = "Count"
    Seconds = "Seconds"
    NoUnit = "None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Name and unit as alarms and dashboards use them. `always`: in every pass, zero or not."""

    name: str
    unit: Unit = Unit.Count
    always: bool = False


LETTERS_EXAMINED = Metric(name="LettersExamined")
LETTERS_REDRIVEN = Metric(name="LettersRedriven")
LETTERS_RETURNED = Metric(name="LettersReturned")
LETTERS_PARKED = Metric(name="LettersParked", always=True)
LETTERS_HELD = Metric(name="LettersHeld")
LETTERS_FAILED = Metric(name="LettersFailed")
CIRCUIT_STATE = Metric(name="CircuitState", unit=Unit.NoUnit, always=True)
WINDOW = Metric(name="Window", always=True)
VERDICTS_SUCCESS = Metric(name="VerdictsSuccess")
VERDICTS_FAILURE = Metric(name="VerdictsFailure")
VERDICTS_NO_EVIDENCE = Metric(name="VerdictsNoEvidence")
OLDEST_LETTER_AGE = Metric(name="OldestLetterAge", unit=Unit.Seconds)
LEAST_TIME_TO_EXPIRY = Metric(name="LeastTimeToExpiry", unit=Unit.Seconds)
OLDEST_WAITING_AGE = Metric(name="OldestWaitingAge", unit=Unit.Seconds, always=True)
SUSPECTS_WAITING = Metric(name="SuspectsWaiting", always=True)
DEAD_LETTERS = Metric(name="DeadLetters", always=True)
PARKED_LETTERS = Metric(name="ParkedLetters", always=True)
PASS_DURATION = Metric(name="PassDuration", unit=Unit.Seconds, always=True)
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


def emit(report: Report, kept: Container[str]) -> None:
    """Write the metrics of a pass to the log: one line, and one more for each reason of parking."""
    _write(values(report), kept, **{QUEUE: report.queue})
    for reason, letters in report.parked.items():
        _write({LETTERS_PARKED: [letters]}, kept, **{QUEUE: report.queue, REASON: reason})


def values(report: Report) -> dict[Metric, list[float]]:
    """What a report says, by metric. A gauge that the pass could not read is left out, not zero."""
    return {
        metric: told
        for metric, told in _told(report).items()
        if told and (metric.always or metric in _with_verdicts(report) or any(told))
    }


def _with_verdicts(report: Report) -> tuple[Metric, ...]:
    """Success and failure come together, or a share of them could not be computed."""
    return (VERDICTS_SUCCESS, VERDICTS_FAILURE) if report.verdicts else ()


def _told(report: Report) -> dict[Metric, list[float]]:
    verdicts = [one["verdict"] for one in report.verdicts]
    return {
        LETTERS_EXAMINED: [report.examined],
        LETTERS_REDRIVEN: [report.redriven],
        LETTERS_RETURNED: [report.returned],
        LETTERS_PARKED: [report.parked.total()],
        LETTERS_HELD: [report.held.total()],
        LETTERS_FAILED: [report.failed],
        CIRCUIT_STATE: [
            STATE_VALUES[state] for one in report.circuits[:1] for state in one["states"]
        ],
        WINDOW: _known(report.window),
        VERDICTS_SUCCESS: [verdicts.count(Verdict.SUCCESS.value)],
        VERDICTS_FAILURE: [verdicts.count(Verdict.FAILURE.value)],
        VERDICTS_NO_EVIDENCE: [verdicts.count(Verdict.NO_EVIDENCE.value)],
        OLDEST_LETTER_AGE: _known(report.oldest_letter_seconds),
        LEAST_TIME_TO_EXPIRY: _known(report.least_seconds_to_expiry),
        OLDEST_WAITING_AGE: _known(report.oldest_waiting_seconds),
        SUSPECTS_WAITING: _known(report.suspects_waiting),
        DEAD_LETTERS: _known(report.depth),
        PARKED_LETTERS: _known(report.parked_depth),
        PASS_DURATION: [report.duration_seconds],
        PASSES_FAILED: [report.outcome is Outcome.FAILED],
    }


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _write(told: Mapping[Metric, list[float]], kept: Container[str], **dimensions: str) -> None:
    """Write one line.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    kept_of_these = {metric: told[metric] for metric in told if metric.name in kept}
    if not kept_of_these:
        return
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [{"Name": one.name, "Unit": one.unit.value} for one in kept_of_these],
    }
    document: dict[str, Any] = {
        "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
        **dimensions,
        **{metric.name: [float(one) for one in some] for metric, some in kept_of_these.items()},
    }
    sys.stdout.write(json.dumps(document, separators=(",", ":")) + "\n")
