"""The alarms of a worker queue in Postgres: on growth and not on size, and on what a pass says of itself."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from redrive.aws import metrics as own
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Missing
from smart_redriver.cdk.evaluation import Evaluation
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import math
from smart_redriver.cdk.topics import Topics

#: New letters within five minutes, as each pass counts them. Also named in `redrive.postgres.growth`, which needs psycopg.
ADDED = "DeadLettersAdded"
TOO_MANY = 200

_SECTION = "when-an-alarm-rings"
#: Beside the runbook for queues, wherever that is.
_RUNBOOK, _OURS = "runbook.md", "postgres.md"
_PERIOD = 300
#: A lock passes; after a letter that was not moved the next pass is a minute later, and says nothing where all went well.
_STAYED = Evaluation(seconds=_PERIOD, periods=12, breaching=12)


def runbook_of(monitoring: MonitoringSettings) -> str:
    """Where a person reads what to do."""
    return monitoring.runbook_url.replace(_RUNBOOK, _OURS)


class PostgresAlarms:
    """Six of them, in ``scope``; ``made`` has them in this order."""

    def __init__(
        self,
        scope: Construct,
        *,
        name: str,
        function: lambda_.IFunction,
        monitoring: MonitoringSettings,
        topics: Topics,
    ) -> None:
        self._name = name
        self._topics = topics
        self._make = AlarmMaker(
            scope, queue_name=name, known_as=name, runbook_url=runbook_of(monitoring)
        )
        self.made = self._make.made
        self._grow()
        self._circuit_open()
        self._passes_fail()
        self._letters_stay()
        self._function_fails(function)
        self._letters_parked()

    def _grow(self) -> None:
        self._make.alarm(
            "DeadLettersGrow",
            self._metric(ADDED, "Maximum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            TOO_MANY,
            Evaluation(seconds=_PERIOD),
            _advice(f"{TOO_MANY} jobs or more have died within five minutes.", "`redrive causes`."),
            topic=self._topics.paging,
        )

    def _circuit_open(self) -> None:
        """Never CLOSED while letters wait: OPEN and HALF_OPEN take turns. Over an empty table it stays as it is, and that is nobody's concern."""
        self._make.alarm(
            "CircuitOpen",
            math(
                "IF(letters > 0, circuit, 0)",
                cdk.Duration.seconds(_PERIOD),
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=self._metric(own.CIRCUIT_STATE.name, "Minimum"),
                letters=self._metric(own.DEAD_LETTERS.name, "Maximum"),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            Evaluation(seconds=_PERIOD, periods=6, breaching=6),
            _advice(
                "For half an hour letters have waited, and workers failed with what was redriven, or the table took none.",
                "`redrive status` and `redrive causes`: what fails, and since when.",
            ),
            topic=self._topics.warning,
        )

    def _passes_fail(self) -> None:
        self._make.alarm(
            "PassesFail",
            self._metric(own.PASSES_FAILED.name, "Minimum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            1,
            Evaluation(seconds=_PERIOD, periods=3, breaching=3),
            _advice(
                "No pass has got through for a quarter of an hour: nothing goes back.",
                "`redrive doctor`; `redrive logs` names the call that failed.",
            ),
            missing=Missing.IGNORE,  # an idle table is looked at more rarely
            topic=self._topics.paging,
        )

    def _letters_stay(self) -> None:
        self._make.alarm(
            "LettersStay",
            self._metric(own.LETTERS_FAILED.name, "Maximum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            _STAYED,
            _advice(
                "For an hour passes have met letters that they could not move, and left them where they are.",
                "`redrive logs`: `faults` says which call and why; `redrive doctor` what keeps rows.",
            ),
            topic=self._topics.warning,
        )

    def _function_fails(self, function: lambda_.IFunction) -> None:
        self._make.alarm(
            "FunctionFails",
            function.metric_errors(period=cdk.Duration.seconds(_PERIOD)),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=_PERIOD, periods=3, breaching=3),
            _advice("The function ends with an error, or can't start.", "`redrive logs`."),
            topic=self._topics.paging,
        )

    def _letters_parked(self) -> None:
        self._make.alarm(
            "LettersParked",
            self._metric(own.LETTERS_PARKED.name, "Sum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=_PERIOD),
            _advice(
                "Letters were set aside, for a person to see to.",
                "`redrive parked`, then `redrive show ID`.",
            ),
            topic=self._topics.warning,
        )

    def _metric(self, metric_name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: self._name},
            statistic=statistic,
            period=cdk.Duration.seconds(_PERIOD),
        )


def _advice(meaning: str, first: str) -> Advice:
    return Advice(meaning=meaning, first=first, section=_SECTION)
