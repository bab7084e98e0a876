"""Each action that the function is granted is taken from it in turn: some promise fails, and no letter is lost.

docs/privileges.csv has the list; what the template grants is held to the same list in tests/infrastructure.
"""

import pytest

from tests.faults.privileges import (
    PROMISES,
    Privilege,
    Role,
    nothing_is_lost_and_nothing_goes_back_twice,
    said,
)
from tests.infrastructure.privilege_docs import documented


@pytest.fixture(scope="module")
def used() -> set[Privilege]:
    """What the function asks for while it keeps its promises."""
    role = Role()
    kept = {said(promise): promise(role) for promise in PROMISES}

    assert kept == dict.fromkeys(kept, True)
    return role.used


def test_what_is_documented_is_what_the_function_asks_for(used):
    assert set(documented()) == used


def test_each_promise_is_some_actions_and_each_that_is_listed_is_made():
    assert {one for broken in documented().values() for one in broken} == set(map(said, PROMISES))


@pytest.mark.parametrize("missing", documented(), ids=" on the ".join)
def test_without_an_action_these_promises_fail_and_no_letter_is_lost(missing):
    role = Role({missing})

    broken = [said(keep) for keep in PROMISES if not keep(role)]

    assert broken == documented()[missing]
    assert nothing_is_lost_and_nothing_goes_back_twice(role)
