"""Settings are read strictly, faults are told all at once, and the environment round-trips."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.deployment import Deployment, read_environment
from smart_redriver.engine.config.settings import (
    FOR_MADE_QUEUES,
    FOR_SYNTH,
    FifoPoison,
    Mode,
    Settings,
)
from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.errors import RedriverError, SettingsError
from smart_redriver.kafka.engine.place import KafkaTopics

DEFAULTS = {
    "mode": Mode.AUTOMATIC,
    "schedule_minutes": 5,
    "max_attempts": 5,
    "last_chance_seconds": 21_600,
    "give_up_seconds": 259_200,
    "fifo_poison": FifoPoison.PARK,
    "base_delay_seconds": 60,
    "max_delay_seconds": 900,
    "initial_window": 5,
    "max_window": 50_000,
    "max_rate": 100,
    "recovery_alarms": (),
    "downstream": "",
    "failure_threshold": 3,
    "success_threshold": 2,
    "failure_rate": 0.5,
    "canary_size": 1,
    "cool_down_seconds": 60,
    "max_cool_down_seconds": 1800,
    "verdict_grace_seconds": 65,
    "failure_details_days": 45,
    "memory_mib": 512,
    "source_visibility_timeout_seconds": 30,
    "max_receive_count": 3,
    "with_sample_consumer": False,
}

DEPLOYMENT = {
    "QUEUE_NAME": "orders",
    "DYNAMODB_TABLE_NAME": "state",
    "DLQ_URL": "https://sqs/dlq",
    "SOURCE_QUEUE_URL": "https://sqs/orders",
    "PARKING_LOT_URL": "https://sqs/parking",
}


def faults_of(values: dict) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        Settings.parse(values)
    return {fault.setting: str(fault) for fault in caught.value.faults}


def test_nothing_given_means_the_documented_defaults():
    settings = Settings.parse({})

    assert settings == Settings()
    assert {name: getattr(settings, name) for name in Settings.names()} == DEFAULTS


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("max_attempts", "3", 3),
        ("max_attempts", " 3 ", 3),
        ("max_attempts", 3, 3),
        ("max_attempts", 3.0, 3),
        ("max_attempts", 100, 100),
        ("base_delay_seconds", "0", 0),
        ("failure_rate", "0.25", 0.25),
        ("failure_rate", 1, 1.0),
        ("max_rate", "0.5", 0.5),
        ("max_rate", "1e3", 1000.0),
        ("with_sample_consumer", "true", True),
        ("with_sample_consumer", "False", False),
        ("with_sample_consumer", True, True),
        ("mode", "dry_run", Mode.DRY_RUN),
        ("mode", Mode.PAUSED, Mode.PAUSED),
    ],
)
def test_a_value_is_read_as_text_and_as_json(name, value, read):
    found = getattr(Settings.parse({name: value}), name)

    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_attempts", "0"),
        ("max_attempts", "101"),
        ("max_attempts", "3.5"),
        ("max_attempts", ""),
        ("max_attempts", "1_0"),
        ("max_attempts", "9" * 5000),
        ("max_attempts", True),
        ("base_delay_seconds", "-1"),
        ("base_delay_seconds", "901"),
        ("max_delay_seconds", "43201"),
        ("schedule_minutes", "1441"),
        ("last_chance_seconds", "-1"),
        ("last_chance_seconds", "604801"),
        ("give_up_seconds", "3599"),
        ("give_up_seconds", "1209601"),
        ("failure_details_days", "-1"),
        ("failure_details_days", "46"),
        ("memory_mib", "127"),
        ("memory_mib", "10241"),
        ("failure_rate", "0"),
        ("failure_rate", "1.01"),
        ("failure_rate", "nan"),
        ("failure_rate", "1_0"),
        ("failure_rate", True),
        ("max_rate", "inf"),
        ("max_rate", "１"),  # noqa: RUF001 - a digit of another script
        ("mode", "Automatic"),
        ("mode", ""),
        ("with_sample_consumer", "yes"),
        ("with_sample_consumer", "1"),
        ("max_rate", "fast"),
        ("max_rate", ["1"]),
        ("mode", {"automatic": True}),
    ],
)
def test_a_value_that_is_not_accepted_is_refused_with_the_value_seen(name, value):
    faults = faults_of({name: value})

    assert list(faults) == [name]
    assert repr(value) in faults[name]


def test_all_faults_are_told_at_once_each_with_its_range():
    faults = faults_of({"max_attempts": "0", "mode": "off", "failure_rate": "2", "max_window": "7"})

    assert faults == {
        "mode": "mode: saw 'off', accepted is automatic, dry_run, paused "
        "(what a pass does with its decisions)",
        "max_attempts": "max_attempts: saw '0', accepted is a whole number from 1 to 100 "
        "(strikes before a letter is parked)",
        "failure_rate": "failure_rate: saw '2', accepted is a number from 0.01 to 1 "
        "(share of a batch that returns to make it a failure)",
    }


@pytest.mark.parametrize(
    ("values", "named", "other"),
    [
        ({"base_delay_seconds": 60, "max_delay_seconds": 30}, "base_delay_seconds", "at most"),
        ({"max_delay_seconds": 30}, "max_delay_seconds", "at least base_delay_seconds"),
        ({"initial_window": 60_000}, "initial_window", "at most max_window"),
        ({"max_window": 4}, "max_window", "at least initial_window"),
        ({"canary_size": 60_000}, "canary_size", "at most max_window"),
        ({"cool_down_seconds": 3600}, "cool_down_seconds", "at most max_cool_down_seconds"),
    ],
)
def test_settings_out_of_order_are_refused_by_the_name_that_was_given(values, named, other):
    faults = faults_of(values)

    assert list(faults) == [named]
    assert other in faults[named]


def test_a_setting_that_cannot_be_read_is_not_compared_with_its_default():
    assert list(faults_of({"base_delay_seconds": "x", "max_delay_seconds": 30})) == [
        "base_delay_seconds"
    ]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(Mode),
            "max_attempts": st.integers(1, 100),
            "failure_rate": st.floats(0.01, 1),
            "max_rate": st.floats(0, 100_000),
            "with_sample_consumer": st.booleans(),
        },
    )
)
def test_the_environment_gives_back_the_same_settings(values):
    settings = Settings.parse(values)
    at_synth = {name: getattr(Settings(), name) for name in FOR_MADE_QUEUES}

    assert Settings.from_env(settings.to_env()) == replace(settings, **at_synth)


def test_the_environment_has_one_upper_case_variable_for_each_setting_of_the_function():
    assert list(Settings().to_env()) == [
        name.upper() for name in DEFAULTS if name not in (*FOR_MADE_QUEUES, *FOR_SYNTH)
    ]


def slips_of(env: dict[str, str]) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(env)
    return {fault.setting: fault.accepted for fault in caught.value.faults}


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("MAX_ATEMPTS", "MAX_ATTEMPTS"),
        ("MAX_ATTEMPT", "MAX_ATTEMPTS"),
        ("max_attempts", "MAX_ATTEMPTS"),
        ("MAXATTEMPTS_", "MAX_ATTEMPTS"),
        ("COOL_DOWN", "COOL_DOWN_SECONDS"),
        ("MEMORY_MB", "MEMORY_MIB"),
    ],
)
def test_a_variable_that_is_almost_a_setting_is_refused_and_not_passed_over(variable, meant):
    """MAX_ATEMPTS=50 would deploy, start, and park at five strikes without a word."""
    assert slips_of({variable: "5"}) == {
        variable: f"the name {meant} (no setting is called {variable})"
    }


def test_every_setting_is_found_out_when_a_letter_is_left_out():
    for name in DEFAULTS:
        if "_" in name:
            variable = name.upper()[:2] + name.upper()[3:]

            assert list(slips_of({variable: "1"})) == [variable]


#: What a function has in its environment that is not ours: Lambda's, its layers', and an application's own.
OTHERS = [
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_MAX_ATTEMPTS",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_XRAY_DAEMON_ADDRESS",
    "AWS_XRAY_CONTEXT_MISSING",
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "LAMBDA_TASK_ROOT",
    "LAMBDA_RUNTIME_DIR",
    "LD_LIBRARY_PATH",
    "LANG",
    "TZ",
    "PATH",
    "PYTHONPATH",
    "METRICS_KEPT",
    "POWERTOOLS_LOG_LEVEL",
    "LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
    "OTEL_METRICS_EXPORTER",
    "LC_ALL",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "no_proxy",
    "MODE_OF_PAYMENT",
    "MODEL",
    "DEMO",
    "NODE_ENV",
    "STAGE",
    "TEAM_NAME",
    "SERVICE_NAME",
    "MAX_RETRIES",
    "RATE_LIMIT",
    "MAX_CONCURRENCY",
    "QUEUE_URL",
    "DLQ_NAME",
    "RETRY_DELAY",
    "FAILURE_MODE",
    "SCHEDULE_NAME",
    "CANARY_NAME",
    "DATADOG_SITE",
    "DD_TRACE_ENABLED",
    "SENTRY_SAMPLE_RATE",
    "WINDOW_TITLE",
    "mode",
]


@pytest.mark.parametrize("variable", OTHERS)
def test_a_variable_of_others_is_left_alone_however_much_it_resembles_a_setting(variable):
    assert Settings.from_env({variable: "x"}) == Settings()


def test_wrong_values_and_misspelt_variables_are_told_together():
    assert set(slips_of({"MAX_ATEMPTS": "5", "CANARY_SIZE": "0"})) == {"MAX_ATEMPTS", "canary_size"}


def test_an_empty_variable_is_a_fault_and_not_a_default():
    with pytest.raises(SettingsError, match="max_attempts: saw ''"):
        Settings.from_env({"MAX_ATTEMPTS": ""})


def test_settings_errors_are_caught_by_the_root():
    assert issubclass(SettingsError, RedriverError)


def test_a_deployment_is_read_from_its_five_variables():
    deployment = Deployment.from_env({**DEPLOYMENT, "AWS_REGION": "eu-west-1"})

    assert deployment == Deployment(
        queue_name="orders",
        table_name="state",
        dlq_url="https://sqs/dlq",
        source_queue_url="https://sqs/orders",
        parking_lot_url="https://sqs/parking",
    )
    assert deployment.to_env() == DEPLOYMENT


@pytest.mark.parametrize("variable", DEPLOYMENT)
@pytest.mark.parametrize("value", ["", " ", "https://sqs/x\n"])
def test_a_place_that_is_blank_or_has_a_stray_space_is_refused(variable, value):
    """Calls to it would fail in every pass, and a FIFO queue would not be known as one."""
    with pytest.raises(SettingsError) as caught:
        Deployment.from_env(DEPLOYMENT | {variable: value})

    (fault,) = caught.value.faults
    assert (fault.setting, fault.seen) == (variable, value)


def test_further_source_queues_are_one_variable_that_may_be_missing():
    env = {**DEPLOYMENT, "SOURCE_QUEUE_URLS": "https://sqs/refunds https://sqs/returns"}

    deployment = Deployment.from_env(env)

    assert deployment.further_source_urls == ("https://sqs/refunds", "https://sqs/returns")
    assert deployment.source_urls == ("https://sqs/orders", *deployment.further_source_urls)
    assert deployment.to_env() == env


FIFO = {
    "SOURCE_QUEUE_URL": "https://sqs/orders.fifo",
    "DLQ_URL": "https://sqs/orders-dlq.fifo",
    "PARKING_LOT_URL": "https://sqs/lot.fifo",
}


def test_fifo_queues_are_taken_together():
    deployment = Deployment.from_env(DEPLOYMENT | FIFO)

    assert deployment.dlq_url == "https://sqs/orders-dlq.fifo"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"DLQ_URL": "https://sqs/dlq"}, [("DLQ_URL", "a FIFO queue, as SOURCE_QUEUE_URL is")]),
        (
            {"PARKING_LOT_URL": "https://sqs/lot"},
            [("PARKING_LOT_URL", "a FIFO queue, as SOURCE_QUEUE_URL is")],
        ),
        (
            {"SOURCE_QUEUE_URLS": "https://sqs/a.fifo https://sqs/b"},
            [("SOURCE_QUEUE_URLS", "a FIFO queue, as SOURCE_QUEUE_URL is")],
        ),
        (
            {"SOURCE_QUEUE_URL": "https://sqs/orders"},
            [
                ("DLQ_URL", "a standard queue, as SOURCE_QUEUE_URL is"),
                ("PARKING_LOT_URL", "a standard queue, as SOURCE_QUEUE_URL is"),
            ],
        ),
        (
            {"OUTCOME_QUEUE_URL": "https://sqs/outcomes.fifo"},
            [("OUTCOME_QUEUE_URL", "a standard queue")],
        ),
    ],
)
def test_queues_of_two_kinds_are_refused_at_cold_start(given, expected):
    with pytest.raises(SettingsError) as caught:
        Deployment.from_env(DEPLOYMENT | FIFO | given)

    assert [(fault.setting, fault.accepted) for fault in caught.value.faults] == expected


@pytest.mark.parametrize("reports", [{}, {"OUTCOME_QUEUE_URL": "https://sqs/outcomes"}])
def test_where_consumers_report_is_a_variable_that_may_be_missing(reports):
    env = {**DEPLOYMENT, **reports}

    deployment = Deployment.from_env(env)

    assert deployment.outcome_queue_url == reports.get("OUTCOME_QUEUE_URL", "")
    assert deployment.to_env() == env


FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:orders"
WEB = "https://hooks.example.com/orders"
OF_SNS = {
    "QUEUE_NAME": "lambda:orders",
    "DYNAMODB_TABLE_NAME": "state",
    "DLQ_URL": "https://sqs/dlq",
    "PARKING_LOT_URL": "https://sqs/parking",
    "ORIGIN": "sns",
    "TARGETS": FUNCTION,
}


def test_a_dlq_that_another_origin_fills_has_targets_instead_of_a_source_queue():
    deployment = Deployment.from_env(OF_SNS)

    assert (deployment.origin, deployment.source_urls) == (Origin.SNS, ())
    assert deployment.targets == (Target(kind=TargetKind.FUNCTION, place=FUNCTION),)
    assert deployment.source_names == ("lambda:orders",)
    assert deployment.to_env() == OF_SNS


def test_several_subscriptions_are_told_apart_by_their_arns():
    subscriptions = [f"arn:aws:sns:eu-west-1:123456789012:orders:{n * 36}" for n in "ab"]
    env = OF_SNS | {
        "TARGETS": f"{subscriptions[0]}={FUNCTION} {subscriptions[1]}={WEB}",
        "PRIVATE_HOSTS": "hooks.example.com",
    }

    deployment = Deployment.from_env(env)

    assert [one.subscription for one in deployment.targets] == subscriptions
    assert deployment.source_names == ("lambda:orders", WEB)
    assert deployment.to_env() == env


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"ORIGIN": "rabbitmq"},
            [("ORIGIN", "sqs, sns, lambda, eventbridge, scheduler, postgres, kafka")],
        ),
        (
            {"ORIGIN": "kafka"},
            [
                ("QUEUE_NAME", KafkaTopics.names),
                ("KAFKA", "JSON of topics"),
            ],
        ),
        ({"TARGETS": ""}, [("targets", "what the letters go back to, one at least")]),
        ({"ORIGIN": "sqs", "SOURCE_QUEUE_URL": "q"}, [("targets", "with origin sqs: none")]),
        ({"ORIGIN": "lambda", "TARGETS": WEB}, [("targets", "with origin lambda: lambda")]),
        (
            {"TARGETS": f"{FUNCTION} {WEB}"},
            [
                (
                    "targets",
                    "the subscription of each, where a DLQ is of several: SUBSCRIPTION_ARN=TARGET",
                )
            ],
        ),
        (
            {"DLQ_URL": "https://sqs/a.fifo", "PARKING_LOT_URL": "https://sqs/b.fifo"},
            [("DLQ_URL", "a standard queue, with origin sns")],
        ),
    ],
)
def test_what_a_dlq_of_another_origin_lacks_is_told(given, expected):
    with pytest.raises(SettingsError) as caught:
        Deployment.from_env(OF_SNS | given)

    assert [(fault.setting, fault.accepted) for fault in caught.value.faults] == expected


def test_all_missing_and_empty_variables_of_a_deployment_are_told_at_once():
    with pytest.raises(SettingsError) as caught:
        Deployment.from_env({"QUEUE_NAME": "orders", "DLQ_URL": "", "PARKING_LOT_URL": "p"})

    assert [(fault.setting, fault.seen) for fault in caught.value.faults] == [
        ("DYNAMODB_TABLE_NAME", None),
        ("DLQ_URL", ""),
        ("SOURCE_QUEUE_URL", None),
    ]


@pytest.mark.parametrize(
    ("given", "role", "other"),
    [
        ({"DLQ_URL": "https://sqs/orders"}, "DLQ_URL", "SOURCE_QUEUE_URL"),
        ({"PARKING_LOT_URL": "https://sqs/orders"}, "PARKING_LOT_URL", "SOURCE_QUEUE_URL"),
        ({"PARKING_LOT_URL": "https://sqs/dlq"}, "PARKING_LOT_URL", "DLQ_URL"),
        ({"SOURCE_QUEUE_URLS": "https://sqs/a https://sqs/dlq"}, "SOURCE_QUEUE_URLS", "DLQ_URL"),
    ],
)
def test_a_queue_in_two_roles_is_refused(given, role, other):
    with pytest.raises(SettingsError) as caught:
        Deployment.from_env(DEPLOYMENT | given)

    [fault] = caught.value.faults
    assert (fault.setting, fault.accepted) == (role, f"another queue than {other}")


def test_settings_and_places_are_read_from_one_environment():
    env = {**DEPLOYMENT, "MAX_ATTEMPTS": "7"}

    assert read_environment(env) == (Settings(max_attempts=7), Deployment.from_env(DEPLOYMENT))


def test_wrong_settings_and_missing_places_are_told_in_one_round():
    """Told one after the other, a function that is wrong in both takes two deployments to find out."""
    env = {**DEPLOYMENT, "MAX_ATTEMPTS": "many", "CANARY_SIZES": "2", "DLQ_URL": ""}

    with pytest.raises(SettingsError) as caught:
        read_environment(env)

    assert [fault.setting for fault in caught.value.faults] == [
        "CANARY_SIZES",
        "max_attempts",
        "DLQ_URL",
    ]


def documented() -> dict[str, tuple[str, str]]:
    """Default and meaning of each setting in the table of docs/settings.md, in its order."""
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*) \|$", page, re.MULTILINE)
    return {
        name: (default.strip("`"), meaning)
        for name, default, meaning in rows
        if name in Settings.names()
    }


def test_the_docs_have_every_setting_in_the_order_of_the_table_with_its_default():
    defaults = {name: default for name, (default, _) in documented().items()}

    assert list(defaults) == list(Settings.names())
    told = {name.upper(): "" if value == "none" else value for name, value in defaults.items()}
    assert Settings().to_env().items() <= told.items()


def test_a_range_that_the_docs_give_is_the_one_that_is_accepted():
    ranges = {
        name: (low.replace(",", ""), high.replace(",", ""))
        for name, (_, meaning) in documented().items()
        for low, high in re.findall(r"([\d,]+) to ([\d,]+)", meaning)
    }
    accepted = {one.name: one.metadata["kind"].accepted for one in fields(Settings)}

    assert len(ranges) >= 8
    for name, (low, high) in ranges.items():
        assert accepted[name].endswith(f"from {low} to {high}")
