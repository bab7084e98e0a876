"""Reports from the outcome queue: what is believed of them, and that nothing in one surprises a pass."""

import json
from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.reports.outcomes import (
    MAX_ERROR_CLASS,
    MAX_FIRST_LINE,
    MAX_NAME,
    MAX_OUTCOMES,
    MAX_TRACEBACK,
    NOT_A_REPORT,
    NOT_JSON,
    TOO_LARGE,
    TOO_MANY,
    Consumer,
    DeliveryOutcome,
    OutcomeMessage,
    Parsed,
    Result,
    error_of,
    parse_outcomes,
    report_fields,
)
from tests.unit.examples import NOW

IDS = st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True)
NUMBERS = st.integers(0, 10**12)
LINES = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=50)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = [one.name for one in fields(DeliveryOutcome)]
MIB = 1_048_576


def an_outcome(**changes: Any) -> dict[str, Any]:
    """A redriven message's failure, as a report has it."""
    usual = {
        "queue": "orders",
        "message_id": "second",
        "original_id": "first",
        "batch": 7,
        "generation": 2,
        "result": "failed",
        "receive_count": 1,
        "error_class": "shop.PaymentDeclined",
        "first_line": "card expired",
        "traceback": "Traceback: card expired",
    }
    return {name: value for name, value in (usual | changes).items() if value is not ...}


def test_what_a_consumer_wrote_is_not_shown_with_the_message_that_brought_it() -> None:
    message = OutcomeMessage(message_id="m", receipt_handle="r", body="a card", sent_at=NOW)

    assert "a card" not in repr(message)


def report(*outcomes: Any, **more: Any) -> str:
    return json.dumps({"version": 1, "outcomes": outcomes} | more)


def read(*outcomes: Any, **more: Any) -> Parsed:
    return parse_outcomes(report(*outcomes, **more))


def test_a_report_says_what_became_of_each_message_and_who_says_so() -> None:
    parsed = read(
        an_outcome(),
        an_outcome(result="permanent", parked_id="parked"),
        {"queue": "orders.fifo", "message_id": "third", "result": "failed"},
        consumer={"name": "billing", "version": "4", "log_group": "/aws/lambda/billing"},
    )

    consumer = Consumer(name="billing", version="4", log_group="/aws/lambda/billing")
    failed = DeliveryOutcome(
        queue="orders",
        message_id="second",
        original_id="first",
        result=Result.FAILED,
        batch=7,
        generation=2,
        receive_count=1,
        error_class="shop.PaymentDeclined",
        first_line="card expired",
        traceback="Traceback: card expired",
        consumer=consumer,
    )
    assert parsed.faults == {}
    assert parsed.outcomes[0] == failed
    assert parsed.outcomes[1].permanent
    assert (parsed.outcomes[1].result, parsed.outcomes[1].parked_id) == ("permanent", "parked")
    assert parsed.outcomes[2] == DeliveryOutcome(
        queue="orders.fifo",
        message_id="third",
        original_id="third",
        result=Result.FAILED,
        consumer=consumer,
    )


@st.composite
def outcomes(draw: st.DrawFn) -> DeliveryOutcome:
    result = draw(st.sampled_from(Result))
    is_redriven = draw(st.booleans())
    return DeliveryOutcome(
        queue=draw(st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)),
        message_id=draw(IDS),
        original_id=draw(IDS),
        result=result,
        batch=draw(NUMBERS) if is_redriven else None,
        generation=draw(NUMBERS) if is_redriven else None,
        receive_count=draw(st.none() | NUMBERS),
        permanent=result is Result.PERMANENT or draw(st.booleans()),
        parked_id=draw(IDS) if result is Result.PERMANENT else None,
        error_class=draw(st.none() | LINES),
        first_line=draw(st.none() | LINES),
        traceback=draw(st.none() | LINES),
    )


