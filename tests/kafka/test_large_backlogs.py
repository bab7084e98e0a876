"""A DLQ topic with more letters than memory has room for: their outcomes are known all the same."""

from collections import Counter
from typing import Any

import pytest

from smart_redriver.kafka.engine import open_letters
from tests.kafka.bench import Bench, nameless

ROOM = 30
MANY = [f"m{n}" for n in range(5 * ROOM)]


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    monkeypatch.setattr(open_letters, "MOST_LETTERS", ROOM)
    monkeypatch.setattr(open_letters, "MOST_AHEAD", ROOM)
    monkeypatch.setattr(open_letters, "PAGE", 10)


def pass_and_work(bench: Bench, times: int, **more: Any) -> None:
    fails = more.pop("fails", lambda _: None)
    for _ in range(times):
        bench.run_pass(**more)
        bench.work(fails)
        bench.clock.advance(30)


@pytest.mark.parametrize("differs", [{}, {"order": "none"}, {"commits_first": True}])
def test_letters_that_memory_has_no_room_for_follow_as_soon_as_those_before_succeed(differs):
    bench = Bench(**differs)
    bench.die(*MANY)

    pass_and_work(bench, 30, max_rate=0)

    assert Counter(bench.done) == Counter(one.encode() for one in MANY)
    assert not bench.waiting


def test_failures_are_known_before_memory_has_room_for_them():
    bench = Bench()
    bench.die(*MANY)

    pass_and_work(bench, 12, fails=lambda _: "Down", initial_window=5)

    assert bench.run_pass().circuit_after == "OPEN"
    assert len(bench.values("orders")) - len(MANY) < 12


@pytest.mark.parametrize("keeps_headers", [True, False])
def test_letters_that_fail_again_behind_those_in_memory_keep_the_order_of_their_key(keeps_headers):
    bench = Bench(keeps_headers=keeps_headers)
    bench.die(*MANY, keys=["a", "b", "c"])
    tries: Counter[bytes] = Counter()

    def fails(value):
        tries[value] += 1
        return "Flaky" if value in (b"m0", b"m7", b"m100") and tries[value] < 3 else None

    bench.live(fails=fails, steps=400, base_delay_seconds=0)

    for key in range(3):
        of_key = [one for one in bench.done if int(one[1:]) % 3 == key]
        assert of_key == [b"m%d" % n for n in range(key, len(MANY), 3)]
    assert not bench.waiting


def test_a_record_that_can_t_be_recognised_counts_although_memory_has_no_room_for_it():
    bench = Bench(headers_of_death=nameless, keeps_headers=False)
    bench.die(*MANY)

    pass_and_work(bench, 4, fails=lambda _: "Down", initial_window=5)

    assert not any(fields.get("heard") for _, fields in bench.events)


@pytest.mark.parametrize(("becomes", "why"), [("succeeded", None), ("failed", "Down")])
def test_a_new_process_learns_the_outcomes_of_more_than_the_one_before_could_note(
    monkeypatch, becomes, why
):
    monkeypatch.setattr("smart_redriver.kafka.engine.outcomes.MOST_NOTED", 3)
    bench = Bench()
    bench.die(*MANY)
    bench.run_pass(initial_window=ROOM)
    bench.work(lambda _: why)
    bench.process()

    heard: Counter[str] = Counter()
    for _ in range(2):
        heard += Counter(bench.run_pass(initial_window=ROOM).heard)

    assert heard == {becomes: ROOM}
