"""Changes the engine's pure rooms, one place at a time, and counts the changes that unit tests notice.

`python -m bench.mutants --count 40 --seed 0 --minutes 5`: a sample, drawn anew for each seed; `--room messages` draws from one room.
A change that no test notices is printed with its line: either a test is missing, or the change means the same.
"""

from __future__ import annotations

import argparse
import ast
import copy
import math
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

HERE = Path(__file__).parents[1]
ENGINE = Path("smart_redriver/engine")
#: Rooms that are changed: those that decide, and take all they know as arguments.
ROOMS = ("messages", "model", "reports", "triage")
#: Files that a copy of the project needs for its unit tests.
_COPIED = (
    "smart_redriver",
    "tests",
    "fakes",
    "simulator",
    "proof",
    "bench",
    "demo",
    "emulator",
    "lambdas",
    "docs",
    "pyproject.toml",
)

#: Tests that take so many times the processor time with a change that all of them take without are stuck by it. Of time
#: that passes, a machine with other work to do takes any amount.
_STUCK = 3
#: So many seconds may pass for tests that wait for something and take no processor time.
_WAITS_SECONDS = 3_600

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
KINDS = ("comparison", "logic", "sum", "product", "extreme", "value")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: its module, its line, what is there instead, and the whole text that results."""

    module: str
    line: int
    change: str
    text: str


def modules_of(room: str) -> list[str]:
    """The modules of a room."""
    return sorted(str(path.relative_to(HERE)) for path in (HERE / ENGINE / room).glob("*.py"))


class Outcome(Enum):
    """The outcome of the tests on a change."""

    NOTICED = "noticed"
    STUCK = "stuck"  # they do not end, which any run of theirs would notice
    MISSED = "not noticed"


def places_of(module: str, kinds: Set[str] = frozenset(KINDS)) -> list[tuple[str, int, int]]:
    """Where a module can be changed: comparisons, `and`, `or`, `not`, arithmetic, calls of `min`, `max`, `any` and `all`,
    whole numbers and booleans.

    A place is the number of a node and, in a chain of comparisons, that of the operator.
    """
    tree = ast.parse((HERE / module).read_text())
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    # How a dataclass is made, such as with slots, is nothing that a test can see.
    made = {id(one) for node in classes for by in node.decorator_list for one in ast.walk(by)}
    return [
        (module, number, operator)
        for number, node in enumerate(ast.walk(tree))
        for operator in range(len(node.ops) if isinstance(node, ast.Compare) else 1)
        if id(node) not in made and _changed(copy.deepcopy(node), operator) in kinds
    ]


def mutant_at(module: str, number: int, operator: int) -> Mutant:
    """The module with this node changed."""
    tree = ast.parse((HERE / module).read_text())
    node = next(one for index, one in enumerate(ast.walk(tree)) if index == number)
    before = ast.unparse(node)
    _changed(node, operator)
    change = f"{before} -> {ast.unparse(node)}"
    return Mutant(module, getattr(node, "lineno", 0), change, ast.unparse(tree))


def _changed(node: ast.AST, operator: int) -> str | None:
    """The kind of this change, if the node is one that can be changed."""
    match node:
        case ast.Compare(ops=ops):
            ops[operator] = _SWAPPED[type(ops[operator])]()  # type: ignore[call-overload]
            return "comparison"
        case ast.BoolOp(op=op):
            node.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
            return "logic"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            node.operand = ast.UnaryOp(op=ast.Not(), operand=operand)
            return "logic"
        case ast.BinOp(op=op) if type(op) in _SWAPPED:
            node.op = _SWAPPED[type(op)]()  # type: ignore[assignment]
            return "sum" if isinstance(op, ast.Add | ast.Sub) else "product"
        case ast.Call(func=ast.Name(id=name) as func) if name in _OPPOSITES:
            func.id = _OPPOSITES[name]
            return "extreme"
        case ast.Constant(value=bool() as value):
            node.value = not value
            return "value"
        case ast.Constant(value=int() as value):
            node.value = value + 1
            return "value"
        case _:
            return None


def suite_of(module: str) -> list[str]:
    """The unit tests that name the module, then those that import anything of its room, and those of the proof.

    Not those of these changes: they read the text.
    """
    room, name = Path(module).parent.name, Path(module).stem
    texts = {path: path.read_text() for path in sorted((HERE / "tests" / "unit").glob("test_*.py"))}
    named = [path for path, text in texts.items() if re.search(rf"\b{name}\b", text)]
    others = [
        path for path, text in texts.items() if f"engine.{room}" in text and path not in named
    ]
    proof = sorted((HERE / "tests" / "proof").glob("test_*.py"))
    return [
        str(path.relative_to(HERE))
        for path in (*named, *others, *proof)
        if path.name != "test_mutants.py"
    ]


def try_out(place: Path, mutant: Mutant, tests: Sequence[str], seconds: int) -> Outcome:
    """Run the tests on this change, for at most so many seconds of processor time."""
    file = place / mutant.module
    original = file.read_text()
    file.write_text(mutant.text)
    try:
        return _run(place, tests, seconds)
    finally:
        file.write_text(original)


def _run(place: Path, tests: Sequence[str], seconds: int) -> Outcome:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    limit = f'ulimit -t {seconds}; exec "$@"'
    try:
        done = subprocess.run(
            ["sh", "-c", limit, "sh", *command],
            cwd=place,
            capture_output=True,
            timeout=_WAITS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome.STUCK
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome.STUCK
    return Outcome.NOTICED if done.returncode else Outcome.MISSED


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str]) -> int:
    """Try a sample, and print what was not noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=40, help="changes to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5, help="no further change is tried then")
    parser.add_argument("--room", choices=ROOMS, action="append", help="all of them, if not given")
    parser.add_argument("--kind", choices=KINDS, action="append", help="likewise")
    options = parser.parse_args(arguments)
    modules = [module for room in options.room or ROOMS for module in modules_of(room)]
    kinds = frozenset(options.kind or KINDS)
    every = [place for module in modules for place in places_of(module, kinds)]
    sample = random.Random(options.seed).sample(every, min(options.count, len(every)))
    # All is read before the copy is made, so that the project may be worked on meanwhile.
    mutants = [mutant_at(*place) for place in sample]
    suites = {module: suite_of(module) for module in modules}
    outcomes: Counter[Outcome] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in _COPIED:
            source = HERE / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, place / name)
        if _run(place, sorted(set().union(*suites.values())), _WAITS_SECONDS) is not Outcome.MISSED:
            print("tests fail without any change", file=sys.stderr)
            return 2
        seconds = math.ceil(_STUCK * _processor_seconds())
        until = time.monotonic() + 60 * options.minutes
        for mutant in mutants:
            if time.monotonic() > until:
                break
            outcome = try_out(place, mutant, suites[mutant.module], seconds)
            outcomes[outcome] += 1
            if outcome is not Outcome.NOTICED:
                print(
                    f"{outcome.value}: {mutant.module}:{mutant.line}: {mutant.change}", flush=True
                )
    tried, stuck = outcomes.total(), outcomes[Outcome.STUCK]
    print(
        f"{outcomes[Outcome.NOTICED] + stuck} of {tried} changes noticed, {stuck} of them by tests that got stuck; "
        f"drawn with seed {options.seed} from {len(every):,}"
    )
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
