"""How many letters one statement moves: ten, and more for a table that takes all of them."""

from datetime import timedelta

import pytest

from fakes.faults import Wire
from smart_redriver.postgres.engine.dead_letters import LARGEST_PAGE, PAGE, DeadLetters
from smart_redriver.postgres.engine.source import JobsSource
from tests.postgres.bench import QUEUE, Bench

A_MINUTE = timedelta(minutes=1)


def sizes(bench: Bench, wire: Wire) -> list[int]:
    """Letters of each statement that redrives."""
    return [len(one.request["rows"]) for one in wire.calls if one.operation == "RedriveLetters"]


@pytest.mark.parametrize(
    ("window", "largest"),
    [(100, 10), (500, 100)],
    ids=["a round's letters", "more, so that the consumer is known to be well"],
)
def test_statements_grow_in_a_pass_with_a_large_window_alone(bench, window, largest):
    wire = Wire()
    bench.die(*range(500))

    report = bench.run_pass(wire, initial_window=window, max_window=500, max_rate=0)

    assert report.redriven == sum(sizes(bench, wire)) == window
    assert max(sizes(bench, wire)) == largest


def test_a_pass_asks_once_for_each_statement_that_moves_letters_whether_they_are_gone(bench):
    wire = Wire()
    bench.die(*range(500))

    bench.run_pass(wire, initial_window=500, max_window=500, max_rate=0)

    asked = [len(one.request["rows"]) for one in wire.calls if one.operation == "FindLetters"]
    moved = sizes(bench, wire)
    assert (sum(asked), asked.count(100)) == (500, moved.count(100))
    assert len(asked) <= len(moved)


def test_each_page_of_letters_is_twice_as_large_as_the_one_before(bench):
    wire = Wire()
    bench.die(*range(2 * LARGEST_PAGE))
    letters = DeadLetters(bench.wired(wire), bench.clock.now)

    read = 0
    while few := letters.receive(10, hidden_for=A_MINUTE):
        read += len(few)

    pages = [one.request["limit"] for one in wire.calls if one.operation == "ReadLetters"]
    assert read == 2 * LARGEST_PAGE
    assert pages[:5] == [PAGE, 2 * PAGE, 4 * PAGE, 8 * PAGE, LARGEST_PAGE]
    assert set(pages[5:]) == {LARGEST_PAGE}


def test_a_statement_is_halved_where_a_letter_is_refused(bench):
    bench.die(*range(250))
    bench.owner.execute("alter table jobs add constraint fit check (payload <> '120') not valid")
    letters = DeadLetters(bench.database, bench.clock.now)
    source = JobsSource(bench.database, QUEUE, bench.clock.now)

    while few := letters.receive(source.letters_a_call, hidden_for=A_MINUTE):
        size = source.letters_a_call
        is_refused = bool(source.deliver(bench.outgoing(few)).bounced)
        assert source.letters_a_call == (max(10, size // 2) if is_refused else min(100, size * 2))

    assert bench.payloads("jobs_dlq") == [120]
    assert len(bench.payloads("jobs")) == 249
