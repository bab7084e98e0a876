"""The alarms of a worker queue in Postgres: on growth and not on size, and on what a pass says of itself."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from redrive.aws import metrics as own
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Missing
from smart_redriver.cdk.evaluation import Evaluation
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
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


def make_postgres_alarms(
    scope: Construct,
    *,
    name: str,
    function: lambda_.IFunction,
    monitoring: MonitoringSettings,
    topics: Topics,
) -> list[cloudwatch.IAlarm]:
    """Six of them, in ``scope``."""
    make = AlarmMaker(
        scope,
        queue_name=name,
        known_as=name,
        runbook_url=runbook_of(monitoring),
    )

    def metric(metric_name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: name},
            statistic=statistic,
            period=cdk.Duration.seconds(_PERIOD),
        )

    make.alarm(
        "DeadLettersGrow",
        metric(ADDED, "Maximum"),
        Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        TOO_MANY,
        Evaluation(seconds=_PERIOD),
        Advice(
            meaning=f"{TOO_MANY} jobs or more have died within five minutes.",
            first="`redrive causes`.",
            section=_SECTION,
        ),
        topic=topics.paging,
    )
    make.alarm(
        "CircuitOpen",
        metric(own.CIRCUIT_STATE.name, "Minimum"),
        Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        own.STATE_VALUES["OPEN"],
        Evaluation(seconds=_PERIOD, periods=6, breaching=6),
        Advice(
            meaning="The workers have failed with what was redriven for half an hour.",
            first="`redrive status` and `redrive causes`: what fails, and since when.",
            section=_SECTION,
        ),
        topic=topics.warning,
    )
    make.alarm(
        "PassesFail",
        metric(own.PASSES_FAILED.name, "Minimum"),
        Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        1,
        Evaluation(seconds=_PERIOD, periods=3, breaching=3),
        Advice(
            meaning="No pass has got through for a quarter of an hour: nothing goes back.",
            first="`redrive doctor`; `redrive logs` names the call that failed.",
            section=_SECTION,
        ),
        missing=Missing.IGNORE,  # an idle table is looked at more rarely
        topic=topics.paging,
    )
    make.alarm(
        "LettersStay",
        metric(own.LETTERS_FAILED.name, "Maximum"),
        Comparison.GREATER_THAN_THRESHOLD,
        0,
        _STAYED,
        Advice(
            meaning="For an hour passes have met letters that they could not move, and left them where they are.",
            first="`redrive logs`: `faults` says which call and why; `redrive doctor` what keeps rows.",
            section=_SECTION,
        ),
        topic=topics.warning,
    )
    make.alarm(
        "FunctionFails",
        function.metric_errors(period=cdk.Duration.seconds(_PERIOD)),
        Comparison.GREATER_THAN_THRESHOLD,
        0,
        Evaluation(seconds=_PERIOD, periods=3, breaching=3),
        Advice(
            meaning="The function ends with an error, or can't start.",
            first="`redrive logs`.",
            section=_SECTION,
        ),
        topic=topics.paging,
    )
    make.alarm(
        "LettersParked",
        metric(own.LETTERS_PARKED.name, "Sum"),
        Comparison.GREATER_THAN_THRESHOLD,
        0,
        Evaluation(seconds=_PERIOD),
        Advice(
            meaning="Letters were set aside, for a person to see to.",
            first="`redrive parked`, then `redrive show ID`.",
            section=_SECTION,
        ),
        topic=topics.warning,
    )
    return make.made
