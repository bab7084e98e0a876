"""Two source queues share a DLQ: each has a circuit of its own, and every command knows both."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from fakes.faults import Crash, Wire, die_before, nth
from simulator.sources import Source
from simulator.world import DLQ, SOURCE, TABLE
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.model.breaker import new_circuit
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.triage.decision import ParkReason
from tests.oncall.desk import Desk, park_all

INVOICES = "invoices"


@pytest.fixture
def desk() -> Desk:
    return Desk(neighbours=[Source(name=INVOICES)])


def circuit_of(desk: Desk, queue: str) -> Circuit:
    found = desk.store.of(queue).load_circuit()
    return found or new_circuit(queue, desk.redriver.settings, desk.world.clock.now())


def states(desk: Desk) -> dict[str, str]:
    (told,) = desk("status", "--json").json["queues"]
    return {one["queue"]: one["circuit"]["state"] for one in told["sources"]}


def test_status_shows_the_circuit_of_each_source(desk: Desk) -> None:
    desk.dead_letters("a")
    desk("open", "--queue", INVOICES, "--reason", "the ledger is down", "--yes")

    lines = desk("status").out.splitlines()

    first, second = (n for n, line in enumerate(lines) if line.startswith("Source:"))
    assert lines[first : first + 2] == [
        "Source:      orders, 0 messages",
        "Circuit:     CLOSED",
    ]
    assert lines[second : second + 2] == [
        "Source:      invoices, 0 messages",
        "Circuit:     OPEN, nothing is redriven",
    ]


@pytest.mark.parametrize("verb", ["open", "close"])
def test_a_circuit_is_forced_by_the_name_of_its_queue(desk: Desk, verb: str) -> None:
    other = {"open": "close", "close": "open"}[verb]
    for queue in (SOURCE, INVOICES):
        desk(other, "--queue", queue, "--reason", "before", "--yes")
    before = states(desk)

    ran = desk(verb, "--queue", INVOICES, "--reason", "I checked", "--yes", "--json")

    after = {"open": "OPEN", "close": "CLOSED"}[verb]
    assert ran.json["queue"] == INVOICES
    assert states(desk) == before | {INVOICES: after}
    assert desk.history()[-1] == f"force invoices {after}: done"


@pytest.mark.parametrize("verb", ["open", "close"])
def test_no_circuit_is_forced_while_either_could_be_meant(desk: Desk, verb: str) -> None:
    ran = desk(verb, "--reason", "I checked", "--yes")

    assert ran.code == 1
    assert "Choose one with --queue: orders, invoices." in ran.err
    assert desk.history() == []


def test_a_hint_to_force_a_circuit_can_be_run_as_it_is(desk: Desk) -> None:
    """It named no queue, and the command then asked for one."""
    desk.dead_letters("a")
    desk("open", "--queue", INVOICES, "--reason", "the ledger is down", "--yes")

    told = [desk("status").out, desk("drain", answer="no").said]

    assert "1 letter is in the DLQ." in told[1]
    hints = [re.findall(r"`redrive (close [^`]*)`", one) for one in told]
    assert hints == [['close --queue invoices --reason "..."'], ["close --queue invoices"]]
    assert desk(*shlex.split(hints[0][0]), "--yes").code == 0


def test_a_pause_holds_the_letters_of_both(desk: Desk) -> None:
    desk.dead_letters("an order")
    desk.dead_letters("an invoice", of=INVOICES)

    ran = desk("pause", "--queue", INVOICES, "--reason", "migration", "--yes")
    report = desk("run", "--yes", "--json").json

    assert "Plan: pause orders and invoices until `redrive resume`" in ran.out
    assert (report["outcome"], report["redriven"]) == ("PAUSED", 0)
    assert desk.bodies(DLQ) == ["an invoice", "an order"]
    steps = [one["next"]["step"] for one in desk("status", "--json").json["queues"][0]["sources"]]
    assert steps == ["paused until `redrive resume`"] * 2


def test_a_drain_widens_both_windows(desk: Desk) -> None:
    desk.dead_letters("an order")

    ran = desk("drain", "--no-follow", "--yes", "--json")

    assert ran.json["windows"] == {SOURCE: 50, INVOICES: 50}
    assert "let 50 letters of orders (now 5) and 50 letters of invoices (now 5) await" in ran.err
    assert [circuit_of(desk, queue).window for queue in (SOURCE, INVOICES)] == [50, 50]


def test_a_pause_ends_the_drain_of_each(desk: Desk) -> None:
    """After the pause the first queue went at its usual pace, and the others went on draining."""
    desk.dead_letters("an order")
    desk("drain", "--no-follow", "--yes")

    desk("pause", "--reason", "migration", "--yes")
    desk("resume", "--yes")

    (told,) = desk("status", "--json").json["queues"]
    assert [one["draining_until"] for one in told["sources"]] == [None, None]


def test_a_followed_drain_goes_on_while_one_circuit_lets_letters_through(desk: Desk) -> None:
    desk.dead_letters(*(f"order {n}" for n in range(80)))
    desk.is_consumer_up = True
    desk("open", "--queue", INVOICES, "--reason", "the ledger is down", "--yes")

    ran = desk("drain", "--yes")

    assert ran.code == 0, ran.said
    assert "invoices: Consumer likely down" in ran.out
    assert desk.bodies(DLQ) == []


def test_parked_letters_of_both_are_listed_and_go_back_each_to_its_own_queue(desk: Desk) -> None:
    desk.dead_letters("an order")
    desk.park("an invoice", of=INVOICES)

    listed = desk("parked", "--json").json["count"]
    ran = desk("replay", "--all", "--yes")

    assert listed == 2
    assert "Plan: replay 2 letters to orders and invoices, each to its own, 100 a second" in ran.out
    assert (desk.bodies(SOURCE), desk.bodies(INVOICES)) == (["an order"], ["an invoice"])


def test_both_copies_that_a_crash_left_in_the_parking_lot_go_back_to_their_own_queue(
    desk: Desk,
) -> None:
    """The ledger knows of one; the other's metadata looks as if a consumer had copied it on."""
    desk.dead_letters("an invoice", of=INVOICES)
    dies = Wire(nth("BatchWriteItem", 0, die_before)).to(desk.world.dynamodb)
    with pytest.raises(Crash):
        park_all(
            desk.world.sqs,
            desk.deployment,
            StateStore(dies, TABLE, SOURCE),
            desk.world.clock.now(),
            ParkReason.MAX_ATTEMPTS,
        )
    desk.world.clock.advance(600)
    desk.park()

    ran = desk("replay", "--all", "--yes")

    assert ran.code == 0, ran.said
    assert (desk.bodies(SOURCE), desk.bodies(INVOICES)) == ([], ["an invoice"] * 2)


