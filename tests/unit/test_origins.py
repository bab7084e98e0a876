"""Whose a letter of another origin than SQS is: by recorded letters, by hostile ones, and by garbage."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.targets import SERVED, Origin, Target
from smart_redriver.engine.messages.letter import Letter, Unfit
from smart_redriver.engine.messages.origins import read_record, recognise, text_of
from smart_redriver.engine.reports.outcomes import error_of
from tests.unit.examples import SOURCE_ARN, a_letter, some_metadata
from tests.unit.garbage import DEEP, SOME_ATTRIBUTES, bodies
from tests.unit.origin_letters import (
    ENDPOINT,
    FUNCTION,
    FUNCTION_ARN,
    MACHINE,
    MACHINE_ARN,
    OTHER_SUBSCRIPTION,
    QUEUE,
    QUEUE_ARN,
    REQUEST_ID,
    STREAM,
    SUBSCRIPTION,
    TOPIC,
    TOPIC_ARN,
    envelope,
    of_destination,
    of_function,
    of_rule,
    of_schedule,
    of_sns,
    record,
    sent,
    subscribed,
    texts,
    universal,
)

UNKNOWN, INCOMPLETE = Unfit.UNKNOWN_ORIGIN, Unfit.INCOMPLETE
OTHERS = [one for one in Origin if SERVED[one]]
ALL = (FUNCTION, QUEUE, MACHINE, TOPIC, STREAM, ENDPOINT)


def whose(letter: Letter, origin: Origin, *targets: Target) -> str | Unfit | None:
    """The place of its target, or why it is unfit."""
    seen = recognise(letter, origin, targets)
    return seen.unfit or seen.source_arn


def test_a_queues_letters_are_left_alone() -> None:
    letter = a_letter()

    assert recognise(letter, Origin.SQS, ()) is letter


@pytest.mark.parametrize("origin", OTHERS)
def test_a_letter_that_sqs_moved_is_of_the_queue_that_sqs_names_if_that_is_listed(
    origin: Origin,
) -> None:
    moved = a_letter(source_arn=SOURCE_ARN)

    assert whose(moved, origin, QUEUE, FUNCTION) == SOURCE_ARN == QUEUE_ARN
    assert whose(moved, origin, FUNCTION) is UNKNOWN


@pytest.mark.parametrize("origin", OTHERS)
def test_a_letter_that_was_recognised_stays_so(origin: Origin) -> None:
    once = recognise(of_function(), Origin.LAMBDA, (FUNCTION,))

    assert recognise(once, origin, (FUNCTION,)) == once


class TestSns:
    @pytest.mark.parametrize("target", [QUEUE, STREAM, ENDPOINT])
    def test_a_raw_letter_is_of_the_only_target(self, target: Target) -> None:
        assert whose(sent("an order", Tenant="blue"), Origin.SNS, target) == target.place

    @pytest.mark.parametrize("body", ['{"order": 1}', '{"Type": "order"}', "{}", "[1]", "7"])
    def test_a_raw_letter_may_be_json_as_well(self, body: str) -> None:
        assert whose(sent(body), Origin.SNS, QUEUE) == QUEUE_ARN

    def test_a_raw_letter_of_one_of_several_is_nobodys(self) -> None:
        targets = subscribed(QUEUE_ARN), subscribed(TOPIC_ARN, OTHER_SUBSCRIPTION)

        assert whose(sent("an order"), Origin.SNS, *targets) is UNKNOWN

    def test_an_enveloped_letter_is_of_the_subscription_that_its_envelope_names(self) -> None:
        targets = subscribed(QUEUE_ARN, OTHER_SUBSCRIPTION), subscribed(FUNCTION_ARN)

        assert whose(of_sns(), Origin.SNS, *targets) == FUNCTION_ARN

    def test_a_subscription_that_is_not_listed_is_nobodys(self) -> None:
        assert whose(of_sns(), Origin.SNS, subscribed(QUEUE_ARN, OTHER_SUBSCRIPTION)) is UNKNOWN

    def test_where_no_subscription_is_listed_the_only_target_takes_every_envelope(self) -> None:
        assert whose(of_sns(), Origin.SNS, QUEUE) == QUEUE_ARN

    @pytest.mark.parametrize(
        "changes",
        [
            {"TopicArn": f"{TOPIC_ARN}-of-others"},
            {"TopicArn": f"{TOPIC_ARN}-of-others", "UnsubscribeURL": None},
            {"UnsubscribeURL": None, "TopicArn": TOPIC_ARN.replace("123456789012", "2" * 12)},
            {"UnsubscribeURL": f"https://sns/?SubscriptionArn={OTHER_SUBSCRIPTION}"},
            {"Message": 7},
            {"Type": "SubscriptionConfirmation"},
            {"Type": "UnsubscribeConfirmation"},
        ],
    )
    @pytest.mark.parametrize("place", [QUEUE_ARN, FUNCTION_ARN, ENDPOINT.place])
    def test_an_envelope_that_is_not_of_the_listed_subscription_is_nobodys(
        self, place: str, changes: dict[str, Any]
    ) -> None:
        assert whose(of_sns(**changes), Origin.SNS, subscribed(place)) is UNKNOWN

    @pytest.mark.parametrize(
        "changes",
        [
            {"UnsubscribeURL": f"https://sns/?SubscriptionArn={TOPIC_ARN}-of-others:1"},
            {"Type": "SubscriptionConfirmation"},
            {"Type": "SubscriptionConfirmation", "TopicArn": None},
        ],
    )
    def test_what_contradicts_itself_or_wants_a_confirmation_is_nobodys(
        self, changes: dict[str, Any]
    ) -> None:
        assert whose(of_sns(**changes), Origin.SNS, ENDPOINT) is UNKNOWN

    def test_an_envelope_of_the_topic_is_of_its_only_subscription(self) -> None:
        listed = subscribed(FUNCTION_ARN)

        assert whose(of_sns(UnsubscribeURL=None), Origin.SNS, listed) == FUNCTION_ARN

    def test_an_applications_own_notification_is_a_raw_message(self) -> None:
        letter = sent('{"Type": "Notification", "Message": "an order"}')

        assert whose(letter, Origin.SNS, subscribed(QUEUE_ARN)) == QUEUE_ARN

    def test_a_function_needs_the_envelope(self) -> None:
        assert whose(of_sns(), Origin.SNS, FUNCTION) == FUNCTION_ARN
        assert whose(sent("an order"), Origin.SNS, FUNCTION) is INCOMPLETE
        assert whose(of_sns(UnsubscribeURL=None), Origin.SNS, FUNCTION) is INCOMPLETE

    @pytest.mark.parametrize(
        "link",
        [
            7,
            "http://[",
            "https://sns/?SubscriptionArn=a&SubscriptionArn=b",
            f"https://sns/?SubscriptionArn={SUBSCRIPTION.replace('orders', 'strangers')}",
        ],
    )
    def test_a_link_that_names_no_subscription_of_the_topic_tells_nothing(self, link: Any) -> None:
        targets = subscribed(QUEUE_ARN), subscribed(FUNCTION_ARN, OTHER_SUBSCRIPTION)

        assert whose(of_sns(UnsubscribeURL=link), Origin.SNS, *targets) is UNKNOWN


class TestLambda:
    def test_a_letter_of_the_dlq_is_of_the_one_function_and_knows_its_request(self) -> None:
        seen = recognise(of_function(), Origin.LAMBDA, (FUNCTION,))

        assert (seen.source_arn, seen.request_id, seen.unfit) == (FUNCTION_ARN, REQUEST_ID, None)
        assert seen.known_as == ("first", REQUEST_ID)

    def test_of_several_functions_it_does_not_tell_which(self) -> None:
        other = Target.parse(f"{FUNCTION_ARN}2")

        assert whose(of_function(), Origin.LAMBDA, FUNCTION, other) is UNKNOWN
        assert whose(of_destination(), Origin.LAMBDA, FUNCTION, other) == FUNCTION_ARN

    def test_a_record_tells_its_function_and_its_request(self) -> None:
        seen = recognise(of_destination(), Origin.LAMBDA, (FUNCTION,))

        assert (seen.source_arn, seen.request_id, seen.unfit) == (FUNCTION_ARN, REQUEST_ID, None)

    @pytest.mark.parametrize(
        ("listed", "named", "is_it"),
        [
            ("", "", True),
            ("", ":$LATEST", True),
            ("", ":live", False),
            (":live", ":live", True),
            (":live", ":$LATEST", False),
            (":live", "", False),
        ],
    )
    def test_a_function_without_a_qualifier_is_its_latest_version_and_no_other(
        self, listed: str, named: str, is_it: bool
    ) -> None:
        target = Target.parse(FUNCTION_ARN + listed)
        letter = of_destination(requestContext={"functionArn": FUNCTION_ARN + named})

        assert whose(letter, Origin.LAMBDA, target) == (target.place if is_it else UNKNOWN)

    def test_a_record_of_a_success_is_not_to_be_done_again(self) -> None:
        letter = of_destination(requestContext={"condition": "Success"})

        assert whose(letter, Origin.LAMBDA, FUNCTION) is INCOMPLETE

    @pytest.mark.parametrize("unread", [{"functionArn": 1}, {"condition": 1}])
    def test_a_record_of_no_function_or_no_condition_is_none(self, unread: dict[str, Any]) -> None:
        assert read_record(json.dumps(record(requestContext=unread))) is None

    def test_a_record_whose_payload_was_left_out_is_incomplete(self) -> None:
        told = record()
        del told["requestPayload"]

        assert whose(sent(json.dumps(told)), Origin.LAMBDA, FUNCTION) is INCOMPLETE

    @pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : "), ("\n,\t", ":\r\n")])
    def test_a_records_payload_is_found_however_the_record_is_spaced(
        self, separators: tuple[str, str]
    ) -> None:
        read = read_record(json.dumps(record(requestPayload=[1]), separators=separators))

        assert read is not None
        assert json.loads(read.payload or "") == [1]

    def test_a_payload_may_be_null(self) -> None:
        assert whose(of_destination(requestPayload=None), Origin.LAMBDA, FUNCTION) == FUNCTION_ARN

    def test_an_event_that_looks_like_a_record_is_an_event(self) -> None:
        forged = json.dumps(record(requestContext={"condition": "Success"}))

        assert whose(of_function(forged), Origin.LAMBDA, FUNCTION) == FUNCTION_ARN

    def test_a_letter_without_lambdas_words_is_nobodys(self) -> None:
        assert whose(sent('{"order": 1}'), Origin.LAMBDA, FUNCTION) is UNKNOWN

    def test_an_id_that_the_ledger_could_not_store_is_none(self) -> None:
        letter = of_function(RequestID="a" * 101)

        assert recognise(letter, Origin.LAMBDA, (FUNCTION,)).request_id is None


class TestEventBridge:
    @pytest.mark.parametrize("target", [FUNCTION, QUEUE, MACHINE, TOPIC])
    def test_a_letter_is_of_the_target_that_it_names(self, target: Target) -> None:
        assert whose(of_rule(target.place), Origin.EVENTBRIDGE, *ALL) == target.place

    @pytest.mark.parametrize(
        "forged",
        [
            FUNCTION_ARN.replace("123456789012", "210987654321"),
            FUNCTION_ARN.replace("eu-west-1", "us-east-1"),
            f"{FUNCTION_ARN}s",
            "file:///etc/passwd",
            "http://169.254.169.254/latest/meta-data/iam",
            "https://example.com/orders",
            "arn:aws:iam::123456789012:role/admin",
            "",
        ],
    )
    @pytest.mark.parametrize("origin", [Origin.EVENTBRIDGE, Origin.SCHEDULER])
    def test_a_target_that_is_not_listed_is_never_named(self, origin: Origin, forged: str) -> None:
        letter = of_rule(forged) if origin is Origin.EVENTBRIDGE else of_schedule(forged)

        seen = recognise(letter, origin, ALL)

        assert (seen.unfit, seen.source_arn) == (UNKNOWN, None)

    def test_a_letter_without_a_rule_is_nobodys(self) -> None:
        assert whose(sent("{}", TARGET_ARN=FUNCTION_ARN), Origin.EVENTBRIDGE, FUNCTION) is UNKNOWN

    @pytest.mark.parametrize("name", ["SUBSCRIBER_ARN", "BUS_ARN"])
    def test_a_custom_event_buss_letter_holds_no_event(self, name: str) -> None:
        """EventBridge User Guide, "Retrying event delivery" of custom event buses."""
        letter = sent('{"busArn": "a"}', **{name: "arn:aws:eventsv2:::bus/a"})

        assert whose(letter, Origin.EVENTBRIDGE, FUNCTION) is INCOMPLETE


@pytest.mark.parametrize("origin", [Origin.EVENTBRIDGE, Origin.SCHEDULER])
def test_a_message_of_a_target_queue_that_was_parked_is_known_by_its_metadata(
    origin: Origin,
) -> None:
    parked = a_letter(
        body="an order", attributes={}, source_arn=None, metadata=some_metadata(queue="sqs:orders")
    )
    of_a_function = a_letter(source_arn=None, metadata=some_metadata(queue="lambda:orders"))

    assert whose(parked, origin, FUNCTION, QUEUE) == QUEUE_ARN
    assert whose(parked, origin, FUNCTION) is UNKNOWN
    assert whose(of_a_function, origin, FUNCTION, QUEUE) is UNKNOWN
    assert whose(of_a_function, origin, FUNCTION) is UNKNOWN


@pytest.mark.parametrize("origin", [Origin.EVENTBRIDGE, Origin.SCHEDULER])
def test_redrive_metadata_of_another_queue_leads_to_no_target_queue(origin: Origin) -> None:
    of_another = a_letter(source_arn=None, metadata=some_metadata(queue="sqs:invoices"))

    assert whose(of_another, origin, QUEUE) is UNKNOWN


@pytest.mark.parametrize("value", ["", 7, None])
def test_an_attribute_without_text_says_nothing(value: object) -> None:
    assert (
        text_of({"TARGET_ARN": {"DataType": "String", "StringValue": value}}, "TARGET_ARN") is None
    )


@pytest.mark.parametrize(
    ("letter", "origin"),
    [
        (universal("sqs:sendMessage", QueueUrl="x", MessageBody="one"), Origin.EVENTBRIDGE),
        (of_rule(QUEUE_ARN), Origin.SCHEDULER),
    ],
)
def test_a_letter_of_the_origin_before_is_no_message_of_the_queue_that_it_was_tried_at(
    letter: Letter, origin: Origin
) -> None:
    """A schedule's whole call was replayed into the queue as its message."""
    tried = replace(letter, metadata=some_metadata(queue="sqs:orders"))

    found = recognise(tried, origin, [QUEUE])

    assert (found.source_arn, found.unfit) == (None, Unfit.UNKNOWN_ORIGIN)


