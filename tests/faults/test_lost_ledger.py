"""The state table is lost, or restored to what it was: letters still end well,
and what is forgotten is said in docs/deploy.md.
"""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.world import TABLE
from tests.faults.scenes import ONE_CALL, SCENES, Scene

every_scene = pytest.mark.parametrize("build", SCENES, ids=lambda build: build.__name__)


def items_of(scene: Scene) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scene.world.dynamodb.scan(TableName=TABLE, ConsistentRead=True)[
        "Items"
    ]
    return found


def restore(scene: Scene, items: list[dict[str, Any]]) -> None:
    """A table with these items and no others in the place of the one that was there."""
    for item in items_of(scene):
        scene.world.dynamodb.delete_item(TableName=TABLE, Key={"PK": item["PK"]})
    for item in items:
        scene.world.dynamodb.put_item(TableName=TABLE, Item=item)


def pass_by(scene: Scene) -> None:
    scene.run_pass()
    scene.world.clock.advance(60)


def forget(scene: Scene) -> None:
    """What goes with the ledger: strikes, so that poison has its chances anew, and the verdict on what is out."""
    scene.undecided |= scene.doomed
    scene.doomed = set()
    scene.verdicts = {}


@every_scene
def test_a_table_that_is_empty_loses_no_letter_and_repeats_one_call_at_most(
    build: Callable[[], Scene],
) -> None:
    """A letter that was sent and recorded, and not yet deleted, is all that only the ledger knows not to send again."""
    scene = build()
    restore(scene, [])
    forget(scene)
    pass_by(scene)

    assert scene.complaints(repeats_allowed=ONE_CALL, ledger_missed_a_write=True) == []


@every_scene
def test_a_table_that_is_lost_behind_a_pass_loses_no_letter_and_repeats_none(
    build: Callable[[], Scene],
) -> None:
    scene = build()
    pass_by(scene)
    restore(scene, [])
    forget(scene)
    pass_by(scene)

    assert scene.complaints(ledger_missed_a_write=True) == []


@every_scene
def test_a_table_restored_to_before_the_last_pass_changes_no_letters_end(
    build: Callable[[], Scene],
) -> None:
    scene = build()
    before = items_of(scene)
    pass_by(scene)
    restore(scene, before)
    scene.verdicts = {}

    assert scene.complaints(ledger_missed_a_write=True) == []
