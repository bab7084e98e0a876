"""The construct for a worker queue in Postgres: what it may do, where it is, and what it is told."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Match, Template

from smart_redriver.cdk import PostgresRedriver, Safeguards
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.places import read_outputs, read_places
from smart_redriver.postgres.cdk.redriver import ADDED
from smart_redriver.postgres.engine.connection import DEAD_LETTERS_ADDED
from smart_redriver.postgres.engine.place import JobsDatabase

ROOT = Path(__file__).parents[2]
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-x"
NETWORK = Safeguards(
    vpc_id="vpc-12345678",
    vpc_subnet_ids=("subnet-12345678",),
    vpc_security_group_ids=("sg-12345678",),
)
HOME = cdk.Environment(account="123456789012", region="eu-west-1")


def database(**given):
    return JobsDatabase.of({"host": "db.example.com", "dbname": "app", "secret": SECRET, **given})


def synthesized(**given) -> Template:
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    stack = cdk.Stack(app, "Jobs", env=HOME)
    told = {"name": "orders", "database": database(), "safeguards": NETWORK, **given}
    PostgresRedriver(stack, "Redriver", **told)
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def template() -> Template:
    return synthesized()


def test_a_librarys_table_is_deployed_by_its_profile():
    told = synthesized(database=database(profile="river", jobs="app.river_job"))

    place = JobsDatabase.parse(function(told)["Environment"]["Variables"]["DATABASE"])
    assert (place.profile, place.jobs, place.parked) == ("river", "app.river_job", "jobs_parked")


def function(template: Template) -> dict:
    (found,) = template.find_resources("AWS::Lambda::Function").values()
    return found["Properties"]


def granted(template: Template) -> dict[str, set[str]]:
    """Actions by resource, of the function's role."""
    found: dict[str, set[str]] = {}
    for policy in template.find_resources("AWS::IAM::Policy").values():
        if "Schedule" in json.dumps(policy["Properties"]["Roles"]):
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                actions = statement["Action"]
                found.setdefault(json.dumps(statement["Resource"]), set()).update(
                    [actions] if isinstance(actions, str) else actions
                )
    return found


def test_the_function_may_read_its_secret_and_no_queue(template):
    actions = granted(template)

    assert actions[json.dumps(SECRET)] == {"secretsmanager:GetSecretValue"}
    all_actions = {one for some in actions.values() for one in some}
    assert not [one for one in all_actions if one.startswith(("sqs:", "cloudwatch:", "rds"))]


def test_with_iam_it_may_connect_as_its_role_and_read_no_secret():
    place = database(secret="", user="redriver")

    actions = granted(synthesized(database=place, database_resource_id="db-ABC"))

    (connect,) = [where for where, what in actions.items() if what == {"rds-db:connect"}]
    assert ":dbuser:db-ABC/redriver" in connect
    assert "secretsmanager" not in str(actions)


def test_it_is_in_the_databases_network_and_reads_what_synth_wrote(template):
    told = function(template)
    env = {
        name: value if isinstance(value, str) else "state"
        for name, value in told["Environment"]["Variables"].items()
    }

    assert told["VpcConfig"] == {
        "SubnetIds": ["subnet-12345678"],
        "SecurityGroupIds": ["sg-12345678"],
    }
    assert Deployment.from_env(env).location == database()
    assert Settings.from_env(env) == Settings()


def test_its_alarms_are_on_growth_and_on_the_metric_that_a_pass_emits(template):
    assert DEAD_LETTERS_ADDED.name == ADDED
    template.has_resource_properties(
        "AWS::CloudWatch::Alarm",
        {
            "AlarmName": Match.string_like_regexp("^orders DeadLettersGrow "),
            "MetricName": ADDED,
            "Threshold": 200,
            "Period": 300,
            "Dimensions": [{"Name": "QueueName", "Value": "orders"}],
        },
    )
    template.resource_count_is("AWS::CloudWatch::Alarm", 6)
    template.resource_count_is("AWS::SQS::Queue", 0)
    template.has_resource_properties(
        "AWS::Scheduler::Schedule", {"ScheduleExpression": "rate(1 minute)"}
    )


def test_every_alarm_says_what_it_means_and_its_section_names_it(template):
    page = (ROOT / "docs" / "postgres.md").read_text()
    section = page.partition("### When an alarm rings\n")[2].partition("\n## ")[0]
    alarms = [
        one["Properties"] for one in template.find_resources("AWS::CloudWatch::Alarm").values()
    ]

    for one in alarms:
        name, said = one["AlarmName"].split()[1], one["AlarmDescription"]
        meaning, _, first = said.partition(" First: ")
        assert meaning.endswith("."), name
        assert "Queue: orders" in first, name
        assert said.endswith("docs/postgres.md#when-an-alarm-rings"), name
        assert len(said) <= 1024, name  # CloudWatch allows no more
        assert f"`{name}`" in section, name
        assert one["AlarmActions"] == one["OKActions"] != [], name


