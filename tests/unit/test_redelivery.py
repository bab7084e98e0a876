"""What a target is given for a letter, beside what it was given before."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.engine.messages.redelivery import (
    USER_AGENT,
    event_for_function,
    execution_of,
    message_for_queue,
    post_of,
    publication_of,
    record_for_stream,
)
from tests.unit.examples import some_metadata
from tests.unit.garbage import SOME_ATTRIBUTES, bodies
from tests.unit.origin_letters import (
    ENDPOINT,
    FUNCTION,
    MACHINE_ARN,
    QUEUE_ARN,
    SUBSCRIPTION,
    TOPIC_ARN,
    WEB,
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
from tests.unit.sqs_client import ATTRIBUTES

SQS_SEND = {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"}


def outgoing(letter: Letter, **changes: Any) -> Outgoing:
    return Outgoing(letter=letter, metadata=some_metadata(**changes), size_limit=262_144)


class TestQueue:
    def test_a_raw_message_keeps_its_publishers_attributes(self) -> None:
        letter = sent("an order")
        letter.attributes.update(ATTRIBUTES)  # type: ignore[attr-defined]

        assert message_for_queue(letter, Origin.SNS) == letter

    @pytest.mark.parametrize(
        ("letter", "origin"), [(of_rule(), Origin.EVENTBRIDGE), (of_schedule(), Origin.SCHEDULER)]
    )
    def test_what_tells_of_the_failure_is_not_for_the_consumer(
        self, letter: Letter, origin: Origin
    ) -> None:
        message = message_for_queue(letter, origin)

        assert (message.body, message.attributes) == (letter.body, {})

    @pytest.mark.parametrize("origin", [Origin.EVENTBRIDGE, Origin.SCHEDULER])
    def test_what_sqs_moved_from_the_queue_keeps_its_attributes(self, origin: Origin) -> None:
        moved = replace(sent("an order", Tenant="blue"), source_arn=QUEUE_ARN, group_id="g")

        assert message_for_queue(moved, origin) == moved

    def test_a_schedules_own_message_has_body_attributes_and_group(self) -> None:
        given_attributes = {
            "plain": {"DataType": "String", "StringValue": "a"},
            "image": {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\x00").decode()},
        }
        letter = universal(
            "sqs:sendMessage",
            **SQS_SEND,
            MessageBody="an order",
            MessageAttributes=given_attributes,
            MessageGroupId="blue",
            DelaySeconds=900,
        )

        message = message_for_queue(letter, Origin.SCHEDULER)

        assert (message.body, message.group_id) == ("an order", "blue")
        assert message.attributes == texts(plain="a") | {
            "image": {"DataType": "Binary", "BinaryValue": b"\x00"}
        }

    def test_the_types_of_attributes_keep_their_labels(self) -> None:
        given_attributes = {
            "order": {"DataType": "String.json", "StringValue": "{}"},
            "price": {"DataType": "Number.eur", "StringValue": "1"},
            "image": {"DataType": "Binary.gif", "BinaryValue": "R0lG"},
        }
        letter = universal(
            "sqs:sendMessage", **SQS_SEND, MessageBody="b", MessageAttributes=given_attributes
        )

        message = message_for_queue(letter, Origin.SCHEDULER)

        assert message.attributes == given_attributes | {
            "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF"}
        }

    def test_what_is_no_base64_is_the_letters_fault(self) -> None:
        binary = {"DataType": "Binary", "BinaryValue": "R0*lG"}
        letter = universal(
            "sqs:sendMessage", **SQS_SEND, MessageBody="b", MessageAttributes={"a": binary}
        )

        with pytest.raises(ValueError, match="base64"):
            message_for_queue(letter, Origin.SCHEDULER)

    @pytest.mark.parametrize(
        "attributes",
        [
            7,
            {"a": 7},
            {"a": {"DataType": "String"}},
            {"a": {"DataType": "String", "StringValue": ""}},
            {"a": {"DataType": "Binary", "BinaryValue": ""}},
            {"a": {"DataType": "Binary", "StringValue": "a"}},
            {"a": {"DataType": "Text", "StringValue": "a"}},
            {"a": {"DataType": "String.\ud800", "StringValue": "a"}},
            {"": {"DataType": "String", "StringValue": "a"}},
            {"a..b": {"DataType": "String", "StringValue": "a"}},
            {"Amazon.a": {"DataType": "String", "StringValue": "a"}},
            {"a" * 257: {"DataType": "String", "StringValue": "a"}},
        ],
    )
    def test_attributes_that_are_none_are_the_letters_fault(self, attributes: Any) -> None:
        letter = universal(
            "sqs:sendMessage", **SQS_SEND, MessageBody="b", MessageAttributes=attributes
        )

        with pytest.raises(ValueError, match="attribute"):
            message_for_queue(letter, Origin.SCHEDULER)


class TestFunction:
    def test_sns_gives_its_envelope_under_names_of_its_own(self) -> None:
        """TestSNSSubscriptionLambda.test_sns_topic_as_lambda_dlq and test_publish_lambda_verify_signature, 24-01."""
        told = envelope()

        event = json.loads(event_for_function(of_sns(), Origin.SNS, FUNCTION))

        assert event == {
            "Records": [
                {
                    "EventSource": "aws:sns",
                    "EventVersion": "1.0",
                    "EventSubscriptionArn": SUBSCRIPTION,
                    "Sns": {
                        "Type": "Notification",
                        "MessageId": told["MessageId"],
                        "TopicArn": TOPIC_ARN,
                        "Subject": None,
                        "Message": '{"order": 1}',
                        "Timestamp": told["Timestamp"],
                        "SignatureVersion": "1",
                        "Signature": told["Signature"],
                        "SigningCertUrl": told["SigningCertURL"],
                        "UnsubscribeUrl": told["UnsubscribeURL"],
                        "MessageAttributes": {},
                    },
                }
            ]
        }

    def test_subject_and_attributes_come_along(self) -> None:
        attributes = {"tenant": {"Type": "String", "Value": "blå"}}
        letter = of_sns(Subject="an order", MessageAttributes=attributes)

        (one,) = json.loads(event_for_function(letter, Origin.SNS, FUNCTION))["Records"]

        assert (one["Sns"]["Subject"], one["Sns"]["MessageAttributes"]) == ("an order", attributes)

    def test_a_listed_subscription_stands_for_one_that_the_envelope_does_not_name(self) -> None:
        target = subscribed(FUNCTION.place)

        (one,) = json.loads(event_for_function(of_sns(UnsubscribeURL=None), Origin.SNS, target))[
            "Records"
        ]

        assert one["EventSubscriptionArn"] == SUBSCRIPTION

    def test_half_a_surrogate_pair_stays_what_it_was(self) -> None:
        event = event_for_function(of_sns(Message="\ud83d"), Origin.SNS, FUNCTION)

        assert json.loads(event)["Records"][0]["Sns"]["Message"] == "\ud83d"

    def test_the_event_is_as_short_as_can_be(self) -> None:
        """An escaped letter of another alphabet takes six bytes, and an event has a limit."""
        event = event_for_function(of_sns(Message="blå"), Origin.SNS, FUNCTION)

        assert '"Message":"blå"'.encode() in event

    def test_a_number_that_json_has_no_value_for_is_the_letters_fault(self) -> None:
        """Its function could not read the event."""
        letter = of_sns(MessageAttributes={"a": 0})
        endless = replace(letter, body=letter.body.replace('"a": 0', '"a": 1e999'))

        with pytest.raises(ValueError, match="JSON"):
            event_for_function(endless, Origin.SNS, FUNCTION)

    def test_what_wants_a_confirmation_makes_no_event(self) -> None:
        with pytest.raises(ValueError, match="envelope"):
            event_for_function(of_sns(Type="SubscriptionConfirmation"), Origin.SNS, FUNCTION)

    def test_a_raw_letter_makes_no_event(self) -> None:
        with pytest.raises(ValueError, match="envelope"):
            event_for_function(sent("an order"), Origin.SNS, FUNCTION)

    def test_lambdas_own_letters_are_the_event_even_where_that_looks_like_a_record(self) -> None:
        body = json.dumps(record())

        assert event_for_function(of_function(body), Origin.LAMBDA, FUNCTION) == body.encode()

    def test_a_record_is_unwrapped_to_the_letter(self) -> None:
        """A number that Python has no value for, spaces, and a name that comes twice."""
        payload = '{ "n": 0.10000000000000000000001,"é": "\\u00e9", "n": 1e400 }'
        body = json.dumps(record(requestPayload=0)).replace(
            '"requestPayload": 0', f'"requestPayload" : {payload} '
        )

        assert event_for_function(sent(body), Origin.LAMBDA, FUNCTION) == payload.encode()

    @given(
        before=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)),
        payload=st.none()
        | st.text()
        | st.lists(st.integers())
        | st.dictionaries(st.text(), st.text()),
        indent=st.none() | st.integers(0, 2),
    )
    def test_the_payload_is_found_wherever_it_stands(
        self, before: dict[str, Any], payload: Any, indent: int | None
    ) -> None:
        told = before | record(requestPayload=payload)

        event = event_for_function(sent(json.dumps(told, indent=indent)), Origin.LAMBDA, FUNCTION)

        assert json.loads(event) == payload

    @pytest.mark.parametrize(
        ("letter", "origin", "event"),
        [
            (of_rule(), Origin.EVENTBRIDGE, b'{"source": "shop"}'),
            (of_schedule(), Origin.SCHEDULER, b'{"order": 1}'),
            (
                universal("lambda:invoke", FunctionName="orders", Payload='{"a": 1}'),
                Origin.SCHEDULER,
                b'{"a": 1}',
            ),
            (universal("lambda:invoke", FunctionName="orders"), Origin.SCHEDULER, b"{}"),
        ],
    )
    def test_rules_and_schedules_give_what_is_in_the_letter(
        self, letter: Letter, origin: Origin, event: bytes
    ) -> None:
        assert event_for_function(letter, origin, FUNCTION) == event

    def test_a_record_that_lost_its_payload_makes_no_event(self) -> None:
        told = {name: value for name, value in record().items() if name != "requestPayload"}

        with pytest.raises(ValueError, match="payload"):
            event_for_function(sent(json.dumps(told)), Origin.LAMBDA, FUNCTION)
        assert event_for_function(of_destination(), Origin.LAMBDA, FUNCTION) == b'{"order": 1}'


def test_a_stream_gets_the_letters_body() -> None:
    assert record_for_stream(sent("grün")) == "grün".encode()


class TestStateMachine:
    def test_an_execution_is_named_by_letter_redrive_and_body(self) -> None:
        first = execution_of(outgoing(of_rule()), Origin.EVENTBRIDGE)
        again = execution_of(outgoing(of_rule()), Origin.EVENTBRIDGE)
        later = execution_of(outgoing(of_rule(), redrive_count=2), Origin.EVENTBRIDGE)

        assert first == again
        assert first.name != later.name
        assert re.fullmatch("[A-Za-z0-9-]{1,80}", first.name)
        assert (first.input, first.is_named_by_us) == ('{"source": "shop"}', True)

    def test_a_schedules_own_call_may_have_named_it(self) -> None:
        call = {"StateMachineArn": MACHINE_ARN, "Input": '{"a": 1}'}
        plain = execution_of(outgoing(universal("sfn:startExecution", **call)), Origin.SCHEDULER)
        named = execution_of(
            outgoing(universal("sfn:startExecution", **call, Name="daily")), Origin.SCHEDULER
        )

        assert (plain.input, plain.is_named_by_us) == ('{"a": 1}', True)
        assert (named.name, named.is_named_by_us) == ("daily", False)

    @pytest.mark.parametrize("name", ["", 7, None])
    def test_what_is_no_name_names_nothing(self, name: object) -> None:
        letter = universal("sfn:startExecution", StateMachineArn=MACHINE_ARN, Name=name)

        assert execution_of(outgoing(letter), Origin.SCHEDULER).is_named_by_us


def test_a_topic_publishes_the_body_or_what_the_schedules_call_says() -> None:
    call = {
        "TopicArn": TOPIC_ARN,
        "Message": "m",
        "Subject": "s",
        "MessageAttributes": {"a": {"DataType": "String", "StringValue": "b"}},
        "PhoneNumber": "+1",
    }

    assert publication_of(of_rule(), Origin.EVENTBRIDGE) == {"Message": '{"source": "shop"}'}
    assert publication_of(universal("sns:publish", **call), Origin.SCHEDULER) == {
        "Message": "m",
        "Subject": "s",
        "MessageAttributes": texts(a="b"),
    }


class TestPost:
    """TestSNSSubscriptionHttp.test_subscribe_external_http_endpoint, 23-10 and 24-10."""

    def test_a_path_stays_as_it_is_but_for_what_is_no_printable_ascii(self) -> None:
        place = "https://example.com/!%20~/\x7f/ü"

        post = post_of(sent("an order"), replace(ENDPOINT, place=place))

        assert post.path == "/!%20~/%7F/%C3%BC"

    def test_an_envelope_is_posted_with_what_it_says_in_the_headers(self) -> None:
        post = post_of(of_sns(), ENDPOINT)

        assert post.path == "/orders?key=1"
        assert post.body == of_sns().body.encode()
        assert post.headers == {
            "x-amz-sns-message-type": "Notification",
            "x-amz-sns-message-id": envelope()["MessageId"],
            "x-amz-sns-topic-arn": TOPIC_ARN,
            "x-amz-sns-subscription-arn": SUBSCRIPTION,
            "Content-Type": "text/plain; charset=UTF-8",
            "User-Agent": USER_AGENT,
        }

    def test_a_raw_message_says_so_and_what_is_listed(self) -> None:
        post = post_of(sent("grün"), subscribed(WEB))

        assert post.body == "grün".encode()
        assert post.headers["x-amz-sns-rawdelivery"] == "true"
        assert post.headers["x-amz-sns-message-id"] == "first"
        assert post.headers["x-amz-sns-topic-arn"] == TOPIC_ARN
        assert post.headers["x-amz-sns-subscription-arn"] == SUBSCRIPTION

    def test_what_is_not_known_is_left_out(self) -> None:
        headers = post_of(sent("an order"), ENDPOINT).headers

        assert {"x-amz-sns-topic-arn", "x-amz-sns-subscription-arn"} & headers.keys() == set()

    @pytest.mark.parametrize("forged", ["a\r\nHost: b", "a\nb", "", "é", "a" * 513])
    def test_an_id_that_is_no_header_is_left_out(self, forged: str) -> None:
        headers = post_of(of_sns(MessageId=forged), ENDPOINT).headers

        assert "x-amz-sns-message-id" not in headers

    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("https://example.com", "/"),
            ("https://example.com/ö%20?a=ü", "/%C3%B6%20?a=%C3%BC"),
            ("https://example.com/!~?a=$|~!", "/!~?a=$|~!"),
        ],
    )
    def test_the_path_is_ascii(self, url: str, path: str) -> None:
        assert post_of(sent("b"), Target.parse(url)).path == path


def test_a_delay_is_none_of_the_payloads_business() -> None:
    one = outgoing(of_rule())
    one.delay = timedelta(minutes=5)

    assert (
        execution_of(one, Origin.EVENTBRIDGE).name
        == execution_of(outgoing(of_rule()), Origin.EVENTBRIDGE).name
    )


FUNCTIONS: list[Callable[[Outgoing, Origin], object]] = [
    lambda one, origin: message_for_queue(one.letter, origin),
    lambda one, origin: event_for_function(one.letter, origin, FUNCTION),
    lambda one, origin: record_for_stream(one.letter),
    execution_of,
    lambda one, origin: publication_of(one.letter, origin),
    lambda one, origin: post_of(one.letter, ENDPOINT),
]


@given(
    body=bodies(),
    attributes=SOME_ATTRIBUTES.filter(
        lambda them: all(isinstance(one, dict) for one in them.values())
    ),
    origin=st.sampled_from([one for one in Origin if one is not Origin.SQS]),
    make=st.sampled_from(FUNCTIONS),
)
def test_whatever_a_letter_holds_it_is_given_or_at_fault_itself(
    body: str, attributes: Any, origin: Origin, make: Callable[[Outgoing, Origin], object]
) -> None:
    letter = replace(sent(body), attributes=attributes)
    try:
        made = make(outgoing_bare(letter), origin)
    except ValueError:
        return  # what a delivery takes for the letter's fault

    assert made is not None


def outgoing_bare(letter: Letter) -> Outgoing:
    """Whose size nobody reckons: half a surrogate pair has none."""
    one = outgoing(sent("b"))
    one.letter = letter
    return one
