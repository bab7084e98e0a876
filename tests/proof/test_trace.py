"""What a log may say, and what it may not. Runs of scenarios are checked where they are played."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.trace_check import main
from proof import protocol
from proof.protocol import Kind
from proof.protocol import World as Modelled
from proof.trace import check
from simulator.conditions import Conditions
from simulator.consumers import Consumer, down_until
from simulator.smart_policy import SmartPolicy
from simulator.world import World, minutes


def a_letter(event: str, message: str = "m1", **fields: Any) -> tuple[str, dict[str, Any]]:
    return f"letter.{event}", {"message_id": message, "original_id": "m1"} | fields


def a_report(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "pass.finished", {"outcome": "DONE", "queue": "orders"} | fields


REDRIVEN = (a_letter("redriven"), a_report(redriven=1))
REPEATED = (*REDRIVEN, *REDRIVEN)
#: Its consumer reported the failure, and it was parked, before the copy came back.
PARKED_SINCE = (
    a_letter("redriven"),
    a_letter("parked", redrive_count=1),
    a_report(queue="orders.fifo", redriven=1, parked={"MAX_ATTEMPTS": 1}),
    a_letter("discarded", "m2", redrive_count=1, reason="ALREADY_SENT"),
)


@pytest.mark.parametrize(
    "events",
    [
        REDRIVEN,
        (*REDRIVEN, a_letter("redriven", "m2", redrive_count=1), a_report(redriven=1)),
        (*REDRIVEN, a_letter("discarded", reason="ALREADY_SENT"), a_report()),
        (a_letter("bounced"), a_report(bounced=1), a_letter("bounced"), a_report(bounced=1)),
        (a_letter("discarded", reason="RETURNED_COPY"), a_report()),
        (a_letter("redriven"), a_report(redriven=1, mode="dry_run"), *REDRIVEN),
        (
            a_letter("redriven", function_request_id="1"),
            a_report(outcome="LEASE_HELD", function_request_id="2"),
            a_report(redriven=1, function_request_id="1"),
        ),
        (*REDRIVEN, ("call.failed", {"call": "BatchWriteItem"}), *REDRIVEN),
        tuple((name, fields | {"queue": "orders.fifo"}) for name, fields in REPEATED),
        (("process.started", {}), *REPEATED),
        (*PARKED_SINCE, a_report(queue="orders.fifo")),
    ],
)
def test_a_log_of_the_protocol_is_accepted(events: Any) -> None:
    assert check(events) == []


@pytest.mark.parametrize(
    "events",
    [
        REPEATED,
        (*REDRIVEN, a_letter("parked"), a_report(parked={"EXPIRING": 1})),
        (a_letter("discarded", reason="ALREADY_SENT"), a_report()),
        (a_letter("discarded", "m2", reason="ALREADY_SENT"), a_report(queue="orders.fifo")),
        (*PARKED_SINCE, a_report()),
        (
            a_letter("redriven", redrive_count=3),
            a_letter("held", "m2", redrive_count=1),
            a_report(redriven=1),
        ),
        (a_letter("redriven"), a_report(redriven=2)),
        (a_report(outcome="LEASE_HELD", redriven=1),),
        (a_letter("parked"), a_report(parked={})),
    ],
)
def test_what_the_protocol_does_not_allow_is_a_fault(events: Any) -> None:
    assert len(check(events)) == 1


def test_a_repeat_is_allowed_where_a_pass_died() -> None:
    assert check(REPEATED, is_disturbed=True) == []


@pytest.mark.parametrize("is_fifo", [False, True])
def test_the_log_of_a_simulated_outage_is_accepted(is_fifo: bool) -> None:
    """Every other scenario's log is checked where it is played, see `scenarios.runs`."""
    consumer = Consumer(health=down_until(minutes(20)))
    world = World(seed=3, conditions=Conditions(fifo=is_fifo, groups=3), consumer=consumer)
    redriver = SmartPolicy(world)
    world.dead_letters(8, poison=0)
    world.run(redriver, until=minutes(120))

    assert redriver.events["letter.redriven"] > 8
    assert redriver.trace.faults == []


WORLDS = [Modelled(name=kind.value, kind=kind, letters=2, messages=7, faults=0) for kind in Kind]


NAMES = {
    "redrive": "letter.redriven",
    "park": "letter.parked",
    "renew": "letter.renewed",
    "discard": "letter.discarded",
}


def walk(world: Modelled, seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The log of one way through the model, on which nobody dies: what workers tell of the letters that they move."""
    state, rng = protocol.initial(world), Random(seed)
    log: list[tuple[str, dict[str, Any]]] = []
    told: Counter[str] = Counter()
    for _ in range(120):
        ways = [way for way in protocol.steps(world, state) if is_quiet(way[0])]
        if not ways:
            break
        label, after = rng.choice(ways)
        number = int(label.split()[1]) if label.startswith("pass") else None
        hand = state.workers[number].hand if number is not None else ()
        turn = [one for one in hand if one.what == hand[0].what]
        if label.endswith("sends") or (label.endswith("deletes") and turn[0].what == "discard"):
            for one in turn:
                name = "letter.renewed" if one.message in state.lot else NAMES[one.what]
                # A discard of what was not sent on says that its letter is done, or that it is a copy.
                fields = {"message_id": f"m{one.message}", "original_id": "", "reason": "SUCCEEDED"}
                log.append((name, fields))
                told[name] += 1
        if label.endswith("gives the lease back"):
            queue = "orders.fifo" if world.is_fifo else "orders"
            log.append(
                a_report(
                    queue=queue,
                    redriven=told["letter.redriven"],
                    parked={"": told["letter.parked"]},
                )
            )
            told.clear()
        state = after
    return log


def is_quiet(label: str) -> bool:
    return not label.endswith("dies") and label != "tick"


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_the_logs_of_the_model_are_accepted(world: Modelled) -> None:
    logs = [walk(world, seed) for seed in range(60)]

    assert sum(map(len, logs)) > 300
    assert [fault for log in logs for fault in check(log)] == []


def test_the_command_checks_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    lines = [json.dumps({"message": name} | fields) for name, fields in REPEATED]
    tailed = [f"2026-01-10T12:00:00 2026/01/10/[1]a {line}" for line in lines]
    log.write_text("\n".join(["START RequestId: 1", "{cut", '{"level": "INFO"}', *tailed]))

    assert main([str(log)]) == 1
    assert "4 events, 1 that the protocol does not allow" in capsys.readouterr().out
    assert main(["--disturbed", str(log)]) == 0
    log.write_text(log.read_text().replace('"message"', '"event"'))
    assert main([str(log)]) == 1
    with pytest.raises(SystemExit):
        main([])
