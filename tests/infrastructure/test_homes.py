"""One app for several accounts and Regions: a list is a home, with what stands above its queues for itself."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.errors import SettingsError
from stacks.accounts import make_stacks, parse_homes, read_homes
from stacks.settings import parse_context
from tests.infrastructure.adopted import entry, key_arn, queue_arn
from tests.infrastructure.conftest import make_app


def a_list(
    folder: Path, region: str, *above: str, account: str = "111122223333", more: str = ""
) -> str:
    arn = f"arn:aws:sqs:{region}:{account}:orders"
    queue = f'[[queues]]\nname = "orders"\nsource_arn = "{arn}"\ndead_letter_arn = "{arn}-dlq"'
    path = folder / f"queues-{region}-{account}.toml"
    path.write_text("\n".join([*above, queue, more]))
    return str(path)


def faults_of(**values: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_homes(values)
    return [str(fault) for fault in caught.value.faults]


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    key = key_arn(9)
    return [
        a_list(tmp_path, "eu-west-1", f'encryption_key_arn = "{key}"', 'mode = "dry_run"'),
        a_list(tmp_path, "us-east-1", "max_attempts = 7", account="444455556666"),
    ]


def test_what_stands_above_the_queues_is_of_their_home_alone(two):
    here, there = parse_homes({"queues": ",".join(two), "max_attempts": "3"})

    assert (here.settings.mode, here.settings.max_attempts) == (Mode.DRY_RUN, 3)
    assert (there.settings.mode, there.settings.max_attempts) == (Mode.AUTOMATIC, 7)
    assert here.queues[0].settings.mode is Mode.DRY_RUN
    assert (here.safeguards.encryption_key_arn, there.safeguards.encryption_key_arn) == (
        key_arn(9),
        "",
    )


def test_a_list_of_paths_in_cdk_json_is_the_same(two):
    assert parse_homes({"queues": two}) == parse_homes({"queues": ", ".join(two)})


def test_each_home_has_a_stack_of_the_one_name_in_its_own_account_and_region(two):
    app = make_app(queues=two, alarms="paging")

    stacks = make_stacks(app, read_homes(app.node))

    assert [(one.stack_name, one.region, one.account) for one in stacks] == [
        ("SmartRedriver", "eu-west-1", "111122223333"),
        ("SmartRedriver", "us-east-1", "444455556666"),
    ]
    assert len({one.artifact_id for one in stacks}) == 2


def test_a_stack_keeps_its_logical_ids_when_another_home_joins(two):
    alone, together = (make_app(queues=one, alarms="paging") for one in (two[0], two))
    stacks = [make_stacks(app, read_homes(app.node))[0] for app in (alone, together)]

    before, after = (set(Template.from_stack(one).to_json()["Resources"]) for one in stacks)

    assert before == after
    assert stacks[0].artifact_id == "SmartRedriver"


def test_without_several_lists_there_is_one_home(two):
    assert parse_homes({}) == (parse_context({}),)
    assert parse_homes({"queues": two[0]}) == (parse_context({"queues": two[0]}),)


def test_faults_of_all_lists_are_told_at_once_each_with_its_file(tmp_path):
    one = a_list(tmp_path, "eu-west-1", "max_atempts = 3")
    other = a_list(tmp_path, "us-east-1", more='dead_letter_key_arn = "alias/x"')

    first, second = faults_of(queues=f"{one},{other}")

    assert first.startswith(f"{one}: max_atempts: saw 3, accepted is the name max_attempts")
    assert second.startswith(f"{other}: queues[0].dead_letter_key_arn: saw 'alias/x'")


def test_a_home_has_one_list(tmp_path):
    one = a_list(tmp_path, "eu-west-1")
    again = tmp_path / "again.toml"
    again.write_text(Path(one).read_text().replace("orders", "mails"))

    [fault] = faults_of(queues=[one, str(again)])

    assert fault == (
        f"queues: saw '{again}', accepted is a list for another account, Region or `stack` than {one}"
    )


def test_lists_of_one_home_may_be_of_several_stacks(tmp_path):
    one = a_list(tmp_path, "eu-west-1")
    other = tmp_path / "mails.toml"
    mails = Path(one).read_text().replace("orders", "mails")
    other.write_text(f'stack = "mails"\nmax_attempts = 7\n{mails}')

    first, second = parse_homes({"queues": [one, str(other)]})

    assert (first.stack_name, second.stack_name) == ("SmartRedriver", "SmartRedriver-mails")
    assert (first.settings.max_attempts, second.settings.max_attempts) == (5, 7)


def test_a_name_or_a_queue_in_two_lists_of_one_home_is_refused(tmp_path):
    one = a_list(tmp_path, "eu-west-1")
    again = tmp_path / "again.toml"
    again.write_text('stack = "again"\n' + Path(one).read_text())

    assert faults_of(queues=[one, str(again)]) == [
        f"{again}: queues: saw 'orders', accepted is a name and queues that {one} has not"
    ]


def test_one_list_may_have_several_homes_since_arns_say_where_each_is():
    queues = [entry("orders"), elsewhere("orders"), entry("mails", stack="post")]
    app = make_app(queues=queues, alarms="paging")

    stacks = make_stacks(app, read_homes(app.node))

    assert [(one.artifact_id, one.stack_name, one.region) for one in stacks] == [
        ("SmartRedriver-eu-west-1-111122223333", "SmartRedriver", "eu-west-1"),
        ("SmartRedriver-us-east-1-444455556666", "SmartRedriver", "us-east-1"),
        ("SmartRedriver-post-eu-west-1-111122223333", "SmartRedriver-post", "eu-west-1"),
    ]
    told = [Template.from_stack(one).to_json()["Outputs"].get("RedriverStacks") for one in stacks]
    assert told == [{"Value": "SmartRedriver SmartRedriver-post"}, None, None]


def test_a_stack_keeps_its_template_when_its_queues_neighbours_go_into_stacks_of_their_own():
    alone = make_app(queues=[entry("orders")])
    together = make_app(queues=[entry("orders"), entry("mails", stack="post")])
    stacks = [make_stacks(app, read_homes(app.node))[0] for app in (alone, together)]

    before, after = (Template.from_stack(one).to_json() for one in stacks)

    assert before["Resources"] == after["Resources"]
    assert after["Outputs"].keys() - before["Outputs"].keys() == {"RedriverStacks"}


def test_where_there_are_several_stacks_one_is_the_first():
    one, other = entry("orders", stack="shop"), entry("mails", stack="post")

    assert faults_of(queues=[one, other]) == [
        "stack: saw ['shop', 'post'], accepted is some queues of eu-west-1/111122223333 without one, "
        "since `redrive` finds the others by SmartRedriver"
    ]
    assert [home.stack_name for home in parse_homes({"queues": [one]})] == ["SmartRedriver-shop"]


def test_a_stack_of_queues_of_its_own_may_be_called_otherwise():
    [home] = parse_homes({"stack": "trial"})

    assert home.stack_name == "SmartRedriver-trial"


def elsewhere(name: str) -> dict[str, Any]:
    """A queue in another account and Region."""
    arn = f"arn:aws:sqs:us-east-1:444455556666:{name}"
    return entry(name, source_arn=arn, dead_letter_arn=f"{arn}-dlq")


def test_a_misspelt_key_above_the_queues_is_refused_in_one_list_too(tmp_path):
    """It used to be read by nobody: `mode = "dry_run"` above the queues was deployed as automatic."""
    path = a_list(tmp_path, "eu-west-1", 'modee = "dry_run"')

    [fault] = faults_of(queues=path)

    assert fault.startswith("modee: saw 'dry_run'")
    assert queue_arn("orders") in Path(path).read_text()


def test_a_file_that_is_named_twice_is_refused(two):
    here, there = two

    assert faults_of(queues=f"{here},{here}") == [
        f"queues: saw '{here}', accepted is each list once"
    ]
    assert faults_of(queues=[here, there, here]) == [
        f"queues: saw '{here}', accepted is each list once"
    ]
