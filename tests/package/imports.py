"""Which module imports which, read from the sources of this repository."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Every package of the repository, by the name it is imported by.
PACKAGES = {
    "redrive": ROOT / "lambdas" / "redrive",
    **{
        name: ROOT / name
        for name in (
            "smart_redriver", "stacks", "simulator", "fakes", "emulator", "bench", "demo", "proof"
        )
    },
}  # fmt: skip


def read_modules() -> dict[str, ast.Module]:
    """The modules of all packages by name; a package's own name is its `__init__`."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = (package, *path.relative_to(folder).with_suffix("").parts)
            name = ".".join(part for part in parts if part != "__init__")
            if not path.is_symlink():  # a link is read where it leads
                found[name] = ast.parse(path.read_text())
    return found


def graph_of(modules: Mapping[str, ast.Module], *, is_whole: bool) -> dict[str, set[str]]:
    """What each module imports of the others: while it is imported itself, or at any time (`is_whole`)."""
    return {
        name: {
            target
            for statement in (ast.walk(tree) if is_whole else _run_at_import(tree))
            for target in _targets(statement, name, modules)
            if target != name
        }
        for name, tree in modules.items()
    }


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The names along one circle of imports; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _run_at_import(child)


def _targets(node: ast.AST, importer: str, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            is_package = any(other.startswith(f"{importer}.") for other in modules)
            parts = importer.split(".")
            parts = parts[: len(parts) - node.level + is_package]
            base = ".".join([*parts, base] if base else parts)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            if inner in modules:
                yield inner
            elif base in modules:
                yield base
