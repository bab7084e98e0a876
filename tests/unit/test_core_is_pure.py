"""The pure core stays pure: no AWS, no Powertools, no clock, no environment, no chance but what is passed in."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "lambdas" / "redrive"

CORE = (
    "letter",
    "ledger",
    "circuit",
    "verdict",
    "breaker",
    "backoff",
    "retention",
    "cause",
    "queue_facts",
    "triage",
    "journal",
)
#: Pure but for the faults' names, which it counts.
EDGE_OF_THE_CORE = ("report",)

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


def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text())


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


@pytest.mark.parametrize("module", [*CORE, *EDGE_OF_THE_CORE])
def test_a_module_of_the_core_imports_no_world(module: str) -> None:
    roots = {name.partition(".")[0] for name in imported(tree_of(module))}

    assert roots & FORBIDDEN_MODULES == set()


@pytest.mark.parametrize("module", [*CORE, *EDGE_OF_THE_CORE])
def test_a_module_of_the_core_asks_no_clock_and_no_environment(module: str) -> None:
    assert set(called(tree_of(module))) & FORBIDDEN_CALLS == set()


@pytest.mark.parametrize("module", CORE)
def test_the_core_imports_of_ours_only_the_core_and_the_settings(module: str) -> None:
    ours = {name for name in imported(tree_of(module)) if name.startswith("redrive.")}

    assert ours <= {f"redrive.{name}" for name in (*CORE, "settings", "errors")}


def test_what_the_check_forbids_it_would_find() -> None:
    impure = ast.parse("import os.path\nfrom boto3.session import Session\ndatetime.now()")

    assert {name.partition(".")[0] for name in imported(impure)} == {"os", "boto3"}
    assert set(called(impure)) == {"now"}
