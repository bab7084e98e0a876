"""Live messages as evidence: what the group's position and the DLQ topic tell of each minute, and what they don't."""

from datetime import timedelta

import pytest

from fakes.kafka import FakeLog
from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.open_letters import OpenLetters
from smart_redriver.kafka.engine.queue_metrics import LIVE_BEFORE, TopicMetricsReader
from smart_redriver.kafka.engine.records import Partition
from tests.kafka.bench import GROUP, Bench


def boom(_):
    return "Boom"


class Seen:
    """A reader over a bench's log, with its metrics from the beginning."""

    def __init__(self, **differs) -> None:
        self.bench = Bench(**differs)
        self.begin_anew()

    def begin_anew(self) -> None:
        self.start = self.bench.clock.now()
        self.open_letters = OpenLetters(self.bench.log, self.bench.place)
        self.metrics_reader = TopicMetricsReader(
            self.bench.log, self.open_letters, self.bench.place, self.bench.clock.now
        )
        self.metrics_reader.look()

    def minute(self) -> None:
        self.bench.clock.advance(60)
        self.metrics_reader.look()

    def metrics(self):
        return self.metrics_reader.since(self.start, self.bench.clock.now(), "orders").minutes


def test_what_is_passed_and_not_dead_has_succeeded():
    seen = Seen()
    seen.bench.produce(*"abcde")
    seen.bench.work(lambda value: "Boom" if value in (b"a", b"b") else None)
    seen.minute()

    (first,) = seen.metrics()

    assert (first.sent, first.received, first.deleted, first.held) == (5, 5, 3, 0)


def test_what_waits_is_neither_done_nor_failed():
    seen = Seen()
    seen.bench.produce(*"abc")
    seen.minute()

    (first,) = seen.metrics()

    assert (first.sent, first.deleted, first.visible) == (3, 0, 3)


def test_a_failure_that_is_not_committed_past_yet_takes_no_success_away_for_good():
    seen = Seen()
    seen.bench.produce("a", "b")
    seen.bench.work(boom)
    committed = seen.bench.log.committed(GROUP, "orders")
    seen.bench.log.commit(GROUP, dict.fromkeys(committed, 0))
    seen.minute()
    seen.bench.log.commit(GROUP, committed)
    seen.bench.produce("c")
    seen.bench.work()
    seen.minute()

    assert sum(one.deleted for one in seen.metrics()) == 1


def test_redriven_messages_alone_are_no_live_traffic():
    seen = Seen()
    seen.bench.produce("a")
    seen.metrics_reader.sent("orders", 1)
    seen.bench.work()
    seen.minute()

    assert seen.metrics() == ()


def test_a_group_that_commits_before_it_fails_tells_nothing():
    seen = Seen(commits_first=True)
    seen.bench.produce("a")
    seen.bench.work()
    seen.minute()

    assert seen.metrics() == ()


def test_a_topic_that_was_made_anew_begins_anew():
    seen = Seen(partitions=1)
    seen.bench.produce(*"abc")
    seen.bench.work()
    seen.minute()
    seen.bench.log.delete("orders")
    seen.bench.log.create("orders", 1)
    seen.bench.log.commit(GROUP, {Partition("orders", 0): 0})
    seen.minute()

    assert seen.metrics() == ()


def test_a_group_that_is_set_back_is_not_taken_for_one_that_fails():
    """An operator lets it process messages again: until it had come as far as before, none seemed to succeed."""
    seen = Seen(partitions=1)
    seen.bench.produce(*"abcdef")
    seen.bench.work()
    seen.minute()
    seen.bench.log.commit(GROUP, {Partition("orders", 0): 0})
    seen.minute()
    seen.bench.log.commit(GROUP, {Partition("orders", 0): 4})
    seen.minute()

    assert [(one.received, one.deleted) for one in seen.metrics()] == [(4, 4)]


def test_what_was_dropped_before_a_group_s_first_commit_was_not_processed():
    seen = Seen(partitions=1)
    seen.bench.produce(*"abcde")
    for record in seen.bench.log.in_topic("orders"):
        seen.bench.log.forget(record.position)
    seen.begin_anew()
    seen.bench.produce("f")
    seen.bench.work()
    seen.minute()

    assert [(one.received, one.deleted) for one in seen.metrics()] == [(1, 1)]


