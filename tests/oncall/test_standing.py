"""Plans show pauses, circuits and what others did within the hour; what goes against them is asked for twice."""

from __future__ import annotations

import pytest

from fakes.faults import meanwhile, nth
from simulator.world import DLQ, PARKING_LOT, SOURCE
from tests.oncall.desk import Desk

LEE = "arn:aws:sts::123456789012:assumed-role/OnCall/lee@example.com"
ME = "arn:aws:iam::123456789012:user/kim"


def as_lee(desk: Desk, *arguments: str) -> None:
    """Somebody else types this."""
    desk.clients["sts"].arn = LEE
    assert desk(*arguments, "--yes").code == 0
    desk.clients["sts"].arn = ME


PLANS = {
    "replay": ("replay", "--all"),
    "delete": ("delete", "--all", "--export", "nowhere.jsonl"),
    "pause": ("pause", "--reason", "mine"),
    "resume": ("resume",),
    "open": ("open", "--reason", "mine"),
    "close": ("close", "--reason", "mine"),
    "drain": ("drain",),
    "run": ("run",),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_plan_shows_pause_circuit_and_what_others_did(
    desk: Desk, plan: tuple[str, ...]
) -> None:
    desk.park("a")
    desk.dead_letters("b")
    as_lee(desk, "open", "--reason", "the provider is down")
    as_lee(desk, "pause", "--reason", "migration", "--for", "2h")
    desk.world.clock.advance(60)

    ran = desk(*plan, answer="no")

    assert ran.code == 1
    forced = "forced by lee@example.com: the provider is down."
    assert f"The circuit of orders is OPEN, since 1 min ago: {forced}" in ran.out
    assert ran.out.count('Paused by lee@example.com until 02:04: "migration".') == 1
    assert "1 min ago, lee@example.com: force orders OPEN: done (the provider is down)" in ran.out
    assert "(migration)" in ran.out


def test_what_oneself_did_and_what_is_long_ago_is_not_shown(desk: Desk) -> None:
    desk.park("a")
    as_lee(desk, "close", "--reason", "long ago")
    desk.world.clock.advance(3601)
    desk("close", "--reason", "mine", "--yes")

    ran = desk("replay", "--all", answer="no")

    assert "The circuit of orders is CLOSED." in ran.out
    assert "Within the last hour" not in ran.out


def test_what_others_did_before_midnight_is_shown_after_it(desk: Desk) -> None:
    desk.park("a")
    now = desk.world.clock.now()
    desk.world.clock.advance(86_400 - 600 - (now.hour * 3600 + now.minute * 60 + now.second))
    as_lee(desk, "close", "--reason", "before midnight")
    desk.world.clock.advance(1200)

    assert "before midnight" in desk("replay", "--all", answer="no").out


@pytest.fixture(params=["pause", "open"])
def held(request: pytest.FixtureRequest, desk: Desk) -> Desk:
    """A desk with letters that somebody has paused, or whose circuit somebody has opened."""
    desk.park("a")
    desk.dead_letters("b")
    as_lee(desk, request.param, "--reason", "not now")
    return desk


@pytest.mark.parametrize("more", [(), ("--from-dlq",)], ids=["parked", "dead"])
def test_a_replay_goes_past_neither_pause_nor_circuit_without_being_told(
    held: Desk, more: tuple[str, ...]
) -> None:
    ran = held("replay", "--all", *more, "--yes")

    assert ran.code == 1
    assert "Nothing was changed. To go ahead, add --even-though-paused." in ran.err
    assert held.bodies(SOURCE) == []


@pytest.mark.parametrize(("answer", "sent"), [("yes\nyes", ["a"]), ("yes\nno", []), ("yes", [])])
def test_a_replay_past_them_is_asked_for_twice(held: Desk, answer: str, sent: list[str]) -> None:
    ran = held("replay", "--all", answer=answer)

    assert ran.code == (0 if sent else 1)
    assert held.bodies(SOURCE) == sent
    assert "All the same? Type yes to go on" in ran.err


@pytest.mark.parametrize(("answer", "sent"), [("yes\nyes", ["a"]), ("yes\nno", []), ("yes", [])])
def test_what_came_to_speak_against_it_while_the_plan_was_read_is_asked_for_too(
    desk: Desk, answer: str, sent: list[str]
) -> None:
    desk.park("a")

    def lee_pauses() -> None:
        as_lee(desk, "pause", "--reason", "not now")

    # The plan reads the circuit once, and it is read again after the first yes.
    script = nth("GetItem", 1, meanwhile(lee_pauses))

    ran = desk("replay", "--all", answer=answer, script=script)

    assert 'Meanwhile: Paused by lee@example.com until somebody resumes it: "not now".' in ran.err
    assert desk.bodies(SOURCE) == sent


def test_whoever_insists_is_asked_once(held: Desk) -> None:
    ran = held("replay", "--all", "--even-though-paused", answer="yes")

    assert ran.code == 0, ran.said
    assert held.bodies(SOURCE) == ["a"]


@pytest.mark.parametrize(
    ("more", "is_paused"), [((), True), (("--even-though-paused",), False)], ids=["yes", "insists"]
)
def test_a_drain_ends_no_pause_without_being_told(
    desk: Desk, more: tuple[str, ...], is_paused: bool
) -> None:
    desk.dead_letters("a")
    as_lee(desk, "pause", "--reason", "migration")

    ran = desk("drain", "--no-follow", "--yes", *more)

    circuit = desk.store.load_circuit()
    assert circuit is not None
    assert (ran.code, circuit.orders.is_paused) == (int(is_paused), is_paused)
    assert ("A drain ends the pause. Nothing was changed" in ran.err) is is_paused


def test_an_order_to_drain_past_an_open_circuit_is_no_way_past_it(desk: Desk) -> None:
    """Canaries come first all the same."""
    desk.dead_letters("a")
    as_lee(desk, "open", "--reason", "down")

    assert desk("drain", "--no-follow", "--yes").code == 0


def test_another_persons_pause_is_not_replaced_without_being_told(desk: Desk) -> None:
    as_lee(desk, "pause", "--reason", "migration")

    refused = desk("pause", "--reason", "lunch", "--for", "10m", "--yes")
    insisted = desk("pause", "--reason", "lunch", "--for", "10m", "--yes", "--even-though-paused")
    ones_own = desk("pause", "--reason", "dinner", "--for", "20m", "--yes")

    assert (refused.code, insisted.code, ones_own.code) == (1, 0, 0)
    assert 'Paused by lee@example.com until somebody resumes it: "migration".' in refused.err


# What an order may be.


@pytest.mark.parametrize("verb", ["pause", "drain"])
@pytest.mark.parametrize("span", ["0s", "0h0m", "99999999999w"])
def test_nothing_is_ordered_for_no_time_or_for_ever_by_mistake(
    desk: Desk, verb: str, span: str
) -> None:
    desk.dead_letters("a")
    reason = ("--reason", "x") if verb == "pause" else ()

    ran = desk(verb, *reason, "--for", span, "--yes")

    assert ran.code == 2
    assert desk.store.load_circuit() is None


@pytest.mark.parametrize("reason", ["", "  ", "\t"])
@pytest.mark.parametrize(
    "arguments",
    [("pause",), ("open",), ("close",), ("resume",), ("drain",), ("run",), ("replay", "--all")],
    ids=" ".join,
)
def test_an_empty_reason_is_none(
    desk: Desk, arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.park("a")

    ran = desk(*arguments, "--reason", reason, "--yes")

    assert ran.code == 2
    assert "It is empty: give a reason" in capsys.readouterr().err
    assert desk.bodies(PARKING_LOT) == ["a"]
    assert desk.store.load_circuit() is None


def test_a_drain_that_is_ordered_again_does_not_multiply(desk: Desk) -> None:
    desk.dead_letters(*(f"letter {n}" for n in range(4)))

    windows = [desk("drain", "--no-follow", "--yes", "--json").json["window"] for _ in range(4)]
    desk.world.clock.advance(7200)
    windows.append(desk("drain", "--no-follow", "--yes", "--json").json["window"])

    assert windows == [50] * 5


def test_there_is_nothing_to_drain_in_an_empty_dlq(desk: Desk) -> None:
    ran = desk("drain", "--yes")

    assert ran.code == 1
    assert "The DLQ is empty: there is nothing to drain." in ran.err
    assert desk.store.load_circuit() is None
    assert desk.bodies(DLQ) == []
