"""Who may import whom: no circles, floors in the `redrive` command,
and nothing that others install leans on this repository.
"""

from __future__ import annotations

import ast
import sys
from functools import cache

from smart_redriver.oncall.verbs.declarations import VERBS
from tests.package.imports import circle_in, graph_of, read_modules

KIT = "smart_redriver.consumer"
ONCALL = "smart_redriver.oncall."
#: The rooms of the command, the ground floor first.
FLOORS = (
    "terminal", "deployment", "audit", "status", "letters", "moving", "doctor",
    "verbs", "console", "cli", "__main__",
)  # fmt: skip


@cache
def modules() -> dict[str, ast.Module]:
    """Not read with this file: every process of a run reads all files of tests."""
    return read_modules()


@cache
def ever() -> dict[str, set[str]]:
    return graph_of(modules(), is_whole=True)


def floor_of(module: str) -> int:
    return FLOORS.index(module.removeprefix(ONCALL).split(".")[0])


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle_in(graph_of(modules(), is_whole=False)) == []


def test_not_even_imports_that_wait_for_a_call_or_are_for_types_make_a_circle() -> None:
    assert circle_in(ever()) == []


def test_a_circle_would_be_found() -> None:
    shop = {
        "shop": ast.parse(""),
        "shop.orders": ast.parse("from shop import mails"),
        "shop.mails": ast.parse("try:\n    from .bills import pay\nexcept ImportError:\n    pass"),
        "shop.bills": ast.parse("import shop.orders"),
    }
    assert set(circle_in(graph_of(shop, is_whole=False))) == set(shop) - {"shop"}


def test_an_import_that_waits_for_a_call_or_is_for_types_only_makes_no_circle() -> None:
    shop = {
        "shop.orders": ast.parse("from shop.mails import send"),
        "shop.mails": ast.parse(
            "if TYPE_CHECKING:\n    import shop.orders\ndef send():\n    import shop.orders"
        ),
    }
    assert circle_in(graph_of(shop, is_whole=False)) == []
    assert circle_in(graph_of(shop, is_whole=True)) != []


def test_a_room_of_the_command_imports_from_no_floor_above_it() -> None:
    rooms = {
        name: {one for one in imports if one.startswith(ONCALL)}
        for name, imports in ever().items()
        if name.startswith(ONCALL)
    }
    above = {
        name: {one for one in imports if floor_of(one) > floor_of(name)}
        for name, imports in rooms.items()
    }

    assert {floor_of(name) for name in rooms} == set(range(len(FLOORS)))
    assert {name: found for name, found in above.items() if found} == {}


def test_no_verb_leans_on_another() -> None:
    verbs = {
        f"{ONCALL}{one.act.partition(':')[0]}" for one in VERBS if one.act.startswith("verbs.")
    }

    assert {name: ever()[name] & verbs for name in verbs if ever()[name] & verbs} == {}


def test_what_others_install_needs_nothing_else_of_this_repository() -> None:
    installed = {name for name in modules() if name.split(".")[0] in ("redrive", "smart_redriver")}

    assert {name: ever()[name] - installed for name in installed if ever()[name] - installed} == {}


def test_the_consumers_kit_and_the_rest_need_nothing_of_each_other() -> None:
    kit = {name for name in modules() if name.startswith(f"{KIT}.") or name == KIT}
    others = {name for name in modules() if name.startswith("smart_redriver.")} - kit

    assert {target for name in kit for target in ever()[name]} <= kit
    assert {target for name in others for target in ever()[name]} & kit == set()


def test_the_consumers_kit_needs_boto3_and_only_one_module_of_it_powertools() -> None:
    kit = {name for name in modules() if name.startswith(f"{KIT}.") or name == KIT}
    others = {name: roots_of(modules()[name]) - set(sys.stdlib_module_names) for name in kit}

    ours = {"boto3", "botocore", "redrive", "smart_redriver"}
    assert {name: roots - ours for name, roots in others.items() if roots - ours} == {
        f"{KIT}.powertools": {"aws_lambda_powertools"}
    }
    assert f"{KIT}.powertools" not in set().union(*(ever()[name] for name in kit))


def is_in_a_function(name: str) -> bool:
    """Whether a re-drive function's bundle has the module."""
    rooms = ("redrive", "smart_redriver.engine", "smart_redriver.postgres.engine")
    return any(f"{name}.".startswith(f"{room}.") for room in rooms)


def roots_of(tree: ast.Module) -> set[str]:
    """The packages that a module imports at any time."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_the_function_needs_nothing_of_what_deploys_and_watches_it() -> None:
    function = {name for name in modules() if is_in_a_function(name)}

    assert {name: ever()[name] - function for name in function if ever()[name] - function} == {}


def test_the_stack_is_composed_by_the_app_and_looked_at_by_benchmarks_and_nobody_else() -> None:
    stack = {name for name in modules() if name.split(".")[0] == "stacks"}
    leaning = {name for name in set(modules()) - stack if ever()[name] & stack}

    assert leaning == {"bench.synthesized"}


def test_the_package_itself_says_its_version_and_imports_nothing() -> None:
    [said] = [one for one in modules()["smart_redriver"].body if not isinstance(one, ast.Expr)]

    assert isinstance(said, ast.Assign)
    assert [ast.unparse(one) for one in said.targets] == ["__version__"]
