"""The figures of the house: `python -m bench.house`.

Modules by room, modules that may belong into their importer, the files that one letter is stepped through, and cyclomatic
complexity, which radon measures (uv fetches it at its first use).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import quantiles
from types import FrameType
from unittest.mock import patch

from bench.engine_policies import POLICIES
from fakes.stand_in import StandIn

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("app.py", "lambdas", "smart_redriver", "stacks")
ENGINE = "smart_redriver/engine"
RADON = "radon@6.0.1"
SHORT = 60
#: The stand-in for AWS asks who calls, and believes anybody.
NOBODY = {
    "AWS_ACCESS_KEY_ID": "example",
    "AWS_SECRET_ACCESS_KEY": "example",
    "AWS_DEFAULT_REGION": "eu-west-1",
}


def main() -> None:
    """Print them."""
    modules = dict(_modules())
    engine = [path for path in modules if path.startswith(ENGINE)]
    print(f"{len(modules)} product modules with code, {len(engine)} of them in the engine")
    for room, count in sorted(Counter(_room(path) for path in modules).items()):
        print(f"  {count:3} {room}")
    short = list(_short_with_one_importer(modules))
    print(f"{len(short)} modules under {SHORT} lines with one importer: {', '.join(short) or '-'}")
    files = _files_of_one_letter()
    print(
        f"{len(files)} files of the engine are stepped through for one letter, by {sum(files.values())} calls"
    )
    for name, folder in (("engine", ENGINE), ("product", "smart_redriver")):
        worst = sorted(_complexities(folder), reverse=True)
        cuts = quantiles((value for value, _ in worst), n=10)
        above = [f"{place} {value}" for value, place in worst if value > 12]
        print(
            f"complexity of the {name}: p50 {cuts[4]:.0f}, p90 {cuts[8]:.0f}, most {worst[0][0]}; "
            f"over 12: {', '.join(above) or '-'}"
        )


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """Those that hold more than a docstring, by path; a link is read where it leads."""
    for place in PRODUCT:
        for path in (
            [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
        ):
            tree = ast.parse(path.read_text())
            if len(tree.body) > 1 and not path.is_symlink():
                yield path.relative_to(ROOT).as_posix(), tree


def _room(path: str) -> str:
    parts = path.split("/")
    depth = 3 if parts[1:2] in (["engine"], ["oncall"], ["postgres"]) else 2
    return "/".join(parts[:-1][:depth]) or path


def _short_with_one_importer(modules: Mapping[str, ast.Module]) -> Iterator[str]:
    importers: dict[str, set[str]] = {path: set() for path in modules}
    for importer, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
                for path in {f"{one.replace('.', '/')}.py" for one in named} & importers.keys():
                    importers[path].add(importer)
    for path, found in importers.items():
        if len(found) == 1 and (ROOT / path).read_text().count("\n") < SHORT:
            yield path


def _files_of_one_letter() -> Counter[str]:
    """Calls into each file of the engine while a pass redrives one letter; what runs at import is left out."""
    files: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and f"/{ENGINE}/" in file and frame.f_code.co_name != "<module>":
            files[file] += 1

    aws = StandIn(1)
    with patch.dict(os.environ, NOBODY):
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            POLICIES["smart re-driver"](aws, 1)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return files


def _complexities(folder: str) -> Iterator[tuple[int, str]]:
    """The complexity of each function and method, with its place."""
    command = [sys.executable, "-m", "uv", "tool", "run", "--quiet", RADON, "cc", "--json", folder]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for path, blocks in json.loads(done.stdout).items():
        for block in blocks:
            if block["type"] != "class":
                yield block["complexity"], f"{path}:{block['lineno']}"


if __name__ == "__main__":
    main()
