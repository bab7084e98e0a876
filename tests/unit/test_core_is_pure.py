"""The floors of the house: `core` below `aws` and `passes`; the core knows no AWS, clock, environment or chance."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "lambdas" / "redrive"
CORE = sorted((PACKAGE / "core").glob("*.py"))
PASSES = sorted((PACKAGE / "passes").glob("*.py"))

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


def called(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_imports_no_world(module: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(tree_of(module))}

    assert roots & (FORBIDDEN_MODULES - {"random"}) == set()


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_asks_no_clock_and_no_environment(module: Path) -> None:
    assert set(called(tree_of(module))) & FORBIDDEN_CALLS == set()


@pytest.mark.parametrize("module", CORE, ids=lambda path: path.stem)
def test_the_core_imports_of_ours_only_the_core_and_the_settings(module: Path) -> None:
    ours = {name for name in imported(tree_of(module)) if name.startswith("redrive.")}

    assert not {
        name
        for name in ours
        if not name.startswith("redrive.core.")
        and name not in ("redrive.core", "redrive.settings", "redrive.errors")
    }


@pytest.mark.parametrize("module", PASSES, ids=lambda path: path.stem)
def test_a_pass_knows_no_boto3(module: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(tree_of(module))}

    assert roots & {"boto3", "botocore"} == set()


def test_what_the_check_forbids_it_would_find() -> None:
    impure = ast.parse("import os.path\nfrom boto3.session import Session\ndatetime.now()")

    assert {name.partition(".")[0] for name in imported(impure)} == {"os", "boto3"}
    assert set(called(impure)) == {"now"}
