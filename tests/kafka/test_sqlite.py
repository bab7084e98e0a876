"""The state table as a file: what passes and the command rely on, as DynamoDB has it, opened by several at once."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.model.circuit import Circuit, Lease
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.kafka.sqlite import TABLE, SqliteTable
from smart_redriver.oncall.audit.trail import LINES_PER_ITEM, AuditTrail, Line
from tests.kafka.bench import move_another_over

CLOCK = VirtualClock()


@pytest.fixture(params=["file", "fake"])
def table(request, tmp_path):
    """Opens the table as another process would."""
    made: list[Any] = []
    fake: Any = FakeDynamoDb(CLOCK)
    fake.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
    )

    def open_():
        if request.param == "fake":
            return fake
        made.append(SqliteTable.open(tmp_path / "state.sqlite", CLOCK.time, is_made=True))
        return made[-1]

    yield open_
    for one in made:
        one.close()


@pytest.fixture
def opened(table):
    return lambda: StateStore(table(), TABLE, "orders")


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


def test_entries_and_metadata_are_there_when_the_file_is_opened_again(opened):
    metadata = RedriveMetadata(
        queue="orders",
        original_id="letter-1",
        redrive_count=1,
        first_seen=CLOCK.now(),
        batch=1,
        generation=0,
    )
    opened().write_ledger([entry(n) for n in range(1_200)], [("copy", metadata)], CLOCK.now())

    known = opened().read_ledger([*(f"letter-{n}" for n in range(1_200)), "copy", "nobody"])

    assert known.entries == {f"letter-{n}": entry(n) for n in range(1_200)}
    assert known.metadata == {"copy": metadata}


def test_a_hint_gives_back_what_was_said_before(opened):
    first, second = (Hint(at=CLOCK.now() + timedelta(seconds=n), by=f"person {n}") for n in (0, 1))

    assert opened().save_hint(first) is None
    assert opened().save_hint(second) == first
    assert opened().load_hint() == second


def test_a_full_day_of_the_audit_trail_goes_on_in_a_further_item(table):
    trail = AuditTrail(table(), TABLE, "orders")
    lines = [
        Line(at=CLOCK.now() + timedelta(seconds=n), who="me", what=f"line {n}")
        for n in range(LINES_PER_ITEM + 2)
    ]

    for one in lines:
        trail.write(one)

    assert AuditTrail(table(), TABLE, "orders").read(CLOCK.now().date(), 1) == lines


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("#status = :redriven", {"letter-1", "letter-2"}),
        ("#status = :redriven AND CurrentMessageId = :copy", {"letter-1"}),
        (
            "CurrentMessageId = :copy OR contains(ReplacedMessageIds, :old)",
            {"letter-1", "letter-2"},
        ),
    ],
)
def test_a_scan_finds_what_its_filter_says(table, expression, ids):
    store = StateStore(table(), TABLE, "orders")
    store.write_ledger([entry(1), replace(entry(2), replaced_ids=("old",))], [], CLOCK.now())
    values = {":redriven": {"S": "REDRIVEN"}, ":copy": {"S": "copy-1"}, ":old": {"S": "old"}}

    found = table().scan(
        TableName=TABLE,
        FilterExpression=expression,
        ExpressionAttributeValues={k: v for k, v in values.items() if k in expression},
        **({"ExpressionAttributeNames": {"#status": "Status"}} if "#status" in expression else {}),
    )

    assert {one["PK"]["S"].partition("#")[2] for one in found["Items"]} == ids


def test_an_entry_is_forgotten_when_its_time_is_over(tmp_path):
    memory, start = StateStore(the_file(tmp_path), TABLE, "orders"), CLOCK.now()
    memory.write_ledger([entry(1)], [], start)

    CLOCK.advance(timedelta(days=100).total_seconds())
    memory.write_ledger([entry(2)], [], CLOCK.now())

    assert set(memory.read_ledger(["letter-1", "letter-2"]).entries) == {"letter-2"}


def test_a_file_has_a_name_of_its_own_and_keeps_it(tmp_path):
    names = []
    for file in ("a", "a", "b"):
        opened = SqliteTable.open(tmp_path / file, lambda: 0.0, is_made=True)
        names.append(opened.identity())
        opened.close()

    assert all(names)
    assert names[0] == names[1] != names[2]


def the_file(folder):
    return SqliteTable.open(folder / "state", CLOCK.time, is_made=True)


def test_what_no_version_wrote_is_told_and_not_taken_for_nothing(tmp_path):
    table = the_file(tmp_path)
    memory = StateStore(table, TABLE, "orders")
    memory.write_ledger([entry(1)], [], CLOCK.now())
    table._connection.execute("update state set item = 'no json'")

    with pytest.raises(CallFailed):
        memory.read_ledger(["letter-1"])


@pytest.mark.parametrize("lose", [Path.unlink, move_another_over], ids=["deleted", "replaced"])
def test_a_file_that_is_gone_or_another_one_is_neither_read_nor_written(tmp_path, lose):
    """A process went on with the deleted file, and a second process began a new one beside it."""
    memory = StateStore(the_file(tmp_path), TABLE, "orders")
    memory.write_ledger([entry(1)], [], CLOCK.now())

    lose(tmp_path / "state")

    for use in (
        lambda: memory.read_ledger(["letter-1"]),
        lambda: memory.acquire_lease(lease("one"), CLOCK.now()),
    ):
        with pytest.raises(CallFailed, match=f"{tmp_path}/state is gone or was replaced"):
            use()


def test_a_file_that_is_put_back_is_used_again(tmp_path):
    memory = StateStore(the_file(tmp_path), TABLE, "orders")
    memory.write_ledger([entry(1)], [], CLOCK.now())

    (tmp_path / "state").rename(tmp_path / "elsewhere")
    with pytest.raises(CallFailed):
        memory.read_ledger(["letter-1"])
    (tmp_path / "elsewhere").rename(tmp_path / "state")

    assert set(memory.read_ledger(["letter-1"]).entries) == {"letter-1"}


def _is_no_state(file):
    file.write_text("something else")


@pytest.mark.parametrize(
    ("name", "before", "is_made", "told"),
    [
        ("no folder/state", None, True, "The folder {folder}/no folder of the state is not there."),
        ("no folder/state", None, False, "The folder {folder}/no folder of the state"),
        ("state", None, False, "The state {folder}/state is not there. The process makes it"),
        ("state", Path.mkdir, True, "The state {folder}/state is a folder. Name a file in it"),
        ("state", _is_no_state, False, "can't be opened (file is not a database)"),
    ],
)
def test_what_keeps_a_file_from_being_opened_is_told_and_nothing_is_made(
    tmp_path, name, before, is_made, told
):
    if before:
        before(tmp_path / name)
    there = sorted(tmp_path.rglob("*"))

    with pytest.raises(CallFailed) as failed:
        SqliteTable.open(tmp_path / name, CLOCK.time, is_made=is_made)

    assert told.format(folder=tmp_path) in failed.value.detail
    assert sorted(tmp_path.rglob("*")) == there
