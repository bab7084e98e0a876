"""The floors of the engine: pure rooms below `aws` and `passes`, which know nothing of each other; `wiring` on top.

The pure rooms know no AWS, clock, environment or chance; a pass gets all of these through its ports.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "smart_redriver" / "engine"
#: The rooms that decide.
PURE = ("messages", "model", "triage", "reports")
CORE = sorted(path for room in PURE for path in (PACKAGE / room).glob("*.py"))
PASSES = sorted((PACKAGE / "passes").glob("*.py"))

#: The rooms that call others.
CALLING = ("aws", "targets")
ADAPTERS = sorted(path for room in CALLING for path in (PACKAGE / room).glob("*.py"))
ALL = sorted(PACKAGE.rglob("*.py"))

#: The only place that joins passes and adapters, beside the function's handler.
JOINT = "wiring"

#: What the pure rooms may know of ours.
BELOW_THE_CORE = (*PURE, "config.settings", "config.targets", "errors")

FORBIDDEN_MODULES = {
    "boto3",
    "botocore",
    "aws_lambda_powertools",
    "os",
    "time",
    "random",
    "secrets",
    "uuid",
    "logging",
    "socket",
    "threading",
    "subprocess",
}
FORBIDDEN_CALLS = {"now", "utcnow", "today", "getenv", "open", "print", "input"}


def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            # `from redrive import aws` names a floor, too.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


def roots_of(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def is_in(name: str, floor: str) -> bool:
    return f"{name}.".startswith(f"smart_redriver.engine.{floor}.")


def is_calling(name: str) -> bool:
    return any(is_in(name, room) for room in CALLING)


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_imports_no_world(module: Path) -> None:
    roots = roots_of(imported(tree_of(module)))

    assert roots & FORBIDDEN_MODULES == set()


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_asks_no_clock_and_no_environment(module: Path) -> None:
    assert set(called(tree_of(module))) & FORBIDDEN_CALLS == set()


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_the_core_imports_of_ours_only_the_core_and_what_stands_below_it(module: Path) -> None:
    ours = {name for name in imported(tree_of(module)) if name.startswith("smart_redriver.engine.")}

    assert {one for one in ours if not any(is_in(one, floor) for floor in BELOW_THE_CORE)} == set()


@pytest.mark.parametrize("module", PASSES, ids=lambda path: path.stem)
def test_a_pass_knows_ports_and_neither_boto3_nor_the_adapters_behind_them(module: Path) -> None:
    names = set(imported(tree_of(module)))

    assert roots_of(names) & {"boto3", "botocore", "aws_lambda_powertools"} == set()
    assert {name for name in names if is_calling(name) or is_in(name, JOINT)} == set()


@pytest.mark.parametrize("module", PASSES, ids=lambda path: path.stem)
def test_a_pass_asks_its_tools_for_the_time_and_for_chance(module: Path) -> None:
    """`Random` is named for its type only: who makes one is the composition root."""
    tree = tree_of(module)

    assert set(called(tree)) & (FORBIDDEN_CALLS | {"Random"}) == set()
    assert roots_of(imported(tree)) & {"time", "os", "uuid", "secrets"} == set()


@pytest.mark.parametrize("module", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_knows_nothing_of_the_passes_that_use_it(module: Path) -> None:
    names = set(imported(tree_of(module)))

    assert {name for name in names if is_in(name, "passes") or is_in(name, JOINT)} == set()


def test_passes_and_adapters_are_joined_by_the_wiring_only() -> None:
    joining = set()
    for module in ALL:
        names = set(imported(tree_of(module)))
        if any(is_calling(one) for one in names) and any(is_in(one, "passes") for one in names):
            joining.add(module.relative_to(PACKAGE).with_suffix("").as_posix())

    assert joining == {JOINT}


def test_what_the_check_forbids_it_would_find() -> None:
    impure = ast.parse(
        "import os.path\nfrom boto3.session import Session\nfrom smart_redriver.engine import aws\n"
        "def later():\n    from smart_redriver.engine.aws.sqs import SqsQueue\n    return datetime.now()"
    )

    names = set(imported(impure))
    assert roots_of(names) == {"os", "boto3", "smart_redriver"}
    assert {"smart_redriver.engine.aws", "smart_redriver.engine.aws.sqs"} <= {
        one for one in names if is_in(one, "aws")
    }
    assert set(called(impure)) == {"now"}
