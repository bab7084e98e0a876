"""DLQ records that do not name the topic, partition and offset of the message that failed."""

from collections import Counter
from typing import Any

import pytest

from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.records import NewRecord
from tests.kafka.bench import Bench, nameless

QUICK: dict[str, Any] = {"max_attempts": 1, "last_chance_seconds": 0}
GOOD = [f"good {n}" for n in range(9)]


def bad(value):
    return "Refused" if value.startswith(b"bad") else None


def named(values):
    return Counter(one.encode() for one in values)


@pytest.fixture(params=["key", "none"])
def bench(request):
    return Bench(headers_of_death=nameless, order=request.param)


@pytest.mark.parametrize("keys", [(), [None]], ids=["a key each", "no keys"])
def test_what_never_succeeds_is_parked_and_goes_round_no_longer(bench, keys):
    bench.die("bad", *GOOD, keys=keys)

    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad"]
    assert Counter(bench.done) == named(GOOD)
    assert bench.values("orders").count(b"bad") == 2
    assert not bench.waiting


def test_a_message_that_came_back_has_not_succeeded(bench):
    bench.die("bad", *GOOD)
    bench.run_pass()
    bench.work(bad)

    report = bench.run_pass()

    assert report.heard == {"failed": 1, "succeeded": len(GOOD)}


def test_a_failure_that_was_written_twice_is_one_letter(bench):
    bench.die("bad", *GOOD)
    bench.run_pass()
    bench.work(bad)
    (_, copy) = (one for one in bench.log.in_topic(bench.place.dead_letters) if one.value == b"bad")
    bench.log.write([copy])

    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad"]


def test_headers_that_a_consumer_copied_on_to_a_message_of_its_own_make_that_no_copy(bench):
    bench.die("bad", *GOOD)
    bench.run_pass()
    copied = {one.value: one.headers for one in bench.log.in_topic("orders")}[b"bad"]
    bench.log.write([NewRecord(topic="orders", key=b"bad", value=b"own", headers=copied)])
    bench.produced.add(b"own")
    bench.work(lambda value: "Refused" if value in (b"bad", b"own") else None)

    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad"]
    assert Counter(bench.done) == named([*GOOD, "own"])
    assert not bench.waiting


def test_a_process_that_begins_anew_knows_what_came_back():
    bench = Bench(headers_of_death=nameless)
    bench.die("bad", *GOOD)
    bench.run_pass()
    bench.work(bad)
    bench.process()

    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad"]
    assert not bench.waiting


def test_letters_that_wait_in_the_retry_topic_cast_no_doubt_on_those_that_are_out():
    bench = Bench(headers_of_death=nameless)
    bench.die("bad", *GOOD, keys=["a", "b"])
    for _ in range(2):
        bench.run_pass(**QUICK | {"max_attempts": 2})
        bench.work(bad)
        bench.clock.advance(30)
    held = bench.values(bench.place.held)

    report = bench.run_pass(**QUICK | {"max_attempts": 2})

    assert held
    assert report.heard == {"failed": 1, "succeeded": 1}


@pytest.mark.parametrize("keeps_headers", [True, False])
def test_what_may_have_come_back_as_another_letter_is_no_success_and_keeps_no_place(keeps_headers):
    """A message that dies meanwhile could be any of those that are out, and the group always has something to do."""
    bench = Bench(headers_of_death=nameless, keeps_headers=keeps_headers)
    bench.die(*GOOD)
    bench.run_pass()
    bench.produce("bad live")
    bench.work(bad)
    bench.produce("waits")
    process = bench._process

    first = bench.run_pass()
    reports = []
    for _ in range(3):
        bench.clock.advance(60)
        bench.work()
        reports.append(bench.run_pass())

    # A look at which no letter finds a second reads none: the next one gives the places up.
    assert first.heard.total() == 0
    assert first.discarded + reports[0].discarded == len(GOOD)
    assert sum(one.heard["succeeded"] for one in reports) == 1  # the one that died meanwhile
    assert not process.awaits_outcomes
    assert not bench.waiting


def test_a_process_that_begins_anew_takes_no_message_for_done_that_may_have_come_back():
    bench = Bench(headers_of_death=nameless, keeps_headers=False)
    bench.die("bad", *GOOD)
    bench.run_pass()
    bench.work(bad)
    bench.clock.advance(1)
    bench.process()

    reports = [bench.run_pass() for _ in range(3)]

    assert [one.heard["succeeded"] for one in reports] == [0, 0, 0]


def test_a_doubt_goes_on_with_the_next_process():
    """The message that may have been a copy was redriven, and its position moved: nobody reads it again."""
    bench = Bench(headers_of_death=nameless, keeps_headers=False, order="none")
    bench.die("bad", *GOOD)
    bench.run_pass()
    bench.work(bad)
    while bench.waiting:
        bench.clock.advance(10)
        bench.run_pass(initial_window=11)
        bench.work()
    bench.clock.advance(1)

    bench.process()
    reports = [bench.run_pass() for _ in range(3)]

    assert sum(one.heard["succeeded"] for one in reports) <= 1  # the one that went last


def test_a_later_note_takes_back_what_an_earlier_one_was_sure_of():
    bench = Bench(headers_of_death=nameless, keeps_headers=False, order="none")
    bench.die("bad", *GOOD)
    bench.run_pass()
    (_, sure) = bench.memory().of("#out").load_pass() or (None, {})
    bench.clock.advance(1)
    stands_by = DeadLetterTopic(bench.log, bench.place, bench.clock.now)
    stands_by.parts(bench.memory(), bench.clock.now)
    bench.work(bad)
    while bench.waiting:
        bench.clock.advance(10)
        bench.run_pass(initial_window=11)
        bench.work()

    reports = [bench.run_pass(process=stands_by) for _ in range(3)]

    assert all(sure["out"].values())
    assert sum(one.heard["succeeded"] for one in reports) <= 1  # the one that went last
