"""The state table as a file: what a pass relies on, also when the file is opened anew or by two at once."""

from datetime import timedelta

import pytest

from fakes.clock import VirtualClock
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Trail
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.lease import Lease
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.kafka.sqlite import SqliteMemory

CLOCK = VirtualClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state.sqlite"


@pytest.fixture
def opened(file):
    """Opens the file as another process would."""
    made = []

    def open_():
        made.append(SqliteMemory.open(file, "orders", CLOCK.now))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def lease(owner, seconds=60):
    return Lease(owner=owner, expires_at=CLOCK.now() + timedelta(seconds=seconds))


def entry(number):
    return Entry(
        original_id=f"letter-{number}",
        queue="orders",
        first_seen=CLOCK.now(),
        status=Status.REDRIVEN,
        current_id=f"copy-{number}",
    )


def test_a_lease_is_one_owners_until_it_expires_or_is_given_back(opened):
    one, other, now = opened(), opened(), CLOCK.now()

    assert one.acquire_lease(lease("one"), now)
    assert not other.acquire_lease(lease("other"), now)
    assert one.acquire_lease(lease("one"), now)
    assert not other.release_lease(lease("other"))
    assert other.acquire_lease(lease("other"), now + timedelta(seconds=60))
    assert not one.release_lease(lease("one"))
    assert other.release_lease(lease("other"))
    assert one.acquire_lease(lease("one"), now)


def test_a_circuit_is_written_over_the_version_that_was_read(opened):
    one, other = opened(), opened()
    first = Circuit(queue="orders", window=7, changed_at=CLOCK.now())

    written = one.save_circuit(first)

    assert other.save_circuit(first) is None
    assert other.load_circuit() == written
    assert written.version == 1
    assert one.of("payments").load_circuit() is None


def test_entries_and_trails_are_there_when_the_file_is_opened_again(opened):
    trail = Trail(
        queue="orders",
        original_id="letter-1",
        redrive_count=1,
        first_seen=CLOCK.now(),
        batch=1,
        generation=0,
    )
    opened().write_ledger([entry(n) for n in range(1_200)], [("copy", trail)], CLOCK.now())

    known = opened().read_ledger([*(f"letter-{n}" for n in range(1_200)), "copy", "nobody"])

    assert known.entries == {f"letter-{n}": entry(n) for n in range(1_200)}
    assert known.trails == {"copy": trail}


def test_an_entry_is_forgotten_when_its_time_is_over(opened):
    memory, start = opened(), CLOCK.now()
    memory.write_ledger([entry(1)], [], start)

    CLOCK.advance(timedelta(days=100).total_seconds())
    memory.write_ledger([entry(2)], [], CLOCK.now())

    assert set(memory.read_ledger(["letter-1", "letter-2"]).entries) == {"letter-2"}


def test_what_no_version_wrote_is_told_and_not_taken_for_nothing(opened):
    memory = opened()
    memory.write_ledger([entry(1)], [], CLOCK.now())
    memory._connection.execute("update state set item = '{}'")

    with pytest.raises(CallFailed):
        memory.read_ledger(["letter-1"])


def test_a_place_that_can_not_be_written_to_is_told(tmp_path):
    with pytest.raises(CallFailed) as failed:
        SqliteMemory.open(tmp_path / "no folder" / "state", "orders", CLOCK.now)

    assert failed.value.call == "OpenState"
