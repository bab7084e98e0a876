"""A process dies before, within and after every one of its calls: nothing is lost, and no known send is repeated."""

from collections import Counter
from collections.abc import Iterator

import pytest

from fakes.faults import Mishap, Wire, at, die_after, die_before
from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.place import Order
from tests.kafka.bench import Bench, die_within

#: A life of ten letters: window after window, two that fail whenever they are tried, and their parking.
LETTERS = ["bad 1", *(f"good {n}" for n in range(4)), "bad 2", *(f"good {n}" for n in range(4, 8))]
SETTINGS = {"max_attempts": 1, "last_chance_seconds": 0, "initial_window": 5}
STEPS = 16
#: The two that fail have one key to themselves.
KEYS = ["a", "b", "c", "d", "e"]
CHANGES = {"Write", "Commit", "BatchWriteItem", "PutItem", "DeleteItem"}


def fails(value: bytes) -> str | None:
    return "Refused" if value.startswith(b"bad") else None


def lives(bench: Bench, mishap: Mishap) -> Iterator[tuple[str, int]]:
    """A life for each of its calls that changes anything; the call, and how many passes died.

    Who dies between two of them, while reading, has died after the first.
    """
    bench.begin_anew()
    for number in _changes(bench):
        bench.begin_anew()
        wire = Wire(at({number: mishap}))
        deaths = _live(bench, wire)
        yield str(wire.calls[number]), deaths


def _changes(bench: Bench) -> list[int]:
    wire = Wire()
    _live(bench, wire)
    return [one.number for one in wire.calls if one.operation in CHANGES]


def _live(bench: Bench, wire: Wire | None = None) -> int:
    keys = KEYS if bench.place.order is Order.KEY else []
    bench.die(*LETTERS, keys=keys)
    return bench.live(wire, fails=fails, steps=STEPS, **SETTINGS)


def complaints(bench: Bench, *, repeats: int = 0) -> list[str]:
    """What is wrong at the end of a life. `repeats`: letters that may have been sent without anybody knowing.

    What fails alone may wait: as far as anybody can tell, its consumer is at fault.
    """
    found = []
    good = {one for one in bench.produced if not fails(one)}
    done, parked = Counter(bench.done), Counter(bench.parked)
    if set(done) != good:
        found.append(f"not done: {good - set(done)}")
    if lost := bench.produced - set(done) - set(parked) - set(bench.waiting):
        found.append(f"lost: {lost}")
    if set(parked) & good:
        found.append(f"parked: {bench.parked}")
    if (done + parked).total() - len(done + parked) > repeats:
        found.append(f"repeated: {done}, {parked}")
    return found


@pytest.fixture(params=["key", "none"])
def bench(request):
    return Bench(order=request.param)


def test_a_life_without_a_mishap_ends_well(bench):
    _live(bench)

    assert complaints(bench) == []
    assert sorted(bench.parked) == [b"bad 1", b"bad 2"]


@pytest.mark.parametrize(
    "mishap", [die_before, die_within, die_after], ids=lambda one: one.__name__
)
def test_a_process_that_dies_at_any_change_loses_nothing(bench, mishap):
    """Only letters whose send was not on record yet may go again: those of one call."""
    wrong, tried = [], 0
    for call, deaths in lives(bench, mishap):
        tried += 1
        is_unknown = "Write" in call  # the topic's, or the ledger's: the send is not on record
        wrong += [f"{call}: {one}" for one in complaints(bench, repeats=5 * is_unknown)]
        wrong += [f"{call}: {deaths} deaths"] if deaths != 1 else []

    assert wrong == []
    assert tried > 20


def test_a_copy_whose_consumer_drops_headers_becomes_no_letter_of_its_own(monkeypatch):
    """Its failure was on record, and the process died before it discarded it. Keys would have made it wait."""
    monkeypatch.setattr("tests.kafka.test_every_crash.KEYS", [None])
    bench = Bench(keeps_headers=False)

    wrong = [
        f"{call}: {one}"
        for call, _ in lives(bench, die_after)
        for one in complaints(bench, repeats=5 * ("Write" in call))
    ]

    assert wrong == []


def test_a_cluster_that_does_not_answer_one_call_costs_nothing_but_time(bench):
    def refuse(call, act):
        raise CallFailed(call.operation, "NoAnswer", "gone for a moment")

    wrong = [
        f"{call}: {one}"
        for call, _ in lives(bench, refuse)
        for one in complaints(bench, repeats=5 * ("BatchWriteItem" in call))
    ]

    assert wrong == []
