"""As many workers as the function has, on real threads: what holds whichever of them comes first."""

from collections import Counter, defaultdict
from threading import get_ident
from typing import Any

import pytest

from fakes.faults import Call, Wire
from fakes.sqs import Event
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.aws import clients
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from tests.faults.scenes import EARLIER_BATCH, Scene, a_scene

LETTERS, POISON = 1_500, 30
SEND, RECORD, DELETE = "send", "record", "delete"


class Steps:
    """What was done with each letter, in order, by the id that it had in the DLQ; and who wrote the circuit."""

    def __init__(self, scene: Scene) -> None:
        self.of: defaultdict[str, list[str]] = defaultdict(list)
        self.circuit_writers: list[int] = []
        self._now_in_dlq: dict[str, str] = {}
        scene.world.sqs.inspect.subscribe(self._sees)

    def note(self, call: Call) -> None:
        """The script of a wire: hears of each call in the order in which they are carried out."""
        if call.operation == "BatchWriteItem":
            for write in next(iter(call.request["RequestItems"].values())):
                item = write["PutRequest"]["Item"]
                if item.get("Status", {}).get("S") in ("REDRIVEN", "PARKED"):
                    self.of[item["PK"]["S"].partition("#")[2]].append(RECORD)
        if call.operation == "PutItem" and call.request["Item"]["PK"]["S"].startswith("CIRCUIT"):
            self.circuit_writers.append(get_ident())

    def _sees(self, event: Event) -> None:
        message = event.message
        if event.kind == "sent" and event.queue_name in (SOURCE, PARKING_LOT):
            self.of[_original_id(message)].append(SEND)
        if event.kind == "deleted" and event.queue_name == DLQ:
            self.of[_original_id(message)].append(DELETE)


def _original_id(message: Any) -> str:
    carried = message.attributes.get(METADATA_ATTRIBUTE)
    return (
        RedriveMetadata.decode(carried["StringValue"]).original_id
        if carried
        else message.message_id
    )


def many_letters(window: int, settings: Settings | None = None) -> Scene:
    scene = a_scene(settings)
    for n in range(POISON):
        scene.post_returning(f"poison-{n}", strikes=5, count=6, batch=EARLIER_BATCH)
    scene.doomed = set(scene.world.sent)
    scene.post_fresh(LETTERS - POISON)
    scene.bury()
    scene.set_circuit(window=window)
    scene.redriver.workers = clients.WORKERS
    return scene


def test_each_letter_is_sent_then_recorded_then_deleted_and_each_once() -> None:
    scene = many_letters(window=2 * LETTERS)
    steps = Steps(scene)

    report = scene.redriver.pass_over(Wire(steps.note))

    assert report is not None
    assert (report.redriven, report.parked) == (LETTERS - POISON, {"MAX_ATTEMPTS": POISON})
    assert Counter(map(tuple, steps.of.values())) == {(SEND, RECORD, DELETE): LETTERS}
    assert scene.world.depth(DLQ) == 0


@pytest.mark.parametrize("window", [1, 250, 999])
def test_the_permit_holds_for_all_workers_together_and_one_thread_writes_the_circuit(
    window: int,
) -> None:
    scene = many_letters(window=window)
    steps = Steps(scene)

    report = scene.redriver.pass_over(Wire(steps.note))

    assert report is not None
    assert report.redriven == window
    assert [batch.size for batch in scene.circuit.pending] == [window]
    assert steps.circuit_writers == [get_ident()] * 2
    assert {tuple(done) for done in steps.of.values()} == {(SEND, RECORD, DELETE)}


def test_ten_thousand_letters_of_one_pass_reach_the_consumer_as_a_steady_stream() -> None:
    scene = a_scene(Settings(max_rate=100.0, base_delay_seconds=0))
    scene.world.dead_letters(10_000)
    scene.set_circuit(window=10_000)
    scene.redriver.workers = clients.WORKERS
    wire = Wire()

    scene.redriver.pass_over(wire)

    arrivals = Counter(
        entry.get("DelaySeconds", 0)
        for call in wire.calls
        if call.operation == "SendMessageBatch"
        for entry in call.request["Entries"]
    )
    assert [arrivals[second] for second in range(max(arrivals) + 1)] == [100] * 100
