"""The list of existing queues: what may be in it, and that all its faults are told at once with their place."""

import json

import pytest

from smart_redriver.cdk.queue_clashes import MAX_QUEUES, MAX_SOURCES
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.errors import SettingsError
from stacks.settings import parse_context
from tests.infrastructure.adopted import entry, key_arn, queue_arn, shared_entry
from tests.infrastructure.app_process import UNBUNDLED, run_app


def read(*entries: dict, **context: object):
    return parse_context({"queues": list(entries), **context}).queues


def faults_of(queues: object, **context: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_context({"queues": queues, **context})
    return [str(fault) for fault in caught.value.faults]


def test_a_queue_has_a_name_its_source_and_its_dlq():
    [queue] = read(entry("orders"))

    assert queue.name == "orders"
    assert queue.source_arns == (queue_arn("orders"),)
    assert queue.dead_letter_arn == queue_arn("orders-dlq")
    assert (queue.account, queue.region) == ("111122223333", "eu-west-1")


def test_the_name_makes_the_prefix_of_outputs():
    assert [queue.id for queue in read(entry("orders"), entry("web-Orders2"))] == [
        "Orders",
        "WebOrders2",
    ]


def test_several_sources_share_one_dlq():
    [queue] = read(shared_entry("refunds", "refunds", "returns"))

    assert queue.source_arns == (queue_arn("refunds"), queue_arn("returns"))


def test_keys_are_read_for_each_role():
    [queue] = read(
        entry(
            "orders",
            source_key_arn=key_arn(1),
            dead_letter_key_arn=key_arn(2),
            parking_lot_key_arn=key_arn(3),
        )
    )

    assert queue.source_key_arns == (key_arn(1),)
    assert (queue.dead_letter_key_arn, queue.parking_lot_key_arn) == (key_arn(2), key_arn(3))


def test_a_queues_settings_go_over_the_global_ones():
    first, second = read(
        entry("orders", max_attempts=2), entry("mails"), max_attempts="7", mode="dry_run"
    )

    assert (first.settings.max_attempts, second.settings.max_attempts) == (2, 7)
    assert first.settings.mode is second.settings.mode is Mode.DRY_RUN


def test_a_list_can_be_a_toml_file(tmp_path):
    path = tmp_path / "queues.toml"
    path.write_text(
        f"""
        [[queues]]
        name = "orders"
        source_arn = "{queue_arn("orders")}"
        dead_letter_arn = "{queue_arn("orders-dlq")}"
        max_rate = 12.5
        """
    )

    [queue] = parse_context({"queues": str(path)}).queues

    assert queue == read(entry("orders", max_rate=12.5))[0]


def test_every_fault_is_told_at_once_with_its_place():
    faults = faults_of(
        [
            {"name": "1st", "source_arn": "orders", "max_atempts": 3, "colour": "red"},
            entry("mails", max_attempts=0, source_key_arn="alias/mails"),
            shared_entry("refunds", "refunds", "returns.fif", max_receive_count=3),
        ],
        max_window="many",
    )

    assert [fault.split(": saw")[0].split(": not")[0] for fault in faults] == [
        "max_window",
        "queues[0].max_atempts",
        "queues[0].colour",
        "queues[0].name",
        "queues[0].source_arn",
        "queues[0].dead_letter_arn",
        "queues[1].source_key_arn",
        "queues[1].max_attempts",
        "queues[2].max_receive_count",
        "queues[2].source_arn[1]",
    ]
    assert faults[1].endswith("the name max_attempts (nothing is called max_atempts)")


@pytest.mark.parametrize("name", ["tags", "retain", "vpc_id", "dashboard_widget"])
def test_a_setting_of_the_stack_in_an_entry_is_sent_to_its_place(name):
    """`tags` is near `targets`, which an entry may have."""
    assert faults_of([entry("orders", **{name: "team=payments"})]) == [
        f"queues[0].{name}: saw 'team=payments', accepted is nothing: it is for the whole stack, above the queues "
        f"or by `-c {name}=`"
    ]


def test_a_queue_in_another_partition_than_its_region_is_refused_at_its_place():
    dead = queue_arn("orders-dlq").replace("arn:aws:", "arn:aws-cn:")

    assert faults_of([entry("orders", dead_letter_arn=dead)]) == [
        f"queues[0].dead_letter_arn: saw '{dead}', accepted is an ARN in the partition aws, as eu-west-1 is"
    ]


def test_a_wrong_global_setting_is_told_once_and_not_by_every_queue():
    assert faults_of([entry("orders"), entry("mails")], max_window="many") == [
        "max_window: saw 'many', accepted is a whole number from 1 to 100000 "
        "(letters awaiting a verdict at most)"
    ]


@pytest.mark.parametrize(
    ("queues", "place"),
    [
        ([entry("orders"), entry("Orders", source_arn=queue_arn("o2"))], "queues[1].name"),
        (
            [entry("orders"), entry("o2", source_arn=queue_arn("orders"))],
            "queues[1].source_arn",
        ),
        (
            [entry("orders"), entry("o2", dead_letter_arn=queue_arn("orders-dlq"))],
            "queues[1].dead_letter_arn",
        ),
        ([entry("orders", source_arn=queue_arn("orders-dlq"))], "queues[0].source_arn"),
        (
            [entry("orders", dead_letter_arn="arn:aws:sqs:us-east-1:111122223333:dlq")],
            "queues[0].source_arn",
        ),
        (
            [entry("orders", source_arn="arn:aws:sqs:eu-west-1:444455556666:orders")],
            "queues[0].source_arn",
        ),
    ],
)
def test_what_clashes_with_another_entry_is_refused(queues, place):
    assert [fault.split(":")[0] for fault in faults_of(queues) if place in fault] == [place]


def test_a_key_may_be_of_another_account_but_not_of_another_region():
    assert read(entry("orders", source_key_arn=key_arn(1, account="444455556666")))
    elsewhere = key_arn(1).replace("eu-west-1", "us-east-1")

    [fault] = faults_of([entry("orders", source_key_arn=elsewhere)])

    assert fault.startswith("queues[0].source_key_arn: saw")
    assert fault.endswith("a key of eu-west-1")


@pytest.mark.parametrize("name", ["source_key_arn", "dead_letter_key_arn", "parking_lot_key_arn"])
def test_a_key_in_another_partition_than_its_region_is_refused(name):
    """A policy with this ARN grants nothing, so that no pass can read the queue."""
    key = key_arn(1).replace("arn:aws:", "arn:aws-cn:")

    assert faults_of([entry("orders", **{name: key})]) == [
        f"queues[0].{name}: saw '{key}', accepted is an ARN in the partition aws, as eu-west-1 is"
    ]


@pytest.mark.parametrize("queues", [[], "", "no/such/file.toml", 5, {"orders": {}}, ["orders"]])
def test_what_is_no_list_of_queues_is_one_fault(queues):
    [fault] = faults_of(queues)

    assert fault.startswith("queues: saw")
    assert "[[queues]]" in fault or "TOML" in fault


def test_a_list_that_an_editor_began_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "queues.toml"
    path.write_text(
        f"""\ufeff[[queues]]
        name = "orders"
        source_arn = "{queue_arn("orders")}"
        dead_letter_arn = "{queue_arn("orders-dlq")}"
        """
    )

    assert [one.name for one in parse_context({"queues": str(path)}).queues] == ["orders"]


def test_broken_toml_is_told_with_its_line(tmp_path):
    path = tmp_path / "queues.toml"
    path.write_text("[[queues]]\nname = orders\n")

    [fault] = faults_of(str(path))

    assert "line 2" in fault


def test_queues_that_exist_have_no_sample_consumer():
    [fault] = faults_of([entry("orders")], with_sample_consumer="true")

    assert fault.startswith("with_sample_consumer: saw True, accepted is false")


def test_more_queues_than_a_stack_can_hold_are_refused_by_their_number():
    too_many = [entry(f"orders-{index}") for index in range(MAX_QUEUES + 1)]

    assert faults_of(too_many) == [
        f"queues: saw {MAX_QUEUES + 1}, accepted is at most {MAX_QUEUES} in the stack, "
        "since it may have 500 resources: give others another `stack`"
    ]


def test_as_many_again_fit_into_another_stack_and_a_place_of_their_own():
    full = [entry(f"orders-{index}") for index in range(MAX_QUEUES)]
    beside = [entry(f"mails-{index}", stack="mails") for index in range(MAX_QUEUES)]
    away = [abroad(f"orders-{index}") for index in range(MAX_QUEUES)]

    queues = read(*full, *beside, *away)

    assert len(queues) == 3 * MAX_QUEUES
    assert {queue.stack for queue in queues} == {"", "mails"}
    assert faults_of([*full, *beside, entry("one-more", stack="mails")]) == [
        f"queues: saw {MAX_QUEUES + 1}, accepted is at most {MAX_QUEUES} in the stack 'mails', "
        "since it may have 500 resources: give others another `stack`"
    ]


def test_a_stack_is_said_for_all_queues_and_by_one_of_them_otherwise():
    first, second = read(entry("orders"), entry("mails", stack="post"), stack="shop")

    assert (first.stack, second.stack) == ("shop", "post")


@pytest.mark.parametrize("stack", ["", "-shop", "my_shop", 5, "a" * 42])
def test_a_stack_that_cannot_be_named_so_is_refused(stack):
    assert faults_of([entry("orders", stack=stack)])[0].startswith("queues[0].stack: saw")


def test_a_name_is_one_queues_in_an_account_and_region_whatever_stack_it_is_in():
    assert read(entry("orders"), abroad("orders"))
    twice = [
        entry("orders"),
        entry("Orders", stack="shop", source_arn=queue_arn("o2"), dead_letter_arn=queue_arn("d2")),
    ]

    [fault] = faults_of(twice)

    assert fault.startswith("queues[1].name: saw 'Orders'")


def abroad(name: str) -> dict:
    """A queue in another Region."""
    arn = queue_arn(name).replace("eu-west-1", "us-east-1")
    return entry(name, source_arn=arn, dead_letter_arn=f"{arn}-dlq")


def test_more_sources_than_a_dlq_can_name_are_refused():
    sources = [f"orders-{index}" for index in range(MAX_SOURCES + 1)]

    assert faults_of([shared_entry("orders", *sources)]) == [
        "queues[0].source_arn: saw '11 of them', accepted is at most 10"
    ]


def test_faults_in_a_file_end_the_app_with_one_message(tmp_path):
    path = tmp_path / "queues.toml"
    path.write_text(f'[[queues]]\nname = "orders"\nsource_arn = {json.dumps(queue_arn("orders"))}')

    done = run_app(tmp_path / "out", UNBUNDLED | {"queues": str(path)})

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "1 fault(s) in the settings:",
        "  queues[0].dead_letter_arn: not given, accepted is the ARN of an SQS queue",
    ]
