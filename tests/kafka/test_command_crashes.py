"""A command dies before, within and after each change that it makes of log and state, and is typed again.

Nothing is lost: each letter is done, or where the command put it. At most the letters of one call are there twice:
those that were written when nobody lived to record it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from fakes.faults import Call, Crash, Mishap, Wire, at, die_after, die_before
from smart_redriver.kafka.engine.dead_letters import TAKEN_HEADER
from tests.kafka.bench import Bench, die_within
from tests.kafka.desk import KafkaDesk
from tests.oncall.ran import Ran

LETTERS = [f"m{n}" for n in range(12)]
#: What one call of the command sends.
FEW = 10
CHANGES = {"Write", "Commit", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"}
#: Each is told what became of a letter that it wrote, or finds out from the log, before it writes once more.
TYPED_AGAIN = 2


@dataclass(frozen=True)
class Verb:
    """What is typed, with FILE for a file beside the desk, and where that leaves the letters.

    `first`: what was typed before. `then`: what is typed in the end, to have every letter go to the consumers.
    """

    words: tuple[str, ...]
    first: tuple[tuple[str, ...], ...] = ()
    then: tuple[tuple[str, ...], ...] = ()
    makes: Callable[[str], str] = lambda value: value
    deletes: bool = False


PARK = ("park", "--all", "--yes")
REPLAY = ("replay", "--all", "--yes")
DELETE = ("delete", "--all", "--export", "FILE", "--yes")
MEND = ("edit", "--all", "--with", "sed s/m/mended-/", "--export", "FILE", "--yes")
UNDO = ("undo", "FILE", "--export", "UNDONE", "--yes")


def mended(value: str) -> str:
    return value.replace("m", "mended-")


VERBS = {
    "replay": Verb(REPLAY, first=(PARK,)),
    "replay from the DLQ": Verb((*REPLAY, "--from-dlq")),
    "park": Verb(PARK, then=(REPLAY,)),
    "delete": Verb(DELETE, first=(PARK,), deletes=True),
    "delete from the DLQ": Verb((*DELETE, "--from-dlq"), deletes=True),
    "edit": Verb(MEND, first=(PARK,), makes=mended),
    "edit from the DLQ": Verb((*MEND, "--from-dlq"), makes=mended),
    "undo": Verb(UNDO, first=(PARK, DELETE), then=(REPLAY,)),
    "import": Verb(("import", "FILE", "--to", "source", "--yes"), first=(PARK, DELETE)),
    "import to the parking lot": Verb(
        ("import", "FILE", "--to", "parking-lot", "--yes"), first=(PARK, DELETE), then=(REPLAY,)
    ),
}
MISHAPS = [die_before, die_within, die_after]


@dataclass
class Scene:
    """A desk in a folder of its own, with letters in the DLQ, or where `first` put them."""

    verb: Verb
    folder: Path
    keys: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.desk = KafkaDesk(Bench(), self.folder)
        self.bench = self.desk.bench
        self.bench.die(*LETTERS, keys=self.keys)
        for words in self.verb.first:
            assert self.type(words).code == 0

    def type(
        self, words: tuple[str, ...], wire: Wire | None = None, letters: int = len(LETTERS)
    ) -> Ran:
        """`letters` is the answer where it is asked how many are to be deleted."""
        files = {one: str(self.folder / one) for one in ("FILE", "UNDONE")}
        return self.desk(*(files.get(one, one) for one in words), answer=str(letters), wire=wire)

    def type_again(self) -> None:
        """Until there is nothing left of it: then it is refused."""
        self.bench.clock.advance(200)  # the lease of who died has ended
        for _ in range(TYPED_AGAIN):
            for letters in range(len(LETTERS), 0, -1) if self.verb.deletes else [0]:
                self.type(self.verb.words, letters=letters)

    def kept(self) -> Counter[str]:
        file = self.folder / "FILE"
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(json.loads(line)["body"] for line in lines)

    def complaints(self, repeats: int = 0) -> list[str]:
        """What is wrong in the end, once consumers have had what was sent.

        `repeats`: letters that may be there twice.
        """
        verb, bench = self.verb, self.bench
        for words in verb.then:
            self.type(words)
        bench.process()
        bench.live(steps=12)
        done = Counter(one.decode() for one in bench.done)
        parked = len(self.desk("parked", "--list", "--json").json["letters"])
        wanted = set() if verb.deletes else {verb.makes(one) for one in LETTERS}
        found = []
        if set(done) != wanted:
            found.append(f"done: {done}, and not {wanted}")
        if (verb.deletes or verb.makes is mended) and set(self.kept()) != set(LETTERS):
            found.append(f"in the file: {self.kept()}")
        if done.total() - len(done) > repeats:
            found.append(f"repeated: {done}")
        if bench.waiting or parked:
            found.append(f"wait: {bench.waiting}; parked: {parked}")
        return found


def changes(scene: Scene) -> list[int]:
    """The numbers of the calls that change anything, in a command that nothing befalls."""
    verb, wire = scene.verb, Wire()
    assert scene.type(verb.words, wire).code == 0
    assert scene.complaints() == []
    return [one.number for one in wire.calls if one.operation in CHANGES]


def deaths(
    verb: Verb, mishap: Mishap, folder: Path, keys: Sequence[str]
) -> Iterator[tuple[Call, Scene]]:
    """The command once for each of its changes that the mishap befalls, and again to its end."""
    folders = (folder / str(number) for number in count())
    for number in changes(Scene(verb, next(folders), keys)):
        scene, wire = Scene(verb, next(folders), keys), Wire(at({number: mishap}))
        with pytest.raises(Crash):
            scene.type(verb.words, wire)
        scene.type_again()
        yield wire.calls[number], scene


def is_unknown(call: Call, mishap: Mishap) -> bool:
    """Whether letters were written, and nobody lived to record it."""
    if call.operation == "Write":
        (first, *_) = call.request["given"][0]
        is_letter = all(name != TAKEN_HEADER for name, _ in first.headers)
        return is_letter and mishap is not die_before
    return call.operation == "BatchWriteItem" and mishap is not die_after


@pytest.mark.enumeration
@pytest.mark.parametrize(
    ("mishap", "keys"),
    [*((one, ()) for one in MISHAPS), (die_within, ("a", "b", "c"))],
    ids=[*(one.__name__ for one in MISHAPS), "die_within, three keys"],
)
@pytest.mark.parametrize("verb", VERBS)
def test_what_a_command_leaves_is_whole_when_it_dies_anywhere(tmp_path, verb, mishap, keys):
    wrong, tried = [], 0
    for call, scene in deaths(VERBS[verb], mishap, tmp_path, keys):
        tried += 1
        repeats = FEW if is_unknown(call, mishap) else 0
        wrong += [f"{call}: {one}" for one in scene.complaints(repeats)]

    assert wrong == []
    assert tried >= 6
