"""Targets as sources: what is asked of which service, and what is made of its answers."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.targets.functions import LONGEST_TIMEOUT, FunctionFacts
from smart_redriver.engine.targets.target_calls import (
    LONGEST_ROUND,
    MOST_OF_A_RECORD,
    MOST_OF_AN_EVENT,
    MOST_OF_AN_INPUT,
    deliver_one_by_one,
)
from smart_redriver.engine.targets.target_source import (
    Reach,
    TargetSource,
    clients_on_first_use,
    target_source,
)
from tests.unit.examples import some_metadata
from tests.unit.origin_letters import (
    ENDPOINT,
    FUNCTION,
    FUNCTION_ARN,
    MACHINE,
    MACHINE_ARN,
    QUEUE,
    STREAM,
    TOPIC,
    TOPIC_ARN,
    of_function,
    of_rule,
    of_sns,
    sent,
    universal,
)
from tests.unit.sqs_client import RecordingSqs, denial
from tests.unit.target_clients import Recording, going


class Sqs(RecordingSqs):
    def __init__(self, refusal: str | None = None, **answers: Any) -> None:
        super().__init__(**answers)
        self.asked = Recording(lambda _: refusal)

    def get_queue_url(self, **request: Any) -> Any:
        return self.asked.get_queue_url(**request)


def source(target: Target, origin: Origin, client: Any) -> TargetSource:
    return target_source(target, origin, Reach(clients=lambda service, region: client))


DLQ_URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders-dlq"


def beside(dlq_url: str, fails_to: str | None, refusal: Exception | None = None) -> TargetSource:
    """A target queue of a DLQ with this URL, that fails to the queue of this account and name."""
    policy = {"deadLetterTargetArn": f"arn:aws:sqs:eu-west-1:{fails_to}", "maxReceiveCount": 3}
    attributes = {
        "QueueArn": QUEUE.place,
        "ApproximateNumberOfMessages": "1",
        "ApproximateNumberOfMessagesNotVisible": "2",
        "ApproximateNumberOfMessagesDelayed": "3",
        "VisibilityTimeout": "30",
        "MessageRetentionPeriod": "345600",
        "MaximumMessageSize": "1024",
    }
    if fails_to:
        attributes["RedrivePolicy"] = json.dumps(policy)
    sqs = Sqs(get_queue_attributes=refusal or {"Attributes": attributes})
    reach = Reach(clients=lambda service, region: sqs)
    return target_source(QUEUE, Origin.SNS, reach, dlq_url=dlq_url)


def several(letter: Letter, count: int) -> list[Letter]:
    return [replace(letter, message_id=f"m{number}") for number in range(count)]


class TestWhatIsAsked:
    def test_a_function_is_invoked_asynchronously_and_its_request_is_the_copys_name(self) -> None:
        lambdas = Recording()

        done = source(FUNCTION, Origin.LAMBDA, lambdas).deliver(going(*several(of_function(), 2)))

        invoke = {
            "FunctionName": FUNCTION_ARN,
            "InvocationType": "Event",
            "Payload": b'{"order": 1}',
        }
        assert lambdas.calls == [("invoke", invoke)] * 2
        assert done.new_ids == {"m0": "request-0", "m1": "request-1"}

    def test_a_stream_is_given_a_record(self) -> None:
        firehose = Recording()

        done = source(STREAM, Origin.SNS, firehose).deliver(going(sent("grün")))

        record = {"DeliveryStreamName": "orders", "Record": {"Data": "grün".encode()}}
        assert firehose.calls == [("put_record", record)]
        assert done.new_ids == {"first": "first"}

    def test_a_topic_publishes(self) -> None:
        sns = Recording()

        done = source(TOPIC, Origin.EVENTBRIDGE, sns).deliver(going(of_rule(TOPIC_ARN)))

        asked = {"TopicArn": TOPIC_ARN, "Message": '{"source": "shop"}'}
        assert sns.calls == [("publish", asked)]
        assert done.new_ids == {"first": "published"}

    def test_a_state_machine_is_started_under_a_name(self) -> None:
        states = Recording()

        done = source(MACHINE, Origin.EVENTBRIDGE, states).deliver(going(of_rule(MACHINE_ARN)))

        ((_, asked),) = states.calls
        assert (asked["stateMachineArn"], asked["input"]) == (MACHINE_ARN, '{"source": "shop"}')
        assert done.new_ids == {"first": asked["name"]}

    def test_a_queue_gets_the_body_without_metadata_and_its_url_is_asked_for_once(self) -> None:
        sqs = Sqs()
        orders = source(QUEUE, Origin.EVENTBRIDGE, sqs)

        done = orders.deliver(going(*several(of_rule(QUEUE.place), 3)))
        orders.deliver(going(of_rule(QUEUE.place)))

        (_, first), _ = sqs.calls
        assert [one["MessageBody"] for one in first["Entries"]] == ['{"source": "shop"}'] * 3
        assert ["MessageAttributes" in one for one in first["Entries"]] == [False] * 3
        assert sorted(done.new_ids) == ["m0", "m1", "m2"]
        owner = {"QueueName": "orders", "QueueOwnerAWSAccountId": "123456789012"}
        assert sqs.asked.calls == [("get_queue_url", owner)]

    def test_a_raw_message_keeps_its_attributes_in_the_queue(self) -> None:
        sqs = Sqs()

        source(QUEUE, Origin.SNS, sqs).deliver(going(sent("an order", Tenant="blue")))

        ((_, asked),) = sqs.calls
        assert list(asked["Entries"][0]["MessageAttributes"]) == ["Tenant"]

    @pytest.mark.parametrize(
        ("target", "service"),
        [
            (QUEUE, "sqs"),
            (FUNCTION, "lambda"),
            (STREAM, "firehose"),
            (MACHINE, "stepfunctions"),
            (TOPIC, "sns"),
        ],
    )
    def test_a_target_is_asked_in_its_own_region(self, target: Target, service: str) -> None:
        """SNS delivers to queues and functions of other regions."""
        asked: list[tuple[str, str]] = []
        elsewhere = Target.parse(target.place.replace("eu-west-1", "us-east-1"))

        target_source(elsewhere, Origin.SNS, Reach(clients=lambda *place: asked.append(place)))

        assert asked == [(service, "us-east-1")]

    def test_targets_of_one_service_and_region_share_a_client(self) -> None:
        clients = clients_on_first_use()

        assert clients("sns", "eu-west-1") is clients("sns", "eu-west-1")
        assert clients("sns", "eu-west-1") is not clients("sns", "us-east-1")


class TestWhatIsAnswered:
    def test_at_the_first_refusal_the_rest_is_not_tried_and_meets_the_same(self) -> None:
        lambdas = Recording(lambda number: "AccessDeniedException" if number == 1 else None)

        done = source(FUNCTION, Origin.LAMBDA, lambdas).deliver(going(*several(of_function(), 4)))

        assert len(lambdas.calls) == 2
        assert list(done.new_ids) == ["m0"]
        assert [one.key for one in done.faults] == ["m1", "m2", "m3"]
        assert done.refused is done.faults[0]

    @pytest.mark.parametrize(
        ("target", "origin", "code"),
        [
            (FUNCTION, Origin.LAMBDA, "TooManyRequestsException"),
            (FUNCTION, Origin.LAMBDA, "ServiceException"),
            (STREAM, Origin.SNS, "ServiceUnavailableException"),
            (MACHINE, Origin.EVENTBRIDGE, "ExecutionLimitExceeded"),
            (TOPIC, Origin.EVENTBRIDGE, "KMSThrottling"),
        ],
    )
    def test_trouble_that_outlasts_the_clients_retries_ends_a_delivery_as_the_target_takes_none(
        self, target: Target, origin: Origin, code: str
    ) -> None:
        client = Recording(lambda _: code)

        done = source(target, origin, client).deliver(going(*several(of_function(), 3)))

        assert len(client.calls) == 1
        assert [one.key for one in done.faults] == ["m0", "m1", "m2"]
        assert done.refused is done.faults[0]

    @pytest.mark.parametrize(
        ("target", "origin"), [(FUNCTION, Origin.LAMBDA), (STREAM, Origin.SNS)]
    )
    def test_an_answer_that_nobody_knows_is_a_bounce_of_that_letter(
        self, target: Target, origin: Origin
    ) -> None:
        client = Recording(lambda number: "SomethingNew" if number == 1 else None)

        done = source(target, origin, client).deliver(going(*several(of_function(), 3)))

        assert done.bounced == {"m1": "SomethingNew"}
        assert (list(done.new_ids), done.faults) == (["m0", "m2"], [])

    @pytest.mark.parametrize(
        ("target", "origin", "code"),
        [
            (FUNCTION, Origin.LAMBDA, "InvalidRequestContentException"),
            (FUNCTION, Origin.LAMBDA, "RequestTooLargeException"),
            (MACHINE, Origin.EVENTBRIDGE, "InvalidExecutionInput"),
            (TOPIC, Origin.EVENTBRIDGE, "InvalidParameter"),
        ],
    )
    def test_a_letter_at_fault_itself_keeps_no_other_back(
        self, target: Target, origin: Origin, code: str
    ) -> None:
        client = Recording(lambda number: code if number == 0 else None)

        done = source(target, origin, client).deliver(going(*several(of_function(), 2)))

        (fault,) = done.faults
        assert (fault.key, fault.is_of_content) == ("m0", True)
        assert list(done.new_ids) == ["m1"]

    @pytest.mark.parametrize(
        ("target", "origin", "code"),
        [
            (FUNCTION, Origin.LAMBDA, "ResourceNotFoundException"),
            (STREAM, Origin.SNS, "InvalidSourceException"),
            (STREAM, Origin.SNS, "InvalidArgumentException"),
            (MACHINE, Origin.EVENTBRIDGE, "StateMachineDoesNotExist"),
            (TOPIC, Origin.EVENTBRIDGE, "NotFound"),
            (TOPIC, Origin.EVENTBRIDGE, "AuthorizationError"),
        ],
    )
    def test_a_target_that_is_gone_or_closed_is_a_refusal(
        self, target: Target, origin: Origin, code: str
    ) -> None:
        done = source(target, origin, Recording(lambda _: code)).deliver(going(of_function()))

        assert [one.code for one in done.faults] == [code]
        assert done.refused is not None

    def test_a_topic_that_sns_takes_for_none_is_no_letters_fault(self) -> None:
        class Sns:
            def publish(self, **request: Any) -> Any:
                detail = "Invalid parameter: TopicArn Reason: An ARN must have at least 6 elements"
                raise denial("InvalidParameter", detail)

        done = source(TOPIC, Origin.EVENTBRIDGE, Sns()).deliver(going(of_rule()))

        assert [(one.code, one.is_refusal) for one in done.faults] == [("InvalidTopic", True)]

    def test_what_sns_says_of_an_attribute_that_is_called_like_the_topic_is_the_letters_fault(
        self,
    ) -> None:
        class Sns:
            def publish(self, **request: Any) -> Any:
                detail = "Invalid parameter: The message attribute 'TopicArn' must not be so."
                raise denial("InvalidParameter", detail)

        done = source(TOPIC, Origin.EVENTBRIDGE, Sns()).deliver(going(of_rule()))

        assert [(one.code, one.is_of_content) for one in done.faults] == [
            ("InvalidParameter", True)
        ]

    @pytest.mark.parametrize("is_whole", [False, True])
    def test_an_answer_of_a_queue_that_nobody_knows_is_a_bounce(self, is_whole: bool) -> None:
        sqs = Sqs()
        if is_whole:
            sqs.fail = lambda entries: denial("SomethingNew")
        else:
            sqs.refuse = lambda entry: "SomethingNew" if entry["Id"] == "1" else None

        done = source(QUEUE, Origin.SNS, sqs).deliver(going(*several(sent("b"), 2)))

        letters = ["m0", "m1"] if is_whole else ["m1"]
        assert done.bounced == dict.fromkeys(letters, "SomethingNew")
        assert (list(done.new_ids), done.faults) == ([] if is_whole else ["m0"], [])

    @pytest.mark.parametrize("code", ["AccessDenied", "KmsDisabled", "KMS.InvalidStateException"])
    def test_a_queue_that_is_closed_is_a_refusal(self, code: str) -> None:
        sqs = Sqs()
        sqs.fail = lambda entries: denial(code)

        done = source(QUEUE, Origin.SNS, sqs).deliver(going(sent("b")))

        assert (done.refused is not None, done.bounced) == (True, {})

    def test_a_message_that_sqs_finds_empty_keeps_no_other_back(self) -> None:
        """A whole call is refused for it, as AWS was recorded to do."""
        sqs = Sqs()
        sqs.fail = lambda entries: (
            denial("MissingParameter") if any(not one["MessageBody"] for one in entries) else None
        )

        done = source(QUEUE, Origin.EVENTBRIDGE, sqs).deliver(
            going(replace(of_rule(body=""), message_id="bad"), *several(of_rule(), 2))
        )

        assert [(one.key, one.is_of_content) for one in done.faults] == [("bad", True)]
        assert list(done.new_ids) == ["m0", "m1"]

    def test_a_queue_whose_url_is_not_told_is_a_refusal(self) -> None:
        done = source(QUEUE, Origin.SNS, Sqs("NonExistentQueue")).deliver(
            going(*several(sent("b"), 2))
        )

        assert [(one.key, one.is_refusal) for one in done.faults] == [("m0", True), ("m1", True)]

    def test_a_message_that_a_queue_can_not_have_keeps_no_other_back(self) -> None:
        call = {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"}
        bad = universal("sqs:sendMessage", **call, MessageBody="b", MessageAttributes=7)
        good = universal("sqs:sendMessage", **call, MessageBody="b")

        done = source(QUEUE, Origin.SCHEDULER, Sqs()).deliver(
            going(replace(bad, message_id="bad"), good)
        )

        assert [(one.key, one.is_of_content) for one in done.faults] == [("bad", True)]
        assert list(done.new_ids) == ["first"]

    def test_what_is_too_large_for_a_target_is_not_asked_of_it(self) -> None:
        client = Recording()
        large, larger = sent("x" * (MOST_OF_AN_INPUT + 1)), sent("x" * (MOST_OF_AN_EVENT + 1))
        record = sent("x" * (MOST_OF_A_RECORD + 1))

        done = [
            source(MACHINE, Origin.EVENTBRIDGE, client).deliver(going(large)),
            source(FUNCTION, Origin.EVENTBRIDGE, client).deliver(going(larger)),
            source(TOPIC, Origin.EVENTBRIDGE, client).deliver(going(large)),
            source(STREAM, Origin.SNS, client).deliver(going(record)),
        ]

        assert [fault.code for one in done for fault in one.faults] == ["LetterTooLarge"] * 4
        assert done[0].faults[0].is_of_content
        assert client.calls == []

    def test_a_letter_that_holds_no_event_is_not_given(self) -> None:
        lambdas = Recording()

        done = source(FUNCTION, Origin.SNS, lambdas).deliver(going(sent("raw"), of_sns()))

        assert [one.code for one in done.faults] == ["InvalidLetter"]
        assert len(lambdas.calls) == 1

    def test_an_execution_that_this_delivery_has_started_already_is_accepted(self) -> None:
        again = Recording(lambda _: "ExecutionAlreadyExists")

        done = source(MACHINE, Origin.EVENTBRIDGE, again).deliver(going(of_rule()))

        assert list(done.new_ids) == ["first"]
        assert done.faults == []

    def test_an_execution_of_the_name_that_a_schedule_gave_may_be_another(self) -> None:
        again = Recording(lambda _: "ExecutionAlreadyExists")
        letter = universal("sfn:startExecution", StateMachineArn=MACHINE_ARN, Name="daily")

        done = source(MACHINE, Origin.SCHEDULER, again).deliver(going(letter))

        assert [one.is_of_content for one in done.faults] == [True]

    def test_no_letter_is_begun_when_the_time_of_a_delivery_is_over(self) -> None:
        ticks = iter([0.0, 0.0, LONGEST_ROUND.total_seconds() + 1])

        done = deliver_one_by_one(
            "Invoke", going(*several(sent("b"), 3)), lambda one: "id", lambda: next(ticks)
        )

        assert list(done.new_ids) == ["m0"]
        assert [(one.key, one.is_transient) for one in done.faults] == [("m1", True), ("m2", True)]

    def test_every_letter_is_answered_for_once(self) -> None:
        def give(one: Any) -> str:
            match one.letter.message_id:
                case "m0":
                    raise ValueError("no event")
                case "m2":
                    raise CallFailed("Invoke", "Nobody")
            return "id"

        done = deliver_one_by_one("Invoke", going(*several(sent("b"), 4)), give)

        answered = [*done.new_ids, *done.bounced, *(one.key for one in done.faults)]
        assert sorted(answered) == ["m0", "m1", "m2", "m3"]
        assert done.faults[0] == EntryFault(
            call="Invoke", key="m0", code="InvalidLetter", detail="no event"
        )


class Lambdas:
    """Lambda's word on one function: answers, or the exception that a call meets."""

    def __init__(self, timeout: Any, retries: Any) -> None:
        self.calls = 0
        self._timeout, self._retries = timeout, retries

    def get_function_configuration(self, *, FunctionName: str) -> Any:  # noqa: N803
        return self._answer("Timeout", self._timeout)

    def get_function_event_invoke_config(self, *, FunctionName: str) -> Any:  # noqa: N803
        return self._answer("MaximumRetryAttempts", self._retries)

    def _answer(self, name: str, value: Any) -> Any:
        self.calls += 1
        if value is None:
            return Recording(lambda _: "AccessDeniedException").invoke()
        return {name: value}


