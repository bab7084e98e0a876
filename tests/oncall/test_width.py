"""What every verb tells people fits their terminal: lines fold between words, and no word is broken."""

from __future__ import annotations

import io
import re
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import Wire
from smart_redriver.oncall.cli import Asked, app
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.table import folded, folded_command
from smart_redriver.oncall.terminal.terminal import Advance, Terminal
from smart_redriver.oncall.verbs.declarations import VERBS
from tests.oncall.desk import Desk
from tests.oncall.reported import failed, hold
from tests.oncall.test_terminal import Screen

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
KEPT = "kept.jsonl"


def incident() -> Desk:
    """Letters of all sorts: parked with a long error, reported with a traceback, held until later."""
    desk = Desk()
    error = {"ErrorType": {"DataType": "String", "StringValue": "KeyError: " + "price " * 15}}
    desk.park('{"order": 1}', '{"order": 2}', MessageAttributes=error)
    failed(desk, '{"order": 3}', first_line="the provider of payments does not answer at all today")
    desk.dead_letters('{"order": 4}')
    hold(desk, cools_until=desk.world.clock.now() + timedelta(minutes=4), canaries_failed=6)
    held = replace(
        desk.suspect("46f7cf52-5282-489c-b847-88ec82863a59"),
        not_before=desk.world.clock.now() + timedelta(hours=5),
    )
    desk.store.write_ledger([held], [], desk.world.clock.now())
    desk("run", "--yes")
    return desk


def parked_id(desk: Desk) -> str:
    letters = desk("parked", "--list", "--json").json["letters"]
    return str(min(one["original_id"] for one in letters))


def deleted(desk: Desk) -> tuple[str, ...]:
    desk("delete", "--all", "--export", KEPT, "--reason", "x", "--yes")
    return ("undo", KEPT, "--yes")


def exported(desk: Desk) -> tuple[str, ...]:
    desk("export", KEPT, "--all")
    return ("import", KEPT, "--dry-run")


def paused(desk: Desk) -> tuple[str, ...]:
    assert desk("pause", "--reason", "the database moves", "--yes").code == 0
    return ("resume", "--yes")


TYPED: dict[str, Callable[[Desk], tuple[str, ...]]] = {
    "status": lambda _: ("status", "--links"),
    "overview": lambda _: ("status", "--overview"),
    "watch": lambda _: ("watch", "--times", "1"),
    "causes": lambda _: ("causes",),
    "letters": lambda _: ("letters", "--body"),
    "held letters": lambda _: ("letters", "--held"),
    "parked": lambda _: ("parked",),
    "each parked": lambda _: ("parked", "--list"),
    "show": lambda desk: ("show", parked_id(desk)),
    "show a failure": lambda desk: ("show", failed(desk, '{"order": 9}')[0], "--logs"),
    "logs": lambda _: ("logs",),
    "history": lambda _: ("history",),
    "audit": lambda _: ("audit",),
    "replay": lambda _: ("replay", "--all", "--reason", "the provider answers again", "--yes"),
    "edit": lambda _: ("edit", "--all", "--with", "sed s/order/number/", "--reason", "x", "--yes"),
    "undo": deleted,
    "park": lambda _: ("park", "--all", "--reason", "the provider does not answer", "--yes"),
    "delete": lambda _: ("delete", "--all", "--export", KEPT, "--reason", "a test", "--yes"),
    "export": lambda _: ("export", KEPT, "--all"),
    "import": exported,
    "pause": lambda _: ("pause", "--for", "2h", "--reason", "the database moves", "--yes"),
    "resume": paused,
    "resume of what is not paused": lambda _: ("resume",),
    "open": lambda _: ("open", "--reason", "the consumer is being repaired", "--yes"),
    "close": lambda _: ("close", "--reason", "the consumer was repaired", "--yes"),
    "drain": lambda _: ("drain", "--for", "1m", "--reason", "repaired", "--yes"),
    "run": lambda _: ("run", "--yes"),
    "dry run": lambda _: ("run", "--dry-run"),
    "doctor": lambda _: ("doctor", "--all"),
    "what is refused": lambda _: ("show", "no letter has an id that begins like this one"),
}


def test_every_verb_is_looked_at() -> None:
    """The console has a page of its own, and tells its address alone."""
    verbs = {one.name for one in VERBS} - {"console"}

    assert verbs <= TYPED.keys()


class WithoutBars(Terminal):
    """A terminal on which no bar moves: it is redrawn, and as wide as it is told."""

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        yield lambda _: None


def shown(desk: Desk, arguments: tuple[str, ...], stream: type[io.StringIO]) -> str:
    terminal = WithoutBars(out=stream(), err=stream())
    with pytest.raises(SystemExit):
        app(list(arguments), prog_name="redrive", obj=lambda asked: _open(desk, terminal, asked))
    return "".join(
        CONTROL.sub("", one.getvalue())  # type: ignore[attr-defined]
        for one in (terminal.out, terminal.err)
    )


def _open(desk: Desk, terminal: Terminal, asked: Asked) -> Session:
    terminal.assume_yes = asked.yes
    return desk.session(Wire(), terminal, asked)


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("name", TYPED)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(
    name: str, columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    # Kept files of both plays have one name, so that their words can be compared.
    monkeypatch.setattr(secrets, "token_hex", lambda length: "4f" * length)
    texts = []
    for stream in (io.StringIO, Screen):
        place = tmp_path / stream.__name__
        place.mkdir()
        monkeypatch.chdir(place)
        desk = incident()
        texts.append(shown(desk, TYPED[name](desk), stream))
    plain, fitted = texts

    words = {one.lower() for one in plain.split()}
    broken = [one for one in fitted.split() if one.lower() not in words and not is_cut(one, words)]
    too_long = [one for one in fitted.splitlines() if len(one) > columns and not is_kept(one)]
    assert plain.strip()
    assert broken == []
    assert too_long == []


def is_cut(word: str, words: set[str]) -> bool:
    """Whether it stands for the end of a cell that is cut, or of a line of a command that goes on."""
    return word == "\\" or (
        word.endswith("…") and any(one.startswith(word.lower()[:-1]) for one in words)
    )


def is_kept(line: str) -> bool:
    """Whether it is one word, as a shell has words, or a line of the difference between two letters."""
    return len(shlex.split(line)) == 1 or line.strip().startswith("---- attributes above")


def test_a_line_that_is_folded_keeps_its_indentation_and_the_place_of_its_text() -> None:
    text = "  Waits for:   a canary of its cause, until 02:33 at the latest\nPlan: replay all"

    assert folded(text, 40).splitlines() == [
        "  Waits for:   a canary of its cause,",
        "               until 02:33 at the latest",
        "Plan: replay all",
    ]


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    assert folded("see arn:aws:sqs:eu-west-1:123456789012:orders now", 20).splitlines() == [
        "see",
        "arn:aws:sqs:eu-west-1:123456789012:orders",
        "now",
    ]


def test_a_command_is_continued_so_that_it_can_be_pasted() -> None:
    command = "aws logs get-log-events --log-group-name /aws/lambda/x --log-stream-name 'a b'"

    lines = folded_command(command, 40, "  ").splitlines()

    assert max(map(len, lines)) <= 40
    assert [one.endswith(" \\") for one in lines] == [True] * (len(lines) - 1) + [False]
    assert " ".join(one.rstrip("\\").strip() for one in lines) == command
    assert folded_command(command, None) == command