def test_a_quiet_hour_has_a_minute_each():
    seen = Seen()
    seen.bench.produce("a")
    seen.bench.work()
    seen.bench.clock.advance(timedelta(hours=1).total_seconds())
    seen.metrics_reader.look()

    assert len(seen.metrics()) == 60
    assert sum(one.deleted for one in seen.metrics()) == 1


def test_what_could_not_be_asked_is_told_to_who_asks(monkeypatch):
    seen = Seen()

    def refuse(*_):
        raise CallFailed("FetchOffsets", "NoAnswer")

    monkeypatch.setattr(seen.bench.log, "committed", refuse)
    seen.metrics_reader.look()

    with pytest.raises(CallFailed):
        seen.metrics()


def test_live_traffic_shows_that_the_consumer_is_well_again():
    """As everywhere: without it, a canary has to wait for the cool-down."""
    bench = Bench()
    bench.die(*(f"m{n}" for n in range(30)))
    for _ in range(8):
        bench.run_pass(initial_window=5)
        bench.work(boom)
        bench.clock.advance(60)
    opened = bench.run_pass(initial_window=5).circuit_after

    for minute in range(12):
        bench.produce(*(f"live {minute} {n}" for n in range(6)))
        bench.work()
        bench.clock.advance(60)
        bench.run_pass(initial_window=5)

    assert opened == "OPEN"
    assert sum(one.startswith(b"m") for one in bench.done) == 30


def test_what_was_written_in_the_minutes_before_the_first_look_is_known():
    bench = Bench()
    for minute in range(8):
        bench.produce(*(f"{minute} {n}" for n in range(minute)))
        bench.work()
        bench.clock.advance(60)
    metrics_reader = TopicMetricsReader(
        bench.log, OpenLetters(bench.log, bench.place), bench.place, bench.clock.now
    )
    metrics_reader.look()
    now = bench.clock.now()

    told = metrics_reader.since(now, now, "orders").sent_before
    later = metrics_reader.since(now, now + 2 * LIVE_BEFORE, "orders").sent_before

    assert [sent for _, sent in told] == [3, 4, 5, 6, 7]
    assert told[-1][0] == now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    assert later == ()


def test_a_cluster_that_does_not_know_when_records_were_written_keeps_no_book_from_being_read(
    monkeypatch,
):
    def refuse(*_):
        raise CallFailed("ListOffsets", "UNSUPPORTED_VERSION")

    monkeypatch.setattr(FakeLog, "written_by", refuse)
    seen = Seen()
    seen.bench.produce("a")
    seen.bench.work()
    seen.minute()

    assert sum(one.sent for one in seen.metrics()) == 1


def dying(seen):
    seen.open_letters.look()
    return seen.metrics_reader.dying("orders")


def test_producers_messages_that_die_are_seen_for_ten_seconds():
    seen = Seen()
    seen.bench.die("old")
    counts = [dying(seen)]
    seen.bench.die("a", "b")
    counts.append(dying(seen))
    seen.bench.clock.advance(10)
    counts.append(dying(seen))
    seen.bench.clock.advance(1)

    assert [*counts, dying(seen)] == [0, 2, 2, 0]


def test_redriven_messages_that_die_again_are_no_producers_messages():
    seen = Seen()
    dying(seen)
    seen.bench.die("a")
    seen.bench.run_pass()
    seen.bench.work(boom)

    assert dying(seen) == 1  # as it died the first time
    assert seen.open_letters.arrived["orders"] == 2


def test_letters_that_are_read_on_do_not_die_now(monkeypatch):
    monkeypatch.setattr("smart_redriver.kafka.engine.open_letters.MOST_LETTERS", 2)
    seen = Seen()
    seen.bench.die(*"abcdef")
    counts = [dying(seen)]
    for _ in range(3):
        seen.open_letters.close([one.letter.message_id for one in seen.open_letters.letters()])
        counts.append(dying(seen))

    assert seen.open_letters.has_read_all
    assert counts == [0] * 4
