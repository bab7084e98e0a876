"""Worker queues in a list of queues: `origin = "postgres"`, what it makes, and the sentences for what is wrong."""

import json
import math
import tomllib
from dataclasses import fields
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest
from aws_cdk.assertions import Template

from smart_redriver.cdk.queue_entry import read_adopted_queues
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import Origin
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.places import read_outputs, read_places
from smart_redriver.postgres.cdk.entry import JobsEntry
from smart_redriver.postgres.engine.place import JobsDatabase
from stacks.accounts import parse_homes
from stacks.redriver_stack import make_stack
from stacks.settings import read_context
from tests.infrastructure.adopted import (
    ACCOUNT,
    REGION,
    by_iam,
    entry,
    jobs_entry,
    secret_arn,
    shared_entry,
)
from tests.infrastructure.conftest import ROOT, make_app


def read(*entries, **global_values):
    return read_adopted_queues(list(entries), global_values)


def faults(*entries, **global_values) -> list[tuple[str, str]]:
    with pytest.raises(SettingsError) as refused:
        read(*entries, **global_values)
    return [(one.setting, one.accepted) for one in refused.value.faults]


def named(*entries, **global_values) -> list[str]:
    return [setting for setting, _ in faults(*entries, **global_values)]


def stack_of(*entries, **context):
    app = make_app(queues=list(entries), **context)
    return make_stack(app, read_context(app.node))


def joined(value) -> str:
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return value["Ref"]
    if "Fn::If" in value:
        return joined(value["Fn::If"][2])
    return "".join(map(joined, value["Fn::Join"][1]))


@pytest.fixture(scope="module")
def template() -> Template:
    return Template.from_stack(
        stack_of(entry("orders"), jobs_entry("jobs", max_attempts=7), oncall_policies="true")
    )


def test_an_entry_is_read_with_its_home_network_database_and_settings():
    (jobs,) = read(jobs_entry("jobs", max_attempts=7, stack="shop"), max_attempts=3)

    assert (jobs.name, jobs.id, jobs.stack) == ("jobs", "Jobs", "shop")
    assert (jobs.region, jobs.account) == (REGION, ACCOUNT)
    assert jobs.database == JobsDatabase.of(
        {"host": "jobs.example.com", "dbname": "app", "secret": secret_arn("jobs")}
    )
    assert jobs.safeguards.vpc_subnet_ids == ("subnet-0123456789abcdef0",)
    assert jobs.settings.max_attempts == 7


def test_the_network_of_the_deployment_is_the_databases_where_the_entry_names_none():
    given = jobs_entry("jobs")
    network = {key: given.pop(key) for key in list(given) if key.startswith("vpc_")}

    (jobs,) = read(given, **network)

    assert jobs.safeguards.vpc_id == network["vpc_id"]
    assert named(given) == ["queues[0].vpc_id"]


def test_the_command_finds_it_beside_a_queue_of_sqs(template):
    outputs = template.to_json()["Outputs"]
    told = read_outputs({name: joined(output["Value"]) for name, output in outputs.items()})

    jobs, orders = read_places("SmartRedriver", told)

    assert (jobs.queue, jobs.origin, orders.queue) == ("jobs", Origin.POSTGRES, "orders")
    assert jobs.deployment.location.secret == secret_arn("jobs")
    assert jobs.deployment.table_name == orders.deployment.table_name
    assert jobs.alarms_known_as == ("jobs",)
    assert jobs.mode == "automatic"


def test_the_function_reads_what_synth_wrote_and_shares_table_and_topics(template):
    functions = template.find_resources("AWS::Lambda::Function").values()
    (told,) = (
        one["Properties"]["Environment"]["Variables"]
        for one in functions
        if "DATABASE" in one["Properties"]["Environment"]["Variables"]
    )

    read_back = Deployment.from_env(told | {"DYNAMODB_TABLE_NAME": "state"})

    assert (read_back.origin, told["MAX_ATTEMPTS"]) == (Origin.POSTGRES, "7")
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 1)
    template.resource_count_is("AWS::SNS::Topic", 2)


