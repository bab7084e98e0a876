"""Entries of DLQs that SQS does not fill: origin, targets, and that all that is wrong with them is told at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.cdk.origin_config import MAX_TARGETS
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import SettingsError
from stacks.accounts import parse_homes
from stacks.settings import parse_context
from tests.infrastructure.adopted import (
    ACCOUNT,
    REGION,
    entry,
    function_arn,
    key_arn,
    origin_entry,
    queue_arn,
    subscription_arn,
)

FUNCTION = function_arn("orders")
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:order-events"
MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:orders"
STREAM = f"arn:aws:firehose:{REGION}:{ACCOUNT}:deliverystream/orders"
WEB = "https://example.com/orders"
PRIVATE = "https://hooks.internal/orders"
OF_EACH = {
    "sns": [queue_arn("orders"), FUNCTION, STREAM, WEB],
    "lambda": [FUNCTION, f"{FUNCTION}:live"],
    "eventbridge": [queue_arn("orders"), FUNCTION, MACHINE, TOPIC],
    "scheduler": [queue_arn("orders"), FUNCTION, MACHINE, TOPIC],
}
ORIGINS = ", ".join(OF_EACH)


def read(*entries: dict, **context: object):
    return parse_context({"queues": list(entries), **context}).queues


def faults_of(*entries: dict[str, Any]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse_context({"queues": list(entries)})
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("origin", "target"), [(one, target) for one in OF_EACH for target in OF_EACH[one]]
)
def test_each_target_that_an_origin_serves_is_read(origin, target):
    [queue] = read(origin_entry("orders", origin, target, max_attempts=3, stack="shop"))

    assert queue.origin_config.origin is Origin(origin)
    assert queue.origin_config.targets == (Target.parse(target),)
    assert (queue.source_arns, queue.settings.max_attempts, queue.stack) == ((), 3, "shop")
    assert (queue.account, queue.region) == (ACCOUNT, REGION)


@pytest.mark.parametrize("origin", OF_EACH)
def test_what_an_origin_does_not_serve_is_refused_with_what_it_does(origin):
    every = {one for targets in OF_EACH.values() for one in targets}
    for target in sorted(every - set(OF_EACH[origin])):
        if origin == "lambda" or target not in (FUNCTION, f"{FUNCTION}:live"):
            [fault] = faults_of(origin_entry("orders", origin, target))

            assert fault.startswith(f"queues[0].targets: saw '{target}'")
            assert f"with origin {origin}: " in fault


def test_several_subscriptions_of_a_dlq_are_named_each_with_its_target():
    first = f"{subscription_arn('order-events', 1)}={FUNCTION}"
    second = f"{subscription_arn('order-events', 2)}={WEB}"

    [queue] = read(origin_entry("orders", "sns", first, second))
    [fault] = faults_of(origin_entry("orders", "sns", FUNCTION, WEB))

    assert [str(one) for one in queue.origin_config.targets] == [first, second]
    assert fault.endswith("SUBSCRIPTION_ARN=TARGET")


def test_keys_of_targets_are_read_as_those_of_sources_are():
    [queue] = read(
        origin_entry("orders", "eventbridge", queue_arn("orders"), target_key_arn=key_arn(4))
    )

    assert queue.target_key_arns == (key_arn(4),)
    [fault] = faults_of(origin_entry("orders", "lambda", FUNCTION, target_key_arn=key_arn(4)))
    assert fault.endswith("nothing without a queue or a topic among the targets")


def test_a_targets_key_in_another_partition_than_its_region_is_refused():
    key = key_arn(4).replace("arn:aws:", "arn:aws-cn:")

    [fault] = faults_of(
        origin_entry("orders", "eventbridge", queue_arn("orders"), target_key_arn=key)
    )

    assert fault.endswith("an ARN in the partition aws, as eu-west-1 is")


def test_a_private_host_is_let_through_where_it_is_named():
    [queue] = read(origin_entry("hooks", "sns", PRIVATE, private_hosts=["hooks.internal"]))

    assert queue.origin_config.private_hosts == ("hooks.internal",)


def test_a_private_host_is_one_however_it_is_written():
    made = origin_entry(
        "hooks", "sns", "https://Hooks.internal/a", private_hosts=["HOOKS.internal"]
    )

    [queue] = read(made)

    assert queue.origin_config.private_hosts == ("HOOKS.internal",)


def test_every_fault_is_told_at_once_with_its_place():
    faults = faults_of(
        {
            "name": "a",
            "origin": "rabbitmq",
            "dead_letter_arn": queue_arn("a-dlq"),
            "targets": [WEB],
        },
        entry("b", targets=[FUNCTION], private_hosts=["hooks.internal"], target_key_arn=key_arn(1)),
        origin_entry("c", "lambda", "orders", source_arn=queue_arn("c"), private_hosts=["x"]),
        origin_entry("d", "eventbridge", dead_letter_arn=queue_arn("d-dlq.fifo"), max_attempts=0),
        origin_entry("e", "sns", queue_arn("e.fifo"), targts=["x"], source_key_arn=key_arn(1)),
    )

    places = [fault.split(": saw")[0].split(": not")[0] for fault in faults]
    assert places == [
        "queues[0].origin",
        "queues[1].targets",
        "queues[1].private_hosts",
        "queues[1].target_key_arn",
        "queues[2].source_arn",
        "queues[2].targets",
        "queues[2].private_hosts",
        "queues[3].targets",
        "queues[3].dead_letter_arn",
        "queues[3].max_attempts",
        "queues[4].targts",
        "queues[4].source_key_arn",
        "queues[4].targets",
    ]
    assert faults[0].endswith(
        'accepted is "sqs" or "sns" or "lambda" or "eventbridge" or "scheduler" or "postgres" or "kafka"'
    )


@pytest.mark.parametrize(
    ("given_entry", "sentence"),
    [
        (
            origin_entry("o", "sns", FUNCTION, source_arn=queue_arn("o")),
            "nothing with origin sns, whose letters go back to targets",
        ),
        (entry("o", targets=[FUNCTION]), "nothing with origin sqs"),
        (entry("o", origin="sqs", private_hosts=["a"]), "nothing with origin sqs"),
        (
            origin_entry("o", "eventbridge", FUNCTION, dead_letter_arn=queue_arn("d.fifo")),
            "a standard queue: origin eventbridge is served without order",
        ),
        (origin_entry("o", "eventbridge", queue_arn("o.fifo")), "a standard queue: only letters"),
        (origin_entry("o", "sns"), "what the letters go back to, one at least"),
        (origin_entry("o", "lambda", FUNCTION, FUNCTION), "each target once"),
        (
            origin_entry("o", "lambda", FUNCTION, private_hosts=["hooks.internal"]),
            "nothing without a web target",
        ),
        (
            origin_entry("o", "sns", WEB, private_hosts=["hooks.internal"]),
            "the host of one of its web targets",
        ),
        (
            origin_entry("o", "sns", "http://169.254.169.254/x", private_hosts=["169.254.169.254"]),
            "not link-local",
        ),
        (
            origin_entry(
                "o", "sns", "http://[::ffff:169.254.1.1]/", private_hosts=["::ffff:169.254.1.1"]
            ),
            "not link-local",
        ),
        (origin_entry("o", "sns", "http://10.0.0.1/"), "a URL at a public address"),
        (origin_entry("o", "sns", "http://[fec0::1]/"), "a URL at a public address"),
        (origin_entry("o", "sns", "http://localhost./"), "a URL at a public address"),
        (origin_entry("o", "sns", "http://a.localhost/"), "a URL at a public address"),
        (origin_entry("o", "sns", "http://2130706433/"), "an address in full: four numbers"),
        (origin_entry("o", "sns", "https://[::1"), "a URL with a host and maybe a port"),
        (
            origin_entry("o", "lambda", f"{subscription_arn('t')}={FUNCTION}"),
            "with origin lambda the target alone",
        ),
        (
            origin_entry("o", "sns", f"{subscription_arn('t.fifo')}={FUNCTION}"),
            "a subscription of a standard topic",
        ),
        (
            origin_entry("o", "eventbridge", FUNCTION, FUNCTION.replace(ACCOUNT, "444455556666")),
            "one that is not called lambda:",
        ),
        (
            origin_entry(
                "o",
                "eventbridge",
                *map(queue_arn, "abc"),
                target_key_arn=[key_arn(1), key_arn(2)],
            ),
            "one, or one for each of the 3 queues and topics",
        ),
        (
            origin_entry(
                "o", "eventbridge", queue_arn("a"), target_key_arn=[key_arn(1), key_arn(2)]
            ),
            "one, or one for each of the 1 queues and topics",
        ),
        (origin_entry("o", "sns", "http://[::1]/"), "a URL at a public address"),
        (origin_entry("o", "sns", "http://localhost:8080/"), "a URL at a public address"),
        (
            origin_entry("o", "sns", "https://me@example.com/"),
            "a URL with a host and maybe a port, without user",
        ),
        (origin_entry("o", "sns", "file:///etc/passwd"), "or a URL"),
        (origin_entry("o", "sns", f"https://example.com/{'x' * 200}"), "at most 200 ASCII"),
        (origin_entry("o", "sns", "https://exämple.com/"), "at most 200 ASCII"),
        (origin_entry("o", "sns", 5), "a text, or a list of texts"),  # type: ignore[arg-type]
        (
            origin_entry("o", "lambda", FUNCTION.replace(REGION, "us-east-1")),
            "what is in eu-west-1, where the DLQ is",
        ),
        (
            origin_entry("o", "eventbridge", queue_arn("q").replace(REGION, "us-east-1")),
            "what is in eu-west-1, where the DLQ is",
        ),
        (
            origin_entry("o", "sns", STREAM.replace(REGION, "us-east-1")),
            "what is in eu-west-1, where the DLQ is",
        ),
        (
            origin_entry(
                "o", "sns", queue_arn("q"), target_key_arn=key_arn(1).replace("eu-w", "us-w")
            ),
            "a key of eu-west-1, where its target is",
        ),
        (
            origin_entry(
                "o",
                "sns",
                f"{subscription_arn('t').replace(REGION, 'us-east-1')}={FUNCTION}",
            ),
            "what is in eu-west-1, where the DLQ is",
        ),
        (
            origin_entry("o", "sns", FUNCTION.replace("arn:aws:", "arn:aws-us-gov:")),
            "what is in the partition aws, as the DLQ is",
        ),
        (
            origin_entry("o", "scheduler", MACHINE.replace(ACCOUNT, "444455556666")),
            "one of the account 111122223333",
        ),
        (
            origin_entry("o", "sns", STREAM.replace(ACCOUNT, "444455556666")),
            "one of the account 111122223333",
        ),
        (origin_entry("o", "sns", queue_arn("o-dlq")), "another queue than dead_letter_arn"),
        (
            origin_entry("o", "lambda", *(function_arn(f"f{one}") for one in range(11))),
            f"at most {MAX_TARGETS}",
        ),
        (
            origin_entry("o", "sns", f"https://example.com/?{'x' * 2000}"),
            "at most 2000 characters, as the function's environment has 4 KB",
        ),
    ],
)
def test_a_fault_says_what_would_do(given_entry, sentence):
    [fault] = faults_of(given_entry)

    assert sentence in fault


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        (
            [
                origin_entry("a", "lambda", FUNCTION),
                origin_entry("b", "sns", FUNCTION, dead_letter_arn=queue_arn("a-dlq")),
            ],
            "queues[1].dead_letter_arn",
        ),
        (
            [entry("orders"), origin_entry("Orders", "lambda", FUNCTION)],
            "queues[1].name",
        ),
        (
            [origin_entry("a", "lambda", FUNCTION), origin_entry("b", "sns", FUNCTION)],
            "queues[1].targets[0]",
        ),
        (
            [entry("orders"), origin_entry("b", "sns", queue_arn("orders-dlq"))],
            "queues[1].targets[0]",
        ),
    ],
)
def test_what_clashes_with_another_entry_is_refused(entries, place):
    assert place in [fault.split(": saw")[0] for fault in faults_of(*entries)]


def test_a_target_of_another_account_is_let_through_where_its_owner_can_allow_it():
    far = [one.replace(ACCOUNT, "444455556666") for one in (queue_arn("orders"), FUNCTION, TOPIC)]

    [queue] = read(origin_entry("orders", "eventbridge", *far))

    assert len(queue.origin_config.targets) == 3


def test_sns_reaches_queues_and_functions_of_another_region_with_a_key_from_there():
    far = [one.replace(REGION, "us-east-1") for one in (queue_arn("orders"), FUNCTION)]
    named = [f"{subscription_arn('t', number)}={one}" for number, one in enumerate(far, 1)]
    key = key_arn(1).replace(REGION, "us-east-1")

    [queue] = read(origin_entry("orders", "sns", *named, target_key_arn=key))

    assert [one.place for one in queue.origin_config.targets] == far
    assert (queue.region, queue.target_key_arns) == (REGION, (key,))


def test_two_lists_for_one_place_cannot_have_the_same_target(tmp_path):
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(
            f'stack = "{name}"\n[[queues]]\nname = "{name}"\norigin = "lambda"\n'
            f'targets = ["{FUNCTION}"]\ndead_letter_arn = "{queue_arn(name)}"\n'
        )

    with pytest.raises(SettingsError) as caught:
        parse_homes({"queues": ",".join(map(str, files))})

    assert "a name and queues that" in str(caught.value)


_ANY = st.one_of(st.text(max_size=40), st.integers(), st.booleans(), st.none())
_HOSTILE = st.lists(
    st.one_of(
        _ANY,
        st.sampled_from(
            [FUNCTION, WEB, PRIVATE, MACHINE, "", " ", "file:///x", "http://", "http://[::", "a=b"]
        ),
    ),
    max_size=4,
)


@given(origin=st.one_of(_ANY, st.sampled_from(list(OF_EACH))), targets=_HOSTILE, hosts=_HOSTILE)
def test_an_entry_is_read_or_refused_and_nothing_that_is_not_listed_gets_in(origin, targets, hosts):
    made = {
        **origin_entry("o", "sns"),
        "origin": origin,
        "targets": targets,
        "private_hosts": hosts,
    }

    read_or_refused = outcome_of(made)

    if isinstance(read_or_refused, SettingsError):
        assert read_or_refused.faults
        assert all(fault.setting.startswith("queues[0]") for fault in read_or_refused.faults)
    else:
        assert [str(one) for one in read_or_refused.origin_config.targets] == targets
        assert list(read_or_refused.origin_config.private_hosts) == hosts


def outcome_of(made: dict[str, Any]):
    """The queue, or what is wrong with it."""
    try:
        [queue] = read(made)
    except SettingsError as error:
        return error
    return queue
