"""Passes over a DLQ topic: redrive, hold, park; order by key; what arrives at the consumer; what the group commits."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.kafka.engine.letters import HELD_HEADER
from smart_redriver.kafka.engine.records import UNREADABLE, NewRecord, Partition
from tests.kafka.bench import Bench, nameless, spring

QUICK: dict[str, Any] = {"max_attempts": 1, "last_chance_seconds": 0, "base_delay_seconds": 0}


@pytest.fixture
def bench():
    return Bench()


def bad(value):
    return "Refused" if value.startswith(b"bad") else None


def test_dead_letters_go_back_and_succeed_and_nothing_waits(bench):
    bench.die(*(f"m{n}" for n in range(20)))

    bench.live()

    assert Counter(bench.done) == Counter(f"m{n}".encode() for n in range(20))
    assert not bench.waiting
    assert bench.parked == []


def test_a_letter_whose_headers_can_t_be_read_is_parked_as_it_is_and_holds_up_none(bench):
    unreadable = NewRecord(topic="orders.DLT", key=b"k", value=b"x", headers=(UNREADABLE,))
    bench.log.write([unreadable])
    bench.die("a", keys=["k"])

    bench.live()

    parked = [fields for event, fields in bench.events if event == "letter.parked"]
    assert [one["reason"] for one in parked] == ["INCOMPLETE"]
    (record,) = bench.log.in_topic("orders.DLT.parked")
    assert (record.key, record.value, record.headers[0]) == (b"k", b"x", UNREADABLE)
    assert bench.done == [b"a"]
    assert not bench.waiting


@pytest.mark.parametrize("topic", ["shop.orders.v1", "o" * 249])
def test_outcomes_are_heard_of_a_topic_with_any_name_that_kafka_takes(topic):
    bench = Bench(topics=[topic])
    bench.die("a", "b", topic=topic)
    bench.run_pass()
    bench.work()

    report = bench.run_pass()

    assert report.heard == {"succeeded": 2}


def test_a_redriven_message_has_its_own_key_value_and_headers_and_one_more(bench):
    bench.die("a")
    (before,) = bench.log.in_topic("orders")

    bench.run_pass()

    _, again = bench.log.in_topic("orders")
    assert (again.key, again.value, again.partition) == (b"a", b"a", before.partition)
    assert again.headers[:-1] == before.headers
    name, metadata = again.headers[-1]
    assert name == "RedriveTrail"
    assert RedriveMetadata.decode(metadata.decode()).queue == "orders"


def test_what_never_succeeds_is_parked_with_all_that_the_dlq_topic_had_of_it(bench):
    bench.die("bad 1", *(f"good {n}" for n in range(9)))

    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad 1"]
    (parked,) = bench.log.in_topic(bench.place.parked)
    names = [name for name, _ in parked.headers]
    assert names[0] == "of"
    assert {"kafka_dlt-original-topic", "kafka_dlt-exception-fqcn", "RedriveTrail"} <= set(names)
    assert len(bench.done) == 9
    assert not bench.waiting


def test_a_letter_of_no_topic_that_is_listed_is_parked_and_goes_nowhere():
    bench = Bench(topics=["orders"])
    bench.log.create("payments", 1)
    bench.die("good")
    (stranger,) = bench.log.in_topic(bench.place.dead_letters)
    headers = (("kafka_dlt-original-topic", b"payments"),)
    bench.log.write([replace(stranger, value=b"stranger", headers=headers)])

    bench.live()

    assert bench.parked == [b"stranger"]
    assert bench.done == [b"good"]
    assert bench.log.in_topic("payments") == []


def test_letters_of_two_topics_go_back_to_their_own():
    bench = Bench(topics=["orders", "payments"])
    bench.die("o1", "o2")
    bench.die("p1", topic="payments")

    bench.live()

    assert bench.values("payments") == [b"p1", b"p1"]
    assert Counter(bench.done) == Counter([b"o1", b"o2", b"p1"])


def test_order_is_kept_within_each_key_also_when_letters_fail_again():
    bench = Bench()
    values = [f"{key}{n}" for n in range(6) for key in "abc"]
    bench.die(*values, keys=["a", "b", "c"])
    failed: Counter[str] = Counter()

    def fails(value):
        failed[value] += 1
        return "Flaky" if value in (b"a0", b"b2") and failed[value] < 3 else None

    bench.live(fails=fails, steps=400, base_delay_seconds=0)

    for key in (b"a", b"b", b"c"):
        of_key = [one for one in bench.done if one.startswith(key)]
        assert of_key == [key + b"%d" % n for n in range(6)]
    assert not bench.waiting


@pytest.mark.parametrize("order", ["key", "none"])
def test_what_fails_again_goes_on_as_one_letter_although_its_consumer_drops_headers(order):
    bench = Bench(keeps_headers=False, order=order)
    values = [f"a{n}" for n in range(6)]
    bench.die(*values, keys=["a"])
    tries: Counter[bytes] = Counter()

    def fails(value):
        tries[value] += 1
        return "Flaky" if value in (b"a0", b"a3") and tries[value] < 3 else None

    bench.live(fails=fails, steps=100)

    assert Counter(bench.done) == Counter(one.encode() for one in values)
    assert not bench.waiting


def test_letters_flow_on_after_a_large_first_window():
    """Nothing went for as many seconds as it had letters, and then all the rest at once."""
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(1_000)))
    done = [0]

    for _ in range(25):
        bench.run_pass(max_rate=0, initial_window=200)
        bench.work(lambda _: None)
        bench.clock.advance(5)
        done.append(len(bench.done))

    first, *later = (after - before for before, after in pairwise(done))
    assert first == 200
    assert 300 < sum(later) < 800
    assert max(later) < 100


def wait_for_bad(bench):
    """All have been tried, the bad one has come back and waits."""
    bench.run_pass()
    for _ in range(5):
        bench.work(bad)
        bench.clock.advance(30)
        bench.run_pass(base_delay_seconds=900)


def test_a_held_letter_does_not_block_its_partition():
    bench = Bench(partitions=1)
    bench.die("bad 1", *(f"good {n}" for n in range(5)))

    wait_for_bad(bench)

    dead_letters = Partition(bench.place.dead_letters, 0)
    committed = bench.log.committed(bench.place.group, bench.place.dead_letters)[dead_letters]
    held = bench.log.in_topic(bench.place.held)
    assert committed >= 6
    assert [one.value for one in held][-1:] == [b"bad 1"]
    assert HELD_HEADER in dict(held[-1].headers)
    assert sorted(bench.done) == [b"good %d" % n for n in range(5)]


def test_a_held_letter_is_the_same_letter_to_a_process_that_begins_anew():
    bench = Bench(partitions=1)
    bench.die("bad 1", *(f"good {n}" for n in range(5)))
    wait_for_bad(bench)

    bench.process()
    bench.live(fails=bad, **QUICK)

    assert bench.parked == [b"bad 1"]
    assert len(bench.done) == 5
    assert not bench.waiting


def test_what_grows_old_in_the_dlq_topic_moves_to_the_retry_topic_while_nothing_goes():
    bench = Bench(partitions=1)
    bench.die("a", "b")

    bench.run_pass(mode=Mode.PAUSED)
    bench.clock.advance(timedelta(hours=13).total_seconds())
    bench.run_pass(mode=Mode.PAUSED)

    assert bench.values(bench.place.held) == [b"a", b"b"]
    dead_letters = Partition(bench.place.dead_letters, 0)
    assert bench.log.committed(bench.place.group, bench.place.dead_letters)[dead_letters] == 2
    bench.live()
    assert sorted(bench.done) == [b"a", b"b"]


def test_gaps_of_a_compacted_topic_are_passed_over():
    bench = Bench(partitions=1)
    bench.die("a", "b", "c")
    for one in bench.log.in_topic(bench.place.dead_letters)[:2]:
        bench.log.forget(one.position)

    bench.live()

    assert bench.done == [b"c"]
    assert not bench.waiting


def test_a_dlq_topic_that_was_made_anew_is_read_from_its_beginning():
    bench = Bench(partitions=1)
    bench.die("a", "b", "c")
    bench.live()
    bench.log.delete(bench.place.dead_letters)
    bench.log.create(bench.place.dead_letters, 1)
    bench.die("d")

    bench.live()

    assert sorted(bench.done) == [b"a", b"b", b"c", b"d"]
    assert not bench.waiting


@pytest.mark.parametrize("is_another_process", [False, True])
@pytest.mark.parametrize("topic", ["orders", "orders.DLT"])
@pytest.mark.parametrize("headers_of_death", [spring, nameless])
def test_the_same_messages_at_the_same_places_of_a_topic_that_was_created_again_are_new_letters(
    topic, headers_of_death, is_another_process
):
    """They were taken for copies of the first ones, and dropped."""
    bench = Bench(partitions=1, headers_of_death=headers_of_death, keeps_headers=False)
    bench.die("a", "b")
    bench.live()
    bench.create_again("orders")
    bench.create_again(topic)
    if is_another_process:
        bench.process()
    bench.die("a", "b")

    bench.live()

    assert bench.done == [b"a", b"b", b"a", b"b"]
    assert not bench.waiting


def test_the_topic_that_was_first_is_still_known_after_another_was_created_again_twice():
    bench = Bench(partitions=1)
    for _ in range(3):
        bench.die("a")
        bench.live()
        bench.create_again("orders")
        bench.process()

    assert bench.done == [b"a", b"a", b"a"]


def test_commits_in_a_topic_that_was_created_again_say_nothing_about_messages_of_the_one_before():
    bench = Bench(partitions=1)
    bench.die("a")
    bench.run_pass()
    (redriven,) = [of["original_id"] for event, of in bench.events if event == "letter.redriven"]
    bench.create_again("orders")
    bench.produce(*"pqrst")
    bench.work()

    bench.run_pass()

    entry = bench.memory().read_ledger([redriven]).entries[redriven]
    assert entry.status is Status.REDRIVEN
    assert not entry.is_settled


def test_letters_that_waited_when_their_topic_was_created_again_are_not_those_that_fail_there():
    """A process that followed gave them the ids of new ones, and took both for one letter."""
    bench = Bench(partitions=1)
    bench.die("a", "b")
    bench.run_pass(mode=Mode.PAUSED)
    bench.create_again("orders")
    bench.run_pass(mode=Mode.PAUSED)
    bench.process()
    bench.die("a", "b")

    bench.live()

    assert sorted(bench.done) == [b"a", b"a", b"b", b"b"]
    assert not bench.waiting


def test_letters_that_wait_while_their_topic_is_created_again_go_to_the_new_one():
    bench = Bench(partitions=1)
    bench.die("a", "b")
    bench.run_pass(mode=Mode.PAUSED)
    bench.create_again("orders")

    bench.live()

    assert bench.done == [b"a", b"b"]
    assert not bench.waiting


@pytest.mark.parametrize("topic", ["orders", "orders.DLT", "orders.DLT.held", "orders.DLT.parked"])
@pytest.mark.parametrize("is_another_process", [False, True])
@pytest.mark.parametrize("ids_are_told", [True, False])
def test_a_topic_that_is_created_again_with_fewer_partitions_is_used_as_it_is(
    topic, is_another_process, ids_are_told, monkeypatch
):
    bench = Bench(partitions=2)
    if not ids_are_told:
        monkeypatch.setattr(bench.log, "topic_ids", lambda _topics: {})
    bench.die("a", "b", "c", "d")
    bench.live(fails=lambda value: "Boom" if value in (b"c", b"d") else None, **QUICK)
    bench.die("e", "f")
    bench.run_pass(mode=Mode.PAUSED)
    bench.create_again(topic, partitions=1)
    if is_another_process:
        bench.process()
    bench.die("h", "j")  # of the partition that is still there

    for _ in range(5):
        bench.run_pass()
        bench.work()
        bench.clock.advance(60)

    assert {b"h", b"j"} < set(bench.done)
    assert not bench.waiting


def test_a_source_topic_that_is_gone_refuses_and_the_letters_stay():
    bench = Bench(partitions=1)
    bench.die("a")
    bench.log.delete("orders")

    report = bench.run_pass()

    assert report.to_json()["outcome"] in ("REFUSED", "FAILED")
    bench.log.create("orders", 1)
    bench.log.commit("shop", {Partition("orders", 0): 0})
    bench.produce("b")
    bench.live()
    assert bench.done == [b"b", b"a"]


def test_the_same_failure_written_twice_is_one_letter():
    bench = Bench(partitions=1)
    bench.die("a")
    (record,) = bench.log.in_topic(bench.place.dead_letters)
    bench.log.write([record])

    bench.live()

    assert bench.done == [b"a"]
    assert not bench.waiting


def test_two_processes_take_turns_and_repeat_nothing():
    bench = Bench()
    bench.die("bad 1", *(f"good {n}" for n in range(9)))
    processes = [bench.process(), bench.process()]

    for turn in range(60):
        bench.run_pass(process=processes[turn % 2], owner=f"process {turn % 2}", **QUICK)
        bench.work(bad)
        bench.clock.advance(60)

    assert Counter(bench.done) == Counter(b"good %d" % n for n in range(9))
    assert bench.parked == [b"bad 1"]


def test_values_that_are_no_text_arrive_as_they_were():
    bench = Bench()
    bench.die("a")
    (record,) = bench.log.in_topic(bench.place.dead_letters)
    odd = b"\x00\xff\xfe"
    bench.log.records[record.position.partition][record.offset] = replace(record, value=odd)

    bench.live()

    assert bench.done == [odd]


def test_while_the_consumer_is_down_nothing_counts_as_done():
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(5)))

    for _ in range(5):
        report = bench.run_pass(initial_window=2)
        bench.clock.advance(60)

    assert len(bench.values("orders")) == 5 + 2
    assert report.to_json()["redriven"] == 0


@pytest.mark.parametrize(("order", "count"), [("key", 10_000), ("none", 1_000)])
def test_ten_thousand_letters(order, count):
    bench = Bench(partitions=6, order=order)
    bench.die(*(f"m{n}" for n in range(count)))

    bench.live(steps=400, max_rate=0, initial_window=1_000)

    assert len(bench.done) == len(set(bench.done)) == count
    assert not bench.waiting


def test_no_cause_is_named_once_its_letter_is_parked():
    bench = Bench()
    bench.die("bad 1", *(f"good {n}" for n in range(12)), keys=["a", "b"])
    headlines = []

    for n in range(12):
        report = bench.run_pass(**QUICK | {"max_attempts": 4})
        headlines.append((bool(bench.parked), "for Refused" in report.headline))
        bench.work(bad)
        if bench.parked:
            bench.die(f"late {n}")
        bench.clock.advance(60)

    assert (False, True) in headlines
    assert (True, False) in headlines
    assert (True, True) not in headlines


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_letter_that_its_topic_finds_too_large_is_parked(order):
    bench = Bench(order=order)
    bench.die("large" * 100, "a", "b")
    bench.log.limits["orders"] = 300

    bench.live()

    assert bench.parked == [b"large" * 100]
    (entry,) = bench.memory().read_ledger(parked_ids(bench)).entries.values()
    assert entry.park_reason == "UNDELIVERABLE"
    assert sorted(bench.done) == [b"a", b"b"]


def parked_ids(bench):
    headers = [dict(one.headers) for one in bench.log.in_topic(bench.place.parked)]
    return [RedriveMetadata.decode(one["RedriveTrail"].decode()).original_id for one in headers]


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_letter_that_the_parking_topic_finds_too_large_stays_and_that_is_said(order):
    bench = Bench(order=order)
    bench.die("large" * 100, "a", "b")
    for topic in ("orders", bench.place.parked):
        bench.log.limits[topic] = 300

    for _ in range(4):
        report = bench.run_pass()
        bench.work()
        bench.clock.advance(60)

    assert "1 of 1 letter can't be parked: it is too large for the parking lot" in report.headline
    assert bench.memory().load_circuit().waiting_since is not None
    stuck = [fields for event, fields in bench.events if event == "letter.stuck"]
    assert {(one["reason"], one["code"]) for one in stuck} == {("UNDELIVERABLE", "LetterTooLarge")}
    assert sorted(bench.done) == [b"a", b"b"]

    bench.log.limits.clear()
    bench.live()

    assert sorted(bench.done) == [b"a", b"b", b"large" * 100]
    assert bench.memory().load_circuit().stuck == 0


@pytest.mark.parametrize("value", [b"\xff" * 900, b"a" * 900])
def test_a_letter_goes_back_that_is_as_large_as_messages_may_be(value):
    """As text, what is no text is longer."""
    bench = Bench(max_message_bytes=1_000)
    bench.die("a")
    (record,) = bench.log.in_topic(bench.place.dead_letters)
    bench.log.records[record.position.partition][record.offset] = replace(record, value=value)

    bench.live()

    assert bench.done == [value]


def test_a_letter_with_headers_that_make_it_too_large_is_not_tried():
    bench = Bench(max_message_bytes=1_000)
    bench.die("a")
    (record,) = bench.log.in_topic(bench.place.dead_letters)
    headers = (*record.headers, ("large", b"x" * 1_000))
    bench.log.records[record.position.partition][record.offset] = replace(record, headers=headers)

    bench.run_pass()

    assert bench.parked == [b"a"]
    assert len(bench.values("orders")) == 1


@pytest.mark.parametrize("topic", ["orders.DLT", "orders.DLT.held", "orders.DLT.parked"])
def test_a_topic_that_is_gone_stops_passes_until_it_is_there_again(topic):
    bench = Bench(partitions=1)
    bench.die("a", "b")
    bench.run_pass(initial_window=1)
    kept = bench.log.in_topic(topic)
    bench.log.delete(topic)

    for _ in range(3):
        report = bench.run_pass()
        bench.work()
        bench.clock.advance(60)

    assert report.to_json()["outcome"] == "FAILED"
    bench.log.create(topic, 1)
    bench.log.write(kept)
    bench.live()
    assert sorted(bench.done) == [b"a", b"b"]


def test_what_is_compacted_away_while_it_waits_in_memory_still_goes_back():
    bench = Bench(partitions=1)
    bench.die("a", "b")
    bench.run_pass(mode=Mode.PAUSED)
    for one in bench.log.in_topic(bench.place.dead_letters):
        bench.log.forget(one.position)

    bench.live()

    assert sorted(bench.done) == [b"a", b"b"]
    assert not bench.waiting


def test_headers_that_can_not_be_read_cost_no_letter():
    bench = Bench(partitions=1)
    bench.die(*"abcd")
    spoiled = [
        ("RedriveTrail", b"{"),
        ("RedriveHeld", b"\xff"),
        ("kafka_dlt-original-offset", b"many"),
        ("kafka_dlt-original-partition", None),
    ]
    for record, header in zip(bench.log.in_topic(bench.place.dead_letters), spoiled, strict=True):
        bench.log.records[record.position.partition][record.offset] = replace(
            record, headers=(*record.headers, header)
        )

    bench.live()

    assert sorted(bench.done) == [b"a", b"b", b"c", b"d"]
    assert not bench.waiting


@pytest.mark.parametrize("year", [1970, 9999])
def test_a_time_that_nothing_can_be_added_to_stops_no_pass(bench, year):
    """One record whose writer had given microseconds for milliseconds ended the process, each time that it began."""
    bench.die("a", "b")
    first = bench.log.in_topic(bench.place.dead_letters)[0]
    strange = replace(first, at=datetime(year, 12, 31, tzinfo=UTC))
    bench.log.records[first.position.partition][first.offset] = strange

    bench.live()

    assert sorted(bench.done) == [b"a", b"b"]
    assert not bench.waiting


@pytest.mark.parametrize("failed_at", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_time_in_an_envelope_that_is_none_in_utc_is_not_told(bench, failed_at):
    """It ended the process, too."""
    envelope = {"original_topic": "orders", "error_class": "X", "payload": "a"}
    value = json.dumps({**envelope, "failed_at": failed_at}).encode()
    bench.log.write([NewRecord(topic=bench.place.dead_letters, key=b"k", value=value)])

    bench.live(steps=3)

    assert bench.done == [b"a"]