@given(st.lists(outcomes(), max_size=4))
def test_what_is_written_of_outcomes_is_what_is_read(written: list[DeliveryOutcome]) -> None:
    parsed = read(*map(report_fields, written))

    assert (list(parsed.outcomes), parsed.faults) == (written, {})


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("", NOT_JSON),
        ("not JSON", NOT_JSON),
        ("[" * MIB, NOT_JSON),
        ('{"version":' * 90_000, NOT_JSON),
        ("9" * MIB, NOT_JSON),
        ("x" * (MIB + 1), TOO_LARGE),
        ("null", NOT_A_REPORT),
        ("[]", NOT_A_REPORT),
        ("{}", NOT_A_REPORT),
        ('{"version": 1, "outcomes": {}}', NOT_A_REPORT),
        ('{"outcomes": []}', "version"),
        ('{"version": 2, "outcomes": []}', "version"),
        ('{"version": true, "outcomes": []}', "version"),
        ('{"version": "1", "outcomes": []}', "version"),
    ],
    ids=lambda text: str(text)[:30] or "empty",
)
def test_what_is_no_report_says_nothing_and_is_counted_once(body: str, fault: str) -> None:
    assert parse_outcomes(body) == Parsed(faults={fault: 1})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"queue": ...}, "queue"),
        ({"queue": "other queue"}, "queue"),
        ({"queue": "o" * 250}, "queue"),
        ({"message_id": ...}, "message_id"),
        ({"message_id": None}, "message_id"),
        ({"message_id": ""}, "message_id"),
        ({"message_id": "x" * 101}, "message_id"),
        ({"message_id": "a\n"}, "message_id"),
        ({"message_id": 7}, "message_id"),
        ({"original_id": "MESSAGE#x"}, "original_id"),
        ({"original_id": ["first"]}, "original_id"),
        ({"result": ...}, "result"),
        ({"result": "delete it"}, "result"),
        ({"result": {}}, "result"),
        ({"batch": "7"}, "batch"),
        ({"batch": True}, "batch"),
        ({"batch": -1}, "batch"),
        ({"batch": 10**12 + 1}, "batch"),
        ({"batch": 7.5}, "batch"),
        ({"batch": float("inf")}, "batch"),
        ({"batch": float("nan")}, "batch"),
        ({"batch": ...}, "generation"),
        ({"generation": ...}, "generation"),
        ({"receive_count": -1}, "receive_count"),
        ({"permanent": "yes"}, "permanent"),
        ({"parked_id": "parked"}, "parked_id"),
        ({"result": "permanent"}, "parked_id"),
        ({"result": "permanent", "parked_id": "no id"}, "parked_id"),
        ({"error_class": 5}, "error_class"),
        ({"first_line": ["a"]}, "first_line"),
        ({"traceback": {}}, "traceback"),
    ],
    ids=str,
)
def test_an_outcome_that_can_not_be_is_left_out_and_told_by_its_field(
    changes: dict[str, Any], fault: str
) -> None:
    good = an_outcome()

    parsed = read(good, an_outcome(**changes), good)

    assert len(parsed.outcomes) == 2
    assert fault in parsed.faults
    assert set(parsed.faults) <= set(FIELDS)


@pytest.mark.parametrize("given", [None, 5, "text", [], [an_outcome()]])
def test_what_is_no_outcome_at_all_is_counted(given: Any) -> None:
    parsed = read(given, an_outcome())

    assert (len(parsed.outcomes), parsed.faults) == (1, {"outcomes": 1})


@pytest.mark.parametrize("consumer", [5, [], {"name": 5}, {"version": {}, "log_group": "billing"}])
def test_who_reports_may_be_unreadable_and_the_outcomes_still_count(consumer: Any) -> None:
    parsed = read(an_outcome(), consumer=consumer)

    assert len(parsed.outcomes) == 1
    assert parsed.faults == {"consumer": 1}


def test_fields_of_later_versions_are_passed_over() -> None:
    assert read(an_outcome(colour="red"), colour="red").faults == {}


def test_whole_numbers_may_be_written_with_a_point() -> None:
    [outcome] = read(an_outcome(batch=7.0)).outcomes

    assert (outcome.batch, type(outcome.batch)) == (7, int)


@pytest.mark.parametrize("number", [0, 10**12])
def test_the_smallest_and_the_largest_number_that_a_ledger_takes_are_read(number: int) -> None:
    [outcome] = read(an_outcome(batch=number, generation=number)).outcomes

    assert (outcome.batch, outcome.generation) == (number, number)


@pytest.mark.parametrize(("told", "waits"), [(0, 0), (60, 60), (43_200, 43_200), (10**9, 43_200)])
def test_no_letter_is_told_to_wait_for_longer_than_sqs_hides_one(told: int, waits: int) -> None:
    [outcome] = read(an_outcome(retry_after=told)).outcomes

    assert outcome.retry_after == waits


