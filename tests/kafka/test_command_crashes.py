"""A command dies before, within and after each change of the log: nothing is lost, and typed again it ends its work."""

from collections import Counter
from itertools import count

import pytest

from fakes.faults import Crash, Wire, at, die_after, die_before
from tests.kafka.bench import Bench, WiredLog, die_within
from tests.kafka.desk import KafkaDesk

LETTERS = [f"m{n}" for n in range(12)]
#: What one call of the command sends.
FEW = 10
CHANGES = {"Write", "Commit"}
VERBS = {
    "replay": ("replay", "--all", "--yes"),
    "replay from the DLQ": ("replay", "--all", "--from-dlq", "--yes"),
    "park": ("park", "--all", "--yes"),
}


def begun(verb, folder):
    folder.mkdir()
    desk = KafkaDesk(Bench(), folder)
    if verb == "replay":
        desk.park(*LETTERS)
    else:
        desk.bench.die(*LETTERS)
    return desk


def changes(verb, folder):
    """The numbers of the calls that change the log, in a command that nothing befalls."""
    desk, wire = begun(verb, folder), Wire()
    assert desk(*VERBS[verb], log=WiredLog(desk.bench.log, wire)).code == 0
    return [one.number for one in wire.calls if one.operation in CHANGES]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "mishap", [die_before, die_within, die_after], ids=lambda one: one.__name__
)
def test_what_a_command_leaves_is_whole_when_it_dies_anywhere(tmp_path, verb, mishap):
    folders = (tmp_path / str(number) for number in count())
    wrong, tried = [], 0
    for number in changes(verb, next(folders)):
        tried += 1
        desk = begun(verb, next(folders))
        bench, wire = desk.bench, Wire(at({number: mishap}))
        with pytest.raises(Crash):
            desk(*VERBS[verb], log=WiredLog(bench.log, wire))
        bench.clock.advance(200)  # the lease of who died has ended

        desk(*VERBS[verb])
        if verb == "park":
            desk("replay", "--all", "--yes")
        bench.process()
        bench.live(steps=12)

        done = Counter(bench.done)
        if set(done) != bench.produced:
            wrong.append(f"{wire.calls[number]}: not done: {bench.produced - set(done)}")
        if done.total() - len(done) > FEW:
            wrong.append(f"{wire.calls[number]}: repeated: {done}")
        if bench.waiting:
            wrong.append(f"{wire.calls[number]}: waits: {bench.waiting}")

    assert wrong == []
    assert tried >= 4