def test_a_letter_of_the_second_queue_is_found_by_its_current_id(desk: Desk) -> None:
    (original_id,) = desk.park("an invoice", of=INVOICES)
    current_id = desk.entry(original_id).current_id

    assert f"{original_id} is in the parking lot." in desk("show", current_id).out


def test_an_edited_letter_goes_to_the_queue_that_it_came_from(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where originals are kept
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")
    (message_id,) = desk.park("broken", of=INVOICES)

    ran = desk("edit", message_id, answer="yes")

    assert "Send the edited copy to invoices" in ran.err
    assert (desk.bodies(SOURCE), desk.bodies(INVOICES)) == ([], ["mended"])


def test_what_was_exported_of_either_comes_back_to_its_own_queue(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = str(tmp_path_factory.mktemp("export") / "gone.jsonl")
    desk.dead_letters("an order")
    desk.park("an invoice", of=INVOICES)
    desk("delete", "--all", "--yes", "--export", file)

    ran = desk("import", file, "--to", "source", "--yes")

    assert ran.code == 0, ran.said
    assert (desk.bodies(SOURCE), desk.bodies(INVOICES)) == (["an order"], ["an invoice"])


def test_the_doctor_reads_both_circuits(desk: Desk) -> None:
    (told,) = desk("doctor", "--json").json["queues"]

    read = [one["what"] for one in told["findings"] if one["what"].startswith("The circuit of")]
    assert read == ["The circuit of orders can be read.", "The circuit of invoices can be read."]


def test_a_run_tells_of_both_circuits(desk: Desk) -> None:
    desk.dead_letters("an order")
    desk("open", "--queue", INVOICES, "--reason", "the ledger is down", "--yes")

    told = (
        "circuit of orders CLOSED, 1 letter awaits a verdict; circuit of invoices OPEN; 1 examined"
    )
    assert told in desk("run", "-y").out
