"""What people read: fitted to their terminal, in colour there, and without the hashes of generated names."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest

from fakes.faults import Wire, nth
from simulator.world import SOURCE
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.oncall.cli import app
from smart_redriver.oncall.deployment.places import Place, choose_places, choose_source
from smart_redriver.oncall.status.alarms import read_alarm
from smart_redriver.oncall.terminal import terminal as ends
from smart_redriver.oncall.terminal.table import table
from smart_redriver.oncall.terminal.terminal import Terminal, Tone
from smart_redriver.oncall.terminal.words import shortened
from tests.infrastructure.conftest import synthesize
from tests.oncall.desk import Desk

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MADE = "SmartRedriverQueuesE9380B63-Source-7ea7f37c-9ff4-4d8a-9567-852b61b356dd"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)


def on_screen(desk: Desk, *arguments: str) -> str:
    """What a command shows on a terminal."""
    terminal = Terminal(out=Screen(), err=io.StringIO())
    with pytest.raises(SystemExit):
        app(list(arguments), prog_name="redrive", obj=lambda _: desk.session(Wire(), terminal))
    shown: str = terminal.out.getvalue()  # type: ignore[attr-defined]
    return shown


# Width.


def test_a_table_that_fits_is_a_table_and_else_each_row_has_lines_of_its_own() -> None:
    rows = [("an-id", "MAX_ATTEMPTS", "12"), ("b", "EXPIRING", "3")]

    wide = table(("ID", "REASON", "STRIKES"), rows, right={2}, columns=60)
    narrow = table(("ID", "REASON", "STRIKES"), rows, right={2}, columns=24)

    assert wide.splitlines()[0].split() == ["ID", "REASON", "STRIKES"]
    assert narrow.splitlines() == [
        "an-id",
        "    reason MAX_ATTEMPTS",
        "    strikes 12",
        "b",
        "    reason EXPIRING",
        "    strikes 3",
    ]


def test_what_is_written_to_a_file_has_one_line_a_row(desk: Desk) -> None:
    (message_id,) = desk.park("a")

    (line,) = (one for one in desk("parked", "--list").out.splitlines() if message_id in one)

    assert "MAX_ATTEMPTS" in line


# Colour.


@pytest.mark.parametrize(
    ("state", "colour", "words"),
    [
        ("OPEN", "\x1b[31m", "Consumer likely down"),
        ("CLOSED", "", "1 letter waits"),
        ("HALF_OPEN", "\x1b[33m", "Consumer was down"),
    ],
)
@pytest.mark.usefixtures("narrow")
def test_the_headline_has_its_colour_on_a_terminal_and_nowhere_else(
    desk: Desk, state: str, colour: str, words: str
) -> None:
    desk.dead_letters("a")
    circuit = new_circuit(SOURCE, desk.redriver.settings, desk.world.clock.now())
    desk.store.save_circuit(force(circuit, State(state), "seen", desk.world.clock.now()))

    assert f"{colour}{words}" in on_screen(desk, "status")
    assert not COLOUR.search(desk("status").out)


@pytest.mark.usefixtures("narrow")
def test_no_colour_is_shown_to_whoever_wants_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = on_screen(desk, "doctor", "--all")
    monkeypatch.setenv("NO_COLOR", "1")

    assert COLOUR.search(coloured)
    assert not COLOUR.search(on_screen(desk, "doctor", "--all"))
    assert Terminal(out=Screen()).paint("x", Tone.BAD) == "x"


@pytest.mark.usefixtures("narrow")
def test_watch_has_the_colours_of_status(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "40")

    shown = on_screen(desk, "watch", "--times", "2")

    assert "\x1b[32mNo letter waits" in shown
    assert "Parking lot: 0 messages" in COLOUR.sub("", shown)


# Names.


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (MADE, "Source"),
        (f"circuit of {MADE}, OPEN", "circuit of Source, OPEN"),
        ("SmartRedriver-QueuesDeadLetterA4947A69-abc.", "DeadLetter."),
        ("SmartRedriver-QueuesDeadLetterA4947A69-1X2Y3Zabc", "DeadLetter"),
        ("SmartRedriver-AdoptedOrdersParkingLotF16E5B7E-q1", "AdoptedOrdersParkingLot"),
        ("orders", "orders"),
        ("SmartRedriver-orders", "SmartRedriver-orders"),
        (f"arn:aws:sqs:eu-west-1:1:{MADE}", f"arn:aws:sqs:eu-west-1:1:{MADE}"),
        (f"https://sqs.eu-west-1.amazonaws.com/1/{MADE}", None),
        ("MySmartRedriver-QueuesDeadLetterA4947A69-abc", None),
        ("orders-Source-7ea7f37c", None),
    ],
)
def test_a_generated_name_is_cut_to_its_sense(text: str, short: str | None) -> None:
    assert shortened(text, "SmartRedriver") == (short or text)


def test_a_queue_can_be_named_as_it_is_shown(desk: Desk) -> None:
    url = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{MADE}"
    deployment = replace(desk.deployment, queue_name=MADE, source_queue_url=url)
    place = Place(stack="SmartRedriver", deployment=deployment)

    assert choose_places([place], "source") == (place,)
    assert choose_places([place], MADE) == (place,)
    assert choose_source(place, "Source") == MADE


def test_a_name_in_the_list_wins_over_another_queues_source(desk: Desk) -> None:
    """Where names cross, each name stood for both queues, and nothing could be done to either."""
    first, second = (
        Place(
            stack="Queues",
            deployment=replace(desk.deployment, queue_name=source, source_queue_url=f"x/{source}"),
            prefix=listed,
        )
        for listed, source in (("X1", "y1"), ("Y1", "x1"))
    )

    assert choose_places([first, second], "x1") == (first,)
    assert choose_places([first, second], "y1") == (second,)


def test_what_people_read_has_short_names_and_json_the_full_ones() -> None:
    text, as_json = io.StringIO(), io.StringIO()
    people = Terminal(out=text, err=text, answers=io.StringIO("yes"), spared_stack="SmartRedriver")

    people.say(f"Source: {MADE}")
    people.plan(f"to {MADE}")
    people.warn(f"no {MADE}")
    people.confirm(f"{MADE}?")
    Terminal(is_json=True, out=as_json, spared_stack="SmartRedriver").result({"queue": MADE})

    assert MADE not in text.getvalue()
    assert text.getvalue().startswith("Source: Source\nto Source\nno Source\nSource? Type yes")
    assert MADE in as_json.getvalue()


def test_full_names_are_shown_when_asked_for() -> None:
    out = io.StringIO()

    Terminal(out=out, spared_stack=None).say(MADE)

    assert out.getvalue() == f"{MADE}\n"


def test_every_alarm_of_the_template_has_a_short_name() -> None:
    resources = synthesize(alarms="all").to_json()["Resources"].values()
    names = [one["Properties"]["AlarmName"] for one in resources if one["Type"].endswith("Alarm")]

    short = {read_alarm({"AlarmName": name}, "SmartRedriver").short for name in names}

    assert {"PoisonParked", "CircuitOpen", "LettersPileUp", "RedriverUnwell"} <= short
    assert len(short) == len(names)
    assert [one for one in short if not one.isalpha()] == []


def test_ctrl_c_says_whether_anything_may_have_been_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(*_: object) -> Any:
        raise KeyboardInterrupt

    desk.dead_letters("a")
    drained = desk("drain", "--yes", script=nth("Invoke", 0, press))
    watched = desk("watch", script=nth("DescribeStacks", 0, press))
    monkeypatch.setattr(ends, "is_other", press)
    asked = desk("pause", "--reason", "migration")

    assert "Stopped. What was done stays done" in drained.err
    assert watched.err.endswith("\nStopped. Nothing was changed.\n")
    assert asked.err.endswith("\nStopped. Nothing was changed.\n")
    assert desk.history() == ["drain for 1 h: begun", "drain for 1 h: done"]
