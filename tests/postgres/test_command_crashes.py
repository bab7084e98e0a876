"""A command dies before or within any of its statements and calls, and is typed again: 0 letters lost, 0 repeated."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.faults import Crash, Mishap, Wire, at, die_before, nothing
from smart_redriver.oncall.cli import Asked
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.delete import DeleteRequest, delete
from smart_redriver.oncall.verbs.edit import RewriteRequest, rewrite
from smart_redriver.oncall.verbs.park import ParkRequest, park
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from smart_redriver.oncall.verbs.undo import UndoRequest, undo
from tests.postgres.bench import Bench, die_within, lose_the_answer
from tests.postgres.desk import PostgresDesk

#: More than are in hand at once.
LETTERS = [f"letter {n}" for n in range(12)]
ENOUGH = 200
KEPT = Path("kept.jsonl")

Verb = Callable[[Session], object]

VERBS: dict[str, tuple[Verb, bool]] = {
    "replay from the DLQ": (
        lambda session: replay(session, ReplayRequest(choice=Choice(), from_dlq=True, workers=1)),
        False,
    ),
    "replay": (lambda session: replay(session, ReplayRequest(choice=Choice(), workers=1)), True),
    "park": (lambda session: park(session, ParkRequest(choice=Choice())), False),
    "delete from the DLQ": (
        lambda session: delete(session, DeleteRequest(choice=Choice(), file=KEPT, from_dlq=True)),
        False,
    ),
    "delete": (
        lambda session: delete(session, DeleteRequest(choice=Choice(), file=KEPT)),
        True,
    ),
    "edit from the DLQ": (
        lambda session: rewrite(
            session,
            RewriteRequest(
                choice=Choice(), command="sed s/letter/mended/", file=KEPT, from_dlq=True
            ),
        ),
        False,
    ),
    "undo": (
        lambda session: undo(session, UndoRequest(file=KEPT, kept=Path("undone.jsonl"))),
        True,
    ),
}


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


def prepare(desk: PostgresDesk, verb: str) -> None:
    bench = desk.bench
    bench.begin_anew()
    desk.clients["dynamodb"].dynamodb = bench.dynamodb
    KEPT.unlink(missing_ok=True)
    bench.die(*LETTERS)
    if VERBS[verb][1]:
        assert run(desk, VERBS["park"][0])
    if verb == "undo":
        assert run(desk, VERBS["delete"][0])


def run(desk: PostgresDesk, verb: Verb, wire: Wire | None = None) -> bool:
    """Whether it came to its end, with or without something left to do."""
    terminal = Terminal(out=io.StringIO(), err=io.StringIO(), assume_yes=True)
    try:
        verb(desk.session(wire or Wire(nothing), terminal, Asked(yes=True)))
    except Crash:
        return False
    return True


def again(desk: PostgresDesk, verb: Verb) -> None:
    """Typed until there is nothing left of it: what it refuses then is that nothing is to be done."""
    for _ in range(3):
        with suppress(Refused):
            run(desk, verb)


def kept() -> Counter[str]:
    if not KEPT.exists():
        return Counter()
    return Counter({json.loads(json.loads(line)["body"]) for line in KEPT.read_text().splitlines()})


def deaths(desk: PostgresDesk, verb: str, mishap: Mishap) -> Iterator[str]:
    """The verb once for each of its calls that the mishap can befall, and to its end afterwards."""
    for number in range(ENOUGH):
        prepare(desk, verb)
        wire = Wire(at({number: mishap}))
        run(desk, VERBS[verb][0], wire)
        if len(wire.calls) <= number:
            return
        again(desk, VERBS[verb][0])
        yield str(wire.calls[number])


def complaints(bench: Bench, verb: str) -> list[str]:
    there = bench.everywhere()
    if verb.startswith("delete"):
        return [] if kept() == Counter(LETTERS) and not there else [f"{there} beside {kept()}"]
    table = "jobs" if verb.startswith(("replay", "edit")) else "jobs_parked"
    letters = LETTERS
    if verb.startswith("edit"):
        letters = [one.replace("letter", "mended") for one in LETTERS]
        if kept() != Counter(LETTERS):
            return [f"not all in the file: {kept()}"]
    wrong = [] if there == Counter(letters) else [f"lost or repeated: {there}"]
    return wrong + ([] if len(bench.payloads(table)) == len(LETTERS) else [f"not all in {table}"])


@pytest.mark.enumeration
@pytest.mark.parametrize("mishap", [die_before, die_within], ids=lambda one: one.__name__)
@pytest.mark.parametrize("verb", VERBS)
def test_a_command_that_dies_at_any_call_loses_and_repeats_nothing(desk, bench, verb, mishap):
    wrong, tried = [], 0
    for call in deaths(desk, verb, mishap):
        tried += 1
        wrong += [f"{call}: {one}" for one in complaints(bench, verb)]

    assert wrong == []
    assert tried > 10


@pytest.mark.enumeration
@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_that_is_lost_costs_nothing(desk, bench, verb):
    """The statement was carried out, and is asked again on another connection."""
    wrong, tried = [], 0

    def mishap(call, act):
        is_statement = call.operation.endswith(("Letters", "Jobs", "Oldest"))
        return (lose_the_answer if is_statement else _carried)(call, act)

    for call in deaths(desk, verb, mishap):
        tried += "Letters" in call
        wrong += [f"{call}: {one}" for one in complaints(bench, verb)]

    assert wrong == []
    assert tried > 2


def _carried(call, act):
    return act(**call.request)