class TestWhatIsKnown:
    @pytest.mark.parametrize(
        ("timeout", "retries", "seconds"),
        [(30, 2, 90 + 180), (30, 1, 60 + 60), (30, 0, 30), (None, None, 2700 + 180)],
    )
    def test_a_function_fails_after_its_tries_and_the_waits_between_them(
        self, timeout: int | None, retries: int | None, seconds: int
    ) -> None:
        orders = source(FUNCTION, Origin.LAMBDA, Lambdas(timeout, retries))

        assert orders.time_to_fail(orders.facts(), 99) == timedelta(seconds=seconds)
        assert orders.facts().max_receive_count == 1 + (2 if retries is None else retries)
        assert not orders.settles_at_once

    def test_a_function_is_asked_about_once(self) -> None:
        lambdas = Lambdas(None, 1)
        facts = FunctionFacts(lambdas, FUNCTION_ARN)

        assert [facts.timeout(), facts.timeout()] == [LONGEST_TIMEOUT] * 2
        assert [facts.tries(), facts.tries()] == [2, 2]
        assert lambdas.calls == 2

    @pytest.mark.parametrize(
        ("target", "origin"),
        [
            (FUNCTION, Origin.SNS),
            (FUNCTION, Origin.EVENTBRIDGE),
            (QUEUE, Origin.SNS),
            (MACHINE, Origin.SCHEDULER),
            (ENDPOINT, Origin.SNS),
        ],
    )
    def test_elsewhere_acceptance_is_the_outcome_and_nobody_is_asked(
        self, target: Target, origin: Origin
    ) -> None:
        client = Recording()
        orders = source(target, origin, client)

        facts = orders.facts()

        assert (orders.name, orders.settles_at_once) == (target.name, True)
        assert (facts.arn, facts.depth, facts.is_fifo) == (target.place, 0, False)
        assert orders.time_to_fail(facts, 3) == timedelta()
        assert client.calls == []

    @pytest.mark.parametrize(
        ("fails_to", "dlq_url", "comes_back"),
        [
            ("123456789012:orders-dlq", "sqs.eu-west-1.amazonaws.com/123456789012", True),
            ("123456789012:orders-dlq", "localhost:4566/123456789012", True),
            ("123456789012:another-dlq", "sqs.eu-west-1.amazonaws.com/123456789012", False),
            (None, "sqs.eu-west-1.amazonaws.com/123456789012", False),
            ("123456789012:orders-dlq", "sqs.us-east-1.amazonaws.com/123456789012", False),
            ("123456789012:orders-dlq", "sqs.eu-west-1.amazonaws.com/210987654321", False),
        ],
    )
    def test_a_queue_that_fails_to_the_same_dlq_is_a_source_whose_messages_come_back(
        self, fails_to: str | None, dlq_url: str, comes_back: bool
    ) -> None:
        orders = beside(f"https://{dlq_url}/orders-dlq", fails_to)

        facts = orders.facts()

        assert orders.settles_at_once is not comes_back
        assert orders.time_to_fail(facts, 9) == timedelta(seconds=90 if comes_back else 0)
        assert facts.depth == (6 if comes_back else 0)
        assert facts.max_message_size == 1_048_576

    @pytest.mark.parametrize("code", ["AccessDenied", "NonExistentQueue", "SomethingNew"])
    def test_a_queue_that_can_not_be_asked_is_taken_at_its_word(self, code: str) -> None:
        orders = beside(DLQ_URL, "123456789012:orders-dlq", denial(code))

        assert orders.settles_at_once
        assert orders.facts().depth == 0

    def test_a_moments_trouble_of_a_queue_leaves_open_whether_its_messages_come_back(self) -> None:
        orders = beside(DLQ_URL, None, denial("RequestThrottled"))

        with pytest.raises(CallFailed, match="RequestThrottled"):
            orders.facts()
        with pytest.raises(CallFailed, match="RequestThrottled"):
            assert orders.settles_at_once

    def test_a_letter_is_of_the_target_that_was_recognised_else_of_the_one_it_was_sent_to(
        self,
    ) -> None:
        orders = source(FUNCTION, Origin.LAMBDA, Recording())

        assert orders.owns(FUNCTION_ARN, None)
        assert orders.owns(None, some_metadata(queue="lambda:orders"))
        assert not orders.owns(QUEUE.place, some_metadata(queue="lambda:orders"))
        assert not orders.owns(None, None)
