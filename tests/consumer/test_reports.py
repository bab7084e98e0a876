"""How outcomes are cut into messages: all of them are there, and each message is one that SQS takes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.consumer import Consumer
from smart_redriver.consumer.report import MAX_BYTES, MAX_OUTCOMES, Outcome, reports
from smart_redriver.engine.reports.outcomes import parse_outcomes, report_fields
from tests.consumer.scene import CONSUMER, OUTCOMES, QUEUE, Scene, some_metadata


def an_outcome(number: int = 0, **changes: Any) -> Outcome:
    usual = {"queue": QUEUE, "message_id": f"m{number}", "original_id": "first"}
    return usual | {"result": "failed"} | changes


def test_no_outcomes_are_no_report() -> None:
    assert list(reports(CONSUMER, [])) == []


def test_a_report_holds_only_what_there_is_to_say() -> None:
    [body] = reports(Consumer(name="billing"), [an_outcome()])

    assert json.loads(body) == {
        "version": 1,
        "consumer": {"name": "billing"},
        "outcomes": [
            {"queue": QUEUE, "message_id": "m0", "original_id": "first", "result": "failed"}
        ],
    }


TEXTS = st.text(st.characters(categories=["L", "So", "P"]), max_size=40).map(
    lambda text: text * 100
)


@given(st.lists(TEXTS, max_size=60))
def test_each_report_is_small_enough_and_together_they_hold_everything(texts: list[str]) -> None:
    outcomes = [
        an_outcome(number, traceback=text[:4096] or "none") for number, text in enumerate(texts)
    ]

    bodies = list(reports(Consumer(), outcomes))

    assert all(len(body.encode()) <= MAX_BYTES for body in bodies)
    parsed = [one for body in bodies for one in parse_outcomes(body).outcomes]
    assert [report_fields(one) for one in parsed] == outcomes


def test_ten_thousand_outcomes_are_reports_of_a_thousand(scene: Scene) -> None:
    bodies = list(reports(CONSUMER, [an_outcome(number) for number in range(10_000)]))

    assert [len(parse_outcomes(body).outcomes) for body in bodies] == [MAX_OUTCOMES] * 10
    assert all(parse_outcomes(body).faults == {} for body in bodies)


def failing(scene: Scene, *errors: Exception) -> None:
    """A batch whose messages fail, each with one of these."""
    with scene.reporter().batch() as batch:
        for error in errors:
            with pytest.raises(type(error)), batch.message(scene.message(), QUEUE):
                raise error


def reported(scene: Scene) -> list[Outcome]:
    """The outcomes as they stand in the one report."""
    [body] = scene.bodies()
    outcomes: list[Outcome] = json.loads(body)["outcomes"]
    return outcomes


def test_one_traceback_stands_for_all_failures_of_its_cause(scene: Scene) -> None:
    failing(scene, *(OSError(f"order {number} can not be read") for number in range(5)))

    assert [bool(one.get("traceback")) for one in reported(scene)] == [True] + [False] * 4
    assert {one["cause"] for one in reported(scene)} == {
        "OSError in test_reports.failing: order * can not be read"
    }


def test_whoever_reads_a_report_has_the_traceback_with_each_failure(scene: Scene) -> None:
    failing(scene, OSError("order 1"), KeyError("total"), OSError("order 2"))

    first, other, second = scene.outcomes()
    assert first.traceback == second.traceback != other.traceback
    assert "raise error" in (second.traceback or "")


def test_ten_failures_of_one_cause_are_a_report_of_three_kilobytes(scene: Scene) -> None:
    """It was 7.6 KB with a traceback for each."""
    failing(scene, *(OSError(f"order {number}: connection refused") for number in range(10)))

    [body] = scene.bodies()
    assert len(body) <= 3_700


def test_of_many_causes_the_first_ten_bring_their_traceback_and_all_go_in_one_request(
    scene: Scene,
) -> None:
    """SQS bills by 64 KB."""
    names = [chr(ord("a") + number) * 5 for number in range(26)]
    failing(scene, *(OSError(f"{name} is down " + "x" * 300) for name in names))

    assert scene.calls == [OUTCOMES]
    outcomes = reported(scene)
    assert [bool(one.get("traceback")) for one in outcomes] == [True] * 10 + [False] * 16
    assert all(one["first_line"] for one in outcomes)
    assert len(scene.bodies()[0]) <= 65_536


def test_no_traceback_is_made_that_is_not_sent(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are most of what a failure costs, and of a batch of ten thousand messages all may fail."""
    made: list[BaseException] = []

    def make(error: BaseException, *_: object) -> str:
        made.append(error)
        return "a traceback"

    monkeypatch.setattr("smart_redriver.consumer.reporter.traceback_of", make)
    failing(scene, *(OSError(f"down {number}") for number in range(30)))

    assert len(made) == 1


def test_a_redriven_message_is_reported_under_the_same_id_as_the_metadata_has(scene: Scene) -> None:
    for original in ("first", "another"):
        with scene.reporter().message(
            scene.message(metadata=some_metadata(original_id=original)), QUEUE
        ):
            pass

    assert [one.original_id for one in scene.outcomes()] == ["first", "another"]
