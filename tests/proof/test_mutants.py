"""The sampler changes what it says it changes."""

import ast
from pathlib import Path

import pytest

from bench.mutants import (
    HERE,
    ROOMS,
    Mutant,
    Outcome,
    modules_of,
    mutant_at,
    places_of,
    suite_of,
    try_out,
)

MODULE = "smart_redriver/engine/messages/outgoing.py"


def test_every_mutant_of_a_module_is_another_text_that_parses() -> None:
    original = ast.unparse(ast.parse((HERE / MODULE).read_text()))
    texts = [mutant_at(*place).text for place in places_of(MODULE)]

    assert len(texts) > 20
    assert original not in texts
    assert all(ast.parse(text) for text in texts)


def test_each_operator_of_a_chain_of_comparisons_is_changed() -> None:
    module = "smart_redriver/engine/messages/letter.py"

    changes = {mutant_at(*place).change for place in places_of(module)}

    chain = "0 <= number <= _LARGEST_NUMBER"
    assert f"{chain} -> 0 < number <= _LARGEST_NUMBER" in changes
    assert f"{chain} -> 0 <= number < _LARGEST_NUMBER" in changes


@pytest.mark.parametrize(
    ("module", "change"),
    [
        (
            "messages/queue_facts.py",
            "max(0, MOST_HIDDEN - self.in_flight) -> min(0, MOST_HIDDEN - self.in_flight)",
        ),
        ("messages/queue_facts.py", "MOST_IN_FLIGHT // 2 -> MOST_IN_FLIGHT * 2"),
        ("triage/retention.py", "retention / 4 -> retention * 4"),
    ],
)
def test_arithmetic_and_extremes_are_changed_to_their_opposites(module: str, change: str) -> None:
    changed = f"smart_redriver/engine/{module}"
    some = {kind: places_of(changed, {kind}) for kind in ("product", "extreme")}

    assert change in {mutant_at(*place).change for places in some.values() for place in places}
    assert set(some["product"]).isdisjoint(some["extreme"])


LOOP = "def count_to(most):\n    n = 0\n    while n < most:\n        n += 1\n    return n\n"
TEST = "from loop import count_to\n\ndef test_it(): assert count_to(3) == 3\n"


@pytest.mark.parametrize(
    ("was", "becomes", "seconds", "outcome"),
    [
        ("n < most", "n <= most", 600, Outcome.NOTICED),
        ("n += 1", "n -= 1", 3, Outcome.STUCK),
        ("n < most", "n != most", 600, Outcome.MISSED),
    ],
)
def test_a_change_is_noticed_or_not_or_its_tests_get_stuck(
    tmp_path: Path, was: str, becomes: str, seconds: int, outcome: Outcome
) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "test_loop.py").write_text(TEST)
    change = Mutant("loop.py", 1, "", LOOP.replace(was, becomes))

    assert try_out(tmp_path, change, ["test_loop.py"], seconds) is outcome
    assert (tmp_path / "loop.py").read_text() == LOOP


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_modules_and_each_has_tests(room: str) -> None:
    modules = modules_of(room)

    assert len(modules) > 1
    for module in modules:
        tests = suite_of(module)
        assert tests[0].startswith("tests/unit/test_")
        assert all((HERE / one).exists() for one in tests)