def test_of_ten_thousand_outcomes_the_first_thousand_are_read() -> None:
    short = {"queue": "orders", "result": "failed"}

    parsed = read(*(short | {"message_id": f"m{number}"} for number in range(10_000)))

    assert [one.message_id for one in parsed.outcomes] == [f"m{n}" for n in range(MAX_OUTCOMES)]
    assert parsed.faults == {TOO_MANY: 10_000 - MAX_OUTCOMES}


def test_texts_are_cut_to_what_a_ledger_takes_and_a_terminal_shows_as_text() -> None:
    evil = "\x1b[2Jgone\r\ud800\u202e\n" + "x" * 9999
    [outcome] = read(
        an_outcome(error_class=evil, first_line=evil, traceback=evil),
        consumer={"name": evil, "log_stream": "x" * 9999},
    ).outcomes

    assert outcome.error_class == outcome.first_line == "\ufffd[2Jgone\ufffd\ufffd\ufffd"
    assert outcome.consumer.name == outcome.first_line
    assert outcome.traceback is not None
    assert outcome.traceback.startswith("\ufffd[2Jgone\ufffd\ufffd\ufffd\nxxx")
    assert len(outcome.traceback) == MAX_TRACEBACK
    assert outcome.consumer.log_stream == "x" * MAX_NAME


def is_fit(parsed: Parsed) -> bool:
    """Whether every text can be stored and shown, and is as long as it may be."""
    limits = {"error_class": MAX_ERROR_CLASS, "first_line": MAX_FIRST_LINE}
    limits |= {"traceback": MAX_TRACEBACK, "name": MAX_NAME}
    told = [asdict(one) | asdict(one.consumer) for one in parsed.outcomes]
    texts = {(name, str(value)) for one in told for name, value in one.items() if value}
    return (
        all(
            len(text) <= limits.get(name, 100_000) and text.encode() is not None
            for name, text in texts
        )
        and len(parsed.outcomes) <= MAX_OUTCOMES
    )


@given(st.text())
def test_any_text_is_read_without_an_error(body: str) -> None:
    assert parse_outcomes(body).outcomes == ()


@given(JSON)
def test_any_json_is_read_without_an_error(value: Any) -> None:
    assert is_fit(parse_outcomes(json.dumps(value)))
    assert is_fit(parse_outcomes(json.dumps({"version": 1, "outcomes": value, "consumer": value})))


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON | st.text() | IDS), max_size=3))
def test_any_values_in_an_outcomes_fields_are_read_or_counted(listed: list[Any]) -> None:
    parsed = read(*listed, *(an_outcome(**one) for one in listed))

    assert is_fit(parsed)
    assert len(parsed.outcomes) + sum(parsed.faults.values()) >= 2 * len(listed)


def test_a_thousand_outcomes_are_not_too_many() -> None:
    one = {"queue": "orders", "message_id": "m", "result": "succeeded"}

    parsed = parse_outcomes(json.dumps({"version": 1, "outcomes": [one] * MAX_OUTCOMES}))

    assert len(parsed.outcomes) == MAX_OUTCOMES
    assert dict(parsed.faults) == {}


def test_an_outcome_without_a_traceback_has_that_of_the_first_of_its_cause() -> None:
    failed = {"queue": "orders", "message_id": "m", "result": "failed"}
    of_one_cause = [
        failed | {"cause": "Declined"} | told
        for told in ({}, {"traceback": "first"}, {"traceback": "second"}, {})
    ]
    others = [failed, failed | {"cause": "Timeout"}]

    parsed = parse_outcomes(json.dumps({"version": 1, "outcomes": of_one_cause + others}))

    assert [one.traceback for one in parsed.outcomes] == [
        "first",
        "first",
        "second",
        "first",
        None,
        None,
    ]


def test_a_report_has_the_fields_that_say_something() -> None:
    outcome = DeliveryOutcome(
        queue="orders",
        message_id="m",
        original_id="o",
        result=Result.FAILED,
        batch=0,
        permanent=True,
    )

    assert report_fields(outcome) == {
        "queue": "orders",
        "message_id": "m",
        "original_id": "o",
        "result": Result.FAILED,
        "batch": 0,
        "permanent": True,
    }


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "String", "StringValue": " \n\t"},
        {"DataType": "String", "StringValue": ""},
        {"DataType": "Binary", "BinaryValue": b"boom"},
    ],
)
def test_an_error_attribute_without_words_tells_nothing(attribute: dict[str, Any]) -> None:
    said = {"DataType": "String", "StringValue": "card declined"}

    assert error_of({"Error": attribute}) is None
    assert error_of({"Error": attribute, "ErrorMessage": said}) == "card declined"
