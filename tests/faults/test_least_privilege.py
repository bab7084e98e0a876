"""Each action that the function is granted is taken from it in turn: some promise fails, and no letter is lost.

docs/security.md has the table; what the template grants is held to the same table in tests/infrastructure.
"""

import pytest

from tests.faults.privileges import (
    PROMISES,
    Privilege,
    Role,
    nothing_is_lost_and_nothing_goes_back_twice,
    said,
)
from tests.infrastructure.privilege_docs import DOCS, documented


@pytest.fixture(scope="module")
def used() -> set[Privilege]:
    """What the function asks for while it keeps its promises."""
    role = Role()
    kept = {said(promise): promise(role) for promise in PROMISES}

    assert kept == dict.fromkeys(kept, True)
    return role.used


def test_what_is_documented_is_what_the_function_asks_for(used):
    assert set(documented()) == used


def test_the_docs_number_the_promises():
    for number, promise in enumerate(PROMISES, start=1):
        assert f"\n{number}. {said(promise)}" in DOCS


@pytest.mark.parametrize("missing", documented(), ids=" on the ".join)
def test_without_an_action_these_promises_fail_and_no_letter_is_lost(missing):
    role = Role({missing})

    broken = [number for number, keep in enumerate(PROMISES, start=1) if not keep(role)]

    assert broken == documented()[missing]
    assert nothing_is_lost_and_nothing_goes_back_twice(role)