def test_people_are_given_policies_of_their_own_for_it(template):
    policies = {
        name: {
            action
            for statement in one["Properties"]["PolicyDocument"]["Statement"]
            for action in (
                [statement["Action"]]
                if isinstance(statement["Action"], str)
                else statement["Action"]
            )
        }
        for name, one in template.find_resources("AWS::IAM::ManagedPolicy").items()
        if "Jobs" in name and "OnCall" in name
    }

    (viewer,) = (actions for name, actions in policies.items() if "Viewer" in name)
    (operator,) = (actions for name, actions in policies.items() if "Operator" in name)
    assert "secretsmanager:GetSecretValue" in viewer & operator
    assert "lambda:InvokeFunction" in operator - viewer
    assert not [one for one in viewer | operator if one.startswith("sqs:")]


def test_authorities_go_along_in_the_functions_bundle(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates")

    (jobs,) = read(jobs_entry("jobs", authorities=str(bundle)))

    assert jobs.authorities == bundle
    assert named(jobs_entry("jobs", authorities="nowhere.pem")) == ["queues[0].authorities"]


def test_a_database_by_iam_says_where_it_is():
    (jobs,) = read(by_iam("jobs", database_resource_id="db-ABC"))
    assert (jobs.region, jobs.account, jobs.database_resource_id) == (REGION, ACCOUNT, "db-ABC")

    nowhere = by_iam("jobs")
    del nowhere["region"], nowhere["account"]
    assert named(nowhere) == ["queues[0].region", "queues[0].account"]


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"database": None}, ["queues[0].database"]),
        ({"database": "db.example.com"}, ["queues[0].database"]),
        (
            {"database": {"secret": secret_arn("jobs")}},
            ["queues[0].database.host", "queues[0].database.dbname"],
        ),
        (
            {"database": {"host": "h", "dbname": "d", "secret": secret_arn("jobs"), "prot": 1}},
            ["queues[0].database.prot"],
        ),
        (
            {
                "database": {
                    "host": "h",
                    "dbname": "d",
                    "secret": secret_arn("jobs"),
                    "sslmode": "require",
                }
            },
            ["queues[0].database.sslmode"],
        ),
        (
            {
                "database": {
                    "host": "h",
                    "dbname": "d",
                    "secret": secret_arn("jobs").replace(":aws:", ":aws-cn:"),
                }
            },
            ["queues[0].database.secret"],
        ),
        ({"vpc_id": "vpc"}, ["queues[0].vpc_id"]),
        ({"database_resource_id": "db"}, ["queues[0].database_resource_id"]),
        ({"source_arn": "arn:aws:sqs:eu-west-1:111122223333:jobs"}, ["queues[0].source_arn"]),
        ({"targets": []}, ["queues[0].targets"]),
        ({"max_attempts": 0}, ["queues[0].max_attempts"]),
        ({"name": "jobs.late"}, ["queues[0].name"]),
        ({"datbase": {}}, ["queues[0].datbase"]),
        ({"region": 5}, ["queues[0].region"]),
        ({"authorities": "x" * 5000}, ["queues[0].authorities"]),
    ],
    ids=str,
)
def test_what_is_missing_or_wrong_is_told_with_its_place(change, places):
    assert named(jobs_entry("jobs") | change) == places


def test_what_two_entries_may_not_share_is_told():
    first, second = jobs_entry("jobs"), jobs_entry("late")
    second["database"] = first["database"]
    orders = shared_entry("shop", "orders", "refunds")

    assert set(faults(first, second)) == {
        ("queues[1].database", "tables of one entry alone, see queues[0].database")
    }
    assert faults(orders, jobs_entry("orders")) == [
        ("queues[1].name", "a name that no source queue has, see queues[0].source_arn[0]")
    ]
    assert named(jobs_entry("jobs"), shared_entry("jobs", "others")) == ["queues[1].name"]


