"""The first edition's table and letters, in the middle of its work: this one goes on with them.

`first_edition.json` is what it left after some minutes of its simulator (841e543: thirty letters, six of them poison,
a consumer that flaps): letters out, in the DLQ and parked, their entries, the circuit and its batches.
Message ids are new in each world, so that those of the letters at hand are put in the place of the old ones;
original ids stay.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE
from smart_redriver.engine.triage.ledger import Status
from tests.faults.scene import Scene, a_scene

LEFT = json.loads((Path(__file__).parent / "first_edition.json").read_text())


def left_in(queue: str) -> list[dict[str, Any]]:
    return [message for message in LEFT["messages"] if message["queue"] == queue]


@pytest.fixture
def scene() -> Scene:
    scene = a_scene()
    new_ids = {}
    for queue, fields in ((DLQ, {}), (PARKING_LOT, {}), (SOURCE, {"DelaySeconds": 60})):
        for one in left_in(queue):
            new_ids[one["id"]] = scene.post(
                one["body"],
                queue=PARKING_LOT if queue == PARKING_LOT else SOURCE,
                MessageAttributes=one["attributes"],
                **fields,
            )
        if queue == DLQ:
            scene.bury()
    items = json.dumps(LEFT["items"])
    for old, new in new_ids.items():
        items = items.replace(
            f'"CurrentMessageId": {{"S": "{old}"}}', f'"CurrentMessageId": {{"S": "{new}"}}'
        )
    for item in json.loads(items):
        scene.world.dynamodb.put_item(TableName=TABLE, Item=item)
    scene.doomed = {one["body"] for one in left_in(PARKING_LOT)}
    return scene


def test_what_it_left_has_letters_everywhere():
    assert [len(left_in(queue)) for queue in (SOURCE, DLQ, PARKING_LOT)] == [10, 15, 2]
    assert all(METADATA_ATTRIBUTE in one["attributes"] for one in left_in(SOURCE))
    assert sum("MESSAGE#" in item["PK"]["S"] for item in LEFT["items"]) > 10


def test_its_circuit_is_read_and_no_call_fails(scene):
    _, report = scene.run_pass()

    assert report is not None
    assert (report.circuit_before, report.window) == ("CLOSED", 10)
    assert not report.faults


def test_its_letters_keep_their_count_and_their_place_in_the_ledger(scene):
    before = scene.redriver.witness.ledger()
    out = {
        json.loads(one["attributes"][METADATA_ATTRIBUTE]["StringValue"])["id"]
        for one in left_in(SOURCE)
    }

    scene.complaints()

    after = scene.redriver.witness.ledger()
    assert before.keys() <= after.keys()
    assert all(after[one].redrive_count >= before[one].redrive_count >= 1 for one in out)
    parked = {one for one, entry in before.items() if entry.status is Status.PARKED}
    assert len(parked) == 2
    assert all(after[one].status is Status.PARKED for one in parked)


def test_every_letter_that_it_left_ends_well(scene):
    assert scene.complaints() == []
    assert set(scene.world.parked()) == scene.doomed
