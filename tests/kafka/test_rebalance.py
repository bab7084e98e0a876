"""The consumers' group rebalances at each call of a pass: what was done and not committed is done again elsewhere."""

from collections import Counter
from itertools import count

import pytest

from fakes.faults import Wire, at
from smart_redriver.kafka.engine.records import Partition
from tests.kafka.bench import GROUP, Bench
from tests.kafka.test_every_crash import KEYS, LETTERS, SETTINGS, fails


def lives(order):
    """A life for each call at which the group rebalances, with how much was done twice by that."""
    for number in count():
        bench = Bench(order=order)
        bench.die(*LETTERS, keys=KEYS if order == "key" else [])
        twice: list[int] = []

        def rebalance(call, act, bench=bench, twice=twice):
            answer = act(**call.request)
            twice.append(work_without_commit(bench))
            return answer

        wire = Wire(at({number: rebalance}))
        bench.live(wire, fails=fails, steps=16, **SETTINGS)
        if not twice:
            return
        yield str(wire.calls[number]), bench, twice[0]


def work_without_commit(bench: Bench) -> int:
    """One consumer deals with all there is, and its partitions are another's before it commits."""
    before = {
        topic: bench.log.committed(GROUP, topic) or {Partition(topic, 0): 0}
        for topic in bench.place.topics
    }
    taken = bench.work(fails)
    for offsets in before.values():
        bench.log.commit(GROUP, offsets)
    return taken


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_rebalance_at_any_call_loses_nothing_and_parks_nothing_good(order):
    wrong, tried = [], 0
    for call, bench, twice in lives(order):
        tried += 1
        done, parked = Counter(bench.done), Counter(bench.parked)
        good = {one for one in bench.produced if not fails(one)}
        if set(done) != good:
            wrong.append(f"{call}: not done: {good - set(done)}")
        if set(parked) & good or len(parked) < parked.total():
            wrong.append(f"{call}: parked {parked}")
        if done.total() - len(done) > twice:
            wrong.append(f"{call}: repeated {done}, and {twice} were taken twice")

    assert wrong == []
    assert tried > 50
