"""What alarms need of every pass: how long letters wait for no known moment, and how many for their last chance.

The contract is in docs/metrics.csv. A gauge that is unknown is left out.
"""

from dataclasses import replace
from typing import Any

from fakes.faults import Wire, nth, refuse
from simulator.world import hours, minutes
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.model.circuit import Orders, State
from smart_redriver.engine.report import Report
from tests.faults.errors import refusal
from tests.faults.scenes import (
    EARLIER_BATCH,
    LONG_BACKOFF,
    Scene,
    a_scene,
    suspects_waiting_for_their_last_chance,
)


def report_after(scene: Scene, waited: float = 0, **settings: Any) -> Report:
    """The report of a pass so many minutes on."""
    scene.world.clock.advance(60 * waited)
    changed = replace(scene.redriver.settings, **settings)
    report = scene.redriver.pass_over(Wire(), changed)
    assert report is not None
    return report


def open_circuit_over(letters: int) -> Scene:
    scene = a_scene()
    scene.post_fresh(letters)
    scene.bury()
    later = scene.now + hours(240)
    scene.set_circuit(
        state=State.OPEN,
        changed_at=scene.now,
        cools_until=scene.now + hours(3),
        dlq_sweep_at=later,
        urgent_sweep_at=later,
    )
    return scene


# Letters that wait for their last chance.


def test_suspects_are_counted_by_the_pass_that_hides_them_and_by_those_that_do_not_see_them() -> (
    None
):
    scene = suspects_waiting_for_their_last_chance()

    waiting = [report_after(scene, waited).suspects_waiting for waited in (0, 5, 20)]

    assert waiting == [3, 3, 3]


def test_suspects_are_counted_no_more_once_their_last_chance_has_come() -> None:
    scene = suspects_waiting_for_their_last_chance()
    report_after(scene)

    scene.world.run(
        scene.redriver, until=scene.world.elapsed + hours(2), stop=lambda: scene.world.is_drained
    )

    assert report_after(scene).suspects_waiting == 0


# Letters that wait for no known moment.


def test_an_empty_dlq_has_nobody_waiting() -> None:
    report = report_after(a_scene())

    assert (report.oldest_waiting_seconds, report.suspects_waiting) == (0, 0)


def test_letters_that_wait_for_their_last_chance_or_their_backoff_wait_for_a_known_moment() -> None:
    scene = a_scene(replace(LONG_BACKOFF, last_chance_seconds=28_800))
    scene.post_returning("backs off", count=3, strikes=2, batch=EARLIER_BATCH)
    scene.post_returning("suspect", count=4, strikes=4, batch=EARLIER_BATCH, tried_for=minutes(10))
    scene.bury()
    scene.set_circuit()

    reports = [report_after(scene, waited) for waited in (0, 10)]

    assert reports[0].held == {"BACKOFF": 1, "LAST_CHANCE": 1}
    assert [one.oldest_waiting_seconds for one in reports] == [0, 0]


def test_while_the_circuit_is_open_the_wait_grows_though_nothing_is_received() -> None:
    scene = open_circuit_over(3)

    first, *later = (report_after(scene, waited) for waited in (0, 10, 50))

    assert [one.examined for one in (first, *later)] == [0, 0, 0]
    began = first.oldest_waiting_seconds
    assert began is not None
    assert [one.oldest_waiting_seconds for one in later] == [began + 600, began + 3600]


def test_while_the_re_driver_is_paused_the_wait_grows() -> None:
    scene = a_scene()
    scene.post_fresh(1)
    scene.bury()
    later = scene.now + hours(240)
    orders = Orders(is_paused=True, by="ann", reason="deploy")
    scene.set_circuit(dlq_sweep_at=later, urgent_sweep_at=later, orders=orders)

    first, second = (report_after(scene, waited) for waited in (0, 30))

    assert first.oldest_waiting_seconds is not None
    assert second.oldest_waiting_seconds == first.oldest_waiting_seconds + 1800


def test_a_letter_that_the_window_does_not_let_through_waits() -> None:
    scene = a_scene(Settings(max_window=1))
    scene.post_fresh(3)
    scene.bury()
    scene.set_circuit(window=1)
    report_after(scene)

    report = report_after(scene, 2)

    assert report.oldest_waiting_seconds is not None
    assert report.oldest_waiting_seconds >= 120


def test_the_wait_ends_with_the_last_letter() -> None:
    scene = open_circuit_over(1)
    report_after(scene)
    scene.set_circuit()
    scene.world.run(scene.redriver, until=scene.world.elapsed + minutes(30))

    assert report_after(scene).oldest_waiting_seconds == 0


def test_a_pass_that_could_read_nothing_leaves_the_level_out() -> None:
    scene = open_circuit_over(1)
    error = refusal("GetItem", "ThrottlingException")

    _, report = scene.run_pass(nth("GetItem", 0, refuse(error)))

    assert report is not None
    assert report.oldest_waiting_seconds is None


def test_a_dry_run_tells_the_same_levels() -> None:
    scene = suspects_waiting_for_their_last_chance()

    dry = report_after(scene, mode=Mode.DRY_RUN)
    real = report_after(scene)

    assert (dry.suspects_waiting, dry.oldest_waiting_seconds) == (
        real.suspects_waiting,
        real.oldest_waiting_seconds,
    )