def test_the_authorities_of_the_database_go_along(tmp_path):
    bundle = tmp_path / "global-bundle.pem"
    bundle.write_text("certificates")

    told = function(synthesized(authorities=bundle))

    assert json.loads(told["Environment"]["Variables"]["DATABASE"])["sslrootcert"] == (
        "/var/task/database-ca.pem"
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"safeguards": Safeguards()}, "vpc_id"),
        ({"name": "orders/jobs"}, "name"),
        ({"table": "state"}, "table"),
        ({"removal_policy": cdk.RemovalPolicy.SNAPSHOT}, "removal_policy"),
        ({"database": database(sslmode="require")}, "sslmode"),
        ({"database": database(secret=SECRET.replace(":aws:", ":aws-cn:"))}, "secret"),
        (
            {"database": database(permanent=[f"shop.errors.Kind{one}" for one in range(120)])},
            "database",
        ),
    ],
)
def test_what_would_not_work_or_not_be_safe_is_refused(given, named):
    with pytest.raises(SettingsError) as refused:
        synthesized(**given)

    assert [one.setting for one in refused.value.faults] == [named]


def test_the_longest_database_leaves_room_for_all_else_in_the_functions_environment():
    """Lambda takes 4 KB."""
    longest = {"dbname": "d" * 128, "host": "h" * 255, "permanent": ["x" * 100] * 18}
    settings = Settings(max_rate=99.99999999999999, failure_rate=0.9999999999999999)

    told = function(synthesized(database=database(**longest), settings=settings, name="n" * 80))

    env = told["Environment"]["Variables"]
    assert 2_300 < len(env["DATABASE"]) <= 2_500
    table_name = 255
    assert (
        sum(len(name) for name in env)
        + table_name
        + sum(len(value) for value in env.values() if isinstance(value, str))
        < 4_096 - 500
    )  # a team may add some of its own


def test_two_constructs_of_an_app_share_no_table():
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    others = {one: f"late_{one}" for one in ("jobs", "dead_letters", "parked", "held", "redriven")}
    told: dict[str, Any] = {"safeguards": NETWORK}
    PostgresRedriver(cdk.Stack(app, "A", env=HOME), "R", name="a", database=database(), **told)
    late = database(**others)
    PostgresRedriver(cdk.Stack(app, "B", env=HOME), "R", name="b", database=late, **told)

    third = database(**others | {"jobs": "more", "held": "public.jobs_held", "parked": "pk"})
    stack = cdk.Stack(app, "C", env=HOME)

    with pytest.raises(SettingsError) as refused:
        PostgresRedriver(stack, "R", name="c", database=third, **told)

    assert [str(one) for one in refused.value.faults] == [
        "database: saw 'db.example.com:5432/app/late_dead_letters', accepted is tables that B/R does not have",
        "database: saw 'db.example.com:5432/app/jobs_held', accepted is tables that A/R does not have",
        "database: saw 'db.example.com:5432/app/late_redriven', accepted is tables that B/R does not have",
        "database: saw 'db.example.com:5432/app/late_redriven_looks', accepted is tables that B/R does not have",
    ]


def test_its_dashboard_draws_what_passes_write_and_alarms_alone_have_none(template):
    watched = synthesized(monitoring=MonitoringSettings(alarms=Alarms.ALL))
    (dashboard,) = watched.find_resources("AWS::CloudWatch::Dashboard").values()
    drawn = json.dumps(dashboard["Properties"]["DashboardBody"]).replace("\\", "")

    for one in (
        ADDED,
        "DeadLetters",
        "ParkedLetters",
        "CircuitState",
        "PassesFailed",
        "LettersFailed",
    ):
        assert f'"{one}"' in drawn
    template.resource_count_is("AWS::CloudWatch::Dashboard", 0)


def test_its_output_tells_the_command_where_all_of_it_is(template):
    outputs = template.to_json()["Outputs"]
    (value,) = (one["Value"] for name, one in outputs.items() if name == "OrdersRedriver")
    told = "".join(part if isinstance(part, str) else part["Ref"] for part in value["Fn::Join"][1])

    (place,) = read_places("Jobs", read_outputs({"OrdersRedriver": told}))

    assert (place.queue, place.deployment.location, place.mode) == (
        "orders",
        database(),
        "automatic",
    )
    assert all((place.function, place.log_group, place.warning_topic, place.paging_topic))
    assert place.alarms_known_as == ("orders",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": Settings(max_attempts=0)}, "max_attempts: saw 0"),
        (
            {"settings": {"max_attempts": 3}},
            "settings: saw {'max_attempts': 3}, accepted is a Settings",
        ),
        ({"monitoring": "paging"}, "monitoring: saw 'paging', accepted is a MonitoringSettings"),
    ],
)
def test_what_it_can_not_be_made_of_is_named(given, said):
    with pytest.raises(SettingsError) as caught:
        synthesized(**given)

    assert said in str(caught.value)


@pytest.mark.parametrize("secret", ["*", "db-?", "db-x x"])
def test_a_secret_that_stands_for_several_is_refused(secret):
    with pytest.raises(SettingsError, match="the ARN of a secret"):
        database(secret=SECRET.removesuffix("db-x") + secret)
