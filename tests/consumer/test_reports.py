"""How outcomes are cut into messages: all of them are there, and each message is one that SQS takes."""

import json
import traceback
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.outcomes import MAX_OUTCOMES, Consumer, DeliveryOutcome, Result, parse_outcomes
from smart_redriver.consumer.report import MAX_BYTES, reports
from tests.consumer.scene import CONSUMER, OUTCOMES, QUEUE, Scene, a_trail


def an_outcome(number: int = 0, **changes: Any) -> DeliveryOutcome:
    usual: dict[str, Any] = {"queue": QUEUE, "message_id": f"m{number}", "original_id": "first"}
    return DeliveryOutcome(**usual | {"result": Result.FAILED} | changes)


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
        an_outcome(number, traceback=text[:4096] or None) for number, text in enumerate(texts)
    ]

    bodies = list(reports(Consumer(), outcomes))

    assert all(len(body.encode()) <= MAX_BYTES for body in bodies)
    assert [one for body in bodies for one in parse_outcomes(body).outcomes] == outcomes


def test_ten_thousand_outcomes_are_reports_of_a_thousand(scene: Scene) -> None:
    bodies = list(reports(CONSUMER, [an_outcome(number) for number in range(10_000)]))

    assert [len(parse_outcomes(body).outcomes) for body in bodies] == [MAX_OUTCOMES] * 10
    assert all(parse_outcomes(body).faults == {} for body in bodies)


def test_of_many_failures_the_first_ten_bring_their_traceback_and_all_go_in_one_request(
    scene: Scene,
) -> None:
    """SQS bills by 64 KB."""
    messages = [scene.message() for _ in range(30)]

    with scene.reporter().batch() as batch:
        for message in messages:
            with pytest.raises(OSError, match="down"), batch.message(message, QUEUE):
                raise OSError("down " + "x" * 300) from OSError("y" * 300)

    assert scene.calls == [OUTCOMES]
    assert [bool(one.traceback) for one in scene.outcomes()] == [True] * 10 + [False] * 20
    assert all(one.first_line for one in scene.outcomes())
    assert len(scene.bodies()[0]) <= 65_536


def test_no_traceback_is_made_that_is_not_sent(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are nine tenths of what a failure costs, and of a batch of ten thousand messages all may fail."""
    made = []
    format_tb = traceback.format_tb
    monkeypatch.setattr(
        traceback, "format_tb", lambda *a, **k: made.append(a) or format_tb(*a, **k)
    )
    batch, record = scene.reporter().batch(), scene.record()

    for number in range(30):
        batch.failed(record, OSError(f"down {number}"))

    assert len(made) == 10


def test_a_slow_queue_gets_as_many_reports_as_can_begin_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at = iter([0.0, 0.0, 0.1, 0.3])
    monkeypatch.setattr("smart_redriver.consumer.reporter.monotonic", lambda: next(at))

    scene.reporter().send([an_outcome(number) for number in range(3000)])

    assert len(scene.bodies()) == 2
    assert "TimeoutError" in caplog.text


def test_a_redriven_message_is_reported_under_the_same_id_as_the_trail_has(scene: Scene) -> None:
    for original in ("first", "another"):
        with scene.reporter().message(scene.message(trail=a_trail(original_id=original)), QUEUE):
            pass

    assert [one.original_id for one in scene.outcomes()] == ["first", "another"]
