"""The sampler changes what it says it changes."""

import ast

import pytest

from bench.mutants import HERE, ROOMS, modules_of, mutant_at, places_of, suite_of

MODULE = "smart_redriver/engine/messages/outgoing.py"


def test_every_mutant_of_a_module_is_another_text_that_parses() -> None:
    original = ast.unparse(ast.parse((HERE / MODULE).read_text()))
    texts = [mutant_at(*place).text for place in places_of(MODULE)]

    assert len(texts) > 20
    assert original not in texts
    assert all(ast.parse(text) for text in texts)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_modules_and_each_has_tests(room: str) -> None:
    modules = modules_of(room)

    assert len(modules) > 1
    for module in modules:
        tests = suite_of(module)
        assert tests[0].startswith("tests/unit/test_")
        assert all((HERE / one).exists() for one in tests)