OTHERS = {one: f"late_{one}" for one in ("jobs", "dead_letters", "parked", "held", "redriven")}


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({}, None),
        ({"jobs": "public.jobs"}, "jobs.example.com:5432/app/jobs"),
        ({"parked": "jobs_parked"}, "jobs.example.com:5432/app/jobs_parked"),
        ({"host": "JOBS.example.com.", "held": "jobs_held"}, "jobs.example.com:5432/app/jobs_held"),
        ({"jobs": "jobs_redriven_looks"}, "jobs.example.com:5432/app/jobs_redriven_looks"),
        ({"jobs": "jobs", "dbname": "other"}, None),
        ({"jobs": "jobs", "port": 5433}, None),
        ({"jobs": "work.jobs"}, None),
    ],
    ids=str,
)
def test_two_queues_of_one_database_share_no_table_however_it_is_spelt(change, shared):
    first, second = jobs_entry("jobs"), jobs_entry("late")
    second["database"] = first["database"] | OTHERS | change

    if shared is None:
        assert len(read(first, second)) == 2
        return
    with pytest.raises(SettingsError) as refused:
        read(first, second)
    assert [(one.setting, one.seen) for one in refused.value.faults] == [
        ("queues[1].database", shared)
    ]


ODD = [
    math.nan, math.inf, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), time(1), True, {}, {"a": 1}, [[]], [{}],
    -1, 1.5, 10**400, "\x00", "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("make", [jobs_entry, by_iam])
def test_whatever_toml_can_say_is_told_in_a_sentence(make):
    """Somewhere each of them would end in a traceback, which names no entry."""
    entry_keys = (*JobsEntry.places, *Settings.names())
    given = [
        make("jobs") | {key: odd}
        for key in entry_keys
        for odd in ODD
        if (key, odd) != ("max_rate", 1.5)
    ]
    given += [
        make("jobs") | {"database": make("jobs")["database"] | {one.name: odd}}
        for one in fields(JobsDatabase)
        for odd in ODD
        if not (odd == {} and one.name in ("columns", "ids"))
    ]

    for one in given:
        with pytest.raises(SettingsError) as refused:
            read(one, make("late"))
        assert all(fault.setting.startswith("queues[0]") for fault in refused.value.faults)


def test_homes_tell_worker_queues_of_several_regions_apart():
    far = jobs_entry("jobs")
    secret = secret_arn("jobs").replace(REGION, "us-east-1")
    far["database"] = {"host": "far.example.com", "dbname": "app", "secret": secret}

    homes = parse_homes({"queues": [jobs_entry("jobs"), far]})

    assert [(one.queues[0].region, one.queues[0].account) for one in homes] == [
        (REGION, ACCOUNT),
        ("us-east-1", ACCOUNT),
    ]


def test_two_lists_of_one_place_share_no_table(tmp_path):
    files = []
    for name, stack in (("jobs", ""), ("late", "late")):
        database = {"host": "db.example.com", "dbname": "app", "secret": secret_arn(name)}
        network = {key: value for key, value in jobs_entry(name).items() if key.startswith("vpc_")}
        told = {"name": name, "origin": "postgres", **network} | ({"stack": stack} if stack else {})
        lines = ["[[queues]]", *(f"{key} = {json.dumps(value)}" for key, value in told.items())]
        lines += ["[queues.database]", *(f'{key} = "{one}"' for key, one in database.items())]
        file = tmp_path / f"{name}.toml"
        file.write_text("\n".join(lines))
        files.append(str(file))

    with pytest.raises(SettingsError) as refused:
        parse_homes({"queues": ",".join(files)})

    (fault,) = refused.value.faults
    assert (fault.seen, fault.accepted) == ("late", f"a name and queues that {files[0]} has not")


def test_the_example_in_the_documentation_is_read_as_it_stands(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "postgres.md").read_text()
    (block,) = (
        part.split("```")[0] for part in text.split("```toml\n")[1:] if "[[queues]]" in part
    )
    monkeypatch.chdir(tmp_path)
    Path("global-bundle.pem").write_text("certificates")

    (jobs,) = read(*tomllib.loads(block)["queues"])

    assert jobs.database.host
    assert json.loads(jobs.database.encode())["secret"]