def test_redrive_metadata_leads_no_letter_of_sns_to_a_queue() -> None:
    forged = a_letter(source_arn=None, metadata=some_metadata(queue="sqs:orders"))
    targets = subscribed(QUEUE_ARN), subscribed(FUNCTION_ARN, OTHER_SUBSCRIPTION)

    assert whose(forged, Origin.SNS, *targets) is UNKNOWN


class TestScheduler:
    @pytest.mark.parametrize("target", [FUNCTION, QUEUE, MACHINE, TOPIC])
    def test_a_letter_is_of_the_resource_that_it_names(self, target: Target) -> None:
        assert whose(of_schedule(target.place), Origin.SCHEDULER, *ALL) == target.place

    @pytest.mark.parametrize("said", ["true", "TRUE", " true "])
    def test_what_was_cut_short_is_incomplete(self, said: str) -> None:
        letter = of_schedule(IS_PAYLOAD_TRUNCATED=said)
        of_api = of_schedule(
            "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", '{"Queu', IS_PAYLOAD_TRUNCATED=said
        )

        assert whose(letter, Origin.SCHEDULER, FUNCTION) is INCOMPLETE
        assert whose(of_api, Origin.SCHEDULER, QUEUE) is INCOMPLETE

    def test_a_letter_without_a_schedule_is_nobodys(self) -> None:
        assert whose(sent("{}", TARGET_ARN=FUNCTION_ARN), Origin.SCHEDULER, FUNCTION) is UNKNOWN

    @pytest.mark.parametrize(
        ("letter", "place"),
        [
            (
                universal(
                    "sqs:sendMessage",
                    QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
                    MessageBody="b",
                ),
                QUEUE_ARN,
            ),
            (
                universal("lambda:invoke", FunctionName="orders", InvocationType="Event"),
                FUNCTION_ARN,
            ),
            (universal("lambda:invoke", FunctionName=FUNCTION_ARN, Payload="{}"), FUNCTION_ARN),
            (
                universal(
                    "lambda:invoke",
                    FunctionName="123456789012:function:orders",
                    Qualifier="$LATEST",
                ),
                FUNCTION_ARN,
            ),
            (universal("sfn:startExecution", StateMachineArn=MACHINE_ARN), MACHINE_ARN),
            (
                universal("sfn:startExecution", stateMachineArn=MACHINE_ARN, input="{}"),
                MACHINE_ARN,
            ),
            (universal("sns:publish", TopicArn=TOPIC_ARN, Message="m"), TOPIC_ARN),
        ],
    )
    def test_a_served_call_is_of_the_resource_among_its_parameters(
        self, letter: Letter, place: str
    ) -> None:
        assert whose(letter, Origin.SCHEDULER, *ALL) == place

    @pytest.mark.parametrize(
        ("region", "host", "is_it"),
        [
            ("eu-west-1", "sqs-fips.eu-west-1.amazonaws.com", True),
            ("eu-west-1", "sqs.eu-west-1.api.aws", True),
            ("eu-west-1", "eu-west-1.queue.amazonaws.com", True),
            ("us-east-1", "queue.amazonaws.com", True),
            ("cn-north-1", "sqs.cn-north-1.amazonaws.com.cn", True),
            ("eu-west-1", "queue.amazonaws.com", False),
            ("eu-west-1", "sqs.us-east-1.amazonaws.com", False),
            ("eu-west-1", "sqs.eu-west-1.amazonaws.com.example.com", False),
        ],
    )
    def test_a_queue_is_known_at_every_host_of_its_region(
        self, region: str, host: str, is_it: bool
    ) -> None:
        queue = Target.parse(f"arn:aws:sqs:{region}:123456789012:orders")
        letter = universal(
            "sqs:sendMessage", QueueUrl=f"https://{host}/123456789012/orders", MessageBody="b"
        )

        assert whose(letter, Origin.SCHEDULER, queue) == (queue.place if is_it else UNKNOWN)

    @pytest.mark.parametrize(
        ("place", "name", "is_it"),
        [
            ("eu-west-1:123456789012", "orders", True),
            ("eu-west-1:123456789012", "123456789012:function:orders", True),
            ("eu-west-1:210987654321", "orders", False),
            ("eu-west-1:210987654321", "123456789012:function:orders", True),
            ("us-east-1:123456789012", "orders", False),
            ("us-east-1:123456789012", "123456789012:function:orders", False),
            ("us-east-1:210987654321", FUNCTION_ARN, True),
            ("", "orders", False),
        ],
    )
    def test_a_name_means_the_function_of_the_schedules_own_account_and_region(
        self, place: str, name: str, is_it: bool
    ) -> None:
        letter = of_schedule(
            "arn:aws:scheduler:::aws-sdk:lambda:invoke",
            json.dumps({"FunctionName": name}),
            SCHEDULE_ARN=f"arn:aws:scheduler:{place}:schedule/default/orders",
        )

        assert whose(letter, Origin.SCHEDULER, FUNCTION) == (FUNCTION_ARN if is_it else UNKNOWN)

    @pytest.mark.parametrize(
        "letter",
        [
            universal("ecs:runTask", Cluster="a"),
            universal("sqs:purgeQueue", QueueUrl="https://sqs.eu-west-1.amazonaws.com/1/orders"),
            universal("sqs:sendMessage", QueueUrl="http://169.254.169.254/orders", MessageBody="b"),
            universal("sqs:sendMessage", QueueUrl=["a"], MessageBody="b"),
            universal("lambda:invoke", FunctionName="orders", Qualifier="live"),
            universal("lambda:invoke", FunctionName="strangers"),
            universal("sns:publish", TargetArn=TOPIC_ARN, Message="m"),
            universal("sns:publish", PhoneNumber="+1", Message="m"),
            of_schedule("arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "no JSON"),
            of_schedule("arn:aws:scheduler:::aws-sdk:sqs:sendMessage", DEEP),
        ],
    )
    def test_other_calls_and_other_resources_are_nobodys(self, letter: Letter) -> None:
        assert whose(letter, Origin.SCHEDULER, *ALL) is UNKNOWN

    @pytest.mark.parametrize(
        "letter",
        [
            universal("lambda:invoke", FunctionName="orders:live"),
            universal("lambda:invoke", FunctionName="orders", Qualifier="live"),
            universal("lambda:invoke", FunctionName=FUNCTION_ARN, Qualifier="live"),
        ],
    )
    def test_a_call_of_an_alias_is_of_the_target_with_that_alias(self, letter: Letter) -> None:
        live = Target.parse(f"{FUNCTION_ARN}:live")

        assert whose(letter, Origin.SCHEDULER, FUNCTION, live) == live.place

    @pytest.mark.parametrize(
        "letter",
        [
            universal("sns:publish", TopicArn=TOPIC_ARN),
            universal("sns:publish", TopicArn=TOPIC_ARN, Message=""),
            universal(
                "sqs:sendMessage",
                QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
                MessageBody="",
            ),
            universal("lambda:invoke", FunctionName="orders", Payload={"a": 1}),
        ],
    )
    def test_a_call_without_what_it_hands_over_is_incomplete(self, letter: Letter) -> None:
        assert whose(letter, Origin.SCHEDULER, *ALL) is INCOMPLETE


@pytest.mark.parametrize(
    ("letter", "told"),
    [
        (of_function(), "boom"),
        (of_rule(), "NO_PERMISSIONS"),
        (sent("{}", ErrorCode="429"), "429"),
        (of_schedule(), "AWS.SimpleQueueService.NonExistentQueue"),
    ],
)
def test_the_error_that_a_service_tells_is_kept_and_a_mere_number_gives_way(
    letter: Letter, told: str
) -> None:
    assert error_of(letter.attributes) == told


@given(
    body=bodies(),
    attributes=SOME_ATTRIBUTES,
    origin=st.sampled_from(OTHERS),
    targets=st.lists(st.sampled_from(ALL), unique=True),
)
def test_whatever_a_letter_holds_it_is_of_a_listed_target_or_unfit(
    body: str, attributes: Any, origin: Origin, targets: list[Target]
) -> None:
    letter = a_letter(body=body, attributes=attributes, source_arn=None)

    seen = recognise(letter, origin, targets)

    assert seen.unfit is not None or seen.source_arn in {one.place for one in targets}
    assert seen.source_arn in {None, *(one.place for one in targets)}
    assert (seen.body, seen.attributes, seen.message_id) == (body, attributes, "first")


def test_the_shapes_that_garbage_is_made_from_are_recognised_without_changes() -> None:
    """Else the property above would try nothing."""
    assert whose(sent(json.dumps(envelope())), Origin.SNS, QUEUE) == QUEUE_ARN
    assert texts(a="b")["a"]["StringValue"] == "b"
