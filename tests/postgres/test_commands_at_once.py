"""Two commands at once, one of which stands still in the middle until its lease is over: each letter is one's,
and there once.
"""

from collections import Counter
from typing import Any

import pytest

from fakes.faults import Wire
from tests.postgres.desk import PostgresDesk
from tests.postgres.test_command_crashes import LETTERS, VERBS, kept, prepare, run

#: By the statement in which each stands still.
STANDING = {
    "replay from the DLQ": "RedriveLetters",
    "park": "ParkLetters",
    "delete from the DLQ": "DeleteLetters",
}


@pytest.fixture
def desk(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return PostgresDesk(bench)


@pytest.mark.parametrize("second", STANDING)
@pytest.mark.parametrize("first", STANDING)
def test_a_command_that_overtakes_another_leaves_each_letter_in_one_place(
    desk, bench, first, second, tmp_path, monkeypatch
):
    prepare(desk, first)
    ended: list[Any] = []
    kept_elsewhere: Counter[str] = Counter()
    (tmp_path / "elsewhere").mkdir()  # a file of kept letters is one command's at a time

    def stand_still(call):
        if call.operation == STANDING[first] and not ended:
            ended.append("begun")
            with monkeypatch.context() as elsewhere:
                elsewhere.chdir(tmp_path / "elsewhere")
                # It waits for the lease, which ends while the first stands still.
                ended.append(run(desk, VERBS[second][0]))
                kept_elsewhere.update(kept())

    assert run(desk, VERBS[first][0], Wire(stand_still))

    there = bench.everywhere()
    assert ended == ["begun", True]
    assert there + ((kept() | kept_elsewhere) - there) == Counter(LETTERS)
    assert not bench.payloads("jobs_dlq")


@pytest.mark.parametrize("verb", STANDING)
def test_a_pass_that_overtakes_a_command_leaves_each_letter_in_one_place(desk, bench, verb):
    prepare(desk, verb)
    reports: list[Any] = []

    def stand_still(call):
        if call.operation == STANDING[verb] and not reports:
            bench.clock.advance(120)
            reports.append(bench.run_pass(initial_window=2, base_delay_seconds=0))

    assert run(desk, VERBS[verb][0], Wire(stand_still))

    assert reports[0].redriven > 0
    there = bench.everywhere()
    assert there + (kept() - there) == Counter(LETTERS)
    bench.clock.advance(600)
    bench.live(steps=20)
    assert all(count == 1 for count in bench.everywhere().values())


@pytest.mark.parametrize("is_parked", [False, True])
def test_what_was_sent_while_a_delete_stood_still_is_not_put_back_beside_its_job(
    desk, bench, is_parked
):
    """The delete found no row, and said and recorded that it had deleted it: its file was then a second letter."""
    bench.die("a", "b")
    of = () if is_parked else ("--from-dlq",)
    if is_parked:
        desk("park", "--all", "--yes")
    overtaken: list[int] = []

    def stand_still(at):
        if at.operation == "DeleteLetters" and not overtaken:
            overtaken.append(0)
            bench.clock.advance(600)
            overtaken.append(PostgresDesk(bench)("replay", "dlq-1", *of, "--yes").code)

    deleted = desk(
        "delete", "--all", *of, "--export", "kept.jsonl", "--yes", "--json", script=stand_still
    )
    undone = desk("undo", "kept.jsonl", "--yes", "--json")

    assert overtaken == [0, 0]
    assert (deleted.json["done"], undone.json["done"]) == (1, 1)
    assert bench.everywhere() == {"a": 1, "b": 1}
