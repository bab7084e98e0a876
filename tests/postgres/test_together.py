"""Two passes and two workers at once, at the same rows."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.source import JobsSource
from tests.postgres.bench import QUEUE, Bench


def deliver_all(bench: Bench, *, parks: bool = False) -> Counter[str]:
    """Move every letter that can be seen; the new ids."""
    dlq = DeadLetters(bench.database, bench.clock.now)
    lot = ParkingLot(bench.database, bench.clock.now)
    move = lot.park if parks else JobsSource(bench.database, QUEUE, bench.clock.now).deliver
    new_ids: Counter[str] = Counter()
    while letters := dlq.receive(10, hidden_for=bench.place.time_to_fail):
        new_ids.update(move(bench.outgoing(letters)).new_ids.values())
    return new_ids


def test_two_that_move_the_same_letters_move_each_once(bench):
    bench.die(*range(100))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: deliver_all(bench), range(2))

    # Whoever came second is told what the first one did, or nothing.
    assert len(first | second) == 100
    assert bench.everywhere() == Counter(range(100))
    assert len(bench.payloads("jobs")) == 100


def test_one_that_parks_and_one_that_redrives_share_the_letters(bench):
    bench.die(*range(100))

    with ThreadPoolExecutor(2) as pool:
        parked, redriven = pool.map(lambda parks: deliver_all(bench, parks=parks), (True, False))

    assert bench.everywhere() == Counter(range(100))
    assert len(bench.payloads("jobs_parked")) == len(parked)
    assert len(bench.payloads("jobs")) == len(redriven)


def test_a_second_pass_stands_back_while_the_first_has_the_lease(bench):
    bench.die(*range(30))
    first = bench.tools(owner="first")
    met = []

    def deliver(outgoing):
        met.append(bench.run_pass(tools=bench.tools(owner="second")).outcome.value)
        return source.deliver(outgoing)

    (source,) = first.sources
    moved = Relay(source, deliver)
    bench.run_pass(tools=replace(first, sources=(moved,)), base_delay_seconds=0)

    assert set(met) == {"LEASE_HELD"}
    assert bench.everywhere() == Counter(range(30))


class Relay:
    """A source with another way to deliver."""

    def __init__(self, source, deliver):
        self._source = source
        self.deliver = deliver

    def __getattr__(self, name):
        return getattr(self._source, name)


def test_many_rounds_side_by_side_move_each_letter_once(bench):
    bench.die(*range(500))

    report = bench.run_pass(
        tools=bench.tools(workers=8), base_delay_seconds=0, initial_window=1000, max_rate=0
    )

    assert report.redriven == 500
    assert (bench.payloads("jobs_dlq"), sorted(bench.payloads("jobs"))) == ([], list(range(500)))
